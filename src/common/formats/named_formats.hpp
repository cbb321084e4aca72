// SPDX-License-Identifier: Apache-2.0
// Which element, scale, block, zero point and global scale make a format; the table of those that have a
// name.
#pragma once

#include "common/formats/format_list.hpp"
#include "common/formats/scale_rounding.hpp"
#include "common/quant.hpp"

namespace mxdnn {
namespace impl {

constexpr dim_t mx_block = 32;
constexpr dim_t nvfp4_block = 16;
constexpr dim_t affine_blocks[] = {32, 64, 128, 256};

// Families of formats with the same numerics. affine is integers under floating-point scales. row_fp8 is
// plain f8_e4m3 with one floating-point scale per row; only sources of matmuls use it. nvfp4 is f4_e2m1 under
// scales of a small float.
enum class quant_family_t : uint8_t { none, mx, nvfp4, affine, row_fp8 };

// The family of an element and a scale type, even if the format is not legal in its details.
MXDNN_HD constexpr quant_family_t quant_family(data_type_t elem, const quant_t &q) {
    if (has_role(elem, role_mx_element) && q.scale_dt == mxdnn_e8m0) return quant_family_t::mx;
    if (elem == mxdnn_f4_e2m1 && has_type(fp4_scale_types(), q.scale_dt)) return quant_family_t::nvfp4;
    if (has_role(elem, role_affine_element) && has_role(q.scale_dt, role_high_precision))
        return quant_family_t::affine;
    if (elem == mxdnn_f8_e4m3 && has_role(q.scale_dt, role_high_precision)) return quant_family_t::row_fp8;
    return quant_family_t::none;
}

// Whether a row of a matmul's source has one scale.
MXDNN_HD constexpr bool has_row_scale(data_type_t elem, const quant_t &q) {
    const quant_family_t f = quant_family(elem, q);
    return f == quant_family_t::row_fp8 || (f == quant_family_t::affine && q.whole_row);
}

// Types that a matmul's source may have with one scale per row.
MXDNN_HD constexpr bool is_row_element(data_type_t elem) { return elem == mxdnn_s8 || elem == mxdnn_f8_e4m3; }

MXDNN_HD constexpr bool is_affine_block(dim_t block) {
    bool is_one = false;
    for (dim_t b : affine_blocks) is_one = is_one || b == block;
    return is_one;
}

inline constexpr text_and_names_t<quantized_element_types> quantized_types_text{
        "the element type is not a quantised one; these are "};
inline constexpr text_and_names_t<fp4_scale_types> fp4_scales_text{
        "f4_e2m1 takes scales of type e8m0, one per 32 elements (MXFP4), or one per 16 elements of type ",
        " or "};

// Null if element and scale make a format that weights and other tensors may have. Otherwise the end of a
// sentence ("...: "): what is wrong and what would be right.
constexpr const char *check_quant(data_type_t elem, const quant_t &q) {
    if (!has_role(elem, role_mx_element | role_affine_element)) return quantized_types_text.text;
    const quant_family_t family = quant_family(elem, q);
    switch (family) {
    case quant_family_t::none:
        if (elem == mxdnn_f4_e2m1) return fp4_scales_text.text;
        if (elem == mxdnn_s8)
            return "s8 takes scales of type e8m0, one per 32 elements (MXINT8), or of type bf16, f16 or f32";
        if (has_role(elem, role_affine_element)) return "s4 and u4 take scales of type bf16, f16 or f32";
        return "an MX element type takes scales of type e8m0, one per 32 elements";
    case quant_family_t::row_fp8:
        return "f8_e4m3 with floating-point scales has one per row, and only a matmul's source has those; blocks "
               "of f8_e4m3 (MXFP8) take scales of type e8m0, one per 32 elements";
    default: break;
    }

    if (q.global != global_scale_kind_t::none) {
        if (family != quant_family_t::nvfp4 || q.scale_dt != mxdnn_f8_e4m3)
            return "only f4_e2m1 with f8_e4m3 scales (NVFP4) has a global scale";
        if (q.global != global_scale_kind_t::one && q.global != global_scale_kind_t::per_expert)
            return "NVFP4 has no global scale, one, or one per expert";
    }
    if (family == quant_family_t::mx && q.block != mx_block)
        return "scales of type e8m0 belong to blocks of 32 elements";
    if (family == quant_family_t::nvfp4 && q.block != nvfp4_block)
        return "scales of f4_e2m1 other than e8m0 belong to blocks of 16 elements";
    if (family != quant_family_t::affine) {
        const bool no_zero_point = q.zp == zero_point_kind_t::none && q.zp_dt == mxdnn_data_type_undef;
        return no_zero_point ? nullptr : "only u4 has zero points";
    }

    if (!is_affine_block(q.block))
        return elem == mxdnn_s8
                       ? "groups of s8 have 32, 64, 128 or 256 elements, and only a matmul's source has one "
                         "scale per row"
                       : "int4 groups have 32, 64, 128 or 256 elements";
    if (q.zp != zero_point_kind_t::none && elem != mxdnn_u4)
        return elem == mxdnn_s8 ? "s8 is symmetric and has no zero points; u4 has"
                                : "s4 is symmetric and has no zero points; u4 has";
    switch (q.zp) {
    case zero_point_kind_t::none:
        return q.zp_dt == mxdnn_data_type_undef ? nullptr : "a zero-point type needs a kind of zero point";
    case zero_point_kind_t::u8:
        return q.zp_dt == mxdnn_u8 ? nullptr : "integer zero points of u4 have type u8";
    case zero_point_kind_t::float_zero:
    case zero_point_kind_t::minimum:
        return has_role(q.zp_dt, role_high_precision)
                       ? nullptr
                       : "floating-point zero points of u4 have type bf16, f16 or f32";
    }
    return "the kind of zero point is none, u8, float_zero or minimum";
}

// Null if quantising can compute the scales (and zero points). Otherwise the reason why not. The format is
// legal.
MXDNN_HD constexpr const char *check_dynamic_quant(
        data_type_t elem, const quant_t &q, scale_rounding_t rounding) {
    switch (quant_family(elem, q)) {
    case quant_family_t::mx: {
        const bool is_float = is_float_type(elem);
        if (is_scale_rounding_defined(is_float, rounding)) return nullptr;
        return is_float ? "the scale rounding is floor, ceil, even or rceil"
                        : "the scale rounding `even` is not defined for s8; floor, ceil and rceil are";
    }
    case quant_family_t::nvfp4: return nullptr;
    case quant_family_t::affine:
        if (q.zp == zero_point_kind_t::float_zero)
            return "scales and floating-point zero points of u4 are taken as they are given, not computed; "
                   "use zero points of type u8, or a minimum";
        if (elem == mxdnn_u4 && q.zp == zero_point_kind_t::none)
            return "u4 without zero points cannot hold negative values, so its scales are taken as they are "
                   "given, not computed; use s4, or zero points of type u8";
        return nullptr;
    case quant_family_t::row_fp8:
    case quant_family_t::none: break;
    }
    return "the element and scale types make no quantised format";
}

// The decoder of a format in kernels, on every backend. Formats without one are left to the references, whose
// code uses the traits of types.
enum class decoder_t : uint8_t {
    none,
    mxfp8_e4m3,
    mxfp8_e5m2,
    mxfp6_e2m3,
    mxfp6_e3m2,
    mxfp4,
    mxint8,
    nvfp4,
    int4, // every group-affine format of 4 bits
    int8, // the same of 8 bits
    row_int8,
    row_fp8,
};

struct named_format_t {
    const char *name;
    data_type_t elem;
    quant_t quant;
    decoder_t decoder = decoder_t::none;
};

constexpr quant_t mx_quant{mxdnn_e8m0, mx_block};
constexpr quant_t nvfp4_quant{mxdnn_f8_e4m3, nvfp4_block};
constexpr quant_t int4_quant{mxdnn_bf16, 32};
constexpr quant_t int4_zp_quant{mxdnn_f16, 32, zero_point_kind_t::u8, mxdnn_u8};
constexpr quant_t int4_min_quant{mxdnn_f16, 32, zero_point_kind_t::minimum, mxdnn_f16};
constexpr quant_t int8_quant{mxdnn_f16, 32};

// Formats with a name of one word, for mxdnn-bench, mxdnn-pack and the examples. Other groups, zero points
// and a global scale are given beside the word. Kernels accept a format by its decoder. Tests, tables of
// documents and scripts/update-enums read these rows.
// clang-format off
inline constexpr named_format_t named_formats[] = {
    {"mxfp8",      mxdnn_f8_e4m3, mx_quant,      decoder_t::mxfp8_e4m3},
    {"mxfp8_e5m2", mxdnn_f8_e5m2, mx_quant,      decoder_t::mxfp8_e5m2},
    {"mxfp6",      mxdnn_f6_e2m3, mx_quant,      decoder_t::mxfp6_e2m3},
    {"mxfp6_e3m2", mxdnn_f6_e3m2, mx_quant,      decoder_t::mxfp6_e3m2},
    {"mxfp4",      mxdnn_f4_e2m1, mx_quant,      decoder_t::mxfp4},
    {"mxint8",     mxdnn_s8,      mx_quant,      decoder_t::mxint8},
    {"nvfp4",      mxdnn_f4_e2m1, nvfp4_quant,   decoder_t::nvfp4},
    {"int4",       mxdnn_s4,      int4_quant,    decoder_t::int4},
    {"int4_zp",    mxdnn_u4,      int4_zp_quant, decoder_t::int4},
    {"int4_min",   mxdnn_u4,      int4_min_quant, decoder_t::int4},
    {"int8",       mxdnn_s8,      int8_quant,    decoder_t::int8},
};
// clang-format on

// The format of a word; null if there is none.
constexpr const named_format_t *named_format(const char *name) {
    if (!name) return nullptr;
    for (const named_format_t &row : named_formats)
        if (equal_names(row.name, name)) return &row;
    return nullptr;
}

// The name of exactly this format; null if it has none.
constexpr const char *format_name(data_type_t elem, const quant_t &q) {
    for (const named_format_t &row : named_formats)
        if (row.elem == elem && row.quant == q) return row.name;
    return nullptr;
}

// The decoder of a format, which need not have a name.
constexpr decoder_t decoder_of(data_type_t elem, const quant_t &q) {
    const quant_family_t family = quant_family(elem, q);
    if (family == quant_family_t::row_fp8) return decoder_t::row_fp8;
    if (has_row_scale(elem, q)) return decoder_t::row_int8;
    if (check_quant(elem, q)) return decoder_t::none;
    if (family == quant_family_t::affine) return elem == mxdnn_s8 ? decoder_t::int8 : decoder_t::int4;
    for (const named_format_t &row : named_formats)
        if (row.elem == elem && row.quant.scale_dt == q.scale_dt) return row.decoder;
    return decoder_t::none;
}

// The dynamic mode that computes the scales of a format.
constexpr mxdnn_quantization_mode_t dynamic_mode_of(data_type_t elem, const quant_t &q) {
    switch (quant_family(elem, q)) {
    case quant_family_t::mx: return mxdnn_quantization_mode_dynamic_mx;
    case quant_family_t::nvfp4: return mxdnn_quantization_mode_dynamic_fp;
    case quant_family_t::affine: return mxdnn_quantization_mode_dynamic_affine;
    default: return mxdnn_quantization_mode_undef;
    }
}

// Whether a tensor of this format can have a global scale.
constexpr bool takes_global_scale(data_type_t elem, quant_t q) {
    q.global = global_scale_kind_t::one;
    return !check_quant(elem, q);
}

} // namespace impl
} // namespace mxdnn
