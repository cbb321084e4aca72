// SPDX-License-Identifier: Apache-2.0
#include "common/grouped_exec.hpp"

#include "common/formats/bf16.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

int64_t rows_of(const memory_desc_t &md) {
    int64_t rows = 1;
    for (int i = 0; i < md.ndims - 1; i++) rows *= md.dims[i];
    return rows;
}

int bounds_arg(mxdnn_row_grouping_t grouping) {
    switch (grouping) {
    case mxdnn_row_grouping_padded: return MXDNN_ARG_GROUP_COUNTS;
    case mxdnn_row_grouping_row_ids: return MXDNN_ARG_ROW_EXPERT_IDS;
    default: return MXDNN_ARG_GROUP_OFFSETS;
    }
}

// An argument that is passed without elements has no address, but counts as passed.
template <typename T>
const T *passed(const exec_ctx_t &ctx, int arg) {
    static const T nothing{};
    const memory_t *m = ctx.memory(arg);
    return !m ? nullptr : m->handle ? static_cast<const T *>(m->handle) : &nothing;
}

dim_t length_of(const exec_ctx_t &ctx, int arg, dim_t otherwise) {
    const memory_t *m = ctx.memory(arg);
    return m ? m->md.dims[0] : otherwise;
}

} // namespace

grouped_exec_t::grouped_exec_t(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    src_rows = rows_of(ctx.memory(MXDNN_ARG_SRC)->md);
    dst_rows = rows_of(ctx.memory(MXDNN_ARG_DST)->md);
    gather = passed<int32_t>(ctx, MXDNN_ARG_GATHER_IDX);
    scatter = passed<int32_t>(ctx, MXDNN_ARG_SCATTER_IDX);
    if (const memory_t *m = ctx.memory(MXDNN_ARG_TOPK_WEIGHTS)) {
        topk = passed<float>(ctx, MXDNN_ARG_TOPK_WEIGHTS);
        topk_dt = m->md.dt;
    }
    expert_alpha = passed<float>(ctx, MXDNN_ARG_EXPERT_ALPHA);
    if (const memory_t *m = ctx.memory(MXDNN_ARG_ACTIVATION_PARAMS)) {
        activation_params = passed<float>(ctx, MXDNN_ARG_ACTIVATION_PARAMS);
        activation_stride = m->md.ndims == 2 ? 3 : 0;
    }
    weights_ptrs = passed<uint64_t>(ctx, MXDNN_ARG_WEIGHTS_PTRS);

    groups.grouping = p.attr.row_grouping;
    groups.rows = length_of(ctx, MXDNN_ARG_GATHER_IDX, src_rows);
    const int arg = bounds_arg(groups.grouping);
    groups.bounds = passed<int32_t>(ctx, arg);
    groups.groups = length_of(ctx, arg, 0) - (groups.grouping == mxdnn_row_grouping_starts);
    groups.group_ids = passed<int32_t>(ctx, MXDNN_ARG_GROUP_EXPERT_IDS);
    groups.map = passed<int32_t>(ctx, MXDNN_ARG_EXPERT_MAP);
    groups.experts = p.weights.dims[0];
    groups.ids = p.attr.global_experts ? p.attr.global_experts
                                       : length_of(ctx, MXDNN_ARG_EXPERT_MAP, groups.experts);
    groups.first_id = p.attr.first_expert;
}

float grouped_exec_t::topk_weight(int64_t row) const {
    if (!topk) return 1.f;
    return topk_dt == mxdnn_f32 ? static_cast<const float *>(topk)[row]
                                : bf16_t::decode(static_cast<const uint16_t *>(topk)[row]);
}

activation_params_t grouped_exec_t::params(int expert, const post_op_t &gated) const {
    if (!activation_params) return {gated.alpha, 1.f, gated.beta};
    const float *v = activation_params + activation_stride * expert;
    return {v[0], v[1], v[2]};
}

bool swizzled_by_group(const grouped_exec_t &x, bool of_src) {
    return x.groups.grouping != mxdnn_row_grouping_row_ids && !(of_src ? x.gather : x.scatter);
}

namespace {

// All tensors with one entry per grouped row have the same length.
status_t check_rows(const exec_ctx_t &ctx, const grouped_exec_t &x) {
    const int64_t rows = x.groups.rows;
    if (rows > INT32_MAX)
        return fail(mxdnn_invalid_arguments, "there are %lld grouped rows; offsets of type s32 reach %d",
                (long long)rows, INT32_MAX);
    const char *by = x.gather ? "GATHER_IDX" : "src";
    const auto agree = [&](const char *name, int64_t n) {
        return n == rows ? mxdnn_success
                         : fail(mxdnn_invalid_arguments,
                                 "%s has %lld rows and %s %lld; grouped rows are as many in both", name,
                                 (long long)n, by, (long long)rows);
    };
    if (!x.scatter) MXDNN_CHECK(agree("dst", x.dst_rows));
    for (int arg : {MXDNN_ARG_SCATTER_IDX, MXDNN_ARG_TOPK_WEIGHTS, MXDNN_ARG_ROW_EXPERT_IDS})
        if (const memory_t *m = ctx.memory(arg)) MXDNN_CHECK(agree(arg_name(arg), m->md.dims[0]));
    for (const bool of_src : {true, false}) {
        const memory_desc_t &md = ctx.memory(of_src ? MXDNN_ARG_SRC : MXDNN_ARG_DST)->md;
        if (md.ndims == 3 && (of_src ? x.gather : x.scatter))
            return fail(mxdnn_invalid_arguments,
                    "%s is passed, but %s is a padded tensor of 3 dims; rows are taken by index from one of 2",
                    of_src ? "GATHER_IDX" : "SCATTER_IDX", of_src ? "src" : "dst");
        if (md.ndims == 3 && md.dims[0] != x.groups.groups)
            return fail(mxdnn_invalid_arguments, "%s has %lld groups and GROUP_COUNTS %lld",
                    of_src ? "src" : "dst", (long long)md.dims[0], (long long)x.groups.groups);
    }
    return mxdnn_success;
}

status_t check_group_count(const exec_ctx_t &ctx, const grouped_exec_t &x) {
    const row_groups_t &g = x.groups;
    if (g.grouping == mxdnn_row_grouping_row_ids) return mxdnn_success;
    if (g.groups < 0)
        return fail(mxdnn_invalid_arguments,
                "GROUP_OFFSETS is empty; the starts of no group are still one number");
    if (g.grouping == mxdnn_row_grouping_padded && (g.groups ? g.rows % g.groups : g.rows) != 0)
        return fail(mxdnn_invalid_arguments, "%lld rows do not divide into the %lld groups of GROUP_COUNTS",
                (long long)g.rows, (long long)g.groups);
    if (const memory_t *ids = ctx.memory(MXDNN_ARG_GROUP_EXPERT_IDS)) {
        if (ids->md.dims[0] != g.groups)
            return fail(mxdnn_invalid_arguments, "GROUP_EXPERT_IDS has %lld entries for %lld groups",
                    (long long)ids->md.dims[0], (long long)g.groups);
    } else if (g.groups > g.ids) {
        return fail(mxdnn_invalid_arguments,
                "there are %lld groups, and group g is expert g, but ids end at %lld; pass GROUP_EXPERT_IDS",
                (long long)g.groups, (long long)g.ids);
    }
    return mxdnn_success;
}

// Scales have the rows of their tensor. There is one global scale, or one per expert.
status_t check_scales(const exec_ctx_t &ctx, const grouped_exec_t &x, bool of_src) {
    const problem_t &p = ctx.pd.problem;
    const int arg = of_src ? MXDNN_ARG_SRC : MXDNN_ARG_DST;
    const arg_attr_t &attr = of_src ? p.attr.src : p.attr.dst;
    const memory_desc_t &md = ctx.memory(arg)->md;
    const memory_t *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
    if (!scales) return mxdnn_success;
    if (const memory_t *zero_points = ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | arg))
        MXDNN_CHECK(check_params_follow(MXDNN_ARG_ATTR_ZERO_POINTS | arg, zero_points->md, md, attr));
    if (attr.layout == mxdnn_scales_linear || md.ndims == 3) {
        MXDNN_CHECK(check_params_follow(MXDNN_ARG_ATTR_SCALES | arg, scales->md, md, attr));
    } else if (p.engine->kind() == mxdnn_cpu) {
        const int64_t rows =
                swizzled_by_group(x, of_src) ? x.groups.swizzled_rows_before(x.groups.groups) : md.dims[0];
        const int64_t need = swizzle_128x4::size(rows, div_up(md.dims[1], attr.scales.groups[1]));
        if (scales->md.dims[1] < need)
            return fail(mxdnn_invalid_arguments,
                    "%s have %lld bytes; these groups need %lld in the 128x4 order",
                    arg_name(MXDNN_ARG_ATTR_SCALES | arg), (long long)scales->md.dims[1], (long long)need);
    }
    if (const memory_t *global = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg)) {
        const dim_t n = global->md.dims[0];
        if (n != 1 && n != x.groups.experts)
            return fail(mxdnn_invalid_arguments, "%s has %lld entries; it is one, or one per expert (%lld)",
                    arg_name(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg), (long long)n, (long long)x.groups.experts);
        if (n != 1 && !of_src && x.scatter)
            return fail(mxdnn_invalid_arguments,
                    "%s has one entry per expert, but SCATTER_IDX sums rows of several; it has one",
                    arg_name(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg));
    }
    return mxdnn_success;
}

// Checks indices and pointers of rows that are computed. Others may have any value.
status_t check_row_data(const grouped_exec_t &x) {
    for (int64_t i = 0; i < x.groups.groups; i++) {
        const row_group_t g = x.groups.group(i);
        if (g.expert < 0 || g.count == 0) continue;
        for (int64_t r = g.first; (x.gather || x.scatter) && r < g.first + g.count; r++) {
            if (x.gather && (x.gather[r] < -1 || x.gather[r] >= x.src_rows))
                return fail(mxdnn_invalid_arguments,
                        "GATHER_IDX[%lld] is %d; indices are -1 (a row of zeros) and 0 to %lld, the rows of src",
                        (long long)r, x.gather[r], (long long)(x.src_rows - 1));
            if (x.scatter && (x.scatter[r] < -1 || x.scatter[r] >= x.dst_rows))
                return fail(mxdnn_invalid_arguments,
                        "SCATTER_IDX[%lld] is %d; indices are -1 (drop) and 0 to %lld, the rows of dst",
                        (long long)r, x.scatter[r], (long long)(x.dst_rows - 1));
        }
        if (x.weights_ptrs && (x.weights_ptrs[g.expert] == 0 || x.weights_ptrs[g.expert] % 16 != 0))
            return fail(mxdnn_invalid_arguments,
                    "WEIGHTS_PTRS[%d] is 0x%llx, and its expert has rows; packed bytes are at a 16-byte "
                    "aligned address",
                    g.expert, (unsigned long long)x.weights_ptrs[g.expert]);
    }
    return mxdnn_success;
}

} // namespace

status_t check_grouped_exec(const problem_t &p, const exec_ctx_t &ctx) {
    const bool one = ctx.memory(MXDNN_ARG_WEIGHTS) != nullptr,
               table = ctx.memory(MXDNN_ARG_WEIGHTS_PTRS) != nullptr;
    if (one == table)
        return fail(mxdnn_invalid_arguments, "%s; pass one of the two",
                one ? "both weights and WEIGHTS_PTRS are passed"
                    : "neither weights nor WEIGHTS_PTRS is passed");
    const grouped_exec_t x(ctx);
    MXDNN_CHECK(check_rows(ctx, x));
    MXDNN_CHECK(check_group_count(ctx, x));
    const bool on_host = p.engine->kind() == mxdnn_cpu;
    if (on_host) MXDNN_CHECK(x.groups.check());
    for (const bool of_src : {true, false}) MXDNN_CHECK(check_scales(ctx, x, of_src));
    return on_host ? check_row_data(x) : mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
