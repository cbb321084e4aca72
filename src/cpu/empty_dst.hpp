// SPDX-License-Identifier: Apache-2.0
// What is written where a matmul's destination has no elements.
#pragma once

#include <cstring>

#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

// The computed global scale is 0, as for a matrix of zeros.
inline status_t write_empty_dst(const exec_ctx_t &ctx) {
    if (ctx.pd.problem.attr.dst.global == mxdnn_quantization_mode_dynamic_fp) {
        const memory_t &global = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        std::memset(global.handle, 0, size_t(size_of(global.md)));
    }
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
