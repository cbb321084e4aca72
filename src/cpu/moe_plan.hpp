// SPDX-License-Identifier: Apache-2.0
// Where rows go: what moe_permute and moe_unpermute make of their index arguments, checked before
// anything is written.
#pragma once

#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

// moe_permute. Rows arrive in the order [source rank][local expert] and leave as [local expert][source rank].
// The rows of each expert are padded to round_up(max(count, alignment), alignment).
struct permute_plan_t {
    dim_t ranks, experts, src_rows, dst_rows;
    const int32_t *counts; // [ranks][experts]
    int32_t *from;         // [ranks][experts]: first source row
    int32_t *start;        // [experts + 1]: first destination row of each expert's group

    static void book(scratch_parts_t &scratch, const permute_desc_t &d) {
        scratch.book(scratch_t::first_rows, 4 * d.source_ranks * d.local_experts);
        scratch.book(scratch_t::group_starts, 4 * (d.local_experts + 1));
    }
    explicit permute_plan_t(const exec_ctx_t &ctx);

    // Refuses counts that are negative or too large.
    status_t init(dim_t alignment) const;
    dim_t end() const { return start[experts]; }
    void write_offsets(const exec_ctx_t &ctx) const;

    // Calls fn(dst_row, src_row, n) for all runs of rows in [begin, end) of the destination's groups, in
    // order. src_row is -1 for padding.
    template <typename F>
    void for_runs(dim_t begin, dim_t end_row, F &&fn) const {
        dim_t e = 0;
        while (e < experts && start[e + 1] <= begin) e++;
        const auto part = [&](dim_t first, dim_t n, dim_t src) {
            const dim_t b = first < begin ? begin : first, e1 = first + n < end_row ? first + n : end_row;
            if (b < e1) fn(b, src < 0 ? dim_t(-1) : src + (b - first), e1 - b);
        };
        for (; e < experts && start[e] < end_row; e++) {
            dim_t row = start[e];
            for (dim_t r = 0; r < ranks; r++) {
                const dim_t i = r * experts + e;
                part(row, counts[i], from[i]);
                row += counts[i];
            }
            part(row, start[e + 1] - row, -1);
        }
    }
};

// moe_unpermute. PERMUTED_IDX says where each source row goes: to entry t * k + j of row t, or nowhere (-1).
struct unpermute_plan_t {
    // Destination entries that are processed together. More entries are processed in parts.
    static constexpr dim_t part_entries = 1 << 16;
    static void book(scratch_parts_t &scratch) { scratch.book(scratch_t::inverse, 4 * part_entries); }

    const int32_t *idx;
    dim_t rows;       // of the source
    dim_t tokens, k;  // of the destination
    int32_t *inverse; // [part_entries]: source row of an entry, or -1
    // Weights of the entries; null: all are 1.
    const void *weights = nullptr;
    data_type_t weights_dt = mxdnn_f32; // or bf16

    explicit unpermute_plan_t(const exec_ctx_t &ctx);

    dim_t entries() const { return tokens * k; }
    float weight(dim_t entry) const;
    // The number of tokens in a part.
    dim_t part_tokens() const { return part_entries / k; }
    // Refuses entries out of range, and two rows with the same entry. Leaves the first part in `inverse`.
    status_t init() const;
    void invert(dim_t first_token) const;
};

} // namespace impl
} // namespace mxdnn
