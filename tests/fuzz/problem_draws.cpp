// SPDX-License-Identifier: Apache-2.0
#include "fuzz/problem_draws.hpp"

#include "fuzz/draw_parts.hpp"
#include "fuzz/fuzz.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

// Those with most code are drawn most often.
constexpr struct {
    mxdnn_primitive_kind_t kind;
    int weight;
    bool (*draw)(choices_t &, drawn_t &);
} kinds[] = {
        {mxdnn_primitive_kind_mx_matmul, 5, draw_mx_matmul},
        {mxdnn_primitive_kind_mx_reorder, 5, draw_mx_reorder},
        {mxdnn_primitive_kind_grouped_matmul, 5, draw_grouped_matmul},
        {mxdnn_primitive_kind_grouped_matmul_backward_weights, 3, draw_backward_weights},
        {mxdnn_primitive_kind_moe_route, 1, draw_moe_route},
        {mxdnn_primitive_kind_moe_permute, 1, draw_moe_permute},
        {mxdnn_primitive_kind_moe_unpermute, 1, draw_moe_unpermute},
};

} // namespace

bool draw_problem(choices_t &c, drawn_t &d) {
    int all = 0;
    for (const auto &k : kinds) all += k.weight;
    int64_t at = c.below(all);
    const auto *k = kinds;
    while (at >= k->weight) at -= k++->weight;
    d.p.kind = k->kind;
    return k->draw(c, d);
}

problem_t with_runtime_dims(choices_t &c, const problem_t &p) {
    problem_t r = p;
    if (!c.one_in(3)) return r;
    const bool all = c.one_in(4), batch = c.one_in(3), strides = c.one_in(3);
    const auto forget = [&](memory_desc_t &md, int except) {
        if (md.kind == mxdnn_format_kind_grouped) md.dims[0] = runtime_dim;
        if (!is_strided(md)) return;
        for (int d = 0; d < md.ndims; d++)
            if (d != except && (all || d == md.ndims - 2 || (batch && d < md.ndims - 2))) {
                md.dims[d] = runtime_dim;
                if (d > 0 && md.strides[d - 1] != 1 && md.strides[d - 1] != 0)
                    md.strides[d - 1] = runtime_dim;
            }
        for (int d = 0; strides && d < md.ndims; d++)
            if (md.strides[d] != 1) md.strides[d] = runtime_dim;
    };
    const bool columns_too = p.kind == mxdnn_primitive_kind_mx_reorder;
    forget(r.src, columns_too ? -1 : r.src.ndims - 1);
    forget(r.dst, columns_too ? -1 : r.dst.ndims - 1);
    forget(r.diff_dst, r.diff_dst.ndims - 1);
    if (c.one_in(10))
        for (post_op_t &o : r.attr.post_ops.ops)
            if (o.kind == mxdnn_binary) forget(o.src1, o.src1.ndims - 1);
    return r;
}

mxdnn_primitive_desc_t create_descriptor(const problem_t &p) {
    const auto e = const_cast<mxdnn_engine_t>(p.engine);
    mxdnn_primitive_desc_t pd = nullptr;
    mxdnn_status_t s = mxdnn_success;
    switch (p.kind) {
    case mxdnn_primitive_kind_mx_matmul:
        s = mxdnn_mx_matmul_primitive_desc_create(
                &pd, e, &p.src, &p.weights, is_zero(p.bias) ? nullptr : &p.bias, &p.dst, &p.attr);
        break;
    case mxdnn_primitive_kind_mx_reorder: {
        const auto from = const_cast<mxdnn_engine_t>(p.src_engine);
        s = is_zero(p.dst_1) ? mxdnn_mx_reorder_primitive_desc_create(&pd, &p.src, from, &p.dst, e, &p.attr)
                             : mxdnn_mx_reorder_primitive_desc_create_with_dst_1(
                                     &pd, &p.src, from, &p.dst, &p.dst_1, e, &p.attr);
        break;
    }
    case mxdnn_primitive_kind_grouped_matmul:
        s = mxdnn_grouped_matmul_primitive_desc_create(
                &pd, e, &p.src, &p.weights, is_zero(p.bias) ? nullptr : &p.bias, &p.dst, &p.attr);
        break;
    case mxdnn_primitive_kind_grouped_matmul_backward_weights:
        s = mxdnn_grouped_matmul_backward_weights_primitive_desc_create(
                &pd, e, &p.src, &p.diff_dst, &p.diff_weights, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_route:
        s = mxdnn_moe_route_primitive_desc_create(&pd, e, &p.src, p.route.topk, p.route.scoring,
                p.route.flags, p.route.expert_groups, p.route.topk_groups, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_permute:
        s = mxdnn_moe_permute_primitive_desc_create(&pd, e, &p.src, &p.dst, p.permute.source_ranks,
                p.permute.local_experts, p.permute.alignment, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_unpermute:
        s = mxdnn_moe_unpermute_primitive_desc_create(&pd, e, &p.src, &p.dst, &p.attr);
        break;
    default: FUZZ_CHECK(!"a kind of primitive"); break;
    }
    FUZZ_CHECK((s == mxdnn_success) == (pd != nullptr));
    FUZZ_CHECK(pd || mxdnn_get_last_error()[0]);
    return pd;
}

} // namespace fuzz
