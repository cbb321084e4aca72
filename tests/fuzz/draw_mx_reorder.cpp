// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

#include <algorithm>

#include "common/formats/swizzle_128x4.hpp"
#include "common/packed_desc.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

constexpr const char *cuda_targets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"};

bool draw_reorder_side(
        choices_t &c, problem_t &p, int arg, memory_desc_t &md, const engine_t *&engine, const shape_t &s) {
    const bool is_src = arg == MXDNN_ARG_SRC;
    const format_t &f = c.of(formats);
    engine = draw_cpu(c);
    // Packed weights become other packed ones more often than chance would have it.
    const bool repacks = !is_src && is_packed(p.src) && c.one_in(3);
    const int64_t how = repacks ? 9 : c.below(10);
    if (how < 3) return draw_plain(c, md, s, c.of(high_precision));
    if (how < 7) {
        if (!is_src && is_packed(p.src) && p.src.dt == f.dt && c.one_in(2)) return draw_plain(c, md, s, f.dt);
        set_format(c, p.attr, arg, f, s.n, int(1 + c.below(2)), !is_src && !c.one_in(5), true);
        return draw_plain(c, md, s, f.dt);
    }
    quant_t q;
    q.scale_dt = f.scale_dt;
    q.block = f.block;
    if (f.dt == mxdnn_u4 && c.one_in(2)) {
        q.zp_dt = c.of({mxdnn_u8, mxdnn_bf16, mxdnn_f16, mxdnn_f32});
        q.zp = q.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8
               : c.one_in(2)       ? zero_point_kind_t::float_zero
                                   : zero_point_kind_t::minimum;
    }
    if (f.scale_dt == mxdnn_f8_e4m3) q.global = global_scale_kind_t(c.below(3));
    const bool cuda = !repacks && c.one_in(2);
    if (cuda) engine = engine_of(c.of(cuda_targets));
    if (c.one_in(4)) set_format(c, p.attr, arg, f, s.n, 2, !is_src, false);
    if (!is_src && q.global != global_scale_kind_t::none && c.one_in(3))
        mxdnn_primitive_attr_set_global_scale(&p.attr, arg, mxdnn_quantization_mode_static_sazp);
    return draw_packed(c, md, s, f.dt, q, cuda ? target_family_t::cuda : target_family_t::cpu_x64);
}

// A side whose rows are in groups, and how long its scales are.
bool draw_grouped_side(choices_t &c, drawn_t &d, int arg, memory_desc_t &md, const shape_t &s, dim_t groups,
        const std::vector<dim_t> &rows) {
    const format_t &f = c.of(formats);
    const bool codes = (f.scale_dt == mxdnn_e8m0 && !c.one_in(3)) || c.one_in(60);
    if (codes) set_format(c, d.p.attr, arg, f, 2, int(1 + c.below(2)), arg != MXDNN_ARG_SRC, true);
    const arg_attr_t &a = *d.p.attr.arg(arg);
    const bool of_rows = a.scales.groups[0] > 1, tiles = a.layout == mxdnn_scales_swizzle_128x4;
    const dim_t block = std::max(a.scales.groups[0], a.scales.groups[1]);
    const dim_t columns = std::clamp<dim_t>(s.at[1], 0, 1 << 20); // what is longer is not executed
    dim_t length = 0;
    for (const dim_t n : rows) {
        const dim_t blocks = div_up(of_rows ? n : columns, block);
        const dim_t lines = of_rows ? columns : n;
        length += tiles ? swizzle_128x4::size(lines, blocks) : of_rows ? blocks : n;
    }
    if (!tiles && !of_rows) length = s.at[0];
    d.lengths[MXDNN_ARG_ATTR_SCALES | arg] = length + c.below(3) - (c.one_in(30) && length > 0 ? 1 : 0);
    const data_type_t dt = codes ? f.dt : c.of(high_precision);
    return init_grouped(md, 2, s.at, dt, 0, groups, mxdnn_s32) == mxdnn_success;
}

bool draw_grouped_reorder(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = p.src_engine = c.one_in(8) ? engine_of(c.of(cuda_targets)) : draw_cpu(c);
    const dim_t groups = 1 + c.below(5);
    shape_t s;
    s.add(c.below(200)), s.add(dims.length(100));
    const bool starts = c.one_in(3);
    mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.one_in(40) ? c.below(4) : starts));
    std::vector<int32_t> cuts(size_t(groups) + starts);
    for (int32_t &x : cuts) x = int32_t(c.below(s.at[0] + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<dim_t> rows;
    for (size_t g = 0; g < size_t(groups); g++)
        rows.push_back(cuts[g + starts] - (g + starts > 0 ? cuts[g + starts - 1] : 0));
    if (c.one_in(20)) c.of(cuts) = c.of({-1, 0, 1, int32_t(s.at[0]), INT32_MAX, INT32_MIN});
    d.indices[MXDNN_ARG_GROUP_OFFSETS] = cuts;
    d.lengths[MXDNN_ARG_GROUP_OFFSETS] = dim_t(cuts.size());
    return draw_grouped_side(c, d, MXDNN_ARG_SRC, p.src, s, groups, rows)
           && draw_grouped_side(c, d, MXDNN_ARG_DST, p.dst, s, c.one_in(60) ? groups + 1 : groups, rows)
           && (!c.one_in(3) || draw_grouped_side(c, d, MXDNN_ARG_DST_1, p.dst_1, s, groups, rows));
}

} // namespace

bool draw_mx_reorder(choices_t &c, drawn_t &d) {
    if (c.one_in(6)) return draw_grouped_reorder(c, d);
    problem_t &p = d.p;
    dims_t dims(c, d);
    shape_t s;
    for (int64_t i = c.one_in(3) ? 1 + c.below(c.one_in(8) ? 6 : 2) : 0; i > 0; i--) s.add(dims.batch());
    const dim_t rows = dims.length(300);
    s.add(rows), s.add(dims.length(rows > 100 ? 65 : 300));
    if (c.one_in(3)) draw_modes(c, p.attr);
    const engine_t *second = nullptr;
    if (!draw_reorder_side(c, p, MXDNN_ARG_SRC, p.src, p.src_engine, s)) return false;
    if (c.one_in(80)) s.at[c.below(s.n)]++;
    if (!draw_reorder_side(c, p, MXDNN_ARG_DST, p.dst, p.engine, s)) return false;
    return !c.one_in(6) || draw_reorder_side(c, p, MXDNN_ARG_DST_1, p.dst_1, second, s);
}

} // namespace fuzz
