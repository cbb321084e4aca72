// SPDX-License-Identifier: Apache-2.0
// Which packed descriptor `any` stands for: of weights and of the destination of a reorder.
#pragma once

#include "common/attr.hpp"
#include "common/engine.hpp"

namespace mxdnn {
namespace impl {

// Replaces `any` by the packed descriptor that the attributes of the argument describe, for the engine's
// target. `name` is the argument in messages.
status_t resolve_any(const char *name, memory_desc_t &md, const arg_attr_t &a, const engine_t &engine);

// Describes weights as a matmul with `any` weights of these dims and this type does.
status_t init_packed_weights(memory_desc_t &md, const engine_t &engine, int ndims, const dim_t *dims,
        data_type_t dt, const attr_t &attr);

} // namespace impl
} // namespace mxdnn
