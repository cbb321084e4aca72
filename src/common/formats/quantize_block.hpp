// SPDX-License-Identifier: Apache-2.0
// Quantising one block and decoding one element, for every quantised format: the scalar truth that fast
// code is compared with. doc/reference/formats.md has the same rules in words.
//
// All of it runs on devices too. The last part picks a family's function by element type and quant_t at run
// time.
#pragma once

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {

// Codes of the scale and the zero point of one block.
struct block_params_t {
    uint32_t scale = 0;
    uint32_t zp = 0;
};

// The largest magnitude_bits(). It is above every finite value if the block holds Inf or NaN.
MXDNN_HD constexpr uint32_t block_amax_bits(const float *x, int n) {
    uint32_t amax = 0;
    for (int i = 0; i < n; i++)
        if (magnitude_bits(x[i]) > amax) amax = magnitude_bits(x[i]);
    return amax;
}

// ---- MX: elements times a power of two ----

template <typename element_t>
MXDNN_HD constexpr uint32_t mx_quantize(float x, uint32_t scale) {
    if (scale == e8m0_poison) return element_t::poisoned_code;
    return element_t::encode(mul_f32(x, e8m0_t::decode_inverse(scale)));
}

template <typename element_t>
MXDNN_HD constexpr float mx_dequantize(uint32_t code, uint32_t scale) {
    return mul_f32(element_t::decode(code), e8m0_t::decode(scale)); // exact, or Inf
}

// Returns the scale. n < 32 is a partial block.
template <typename element_t>
MXDNN_HD constexpr uint32_t mx_quantize_block(
        const float *x, int n, scale_rounding_t rounding, uint8_t *codes) {
    const uint32_t scale = e8m0_from_amax<element_t>(block_amax_bits(x, n), rounding);
    for (int i = 0; i < n; i++) codes[i] = uint8_t(mx_quantize<element_t>(x[i], scale));
    return scale;
}

// ---- NVFP4: f4_e2m1 under scales of a small float. With a global scale they are f8_e4m3 ----

// The largest finite magnitude so far. The global scale is computed from it.
MXDNN_HD constexpr float nvfp4_global_amax(float amax, float x) {
    const float magnitude = float_of(magnitude_bits(x));
    return is_finite(x) && magnitude > amax ? magnitude : amax;
}

// The result is 0 for a matrix of zeros, for a matrix without finite values, and if the quotient underflows.
MXDNN_HD constexpr float nvfp4_global_scale(float amax) {
    return div_f32(amax, f8_e4m3_t::max * f4_e2m1_t::max);
}

// s clamped to the normal values of the type. NaN, which only a global scale can cause, stays NaN.
template <typename scale_t = f8_e4m3_t>
MXDNN_HD constexpr uint32_t nvfp4_encode_scale(float s) {
    if (is_nan(s)) return scale_t::nan_code;
    return scale_t::encode(s > scale_t::min_normal ? s : scale_t::min_normal);
}

template <typename scale_t = f8_e4m3_t>
MXDNN_HD constexpr uint32_t nvfp4_scale(uint32_t amax_bits) {
    if (amax_bits >= f32_inf_bits) return scale_t::nan_code;
    return nvfp4_encode_scale<scale_t>(div_f32(float_of(amax_bits), f4_e2m1_t::max));
}

MXDNN_HD constexpr uint32_t nvfp4_scale(uint32_t amax_bits, float global) {
    if (amax_bits >= f32_inf_bits) return f8_e4m3_t::nan_code;
    if (global == 0) return nvfp4_encode_scale(0);
    return nvfp4_encode_scale(div_f32(div_f32(float_of(amax_bits), f4_e2m1_t::max), global));
}

// x * factor if the factor is finite, else x / divisor. ±0 if there is nothing to divide by.
MXDNN_HD constexpr uint32_t nvfp4_quantize_by(float x, float factor, float divisor) {
    if (is_nan(divisor)) return 0;
    if (is_finite(factor)) return f4_e2m1_t::encode(mul_f32(x, factor));
    if (divisor == 0) return (bits_of(x) & f32_sign_mask) ? f4_e2m1_t::sign_code : 0;
    return f4_e2m1_t::encode(div_f32(x, divisor));
}

template <typename scale_t = f8_e4m3_t>
MXDNN_HD constexpr uint32_t nvfp4_quantize(float x, uint32_t scale) {
    const float s = scale_t::decode(scale);
    return nvfp4_quantize_by(x, div_f32(1.f, s), s);
}

MXDNN_HD constexpr uint32_t nvfp4_quantize(float x, uint32_t scale, float global) {
    const float s = f8_e4m3_t::decode(scale);
    return nvfp4_quantize_by(x, div_f32(div_f32(1.f, global), s), mul_f32(global, s));
}

template <typename scale_t = f8_e4m3_t>
MXDNN_HD constexpr float nvfp4_dequantize(uint32_t code, uint32_t scale) {
    return mul_f32(f4_e2m1_t::decode(code), scale_t::decode(scale));
}

MXDNN_HD constexpr float nvfp4_dequantize(uint32_t code, uint32_t scale, float global) {
    return mul_f32(f4_e2m1_t::decode(code), mul_f32(global, f8_e4m3_t::decode(scale)));
}

// These return the scale. n < 16 is a partial block.
template <typename scale_t = f8_e4m3_t>
MXDNN_HD constexpr uint32_t nvfp4_quantize_block(const float *x, int n, uint8_t *codes) {
    const uint32_t scale = nvfp4_scale<scale_t>(block_amax_bits(x, n));
    for (int i = 0; i < n; i++) codes[i] = uint8_t(nvfp4_quantize<scale_t>(x[i], scale));
    return scale;
}

MXDNN_HD constexpr uint32_t nvfp4_quantize_block(const float *x, int n, float global, uint8_t *codes) {
    const uint32_t scale = nvfp4_scale(block_amax_bits(x, n), global);
    for (int i = 0; i < n; i++) codes[i] = uint8_t(nvfp4_quantize(x[i], scale, global));
    return scale;
}

// ---- Group-affine integers: s4, u4 and s8; scale (and floating-point zero) given as f32 ----

constexpr int int4_mid = 8; // the code in the middle of u4

// zp is 0 for codes without zero points. Quotients are first clamped to a range beyond which no zero point
// changes the code.
template <typename element_t>
MXDNN_HD constexpr uint32_t affine_quantize(float x, float scale, int zp) {
    const int steps = rne_clamp(div_f32(x, scale), -1024, 1024) + zp;
    return element_t::from_int(steps < element_t::lowest    ? element_t::lowest
                               : steps > element_t::highest ? element_t::highest
                                                            : steps);
}

template <typename element_t>
MXDNN_HD constexpr float affine_dequantize(uint32_t code, float scale, int zp) {
    return mul_f32(float(element_t::to_int(code) - zp), scale);
}

// Zero points that are added; `code` is the one whose value they are (code_of_added).
MXDNN_HD constexpr uint32_t added_zero_quantize(float x, float scale, float zero, int code) {
    return affine_quantize<u4_t>(sub_f32(x, zero), scale, code);
}

MXDNN_HD constexpr float added_zero_dequantize(uint32_t code, float scale, float zero, int of) {
    return add_f32(affine_dequantize<u4_t>(code, scale, of), zero);
}

// The scale as it is stored. A scale that is 0 in its type becomes 1; one that overflows becomes the largest
// value.
template <typename scale_t>
MXDNN_HD constexpr uint32_t affine_encode_scale(float scale) {
    const uint32_t code = scale_t::encode_saturating(scale);
    return scale_t::decode(code) == 0 ? scale_t::encode(1.f) : code;
}

// The parameters that quantise the elements of a block.
struct chosen_params_t {
    block_params_t params;
    bool zeros = false; // every code is the zero point, whatever the element is
};

// What the largest magnitude of a group is divided by: the largest code, and half a step more where the codes
// have one more on the other side.
template <typename element_t>
constexpr float symmetric_range = float(element_t::highest)
                                  + (element_t::lowest == -element_t::highest ? 0.f : 0.5f);

// Symmetric.
template <typename element_t, typename scale_t>
MXDNN_HD constexpr chosen_params_t symmetric_choose_params(const float *x, int n) {
    const uint32_t amax = block_amax_bits(x, n);
    const float wanted = div_f32(float_of(amax), symmetric_range<element_t>);
    chosen_params_t c;
    c.params.scale = amax >= f32_inf_bits ? scale_t::nan_code : affine_encode_scale<scale_t>(wanted);
    c.zeros = scale_t::decode(scale_t::encode_saturating(wanted)) == 0;
    return c;
}

// Asymmetric, zero point of type u8.
template <typename scale_t>
MXDNN_HD constexpr chosen_params_t u4_choose_params(const float *x, int n) {
    float lo = 0, hi = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    chosen_params_t c;
    c.params.zp = int4_mid;
    const float wanted = div_f32(sub_f32(hi, lo), 15.f);
    const bool poisoned = block_amax_bits(x, n) >= f32_inf_bits;
    const bool empty = scale_t::decode(scale_t::encode_saturating(wanted)) == 0;
    c.params.scale = poisoned ? scale_t::nan_code : affine_encode_scale<scale_t>(wanted);
    c.zeros = poisoned || empty;
    if (!c.zeros)
        c.params.zp = uint32_t(
                rne_clamp(div_f32(-lo, scale_t::decode(c.params.scale)), u4_t::lowest, u4_t::highest));
    return c;
}

// From the minimum up. A minimum of 0 is +0. The scale of equal elements is 1.
template <typename scale_t, typename min_t>
MXDNN_HD constexpr chosen_params_t u4_min_choose_params(const float *x, int n) {
    chosen_params_t c;
    if (block_amax_bits(x, n) >= f32_inf_bits) {
        c.params.scale = scale_t::nan_code;
        c.zeros = true;
        return c;
    }
    float lo = n > 0 ? x[0] : 0, hi = lo;
    for (int i = 1; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
    }
    c.params.scale = affine_encode_scale<scale_t>(div_f32(sub_f32(hi, lo), float(u4_t::highest)));
    c.params.zp = min_t::encode_saturating(add_f32(lo, 0.f));
    return c;
}

// The parameters that a group of a format gets whose parameters can be computed.
template <typename scale_t>
MXDNN_HD constexpr chosen_params_t affine_choose_params(
        data_type_t elem, const quant_t &q, const float *x, int n) {
    chosen_params_t c;
    if (elem == mxdnn_s8) return symmetric_choose_params<s8_t, scale_t>(x, n);
    if (elem == mxdnn_s4) return symmetric_choose_params<s4_t, scale_t>(x, n);
    if (q.zp != zero_point_kind_t::minimum) return u4_choose_params<scale_t>(x, n);
    visit_type(high_precision_types(), q.zp_dt,
            [&](auto m) { c = u4_min_choose_params<scale_t, decltype(m)>(x, n); });
    return c;
}

// ---- s8 or f8_e4m3 with one scale per row: sources that a matmul quantises ----

// The largest magnitude divided by that of the largest code. NaN if the row holds NaN or Inf; 1 if the
// quotient is 0.
MXDNN_HD constexpr float row_scale_of(uint32_t amax_bits, float largest_code) {
    if (amax_bits >= f32_inf_bits) return float_of(f32_nan_bits);
    const float scale = div_f32(float_of(amax_bits), largest_code);
    return scale == 0 ? 1.f : scale;
}
MXDNN_HD constexpr float row_int8_scale(uint32_t amax_bits) {
    return row_scale_of(amax_bits, float(s8_t::highest));
}
MXDNN_HD constexpr float row_fp8_scale(uint32_t amax_bits) { return row_scale_of(amax_bits, f8_e4m3_t::max); }

// A NaN scale gives codes of 0.
MXDNN_HD constexpr uint32_t row_fp8_quantize(float x, float scale) {
    return is_nan(scale) ? 0 : f8_e4m3_t::encode(div_f32(x, scale));
}

// Symmetric. A NaN scale gives codes of 0.
MXDNN_HD constexpr uint32_t row_int8_quantize(float x, float scale) {
    return is_nan(scale) ? 0 : s8_t::from_int(rne_clamp(div_f32(x, scale), -s8_t::highest, s8_t::highest));
}

// ---- Any format, chosen at run time ---- check_quant() accepts the format. `global` is read only if
// q.global is not `none`.

// The f32 value of a scale or a floating-point zero.
MXDNN_HD constexpr float decode_value(data_type_t dt, uint32_t code) {
    float x = float_of(f32_nan_bits);
    visit_data_type(dt, [&](auto t) { x = decltype(t)::decode(code); });
    return x;
}

// A value of a high-precision type, by the type's usual conversion.
MXDNN_HD constexpr uint32_t encode_value(data_type_t dt, float x) {
    uint32_t code = 0;
    visit_type(high_precision_types(), dt, [&](auto t) { code = decltype(t)::encode(x); });
    return code;
}

// Quantises with given scale and zero point of a group.
MXDNN_HD constexpr uint32_t affine_quantize_element(
        data_type_t elem, const quant_t &q, const block_params_t &p, float x) {
    const float scale = decode_value(q.scale_dt, p.scale);
    if (is_added(q.zp))
        return added_zero_quantize(x, scale, decode_value(q.zp_dt, p.zp), code_of_added(q.zp));
    const int zp = q.zp == zero_point_kind_t::u8 ? int(p.zp) : 0;
    uint32_t code = 0;
    visit_type(
            affine_element_types(), elem, [&](auto e) { code = affine_quantize<decltype(e)>(x, scale, zp); });
    return code;
}

// Computes scale and zero point, and quantises. A format that check_dynamic_quant() refuses gives a poisoned
// block.
MXDNN_HD constexpr block_params_t quantize_block(data_type_t elem, const quant_t &q,
        scale_rounding_t rounding, float global, const float *x, int n, uint8_t *codes) {
    block_params_t p;
    for (int i = 0; i < n; i++) codes[i] = 0;
    switch (quant_family(elem, q)) {
    case quant_family_t::mx:
        visit_type(mx_element_types(), elem,
                [&](auto e) { p.scale = mx_quantize_block<decltype(e)>(x, n, rounding, codes); });
        break;
    case quant_family_t::nvfp4:
        if (q.global == global_scale_kind_t::none)
            visit_member(fp4_scale_types(), q.scale_dt,
                    [&](auto s) { p.scale = nvfp4_quantize_block<decltype(s)>(x, n, codes); });
        else
            p.scale = nvfp4_quantize_block(x, n, global, codes);
        break;
    case quant_family_t::affine:
        visit_type(high_precision_types(), q.scale_dt, [&](auto s) {
            using scale_t = decltype(s);
            if (check_dynamic_quant(elem, q, rounding)) {
                p.scale = scale_t::nan_code;
                return;
            }
            const chosen_params_t c = affine_choose_params<scale_t>(elem, q, x, n);
            p = c.params;
            for (int i = 0; i < n; i++)
                codes[i] = uint8_t(c.zeros ? p.zp : affine_quantize_element(elem, q, p, x[i]));
        });
        break;
    case quant_family_t::row_fp8:
    case quant_family_t::none: break;
    }
    return p;
}

// The values that the scale of a block depends on.
MXDNN_HD constexpr e8m0_target_t e8m0_target_of(data_type_t elem) {
    e8m0_target_t target{};
    visit_type(mx_element_types(), elem, [&](auto e) {
        using t = decltype(e);
        target = {t::emax, t::mantissa_bits, t::max, t::is_float};
    });
    return target;
}

// The scale and zero point that quantize_block() computes. Its codes are those of quantize_element() under
// these parameters, or all the zero point. For callers that compute codes one by one.
MXDNN_HD constexpr chosen_params_t choose_params(
        data_type_t elem, const quant_t &q, scale_rounding_t rounding, float global, const float *x, int n) {
    chosen_params_t c;
    const quant_family_t family = quant_family(elem, q);
    if (family == quant_family_t::mx || family == quant_family_t::nvfp4) {
        const uint32_t amax = block_amax_bits(x, n);
        if (family == quant_family_t::mx)
            c.params.scale = e8m0_from_amax(amax, e8m0_target_of(elem), rounding);
        else if (q.global == global_scale_kind_t::none)
            visit_member(fp4_scale_types(), q.scale_dt,
                    [&](auto s) { c.params.scale = nvfp4_scale<decltype(s)>(amax); });
        else
            c.params.scale = nvfp4_scale(amax, global);
        return c;
    }
    c.zeros = true; // not a format, or a refused one
    if (family == quant_family_t::affine)
        visit_type(high_precision_types(), q.scale_dt, [&](auto s) {
            using scale_t = decltype(s);
            if (check_dynamic_quant(elem, q, rounding))
                c.params.scale = scale_t::nan_code;
            else
                c = affine_choose_params<scale_t>(elem, q, x, n);
        });
    return c;
}

// Quantises with given scale and zero point.
MXDNN_HD constexpr uint32_t quantize_element(
        data_type_t elem, const quant_t &q, const block_params_t &p, float global, float x) {
    uint32_t code = 0;
    switch (quant_family(elem, q)) {
    case quant_family_t::mx:
        visit_type(mx_element_types(), elem, [&](auto e) { code = mx_quantize<decltype(e)>(x, p.scale); });
        break;
    case quant_family_t::nvfp4:
        if (q.global == global_scale_kind_t::none)
            visit_member(fp4_scale_types(), q.scale_dt,
                    [&](auto s) { code = nvfp4_quantize<decltype(s)>(x, p.scale); });
        else
            code = nvfp4_quantize(x, p.scale, global);
        break;
    case quant_family_t::affine: code = affine_quantize_element(elem, q, p, x); break;
    case quant_family_t::row_fp8:
    case quant_family_t::none: break;
    }
    return code;
}

MXDNN_HD constexpr float dequantize_element(
        data_type_t elem, const quant_t &q, const block_params_t &p, float global, uint32_t code) {
    float x = float_of(f32_nan_bits);
    const quant_family_t family = quant_family(elem, q);
    if (family == quant_family_t::none) return x;
    if (family == quant_family_t::mx) {
        visit_type(mx_element_types(), elem, [&](auto e) { x = mx_dequantize<decltype(e)>(code, p.scale); });
        return x;
    }
    if (family == quant_family_t::nvfp4) {
        if (q.global == global_scale_kind_t::none)
            visit_member(fp4_scale_types(), q.scale_dt,
                    [&](auto s) { x = nvfp4_dequantize<decltype(s)>(code, p.scale); });
        else
            x = nvfp4_dequantize(code, p.scale, global);
        return x;
    }
    const float scale = decode_value(q.scale_dt, p.scale);
    if (family == quant_family_t::row_fp8) return mul_f32(f8_e4m3_t::decode(code), scale);
    if (is_added(q.zp))
        return added_zero_dequantize(code, scale, decode_value(q.zp_dt, p.zp), code_of_added(q.zp));
    const int zp = q.zp == zero_point_kind_t::u8 ? int(p.zp) : 0;
    visit_type(affine_element_types(), elem,
            [&](auto e) { x = affine_dequantize<decltype(e)>(code, scale, zp); });
    return x;
}

} // namespace impl
} // namespace mxdnn
