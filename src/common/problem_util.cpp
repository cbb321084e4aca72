// SPDX-License-Identifier: Apache-2.0
#include "common/problem_util.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/packed_weights.hpp"
#include "common/quantization_mode.hpp"

namespace mxdnn {
namespace impl {

status_t check_dynamic_mode(const char *name, data_type_t dt, const quant_t &q, const arg_attr_t &a) {
    if (a.mode == dynamic_mode_of(dt, q)) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "scales of %s (%s with %s scales) are to be computed by %s; this format's are by %s", name,
            data_type_name(dt), data_type_name(q.scale_dt), quantization_mode_name(a.mode),
            quantization_mode_name(dynamic_mode_of(dt, q)));
}

status_t check_dynamic(const char *name, data_type_t dt, const quant_t &q, const arg_attr_t &a) {
    if (!a.is_dynamic()) {
        if (a.global > mxdnn_quantization_mode_static_sazp)
            return fail(mxdnn_invalid_arguments,
                    "%s has static scales and a dynamic global scale; a computed global scale needs computed scales",
                    name);
        return mxdnn_success;
    }
    MXDNN_CHECK(check_dynamic_mode(name, dt, q, a));
    if (const char *why = check_dynamic_quant(dt, q, a.rounding))
        return fail(mxdnn_invalid_arguments, "scales of %s cannot be computed: %s", name, why);
    return mxdnn_success;
}

status_t check_matches_packed(const char *name, const memory_desc_t &md, const arg_attr_t &a) {
    if (a.layout != mxdnn_scales_linear || a.packing != mxdnn_element_packing_bytes)
        return fail(mxdnn_invalid_arguments,
                "%s is packed, so a scales layout or an element packing has no meaning for it; leave them out",
                name);
    if (!a.scales.set) {
        if (a.zero_points.set)
            return fail(
                    mxdnn_invalid_arguments, "%s has zero points but no scales; set both or neither", name);
        return mxdnn_success;
    }
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of(name, md, a, q, &axis));
    // The packed descriptor may have the global scale instead.
    if (a.global == mxdnn_quantization_mode_undef) q.global = md.packed.quant.global;
    if (axis != 2)
        return fail(mxdnn_invalid_arguments,
                "the blocks of %s run along its last dim (groups %lldx%lld); packed weights have blocks along K, "
                "the dim before it",
                name, (long long)a.scales.groups[0], (long long)a.scales.groups[1]);
    if (q != md.packed.quant)
        return fail(mxdnn_invalid_arguments,
                "the attributes of %s say %s scales, groups of %lld, but its packed descriptor is %s", name,
                data_type_name(q.scale_dt), (long long)q.block, to_string(md).c_str());
    return mxdnn_success;
}

status_t check_grouped_rows(const char *name, const memory_desc_t &md, mxdnn_row_grouping_t grouping) {
    const bool grouped = md.kind == mxdnn_format_kind_grouped, padded = grouping == mxdnn_row_grouping_padded;
    if (!grouped && !is_strided(md))
        return fail(mxdnn_invalid_arguments, "%s is %s; it has to be grouped or plain (strided)", name,
                to_string(md).c_str());
    if (md.ndims != 2 && !(padded && md.ndims == 3))
        return fail(mxdnn_invalid_shape, "%s has %d dims; it is [rows, columns]%s", name, md.ndims,
                padded ? " or [groups, rows of a group, columns]" : "");
    if (grouped && padded)
        return fail(mxdnn_invalid_arguments, "%s is %s; padded groups are a plain tensor", name,
                to_string(md).c_str());
    return mxdnn_success;
}

status_t check_plain(const char *name, const memory_desc_t &md) {
    if (!is_strided(md))
        return fail(mxdnn_invalid_arguments, "%s is %s; it has to be plain (strided)", name,
                to_string(md).c_str());
    return mxdnn_success;
}

memory_desc_t plain_desc(data_type_t dt, std::initializer_list<dim_t> dims) {
    memory_desc_t md;
    init_strided(md, int(dims.size()), dims.begin(), dt, nullptr);
    return md;
}

std::string dim_text(dim_t d) { return d == runtime_dim ? "*" : std::to_string(d); }

std::string dims_text(const memory_desc_t &md) {
    std::string s;
    for (int i = 0; i < md.ndims; i++) s += (i ? "x" : "") + dim_text(md.dims[i]);
    return s;
}

status_t check_broadcast(const char *name, const memory_desc_t &md, int ndims, const dim_t *to) {
    bool ok = md.ndims <= ndims;
    for (int i = 1; ok && i <= md.ndims; i++) ok = broadcasts_to(md.dims[md.ndims - i], to[ndims - i]);
    if (ok) return mxdnn_success;
    memory_desc_t t;
    t.ndims = ndims;
    for (int i = 0; i < ndims; i++) t.dims[i] = to[i];
    return fail(mxdnn_invalid_shape, "%s is %s, which does not broadcast to %s (each dim equal, or 1)", name,
            dims_text(md).c_str(), dims_text(t).c_str());
}

namespace {

// How codes and scales of a plain tensor are stored.
status_t check_storage(const char *name, const memory_desc_t &md, const arg_attr_t &a) {
    if (a.layout == mxdnn_scales_swizzle_128x4) {
        if (bytes_of_scale_type(a.scales.dt) != 1)
            return fail(mxdnn_invalid_arguments,
                    "scales of %s are %s; only one-byte scales have a 128x4 swizzle", name,
                    data_type_name(a.scales.dt));
        if (a.zero_points.set)
            return fail(mxdnn_invalid_arguments,
                    "%s has zero points, which have no 128x4 swizzle; give it linear scales", name);
    }
    if (a.packing != mxdnn_element_packing_dense) return mxdnn_success;
    if (data_type_info(md.dt)->bits != 6)
        return fail(mxdnn_invalid_arguments, "%s is %s; only 6-bit types have a dense element packing", name,
                data_type_name(md.dt));
    return check_stored_dense(name, md);
}

} // namespace

status_t quant_of(
        const char *name, const memory_desc_t &md, const arg_attr_t &a, quant_t &q, int *axis_from_end) {
    if (!a.scales.set)
        return fail(mxdnn_invalid_arguments,
                "%s is %s and has no scales; give them with set_scales (or a packed descriptor)", name,
                data_type_name(md.dt));
    const auto &s = a.scales;
    // Plain s8 and f8_e4m3 with one scale per row have a mask of the rows, or groups as long as a row.
    const dim_t columns = md.dims[md.ndims - 1];
    const bool row_scales = is_row_element(md.dt) && has_role(s.dt, role_high_precision) && s.groups[0] == 1
                            && (s.groups[1] >= columns || !(s.mask & 1 << (md.ndims - 1)));
    const int last_two = (row_scales ? 1 : 3) << (md.ndims - 2);
    int batch_bits = 0;
    for (int i = 0; i < md.ndims - 2; i++)
        if (md.dims[i] != 1) batch_bits |= 1 << i;
    if ((s.mask & last_two) != last_two || (s.mask & batch_bits) != batch_bits || s.mask >= 1 << md.ndims)
        return fail(mxdnn_invalid_arguments,
                "scales of %s have mask %d; block scales of a tensor of %d dims have mask %d", name, s.mask,
                md.ndims, (1 << md.ndims) - 1);
    q = quant_t();
    q.scale_dt = s.dt;
    q.block = s.groups[0] > 1 ? s.groups[0] : s.groups[1];
    *axis_from_end = s.groups[0] > 1 ? 2 : 1;
    q.whole_row = row_scales && md.dt == mxdnn_s8;
    if (row_scales && !(q.whole_row && is_affine_block(q.block))) q.block = std::max<dim_t>(columns, 1);
    MXDNN_CHECK(check_storage(name, md, a));
    if (a.zero_points.set) {
        if (!a.zero_points.same_groups(s))
            return fail(mxdnn_invalid_arguments,
                    "zero points of %s have mask %d and groups %lldx%lld, its scales mask %d and groups %lldx%lld; "
                    "they have to be the same",
                    name, a.zero_points.mask, (long long)a.zero_points.groups[0],
                    (long long)a.zero_points.groups[1], s.mask, (long long)s.groups[0],
                    (long long)s.groups[1]);
        q.zp = a.zero_points_kind == mxdnn_zero_points_minimum ? zero_point_kind_t::minimum
               : a.zero_points.dt == mxdnn_u8                  ? zero_point_kind_t::u8
                                                               : zero_point_kind_t::float_zero;
        q.zp_dt = a.zero_points.dt;
    }
    if (a.global != mxdnn_quantization_mode_undef)
        q.global = batch_of(md) > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
    if (row_scales && !a.zero_points.set && a.global == mxdnn_quantization_mode_undef && *axis_from_end == 1)
        return mxdnn_success;
    if (const char *why = check_quant(md.dt, q))
        return fail(mxdnn_invalid_arguments, "%s is %s with %s scales in groups of %lld: %s", name,
                data_type_name(md.dt), data_type_name(q.scale_dt), (long long)q.block, why);
    return mxdnn_success;
}

memory_desc_t scales_desc(const memory_desc_t &md, const quant_t &q, data_type_t dt, int axis_from_end,
        mxdnn_scales_layout_t layout) {
    memory_desc_t s;
    dim_t dims[max_ndims];
    for (int i = 0; i < md.ndims; i++) dims[i] = md.dims[i];
    dim_t &blocked = dims[md.ndims - axis_from_end];
    if (blocked != runtime_dim) blocked = div_up(blocked, q.block);
    if (layout == mxdnn_scales_swizzle_128x4) {
        // Rows are along the dim that is not blocked. Each matrix is padded on its own.
        const dim_t rows = dims[md.ndims - (3 - axis_from_end)], cols = blocked, batch = batch_of(md);
        const bool known = rows != runtime_dim && cols != runtime_dim && batch != runtime_dim;
        const dim_t flat[2] = {batch, known ? swizzle_128x4::size(rows, cols) : runtime_dim};
        init_strided(s, 2, flat, dt, nullptr);
        return s;
    }
    init_strided(s, md.ndims, dims, dt, nullptr);
    return s;
}

status_t check_sum(const char *name, const memory_desc_t &md, const post_op_t &sum) {
    if (!is_high_precision(md.dt))
        return fail(mxdnn_invalid_arguments, "sum needs %s of f32, bf16 or f16, and it is %s", name,
                data_type_name(md.dt));
    const data_type_info_t *as = data_type_info(sum.dt), *is = data_type_info(md.dt);
    if (as && as->bits != is->bits)
        return fail(mxdnn_invalid_arguments, "sum reads %s as %s, but it is %s; the sizes have to agree",
                name, as->name, is->name);
    return mxdnn_success;
}

status_t resolve_weights(problem_t &p) {
    memory_desc_t &wei = p.weights;
    if (!is_quantised_type(wei.dt))
        return fail(mxdnn_unimplemented,
                "weights are %s; a matmul takes quantised weights (f8 f6 f4 s8 s4 u4 with scales); use oneDNN or "
                "cuBLAS for others",
                data_type_name(wei.dt));
    if (is_packed(wei)) {
        MXDNN_CHECK(check_matches_packed("weights", wei, p.attr.weights));
        if (wei.packed.family != p.engine->target->family)
            return fail(mxdnn_incompatible_target,
                    "weights are packed for %s, but the engine is %s; mx_reorder them",
                    target_family_name(wei.packed.family), p.engine->target->name);
    } else {
        quant_t q;
        int axis = 0;
        MXDNN_CHECK(quant_of("weights", wei, p.attr.weights, q, &axis));
        MXDNN_CHECK(check_block_scales("weights", wei.dt, q));
        if (p.attr.weights.is_dynamic() || p.attr.weights.global > mxdnn_quantization_mode_static_sazp)
            return fail(mxdnn_invalid_arguments, "weights have dynamic scales; a matmul reads weights that "
                                                 "mx_reorder has quantised (static scales)");
        if (axis != 2)
            return fail(mxdnn_invalid_arguments,
                    "the blocks of weights run along N (groups %lldx%lld); a matmul needs them along K (%lldx1)",
                    (long long)p.attr.weights.scales.groups[0], (long long)p.attr.weights.scales.groups[1],
                    (long long)q.block);
        if (is_any(wei)) {
            MXDNN_CHECK(resolve_any("weights", wei, p.attr.weights, *p.engine));
            return check_matches_packed("weights", wei, p.attr.weights);
        }
        MXDNN_CHECK(check_plain("weights", wei));
    }
    return mxdnn_success;
}

status_t check_params_follow(
        int arg, const memory_desc_t &params, const memory_desc_t &rows, const arg_attr_t &a) {
    quant_t q;
    int axis = 0;
    MXDNN_CHECK(quant_of(arg_name(arg), rows, a, q, &axis));
    const bool scales = arg & MXDNN_ARG_ATTR_SCALES;
    const memory_desc_t want = scales_desc(rows, q, params.dt, axis, scales ? a.layout : mxdnn_scales_linear);
    for (int i = 0; i < want.ndims; i++)
        if (params.dims[i] != want.dims[i])
            return fail(mxdnn_invalid_arguments, "dim %d of %s is %lld; it follows the rows, %s, and is %lld",
                    i, arg_name(arg), (long long)params.dims[i], dims_text(rows).c_str(),
                    (long long)want.dims[i]);
    // Matrices in the 128x4 order lie one after the other.
    if (scales && a.layout == mxdnn_scales_swizzle_128x4 && want.dims[0] > 1
            && params.strides[0] != want.strides[0])
        return fail(mxdnn_invalid_arguments, "stride 0 of %s is %lld; in the 128x4 order it is %lld",
                arg_name(arg), (long long)params.strides[0], (long long)want.strides[0]);
    return mxdnn_success;
}

status_t check_block_scales(const char *name, data_type_t dt, const quant_t &q) {
    if (const char *why = check_quant(dt, q))
        return fail(mxdnn_unimplemented, "%s has one scale per row: %s", name, why);
    return mxdnn_success;
}

status_t check_global_scale(const char *name, const memory_desc_t &md, const arg_attr_t &a) {
    if (a.global == mxdnn_quantization_mode_undef || batch_of(md) != runtime_dim) return mxdnn_success;
    return fail(mxdnn_unimplemented,
            "%s is %s and has a global scale for each of its matrices; how many there are cannot be a runtime value",
            name, dims_text(md).c_str());
}

reason_t check_decoders(const problem_t &p) {
    const struct {
        const char *name;
        const memory_desc_t &md;
        const arg_attr_t &attr;
    } sides[] = {
            {"src", p.src, p.attr.src}, {"weights", p.weights, p.attr.weights}, {"dst", p.dst, p.attr.dst}};
    for (const auto &s : sides) {
        if (s.md.ndims == 0 || !is_quantised_type(s.md.dt)) continue;
        quant_t q;
        int axis = 0;
        if (is_packed(s.md))
            q = s.md.packed.quant;
        else if (quant_of(s.name, s.md, s.attr, q, &axis) != mxdnn_success)
            continue;
        if (decoder_of(s.md.dt, q) == decoder_t::none)
            return no(s.name, to_string(s.md).c_str(), "a format that kernels decode");
    }
    return yes();
}

data_type_t source_format(const problem_t &p, quant_t &q) {
    int axis = 0;
    q = quant_t();
    if (!p.attr.src.scales.set) return p.src.dt;
    memory_desc_t codes = p.src;
    if (is_high_precision(codes.dt))
        codes.dt = p.attr.src.mode == mxdnn_quantization_mode_dynamic_fp ? mxdnn_f8_e4m3 : mxdnn_s8;
    const bool known = quant_of("src", codes, p.attr.src, q, &axis) == mxdnn_success && axis == 1;
    return known ? codes.dt : mxdnn_data_type_undef;
}

source_recipe_t source_recipe(const problem_t &p) {
    source_recipe_t r;
    if (!p.attr.src.is_dynamic()) return r;
    quant_t q;
    r.kind = source_format(p, q) == mxdnn_f8_e4m3 ? recipe_kind_t::row_fp8
             : q.scale_dt == mxdnn_e8m0           ? recipe_kind_t::mx_int8
                                                  : recipe_kind_t::row_int8;
    r.rounding = p.attr.src.rounding;
    return r;
}

namespace {

// For a source in high precision that is quantised in execute.
status_t check_source_recipe(const problem_t &p) {
    const arg_attr_t &a = p.attr.src;
    if (a.layout != mxdnn_scales_linear || a.packing != mxdnn_element_packing_bytes)
        return fail(mxdnn_invalid_arguments, "src is quantised in execute, so a scales layout or an element "
                                             "packing has no meaning for it; leave them out");
    quant_t q;
    const data_type_t dt = source_format(p, q);
    const bool blocks = a.mode == mxdnn_quantization_mode_dynamic_mx && q.scale_dt == mxdnn_e8m0;
    const bool rows =
            (a.mode == mxdnn_quantization_mode_dynamic_affine || a.mode == mxdnn_quantization_mode_dynamic_fp)
            && has_row_scale(dt, q) && q.scale_dt == mxdnn_f32;
    if (dt == mxdnn_data_type_undef || !(blocks || rows) || a.zero_points.set
            || a.global != mxdnn_quantization_mode_undef)
        return fail(mxdnn_unimplemented,
                "src is %s and is to be quantised by %s with %s scales in groups of %lldx%lld; possible "
                "are dynamic_mx with e8m0 scales in groups of 1x32 (MXINT8), and dynamic_affine (s8) or "
                "dynamic_fp (f8_e4m3) with one f32 scale per row, without zero points and global scale",
                data_type_name(p.src.dt), quantization_mode_name(a.mode), data_type_name(a.scales.dt),
                (long long)a.scales.groups[0], (long long)a.scales.groups[1]);
    if (!is_scale_rounding_defined(false, a.rounding))
        return fail(mxdnn_invalid_arguments, "the scale rounding of src is `even`, which is not defined for "
                                             "s8; floor, ceil and rceil are");
    return mxdnn_success;
}

} // namespace

status_t check_src(const problem_t &p) {
    const memory_desc_t &src = p.src;
    if (is_quantised_type(src.dt)) {
        quant_t q;
        int axis = 0;
        MXDNN_CHECK(quant_of("src", src, p.attr.src, q, &axis));
        if (axis != 1)
            return fail(mxdnn_invalid_arguments,
                    "the blocks of src run along its rows (groups %lldx%lld); a matmul needs them along K (1x%lld)",
                    (long long)p.attr.src.scales.groups[0], (long long)p.attr.src.scales.groups[1],
                    (long long)q.block);
        if (p.attr.src.is_dynamic() || p.attr.src.global > mxdnn_quantization_mode_static_sazp)
            return fail(mxdnn_invalid_arguments,
                    "src has dynamic scales; they are read, so they have to be static");
    } else if (!is_high_precision(src.dt)) {
        return fail(mxdnn_invalid_data_type, "src is %s; possible are f32 bf16 f16 and quantised types",
                data_type_name(src.dt));
    } else if (p.attr.src.is_dynamic()) {
        return check_source_recipe(p);
    } else if (!p.attr.src.is_default()) {
        return fail(mxdnn_invalid_arguments,
                "src is %s and has quantisation attributes that are static; only quantised types have",
                data_type_name(src.dt));
    }
    return mxdnn_success;
}

status_t check_dst(const problem_t &p) {
    const memory_desc_t &dst = p.dst;
    if (is_quantised_type(dst.dt)) {
        quant_t q;
        int axis = 0;
        MXDNN_CHECK(quant_of("dst", dst, p.attr.dst, q, &axis));
        MXDNN_CHECK(check_block_scales("dst", dst.dt, q));
        if (axis != 1)
            return fail(mxdnn_invalid_arguments,
                    "the blocks of dst run along its rows (groups %lldx%lld); a matmul writes them along N (1x%lld)",
                    (long long)p.attr.dst.scales.groups[0], (long long)p.attr.dst.scales.groups[1],
                    (long long)q.block);
        MXDNN_CHECK(check_dynamic("dst", dst.dt, q, p.attr.dst));
    } else if (!is_high_precision(dst.dt)) {
        return fail(mxdnn_invalid_data_type, "dst is %s; possible are f32 bf16 f16 and quantised types",
                data_type_name(dst.dt));
    } else if (!p.attr.dst.is_default()) {
        return fail(mxdnn_invalid_arguments,
                "dst is %s and has quantisation attributes; only quantised types have",
                data_type_name(dst.dt));
    }
    return mxdnn_success;
}

void list_quant_args(pd_t &pd, int arg, const memory_desc_t &md, const arg_attr_t &a, arg_use_t use) {
    quant_t q;
    int axis = 0;
    if (!is_quantised_type(md.dt) || is_packed(md) || quant_of("", md, a, q, &axis) != mxdnn_success) return;
    const auto direction = [&](mxdnn_quantization_mode_t mode) {
        return use == arg_use_t::output && mode > mxdnn_quantization_mode_static_sazp ? arg_use_t::output
                                                                                      : arg_use_t::input;
    };
    pd.args.push_back({MXDNN_ARG_ATTR_SCALES | arg, direction(a.mode),
            scales_desc(md, q, q.scale_dt, axis, a.layout), a.layout == mxdnn_scales_linear});
    if (q.zp != zero_point_kind_t::none)
        pd.args.push_back({MXDNN_ARG_ATTR_ZERO_POINTS | arg, direction(a.mode),
                scales_desc(md, q, q.zp_dt, axis, mxdnn_scales_linear), true});
    if (q.global != global_scale_kind_t::none) {
        memory_desc_t g;
        const dim_t dims[1] = {q.global == global_scale_kind_t::one ? 1 : batch_of(md)};
        init_strided(g, 1, dims, mxdnn_f32, nullptr);
        pd.args.push_back({MXDNN_ARG_ATTR_GLOBAL_SCALE | arg, direction(a.global), g, false});
    }
}

} // namespace impl
} // namespace mxdnn
