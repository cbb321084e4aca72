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
    const void *source = nullptr; // fused kernels, unless direct: a stream in the order of source_blocks_t
    int64_t source_stride = 0;    // bytes
    const float *block_sums = nullptr;       // float_zero weights: sums_per_row floats for every row
    const uint8_t *weights = nullptr;        // packed bytes of the matrix
    int64_t stream_row = 0, stream_rows = 0; // source_blocks_t: which of its rows is the first one
    // Where results of the first row and column go, if the columns of a row lie side by side; or null.
    void *dst = nullptr;
    int64_t dst_stride = 0, dst_bytes = 0; // from row to row, and of an element
    // Fused kernels: results, sums * scale + bias[column] in bf16, are stored there, and sums are lost.
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

    // Rows of source that calls for `rows` rows read: those beyond have to be readable; their sums
    // are left in acc and mean nothing.
    int64_t padded_rows(bool direct, int64_t rows) const;

    // Whether multiply() can store results itself, of rows that have scales of their own or none.
    bool can_store(bool direct, bool row_scales) const {
        return fused_ && !direct && row_scales == (c_.fused->compute_dt == mxdnn_s8);
    }

    // Sums of the weights' columns [n0, n1), which become acc[row][n - n0 / 16 * 16]; decoded
    // panels go through `panels`. Where results are stored n0 begins a panel.
    void multiply(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const;

private:
    using kernel_t = std::unique_ptr<jit_kernel_t>;
    void multiply_direct(const panel_operands_t &o, int64_t first, int64_t last, float *acc) const;
    void multiply_dense(
            const panel_operands_t &o, int64_t first, int64_t last, float *acc, char *panels) const;
    void multiply_fused(const panel_operands_t &o, int64_t n0, int64_t n1, float *acc, char *panels) const;
    size_t direct_index(int64_t rows) const;
    int most_panels(int64_t left) const;
    std::array<bool, 3> panels_of_tasks(int64_t tasks_per_thread) const;
    const uint8_t *panel(const panel_operands_t &o, int64_t i) const;

    matmul_conf_t c_;
    // direct_[j][i]: 2^i rows (the last: the most), conf.direct->panels[j] panels; none that no task has.
    std::vector<int> direct_rows_;
    std::vector<kernel_t> direct_[3];
    kernel_t decode_, dense_, fused_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
