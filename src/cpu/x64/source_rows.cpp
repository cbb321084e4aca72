// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/source_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// The values of all codes, computed at compile time, because every thread of an execution looks them up.
template <typename T>
constexpr std::array<float, 1 << T::bits> make_values() {
    std::array<float, 1 << T::bits> v{};
    for (uint32_t c = 0; c < v.size(); c++) v[c] = T::decode(c);
    return v;
}
template <typename T>
constexpr auto all_values = make_values<T>();

// For s8 under floating-point scales, whose codes are integers.
constexpr std::array<float, 256> make_integers() {
    std::array<float, 256> v{};
    for (int c = 0; c < 256; c++) v[size_t(c)] = float(c < 128 ? c : c - 256);
    return v;
}
constexpr auto integers = make_integers();

const float *values_of(data_type_t dt, const quant_t &q) {
    if (dt == mxdnn_s8 && quant_family(dt, q) == quant_family_t::affine) return integers.data();
    const float *v = nullptr;
    visit_type(quantized_element_types(), dt, [&](auto t) { v = all_values<decltype(t)>.data(); });
    return v;
}

} // namespace

source_rows_t::source_rows_t(const exec_ctx_t &ctx, data_type_t compute_dt)
    : md_(&ctx.memory(MXDNN_ARG_SRC)->md),
      base_(static_cast<const uint8_t *>(ctx.memory(MXDNN_ARG_SRC)->handle)), compute_dt_(compute_dt),
      weights_(int8_weights(ctx.pd.problem.weights.dt, ctx.pd.problem.weights.packed.quant)),
      recipe_(ctx.pd.problem.attr.src.is_dynamic()), rounding_(ctx.pd.problem.attr.src.rounding),
      element_dt_(source_format(ctx.pd.problem, quant_)), K_(dim_from_end(*md_, 1)),
      row_stride_(md_->strides[md_->ndims - 2]), col_stride_(md_->strides[md_->ndims - 1]) {
    const problem_t &p = ctx.pd.problem;
    if (p.attr.src.scales.set && !recipe_) view_.emplace(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    if (has_codes() && quant_.zp == zero_point_kind_t::none) values_ = values_of(element_dt_, quant_);
}

void source_rows_t::bind(const dim_t *idx) {
    int64_t offset = 0;
    for (int i = 0; i < md_->ndims - 2; i++)
        if (md_->dims[i] != 1) offset += idx[i] * md_->strides[i];
    const int bits = data_type_info(md_->dt)->bits;
    matrix_ = bits % 8 ? nullptr : base_ + offset * bits / 8;
}

const void *source_rows_t::in_place(int64_t m) const {
    const bool fits = !has_codes() && md_->dt == compute_dt_ && (col_stride_ == 1 || K_ == 1) && K_ % 32 == 0;
    return fits ? matrix_ + m * in_place_stride() : nullptr;
}

void source_rows_t::load(int64_t m, int64_t k, int64_t n, float *x) const {
    rk_.to_f32(md_->dt, place(m, k), col_stride_, x, n);
}

source_rows_t::values_t source_rows_t::values(int64_t m, int64_t k, int64_t n, float *x) const {
    if (col_stride_ == 1 && (md_->dt == mxdnn_bf16 || md_->dt == mxdnn_f32)) return {md_->dt, place(m, k)};
    load(m, k, n, x);
    return {mxdnn_f32, x};
}

// The e8m0 scale of a block.
uint32_t source_rows_t::recipe_scale(const float *x, int64_t n) const {
    return e8m0_from_amax<s8_t>(rk_.amax_bits(mxdnn_f32, x, n), rounding_);
}

source_rows_t::row_t source_rows_t::row_of(int64_t m) const {
    const bool powers = quant_.scale_dt == mxdnn_e8m0;
    if (!recipe_ && !powers)
        return {0, has_row_scale(element_dt_, quant_) && K_ > 0
                           ? decode_value(quant_.scale_dt, view_->params(m, 0).scale)
                           : 1.f};
    uint32_t amax = 0, most = 0; // of the bits of magnitudes; of the scales
    const auto see = [&](uint32_t scale) {
        if (scale != e8m0_poison) most = std::max(most, scale);
    };
    if (!recipe_)
        for (int64_t k = 0; k < K_; k += quant_.block) see(view_->params(m, k).scale);
    for (int64_t k = 0; recipe_ && k < K_; k += chunk) {
        float x[chunk];
        const int64_t n = std::min(chunk, K_ - k);
        if (!powers) {
            const values_t v = values(m, k, n, x);
            amax = std::max(amax, rk_.amax_bits(v.dt, v.x, n));
            continue;
        }
        load(m, k, n, x);
        for (int64_t i = 0; i < n; i += quant_.block) see(recipe_scale(x + i, std::min(quant_.block, n - i)));
    }
    return {int(most), powers       ? e8m0_t::decode(most)
                       : row_int8() ? row_int8_scale(amax)
                                    : row_fp8_scale(amax)};
}

// For powers of two 2^(scale - exponent), at most 1. Values below 2^-126 of the row's largest block are
// smaller than every rounding of the row.
float source_rows_t::scale_in_row(uint32_t scale, const row_t &row) const {
    if (has_row_scale(element_dt_, quant_)) return 1.f;
    if (quant_.scale_dt != mxdnn_e8m0 || scale == e8m0_poison) return decode_value(quant_.scale_dt, scale);
    const int e = int(scale) - row.exponent;
    return e < -126 ? 0.f : float_of(uint32_t(e + 127) << 23);
}

void source_rows_t::read_codes(int64_t m, int64_t k, int64_t n, const row_t &row, codes_t &c) const {
    if (matrix_) {
        const uint8_t *from = matrix_ + m * row_stride_ + k * col_stride_;
        if (col_stride_ == 1)
            std::memcpy(c.codes, from, size_t(n));
        else
            for (int64_t i = 0; i < n; i++) c.codes[i] = from[i * col_stride_];
    } else {
        for (int64_t i = 0; i < n; i++) c.codes[i] = uint8_t(view_->code(m, k + i));
    }
    for (int64_t i = 0, b = 0; i < n; i += quant_.block)
        c.scales[b++] = scale_in_row(view_->params(m, k + i).scale, row);
}

void source_rows_t::make_codes(int64_t m, int64_t k, int64_t n, const row_t &row, codes_t &c) const {
    float x[chunk];
    if (row_int8()) {
        const values_t v = values(m, k, n, x);
        c.scales[0] = 1.f; // one block
        return rk_.to_s8(v.dt, v.x, row.scale, c.codes, n);
    }
    load(m, k, n, x);
    for (int64_t i = 0, b = 0; i < n; i += quant_.block) {
        const int64_t count = std::min(quant_.block, n - i);
        if (element_dt_ == mxdnn_f8_e4m3) {
            c.scales[0] = 1.f; // one block
            for (int64_t j = i; j < i + count; j++) c.codes[j] = uint8_t(row_fp8_quantize(x[j], row.scale));
            continue;
        }
        const uint32_t scale = recipe_scale(x + i, count);
        c.scales[b++] = scale_in_row(scale, row);
        rk_.to_s8(mxdnn_f32, x + i, e8m0_t::decode(scale) * s8_t::step, c.codes + i, count);
    }
}

void source_rows_t::prepare_int8(int64_t m, const row_t &row, void *out) const {
    // One part at a time, in whole blocks. The parts of a row are those of the whole row.
    for (int64_t k = 0; k < K_; k += chunk) {
        codes_t c;
        const int64_t n = std::min(chunk, K_ - k);
        codes_of(m, k, n, row, c);
        for (int64_t b = 0; b * int8_row_t::block < n; b++)
            c.scales[b] = row_int8() ? 1.f : c.scales[b] * s8_t::step;
        for (int64_t i = 0; offset_ && i < n; i++) c.codes[i] = uint8_t(c.codes[i] + offset_);
        pack_int8_row(c.codes, c.scales, k, n, K_, weights_, out);
    }
}

// Quantised here in blocks: their scales are known when their codes are, the divisor of the row only then.
source_rows_t::row_t source_rows_t::quantise_int8(int64_t m, void *out) const {
    uint32_t most = 0;
    float *const scales = int8_row_scales(out, K_); // their codes at first, as bits
    for (int64_t k = 0; k < K_; k += chunk) {
        constexpr int64_t blocks = chunk / int8_row_t::block;
        float x[chunk], steps[blocks];
        uint32_t amax[blocks];
        uint8_t codes[chunk];
        const int64_t n = std::min(chunk, K_ - k);
        const values_t v = values(m, k, n, x);
        rk_.amax_bits_of_blocks(v.dt, v.x, amax, n);
        for (int64_t b = 0; b * int8_row_t::block < n; b++) {
            const uint32_t scale = e8m0_from_amax<s8_t>(amax[b], rounding_);
            if (scale != e8m0_poison) most = std::max(most, scale);
            steps[b] = e8m0_t::decode(scale) * s8_t::step;
            scales[k / int8_row_t::block + b] = float_of(scale);
        }
        rk_.blocks_to_s8(v.dt, v.x, steps, codes, n);
        pack_int8_codes(codes, k, n, K_, weights_, out);
    }
    const row_t row = {int(most), e8m0_t::decode(most)};
    for (int64_t b = 0; b < div_up(K_, int8_row_t::block); b++)
        scales[b] = scale_in_row(bits_of(scales[b]), row) * s8_t::step * weights_.unit;
    return row;
}

template <typename F>
void source_rows_t::stream_int8(int64_t m, const row_t &row, F at) const {
    constexpr int64_t piece = source_blocks_t::piece_bytes;
    for (int64_t k = 0; k < K_; k += chunk) {
        codes_t c;
        const int64_t n = std::min(chunk, K_ - k), ordered = round_up(n, int64_t(8));
        codes_of(m, k, n, row, c);
        std::memset(c.codes + n, 0, size_t(ordered - n));
        for (int64_t i = 0; i < n; i += piece)
            order_int8(c.codes + i, std::min(piece, ordered - i), weights_, at(k + i));
    }
}

void source_rows_t::dequantise(int64_t m, int64_t k, int64_t n, const row_t &row, float *out) const {
    if (quant_.zp != zero_point_kind_t::none) {
        for (int64_t i = 0; i < n; i++) out[i] = view_->value(m, k + i);
        return;
    }
    codes_t c;
    codes_of(m, k, n, row, c);
    for (int64_t i = 0, b = 0; i < n; i += quant_.block)
        rk_.decode(c.codes + i, values_, c.scales[b++], out + i, std::min(quant_.block, n - i));
}

source_rows_t::row_t source_rows_t::see_row(int64_t m, const source_sums_t &sums) const {
    if (!has_codes()) return {0, 1.f};
    const row_t row = row_of(m);
    if (sums.row_scale) *sums.row_scale = row.scale;
    return row;
}

void source_rows_t::prepare(int64_t m, void *out, int64_t padded, const source_sums_t &sums) const {
    if (compute_dt_ == mxdnn_s8 && recipe_ && !row_int8()) {
        const row_t row = quantise_int8(m, out);
        if (sums.row_scale) *sums.row_scale = row.scale;
        return;
    }
    const row_t row = see_row(m, sums);
    if (compute_dt_ == mxdnn_s8) return prepare_int8(m, row, out);
    const int64_t bytes = data_type_info(compute_dt_)->bits / 8;
    uint8_t *const o = static_cast<uint8_t *>(out);
    std::memset(o + K_ * bytes, 0, size_t((padded - K_) * bytes));
    if (as_it_is(sums)) {
        std::memcpy(o, matrix_ + m * in_place_stride(), size_t(K_ * bytes));
        return;
    }
    convert(m, row, chunk, sums, [&](int64_t k) { return o + k * bytes; });
}

bool source_rows_t::copy(const int64_t *m, int64_t n, int64_t r, const source_blocks_t &to, void *out,
        const source_sums_t &sums) const {
    constexpr int64_t piece = source_blocks_t::piece_bytes;
    if (to.value_bytes != 2 || K_ % to.step() != 0 || !as_it_is(sums)) return false;
    const uint8_t *from[tile_source_rows];
    for (int64_t i = 0; i < n; i++) {
        if (m[i] < 0) return false;
        from[i] = matrix_ + m[i] * in_place_stride();
    }
    to.for_each_piece(r, [&](int64_t k, int64_t at) {
        uint8_t *const o = static_cast<uint8_t *>(out) + at;
        for (int64_t i = 0; i < n; i++) std::memcpy(o + i * piece, from[i] + k * 2, size_t(piece));
    });
    return true;
}

void source_rows_t::prepare(
        int64_t m, int64_t r, const source_blocks_t &to, void *out, const source_sums_t &sums) const {
    const int64_t step = to.step(), value_bytes = to.value_bytes;
    uint8_t *const o = static_cast<uint8_t *>(out);
    const bool copy = m >= 0 && value_bytes == 2 && as_it_is(sums);
    const uint8_t *from = copy ? matrix_ + m * in_place_stride() : nullptr;
    to.for_each_piece(r, [&](int64_t k, int64_t at) {
        if (copy && k + step <= K_) {
            std::memcpy(o + at, from + k * value_bytes, source_blocks_t::piece_bytes);
            return;
        }
        std::memset(o + at, 0, source_blocks_t::piece_bytes);
        if (copy) std::memcpy(o + at, from + k * value_bytes, size_t((K_ - k) * value_bytes));
    });
    if (copy || m < 0) return;
    uint8_t *const first = o + to.first(r);
    const int64_t stride = to.stride(r);
    const auto at = [=](int64_t k) {
        return first + k * value_bytes / source_blocks_t::piece_bytes * stride;
    };
    const row_t row = see_row(m, sums);
    value_bytes == 1 ? stream_int8(m, row, at) : convert(m, row, step, sums, at);
}

template <typename F>
void source_rows_t::convert(int64_t m, const row_t &row, int64_t run, const source_sums_t &sums, F at) const {
    float x[chunk];
    for (int64_t k = 0; k < K_; k += chunk) {
        const int64_t n = std::min(chunk, K_ - k);
        if (has_codes())
            dequantise(m, k, n, row, x);
        else
            load(m, k, n, x);
        for (int64_t i = 0; i < n; i += run) {
            const int64_t some = std::min(run, n - i);
            rk_.from_f32(compute_dt_, x + i, at(k + i), 1, some);
            if (sums.block_sums)
                rk_.to_f32(compute_dt_, at(k + i), 1, x + i, some); // as the kernel reads them
        }
        for (int64_t i = 0; sums.block_sums && i < n; i += sums.block)
            sums.block_sums[(k + i) / sums.block] = rk_.sum(x + i, std::min(sums.block, n - i));
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
