// SPDX-License-Identifier: Apache-2.0
#include "cpu/moe_plan.hpp"

#include <algorithm>
#include <cstring>

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {

permute_plan_t::permute_plan_t(const exec_ctx_t &ctx)
    : ranks(ctx.pd.problem.permute.source_ranks), experts(ctx.pd.problem.permute.local_experts),
      src_rows(ctx.memory(MXDNN_ARG_SRC)->md.dims[0]), dst_rows(ctx.memory(MXDNN_ARG_DST)->md.dims[0]),
      counts(ctx.data<const int32_t>(MXDNN_ARG_GROUP_COUNTS)),
      from(ctx.scratch<int32_t>(scratch_t::first_rows)),
      start(ctx.scratch<int32_t>(scratch_t::group_starts)) {}

status_t permute_plan_t::init(dim_t alignment) const {
    dim_t row = 0;
    for (dim_t i = 0; i < ranks * experts; i++) {
        if (counts[i] < 0)
            return fail(mxdnn_invalid_arguments,
                    "GROUP_COUNTS[%lld, %lld] is %d; a number of rows is 0 or more", (long long)(i / experts),
                    (long long)(i % experts), counts[i]);
        from[i] = int32_t(std::min(row, src_rows));
        row += counts[i];
        if (row > src_rows)
            return fail(mxdnn_invalid_arguments,
                    "GROUP_COUNTS up to [%lld, %lld] are %lld rows together, but src has %lld",
                    (long long)(i / experts), (long long)(i % experts), (long long)row, (long long)src_rows);
    }
    dim_t end = 0;
    start[0] = 0;
    for (dim_t e = 0; e < experts; e++) {
        dim_t count = 0;
        for (dim_t r = 0; r < ranks; r++) count += counts[r * experts + e];
        end += round_up(std::max(count, alignment), alignment);
        if (end > dst_rows)
            return fail(mxdnn_invalid_arguments,
                    "the groups up to expert %lld take %lld rows (each padded to a multiple of %lld, at "
                    "least one), but dst has %lld",
                    (long long)e, (long long)end, (long long)alignment, (long long)dst_rows);
        start[e + 1] = int32_t(end);
    }
    return mxdnn_success;
}

void permute_plan_t::write_offsets(const exec_ctx_t &ctx) const {
    int32_t *offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    if (!offsets) return;
    const bool starts = ctx.pd.problem.attr.row_grouping == mxdnn_row_grouping_starts;
    std::copy(start + (starts ? 0 : 1), start + experts + 1, offsets);
}

unpermute_plan_t::unpermute_plan_t(const exec_ctx_t &ctx)
    : idx(ctx.data<const int32_t>(MXDNN_ARG_PERMUTED_IDX)), rows(ctx.memory(MXDNN_ARG_SRC)->md.dims[0]),
      tokens(ctx.memory(MXDNN_ARG_DST)->md.dims[0]), k(1), inverse(ctx.scratch<int32_t>(scratch_t::inverse)) {
    if (const memory_t *m = ctx.memory(MXDNN_ARG_TOPK_WEIGHTS)) {
        k = m->md.dims[1];
        weights = m->handle;
        weights_dt = m->md.dt;
    }
}

float unpermute_plan_t::weight(dim_t entry) const {
    if (!weights) return 1.f;
    return weights_dt == mxdnn_f32 ? static_cast<const float *>(weights)[entry]
                                   : bf16_t::decode(static_cast<const uint16_t *>(weights)[entry]);
}

void unpermute_plan_t::invert(dim_t first_token) const {
    const dim_t first = first_token * k, n = std::min(part_tokens() * k, entries() - first);
    std::fill(inverse, inverse + n, -1);
    for (dim_t r = 0; r < rows; r++) {
        const dim_t at = idx[r] - first;
        if (idx[r] >= 0 && at >= 0 && at < n) inverse[at] = int32_t(r);
    }
}

status_t unpermute_plan_t::init() const {
    const dim_t all = entries();
    for (dim_t r = 0; r < rows; r++)
        if (idx[r] < -1 || idx[r] >= all)
            return fail(mxdnn_invalid_arguments,
                    "PERMUTED_IDX[%lld] is %d; dst has %lld rows of %lld entries each, so it is -1 to %lld",
                    (long long)r, idx[r], (long long)tokens, (long long)k, (long long)(all - 1));
    const auto twice = [](dim_t r, int32_t entry) {
        return fail(mxdnn_invalid_arguments,
                "PERMUTED_IDX[%lld] is %d, as that of a row before it; every entry of dst comes from one row",
                (long long)r, entry);
    };
    if (all <= part_tokens() * k) {
        std::fill(inverse, inverse + all, -1);
        for (dim_t r = 0; r < rows; r++) {
            if (idx[r] < 0) continue;
            if (inverse[idx[r]] >= 0) return twice(r, idx[r]);
            inverse[idx[r]] = int32_t(r);
        }
        return mxdnn_success;
    }
    // One bit per entry, in parts of the size of the buffer.
    constexpr dim_t bits = part_entries * 32;
    for (dim_t first = 0; first < all; first += bits) {
        std::memset(inverse, 0, sizeof(int32_t) * part_entries);
        for (dim_t r = 0; r < rows; r++) {
            const dim_t at = idx[r] - first;
            if (idx[r] < 0 || at < 0 || at >= bits) continue;
            const int32_t bit = int32_t(1u << (at % 32));
            if (inverse[at / 32] & bit) return twice(r, idx[r]);
            inverse[at / 32] |= bit;
        }
    }
    invert(0);
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
