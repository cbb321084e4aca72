// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for some rows of one matrix (gemm_narrow.cuh), after all others: for MXFP4 only.
#pragma once

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// width: the most rows. parts: CTAs of a cluster that share K and have a panel; 1: two that share the source
// and have a panel each.
struct narrow_shape_t {
    int width, parts;
};
constexpr int narrow_parts[] = {1, 2, 4};
constexpr narrow_shape_t narrow_shapes[] = {
        {32, 1}, {48, 1}, {64, 1}, {32, 2}, {48, 2}, {64, 2}, {32, 4}, {48, 4}, {64, 4}};
constexpr int narrow_count = sizeof(narrow_shapes) / sizeof(narrow_shapes[0]);
constexpr int narrow_most = [] { // rows
    int most = 0;
    for (const narrow_shape_t &shape : narrow_shapes) most = shape.width > most ? shape.width : most;
    return most;
}();
constexpr int gemm_narrow_first = gemm_fp8 + 1; // the number of the first one
constexpr bool is_narrow(int variant) {
    return variant >= gemm_narrow_first && variant < gemm_narrow_first + narrow_count;
}
constexpr narrow_shape_t narrow_shape(int variant) { return narrow_shapes[variant - gemm_narrow_first]; }
constexpr int narrow_cluster(int parts) { return parts > 1 ? parts : 2; }
// The narrowest one for so many rows.
constexpr int narrow_variant(int rows, int parts) {
    int v = 0;
    while (narrow_shapes[v].width < rows || narrow_shapes[v].parts != parts) v++;
    return gemm_narrow_first + v;
}
// How many variants, from the first one on, plans for weights with so many columns may choose.
int narrow_variants(int64_t N, int sm_count);
// Half of the rows, which are copied together: eight are a period of the swizzle.
constexpr int narrow_box_rows(int rows) { return (rows + 15) / 16 * 8; }

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
