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

// Rows of source as kernels read them, and one matrix of weights.
struct panel_operands_t {
    bool direct = true; // decode in registers; else decode a panel once for all rows
    int64_t rows = 0;
    const void *source = nullptr;            // a stream where matmul_conf_t::streams() says so
    int64_t source_stride = 0;               // bytes, unless it is a stream
    const float *block_sums = nullptr;       // float_zero weights: sums_per_row floats for every row
    const uint8_t *weights = nullptr;        // packed bytes of the matrix
    int64_t stream_row = 0, stream_rows = 0; // source_blocks_t: which of its rows is the first one
    // Where results of the first row and column go, if the columns of a row lie side by side; or null.
    void *dst = nullptr;
    int64_t dst_stride = 0, dst_bytes = 0; // from row to row, and of an element
    // Kernels on tiles: results, sums * scale + bias[column] in bf16, are stored there, and sums are lost.
    bool store = false;
    float scale = 1.f;
    const float *row_scales = nullptr; // that sums are multiplied by as well, or null
    const float *bias = nullptr;       // readable up to the end of the last two panels
};

class panel_matmul_t {
public:
    explicit panel_matmul_t(const matmul_conf_t &conf) : c_(conf) {}

    // Generates what `M` rows (or any number, runtime_dim) need, where plans want so many tasks for each
    // thread.
    status_t create(const problem_t &p, dim_t M, int64_t tasks_per_thread);

    // Rows of source that calls for `rows` rows, or for parts of them, read at most: those beyond have to be
    // readable; their sums are left in acc and mean nothing.
    int64_t padded_rows(bool direct, int64_t rows) const;

    // Whether multiply() can store results itself, of rows that have scales of their own or none.
    bool can_store(bool direct, bool row_scales) const {
        if (c_.weights.K == 0) return false;
        return c_.fuses(direct) ? row_scales
                                : !row_scales && c_.beside(direct) && c_.beside(direct)->on_tiles;
    }

    // Sums of the weights' columns [n0, n1), which become acc[row][n - n0 / 16 * 16]; decoded
    // panels go through `panels`. Where results are stored n0 begins a panel.
    void multiply(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const;

private:
    using kernel_t = std::unique_ptr<jit_kernel_t>;
    // Of one row of the kernel list: kernels[j][i] for calls of rows[i] rows and row->panels[j] panels, or
    // null where no task needs it or, of fewer panels than most calls have, one for more rows does.
    struct row_kernels_t {
        const kernel_row_t *row = nullptr;
        std::vector<int> rows; // ascending
        std::vector<kernel_t> kernels[3];

        // For row->panels[j] panels the smallest that suffices; null, and no rows, without.
        struct found_t {
            const jit_kernel_t *kernel;
            int rows;
        };
        found_t find(size_t j, int64_t n) const;
    };
    status_t create(const problem_t &p, const kernel_row_t &row, int rows, int panels, decoded_t decoded,
            kernel_t &kernel) const;
    status_t create(const problem_t &p, const kernel_row_t &row, const std::vector<int> &rows, bool together,
            decoded_t decoded, int64_t tasks_per_thread, row_kernels_t &k) const;
    status_t create_beside(const problem_t &p, const kernel_row_t &row, dim_t M, int most,
            int64_t tasks_per_thread, row_kernels_t &k);
    int64_t run_rows(dim_t M, const problem_t &p) const; // of each run but the last, where M is known
    std::array<bool, 3> panels_of_tasks(const kernel_row_t &row, int most, int64_t tasks_per_thread) const;
    void multiply_beside(const panel_operands_t &o, const row_kernels_t &k, int64_t first, int64_t last,
            int64_t n1, float *acc, char *panels) const;
    void multiply_dense(
            const panel_operands_t &o, int64_t first, int64_t last, float *acc, char *panels) const;
    void multiply_fused(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc) const;
    const uint8_t *panel(const panel_operands_t &o, int64_t i) const;

    matmul_conf_t c_;
    row_kernels_t direct_, many_;
    row_kernels_t keeping_, found_; // where several calls have the same panels: the first, and the others
    kernel_t decode_, fused_;
    std::vector<kernel_t> dense_; // for the most rows, then any_dense_rows_step less each
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
