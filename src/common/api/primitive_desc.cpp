// SPDX-License-Identifier: Apache-2.0
#include "common/primitive_desc.hpp"
#include "common/api/api.hpp"

using namespace mxdnn::impl;

namespace {

// The descriptors of a problem, in the order in which the API passes them.
struct problem_args_t {
    const_mxdnn_memory_desc_t src, weights, bias, dst, dst_1 = nullptr, diff_dst = nullptr,
                                                       diff_weights = nullptr;
};

status_t create(mxdnn_primitive_desc_t *pd, mxdnn_primitive_kind_t kind, mxdnn_engine_t engine,
        mxdnn_engine_t src_engine, const problem_args_t &mds, const_mxdnn_primitive_attr_t attr,
        const char *function, const route_desc_t &route = {}, const permute_desc_t &permute = {}) {
    MXDNN_CHECK(check_not_null(pd, function, "pd"));
    MXDNN_CHECK(check_not_null(engine, function, "engine"));
    return guarded(function, [&] {
        problem_t p;
        p.kind = kind;
        p.engine = engine;
        p.src_engine = src_engine;
        if (mds.src) p.src = *mds.src;
        if (mds.weights) p.weights = *mds.weights;
        if (mds.bias) p.bias = *mds.bias;
        if (mds.dst) p.dst = *mds.dst;
        if (mds.dst_1) p.dst_1 = *mds.dst_1;
        if (mds.diff_dst) p.diff_dst = *mds.diff_dst;
        if (mds.diff_weights) p.diff_weights = *mds.diff_weights;
        if (attr) p.attr = *attr;
        p.route = route;
        p.permute = permute;
        std::unique_ptr<primitive_desc_t> d;
        MXDNN_CHECK(create_primitive_desc(d, std::move(p)));
        *pd = d.release();
        return mxdnn_success;
    });
}

} // namespace

mxdnn_status_t mxdnn_mx_reorder_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(src_engine);
    MXDNN_CHECK_ARG(dst_md);
    MXDNN_CHECK_ARG(dst_engine);
    return create(pd, mxdnn_primitive_kind_mx_reorder, dst_engine, src_engine,
            {src_md, nullptr, nullptr, dst_md}, attr, __func__);
}

mxdnn_status_t mxdnn_mx_reorder_primitive_desc_create_with_dst_1(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_memory_desc_t dst_1_md, mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(src_engine);
    MXDNN_CHECK_ARG(dst_md);
    MXDNN_CHECK_ARG(dst_1_md);
    MXDNN_CHECK_ARG(dst_engine);
    return create(pd, mxdnn_primitive_kind_mx_reorder, dst_engine, src_engine,
            {src_md, nullptr, nullptr, dst_md, dst_1_md}, attr, __func__);
}

mxdnn_status_t mxdnn_mx_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine,
        const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(weights_md);
    MXDNN_CHECK_ARG(dst_md);
    return create(pd, mxdnn_primitive_kind_mx_matmul, engine, nullptr, {src_md, weights_md, bias_md, dst_md},
            attr, __func__);
}

mxdnn_status_t mxdnn_grouped_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine,
        const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(weights_md);
    MXDNN_CHECK_ARG(dst_md);
    return create(pd, mxdnn_primitive_kind_grouped_matmul, engine, nullptr,
            {src_md, weights_md, bias_md, dst_md}, attr, __func__);
}

mxdnn_status_t mxdnn_grouped_matmul_backward_weights_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t diff_dst_md,
        const_mxdnn_memory_desc_t diff_weights_md, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(diff_dst_md);
    MXDNN_CHECK_ARG(diff_weights_md);
    return create(pd, mxdnn_primitive_kind_grouped_matmul_backward_weights, engine, nullptr,
            {src_md, nullptr, nullptr, nullptr, nullptr, diff_dst_md, diff_weights_md}, attr, __func__);
}

mxdnn_status_t mxdnn_moe_route_primitive_desc_create(mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine,
        const_mxdnn_memory_desc_t logits_md, mxdnn_dim_t topk, mxdnn_alg_kind_t scoring, unsigned flags,
        mxdnn_dim_t expert_groups, mxdnn_dim_t topk_groups, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(logits_md);
    return create(pd, mxdnn_primitive_kind_moe_route, engine, nullptr, {logits_md, nullptr, nullptr, nullptr},
            attr, __func__, {topk, scoring, flags, expert_groups, topk_groups});
}

mxdnn_status_t mxdnn_moe_permute_primitive_desc_create(mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine,
        const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md, mxdnn_dim_t source_ranks,
        mxdnn_dim_t local_experts, mxdnn_dim_t alignment, const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(dst_md);
    return create(pd, mxdnn_primitive_kind_moe_permute, engine, nullptr, {src_md, nullptr, nullptr, dst_md},
            attr, __func__, {}, {source_ranks, local_experts, alignment});
}

mxdnn_status_t mxdnn_moe_unpermute_primitive_desc_create(mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine,
        const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr) {
    MXDNN_CHECK_ARG(src_md);
    MXDNN_CHECK_ARG(dst_md);
    return create(pd, mxdnn_primitive_kind_moe_unpermute, engine, nullptr, {src_md, nullptr, nullptr, dst_md},
            attr, __func__);
}

mxdnn_status_t mxdnn_primitive_desc_next_impl(mxdnn_primitive_desc_t pd) {
    MXDNN_CHECK_ARG(pd);
    return guarded(__func__, [&] {
        const status_t status = pd->advance(pd->index + 1);
        return status == mxdnn_last_impl_reached
                       ? fail(status, "%s is the last implementation that takes the problem", pd->pd->name())
                       : status;
    });
}

mxdnn_status_t mxdnn_primitive_desc_clone(mxdnn_primitive_desc_t *pd, const_mxdnn_primitive_desc_t existing) {
    MXDNN_CHECK_ARG(pd);
    MXDNN_CHECK_ARG(existing);
    return guarded(__func__, [&] {
        *pd = new primitive_desc_t(*existing);
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_primitive_desc_get_attr(
        const_mxdnn_primitive_desc_t pd, const_mxdnn_primitive_attr_t *attr) {
    MXDNN_CHECK_ARG(pd);
    MXDNN_CHECK_ARG(attr);
    *attr = &pd->problem->attr;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_primitive_desc_query(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index, void *result) {
    MXDNN_CHECK_ARG(pd);
    MXDNN_CHECK_ARG(result);
    return guarded(__func__, [&] { return query(*pd, what, index, result); });
}

const_mxdnn_memory_desc_t mxdnn_primitive_desc_query_md(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index) {
    return pd ? query_md(*pd, what, index) : nullptr;
}

mxdnn_status_t mxdnn_primitive_desc_destroy(mxdnn_primitive_desc_t pd) {
    delete pd;
    return mxdnn_success;
}
