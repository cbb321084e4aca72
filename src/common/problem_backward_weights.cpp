// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights: what makes a legal problem, and the arguments that it takes.
#include "common/error.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr dim_t max_groups = 1 << 20; // as many experts as grouped_matmul has at most

// src or diff_dst, whose columns are a dim of the gradient.
status_t check_operand(
        const problem_t &p, const char *name, const memory_desc_t &md, const char *dim, dim_t columns) {
    MXDNN_CHECK(check_grouped_rows(name, md, p.attr.row_grouping));
    const bool grouped = md.kind == mxdnn_format_kind_grouped;
    const dim_t G = p.diff_weights.dims[0];
    const dim_t groups = grouped ? md.grouped.group_count : md.ndims == 3 ? md.dims[0] : G;
    if (!dims_agree(groups, G))
        return fail(mxdnn_invalid_shape, "%s has %lld groups and diff_weights have %lld; each has a gradient",
                name, (long long)groups, (long long)G);
    if (md.dims[md.ndims - 1] != columns)
        return fail(mxdnn_invalid_shape,
                "%s is %s and diff_weights are %s: %s is %s in %s and %lld in diff_weights", name,
                dims_text(md).c_str(), dims_text(p.diff_weights).c_str(), dim,
                dim_text(md.dims[md.ndims - 1]).c_str(), name, (long long)columns);
    return mxdnn_success;
}

bool is_mxfp8(data_type_t dt, const quant_t &q) {
    return (dt == mxdnn_f8_e4m3 || dt == mxdnn_f8_e5m2) && q.scale_dt == mxdnn_e8m0
           && q.zp == zero_point_kind_t::none && q.global == global_scale_kind_t::none;
}

status_t check_format(const char *name, const memory_desc_t &md, const arg_attr_t &a) {
    if (is_high_precision(md.dt)) {
        if (a.is_default()) return mxdnn_success;
        return fail(mxdnn_invalid_arguments,
                "%s is %s and has quantisation attributes; only quantised types have", name,
                data_type_name(md.dt));
    }
    if (!is_quantised_type(md.dt))
        return fail(mxdnn_invalid_data_type, "%s is %s; possible are f32 bf16 f16 f8_e4m3 f8_e5m2", name,
                data_type_name(md.dt));
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of(name, md, a, q, &axis));
    if (!is_mxfp8(md.dt, q))
        return fail(mxdnn_unimplemented,
                "%s is %s with %s scales; a gradient of weights takes f32, bf16, f16 and MXFP8 (f8_e4m3 or f8_e5m2 "
                "with e8m0 scales)",
                name, data_type_name(md.dt), data_type_name(q.scale_dt));
    if (axis != 2)
        return fail(mxdnn_invalid_arguments,
                "the blocks of %s run along its columns (groups 1x%lld); the sums run along the rows, so the blocks "
                "have to (%lldx1)",
                name, (long long)q.block, (long long)q.block);
    if (a.layout != mxdnn_scales_linear)
        return fail(mxdnn_unimplemented,
                "scales of %s are in the 128x4 order; a gradient of weights takes linear ones", name);
    if (a.is_dynamic())
        return fail(mxdnn_invalid_arguments,
                "%s has dynamic scales; they are read, so they have to be static", name);
    return mxdnn_success;
}

} // namespace

status_t prepare_grouped_matmul_backward_weights(problem_t &p) {
    const memory_desc_t &src = p.src, &diff_dst = p.diff_dst, &diff_wei = p.diff_weights;
    MXDNN_CHECK(check_plain("diff_weights", diff_wei));
    if (diff_wei.ndims != 3 || has_runtime_dims(diff_wei))
        return fail(mxdnn_invalid_shape, "diff_weights are %s; they are [groups, K, N] with known dims",
                dims_text(diff_wei).c_str());
    if (diff_wei.dims[0] > max_groups)
        return fail(mxdnn_invalid_shape, "diff_weights have %lld groups; possible are up to %lld",
                (long long)diff_wei.dims[0], (long long)max_groups);
    if (!is_high_precision(diff_wei.dt))
        return fail(mxdnn_invalid_data_type, "diff_weights are %s; possible are f32 bf16 f16",
                data_type_name(diff_wei.dt));
    if (p.attr.row_grouping == mxdnn_row_grouping_row_ids)
        return fail(mxdnn_unimplemented,
                "the row grouping is row_ids; a gradient of weights takes rows in the order of groups: ends, starts "
                "or padded");
    MXDNN_CHECK(check_operand(p, "src", src, "K", diff_wei.dims[1]));
    MXDNN_CHECK(check_operand(p, "diff_dst", diff_dst, "N", diff_wei.dims[2]));
    for (int i = 0; i < src.ndims - 1; i++)
        if (src.ndims == diff_dst.ndims && !dims_agree(src.dims[i], diff_dst.dims[i]))
            return fail(mxdnn_invalid_shape, "src is %s and diff_dst is %s; they have the same rows",
                    dims_text(src).c_str(), dims_text(diff_dst).c_str());
    MXDNN_CHECK(check_format("src", src, p.attr.src));
    MXDNN_CHECK(check_format("diff_dst", diff_dst, p.attr.diff_dst));
    const bool plain = is_high_precision(src.dt);
    if (plain != is_high_precision(diff_dst.dt) || (plain && src.dt != diff_dst.dt))
        return fail(mxdnn_unimplemented,
                "src is %s and diff_dst is %s; possible are f32, bf16 or f16 for both, or MXFP8 for both",
                data_type_name(src.dt), data_type_name(diff_dst.dt));
    if (!p.attr.weights.is_default() || !p.attr.dst.is_default())
        return fail(mxdnn_invalid_arguments, "a gradient of weights takes attributes of src and diff_dst");
    const auto &ops = p.attr.post_ops.ops;
    if (ops.empty()) return mxdnn_success;
    if (ops.size() > 1 || ops[0].kind != mxdnn_sum)
        return fail(mxdnn_unimplemented, "there are %zu post-ops; a gradient of weights takes one, sum",
                ops.size());
    return check_sum("diff_weights", diff_wei, ops[0]);
}

void list_args_grouped_backward_weights(pd_t &pd) {
    const problem_t &p = pd.problem;
    const dim_t G = p.diff_weights.dims[0];
    const auto operand = [&](int arg, const memory_desc_t &md, const arg_attr_t &a) {
        pd.args.push_back({arg, arg_use_t::input, md, false});
        const size_t before = pd.args.size();
        list_quant_args(pd, arg, md, a, arg_use_t::input);
        // How many rows of scales there are depends on the groups.
        for (size_t i = before; i < pd.args.size() && md.ndims == 2; i++)
            pd.args[i].md = plain_desc(pd.args[i].md.dt, {runtime_dim, md.dims[1]});
    };
    operand(MXDNN_ARG_SRC, p.src, p.attr.src);
    operand(MXDNN_ARG_DIFF_DST, p.diff_dst, p.attr.diff_dst);
    pd.args.push_back({MXDNN_ARG_DIFF_WEIGHTS, arg_use_t::output, p.diff_weights, false});
    const mxdnn_row_grouping_t grouping = p.attr.row_grouping;
    const bool padded = grouping == mxdnn_row_grouping_padded;
    if (!padded)
        pd.args.push_back({MXDNN_ARG_GROUP_OFFSETS, arg_use_t::input,
                plain_desc(mxdnn_s32, {G + (grouping == mxdnn_row_grouping_starts)}), false});
    // The form with a runtime dim comes first, so that the contents of these tensors are always checked.
    for (const memory_desc_t &counts : {plain_desc(mxdnn_s32, {runtime_dim, G}), plain_desc(mxdnn_s32, {G})})
        pd.args.push_back({MXDNN_ARG_GROUP_COUNTS, arg_use_t::input, counts, false, !padded});
}

} // namespace impl
} // namespace mxdnn
