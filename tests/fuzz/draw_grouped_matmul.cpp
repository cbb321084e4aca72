// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

#include <algorithm>

#include "common/packed_desc.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

// Rows of groups: bounds, ids, map, gather and scatter, mostly as they should be.
void draw_groups(
        choices_t &c, drawn_t &d, dim_t src_rows, dim_t &rows, dim_t &dst_rows, dim_t E, dim_t &groups) {
    const problem_t &p = d.p;
    const auto set = [&](int arg, dim_t n, auto &&value) {
        std::vector<int32_t> &v = d.indices[arg];
        v.resize(size_t(std::clamp<dim_t>(n, 0, 4096)));
        for (size_t i = 0; i < v.size(); i++) v[i] = int32_t(value(dim_t(i)));
        d.lengths[arg] = dim_t(v.size());
        if (!v.empty() && c.one_in(25))
            c.of(v) = c.of({-2, -1, 0, 1, int32_t(n), int32_t(src_rows), int32_t(E), INT32_MAX, INT32_MIN});
    };
    const auto upto = [&](dim_t n) { return n > 0 ? c.below(n) : -1; };
    rows = src_rows;
    if (c.one_in(3)) {
        rows = c.below(70);
        set(MXDNN_ARG_GATHER_IDX, rows, [&](dim_t) { return c.one_in(8) ? -1 : upto(src_rows); });
    }
    dst_rows = rows;
    if (c.one_in(3)) {
        dst_rows = c.below(40);
        set(MXDNN_ARG_SCATTER_IDX, rows, [&](dim_t) { return c.one_in(8) ? -1 : upto(dst_rows); });
    }
    dim_t ids = p.attr.global_experts ? std::min<dim_t>(p.attr.global_experts, 16) : E;
    if (!p.attr.global_experts && c.one_in(4)) {
        ids = E + c.below(4);
        set(MXDNN_ARG_EXPERT_MAP, ids, [&](dim_t) { return c.one_in(4) ? -1 : upto(E); });
    }
    const auto id = [&](dim_t) { return c.one_in(8) ? -1 : upto(ids); };
    groups = c.one_in(2) ? E : c.below(12);
    switch (p.attr.row_grouping) {
    case mxdnn_row_grouping_row_ids: set(MXDNN_ARG_ROW_EXPERT_IDS, rows, id); return;
    case mxdnn_row_grouping_padded:
        groups = std::max<dim_t>(groups, 1);
        set(MXDNN_ARG_GROUP_COUNTS, groups, [&](dim_t) { return c.below(rows / groups + 1); });
        break;
    default: {
        const bool starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
        std::vector<int32_t> cuts(size_t(groups) + starts);
        for (int32_t &x : cuts) x = int32_t(c.below(rows + 1));
        std::sort(cuts.begin(), cuts.end());
        if (!cuts.empty() && c.one_in(2)) cuts.back() = int32_t(rows);
        set(MXDNN_ARG_GROUP_OFFSETS, dim_t(cuts.size()), [&](dim_t i) { return cuts[size_t(i)]; });
    }
    }
    if (groups > ids || c.one_in(3)) set(MXDNN_ARG_GROUP_EXPERT_IDS, groups, id);
}

bool draw_rows_tensor(choices_t &c, problem_t &p, int arg, memory_desc_t &md, dim_t rows, dim_t columns,
        dim_t groups, bool by_index) {
    shape_t s;
    const bool padded = p.attr.row_grouping == mxdnn_row_grouping_padded;
    if (padded && groups > 0 && rows % groups == 0 && !by_index && c.one_in(2))
        s.add(groups), s.add(rows / groups);
    else
        s.add(rows);
    s.add(columns);
    if (!draw_side(c, p, arg, md, s)) return false;
    const data_type_t dt = md.dt;
    if (!padded && groups > 0 && c.one_in(5))
        return init_grouped(md, s.n, s.at, dt, 0, groups, mxdnn_s32) == mxdnn_success;
    return true;
}

} // namespace

bool draw_grouped_matmul(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    draw_modes(c, p.attr);
    mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(4)));
    if (c.one_in(3)) mxdnn_primitive_attr_set_topk_weights_placement(&p.attr, mxdnn_topk_weights_on_input);
    const dim_t E = dims.batch(), K = dims.length(300), N = dims.length(K > 100 ? 33 : 130);
    if (c.one_in(5))
        mxdnn_primitive_attr_set_expert_range(
                &p.attr, c.below(3), std::clamp<dim_t>(E, 0, max_dim) + c.below(5));
    shape_t wei, result;
    wei.add(E), wei.add(K), wei.add(N);
    dim_t src_rows = c.below(double(K) * double(N) > 3000 ? 20 : 60), rows = 0, dst_rows = 0, groups = 0;
    if (p.attr.row_grouping == mxdnn_row_grouping_padded && c.one_in(2)) src_rows = src_rows / 4 * 4;
    draw_groups(c, d, src_rows, rows, dst_rows, std::clamp<dim_t>(E, 0, 8), groups);
    result.add(dst_rows), result.add(N);
    if (c.one_in(2)) draw_post_ops(c, p.attr, result, c.of(high_precision), c.one_in(30));
    if (c.one_in(3)) {
        shape_t bias;
        bias.add(E), bias.add(N);
        if (!draw_plain(c, p.bias, bias, c.of(high_precision))) return false;
    }
    for (const int arg : {MXDNN_ARG_TOPK_WEIGHTS}) d.lengths[arg] = rows;
    const dim_t columns = p.attr.gated() ? N / 2 : N;
    return draw_rows_tensor(
                   c, p, MXDNN_ARG_SRC, p.src, src_rows, K, groups, d.indices.count(MXDNN_ARG_GATHER_IDX))
           && draw_weights(c, p, wei)
           && draw_rows_tensor(c, p, MXDNN_ARG_DST, p.dst, dst_rows, columns, groups,
                   d.indices.count(MXDNN_ARG_SCATTER_IDX));
}

} // namespace fuzz
