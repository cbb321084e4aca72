// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

#include <algorithm>
#include <numeric>

#include "common/packed_desc.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

constexpr mxdnn_alg_kind_t scorings[] = {
        mxdnn_route_softmax_topk, mxdnn_route_topk_softmax, mxdnn_route_sigmoid};

// Rows that move as they are, or are added up in high precision.
bool draw_moved(
        choices_t &c, drawn_t &d, dim_t src_rows, dim_t dst_rows, dim_t columns, bool sums, dim_t groups) {
    problem_t &p = d.p;
    shape_t src, dst;
    src.add(src_rows), src.add(columns);
    dst.add(dst_rows), dst.add(columns);
    if (c.one_in(2)) draw_modes(c, p.attr);
    data_type_t src_dt = c.of(high_precision), dst_dt = sums ? c.of(high_precision) : src_dt;
    if (c.one_in(2)) {
        const format_t &f = c.one_in(6) ? c.of(row_formats) : c.of(formats);
        src_dt = dst_dt = f.dt;
        set_format(c, p.attr, MXDNN_ARG_SRC, f, 2, 1, false, true);
        if (c.one_in(2)) {
            p.attr.dst = p.attr.src;
            if (c.one_in(2)) p.attr.dst.layout = mxdnn_scales_layout_t(c.below(2));
        } else if (f.scale_dt == mxdnn_e8m0 && c.one_in(2)) {
            p.attr.dst.layout = mxdnn_scales_swizzle_128x4;
        }
    }
    if (!draw_plain(c, p.src, src, src_dt) || !draw_plain(c, p.dst, dst, dst_dt)) return false;
    if (groups > 0 && c.one_in(4)) {
        memory_desc_t &md = sums ? p.src : p.dst;
        const shape_t &s = sums ? src : dst;
        return init_grouped(md, 2, s.at, md.dt, 0, groups, mxdnn_s32) == mxdnn_success;
    }
    return true;
}

} // namespace

bool draw_moe_route(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    shape_t s;
    const dim_t T = dims.length(70), E = dims.length(300);
    s.add(T), s.add(E);
    route_desc_t &r = p.route;
    r.scoring = c.one_in(40) ? mxdnn_alg_kind_undef : c.of(scorings);
    r.flags = unsigned(c.below(c.one_in(30) ? 16 : 8));
    r.expert_groups = c.one_in(2) ? 1 : c.of({2, 3, 4, 8, 16, 32, 0, -1});
    if (E > 0 && E % std::max<dim_t>(r.expert_groups, 1) && !c.one_in(10)) r.expert_groups = 1;
    r.topk_groups = c.one_in(2) ? 1 : 1 + c.below(std::max<dim_t>(r.expert_groups, 1));
    r.topk = c.one_in(20)
                     ? c.of({dim_t(0), dim_t(-1), E, std::clamp<dim_t>(E, 0, max_dim) + 1, dim_t(1) << 40})
                     : 1 + c.below(std::clamp<dim_t>(E, 1, 8));
    if (c.one_in(3)) mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(2)));
    if (c.one_in(3))
        mxdnn_post_ops_append_eltwise(&p.attr.post_ops, mxdnn_eltwise_linear, draw_number(c), 0.f);
    if (c.one_in(2)) draw_modes(c, p.attr);
    return draw_plain(c, p.src, s, c.of(high_precision));
}

bool draw_moe_permute(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    permute_desc_t &x = p.permute;
    x.source_ranks = c.one_in(60) ? c.of(huge) : 1 + c.below(4);
    x.local_experts = c.one_in(60) ? c.of(huge) : 1 + c.below(5);
    x.alignment = c.one_in(60) ? c.of(huge) : c.of({1, 1, 2, 3, 8, 16, 128});
    if (x.source_ranks > 64 || x.local_experts > 64 || x.alignment > 256 || x.source_ranks < 1)
        d.executes = false;
    if (x.local_experts < 1 || x.alignment < 1) d.executes = false;
    if (c.one_in(3)) mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(2)));
    const dim_t columns = dims.length(300);
    std::vector<int32_t> counts;
    dim_t all = 0, end = 0;
    if (d.executes) {
        std::vector<dim_t> of_expert(size_t(x.local_experts), 0);
        for (dim_t i = 0; i < x.source_ranks * x.local_experts; i++) {
            counts.push_back(int32_t(c.one_in(3) ? 0 : c.below(9)));
            all += counts.back();
            of_expert[size_t(i % x.local_experts)] += counts.back();
        }
        for (const dim_t n : of_expert) end += round_up(std::max(n, x.alignment), x.alignment);
        if (c.one_in(20)) c.of(counts) = c.of({-1, INT32_MAX, INT32_MIN, 1000});
    }
    d.indices[MXDNN_ARG_GROUP_COUNTS] = counts;
    const dim_t src_rows = c.one_in(30) ? c.below(all + 1) : all + c.below(5),
                dst_rows = c.one_in(30) ? c.below(end + 1) : end + c.below(5);
    return draw_moved(c, d, src_rows, dst_rows, columns, false, x.local_experts);
}

bool draw_moe_unpermute(choices_t &c, drawn_t &d) {
    dims_t dims(c, d);
    d.p.engine = draw_cpu(c);
    const dim_t k = 1 + c.below(4), T = c.below(40), columns = dims.length(300);
    const bool weighed = c.one_in(2);
    const dim_t entries = T * (weighed ? k : 1), rows = c.below(entries + 6);
    // Every entry at most once.
    std::vector<int32_t> order(static_cast<size_t>(entries)), idx(static_cast<size_t>(rows), -1);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[size_t(c.below(int64_t(i)))]);
    for (size_t i = 0; i < idx.size() && i < order.size(); i++) idx[i] = c.one_in(8) ? -1 : order[i];
    if (!idx.empty() && c.one_in(20)) c.of(idx) = c.of({-2, 0, 1, INT32_MAX, INT32_MIN, int32_t(entries)});
    d.indices[MXDNN_ARG_PERMUTED_IDX] = idx;
    if (weighed) d.lengths[MXDNN_ARG_TOPK_WEIGHTS] = k;
    return draw_moved(c, d, rows, T, columns, true, c.below(3));
}

} // namespace fuzz
