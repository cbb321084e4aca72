// SPDX-License-Identifier: Apache-2.0
// Rows of the source as kernels read them: in the compute type, contiguous, padded with zeros.
#pragma once

#include <optional>

#include "cpu/ref/tensor_view.hpp"
#include "cpu/x64/int8_panel.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/rows/row_kernels.hpp"
#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Further results of preparing a row. Pointers may be null if nothing needs them.
struct source_sums_t {
    float *row_scale;  // quantised sources: the divisor of the row, a power of two or its one scale
    float *block_sums; // sums of the values as the kernel reads them, one per `block` of K
    int64_t block;
};

// The source of one execution and one batch entry. It has codes if it is quantised, or if the attributes'
// recipe quantises it.
class source_rows_t {
public:
    source_rows_t(const exec_ctx_t &ctx, data_type_t compute_dt);
    void set_batch(const dim_t *idx) {
        if (view_) view_->set_batch(idx);
        bind(idx);
    }
    // For rows of groups: the parameters of one expert, and how far 128x4 scales are ahead of their rows.
    void set_group(int expert, int64_t scale_row_shift) {
        if (!view_) return;
        view_->set_global_index(expert);
        view_->set_scale_row_shift(scale_row_shift);
    }
    // Rows of s8 for kernels that multiply decoded panels have no sign: int8_panel.hpp.
    void set_unsigned(bool is) { offset_ = is ? int8_panel_t::source_offset : 0; }
    // What the bytes of a row of zeros are.
    uint8_t zero() const { return offset_; }
    float global() const { return view_ ? view_->global() : 1.f; }

    // The address of row m if kernels may read it in place, without conversion and padding.
    const void *in_place(int64_t m) const;
    int64_t in_place_stride() const { return row_stride_ * data_type_info(md_->dt)->bits / 8; }

    // Writes row m, padded to `padded` elements, to out.
    void prepare(int64_t m, void *out, int64_t padded, const source_sums_t &sums) const;
    // The same, in bf16 or as codes, as row r of a stream. m < 0: zeros.
    void prepare(int64_t m, int64_t r, const source_blocks_t &to, void *out, const source_sums_t &sums) const;
    // The same for the rows m[0 .. n), n <= tile_source_rows, which are rows of one block from r on, if they
    // are copied as they are. The stream is then written in the order of its addresses. Otherwise it does
    // nothing and returns false.
    bool copy(const int64_t *m, int64_t n, int64_t r, const source_blocks_t &to, void *out,
            const source_sums_t &sums) const;

private:
    // The number of elements that are processed together. They stay in the first-level cache, and are whole
    // blocks of any format.
    static constexpr int64_t chunk = 256;
    static constexpr int64_t least_block = 16;

    // The divisor of a whole row: the power of two of its largest block, or its one scale.
    struct row_t {
        int exponent;
        float scale;
    };
    // Some codes of a row, and the factors of their values, one for each block, without the scale of the row.
    struct codes_t {
        uint8_t codes[chunk];
        float scales[chunk / least_block];
    };

    void bind(const dim_t *idx);
    bool row_int8() const { return element_dt_ == mxdnn_s8 && has_row_scale(element_dt_, quant_); }
    bool has_codes() const { return recipe_ || view_; }
    row_t row_of(int64_t m) const;
    float scale_in_row(uint32_t scale, const row_t &row) const;
    uint32_t recipe_scale(const float *x, int64_t n) const;
    const uint8_t *place(int64_t m, int64_t k) const {
        return matrix_ + (m * row_stride_ + k * col_stride_) * data_type_info(md_->dt)->bits / 8;
    }
    void load(int64_t m, int64_t k, int64_t n, float *x) const;
    // Values of one of the types that row kernels quantise: in place, or loaded to x.
    struct values_t {
        data_type_t dt;
        const void *x;
    };
    values_t values(int64_t m, int64_t k, int64_t n, float *x) const;
    void read_codes(int64_t m, int64_t k, int64_t n, const row_t &row, codes_t &c) const;
    void make_codes(int64_t m, int64_t k, int64_t n, const row_t &row, codes_t &c) const;
    void codes_of(int64_t m, int64_t k, int64_t n, const row_t &row, codes_t &c) const {
        recipe_ ? make_codes(m, k, n, row, c) : read_codes(m, k, n, row, c);
    }
    void dequantise(int64_t m, int64_t k, int64_t n, const row_t &row, float *out) const;
    void prepare_int8(int64_t m, const row_t &row, void *out) const;
    row_t quantise_int8(int64_t m, void *out) const;
    // at(k) is the address for codes from k on. A piece of a stream is contiguous.
    template <typename F>
    void stream_int8(int64_t m, const row_t &row, F at) const;
    row_t see_row(int64_t m, const source_sums_t &sums) const; // also writes its scale
    // Whether a prepared row is only a copy.
    bool as_it_is(const source_sums_t &sums) const {
        return !has_codes() && md_->dt == compute_dt_ && col_stride_ == 1 && !sums.block_sums;
    }
    // at(k) is the address for values from k on, of which `run` are contiguous. k is a multiple of `run`.
    template <typename F>
    void convert(int64_t m, const row_t &row, int64_t run, const source_sums_t &sums, F at) const;

    const row_kernels_t &rk_ = row_kernels();
    const memory_desc_t *md_;
    const uint8_t *base_;
    data_type_t compute_dt_;
    int8_weights_t weights_;
    uint8_t offset_ = 0;                // added to codes of s8
    std::optional<matrix_view_t> view_; // of codes that are given
    const bool recipe_;                 // codes are computed here
    const mxdnn_scale_rounding_t rounding_;
    quant_t quant_; // format of the codes, if there are any
    data_type_t element_dt_;
    const uint8_t *matrix_ = nullptr; // the batch entry; null if elements are not whole bytes
    int64_t K_, row_stride_, col_stride_;
    const float *values_ = nullptr; // values of the codes; null with zero points
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
