// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "common/packed_desc.hpp"
#include "cpu/x64/isa.hpp"
#include "fuzz/fuzz.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

constexpr dim_t lengths[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 32, 33, 48, 63, 64, 64, 65, 96,
        100, 127, 128, 128, 129, 160, 255, 256, 257, 300};
constexpr dim_t few[] = {0, 1, 1, 1, 2, 2, 3, 5};

// All types, and one that is none.
constexpr auto every_type = [] {
    std::array<data_type_t, all_types::size + 1> all{};
    size_t n = 0;
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows) all[n++] = row.id;
    return all;
}();
// How a source in high precision is quantised in execute: the type is that of the codes.
constexpr format_t recipes[] = {
        {mxdnn_s8, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_s8, mxdnn_f16, 32, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_s8, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_f8_e4m3, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_fp},
};

constexpr mxdnn_alg_kind_t eltwise[] = {mxdnn_eltwise_relu, mxdnn_eltwise_tanh, mxdnn_eltwise_square,
        mxdnn_eltwise_linear, mxdnn_eltwise_logistic, mxdnn_eltwise_gelu_tanh, mxdnn_eltwise_swish,
        mxdnn_eltwise_clip, mxdnn_eltwise_gelu_erf, mxdnn_eltwise_relu2};
constexpr mxdnn_alg_kind_t binary[] = {
        mxdnn_binary_add, mxdnn_binary_mul, mxdnn_binary_max, mxdnn_binary_min};
constexpr mxdnn_alg_kind_t gated[] = {
        mxdnn_gated_silu, mxdnn_gated_swiglu_oai, mxdnn_gated_gelu_erf, mxdnn_gated_gelu_tanh};

bool takes_zero_points(const format_t &f) { return f.dt == mxdnn_u4; }

} // namespace

// ---- engines, dims, tensors ----

const engine_t *engine_of(const char *target) {
    mxdnn_engine_t e = nullptr;
    FUZZ_CHECK(mxdnn_engine_create_for_target(&e, target) == mxdnn_success);
    return e;
}
const engine_t *draw_cpu(choices_t &c) {
    mxdnn_engine_t e = nullptr;
    if (!c.one_in(10)) {
        FUZZ_CHECK(mxdnn_engine_create(&e, mxdnn_cpu, 0) == mxdnn_success);
        return e;
    }
    const engine_t *target = engine_of(c.of(x64::isa_list).target);
    return target;
}

dims_t::dims_t(choices_t &c, drawn_t &d) : c_(c), d_(d), huge_(c.one_in(40)) {}

dim_t dims_t::length(int64_t budget) {
    if (huge_ && c_.one_in(3)) return d_.executes = false, c_.of(huge);
    dim_t n = c_.of(lengths);
    while (n > budget) n = c_.of(lengths);
    return n;
}

dim_t dims_t::batch() { return huge_ && c_.one_in(4) ? (d_.executes = false, c_.of(huge)) : c_.of(few); }

bool draw_strides(choices_t &c, memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, bool odd) {
    const int64_t how = c.below(100);
    mxdnn_dims_t strides;
    // From the innermost on, in some order, with gaps.
    int order[max_ndims];
    std::iota(order, order + ndims, 0);
    if (how < 20) std::swap(order[ndims - 1], order[std::max(ndims - 2, 0)]);
    if (how < 5)
        for (int d = ndims - 1; d > 0; d--) std::swap(order[d], order[c.below(d + 1)]);
    const bool even = dt == mxdnn_f4_e2m1 || dt == mxdnn_s4 || dt == mxdnn_u4;
    dim_t next = how < 12 && how >= 10 && !even ? 2 : 1;
    for (int i = ndims - 1; i >= 0; i--) {
        const int d = order[i];
        strides[d] = next;
        const dim_t n = std::max<dim_t>(dims[d], 1);
        if (next > max_bytes || n > max_dim || next > INT64_MAX / 2 / n) continue;
        next *= n;
        if (how < 40 && c.one_in(2)) next += c.of({1, 2, 8, 16, 64});
        if (even && next % 2) next++;
    }
    if (odd && how >= 92) {
        dim_t &one = strides[c.below(ndims)];
        if (how < 97)
            one = 0;
        else if (how < 99)
            one = c.below(40);
        else
            one = c.of(huge);
    }
    if (how >= 40 && how < 92) return init_strided(md, ndims, dims, dt, nullptr) == mxdnn_success;
    return init_strided(md, ndims, dims, dt, strides) == mxdnn_success
           || init_strided(md, ndims, dims, dt, nullptr) == mxdnn_success;
}

bool draw_plain(choices_t &c, memory_desc_t &md, const shape_t &s, data_type_t dt) {
    if (c.one_in(100)) dt = c.of(every_type);
    return draw_strides(c, md, s.n, s.at, dt);
}

bool draw_side(choices_t &c, problem_t &p, int arg, memory_desc_t &md, const shape_t &s) {
    const bool is_src = arg == MXDNN_ARG_SRC;
    if (c.percent(is_src ? 55 : 65)) {
        if (is_src && c.one_in(3)) set_format(c, p.attr, arg, c.of(recipes), s.n, 1, true, false);
        return draw_plain(c, md, s, c.of(high_precision));
    }
    const format_t &f = is_src && c.one_in(4) ? c.of(row_formats) : c.of(formats);
    set_format(c, p.attr, arg, f, s.n, 1, !is_src, true);
    return draw_plain(c, md, s, f.dt);
}

bool draw_packed(choices_t &c, memory_desc_t &md, const shape_t &s, data_type_t dt, const quant_t &q,
        target_family_t family) {
    const layout_t *other = c.one_in(4) ? find_layout(family, uint32_t(1 + c.below(6))) : nullptr;
    const status_t status =
            other ? init_packed_as(md, s.n, s.at, dt, q, *other) : init_packed(md, s.n, s.at, dt, q, family);
    return status == mxdnn_success;
}

bool draw_weights(choices_t &c, problem_t &p, const shape_t &s) {
    const format_t &f = c.of(formats);
    const int64_t how = c.below(10);
    set_format(c, p.attr, MXDNN_ARG_WEIGHTS, f, s.n, 2, c.one_in(60), how < 3);
    if (how < 3) return draw_plain(c, p.weights, s, f.dt);
    if (init_with_tag(p.weights, s.n, s.at, f.dt, mxdnn_format_tag_any) != mxdnn_success) return false;
    if (how < 8) return true;
    quant_t q;
    int axis;
    const auto family = c.one_in(20) ? target_family_t::cuda : target_family_t::cpu_x64;
    if (quant_of("", p.weights, p.attr.weights, q, &axis) != mxdnn_success) return true;
    if (!draw_packed(c, p.weights, s, f.dt, q, family)) return false;
    if (c.one_in(2)) p.attr.weights = arg_attr_t(); // said by the descriptor
    return true;
}

// ---- attributes ----

void set_format(
        choices_t &c, attr_t &a, int arg, const format_t &f, int ndims, int axis, bool dynamic, bool codes) {
    int mask = (1 << ndims) - 1;
    if (f.block == 0 && c.one_in(2)) mask &= ~(1 << (ndims - 1));
    dim_t groups[2] = {1, 1};
    groups[2 - axis] = f.block ? f.block : dim_t(1) << 30;
    auto scale_dt = f.scale_dt;
    auto mode = dynamic ? f.mode : mxdnn_quantization_mode_static_sazp;
    if (c.one_in(60)) mask = int(c.below(1 << ndims));
    if (c.one_in(60)) groups[c.below(2)] = c.of({1, 2, 16, 31, 32, 64, 128, 1 << 30});
    if (c.one_in(60)) scale_dt = c.of(every_type);
    if (c.one_in(60)) mode = mxdnn_quantization_mode_t(c.below(4));
    mxdnn_primitive_attr_set_scales(&a, arg, mask, 2, groups, scale_dt, 0, mode);
    if (takes_zero_points(f) ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_zero_points(
                &a, arg, mask, 2, groups, c.of({mxdnn_u8, mxdnn_bf16, mxdnn_f16, mxdnn_f32}));
    if (takes_zero_points(f) ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_zero_points_kind(&a, arg, mxdnn_zero_points_minimum);
    if (f.scale_dt == mxdnn_f8_e4m3 ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_global_scale(&a, arg,
                dynamic && !c.one_in(4) ? mxdnn_quantization_mode_dynamic_fp
                                        : mxdnn_quantization_mode_static_sazp);
    if (c.one_in(4)) mxdnn_primitive_attr_set_scale_rounding(&a, arg, mxdnn_scale_rounding_t(c.below(4)));
    if (codes ? c.one_in(4) : c.one_in(60))
        mxdnn_primitive_attr_set_scales_layout(&a, arg, mxdnn_scales_swizzle_128x4);
    const bool six = f.dt == mxdnn_f6_e2m3 || f.dt == mxdnn_f6_e3m2;
    if (codes && six ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_element_packing(&a, arg, mxdnn_element_packing_dense);
}

void draw_modes(choices_t &c, attr_t &a) {
    if (c.one_in(3))
        mxdnn_primitive_attr_set_fpmath_mode(&a, mxdnn_fpmath_mode_t(c.below(5)), int(c.below(2)));
    if (c.one_in(6)) mxdnn_primitive_attr_set_accumulation_mode(&a, mxdnn_accumulation_mode_t(c.below(6)));
    if (c.one_in(6)) mxdnn_primitive_attr_set_deterministic(&a, 1);
    if (c.one_in(2)) mxdnn_primitive_attr_set_scratchpad_mode(&a, mxdnn_scratchpad_mode_user);
    if (c.one_in(6)) mxdnn_primitive_attr_set_constant_weights(&a, 1);
    if (c.one_in(5)) mxdnn_primitive_attr_set_max_rows_hint(&a, c.of({1, 2, 7, 64, 1000, 1 << 30}));
}

float draw_number(choices_t &c) { return c.of({0.f, 1.f, -1.f, 0.5f, 1.702f, 7.f, -3.f, 1e30f}); }

void draw_post_ops(choices_t &c, attr_t &a, const shape_t &dst, data_type_t dst_dt, bool binaries) {
    mxdnn_post_ops_t po = &a.post_ops;
    shape_t now = dst;
    for (int64_t i = c.below(4); i > 0; i--) switch (c.below(binaries ? 4 : 3)) {
        case 0: mxdnn_post_ops_append_eltwise(po, c.of(eltwise), draw_number(c), draw_number(c)); break;
        case 1:
            if (a.gated() && !c.one_in(20)) break;
            mxdnn_post_ops_append_gated(
                    po, c.of(gated), draw_number(c), draw_number(c), mxdnn_gated_layout_t(c.below(2)));
            now.at[now.n - 1] /= 2;
            break;
        case 2:
            mxdnn_post_ops_append_sum(
                    po, draw_number(c), int32_t(c.below(3)), c.one_in(4) ? dst_dt : mxdnn_data_type_undef);
            break;
        default: {
            shape_t s;
            const int skip = int(c.below(now.n));
            for (int d = skip; d < now.n; d++) s.add(c.one_in(3) ? 1 : now.at[d]);
            if (c.one_in(40)) s.at[s.n - 1] ^= 1;
            memory_desc_t md;
            if (draw_plain(c, md, s, c.of(high_precision)))
                mxdnn_post_ops_append_binary(po, c.of(binary), &md);
        }
        }
}

} // namespace fuzz
