// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

#include <algorithm>

#include "common/packed_desc.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

constexpr format_t mxfp8[] = {
        {mxdnn_f8_e4m3, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f8_e5m2, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
};

// Offsets and counts of `groups`, mostly as they should be, and how many blocks of rows they make.
dim_t draw_groups(choices_t &c, drawn_t &d, dim_t rows, dim_t groups) {
    const auto set = [&](int arg, std::vector<int32_t> v) {
        if (!v.empty() && c.one_in(25)) c.of(v) = c.of({-1, 0, 1, int32_t(rows), INT32_MAX, INT32_MIN});
        d.indices[arg] = std::move(v);
    };
    std::vector<int32_t> counts;
    dim_t blocks = 0;
    if (d.p.attr.row_grouping == mxdnn_row_grouping_padded) {
        const dim_t most = groups ? rows / groups : 0;
        for (dim_t g = 0; g < groups; g++) counts.push_back(int32_t(c.below(most + 1)));
        blocks = groups * div_up(most, mx_block);
        set(MXDNN_ARG_GROUP_COUNTS, counts);
    } else {
        const bool starts = d.p.attr.row_grouping == mxdnn_row_grouping_starts;
        std::vector<int32_t> cuts(size_t(groups) + starts);
        for (int32_t &x : cuts) x = int32_t(c.below(rows + 1));
        std::sort(cuts.begin(), cuts.end());
        for (size_t g = 0; g < size_t(groups); g++) {
            const size_t end = g + starts;
            const int32_t first = end ? cuts[end - 1] : 0, n = cuts[end] - first;
            blocks += div_up(n, mx_block);
            counts.push_back(int32_t(c.below(n + 1)));
        }
        set(MXDNN_ARG_GROUP_OFFSETS, cuts);
        if (c.one_in(2)) set(MXDNN_ARG_GROUP_COUNTS, counts);
    }
    d.lengths[MXDNN_ARG_GROUP_COUNTS] = 1; // source ranks
    return blocks;
}

} // namespace

bool draw_backward_weights(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    draw_modes(c, p.attr);
    mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(c.one_in(20) ? 4 : 3)));
    const dim_t G = dims.batch(), K = dims.length(300), N = dims.length(K > 100 ? 33 : 130);
    const dim_t groups = std::clamp<dim_t>(G, 0, 8);
    const bool padded = p.attr.row_grouping == mxdnn_row_grouping_padded;
    dim_t rows = c.below(double(K) * double(N) > 3000 ? 40 : 150);
    if (padded && groups > 0) rows = rows / groups * groups;
    const dim_t blocks = draw_groups(c, d, rows, groups);
    const bool quantised = c.one_in(2);
    const data_type_t type = c.of(high_precision);
    const auto operand = [&](int arg, memory_desc_t &md, dim_t columns) {
        shape_t s;
        if (padded && groups > 0 && c.one_in(2))
            s.add(groups), s.add(rows / groups);
        else
            s.add(rows);
        s.add(columns);
        data_type_t dt = c.one_in(30) ? c.of(high_precision) : type;
        if (quantised) {
            const format_t &f = c.one_in(30) ? c.of(formats) : c.of(mxfp8);
            set_format(c, p.attr, arg, f, s.n, 2, false, true);
            dt = f.dt;
            d.lengths[MXDNN_ARG_ATTR_SCALES | arg] = blocks + c.below(3) - (c.one_in(20) ? 1 : 0);
        }
        if (!draw_plain(c, md, s, dt)) return false;
        if (!padded && groups > 0 && c.one_in(5))
            return init_grouped(md, s.n, s.at, dt, 0, groups, mxdnn_s32) == mxdnn_success;
        return true;
    };
    shape_t to;
    to.add(G), to.add(K), to.add(N);
    if (c.one_in(3)) mxdnn_post_ops_append_sum(&p.attr.post_ops, draw_number(c), 0, mxdnn_data_type_undef);
    return operand(MXDNN_ARG_SRC, p.src, K) && operand(MXDNN_ARG_DIFF_DST, p.diff_dst, N)
           && draw_plain(c, p.diff_weights, to, c.of(high_precision));
}

} // namespace fuzz
