// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for MXFP4 weights in n64_f4, which are multiplied in FP8 for any number of rows
// (gemm_f4.cu): numbered after all others.
#pragma once

#include "gpu/cuda/heuristics/gemm_narrow.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

constexpr int f4_widths[] = {16, 32, 48, 96, 128, 144, 192},
              f4_count = sizeof(f4_widths) / sizeof(f4_widths[0]);
constexpr int f4_panels(int width) { return width >= 96 ? 3 : 4; } // of an item
constexpr int gemm_f4_first = gemm_narrow_first + narrow_count;    // the number of the first one
constexpr bool is_f4(int variant) { return variant >= gemm_f4_first && variant < gemm_f4_first + f4_count; }
constexpr int f4_width(int variant) { return f4_widths[variant - gemm_f4_first]; }

matmul_plan_t plan_f4_matmul(int64_t rows, int64_t N, int groups, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
