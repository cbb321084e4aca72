// SPDX-License-Identifier: Apache-2.0
// Which tiles there are, from offsets that only the device knows: the rows of a group are cut into
// as few row blocks of at most block_rows rows as possible, all about equally large, and every row
// block meets every group of panels. Each CTA computes the list for itself once and walks it, with
// the stride of the grid or a stretch of it (stretch.cuh).
#pragma once

#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

constexpr int panel_columns = 64;

struct row_block_t {
    int expert;
    int first, rows; // the rows of the list [0, M) that the caller's indices are for
};

// The panels of an item: up to `each` slots of one panel. With gated halves, every second slot has the panel
// with the columns that the previous slot gates. They are counted in units: a panel, or a gate and what it
// gates.
template <int each>
struct panels_t {
    int begin, end, up; // up: panels from a gate to what it gates; 0: no halves

    __device__ explicit panels_t(const matmul_args_t &a)
        : begin(a.panel_begin), end(a.panel_end),
          up(a.activation == activation_t::gated_halves ? a.N / 2 / panel_columns : 0) {}

    __device__ int units() const { return end - begin; }
    __device__ int units_each() const { return up ? each / 2 : each; }
    // The number of slots of this many units, and the panel of a slot, counted from unit `first` on.
    __device__ int slots_of(int units) const { return up ? 2 * units : units; }
    __device__ int panel_from(int first, int slot) const {
        return up ? begin + first + slot / 2 + slot % 2 * up : begin + first + slot;
    }
    __device__ bool wanted(const int32_t *list, int group) const {
        for (int slot = 0; list && slot < slots(group); slot++)
            if (list[panel(group, slot)]) return true;
        return !list;
    }
    // Results are stored in quads of neighbouring columns, counted through the slots; with halves, through
    // those of the gates. The first column of a quad among those of all slots, and among all columns of the
    // weights.
    __device__ static int quads_of(int units) { return units * (panel_columns / 4); }
    __device__ int slot_column(int quad) const {
        return up ? quad / 16 * (2 * panel_columns) + quad % 16 * 4 : quad * 4;
    }
    __device__ int column_from(int first, int quad) const {
        return (begin + first) * panel_columns + quad * 4;
    }

    // Groups with as many units as there are slots, except the last one.
    __device__ int groups() const { return (units() + units_each() - 1) / units_each(); }
    // A group beyond the last has none.
    __device__ int slots(int group) const {
        return slots_of(max(0, min(units_each(), units() - group * units_each())));
    }
    __device__ int panel(int group, int slot) const { return panel_from(group * units_each(), slot); }
    __device__ int quads() const { return quads_of(units_each()); }
    __device__ int column(int group, int quad) const { return column_from(group * units_each(), quad); }
};

struct work_list_t {
    // Prefix sums of the shares of the groups: number of row blocks, or cost.
    int first_share[max_groups + 1];
    // Stored, because reading global memory between two items would cost as much as a stage.
    int first_row[max_groups], rows[max_groups], expert[max_groups];
    int of_warp[32]; // shares of the groups that a warp looks at

    // Called by all threads of a CTA, except perhaps one warp. It ends with a barrier of them all. shares_of:
    // the shares of a group with so many rows.
    template <typename F>
    __device__ void build(const matmul_args_t &a, F &&shares_of) {
        const int groups = groups_of(a), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (threadIdx.x == 0) first_share[0] = 0;
        int from = 0; // groups of earlier rounds
        do {
            const int g = from + int(threadIdx.x);
            int shares = 0;
            if (g < groups) {
                const row_group_t group = a.grouped ? a.groups.group(g) : row_group_t{a.row_begin, a.M, 0};
                first_row[g] = max(int(group.first), a.row_begin);
                expert[g] = group.expert;
                rows[g] = max(min(int(group.first + group.count), a.row_begin + a.M) - first_row[g], 0);
                if (group.expert >= 0) shares = shares_of(rows[g]);
            }
            // The shares of the groups from this warp's first one to this one.
            for (int d = 1; d < 32; d *= 2) {
                const int other = __shfl_up_sync(~0u, shares, d);
                if (lane >= d) shares += other;
            }
            if (lane == 31) of_warp[warp] = shares;
            __syncthreads();
            // Warps without groups return, because they would take issue slots from those that have.
            if (from + warp * 32 < groups) {
                shares += first_share[from];
                shares += int(__reduce_add_sync(~0u, unsigned(lane < warp ? of_warp[lane] : 0)));
                if (g < groups) first_share[g + 1] = shares;
            }
            __syncthreads();
            from += int(blockDim.x);
        } while (from < groups);
    }
    // One share for every block of at most block_rows rows.
    __device__ void build(const matmul_args_t &a, int block_rows) {
        build(a, [block_rows](int rows) { return (rows + block_rows - 1) / block_rows; });
    }

    __device__ static int groups_of(const matmul_args_t &a) { return a.grouped ? int(a.groups.groups) : 1; }

    // The total; in a list of row blocks, their number.
    __device__ int shares(const matmul_args_t &a) const { return first_share[groups_of(a)]; }

    // The last group that begins at or before a share. Called by a warp.
    __device__ int group_of(const matmul_args_t &a, int share) const {
        static_assert(max_groups <= 32 * 16, "found in two looks");
        const int groups = groups_of(a), lane = threadIdx.x % 32;
        const auto begins = [&](int g) { return g < groups && first_share[g] <= share; };
        const int from = (__popc(__ballot_sync(~0u, begins(lane * 16))) - 1) * 16;
        return from + __popc(__ballot_sync(~0u, lane < 16 && begins(from + lane))) - 1;
    }
    // Row block `at` of a group. Blocks are multiples of step rows, except the last one.
    __device__ row_block_t block_of(int group, int at, int blocks, int step) const {
        // At most block_rows each. This is a multiple of step, so the last block has rows, too.
        const int each =
                blocks == 1 ? rows[group] : ((rows[group] + blocks - 1) / blocks + step - 1) / step * step;
        return {expert[group], first_row[group] + at * each, min(rows[group] - at * each, each)};
    }
    // The same by its number among all groups, if a share is a row block. Called by a warp.
    __device__ row_block_t block(const matmul_args_t &a, int index, int step) const {
        if (!a.grouped && shares(a) == 1) return {0, a.row_begin, a.M};
        const int group = group_of(a, index);
        return block_of(group, index - first_share[group], first_share[group + 1] - first_share[group], step);
    }
};

// The first byte of an expert's packed weights: its global scale if it has one, then the panels.
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

// The factor of the sum of row m of the list.
__device__ inline float row_factor_of(const matmul_args_t &a, int m) {
    if (!a.row_factors) return 1.f;
    const int row = source_row_of(a, m);
    return row < 0 ? 1.f : a.row_factors[row];
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
