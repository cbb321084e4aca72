// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_mx_matmul.hpp"

#include <algorithm>

#include "cpu/empty_dst.hpp"
#include "cpu/ref/ref_row.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {

namespace {
// Rows that share one decoding of the weights.
constexpr int64_t rows_together = 16;
} // namespace

reason_t ref_mx_matmul_t::pd_t::init() {
    // Buffers of one thread: some rows of results and of the source, and a column of decoded weights.
    const memory_desc_t &wei = problem.weights;
    const int64_t row =
            checked_mul((rows_together + 1) * (dim_from_end(wei, 1) + dim_from_end(wei, 2)), sizeof(double));
    if (row < 0) return refuse(mxdnn_unimplemented, "the reference's scratchpad would be beyond 2^50 bytes");
    scratch.book(scratch_t::thread, row, problem.max_concurrency);
    return yes();
}

namespace {

// One execution: everything that does not depend on the row.
struct ref_matmul_run_t {
    const exec_ctx_t &ctx;
    const problem_t &p;
    matrix_view_t src, wei, dst;
    int nd;
    dim_t K, N;

    explicit ref_matmul_run_t(const exec_ctx_t &c)
        : ctx(c), p(c.pd.problem), src(c, MXDNN_ARG_SRC, p.src, p.attr.src),
          wei(c, MXDNN_ARG_WEIGHTS, p.weights, p.attr.weights), dst(c, MXDNN_ARG_DST, p.dst, p.attr.dst),
          nd(p.dst.ndims), K(dim_from_end(p.weights, 2)), N(dim_from_end(p.weights, 1)) {}

    // Computes rows dst[idx[0], .., m0 + r, :] for r < count in results[r * N]: f32 values stored as doubles.
    void compute_rows(const dim_t *first_idx, dim_t count, double *results, double *source, double *column) {
        src.set_batch(first_idx);
        wei.set_batch(first_idx);
        const dim_t m0 = first_idx[nd - 2];
        for (dim_t r = 0; r < count; r++) ref_source_row(src, p, m0 + r, K, source + r * K);
        for (dim_t n = 0; n < N; n++) {
            for (dim_t k = 0; k < K; k++) column[k] = wei.value(k, n);
            for (dim_t r = 0; r < count; r++) {
                double sum = 0;
                for (dim_t k = 0; k < K; k++) sum += source[r * K + k] * column[k];
                results[r * N + n] = sum;
            }
        }
        dim_t idx[max_ndims] = {};
        std::copy(first_idx, first_idx + nd - 1, idx);
        for (dim_t r = 0; r < count; r++) {
            idx[nd - 2] = m0 + r;
            finish_row(idx, results + r * N);
        }
    }

    // Bias and post-ops of a row of sums. idx is its index, with room for the column.
    void finish_row(dim_t *idx, double *row) {
        if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS))
            for (dim_t n = 0; n < N; n++) {
                idx[nd - 1] = n;
                row[n] += ref_broadcast_value(*bias, nd, idx);
            }
        dim_t columns = N;
        int index = 0;
        for (const post_op_t &o : p.attr.post_ops.ops) {
            const memory_t *operand = ctx.memory(MXDNN_ARG_ATTR_MULTIPLE_POST_OP(index++) | MXDNN_ARG_SRC_1);
            if (o.kind == mxdnn_gated) {
                columns /= 2;
                ref_gate_row(o, o.alpha, 1, o.beta, row, columns);
                continue;
            }
            for (dim_t n = 0; n < columns; n++) {
                idx[nd - 1] = n;
                switch (o.kind) {
                case mxdnn_eltwise: row[n] = ref_eltwise(o.alg, row[n], o.alpha, o.beta); break;
                case mxdnn_binary:
                    row[n] = ref_binary(o.alg, row[n], ref_broadcast_value(*operand, nd, idx));
                    break;
                case mxdnn_sum: row[n] += double(o.scale) * (old_dst(o, idx) - o.zero_point); break;
                default: break;
                }
            }
        }
    }

    float old_dst(const post_op_t &o, const dim_t *idx) const {
        const uint32_t code = plain_view_t(*ctx.memory(MXDNN_ARG_DST)).load(idx);
        return decode_value(o.dt == mxdnn_data_type_undef ? p.dst.dt : o.dt, code);
    }

    dim_t dst_columns() const { return p.attr.gated() ? N / 2 : N; }

    void store_row(const dim_t *row_idx, const double *row) {
        dst.set_batch(row_idx);
        ref_store_row(dst, p.attr.dst, row_idx[nd - 2], row, dst_columns());
    }
};

} // namespace

status_t ref_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
    const problem_t &p = ctx.pd.problem;
    const int nd = dst.ndims;
    const dim_t K = dim_from_end(p.weights, 2), N = dim_from_end(p.weights, 1);
    int64_t rows = 1;
    for (int i = 0; i < nd - 1; i++) rows *= dst.dims[i];
    if (rows == 0 || N == 0) return write_empty_dst(ctx);
    // Consecutive rows of one matrix.
    const dim_t M = dst.dims[nd - 2], runs_per_matrix = div_up(M, rows_together),
                runs = rows / M * runs_per_matrix;
    const int nthr = int(std::min<int64_t>(runs, threads_of(ctx.stream, p.max_concurrency)));

    const auto for_rows = [&](auto &&body) {
        parallel(ctx, nthr, [&](int ithr, int n) {
            ref_matmul_run_t run(ctx);
            double *results = ctx.scratch<double>(scratch_t::thread, ithr);
            double *source = results + rows_together * N, *column = source + rows_together * K;
            int64_t begin, end;
            balance(runs, n, ithr, begin, end);
            for (int64_t i = begin; i < end; i++) {
                dim_t idx[max_ndims] = {};
                const dim_t m0 = i % runs_per_matrix * rows_together, count = std::min(rows_together, M - m0);
                int64_t rest = i / runs_per_matrix;
                const int64_t first_row = rest * M + m0;
                idx[nd - 2] = m0;
                for (int d = nd - 3; d >= 0; d--) {
                    idx[d] = rest % dst.dims[d];
                    rest /= dst.dims[d];
                }
                run.compute_rows(idx, count, results, source, column);
                for (dim_t r = 0; r < count; r++, idx[nd - 2]++)
                    body(run, idx, results + r * N, first_row + r);
            }
        });
    };

    // A global scale that is computed needs all results first. They are computed twice, not stored.
    if (p.attr.dst.global == mxdnn_quantization_mode_dynamic_fp) {
        // The largest magnitudes are collected in the memory of the scales.
        const memory_t &global = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        uint32_t *largest = static_cast<uint32_t *>(global.handle);
        const dim_t scales = global.md.dims[0];
        std::fill(largest, largest + scales, 0u);
        for_rows([&](ref_matmul_run_t &run, const dim_t *, const double *row, int64_t r) {
            ref_atomic_max(largest + (scales == 1 ? 0 : r / M), ref_amax(row, run.dst_columns()));
        });
        for (dim_t i = 0; i < scales; i++) largest[i] = bits_of(nvfp4_global_scale(float_of(largest[i])));
    }
    for_rows([](ref_matmul_run_t &run, const dim_t *idx, const double *row, int64_t) {
        run.store_row(idx, row);
    });
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
