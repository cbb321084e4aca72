// SPDX-License-Identifier: Apache-2.0
// Descriptors of packed weights: from a blob, and by the name of a format.
#pragma once

#include <string_view>

#include <mxdnn/mxdnn.hpp>

namespace mxdnn_jax {

// The descriptor that a blob stands for. Throws where it is none of packed weights.
mxdnn::memory::desc weights_of_blob(const uint8_t *blob, size_t size);

// The same, of weights that `engine` multiplies with. Throws with the reason where it cannot.
mxdnn::memory::desc weights_for(const mxdnn::engine &engine, const uint8_t *blob, size_t size);

// Weights {.., K, N} of a named format, packed for the engine's target. block 0: the format's own.
mxdnn::memory::desc packed_weights(const mxdnn::engine &engine, std::string_view format, bool global_scale,
        mxdnn::memory::dim block, const mxdnn::memory::dims &dims);

} // namespace mxdnn_jax
