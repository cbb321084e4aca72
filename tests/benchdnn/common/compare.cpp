// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench {

using namespace mxdnn::impl;

std::string index_text(const int64_t *idx, size_t n) {
    std::string s;
    for (size_t i = 0; i < n; i++) s += (i ? "," : "") + std::to_string(idx[i]);
    return "[" + s + "]";
}

namespace {
std::string number(double x) {
    char s[40];
    std::snprintf(s, sizeof(s), "%.9g", x);
    return s;
}

bool is_untouched(const interval_t &w) { return w.e < 0; }
bool is_poison(data_type_t dt, uint32_t code) {
    const int bits = data_type_info(dt)->bits;
    const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    // Codes of 4 bits are either half of the byte, dense ones of 6 bits a quarter of three.
    for (int first = 0; first < 24; first += bits)
        if (code == (0xA5A5A5A5A5A5A5A5u >> first & mask)) return true;
    return false;
}
void must_stay(
        const int64_t *idx, size_t nd, data_type_t dt, uint32_t code, const char *what, mismatch_t &bad) {
    if (!is_poison(dt, code))
        bad.add(index_text(idx, nd) + " " + what + " was written (" + std::to_string(code)
                + "), nothing belongs there");
}
} // namespace

void compare_gaps(const tensor_t &dst, mismatch_t &bad) {
    int64_t elements = 1;
    for (int64_t d : dst.dims) elements *= d;
    if (int64_t(dst.bytes.size()) * 8 <= elements * data_type_info(dst.dt)->bits) return;
    std::vector<char> used(dst.bytes.size());
    for_each(dst.dims, [&](const int64_t *idx) {
        const auto bytes = dst.bytes_of(idx);
        std::fill_n(used.begin() + bytes.first, bytes.second, char(1));
    });
    for (size_t i = 0; i < used.size(); i++)
        if (!used[i] && dst.bytes.data()[i] != 0xA5)
            bad.add("byte " + std::to_string(i) + " lies between rows and was written");
}

void compare_plain(const tensor_t &dst, const std::vector<interval_t> &want, mismatch_t &bad) {
    bad.of = int64_t(want.size());
    const bool bf16 = dst.dt == mxdnn_bf16, f16 = dst.dt == mxdnn_f16;
    const double u = bf16 ? 1. / 256 : f16 ? 1. / 2048 : u32, least = bf16 ? 4.6e-41 : f16 ? 3e-8 : tiny;
    const double largest = f16 ? 65504 : 3.3895e38;
    size_t i = 0;
    for_each(dst.dims, [&](const int64_t *idx) {
        const interval_t &w = want[i++];
        if (is_untouched(w)) return must_stay(idx, dst.dims.size(), dst.dt, dst.code(idx), "element", bad);
        const double got = dst.value(idx), most = std::fabs(w.v) + w.e;
        const double allowed = w.e + u * most + least;
        const bool ok = std::isnan(w.v) || (w.or_nan && std::isnan(got)) ? std::isnan(got)
                        : std::isinf(w.v)                                ? !std::isfinite(got)
                        : most >= largest && !std::isfinite(got)
                                ? true // overflow of the type, or of the sum before it
                                : std::fabs(got - w.v) <= allowed;
        if (!ok)
            bad.add(index_text(idx, dst.dims.size()) + " expected " + number(w.v) + " got " + number(got)
                    + " bound " + number(allowed));
    });
}

namespace {

float down(double x) { return std::nextafterf(float(x), -INFINITY); }
float up(double x) { return std::nextafterf(float(x), INFINITY); }

// A computed global scale must follow from a largest magnitude within the bounds.
void check_global_scale(const quantised_t &dst, const std::vector<interval_t> &want, mismatch_t &bad) {
    double low = 0, high = 0;
    for (const interval_t &w : want) {
        if (is_untouched(w) || !std::isfinite(w.v)) continue;
        high = std::max(high, std::fabs(w.v) + w.e);
        if (!w.or_nan) low = std::max(low, std::fabs(w.v) - w.e);
    }
    int64_t zero = 0;
    const float g = dst.global.value(&zero);
    if (!(g >= nvfp4_global_scale(down(low)) && g <= nvfp4_global_scale(up(high))))
        bad.add("global scale " + number(g) + " for largest magnitudes " + number(low) + " to "
                + number(high));
}

// The possible values of a block: the smallest and the largest of them, and of 0 unless they count from the
// smallest.
struct block_bounds_t {
    double least_low = 0, least_high = 0, most_low = 0, most_high = 0;
    bool has_nan = false;      // then all of it is alike, and exact
    bool may_have_nan = false; // what overflows f32 is no number either

    block_bounds_t() = default;
    block_bounds_t(const interval_t *first, int64_t count, bool and_zero) {
        if (!and_zero && count > 0) {
            least_low = most_low = first->v - first->e;
            least_high = most_high = first->v + first->e;
        }
        for (const interval_t *w = first; w != first + count; w++) {
            has_nan = has_nan || !std::isfinite(w->v);
            may_have_nan = may_have_nan || w->or_nan || std::fabs(w->v) + w->e >= double(f32_t::max);
            least_low = std::min(least_low, w->v - w->e);
            least_high = std::min(least_high, w->v + w->e);
            most_low = std::max(most_low, w->v - w->e);
            most_high = std::max(most_high, w->v + w->e);
        }
    }
};

struct quantised_comparison_t {
    const quantised_t &dst;
    const mxdnn_scale_rounding_t rounding;
    mismatch_t &bad;
    const quant_t &q = dst.quant;
    const data_type_t dt = dst.codes.dt;
    const size_t nd = dst.codes.dims.size();

    // The result for a block with these values: its scale, the code of the last value, and whether they are
    // too small for any scale, which int4 marks by a scale of 1.
    struct made_t {
        uint32_t scale;
        uint8_t code;
        bool empty;
    };
    made_t made_of(float least, float most, float global) const {
        const float x[2] = {least, most};
        uint8_t codes[2];
        const block_params_t p = quantize_block(dt, q, rounding, global, x, 2, codes);
        if (q.zp == zero_point_kind_t::minimum) {
            const float range = sub_f32(std::max(x[0], x[1]), std::min(x[0], x[1]));
            const uint32_t wanted = data_type_info(q.scale_dt)->encode_saturating(div_f32(range, 15.f));
            return {p.scale, codes[1], decode_value(q.scale_dt, wanted) == 0};
        }
        const bool empty = quant_family(dt, q) == quant_family_t::affine
                           && dequantize_element(dt, q, p, global, codes[0]) == 0
                           && dequantize_element(dt, q, p, global, codes[1]) == 0;
        return {p.scale, codes[1], empty};
    }

    // The scale of a block, and its zero point if it has one.
    void check_params(const block_bounds_t &block, const int64_t *idx) const {
        const block_params_t params = dst.params(idx);
        const uint32_t scale = params.scale;
        const float global = dst.global_of(idx);
        const bool has_minimum = q.zp == zero_point_kind_t::minimum;
        const bool may_be_equal = has_minimum && up(block.least_high) >= down(block.most_low);
        const made_t low = block.has_nan  ? made_of(NAN, NAN, global)
                           : may_be_equal ? made_of(up(block.least_high), up(block.least_high), global)
                                          : made_of(block.least_high == 0 ? 0.f : up(block.least_high),
                                                  block.most_low == 0 ? 0.f : down(block.most_low), global),
                     high = block.has_nan ? low : made_of(down(block.least_low), up(block.most_high), global);
        const bool as_empty = low.empty && scale == low.scale;
        if (!as_empty && (scale < (low.empty ? 0 : low.scale) || scale > high.scale || high.empty))
            bad.add(index_text(idx, nd) + " scale " + std::to_string(scale) + " expected "
                    + std::to_string(low.scale) + " to " + std::to_string(high.scale));
        if (has_minimum && !block.has_nan) {
            const auto stored = [&](float x) {
                return decode_value(q.zp_dt, data_type_info(q.zp_dt)->encode_saturating(x));
            };
            const float minimum = decode_value(q.zp_dt, params.zp), from = stored(down(block.least_low)),
                        to = stored(up(block.least_high));
            if (!(minimum >= from && minimum <= to))
                bad.add(index_text(idx, nd) + " minimum " + number(minimum) + " expected " + number(from)
                        + " to " + number(to));
        }
        if (dst.zero_points.dims.empty() || as_empty || block.has_nan || has_minimum) return;
        const float s = decode_value(q.scale_dt, scale);
        const auto zero_of = [&](double least) {
            return rne_clamp(div_f32(float(-least), s), u4_t::lowest, u4_t::highest);
        };
        const int zp = int(params.zp), from = zero_of(up(block.least_high)),
                  to = zero_of(down(block.least_low));
        if (zp < from || zp > to)
            bad.add(index_text(idx, nd) + " zero point " + std::to_string(zp) + " expected "
                    + std::to_string(from) + " to " + std::to_string(to));
    }

    void check_code(const interval_t &w, const int64_t *idx) const {
        const block_params_t params = dst.params(idx);
        const float global = dst.global_of(idx);
        const auto decoded = [&](float x) {
            return dequantize_element(dt, q, params, global, quantize_element(dt, q, params, global, x));
        };
        // A scale that is given may be negative.
        const float a = decoded(down(w.v - w.e)), b = decoded(up(w.v + w.e)), low = std::min(a, b),
                    high = std::max(a, b), got = dst.value(idx);
        if (!(got >= low && got <= high))
            bad.add(index_text(idx, nd) + " expected " + number(w.v) + " got " + number(got)
                    + " which is not in [" + number(low) + ", " + number(high) + "]");
    }

    // Under a given scale. Inf in one order of the arithmetic is NaN in another.
    void check_code_of_no_number(const interval_t &w, const int64_t *idx) const {
        if (!is_code_of(NAN, idx) && !is_code_of(INFINITY, idx) && !is_code_of(-INFINITY, idx))
            bad.add(index_text(idx, nd) + " expected the code of " + number(w.v) + " got "
                    + std::to_string(dst.codes.code(idx)));
    }
    bool is_code_of(float x, const int64_t *idx) const {
        return dst.codes.code(idx) == quantize_element(dt, q, dst.params(idx), dst.global_of(idx), x);
    }

    // Whether the scale of the block is that of one with a NaN.
    bool is_poisoned(const int64_t *idx) const {
        return dst.params(idx).scale == made_of(NAN, NAN, dst.global_of(idx)).scale;
    }

    void check_code_beside_nan(const int64_t *idx) const {
        const uint32_t code = dst.codes.code(idx), expected = made_of(NAN, NAN, dst.global_of(idx)).code;
        if (code != expected)
            bad.add(index_text(idx, nd) + " expected code " + std::to_string(expected)
                    + ", as its block has a NaN, got " + std::to_string(code));
    }
};

} // namespace

void compare_quantised(const quantised_t &dst, mxdnn_scale_rounding_t rounding,
        const std::vector<interval_t> &want, mismatch_t &bad) {
    bad.of = int64_t(want.size());
    const quant_t &q = dst.quant;
    if (q.global != global_scale_kind_t::none && dst.global.dims[0] == 1 && !dst.given && !dst.given_global)
        check_global_scale(dst, want, bad);
    const quantised_comparison_t comparison{dst, rounding, bad};
    const size_t nd = dst.codes.dims.size();
    const int64_t N = dst.codes.dims.back();
    block_bounds_t block;
    const interval_t *next = want.data();
    for_each(dst.codes.dims, [&](const int64_t *idx) {
        const interval_t &w = *next++;
        if (is_untouched(w)) {
            must_stay(idx, nd, dst.codes.dt, dst.codes.code(idx), "code", bad);
            if (!dst.given) must_stay(idx, nd, q.scale_dt, dst.params(idx).scale, "scale", bad);
            return;
        }
        if (dst.given) {
            if (w.or_nan && comparison.is_code_of(NAN, idx)) return;
            return std::isfinite(w.v) ? comparison.check_code(w, idx)
                                      : comparison.check_code_of_no_number(w, idx);
        }
        const int64_t n = idx[nd - 1];
        if (n % q.block == 0) {
            block = block_bounds_t(&w, std::min(q.block, N - n), q.zp != zero_point_kind_t::minimum);
            block.has_nan = block.has_nan || (block.may_have_nan && comparison.is_poisoned(idx));
            comparison.check_params(block, idx);
        }
        if (block.has_nan)
            comparison.check_code_beside_nan(idx);
        else
            comparison.check_code(w, idx);
    });
}

void compare(const operand_t &dst, mxdnn_scale_rounding_t rounding, const std::vector<interval_t> &want,
        mismatch_t &bad) {
    if (dst.is_quantised) return compare_quantised(dst.quantised, rounding, want, bad);
    compare_plain(dst.plain, want, bad);
}

std::string sqnr_text(const tensor_t &dst, const std::vector<interval_t> &want,
        const std::vector<interval_t> &unquantised) {
    double signal = 0, noise = 0, of_recipe = 0;
    size_t i = 0;
    for_each(dst.dims, [&](const int64_t *idx) {
        const interval_t &w = want[i], &u = unquantised[i];
        i++;
        const double got = dst.value(idx);
        if (is_untouched(w) || !std::isfinite(w.v) || !std::isfinite(u.v) || !std::isfinite(got)) return;
        signal += u.v * u.v;
        noise += (got - u.v) * (got - u.v);
        of_recipe += (w.v - u.v) * (w.v - u.v);
    });
    char s[80];
    std::snprintf(s, sizeof(s), " sqnr:%.1fdB(recipe:%.1fdB)", 10 * std::log10(signal / noise),
            10 * std::log10(signal / of_recipe));
    return s;
}

void plant_fault(const tensor_t &dst) {
    int64_t idx[max_ndims];
    for (size_t i = 0; i < dst.dims.size(); i++) idx[i] = dst.dims[i] / 2;
    dst.set_code(idx, dst.code(idx) ^ (1u << (data_type_info(dst.dt)->bits - 2)));
}

} // namespace bench
