// SPDX-License-Identifier: Apache-2.0
// What one thread of the device's reference for mx_reorder makes: one element, or one block of a quantised
// destination.
#pragma once

#include "gpu/cuda/device/matrix_view.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

// One element, or the block that begins at idx.
__device__ inline void move_block(const reorder_args_t &a, const int64_t *idx, bool along_rows) {
    const matrix_view_t dst(a.dst, idx), src(a.src, idx);
    const int64_t first_row = idx[a.dst.ndims - 2], first_col = idx[a.dst.ndims - 1];
    const int64_t rest = along_rows ? a.cols - first_col : a.rows - first_row;
    const int count = int(rest < a.dst.quant.block ? rest : a.dst.quant.block);
    const auto row = [&](int j) { return along_rows ? first_row : first_row + j; };
    const auto col = [&](int j) { return along_rows ? first_col + j : first_col; };
    const float src_global = src.global();
    if (!a.dst.quantised) {
        dst.set_code(row(0), col(0), encode(a.dst.dt, src.value(row(0), col(0), src_global)));
        return;
    }
    uint8_t codes[max_block];
    block_params_t params;
    if (a.moves) {
        params = src.params(row(0), col(0));
        for (int j = 0; j < count; j++) codes[j] = uint8_t(src.code(row(j), col(j)));
    } else {
        float x[max_block];
        for (int j = 0; j < count; j++) x[j] = src.value(row(j), col(j), src_global);
        const float global = dst.global();
        if (a.dynamic) {
            params = quantize_all(a.dst.dt, a.dst.quant, a.rounding, global, x, count, codes);
        } else {
            params = dst.params(row(0), col(0));
            for (int j = 0; j < count; j++)
                codes[j] = uint8_t(quantize(a.dst.dt, a.dst.quant, params, global, x[j]));
        }
    }
    if (a.moves || a.dynamic) dst.set_params(row(0), col(0), params);
    for (int j = 0; j < count; j++) dst.set_code(row(j), col(j), codes[j]);
}

// Whether blocks, or single elements, lie along rows of the destination.
MXDNN_HD inline bool reorders_along_rows(const reorder_args_t &a) {
    return !a.dst.quantised || a.dst.axis_from_end == 1;
}
MXDNN_HD inline int64_t reorder_blocks(const reorder_args_t &a) {
    return div_up(reorders_along_rows(a) ? a.cols : a.rows, a.dst.quantised ? int64_t(a.dst.quant.block) : 1);
}
MXDNN_HD inline int64_t reorder_tasks(const reorder_args_t &a) {
    return a.batch * (reorders_along_rows(a) ? a.rows : a.cols) * reorder_blocks(a);
}

__device__ inline void reorder_task(const reorder_args_t &a, int64_t i) {
    const bool along_rows = reorders_along_rows(a);
    const int64_t block = a.dst.quantised ? a.dst.quant.block : 1, blocks = reorder_blocks(a),
                  lines = along_rows ? a.rows : a.cols;
    int64_t idx[max_ndims] = {};
    const int nd = a.dst.ndims;
    batch_index(i / (lines * blocks), nd, a.dims, idx);
    // Neighbouring threads take neighbouring columns.
    const int64_t in_matrix = i % (lines * blocks);
    idx[nd - 2] = along_rows ? in_matrix / blocks : in_matrix / lines * block;
    idx[nd - 1] = along_rows ? in_matrix % blocks * block : in_matrix % lines;
    for_sharers(a.dst, a.dims, idx, [&] { move_block(a, idx, along_rows); });
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
