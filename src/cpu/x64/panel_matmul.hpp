// SPDX-License-Identifier: Apache-2.0
// Prepared rows times columns of packed weights: the generated kernels of a problem and the calls
// that they take. What mx_matmul and grouped_matmul share.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cpu/x64/matmul_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Source rows in the form that kernels read, and one matrix of weights.
struct panel_operands_t {
    bool direct = true; // decode in registers; otherwise decode a panel once for all rows
    int64_t rows = 0;
    const void *source = nullptr;      // a stream if matmul_conf_t::streams() says so
    int64_t source_stride = 0;         // bytes between rows, if it is not a stream
    const float *block_sums = nullptr; // float_zero weights: sums_per_row floats for each row
    const uint8_t *weights = nullptr;  // packed bytes of the matrix
    int64_t stream_row = 0,
            stream_rows = 0; // number of the first row in source_blocks_t, and number of all its rows
    // The address of the result in the first row and column, if the columns of a row are contiguous; or null.
    void *dst = nullptr;
    int64_t dst_stride = 0, dst_bytes = 0; // bytes between rows, and of an element
    // If can_store(): results, sums * scale + bias[column], are stored there. The sums are lost.
    bool store = false;
    float scale = 1.f;
    const float *row_scales = nullptr; // further factors of the sums of each row, or null
    const float *bias = nullptr;       // readable up to the end of the last two panels
    // Parts of K: which one, and the sums of those before, which become those of this one. The last part
    // leaves sums as without parts.
    int64_t k_part = 0;
    float *part_sums = nullptr;
};

class panel_matmul_t {
public:
    explicit panel_matmul_t(const matmul_conf_t &conf) : c_(conf) {}

    // Generates the kernels for `M` rows (runtime_dim: any number), with so many tasks per thread.
    status_t create(const problem_t &p, dim_t M, int64_t tasks_per_thread);

    // The number of source rows that calls for `rows` rows, or parts of them, read at most. Further rows have
    // to be readable. Their sums in acc mean nothing.
    int64_t padded_rows(bool direct, int64_t rows) const;

    // Whether multiply() can store results of that type itself, for so many columns, with or without scales
    // of rows. It does not depend on the number of rows: rounding could differ.
    bool can_store(bool direct, int64_t columns, bool row_scales, data_type_t dst_dt) const;

    // Whether gemm kernels read no rows but these.
    bool gemm_reads_in_place(int64_t rows) const { return gemm_calls_overlap(rows); }

    // Computes the sums of the weights' columns [n0, n1), as acc[row][n - n0 / 16 * 16]. Decoded panels go
    // through `panels`. If results are stored, n0 is the first column of a panel.
    void multiply(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const;

private:
    using kernel_t = std::unique_ptr<jit_kernel_t>;
    // The kernels of one row of the kernel list. kernels[j][i] is for calls of rows[i] rows and
    // row->panels[j] panels. It is null if no task needs it, or if panels are fewer than in most calls and a
    // kernel for more rows serves.
    struct row_kernels_t {
        const kernel_row_t *row = nullptr;
        std::vector<int> rows; // ascending
        std::vector<kernel_t> kernels[3];

        // The smallest kernel that suffices for row->panels[j] panels; null, and no rows, if there is none.
        struct found_t {
            const jit_kernel_t *kernel;
            int rows;
        };
        found_t find(size_t j, int64_t n) const;
    };
    status_t create(const problem_t &p, const kernel_row_t &row, int rows, int panels, decoded_t decoded,
            kernel_t &kernel, int64_t k_rows = 0) const;
    status_t create(const problem_t &p, const kernel_row_t &row, const std::vector<int> &rows, bool together,
            decoded_t decoded, int64_t tasks_per_thread, row_kernels_t &k, int64_t k_rows = 0) const;
    status_t create_beside(const problem_t &p, const kernel_row_t &row, dim_t M, int most,
            int64_t tasks_per_thread, row_kernels_t &k);
    int64_t run_rows(dim_t M, const problem_t &p) const; // of each part but the last, if M is known
    std::array<bool, 3> panels_of_tasks(const kernel_row_t &row, int most, int64_t tasks_per_thread) const;
    // The rows of each call but the last one, of `most` at most. Where there is a kernel for every number of
    // rows, calls are of about equal length, unless results would depend on it: sums of integers do not.
    int64_t call_rows(const row_kernels_t &k, int64_t rows, int64_t most) const;
    void multiply_beside(const panel_operands_t &o, const row_kernels_t &k, int64_t first, int64_t last,
            int64_t n1, float *acc, char *panels) const;
    void multiply_gemm(const panel_operands_t &o, int64_t first, int64_t n1, float *acc, char *panels) const;
    int gemm_call_rows(int64_t rows) const;
    bool gemm_calls_overlap(int64_t rows) const;
    void multiply_fused(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc) const;
    const uint8_t *panel(const panel_operands_t &o, int64_t i) const;

    matmul_conf_t c_;
    row_kernels_t direct_, many_;
    row_kernels_t before_,
            last_; // parts of K: for all but the last one, if that is shorter; for the last one
    row_kernels_t keeping_,
            found_; // if several calls have the same panels: for the first call, and for the others
    kernel_t decode_, fused_;
    std::vector<kernel_t> gemm_; // for the largest number of rows, then any_gemm_rows_step fewer each
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
