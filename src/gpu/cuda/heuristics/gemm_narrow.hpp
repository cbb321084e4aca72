// SPDX-License-Identifier: Apache-2.0
// The variants of gemm for some rows of one matrix (gemm_narrow.cuh), after all others: for MXFP4 only.
#pragma once

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// width: the most rows of a block; there are several blocks only where a CTA has two panels. parts: CTAs of a
// cluster that share K and have the same panel; 1: two that share the source and have their own panels.
struct narrow_shape_t {
    int width, parts, panels;
};
constexpr narrow_shape_t narrow_shapes[] = {{48, 1, 2}, {64, 1, 2}, {80, 1, 2}, {96, 1, 2}, {112, 1, 2},
        {128, 1, 2}, {32, 1, 1}, {48, 1, 1}, {64, 1, 1}, {32, 2, 1}, {48, 2, 1}, {64, 2, 1}, {32, 4, 1},
        {48, 4, 1}, {64, 4, 1}};
constexpr int narrow_count = sizeof(narrow_shapes) / sizeof(narrow_shapes[0]);
constexpr int gemm_narrow_first = gemm_fp8 + 1; // the number of the first one
constexpr bool is_narrow(int variant) {
    return variant >= gemm_narrow_first && variant < gemm_narrow_first + narrow_count;
}
constexpr narrow_shape_t narrow_shape(int variant) { return narrow_shapes[variant - gemm_narrow_first]; }
constexpr int narrow_cluster(int parts) { return parts > 1 ? parts : 2; }
// The CTAs for a block of rows, of so many panels of 64 columns.
constexpr int narrow_block_ctas(const narrow_shape_t &shape, int panels) {
    return shape.parts > 1 ? panels * shape.parts : (panels + 2 * shape.panels - 1) / (2 * shape.panels) * 2;
}
// The blocks that rows are divided into, where there are so many CTAs.
constexpr int narrow_blocks(const narrow_shape_t &shape, int panels, int ctas) {
    return shape.panels > 1 ? ctas / narrow_block_ctas(shape, panels) : 1;
}
// Half of the rows of a block, which are copied together: eight are a period of the swizzle.
constexpr int narrow_box_rows(int rows, int blocks) { return ((rows + blocks - 1) / blocks + 15) / 16 * 8; }
// How many variants, from the first one on, plans for weights with so many columns may choose.
int narrow_variants(int64_t N, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
