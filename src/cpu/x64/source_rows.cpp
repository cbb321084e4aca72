// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/source_rows.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/x64/int8_row.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
constexpr int64_t chunk = 256; // elements converted at a time: stays in L1, whole blocks of any format
}

source_rows_t::source_rows_t(const exec_ctx_t &ctx, data_type_t compute_dt)
    : md_(&ctx.memory(MXDNN_ARG_SRC)->md),
      base_(static_cast<const uint8_t *>(ctx.memory(MXDNN_ARG_SRC)->handle)), compute_dt_(compute_dt),
      wei_dt_(ctx.pd.problem.weights.dt),
      view_(ctx, MXDNN_ARG_SRC, ctx.pd.problem.src, ctx.pd.problem.attr.src), K_(dim_from_end(*md_, 1)),
      row_stride_(md_->strides[md_->ndims - 2]), col_stride_(md_->strides[md_->ndims - 1]) {
    if (view_.quantised() && view_.quant().zp == zero_point_kind_t::none)
        for (uint32_t c = 0; c < 1u << data_type_info(md_->dt)->bits; c++)
            table_[c] = row_int8() ? float(int8_t(c)) : decode_value(md_->dt, c);
}

void source_rows_t::bind(const dim_t *idx) {
    int64_t offset = 0;
    for (int i = 0; i < md_->ndims - 2; i++)
        if (md_->dims[i] != 1) offset += idx[i] * md_->strides[i];
    matrix_ = view_.quantised() ? nullptr : base_ + offset * data_type_info(md_->dt)->bits / 8;
}

const void *source_rows_t::in_place(int64_t m) const {
    const bool fits = md_->dt == compute_dt_ && (col_stride_ == 1 || K_ == 1) && K_ % 32 == 0;
    return fits ? matrix_ + m * in_place_stride() : nullptr;
}

int source_rows_t::row_exponent(int64_t m) const {
    if (view_.quant().scale_dt != mxdnn_e8m0) return 0;
    int most = 0;
    for (int64_t k = 0; k < K_; k += view_.quant().block) {
        const uint32_t b = view_.params(m, k).scale;
        if (b != e8m0_poison) most = std::max(most, int(b));
    }
    return most;
}

// 2^(scale - row_exponent), at most 1; what falls below 2^-126 of the row's largest block is below
// every rounding of the row.
float source_rows_t::scale_in_row(uint32_t scale, int row_exponent) {
    const int e = int(scale) - row_exponent;
    return e < -126 ? 0.f : float_of(uint32_t(e + 127) << 23);
}

float source_rows_t::row_scale(int64_t m, int row_exponent) const {
    if (view_.quant().scale_dt == mxdnn_e8m0) return e8m0_t::decode(uint32_t(row_exponent));
    return row_int8() && K_ > 0 ? decode_value(view_.quant().scale_dt, view_.params(m, 0).scale) : 1.f;
}

void source_rows_t::prepare_int8(int64_t m, void *out, const source_sums_t &sums) const {
    // A part at a time, whole blocks each; the parts of a row are those of the whole row.
    const int exponent = row_exponent(m);
    if (sums.row_scale) *sums.row_scale = row_scale(m, exponent);
    for (int64_t k = 0; k < K_; k += chunk) {
        int8_t codes[chunk];
        float scales[chunk / int8_row_t::block];
        const int64_t n = std::min(chunk, K_ - k);
        for (int64_t i = 0; i < n; i++) codes[i] = int8_t(view_.code(m, k + i));
        for (int64_t i = 0; i < n; i += int8_row_t::block) {
            float &scale = scales[i / int8_row_t::block];
            scale = 1.f;
            if (row_int8()) continue;
            const uint32_t s = view_.params(m, k + i).scale;
            scale = s == e8m0_poison ? e8m0_t::decode(s) : scale_in_row(s, exponent) / 64;
        }
        pack_int8_row(codes, scales, k, n, K_, wei_dt_, out);
    }
}

void source_rows_t::dequantise(int64_t m, int64_t k, int64_t n, int row_exponent, float *out) const {
    const quant_t &q = view_.quant();
    if (q.zp != zero_point_kind_t::none) {
        for (int64_t i = 0; i < n; i++) out[i] = view_.value(m, k + i);
        return;
    }
    uint8_t codes[chunk];
    for (int64_t i = 0; i < n; i++) codes[i] = uint8_t(view_.code(m, k + i));
    for (int64_t i = 0; i < n; i += q.block) {
        const uint32_t s = view_.params(m, k + i).scale;
        float scale;
        if (q.scale_dt == mxdnn_e8m0 && s != e8m0_poison) {
            scale = scale_in_row(s, row_exponent);
        } else {
            scale = row_int8() ? 1.f : decode_value(q.scale_dt, s); // that of a row goes with its sums
        }
        row_kernels().decode(codes + i, table_, scale, out + i, std::min<int64_t>(q.block, n - i));
    }
}

void source_rows_t::prepare(int64_t m, void *out, int64_t padded, const source_sums_t &sums) const {
    const row_kernels_t &rk = row_kernels();
    const int64_t bytes = data_type_info(compute_dt_)->bits / 8;
    uint8_t *o = static_cast<uint8_t *>(out);
    if (compute_dt_ == mxdnn_s8) return prepare_int8(m, out, sums);
    std::memset(o + K_ * bytes, 0, size_t((padded - K_) * bytes));

    int exponent = 0;
    if (view_.quantised()) {
        exponent = row_exponent(m);
        if (sums.row_scale) *sums.row_scale = row_scale(m, exponent);
    } else if (md_->dt == compute_dt_ && col_stride_ == 1 && !sums.block_sums) {
        std::memcpy(o, matrix_ + m * in_place_stride(), size_t(K_ * bytes));
        return;
    }
    float x[chunk];
    for (int64_t k = 0; k < K_; k += chunk) {
        const int64_t n = std::min(chunk, K_ - k);
        if (view_.quantised())
            dequantise(m, k, n, exponent, x);
        else
            rk.to_f32(md_->dt,
                    matrix_ + (m * row_stride_ + k * col_stride_) * data_type_info(md_->dt)->bits / 8,
                    col_stride_, x, n);
        rk.from_f32(compute_dt_, x, o + k * bytes, 1, n);
        if (!sums.block_sums) continue;
        rk.to_f32(compute_dt_, o + k * bytes, 1, x, n); // as the kernel sees them
        for (int64_t i = 0; i < n; i += sums.block)
            sums.block_sums[(k + i) / sums.block] = rk.sum(x + i, std::min(sums.block, n - i));
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
