// SPDX-License-Identifier: Apache-2.0
// Buffers of XLA as memory of mxdnn: what a blob and the other buffers say is compared with what is there.
#pragma once

#include <string>

#include "place.hpp"

namespace mxdnn_jax {

using buffer_t = xla::ffi::AnyBuffer;

// "f32[3,64]"
std::string to_string(const buffer_t &buffer);

// f32, bf16 or f16; throws of others.
mxdnn::memory::data_type float_type_of(const buffer_t &buffer, const char *name);

// Throw where the buffer is of another type or shape. `name` is that of the argument, in sentences.
void require_bytes(const buffer_t &packed, const mxdnn::memory::desc &weights);
void require_s32(const buffer_t &buffer, mxdnn::memory::dim length, const char *name);
void require_dims(const buffer_t &buffer, const mxdnn::memory::dims &dims, const char *name);

mxdnn::memory::dims dims_of(const buffer_t &buffer);

// The product of all dimensions but the last; throws where it is no number of rows.
mxdnn::memory::dim rows_of(const buffer_t &buffer, const char *name);

// A dense tensor over the bytes of a buffer.
mxdnn::memory memory_of(const buffer_t &buffer, const mxdnn::memory::desc &md, const mxdnn::engine &engine);

// Executes with scratch memory of the place.
void execute(place_t &place, const mxdnn::primitive &primitive, const mxdnn::memory::desc &scratchpad,
        const mxdnn::stream &stream, std::unordered_map<int, mxdnn::memory> args);

} // namespace mxdnn_jax
