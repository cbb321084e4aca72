// SPDX-License-Identifier: Apache-2.0
// What mx_reorder accepts, to one destination or two.
#include "common/problem_reorder.hpp"

#include <string>
#include <utility>

#include "common/error.hpp"
#include "common/grouped_mx_reorder.hpp"
#include "common/packed_weights.hpp"
#include "common/problem_util.hpp"

namespace mxdnn {
namespace impl {

namespace {

// The attributes that describe the format `q`, as packed bytes have it: blocks run along K.
void imply_attr(arg_attr_t &a, const memory_desc_t &md, const quant_t &q, mxdnn_quantization_mode_t mode) {
    a.scales.set = true;
    a.scales.mask = (1 << md.ndims) - 1;
    a.scales.groups[0] = q.block;
    a.scales.groups[1] = 1;
    a.scales.dt = q.scale_dt;
    a.mode = mode;
    if (q.zp != zero_point_kind_t::none) {
        a.zero_points = a.scales;
        a.zero_points.dt = q.zp_dt;
        a.zero_points_kind =
                q.zp == zero_point_kind_t::minimum ? mxdnn_zero_points_minimum : mxdnn_zero_points_standard;
    }
    if (q.global != global_scale_kind_t::none)
        a.global = a.is_dynamic() ? mxdnn_quantization_mode_dynamic_fp : mxdnn_quantization_mode_static_sazp;
}

// A destination with tag `any` is packed in the format of its attributes, or, without these, of the source.
status_t resolve_any_dst(problem_t &p) {
    arg_attr_t of_src = p.attr.src;
    const bool same_type = p.src.dt == p.dst.dt && p.src.ndims == p.dst.ndims;
    if (is_packed(p.src)) imply_attr(of_src, p.src, p.src.packed.quant, mxdnn_quantization_mode_static_sazp);
    const bool as_src = !p.attr.dst.scales.set && same_type && of_src.scales.set;
    if (p.attr.dst.global != mxdnn_quantization_mode_undef) of_src.global = p.attr.dst.global;
    return resolve_any("dst", p.dst, as_src ? of_src : p.attr.dst, *p.engine);
}

status_t check_both_sides(const problem_t &p) {
    const memory_desc_t &src = p.src, &dst = p.dst;
    if (is_any(src))
        return fail(mxdnn_invalid_arguments, "src is `any`; the source of a reorder needs a layout");
    if (!is_packed(src)) MXDNN_CHECK(check_plain("src", src));
    if (!is_packed(dst)) MXDNN_CHECK(check_plain("dst", dst));
    bool same = src.ndims == dst.ndims && src.ndims >= 2;
    for (int i = 0; same && i < src.ndims; i++) same = dims_agree(src.dims[i], dst.dims[i]);
    if (!same)
        return fail(mxdnn_invalid_shape, "src is %s and dst is %s; a reorder needs equal dims, at least two",
                dims_text(src).c_str(), dims_text(dst).c_str());
    if (is_packed(src) && src.packed.family != p.src_engine->target->family)
        return fail(mxdnn_incompatible_target, "src is packed for %s, but its engine is %s",
                target_family_name(src.packed.family), p.src_engine->target->name);
    if (is_packed(dst) && dst.packed.family != p.engine->target->family)
        return fail(mxdnn_incompatible_target, "dst is packed for %s, but its engine is %s",
                target_family_name(dst.packed.family), p.engine->target->name);
    return mxdnn_success;
}

status_t check_src_is_static(const arg_attr_t &a) {
    if (a.is_dynamic() || a.global > mxdnn_quantization_mode_static_sazp)
        return fail(
                mxdnn_invalid_arguments, "src has dynamic scales; they are read, so they have to be static");
    return mxdnn_success;
}

status_t resolve_packed_side(problem_t &p, bool is_src) {
    const memory_desc_t &md = is_src ? p.src : p.dst;
    arg_attr_t &a = is_src ? p.attr.src : p.attr.dst;
    MXDNN_CHECK(check_matches_packed(is_src ? "src" : "dst", md, a));
    if (is_src) {
        MXDNN_CHECK(check_src_is_static(a));
        imply_attr(a, md, md.packed.quant, mxdnn_quantization_mode_static_sazp);
        return mxdnn_success;
    }
    if (a.scales.set && !a.is_dynamic() && is_high_precision(p.src.dt))
        return fail(mxdnn_invalid_arguments, "dst is packed and its scales are static, but packed bytes hold "
                                             "their scales: quantise with a "
                                             "dynamic mode, or pass codes and scales as a quantised src");
    if (a.scales.set && a.is_dynamic()) MXDNN_CHECK(check_dynamic_mode("dst", md.dt, md.packed.quant, a));
    const mxdnn_quantization_mode_t global = a.global;
    imply_attr(a, md, md.packed.quant, dynamic_mode_of(md.dt, md.packed.quant));
    if (global == mxdnn_quantization_mode_static_sazp) a.global = global;
    return mxdnn_success;
}

status_t resolve_quantised_side(problem_t &p, bool is_src) {
    const memory_desc_t &md = is_src ? p.src : p.dst;
    const char *name = is_src ? "src" : "dst";
    arg_attr_t &a = is_src ? p.attr.src : p.attr.dst;
    // Codes and scales of a packed source come out unchanged, unless the attributes ask for another format.
    if (!is_src && is_packed(p.src) && !a.scales.set && md.dt == p.src.dt) {
        const arg_attr_t storage = a;
        imply_attr(a, md, p.src.packed.quant, dynamic_mode_of(md.dt, p.src.packed.quant));
        a.layout = storage.layout;
        a.packing = storage.packing;
    }
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of(name, md, a, q, &axis));
    MXDNN_CHECK(check_block_scales(name, md.dt, q));
    MXDNN_CHECK(check_global_scale(name, md, a));
    if (is_src) MXDNN_CHECK(check_src_is_static(a));
    return mxdnn_success;
}

status_t resolve_side(problem_t &p, bool is_src) {
    const memory_desc_t &md = is_src ? p.src : p.dst;
    const char *name = is_src ? "src" : "dst";
    if (is_packed(md)) return resolve_packed_side(p, is_src);
    if (is_quantised_type(md.dt)) return resolve_quantised_side(p, is_src);
    if (!is_high_precision(md.dt))
        return fail(mxdnn_invalid_data_type, "%s is %s; possible are f32 bf16 f16 and quantised types", name,
                data_type_name(md.dt));
    if (!(is_src ? p.attr.src : p.attr.dst).is_default())
        return fail(mxdnn_invalid_arguments,
                "%s is %s and has quantisation attributes; only quantised types have", name,
                data_type_name(md.dt));
    return mxdnn_success;
}

bool have_same_format(const problem_t &p) {
    const arg_attr_t &sa = p.attr.src, &da = p.attr.dst;
    quant_t s, d;
    int s_axis = 0, d_axis = 0;
    return sa.scales.set && da.scales.set && p.src.dt == p.dst.dt
           && quant_of("src", p.src, sa, s, &s_axis) == mxdnn_success
           && quant_of("dst", p.dst, da, d, &d_axis) == mxdnn_success && s == d && s_axis == d_axis;
}

// Decides whether the scales of a quantised destination are computed, given, or those of the source.
status_t resolve_scales_of_dst(problem_t &p, bool new_global) {
    const memory_desc_t &dst = p.dst;
    arg_attr_t &a = p.attr.dst;
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of("dst", dst, a, q, &axis));
    if (!have_same_format(p) || new_global) return check_dynamic("dst", dst.dt, q, a);
    if (is_packed(p.src) || is_packed(dst)) {
        // If codes and scales move unchanged, those of a packed source are outputs of a plain one.
        a.mode = dynamic_mode_of(dst.dt, q);
        if (q.global != global_scale_kind_t::none) a.global = mxdnn_quantization_mode_dynamic_fp;
    }
    return mxdnn_success;
}

void swap_last_two(dim_t *of_dims, int ndims) { std::swap(of_dims[ndims - 1], of_dims[ndims - 2]); }

void swap_groups(arg_attr_t &a) {
    for (arg_attr_t::grouping_t *g : {&a.scales, &a.zero_points}) std::swap(g->groups[0], g->groups[1]);
}

// Prepares each destination as if it were alone.
status_t prepare_two_reorders(problem_t &p) {
    for (const memory_desc_t *md : {&p.src, &p.dst, &p.dst_1})
        if (has_runtime_dims(*md))
            return fail(mxdnn_unimplemented, "%s is %s; a reorder to two destinations has no runtime dims",
                    md == &p.src   ? "src"
                    : md == &p.dst ? "dst"
                                   : "dst_1",
                    dims_text(*md).c_str());
    const bool turned[2] = {is_turned(p.dst, p.attr.dst), is_turned(p.dst_1, p.attr.dst_1)};
    if (turned[0] || turned[1]) {
        if (!is_strided(p.src) || !is_high_precision(p.src.dt))
            return fail(mxdnn_unimplemented,
                    "src is %s and a destination is to be packed transposed; that takes a plain src of f32, bf16 or "
                    "f16",
                    to_string(p.src).c_str());
        if (p.src.ndims < 2)
            return fail(mxdnn_invalid_shape, "src is %s; a reorder needs at least two dims",
                    dims_text(p.src).c_str());
    }
    problem_t first = reorder_to(p, false), second = reorder_to(p, true);
    MXDNN_CHECK(prepare_mx_reorder(first));
    if (const status_t s = prepare_mx_reorder(second))
        return fail(s, "of the second destination: %s", std::string(last_error()).c_str());
    p.dst = first.dst;
    p.dst_1 = second.dst;
    p.attr = first.attr;
    p.attr.dst_1 = second.attr.dst;
    // The groups keep saying that the matrix is transposed.
    if (turned[0]) swap_groups(p.attr.dst);
    if (turned[1]) swap_groups(p.attr.dst_1);
    return mxdnn_success;
}

} // namespace

bool moves_codes(const problem_t &p) {
    return have_same_format(p) && p.attr.dst.is_dynamic()
           && p.attr.dst.global != mxdnn_quantization_mode_static_sazp;
}

bool is_turned(const memory_desc_t &dst, const arg_attr_t &a) {
    return (is_any(dst) || is_packed(dst)) && a.scales.set && a.scales.groups[1] > 1;
}

problem_t reorder_to(const problem_t &p, bool second) {
    problem_t one = p;
    if (second) {
        one.dst = p.dst_1;
        one.attr.dst = p.attr.dst_1;
    }
    one.dst_1 = memory_desc_t();
    one.attr.dst_1 = arg_attr_t();
    if (is_turned(one.dst, one.attr.dst)) {
        swap_last_two(one.src.dims, one.src.ndims);
        swap_last_two(one.src.strides, one.src.ndims);
        if (is_any(one.dst)) swap_last_two(one.dst.dims, one.dst.ndims);
        swap_groups(one.attr.dst);
    }
    return one;
}

status_t prepare_mx_reorder(problem_t &p) {
    if (is_grouped_reorder(p)) return prepare_grouped_reorder(p);
    if (!is_zero(p.dst_1)) return prepare_two_reorders(p);
    if (!p.attr.post_ops.ops.empty() || !p.attr.weights.is_default())
        return fail(mxdnn_invalid_arguments, "a reorder takes attributes of src and dst, and no post-ops");
    if (is_any(p.dst)) MXDNN_CHECK(resolve_any_dst(p));
    MXDNN_CHECK(check_both_sides(p));
    // Codes have to be computed again under a given global scale.
    const bool new_global =
            p.attr.dst.is_dynamic() && p.attr.dst.global == mxdnn_quantization_mode_static_sazp;
    for (bool is_src : {true, false}) MXDNN_CHECK(resolve_side(p, is_src));
    return is_quantised_type(p.dst.dt) ? resolve_scales_of_dst(p, new_global) : mxdnn_success;
}

void list_args_mx_reorder(pd_t &pd) {
    is_grouped_reorder(pd.problem) ? list_args_grouped_reorder(pd) : list_args_plain(pd);
}

status_t check_runtime_dims_mx_reorder(const problem_t &p, const exec_ctx_t &ctx) {
    return is_grouped_reorder(p) ? check_grouped_reorder_exec(p, ctx) : check_runtime_dims_plain(p, ctx);
}

} // namespace impl
} // namespace mxdnn
