// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for some rows of one matrix (gemm_narrow.cuh), after all others: for MXFP4 only.
#pragma once

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

constexpr int narrow_widths[] = {32, 48, 64}, narrow_count = sizeof(narrow_widths) / sizeof(narrow_widths[0]),
              narrow_most = narrow_widths[narrow_count - 1];
constexpr int gemm_narrow_first = gemm_fp8 + 1; // the number of the first one
constexpr bool is_narrow(int variant) {
    return variant >= gemm_narrow_first && variant < gemm_narrow_first + narrow_count;
}
// The narrowest one for so many rows.
constexpr int narrow_variant(int rows) {
    int v = 0;
    while (narrow_widths[v] < rows) v++;
    return gemm_narrow_first + v;
}
// Rows that each of the two CTAs of a cluster copies: eight are a period of the swizzle.
constexpr int narrow_box_rows(int rows) { return (rows + 15) / 16 * 8; }

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
