// SPDX-License-Identifier: Apache-2.0
// Which tiles there are, from offsets that only the device knows: the rows of a group are cut into
// as few row blocks of at most block_rows rows as possible, all about equally large, and every row
// block meets every group of panels. Each CTA computes the list for itself once and walks it with
// the stride of the grid.
#pragma once

#include "gpu/cuda/sm90_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

constexpr int max_groups = 512;

struct row_block_t {
    int group, expert;
    int first, rows; // rows of the list [0, M) that the caller's gather and scatter index
};

struct work_list_t {
    int first_block[max_groups + 1]; // running count of row blocks before each group
    // Kept, because a look into global memory between two items would cost as much as a stage.
    int first_row[max_groups], rows[max_groups], expert[max_groups];

    __device__ static int begin_of(const matmul_args_t &a, int g) {
        switch (a.rows_kind) {
        case rows_kind_t::ends: return g == 0 ? 0 : a.offsets[g - 1];
        case rows_kind_t::starts: return a.offsets[g];
        case rows_kind_t::padded: return g * a.max_rows;
        default: return 0;
        }
    }
    __device__ static int rows_of(const matmul_args_t &a, int g) {
        switch (a.rows_kind) {
        case rows_kind_t::ends: return a.offsets[g] - begin_of(a, g);
        case rows_kind_t::starts: return a.offsets[g + 1] - a.offsets[g];
        case rows_kind_t::padded: return a.offsets[g];
        default: return a.M;
        }
    }
    __device__ static int expert_of(const matmul_args_t &a, int g) {
        return a.group_experts ? a.group_experts[g] : g;
    }

    // By all lanes of one warp.
    __device__ void build(const matmul_args_t &a, int block_rows, int lane) {
        const int each = (a.groups + 31) / 32, from = lane * each;
        int sum = 0;
        for (int g = from; g < from + each && g < a.groups; g++) {
            first_row[g] = begin_of(a, g);
            expert[g] = expert_of(a, g);
            // Whatever the offsets hold, rows stay within the list.
            rows[g] = first_row[g] < 0 ? 0 : min(rows_of(a, g), a.M - first_row[g]);
            const int blocks = rows[g] > 0 && expert[g] >= 0 ? (rows[g] + block_rows - 1) / block_rows : 0;
            first_block[g + 1] = blocks;
            sum += blocks;
        }
        int before = sum;
        for (int d = 1; d < 32; d *= 2) {
            const int other = __shfl_up_sync(~0u, before, d);
            if (lane >= d) before += other;
        }
        before -= sum;
        for (int g = from; g < from + each && g < a.groups; g++) {
            before += first_block[g + 1];
            first_block[g + 1] = before;
        }
        if (lane == 0) first_block[0] = 0;
        __syncwarp();
    }

    __device__ int blocks(const matmul_args_t &a) const { return first_block[a.groups]; }

    // Row blocks are multiples of step rows, but for the last of a group.
    __device__ row_block_t block(const matmul_args_t &a, int index, int step) const {
        if (a.rows_kind == rows_kind_t::dense && blocks(a) == 1) return {0, 0, 0, a.M};
        int low = 0, high = a.groups; // first_block[low] <= index < first_block[high]
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (first_block[middle] <= index)
                low = middle;
            else
                high = middle;
        }
        row_block_t b;
        b.group = low;
        b.expert = expert[low];
        // At most block_rows each, which is a multiple of step, so the last block has rows too.
        const int parts = first_block[low + 1] - first_block[low];
        const int each = ((rows[low] + parts - 1) / parts + step - 1) / step * step;
        const int in_group = (index - first_block[low]) * each;
        b.first = first_row[low] + in_group;
        b.rows = min(rows[low] - in_group, each);
        return b;
    }
};

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
