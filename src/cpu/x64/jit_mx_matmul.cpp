// SPDX-License-Identifier: Apache-2.0
// Executing: prepare some rows of the source, let threads take runs of columns, finish each row in cache.
#include "cpu/x64/jit_mx_matmul.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/threading.hpp"
#include "cpu/x64/epilogue.hpp"
#include "cpu/x64/source_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
// Fewer elements than this are prepared by the calling thread: waking others takes longer.
constexpr int64_t serial_elements = 1 << 15;
} // namespace

status_t jit_mx_matmul_base_t::create_kernels(const problem_t &p) {
    const auto create = [&](const kernel_row_t &row, int rows, int panels, kernel_t &kernel) {
        kernel_params_t k;
        k.wei_dt = p.weights.dt;
        k.quant = p.weights.packed.quant;
        k.K = conf_.weights.K;
        k.rows = rows;
        k.panels = panels;
        const char *reason = nullptr;
        const status_t status = create_kernel(row, k, &kernel, &reason);
        return status == mxdnn_success ? status
                                       : fail(status, "kernel %s for %d rows and %d panels could not be generated: %s",
                                               row.name, rows, panels, reason ? reason : "no reason given");
    };
    if (conf_.weights.K == 0 || conf_.weights.N == 0) return mxdnn_success;

    const dim_t M = dim_from_end(p.dst, 2);
    const int64_t limit = direct_rows_limit(conf_.machine, conf_.kernels);
    // Row counts in powers of two, and the most; a call with fewer rows has rows of zeros.
    if (M == runtime_dim || M <= limit) {
        const int most = conf_.kernels.direct_rows;
        for (int r = 1; r < most; r *= 2) direct_rows_.push_back(r);
        direct_rows_.push_back(most);
        if (M != runtime_dim) {
            // Only those that this M uses: whole calls of the most rows, and a last one.
            const auto used = [&](int r) {
                const int64_t tail = M % most;
                return (r == most && M >= most) || (tail > 0 && r >= tail && (r / 2 < tail || r == 1 || r == most));
            };
            direct_rows_.erase(std::remove_if(direct_rows_.begin(), direct_rows_.end(), [&](int r) { return !used(r); }),
                    direct_rows_.end());
        }
        for (int j = 0; j < 3 && conf_.direct->panels[j]; j++)
            for (int r : direct_rows_) {
                direct_[j].emplace_back();
                MXDNN_CHECK(create(*conf_.direct, r, conf_.direct->panels[j], direct_[j].back()));
            }
    }
    if (M == runtime_dim || M > limit) {
        MXDNN_CHECK(create(*conf_.decode, 1, 1, decode_));
        MXDNN_CHECK(create(*conf_.dense, conf_.dense->max_rows, conf_.kernels.dense_panels, dense_));
    }
    return mxdnn_success;
}

// One execution of one primitive.
struct jit_mx_matmul_base_t::run_t {
    const jit_mx_matmul_base_t &self;
    const exec_ctx_t &ctx;
    const matmul_conf_t &c;
    matmul_plan_t plan;
    int64_t M, dst_n;
    int nthr;
    bool amax_only = false; // results are only measured, for a global scale

    // Of the batch entry and the run of rows at hand:
    const dim_t *idx = nullptr;
    const uint8_t *weights = nullptr;
    float weights_global = 1.f, src_global = 1.f;
    int64_t m0 = 0, rows = 0, padded_rows = 0;
    const void *source = nullptr;
    int64_t source_stride = 0;
    std::atomic<uint32_t> amax {0}; // bits of a non-negative float: ordered as integers

    char *source_buffer() const { return ctx.scratchpad; }
    float *row_scales() const { return reinterpret_cast<float *>(ctx.scratchpad + c.scratch.source); }
    float *block_sums() const {
        return reinterpret_cast<float *>(ctx.scratchpad + c.scratch.source + c.scratch.row_scales);
    }
    char *thread_buffer(int ithr) const {
        return ctx.scratchpad + c.scratch.total(0) + c.scratch.per_thread() * ithr;
    }

    run_t(const jit_mx_matmul_base_t &s, const exec_ctx_t &x) : self(s), ctx(x), c(s.conf_) {
        const memory_desc_t &dst = x.memory(MXDNN_ARG_DST)->md;
        M = dim_from_end(dst, 2);
        dst_n = dim_from_end(dst, 1);
        nthr = threads_of(x.stream, c.machine.threads);
        matmul_shape_t shape;
        shape.M = M;
        shape.K = c.weights.K;
        shape.N = c.weights.N;
        shape.column_step = c.column_step;
        shape.gated = c.gated;
        matmul_machine_t machine = c.machine;
        machine.threads = nthr;
        plan = plan_mx_matmul(shape, x.pd.problem.attr.max_rows_hint, machine, c.kernels);
    }

    // Makes `rows` rows from m0 on readable for kernels.
    void prepare_source() {
        if (c.weights.K == 0) return; // sums of nothing
        source_rows_t first(ctx, c.compute_dt);
        first.set_batch(idx);
        const problem_t &p = ctx.pd.problem;
        // The last call of a direct run reads whole rows of its kernel; what is beyond M is zeros.
        padded_rows = plan.direct ? padded_direct_rows() : c.any_rows ? rows : round_up(rows, c.kernels.dense_rows);
        const bool quantised = p.attr.src.scales.set;
        const bool in_place = plan.direct && padded_rows == rows && !quantised && !c.needs_sums && first.in_place(m0);
        if (in_place) {
            source = first.in_place(m0);
            source_stride = first.in_place_stride();
            return;
        }
        source = source_buffer();
        source_stride = c.scratch.source_stride;
        const int64_t K = c.weights.K, padded = round_up(K, k_step);
        const int n = padded_rows * K < serial_elements ? 1 : int(std::min<int64_t>(nthr, padded_rows));
        parallel(ctx.stream, n, [&](int ithr, int nt) {
            source_rows_t src(ctx, c.compute_dt);
            src.set_batch(idx);
            int64_t begin, end;
            balance(padded_rows, nt, ithr, begin, end);
            for (int64_t r = begin; r < end; r++) {
                char *out = source_buffer() + r * source_stride;
                source_sums_t sums {row_scales() + r, c.needs_sums ? block_sums() + r * c.scratch.sums_per_row : nullptr,
                        c.weights.block};
                if (r < rows) {
                    src.prepare(m0 + r, out, padded, sums);
                } else {
                    std::memset(out, 0, size_t(padded * c.kernels.compute_bytes));
                    if (sums.block_sums)
                        std::memset(sums.block_sums, 0, size_t(c.scratch.sums_per_row) * sizeof(float));
                }
            }
        });
    }

    // Rows that direct calls read: whole kernels, the last one the smallest that suffices.
    int64_t padded_direct_rows() const {
        const int64_t most = c.kernels.direct_rows, tail = rows % most;
        return rows - tail + (tail ? self.direct_rows_[direct_index(tail)] : 0);
    }
    size_t direct_index(int64_t n) const {
        size_t i = 0;
        while (i + 1 < self.direct_rows_.size() && self.direct_rows_[i] < n) i++;
        return i;
    }

    // Sums of the weights' columns [n0, n1), which become acc[row][n - n0 / 16 * 16]; decoded
    // panels go through `panels`.
    void multiply(int64_t n0, int64_t n1, float *acc, char *panels) const {
        const int64_t first = n0 / panel_columns, last = div_up(n1, panel_columns);
        if (c.weights.K == 0) {
            for (int64_t r = 0; r < rows; r++)
                std::memset(acc + r * c.scratch.acc_columns, 0, size_t((last - first) * panel_columns) * sizeof(float));
            return;
        }
        plan.direct ? multiply_direct(first, last, acc) : multiply_dense(first, last, acc, panels);
    }

    const uint8_t *panel(int64_t i) const {
        return weights + n16_frame_t::prefix(c.weights) + i * c.panel_bytes;
    }

    void multiply_direct(int64_t first, int64_t last, float *acc) const {
        direct_args_t a;
        a.src_stride = source_stride;
        a.wei_stride = c.panel_bytes;
        a.acc_stride = c.scratch.acc_columns * int64_t(sizeof(float));
        a.xsum_stride = c.scratch.sums_per_row * int64_t(sizeof(float));
        for (int64_t p = first; p < last;) {
            int j = 2; // the most panels that are left
            while (j > 0 && (c.direct->panels[j] == 0 || c.direct->panels[j] > last - p)) j--;
            a.wei = panel(p);
            for (int64_t r = 0; r < rows; r += c.kernels.direct_rows) {
                const size_t i = direct_index(std::min<int64_t>(rows - r, c.kernels.direct_rows));
                a.src = static_cast<const char *>(source) + r * source_stride;
                a.acc = acc + r * c.scratch.acc_columns + (p - first) * panel_columns;
                a.xsum = block_sums() + r * c.scratch.sums_per_row;
                (*self.direct_[j][i])(&a);
            }
            p += c.direct->panels[j];
        }
    }

    void multiply_dense(int64_t first, int64_t last, float *acc, char *panels) const {
        const int64_t step = c.kernels.dense_panels, tile_rows = c.kernels.tile_rows, K = c.weights.K;
        const int64_t panel_size = plan.k_chunk * panel_columns * c.kernels.compute_bytes;
        dense_args_t d;
        d.src_stride = source_stride;
        d.wei = panels;
        d.wei_stride = panel_size;
        d.acc_stride = c.scratch.acc_columns * int64_t(sizeof(float));
        for (int64_t p = first; p < last; p += step) {
            for (int64_t k = 0; k < K; k += plan.k_chunk) {
                const int64_t n = std::min(plan.k_chunk, K - k);
                for (int64_t i = 0; i < step; i++) {
                    char *to = panels + i * panel_size;
                    // Past the last panel there is nothing to read: the same columns once more.
                    decode_args_t a;
                    a.wei = panel(std::min(p + i, last - 1)) + k / tile_rows * c.tile_bytes;
                    a.tiles = n / tile_rows;
                    a.tail = n % tile_rows;
                    a.dst = to;
                    (*self.decode_)(&a);
                }
                d.k = round_up(n, k_step);
                d.accumulate = k > 0;
                for (int64_t r = 0; r < rows; r += c.kernels.dense_rows) {
                    d.src = static_cast<const char *>(source) + r * source_stride + k * c.kernels.compute_bytes;
                    d.acc = acc + r * c.scratch.acc_columns + (p - first) * panel_columns;
                    d.rows = std::min<int64_t>(c.kernels.dense_rows, rows - r);
                    (*self.dense_)(&d);
                }
            }
        }
    }

    // Destination columns [c0, c1) of all rows.
    void do_columns(int64_t c0, int64_t c1, const epilogue_t &epilogue, char *buffer) {
        float *acc = reinterpret_cast<float *>(buffer + c.scratch.panels);
        const int64_t half = c.weights.N / 2;
        const int64_t n0 = c.gated && !c.halves ? 2 * c0 : c0, n1 = c.gated && !c.halves ? 2 * c1 : c1;
        multiply(n0, n1, acc, buffer);
        float *up = acc + (div_up(n1, panel_columns) - n0 / panel_columns) * panel_columns;
        if (c.halves) multiply(half + c0, half + c1, up, buffer);
        const bool scaled = ctx.pd.problem.attr.src.scales.set;
        float most = 0;
        for (int64_t r = 0; r < rows; r++) {
            float *x = acc + r * c.scratch.acc_columns + n0 % panel_columns;
            float *u = up + r * c.scratch.acc_columns + (half + c0) % panel_columns;
            float scale = weights_global * src_global;
            if (scaled) scale *= row_scales()[r];
            if (amax_only)
                most = std::max(most, epilogue.amax_row(m0 + r, c0, c1 - c0, x, u, scale));
            else
                epilogue.finish_row(m0 + r, c0, c1 - c0, x, u, scale);
        }
        if (!amax_only) return;
        uint32_t seen = amax.load();
        while (seen < bits_of(most) && !amax.compare_exchange_weak(seen, bits_of(most))) {
        }
    }

    void do_batch_entry(const dim_t *entry) {
        idx = entry;
        matrix_view_t wei(ctx, MXDNN_ARG_WEIGHTS, ctx.pd.problem.weights, ctx.pd.problem.attr.weights);
        matrix_view_t src(ctx, MXDNN_ARG_SRC, ctx.pd.problem.src, ctx.pd.problem.attr.src);
        wei.set_batch(idx);
        src.set_batch(idx);
        weights = wei.packed_data();
        weights_global = wei.global();
        src_global = src.quantised() ? src.global() : 1.f;
        for (m0 = 0; m0 < M; m0 += plan.rows) {
            rows = std::min(plan.rows, M - m0);
            prepare_source();
            const int64_t tasks = div_up(dst_n, plan.columns);
            const int n = int(std::min<int64_t>(nthr, tasks));
            parallel(ctx.stream, n, [&](int ithr, int nt) {
                epilogue_t epilogue(ctx);
                epilogue.set_batch(idx);
                int64_t begin, end;
                balance(tasks, nt, ithr, begin, end);
                for (int64_t t = begin; t < end; t++)
                    do_columns(t * plan.columns, std::min((t + 1) * plan.columns, dst_n), epilogue, thread_buffer(ithr));
            });
        }
    }
};

status_t jit_mx_matmul_base_t::execute(const exec_ctx_t &ctx) const {
    const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
    run_t run(*this, ctx);
    if (run.M == 0 || run.dst_n == 0) return mxdnn_success;
    const bool global = ctx.pd.problem.attr.dst.global == mxdnn_quantization_mode_dynamic_fp;
    for_each_index(dst.ndims - 2, dst.dims, [&](const dim_t *idx) {
        if (global) {
            // The global scale needs all results: they are computed twice rather than kept.
            run.amax_only = true;
            run.amax = 0;
            run.do_batch_entry(idx);
            run.amax_only = false;
            epilogue_t epilogue(ctx);
            epilogue.set_batch(idx);
            epilogue.set_global(float_of(run.amax));
        }
        run.do_batch_entry(idx);
    });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
