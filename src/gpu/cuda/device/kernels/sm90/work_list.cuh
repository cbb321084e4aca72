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

constexpr int panel_columns = 64;

struct row_block_t {
    int expert;
    int first, rows; // rows of the list [0, M) that the caller's indices are for
};

// The panels of an item: up to `each` slots of one panel. With gated halves every second slot has the panel
// of the columns that the one before it gates. They are counted in units: a panel, or a gate and what it
// gates.
template <int each>
struct panels_t {
    int begin, end, up; // up: panels from a gate to what it gates, 0: no halves

    __device__ explicit panels_t(const matmul_args_t &a)
        : begin(a.panel_begin), end(a.panel_end),
          up(a.activation == activation_t::gated_halves ? a.N / 2 / panel_columns : 0) {}

    __device__ int units() const { return end - begin; }
    __device__ int units_each() const { return up ? each / 2 : each; }
    // Slots of so many units, and the panel of a slot, counted from unit `first` on.
    __device__ int slots_of(int units) const { return up ? 2 * units : units; }
    __device__ int panel_from(int first, int slot) const {
        return up ? begin + first + slot / 2 + slot % 2 * up : begin + first + slot;
    }
    __device__ bool wanted(const int32_t *list, int group) const {
        for (int slot = 0; list && slot < slots(group); slot++)
            if (list[panel(group, slot)]) return true;
        return !list;
    }
    // Results leave in quads of neighbouring columns, counted through the slots; with halves, through those
    // of the gates. A quad's first column among those of all slots, and among all of the weights.
    __device__ static int quads_of(int units) { return units * (panel_columns / 4); }
    __device__ int slot_column(int quad) const {
        return up ? quad / 16 * (2 * panel_columns) + quad % 16 * 4 : quad * 4;
    }
    __device__ int column_from(int first, int quad) const {
        return (begin + first) * panel_columns + quad * 4;
    }

    // Groups of as many units as there are slots for, but for the last one.
    __device__ int groups() const { return (units() + units_each() - 1) / units_each(); }
    // None of a group beyond the last.
    __device__ int slots(int group) const {
        return slots_of(max(0, min(units_each(), units() - group * units_each())));
    }
    __device__ int panel(int group, int slot) const { return panel_from(group * units_each(), slot); }
    __device__ int quads() const { return quads_of(units_each()); }
    __device__ int column(int group, int quad) const { return column_from(group * units_each(), quad); }
};

struct work_list_t {
    int first_block[max_groups + 1]; // running count of row blocks before each group
    // Kept, because a look into global memory between two items would cost as much as a stage.
    int first_row[max_groups], rows[max_groups], expert[max_groups];

    // By all threads of a CTA, of which a warp may be missing elsewhere; ends with a barrier of them all.
    __device__ void build(const matmul_args_t &a, int block_rows) {
        const int groups = a.grouped ? int(a.groups.groups) : 1;
        for (int g = threadIdx.x; g < groups; g += blockDim.x) {
            const row_group_t group = a.grouped ? a.groups.group(g) : row_group_t{a.row_begin, a.M, 0};
            first_row[g] = max(int(group.first), a.row_begin);
            expert[g] = group.expert;
            rows[g] = max(min(int(group.first + group.count), a.row_begin + a.M) - first_row[g], 0);
            first_block[g + 1] = group.expert >= 0 ? (rows[g] + block_rows - 1) / block_rows : 0;
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            const int lane = threadIdx.x, each = (groups + 31) / 32, from = min(lane * each, groups),
                      to = min(from + each, groups);
            int sum = 0;
            for (int g = from; g < to; g++) sum += first_block[g + 1];
            int before = sum;
            for (int d = 1; d < 32; d *= 2) {
                const int other = __shfl_up_sync(~0u, before, d);
                if (lane >= d) before += other;
            }
            before -= sum;
            for (int g = from; g < to; g++) {
                before += first_block[g + 1];
                first_block[g + 1] = before;
            }
            if (lane == 0) first_block[0] = 0;
        }
        __syncthreads();
    }

    __device__ int blocks(const matmul_args_t &a) const {
        return first_block[a.grouped ? int(a.groups.groups) : 1];
    }

    // Row blocks are multiples of step rows, but for the last of a group.
    __device__ row_block_t block(const matmul_args_t &a, int index, int step) const {
        if (!a.grouped && blocks(a) == 1) return {0, a.row_begin, a.M};
        int low = 0,
            high = a.grouped ? int(a.groups.groups) : 1; // first_block[low] <= index < first_block[high]
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (first_block[middle] <= index)
                low = middle;
            else
                high = middle;
        }
        row_block_t b;
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

// First byte of an expert's packed weights: its global scale where they have one, then the panels.
__device__ inline const uint8_t *packed_of(const matmul_args_t &a, int expert) {
    return a.weights_ptrs ? reinterpret_cast<const uint8_t *>(a.weights_ptrs[expert])
                          : static_cast<const uint8_t *>(a.weights) + expert * a.expert_stride;
}

// The row of src of row m of the list; -1: zeros.
__device__ inline int source_row_of(const matmul_args_t &a, int m) {
    if (!a.gather) return m - a.row_begin;
    const int row = __ldg(a.gather + m);
    return unsigned(row) < unsigned(a.src_rows) ? row : -1;
}

// What the sum of row m of the list is multiplied by.
__device__ inline float row_factor_of(const matmul_args_t &a, int m) {
    if (!a.row_factors) return 1.f;
    const int row = source_row_of(a, m);
    return row < 0 ? 1.f : a.row_factors[row];
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
