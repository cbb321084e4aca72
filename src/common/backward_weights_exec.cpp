// SPDX-License-Identifier: Apache-2.0
#include "common/backward_weights_exec.hpp"

#include <algorithm>

#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

grouped_operand_t::grouped_operand_t(const exec_ctx_t &ctx, int arg, const arg_attr_t &attr) {
    const memory_t &m = *ctx.memory(arg);
    md = &m.md;
    data = static_cast<const uint8_t *>(m.handle);
    if (!attr.scales.set) return;
    scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
    block = attr.scales.groups[0];
}

backward_weights_exec_t::backward_weights_exec_t(const exec_ctx_t &ctx)
    : src(ctx, MXDNN_ARG_SRC, ctx.pd.problem.attr.src),
      diff_dst(ctx, MXDNN_ARG_DIFF_DST, ctx.pd.problem.attr.diff_dst) {
    const problem_t &p = ctx.pd.problem;
    groups.grouping = p.attr.row_grouping;
    groups.groups = groups.experts = groups.ids = p.diff_weights.dims[0];
    groups.rows = src.rows();
    const bool padded = groups.grouping == mxdnn_row_grouping_padded;
    const memory_t *counted = ctx.memory(MXDNN_ARG_GROUP_COUNTS);
    if (padded && groups.groups == 0) groups.rows = 0;
    if (!padded) groups.bounds = ctx.data<const int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    if (!counted) return;
    groups.counts = static_cast<const int32_t *>(counted->handle);
    groups.ranks = counted->md.ndims == 2 ? counted->md.dims[0] : 1;
}

namespace {

status_t check_counts(const counted_groups_t &groups) {
    for (int64_t g = 0; groups.counts && g < groups.groups; g++) {
        int64_t sum = 0;
        for (int64_t r = 0; r < groups.ranks; r++) {
            const int64_t at = r * groups.groups + g;
            const int32_t count = groups.counts[at];
            if (count < 0)
                return fail(mxdnn_invalid_arguments, "GROUP_COUNTS[%lld] is %d; a group has at least 0 rows",
                        (long long)at, count);
            sum += count;
        }
        if (sum > groups.group(g).count)
            return fail(mxdnn_invalid_arguments,
                    "GROUP_COUNTS say that %lld rows of group %lld count, but it has %lld", (long long)sum,
                    (long long)g, (long long)groups.group(g).count);
    }
    return mxdnn_success;
}

// Scales of a tensor of 3 dims have its groups. Otherwise they have a row for each block of each group, which
// only the host looks at.
status_t check_block_rows(const backward_weights_exec_t &x, const grouped_operand_t &o, int arg,
        const arg_attr_t &attr, bool on_host) {
    if (!o.scales) return mxdnn_success;
    if (o.md->ndims == 3) return check_params_follow(MXDNN_ARG_ATTR_SCALES | arg, o.scales->md, *o.md, attr);
    if (!on_host) return mxdnn_success;
    int64_t need = 0;
    for (int64_t g = 0; g < x.groups.groups; g++) need += x.blocks_of(g);
    if (o.scales->md.dims[0] < need)
        return fail(mxdnn_invalid_arguments,
                "%s have %lld rows; blocks of %lld rows begin anew in each group, so these groups need %lld",
                arg_name(MXDNN_ARG_ATTR_SCALES | arg), (long long)o.scales->md.dims[0], (long long)o.block,
                (long long)need);
    return mxdnn_success;
}

} // namespace

status_t check_backward_weights_exec(const problem_t &p, const exec_ctx_t &ctx) {
    const backward_weights_exec_t x(ctx);
    const int64_t G = p.diff_weights.dims[0];
    if (x.src.rows() != x.diff_dst.rows())
        return fail(mxdnn_invalid_arguments, "src has %lld rows and diff_dst %lld; they have the same rows",
                (long long)x.src.rows(), (long long)x.diff_dst.rows());
    if (x.src.rows() > INT32_MAX)
        return fail(mxdnn_invalid_arguments, "there are %lld grouped rows; offsets of type s32 reach %d",
                (long long)x.src.rows(), INT32_MAX);
    for (const grouped_operand_t *o : {&x.src, &x.diff_dst})
        if (o->md->ndims == 3 && o->md->dims[0] != G)
            return fail(mxdnn_invalid_arguments, "%s has %lld groups and diff_weights %lld",
                    o == &x.src ? "src" : "diff_dst", (long long)o->md->dims[0], (long long)G);
    if (p.attr.row_grouping == mxdnn_row_grouping_padded && (G ? x.src.rows() % G : x.src.rows()) != 0)
        return fail(mxdnn_invalid_arguments, "%lld rows do not divide into %lld groups",
                (long long)x.src.rows(), (long long)G);
    const bool on_host = p.engine->kind() == mxdnn_cpu;
    if (on_host && p.attr.row_grouping != mxdnn_row_grouping_padded) MXDNN_CHECK(x.groups.check());
    if (on_host) MXDNN_CHECK(check_counts(x.groups));
    MXDNN_CHECK(check_block_rows(x, x.src, MXDNN_ARG_SRC, p.attr.src, on_host));
    return check_block_rows(x, x.diff_dst, MXDNN_ARG_DIFF_DST, p.attr.diff_dst, on_host);
}

} // namespace impl
} // namespace mxdnn
