// SPDX-License-Identifier: Apache-2.0
// grouped_matmul: what makes a legal problem, and the arguments that it takes.
#include "common/backend.hpp"
#include "common/error.hpp"
#include "common/packed_desc.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

// A limit, because every execution visits each expert, with weights or not.
constexpr dim_t max_experts = 1 << 20;

status_t check_operand(const char *name, const memory_desc_t &md, mxdnn_row_grouping_t grouping) {
    MXDNN_CHECK(check_grouped_rows(name, md, grouping));
    if (md.dims[md.ndims - 1] == runtime_dim)
        return fail(mxdnn_unimplemented, "the columns of %s are a runtime dim; only rows may be", name);
    return mxdnn_success;
}

status_t check_pair(const memory_desc_t &src, const memory_desc_t &dst) {
    const auto grouped = [](const memory_desc_t &md) { return md.kind == mxdnn_format_kind_grouped; };
    if (grouped(src) && grouped(dst) && src.grouped.group_count != dst.grouped.group_count)
        return fail(mxdnn_invalid_shape, "src has %lld groups and dst %lld; rows keep their group",
                (long long)src.grouped.group_count, (long long)dst.grouped.group_count);
    for (int i = 0; src.ndims == 3 && dst.ndims == 3 && i < 2; i++)
        if (!dims_agree(src.dims[i], dst.dims[i]))
            return fail(mxdnn_invalid_shape,
                    "src is %s and dst is %s; padded groups have the same rows in both",
                    dims_text(src).c_str(), dims_text(dst).c_str());
    return mxdnn_success;
}

status_t check_grouped_post_ops(const problem_t &p) {
    const auto &ops = p.attr.post_ops.ops;
    for (size_t i = 0; i < ops.size(); i++) {
        if (ops[i].kind == mxdnn_binary)
            return fail(mxdnn_unimplemented,
                    "post-op %zu is binary; grouped_matmul takes eltwise, one gated and, last, sum", i);
        if (ops[i].kind != mxdnn_sum) continue;
        if (i + 1 != ops.size())
            return fail(mxdnn_unimplemented,
                    "sum is post-op %zu of %zu; a row of dst may be the sum of several results, so here it is the last",
                    i, ops.size());
        MXDNN_CHECK(check_sum("dst", p.dst, ops[i]));
    }
    return mxdnn_success;
}

} // namespace

status_t prepare_grouped_matmul(problem_t &p) {
    const memory_desc_t &src = p.src, &wei = p.weights, &dst = p.dst;
    MXDNN_CHECK(check_operand("src", src, p.attr.row_grouping));
    MXDNN_CHECK(check_operand("dst", dst, p.attr.row_grouping));
    MXDNN_CHECK(check_pair(src, dst));
    if (wei.ndims != 3 || has_runtime_dims(wei))
        return fail(mxdnn_invalid_shape, "weights are %s; they are [experts, K, N] with known dims",
                dims_text(wei).c_str());
    const dim_t E = wei.dims[0], K = wei.dims[1], N = wei.dims[2];
    if (E > max_experts)
        return fail(mxdnn_invalid_shape, "weights have %lld experts; possible are up to %lld", (long long)E,
                (long long)max_experts);
    if (dim_from_end(src, 1) != K)
        return fail(mxdnn_invalid_shape,
                "src is %s and weights are %s: K is %lld in src and %lld in weights%s",
                dims_text(src).c_str(), dims_text(wei).c_str(), (long long)dim_from_end(src, 1), (long long)K,
                hint_of_k_and_n(dim_from_end(src, 1), wei));
    const bool gated = p.attr.gated() != nullptr;
    if (gated && N % 2)
        return fail(mxdnn_invalid_shape, "a gated activation halves N, but N is %lld; it has to be even",
                (long long)N);
    if (dim_from_end(dst, 1) != (gated ? N / 2 : N))
        return fail(mxdnn_invalid_shape, "weights are %s%s, so dst has %lld columns; it is %s",
                dims_text(wei).c_str(), gated ? " with a gated activation" : "",
                (long long)(gated ? N / 2 : N), dims_text(dst).c_str());
    if (!is_zero(p.bias)) {
        MXDNN_CHECK(check_plain("bias", p.bias));
        if (!is_high_precision(p.bias.dt))
            return fail(mxdnn_invalid_data_type, "bias is %s; possible are f32 bf16 f16",
                    data_type_name(p.bias.dt));
        if (p.bias.ndims != 2 || p.bias.dims[0] != E || p.bias.dims[1] != N)
            return fail(mxdnn_invalid_shape, "bias is %s; weights are %s, so it is [experts, N], %lldx%lld",
                    dims_text(p.bias).c_str(), dims_text(wei).c_str(), (long long)E, (long long)N);
    }
    if (p.attr.global_experts && p.attr.first_expert + E > p.attr.global_experts)
        return fail(mxdnn_invalid_arguments,
                "the range of experts starts at %lld of %lld, but the weights have %lld; they end beyond the last one",
                (long long)p.attr.first_expert, (long long)p.attr.global_experts, (long long)E);
    const bool any = is_any(wei);
    MXDNN_CHECK(resolve_weights(p));
    MXDNN_CHECK(check_src(p));
    MXDNN_CHECK(check_dst(p));
    if (any) {
        if (const layout_t *layout = find_backend(p.engine->kind())->layout_for(p)) {
            const memory_desc_t own = p.weights;
            MXDNN_CHECK(init_packed_as(p.weights, own.ndims, own.dims, own.dt, own.packed.quant, *layout));
            p.weights.annotation = own.annotation;
        }
    }
    return check_grouped_post_ops(p);
}

namespace {

// Scales of source or destination. For a tensor of 2 dims the groups decide how long 128x4 scales are. There
// is one global scale, or one per expert.
void list_rows_quant_args(pd_t &pd, int arg, const memory_desc_t &md, const arg_attr_t &a, arg_use_t use) {
    const size_t before = pd.args.size();
    list_quant_args(pd, arg, md, a, use);
    for (size_t i = before; i < pd.args.size(); i++) {
        arg_desc_t &d = pd.args[i];
        if (d.arg == (MXDNN_ARG_ATTR_SCALES | arg) && a.layout == mxdnn_scales_swizzle_128x4 && md.ndims == 2)
            d.md = plain_desc(d.md.dt, {1, runtime_dim});
        if (d.arg == (MXDNN_ARG_ATTR_GLOBAL_SCALE | arg)) d.md = plain_desc(mxdnn_f32, {runtime_dim});
    }
}

} // namespace

void list_grouped_matmul_args(pd_t &pd) {
    const problem_t &p = pd.problem;
    const dim_t E = p.weights.dims[0];
    const auto input = [&](int arg, const memory_desc_t &md, bool optional) {
        const arg_attr_t *a = p.attr.arg(arg);
        pd.args.push_back(
                {arg, arg_use_t::input, md, false, optional, a ? a->packing : mxdnn_element_packing_bytes});
    };
    const auto indices = [&](int arg, dim_t length, bool optional) {
        input(arg, plain_desc(mxdnn_s32, {length}), optional);
    };
    input(MXDNN_ARG_SRC, p.src, false);
    list_rows_quant_args(pd, MXDNN_ARG_SRC, p.src, p.attr.src, arg_use_t::input);
    input(MXDNN_ARG_WEIGHTS, p.weights, is_packed(p.weights));
    list_quant_args(pd, MXDNN_ARG_WEIGHTS, p.weights, p.attr.weights, arg_use_t::input);
    if (is_packed(p.weights)) input(MXDNN_ARG_WEIGHTS_PTRS, plain_desc(mxdnn_u64, {E}), true);
    if (!is_zero(p.bias)) input(MXDNN_ARG_BIAS, p.bias, false);
    pd.args.push_back({MXDNN_ARG_DST, arg_use_t::output, p.dst, false, false, p.attr.dst.packing});
    list_rows_quant_args(pd, MXDNN_ARG_DST, p.dst, p.attr.dst, arg_use_t::output);

    dim_t groups = runtime_dim;
    for (const memory_desc_t *md : {&p.src, &p.dst})
        if (md->kind == mxdnn_format_kind_grouped)
            groups = md->grouped.group_count;
        else if (md->ndims == 3 && md->dims[0] != runtime_dim)
            groups = md->dims[0];
    const mxdnn_row_grouping_t grouping = p.attr.row_grouping;
    if (grouping == mxdnn_row_grouping_row_ids) {
        indices(MXDNN_ARG_ROW_EXPERT_IDS, runtime_dim, false);
    } else {
        const bool starts = grouping == mxdnn_row_grouping_starts;
        indices(grouping == mxdnn_row_grouping_padded ? MXDNN_ARG_GROUP_COUNTS : MXDNN_ARG_GROUP_OFFSETS,
                groups == runtime_dim ? groups : groups + starts, false);
        indices(MXDNN_ARG_GROUP_EXPERT_IDS, groups, true);
    }
    if (p.attr.global_experts == 0) indices(MXDNN_ARG_EXPERT_MAP, runtime_dim, true);
    indices(MXDNN_ARG_GATHER_IDX, runtime_dim, true);
    indices(MXDNN_ARG_SCATTER_IDX, runtime_dim, true);
    for (const data_type_t dt : {mxdnn_f32, mxdnn_bf16})
        input(MXDNN_ARG_TOPK_WEIGHTS, plain_desc(dt, {runtime_dim}), true);
    input(MXDNN_ARG_EXPERT_ALPHA, plain_desc(mxdnn_f32, {E}), true);
    if (p.attr.gated()) {
        input(MXDNN_ARG_ACTIVATION_PARAMS, plain_desc(mxdnn_f32, {3}), true);
        input(MXDNN_ARG_ACTIVATION_PARAMS, plain_desc(mxdnn_f32, {E, 3}), true);
    }
}

} // namespace impl
} // namespace mxdnn
