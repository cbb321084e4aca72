// SPDX-License-Identifier: Apache-2.0
// What of a matmul's solution is known before it is executed: kernels, their facts, scratchpad sizes.
#pragma once

#include <algorithm>
#include <string>

#include "common/primitive_desc.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "cpu/x64/matmul_plan.hpp"
#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Rows at distances that are multiples of this use the same cache sets.
constexpr int64_t bad_stride = 1024;

// Sizes of the parts of the scratchpad in bytes: a pure function of N, K, the number of prepared rows and the
// threads.
struct matmul_scratch_t {
    bool own_sources = false;  // each thread prepares rows of its own
    int parts = 1;             // parts of the rows that are prepared together
    int64_t source = 0;        // prepared rows of a part; without own_sources shared by all threads
    int64_t source_stride = 0; // bytes of a prepared row
    int64_t row_scales = 0, block_sums = 0; // beside the prepared rows
    int64_t sums_per_row = 0;               // floats
    int64_t panels = 0;                     // decoded panels, per thread
    int64_t panel_stride = 0;               // bytes from one panel to the next
    int64_t acc = 0;                        // f32 sums, per thread
    int64_t acc_columns = 0;
    int64_t part_sums = 0; // parts of K: f32 sums of several tasks, per thread
    int64_t own_rows = 0;  // rows that a thread copies for itself, beside prepared ones that threads share
    int64_t sources() const { return source + row_scales + block_sums; }
    int64_t per_thread() const { return panels + acc + own_rows + (own_sources ? sources() : 0); }
    void book(scratch_parts_t &scratch, int threads) const {
        if (!own_sources) scratch.book(scratch_t::source_rows, parts * sources());
        scratch.book(scratch_t::thread, per_thread(), threads);
        if (part_sums) scratch.book(scratch_t::partial_sums, part_sums, threads);
    }
};

// All decisions about a problem that are made before execution.
struct matmul_conf_t {
    const kernel_row_t *direct = nullptr, *decode = nullptr, *gemm = nullptr;
    const kernel_row_t *many = nullptr, *fused = nullptr; // used instead of decode and gemm, if present
    data_type_t compute_dt = mxdnn_f32;                   // for all kernels but `fused`, which multiplies s8
    matmul_machine_t machine;
    matmul_kernels_t kernels;
    matmul_scratch_t scratch;
    packed_shape_t weights;
    int64_t weights_stride = 0; // bytes from one batch entry to the next
    int64_t panel_bytes = 0, tile_bytes = 0;
    int64_t source_rows = 0; // the largest number of rows of a part
    int few_rows = 0;        // kernels on tiles: so many rows are multiplied faster without
    bool few_apart = false;  // so many rows are not multiplied by these kernels
    bool needs_sums = false; // float_zero weights
    bool row_scaled = false; // s8 with one scale per row, for kernels that read s8
    int64_t calls = 0;       // number of calls for the rows of the source; 0: not known
    bool keeps = false;      // several calls for the same panels decode them once
    bool gated = false, halves = false;
    bool own_parts = false; // each thread copies the rows of its tasks, see has_own_parts()
    int64_t column_step = 16;

    int64_t dst_columns() const { return gated ? weights.N / 2 : weights.N; }
    // The first column of the weights for a column of the destination: of both, or of the gate if gates are
    // one half.
    int64_t weights_column(int64_t c) const { return gated && !halves ? 2 * c : c; }
    // The distance from there to the column of up, if gate and up are halves.
    int64_t half() const { return weights.N / 2; }

    // The kernel for these rows, unless it is a direct one or decode and gemm: a fused kernel, one that
    // decodes beside multiplying, or null.
    bool fuses(bool by_direct) const { return !by_direct && fused; }
    const kernel_row_t *beside(bool by_direct) const { return by_direct ? direct : many; }

    // Whether calls need copies of rows at that distance, which they could otherwise read in place. A
    // tile takes whole lines at once.
    bool conflicts(bool by_direct, int64_t stride, int64_t rows) const {
        const int most = by_direct ? kernels.direct_rows : kernels.gemm_rows;
        return !direct->on_tiles && rows_conflict(stride, std::min<int64_t>(rows, most), machine.l1d);
    }

    // Whether each thread copies the rows that it multiplies. Lines that all threads have read take long to
    // write. Other rows than of bf16 are converted, by all threads together.
    bool copies_alone(const problem_t &p) const {
        return kernels.decodes_again && p.src.dt == mxdnn_bf16 && !p.attr.src.scales.set;
    }
    // The same for M rows of a matrix (or runtime_dim), also where panels are kept: few rows of few threads
    // are then copied by all threads together.
    bool copies_parts_alone(const problem_t &p, dim_t M) const {
        const bool many_rows = keeps && machine.threads >= several_threads && p.src.dt == mxdnn_bf16
                               && !p.attr.src.scales.set && (M == runtime_dim || M >= least_own_rows);
        return many_rows || copies_alone(p);
    }
    bool has_own_parts(int64_t M) const { return own_parts && (!keeps || M >= least_own_rows); }

    // The number of parts of K that tasks of so many rows consist of.
    int64_t k_parts(bool by_direct, int64_t rows) const {
        const kernel_row_t *row = beside(by_direct);
        const bool parts = kernels.k_part && row && row->on_tiles && rows > kernels.rows_of_all_k;
        return parts ? div_up(weights.K, kernels.k_part) : 1;
    }

    // The names of the kernels that multiply rows in this way, joined by '+'.
    std::string kernel_names(bool by_direct) const {
        if (fuses(by_direct)) return fused->name;
        if (const kernel_row_t *row = beside(by_direct)) return row->name;
        return std::string(decode->name) + "+" + gemm->name;
    }

    // Whether this number of rows is read as a stream, and how the stream is divided.
    bool streams(bool by_direct, int64_t rows) const {
        const kernel_row_t *row = beside(by_direct);
        return fuses(by_direct) || (row && row->on_tiles && rows > tile_source_rows);
    }
    source_blocks_t stream_of(bool by_direct, int64_t rows) const {
        return {weights.K, fuses(by_direct) ? 1 : 2, rows,
                by_direct ? kernels.direct_rows : kernels.gemm_rows, joined_rows(kernels)};
    }
};

// Decides whether and how an ISA takes the problem, except for the scratchpad.
reason_t configure(matmul_conf_t &conf, const problem_t &p, cpu_isa_t isa);

// The same for the few rows that are multiplied without tiles, if their number is not known. Its scratchpad
// has the same parts.
reason_t configure_few(matmul_conf_t &few, const problem_t &p, const matmul_conf_t &many);

// For parts of `source_rows` prepared rows. A thread has the sums of `task_rows` at a time.
void size_scratch(matmul_conf_t &conf, int64_t source_rows, int64_t task_rows);

} // namespace x64
} // namespace impl
} // namespace mxdnn
