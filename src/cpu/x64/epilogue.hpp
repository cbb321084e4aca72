// SPDX-License-Identifier: Apache-2.0
// From f32 sums to the destination: scales, bias, post-ops, conversion or quantisation.
#pragma once

#include <optional>

#include "cpu/ref/tensor_view.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Null if the destination's columns can be finished in pieces of `columns` (a power of two). Otherwise the
// reason why not.
const char *check_epilogue(const problem_t &p, int64_t columns);

// Parameters of a gated activation: those of the post-op, or of one expert.
struct gate_params_t {
    float alpha, beta, limit;
};

// The values that differ from row to row.
struct row_terms_t {
    int64_t m = 0; // row of the destination, and of operands with as many rows
    int64_t bias_row = 0;
    float scale = 1.f;                   // factor of the sums
    float weight = 1.f;                  // factor of the result, before a sum post-op
    const gate_params_t *gate = nullptr; // null: the parameters of the post-op
    float *keep = nullptr;               // if not null, the result goes here instead of the destination
};

// The epilogue of one execution and one batch entry. Creating one is cheap. Each thread has its own.
class epilogue_t {
public:
    explicit epilogue_t(const exec_ctx_t &ctx);
    void set_batch(const dim_t *idx);
    // For rows of groups: selects the parameters of one expert and group.
    void set_group(int expert, int64_t scale_row_shift) {
        if (!dst_view_) return;
        dst_view_->set_global_index(expert);
        dst_view_->set_scale_row_shift(scale_row_shift);
    }

    // Turns sums of row m into destination columns [first, first + n). x holds the sums of these columns. A
    // gated problem has n gates and n ups, `up` floats apart (interleaved: pairs in x, `up` is not used). x
    // is overwritten.
    void finish_row(const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const;

    // The address where finish_row stores row m from column `first` on, if results are stored unchanged and
    // contiguously; else null.
    void *place_of(int64_t m, int64_t first) const {
        if (dst_view_ || dst_.col_stride != 1 || p_.attr.gated()) return nullptr;
        return const_cast<uint8_t *>(dst_.matrix) + (m * dst_.row_stride + first) * bytes_of_dst();
    }
    // Prefetches the cache lines of that address for writing.
    static void fetch(const void *place, int64_t bytes) {
        for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char *>(place) + i, 1);
    }
    // Whether the results are sums times row_terms_t::scale plus bias, for rows without weights.
    bool is_linear() const { return p_.attr.post_ops.ops.empty(); }
    bool has_bias_per_row() const { return bias_.matrix && bias_.row_stride != 0; }
    // Finishes such rows together, if place_of() is not null.
    void finish_linear(const linear_rows_t &rows) const { rk_.linear(dst_.dt, rows); }
    // The bias of columns [first, first + n). It is loaded to `room`, all of which is readable then. Without
    // a bias it is -0, which changes nothing.
    static constexpr int64_t most_biases = 96;
    const float *bias_of(int64_t bias_row, int64_t first, int64_t n, float (&room)[most_biases]) const;
    data_type_t dst_type() const { return dst_.dt; }
    int64_t bytes_of_dst() const { return data_type_info(dst_.dt)->bits / 8; }
    int64_t dst_row_bytes() const { return dst_.row_stride * bytes_of_dst(); }

    // As finish_row, but stores nothing. Returns the largest finite magnitude of the results, for a global
    // scale that is computed first.
    float amax_row(const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const;

    // The sum x of several rows: adds what the sum post-op adds, and stores it (or measures its magnitude).
    void store_sums(int64_t m, int64_t first, int64_t n, float *x) const;
    float amax_sums(int64_t m, int64_t first, int64_t n, float *x) const;
    void set_global(float amax) const { dst_view_->set_global(nvfp4_global_scale(amax)); }

private:
    // A broadcast operand of this batch entry.
    struct operand_t {
        data_type_t dt = mxdnn_data_type_undef;
        const uint8_t *matrix = nullptr;        // null: absent
        int64_t row_stride = 0, col_stride = 0; // elements; 0 where the dim is 1
    };
    operand_t bind(const memory_t &m, const dim_t *idx) const;
    void load(const operand_t &o, int64_t m, int64_t first, int64_t n, float *out) const;
    void apply(const row_terms_t &row, int64_t first, int64_t n, float *x, const float *up) const;
    void add_old(const post_op_t &sum, int64_t m, int64_t first, int64_t n, float *x) const;
    void add_old_last(int64_t m, int64_t first, int64_t n, float *x) const;
    void store(int64_t m, int64_t first, int64_t n, const float *x) const;
    float amax(const float *x, int64_t n) const;
    void quantise(int64_t m, int64_t first, int64_t n, const float *x) const;

    const exec_ctx_t &ctx_;
    const problem_t &p_;
    const row_kernels_t &rk_;
    int nd_;
    operand_t bias_, dst_;
    operand_t binary_[32];                  // by index of the post-op
    std::optional<matrix_view_t> dst_view_; // of a quantised destination
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
