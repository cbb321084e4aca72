// SPDX-License-Identifier: Apache-2.0
// The companions of grouped_matmul: what moe_route, moe_permute and moe_unpermute accept, and their
// arguments.
#include <algorithm>
#include <cmath>

#include "common/formats/swizzle_128x4.hpp"
#include "common/primitive.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr dim_t max_route_experts = 1 << 16;

// Row numbers are s32, so there are at most 2^31 - 1 rows.
constexpr dim_t max_rows = INT32_MAX;

dim_t times(dim_t a, dim_t b) { return a == runtime_dim || b == runtime_dim ? runtime_dim : a * b; }

// `grouped` is the side that grouped_matmul reads or writes. It may have a grouped descriptor.
status_t check_matrix(const char *name, const memory_desc_t &md, bool grouped = false) {
    if (!grouped || md.kind != mxdnn_format_kind_grouped) MXDNN_CHECK(check_plain(name, md));
    if (md.ndims != 2)
        return fail(mxdnn_invalid_shape, "%s is %s; it has to be a matrix of two dims", name,
                dims_text(md).c_str());
    if (md.dims[1] == runtime_dim)
        return fail(mxdnn_invalid_shape, "%s is %s; only its rows may be a runtime value", name,
                dims_text(md).c_str());
    if (md.dims[0] > max_rows) // a runtime dim is negative and passes
        return fail(mxdnn_invalid_shape, "%s has %lld rows; row numbers are s32, so %lld are possible", name,
                (long long)md.dims[0], (long long)max_rows);
    return mxdnn_success;
}

status_t check_offsets_grouping(const problem_t &p, const char *primitive) {
    const mxdnn_row_grouping_t g = p.attr.row_grouping;
    if (g == mxdnn_row_grouping_ends || g == mxdnn_row_grouping_starts) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "the row grouping is %d, but %s writes GROUP_OFFSETS, which are ends (0) or starts (1)", int(g),
            primitive);
}

memory_desc_t offsets_desc(const problem_t &p, dim_t groups) {
    return plain_desc(mxdnn_s32, {groups + (p.attr.row_grouping == mxdnn_row_grouping_starts)});
}

void add_arg(pd_t &pd, int arg, arg_use_t use, const memory_desc_t &md, bool optional = true) {
    const arg_attr_t *a = pd.problem.attr.arg(arg);
    pd.args.push_back({arg, use, md, false, optional, a ? a->packing : mxdnn_element_packing_bytes});
}

// The length of a dim that may be a runtime value.
status_t expect_length(const exec_ctx_t &ctx, int arg, int dim, dim_t want, const char *why) {
    const memory_t *m = ctx.memory(arg);
    if (!m || m->md.dims[dim] == want) return mxdnn_success;
    return fail(mxdnn_invalid_arguments, "dim %d of %s is %lld; %s, so it has to be %lld", dim, arg_name(arg),
            (long long)m->md.dims[dim], why, (long long)want);
}

// Whole rows move. So both sides have one type, and quantised sides have one format, blocked along the
// columns.
status_t prepare_moved(problem_t &p, const char *primitive) {
    memory_desc_t &src = p.src, &dst = p.dst;
    arg_attr_t &sa = p.attr.src, &da = p.attr.dst;
    if (!is_quantised_type(src.dt)) {
        if (!sa.is_default() || !da.is_default())
            return fail(mxdnn_invalid_arguments,
                    "src is %s and has quantisation attributes; only quantised types have",
                    data_type_name(src.dt));
        return mxdnn_success;
    }
    if (src.dt != dst.dt)
        return fail(mxdnn_invalid_data_type,
                "src is %s and dst is %s; %s moves codes as they are, so both are the same",
                data_type_name(src.dt), data_type_name(dst.dt), primitive);
    // Attributes that the destination does not have are those of the source.
    if (!da.scales.set) {
        const mxdnn_scales_layout_t layout = da.layout;
        da = sa;
        da.layout = layout;
    }
    quant_t s, d;
    int s_axis = 0, d_axis = 0;
    MXDNN_CHECK(quant_of("src", src, sa, s, &s_axis));
    MXDNN_CHECK(quant_of("dst", dst, da, d, &d_axis));
    if (s != d || s_axis != d_axis || sa.packing != da.packing)
        return fail(mxdnn_invalid_arguments,
                "scales, blocks or element packing of src and dst differ; %s moves codes and scales as they are, so "
                "they are the same (or left out for dst)",
                primitive);
    if (s_axis != 1)
        return fail(mxdnn_invalid_arguments,
                "the blocks of src run along its rows (groups %lldx%lld); rows move whole, so they run along the "
                "columns (1x%lld)",
                (long long)sa.scales.groups[0], (long long)sa.scales.groups[1], (long long)s.block);
    if (s.zp != zero_point_kind_t::none || s.global != global_scale_kind_t::none)
        return fail(mxdnn_unimplemented,
                "src has %s; %s moves codes and block scales (a global scale stays what it is)",
                s.zp != zero_point_kind_t::none ? "zero points" : "a global scale", primitive);
    if (sa.is_dynamic())
        return fail(
                mxdnn_invalid_arguments, "src has dynamic scales; they are read, so they have to be static");
    da.mode = mxdnn_quantization_mode_dynamic_mx; // written
    return mxdnn_success;
}

// Scales in the 128x4 order have the rows of their side.
status_t check_swizzled_length(const exec_ctx_t &ctx, int arg) {
    const problem_t &p = ctx.pd.problem;
    const arg_attr_t &a = *p.attr.arg(arg);
    if (!a.scales.set || a.layout != mxdnn_scales_swizzle_128x4) return mxdnn_success;
    const memory_desc_t &md = ctx.memory(arg)->md;
    const dim_t want = swizzle_128x4::size(md.dims[0], div_up(md.dims[1], a.scales.groups[1]));
    return expect_length(
            ctx, MXDNN_ARG_ATTR_SCALES | arg, 1, want, "128x4 scales are padded to tiles of the rows");
}

// Linear scales have the rows of their tensor.
status_t check_moved_lengths(const exec_ctx_t &ctx) {
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST}) {
        const arg_attr_t &a = *ctx.pd.problem.attr.arg(arg);
        if (!a.scales.set) continue;
        MXDNN_CHECK(check_swizzled_length(ctx, arg));
        if (a.layout == mxdnn_scales_linear)
            MXDNN_CHECK(expect_length(ctx, MXDNN_ARG_ATTR_SCALES | arg, 0, ctx.memory(arg)->md.dims[0],
                    "scales follow the rows of their tensor"));
    }
    return mxdnn_success;
}

} // namespace

// ---- moe_route ----

status_t prepare_moe_route(problem_t &p) {
    const memory_desc_t &logits = p.src;
    const route_desc_t &r = p.route;
    MXDNN_CHECK(check_matrix("logits", logits));
    if (!is_high_precision(logits.dt))
        return fail(mxdnn_invalid_data_type, "logits are %s; possible are f32 bf16 f16",
                data_type_name(logits.dt));
    const dim_t E = logits.dims[1];
    if (E < 1 || E > max_route_experts)
        return fail(mxdnn_invalid_shape, "logits have %lld columns, one per expert; possible are 1 to %lld",
                (long long)E, (long long)max_route_experts);
    if (r.scoring != mxdnn_route_softmax_topk && r.scoring != mxdnn_route_topk_softmax
            && r.scoring != mxdnn_route_sigmoid)
        return fail(mxdnn_invalid_arguments,
                "the scoring is 0x%x; possible are route_softmax_topk (0x120), route_topk_softmax (0x121) and "
                "route_sigmoid (0x122)",
                unsigned(r.scoring));
    constexpr unsigned known = mxdnn_route_renormalize | mxdnn_route_bias | mxdnn_route_group_max;
    if (r.flags & ~known)
        return fail(mxdnn_invalid_arguments,
                "the flags are 0x%x; known are renormalize (1), bias (2) and group_max (4)", r.flags);
    if (r.expert_groups < 1 || r.expert_groups > E || E % r.expert_groups)
        return fail(mxdnn_invalid_arguments,
                "%lld experts in %lld groups; the groups divide the experts (1: no groups)", (long long)E,
                (long long)r.expert_groups);
    if (r.topk_groups < 1 || r.topk_groups > r.expert_groups)
        return fail(mxdnn_invalid_arguments, "topk_groups is %lld of %lld expert groups; it is 1 to %lld",
                (long long)r.topk_groups, (long long)r.expert_groups, (long long)r.expert_groups);
    const dim_t open = E / r.expert_groups * r.topk_groups;
    if (r.topk < 1 || r.topk > open)
        return fail(mxdnn_invalid_arguments,
                "topk is %lld; %lld experts can be chosen from, so it is 1 to %lld", (long long)r.topk,
                (long long)open, (long long)open);
    if (logits.dims[0] != runtime_dim && logits.dims[0] > max_rows / r.topk)
        return fail(mxdnn_invalid_shape,
                "%lld tokens with %lld experts each are more rows than s32 counts (%lld)",
                (long long)logits.dims[0], (long long)r.topk, (long long)max_rows);
    MXDNN_CHECK(check_offsets_grouping(p, "moe_route"));
    if (!p.attr.src.is_default() || !p.attr.weights.is_default() || !p.attr.dst.is_default())
        return fail(mxdnn_invalid_arguments, "moe_route takes no scales or zero points");
    const auto &ops = p.attr.post_ops.ops;
    const bool scales = ops.size() == 1 && ops[0].kind == mxdnn_eltwise && ops[0].alg == mxdnn_eltwise_linear
                        && ops[0].beta == 0.f && !std::isnan(ops[0].alpha);
    if (!ops.empty() && !scales)
        return fail(mxdnn_invalid_arguments, "moe_route takes one post-op, eltwise_linear with beta 0: the "
                                             "factor that all weights are scaled by");
    return mxdnn_success;
}

void list_args_moe_route(pd_t &pd) {
    const problem_t &p = pd.problem;
    const dim_t T = p.src.dims[0], E = p.src.dims[1], k = p.route.topk, rows = times(T, k);
    const auto in = arg_use_t::input, out = arg_use_t::output;
    add_arg(pd, MXDNN_ARG_SRC, in, p.src, false);
    if (p.route.has_bias()) add_arg(pd, MXDNN_ARG_ROUTE_BIAS, in, plain_desc(mxdnn_f32, {E}), false);
    add_arg(pd, MXDNN_ARG_TOPK_IDS, out, plain_desc(mxdnn_s32, {T, k}));
    add_arg(pd, MXDNN_ARG_TOPK_WEIGHTS, out, plain_desc(mxdnn_f32, {T, k}));
    add_arg(pd, MXDNN_ARG_GROUP_COUNTS, out, plain_desc(mxdnn_s32, {E}));
    add_arg(pd, MXDNN_ARG_GROUP_OFFSETS, out, offsets_desc(p, E));
    add_arg(pd, MXDNN_ARG_ROW_ORDER, out, plain_desc(mxdnn_s32, {rows}));
    add_arg(pd, MXDNN_ARG_GATHER_IDX, out, plain_desc(mxdnn_s32, {rows}));
    add_arg(pd, MXDNN_ARG_ROW_WEIGHTS, out, plain_desc(mxdnn_f32, {rows}));
}

status_t check_runtime_dims_moe_route(const problem_t &p, const exec_ctx_t &ctx) {
    const dim_t T = ctx.memory(MXDNN_ARG_SRC)->md.dims[0], k = p.route.topk;
    if (T > max_rows / k)
        return fail(mxdnn_invalid_arguments,
                "%lld tokens with %lld experts each are more rows than s32 counts (%lld)", (long long)T,
                (long long)k, (long long)max_rows);
    for (int arg : {MXDNN_ARG_TOPK_IDS, MXDNN_ARG_TOPK_WEIGHTS})
        MXDNN_CHECK(expect_length(ctx, arg, 0, T, "it has a row per token"));
    for (int arg : {MXDNN_ARG_ROW_ORDER, MXDNN_ARG_GATHER_IDX, MXDNN_ARG_ROW_WEIGHTS})
        MXDNN_CHECK(expect_length(ctx, arg, 0, T * k, "it has an entry per token and choice"));
    return mxdnn_success;
}

// ---- moe_permute ----

status_t prepare_moe_permute(problem_t &p) {
    const permute_desc_t &d = p.permute;
    MXDNN_CHECK(check_matrix("src", p.src));
    MXDNN_CHECK(check_matrix("dst", p.dst, true));
    if (p.src.dims[1] != p.dst.dims[1])
        return fail(mxdnn_invalid_shape, "src is %s and dst is %s; rows move whole, so the columns are equal",
                dims_text(p.src).c_str(), dims_text(p.dst).c_str());
    for (const memory_desc_t *md : {&p.src, &p.dst})
        if (!is_high_precision(md->dt) && !is_quantised_type(md->dt))
            return fail(mxdnn_invalid_data_type, "%s is %s; possible are f32 bf16 f16 and quantised types",
                    md == &p.src ? "src" : "dst", data_type_name(md->dt));
    if (p.src.dt != p.dst.dt)
        return fail(mxdnn_invalid_data_type, "src is %s and dst is %s; moe_permute moves rows as they are",
                data_type_name(p.src.dt), data_type_name(p.dst.dt));
    constexpr dim_t max_parts = 1 << 24;
    if (d.source_ranks < 1 || d.local_experts < 1
            || d.source_ranks > max_parts / std::min(d.local_experts, max_parts))
        return fail(mxdnn_invalid_arguments,
                "%lld source ranks and %lld local experts; both are at least 1, and their product at most %lld",
                (long long)d.source_ranks, (long long)d.local_experts, (long long)max_parts);
    if (p.dst.kind == mxdnn_format_kind_grouped && p.dst.grouped.group_count != d.local_experts)
        return fail(mxdnn_invalid_shape,
                "dst has %lld groups, but there are %lld local experts; each is a group",
                (long long)p.dst.grouped.group_count, (long long)d.local_experts);
    if (d.alignment < 1 || d.alignment > max_rows / d.local_experts)
        return fail(mxdnn_invalid_arguments,
                "the alignment is %lld; groups of %lld experts are padded to it, so it is 1 to %lld",
                (long long)d.alignment, (long long)d.local_experts, (long long)(max_rows / d.local_experts));
    const dim_t least = d.alignment * d.local_experts;
    if (p.dst.dims[0] != runtime_dim && p.dst.dims[0] < least)
        return fail(mxdnn_invalid_shape,
                "dst has %lld rows; %lld experts own at least one group of %lld rows each, which are %lld",
                (long long)p.dst.dims[0], (long long)d.local_experts, (long long)d.alignment,
                (long long)least);
    if (!p.attr.weights.is_default() || !p.attr.post_ops.ops.empty())
        return fail(mxdnn_invalid_arguments, "moe_permute takes scales of src and dst, and no post-ops");
    MXDNN_CHECK(check_offsets_grouping(p, "moe_permute"));
    if (p.attr.dst.layout == mxdnn_scales_swizzle_128x4 && d.alignment % swizzle_128x4::tile_rows)
        return fail(mxdnn_invalid_arguments,
                "dst has 128x4 scales, whose groups start at tiles of 128 rows, but the alignment is %lld; make it a "
                "multiple of 128",
                (long long)d.alignment);
    return prepare_moved(p, "moe_permute");
}

void list_args_moe_permute(pd_t &pd) {
    const problem_t &p = pd.problem;
    const permute_desc_t &d = p.permute;
    const auto in = arg_use_t::input, out = arg_use_t::output;
    add_arg(pd, MXDNN_ARG_SRC, in, p.src, false);
    list_quant_args(pd, MXDNN_ARG_SRC, p.src, p.attr.src, in);
    add_arg(pd, MXDNN_ARG_GROUP_COUNTS, in, plain_desc(mxdnn_s32, {d.source_ranks, d.local_experts}), false);
    add_arg(pd, MXDNN_ARG_DST, out, p.dst, false);
    list_quant_args(pd, MXDNN_ARG_DST, p.dst, p.attr.dst, out);
    add_arg(pd, MXDNN_ARG_GROUP_OFFSETS, out, offsets_desc(p, d.local_experts));
    add_arg(pd, MXDNN_ARG_PERMUTED_IDX, out, plain_desc(mxdnn_s32, {p.dst.dims[0]}));
}

status_t check_runtime_dims_moe_permute(const problem_t &, const exec_ctx_t &ctx) {
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST})
        if (ctx.memory(arg)->md.dims[0] > max_rows)
            return fail(mxdnn_invalid_arguments,
                    "%s has %lld rows; row numbers are s32, so %lld are possible", arg_name(arg),
                    (long long)ctx.memory(arg)->md.dims[0], (long long)max_rows);
    MXDNN_CHECK(expect_length(ctx, MXDNN_ARG_PERMUTED_IDX, 0, ctx.memory(MXDNN_ARG_DST)->md.dims[0],
            "it has an entry per row of dst"));
    return check_moved_lengths(ctx);
}

// ---- moe_unpermute ----

status_t prepare_moe_unpermute(problem_t &p) {
    MXDNN_CHECK(check_matrix("src", p.src, true));
    MXDNN_CHECK(check_matrix("dst", p.dst));
    if (p.src.dims[1] != p.dst.dims[1])
        return fail(mxdnn_invalid_shape,
                "src is %s and dst is %s; rows go back whole, so the columns are equal",
                dims_text(p.src).c_str(), dims_text(p.dst).c_str());
    for (const memory_desc_t *md : {&p.src, &p.dst})
        if (!is_high_precision(md->dt) && !is_quantised_type(md->dt))
            return fail(mxdnn_invalid_data_type, "%s is %s; possible are f32 bf16 f16 and quantised types",
                    md == &p.src ? "src" : "dst", data_type_name(md->dt));
    if (is_high_precision(p.src.dt) != is_high_precision(p.dst.dt))
        return fail(mxdnn_unimplemented,
                "src is %s and dst is %s; quantised rows go back as they are, others to f32, bf16 or f16",
                data_type_name(p.src.dt), data_type_name(p.dst.dt));
    if (!p.attr.weights.is_default() || !p.attr.post_ops.ops.empty())
        return fail(mxdnn_invalid_arguments, "moe_unpermute takes scales of src and dst, and no post-ops");
    return prepare_moved(p, "moe_unpermute");
}

void list_args_moe_unpermute(pd_t &pd) {
    const problem_t &p = pd.problem;
    const auto in = arg_use_t::input, out = arg_use_t::output;
    add_arg(pd, MXDNN_ARG_SRC, in, p.src, false);
    list_quant_args(pd, MXDNN_ARG_SRC, p.src, p.attr.src, in);
    add_arg(pd, MXDNN_ARG_PERMUTED_IDX, in, plain_desc(mxdnn_s32, {p.src.dims[0]}), false);
    if (is_high_precision(p.src.dt))
        for (const data_type_t dt : {mxdnn_f32, mxdnn_bf16})
            add_arg(pd, MXDNN_ARG_TOPK_WEIGHTS, in, plain_desc(dt, {p.dst.dims[0], runtime_dim}));
    add_arg(pd, MXDNN_ARG_DST, out, p.dst, false);
    list_quant_args(pd, MXDNN_ARG_DST, p.dst, p.attr.dst, out);
}

status_t check_runtime_dims_moe_unpermute(const problem_t &, const exec_ctx_t &ctx) {
    const dim_t rows = ctx.memory(MXDNN_ARG_SRC)->md.dims[0], T = ctx.memory(MXDNN_ARG_DST)->md.dims[0];
    const memory_t *weights = ctx.memory(MXDNN_ARG_TOPK_WEIGHTS);
    const dim_t k = weights ? weights->md.dims[1] : 1;
    constexpr dim_t max_topk = max_route_experts;
    if (k < 1 || k > max_topk)
        return fail(mxdnn_invalid_arguments,
                "TOPK_WEIGHTS have %lld columns, one per choice of a token; possible are 1 to %lld",
                (long long)k, (long long)max_topk);
    if (rows > max_rows || T > max_rows / k)
        return fail(mxdnn_invalid_arguments,
                "%lld rows for %lld tokens with %lld choices each; row numbers are s32, so %lld are possible",
                (long long)rows, (long long)T, (long long)k, (long long)max_rows);
    MXDNN_CHECK(expect_length(ctx, MXDNN_ARG_PERMUTED_IDX, 0, rows, "it has an entry per row of src"));
    MXDNN_CHECK(expect_length(ctx, MXDNN_ARG_TOPK_WEIGHTS, 0, T, "it has a row per row of dst"));
    // An array [T, k] without gaps, because nothing says where its rows begin otherwise.
    if (weights && T > 1 && k > 1 && (weights->md.strides[0] != k || weights->md.strides[1] != 1))
        return fail(mxdnn_invalid_arguments,
                "TOPK_WEIGHTS have strides %lldx%lld; they have to lie row by row, %lldx1",
                (long long)weights->md.strides[0], (long long)weights->md.strides[1], (long long)k);
    return check_moved_lengths(ctx);
}

std::string moe_words(const problem_t &p) {
    const auto word = [](const char *name, dim_t v) {
        return std::string(" ") + name + ":" + std::to_string(v);
    };
    switch (p.kind) {
    case mxdnn_primitive_kind_moe_route: {
        std::string s = word("topk", p.route.topk) + " scoring:" + alg_name(p.route.scoring);
        constexpr struct {
            unsigned bit;
            const char *name;
        } flags[] = {{mxdnn_route_renormalize, "renormalize"}, {mxdnn_route_bias, "bias"},
                {mxdnn_route_group_max, "group_max"}};
        const char *sep = " flags:";
        for (const auto &f : flags)
            if (p.route.flags & f.bit) s += sep + std::string(f.name), sep = "+";
        if (p.route.expert_groups > 1)
            s += word("groups", p.route.expert_groups) + ":" + std::to_string(p.route.topk_groups);
        return s;
    }
    case mxdnn_primitive_kind_moe_permute:
        return word("ranks", p.permute.source_ranks) + word("experts", p.permute.local_experts)
               + word("align", p.permute.alignment);
    default: return "";
    }
}

} // namespace impl
} // namespace mxdnn
