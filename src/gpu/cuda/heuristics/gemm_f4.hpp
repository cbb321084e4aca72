// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for MXFP4 weights in n64_f4, which are multiplied in FP8 for any number of rows
// (gemm_f4.cu): numbered after all others.
#pragma once

#include "gpu/cuda/heuristics/gemm_narrow.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

constexpr int f4_widths[] = {16, 32, 48, 96, 144, 192, 288},
              f4_count = sizeof(f4_widths) / sizeof(f4_widths[0]);
constexpr bool f4_three(int width) { return width >= 96 && width <= 192; } // three consumers, a panel each
constexpr int f4_panels(int width) { return f4_three(width) ? 3 : 4; }     // of an item
constexpr int f4_pair(int width) { return f4_three(width) ? 1 : gemm_pair(width); }
constexpr int gemm_f4_first = gemm_narrow_first + narrow_count; // the number of the first one
constexpr bool is_f4(int variant) { return variant >= gemm_f4_first && variant < gemm_f4_first + f4_count; }
constexpr int f4_width(int variant) { return f4_widths[variant - gemm_f4_first]; }

matmul_plan_t plan_f4_matmul(int64_t rows, int64_t N, int groups, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
