// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for some rows of one matrix (gemm_narrow.cuh), after all others: for MXFP4 only.
#pragma once

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// width: the most rows of a block. parts: CTAs of a cluster that share K and have the same panels; 1: two
// that share the source and have their own panels. Those that need fewer CTAs for a panel come first.
struct narrow_shape_t {
    int width, parts, panels;
};
constexpr narrow_shape_t narrow_shapes[] = {{96, 1, 3}, {112, 1, 3}, {128, 1, 3}, {144, 1, 3}, {160, 1, 3},
        {64, 1, 2}, {80, 1, 2}, {96, 1, 2}, {112, 1, 2}, {128, 1, 2}, {128, 2, 3}, {32, 1, 1}, {48, 1, 1},
        {64, 1, 1}, {80, 1, 1}, {96, 1, 1}, {112, 1, 1}, {128, 1, 1}, {144, 1, 1}, {160, 1, 1}, {96, 2, 2},
        {128, 2, 2}, {80, 4, 3}, {96, 4, 3}, {112, 4, 3}, {128, 4, 3}, {144, 4, 3}, {160, 4, 3}, {32, 2, 1},
        {48, 2, 1}, {64, 2, 1}, {32, 4, 1}, {48, 4, 1}, {64, 4, 1}};
constexpr int narrow_threes = 5; // the first ones, built apart (gemm_narrow_three.cu)
// Whether CTAs have a panel each, and the last one of a cluster a part of K of all its panels
// (gemm_helped.cuh).
constexpr bool narrow_is_helped(const narrow_shape_t &shape) {
    return shape.panels > 1 && shape.parts == shape.panels + 1;
}
// The steps of 64 rows of K that this CTA does: less than its share, because it sends its sums afterwards.
constexpr int narrow_helped_steps(int steps) { return steps < 8 ? 0 : steps / 4 - 2; }
constexpr int narrow_count = sizeof(narrow_shapes) / sizeof(narrow_shapes[0]);
constexpr int gemm_narrow_first = gemm_fp8 + 1; // the number of the first one
constexpr bool is_narrow(int variant) {
    return variant >= gemm_narrow_first && variant < gemm_narrow_first + narrow_count;
}
constexpr narrow_shape_t narrow_shape(int variant) { return narrow_shapes[variant - gemm_narrow_first]; }
constexpr int narrow_cluster(int parts) { return parts > 1 ? parts : 2; }
constexpr int narrow_sharers(int parts) { return parts > 1 ? 1 : 2; } // CTAs that have the same source rows
// The CTAs for a block of rows, of so many panels of 64 columns.
constexpr int narrow_block_ctas(const narrow_shape_t &shape, int panels) {
    const int of_cluster = narrow_sharers(shape.parts) * shape.panels;
    return (panels + of_cluster - 1) / of_cluster * narrow_cluster(shape.parts);
}
// The blocks that rows are divided into, where there are so many CTAs.
constexpr int narrow_blocks(const narrow_shape_t &shape, int panels, int ctas) {
    return ctas / narrow_block_ctas(shape, panels);
}
// The rows of a block that a CTA copies: eight are a period of the swizzle.
constexpr int narrow_box_rows(const narrow_shape_t &shape, int rows, int blocks) {
    const int least = 8 * narrow_sharers(shape.parts);
    return ((rows + blocks - 1) / blocks + least - 1) / least * 8;
}
// How many variants, from the first one on, plans for weights with so many columns may choose.
int narrow_variants(int64_t N, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
