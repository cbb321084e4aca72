// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for MXFP4 weights in n64_f4, which are multiplied in FP8 for any number of rows
// (gemm_f4.cu, gemm_f4_kept.cu): numbered after all others.
#pragma once

#include "gpu/cuda/heuristics/gemm_narrow.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The last ones keep sums in the tensor cores, which the accumulation mode `any` allows.
constexpr int f4_widths[] = {16, 32, 48, 96, 128, 144, 192, 144, 160, 256},
              f4_all = sizeof(f4_widths) / sizeof(f4_widths[0]), f4_kept = 3, f4_count = f4_all - f4_kept;
constexpr int f4_panels(int width) { return width < 96 ? 4 : width <= 192 ? 3 : 2; } // of an item
constexpr int gemm_f4_first = gemm_narrow_first + narrow_count; // the number of the first one
constexpr bool is_f4(int variant) { return variant >= gemm_f4_first && variant < gemm_f4_first + f4_all; }
constexpr bool keeps_sums(int variant) { return is_f4(variant) && variant >= gemm_f4_first + f4_count; }
constexpr int f4_width(int variant) { return f4_widths[variant - gemm_f4_first]; }
// Rows of a tensor copy.
constexpr int f4_box_rows(int variant) {
    const int width = f4_width(variant);
    return keeps_sums(variant) && width > 144 ? width / 2 : gemm_box_rows(width);
}

// Whether the rows of the source may be made while the kernel runs.
constexpr bool f4_may_come(int variant) {
    return is_f4(variant) && f4_width(variant) >= 96 && f4_width(variant) != 192;
}

// The CTAs that make them then, and how many rounds of items the others have in that time; 0: rows are made
// before.
struct makers_t {
    int ctas = 0, rounds = 0;
};
makers_t plan_makers(const matmul_plan_t &plan, int64_t rows, int64_t N, int64_t K, int groups, int sm_count);

// any: sums may stay in the tensor cores.
matmul_plan_t plan_f4_matmul(int64_t rows, int64_t N, int groups, int sm_count, bool any);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
