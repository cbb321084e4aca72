// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_grouped_backward_weights.hpp"

#include <algorithm>
#include <cstring>

#include "common/backward_weights_exec.hpp"
#include "common/formats/quantize_block.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Rows of a gradient that a thread computes together, for which diff_dst is decoded once.
constexpr int64_t rows_together = 16;

// Sums of one thread, and a row of diff_dst.
int64_t doubles_per_thread(dim_t N) { return (rows_together + 1) * N; }

} // namespace

reason_t ref_grouped_backward_weights_t::pd_t::init() {
    const int64_t each = checked_mul(doubles_per_thread(problem.diff_weights.dims[2]), sizeof(double));
    if (each < 0) return refuse(mxdnn_unimplemented, "the reference's scratchpad would be beyond 2^50 bytes");
    scratch.book(scratch_t::thread, each, problem.max_concurrency);
    return yes();
}

namespace {

uint32_t load(const uint8_t *data, int64_t at, int bits) {
    uint32_t code = 0;
    std::memcpy(&code, data + at * bits / 8, size_t(bits / 8));
    return code;
}

// The part of one thread in an execution.
struct ref_backward_weights_run_t {
    const problem_t &p;
    const backward_weights_exec_t &x;
    const memory_t &diff_weights;
    double *sums, *row;
    const dim_t N = p.diff_weights.dims[2];

    // Row i of a group and column c.
    static double value(const grouped_operand_t &o, int64_t g, const backward_weights_exec_t::group_t &group,
            int64_t i, int64_t c) {
        const data_type_t dt = o.md->dt;
        const uint32_t code =
                load(o.data, o.row_offset(group.first + i) + c * o.column_stride(), data_type_info(dt)->bits);
        if (!o.scales) return decode_value(dt, code);
        quant_t q;
        q.scale_dt = o.scales->md.dt;
        q.block = o.block;
        block_params_t params;
        params.scale = load(static_cast<const uint8_t *>(o.scales->handle),
                o.scales_offset(g, group.first_block, i / o.block) + c * o.scales_column_stride(),
                data_type_info(q.scale_dt)->bits);
        return dequantize_element(dt, q, params, 1.f, code);
    }

    void compute(int64_t g, const backward_weights_exec_t::group_t &group, int64_t first, int64_t count) {
        std::fill_n(sums, count * N, 0.);
        for (int64_t i = 0; i < group.rows; i++) {
            for (dim_t n = 0; n < N; n++) row[n] = value(x.diff_dst, g, group, i, n);
            for (int64_t k = 0; k < count; k++) {
                const double s = value(x.src, g, group, i, first + k);
                for (dim_t n = 0; n < N; n++) sums[k * N + n] += s * row[n];
            }
        }
        for (int64_t k = 0; k < count; k++)
            for (dim_t n = 0; n < N; n++) store(g, group.rows == 0, first + k, n, sums[k * N + n]);
    }

    void store(int64_t g, bool empty, int64_t k, int64_t n, double sum) const {
        const memory_desc_t &md = diff_weights.md;
        const data_type_info_t &info = *data_type_info(md.dt);
        const int64_t at = g * md.strides[0] + k * md.strides[1] + n * md.strides[2];
        uint8_t *to = static_cast<uint8_t *>(diff_weights.handle) + at * info.bits / 8;
        if (!p.attr.post_ops.ops.empty()) {
            const post_op_t &o = p.attr.post_ops.ops[0];
            const data_type_t as = o.dt == mxdnn_data_type_undef ? md.dt : o.dt;
            const double old = double(o.scale) * (decode_value(as, load(to, 0, info.bits)) - o.zero_point);
            sum = empty ? old : sum + old; // nothing is added, not even to -0
        }
        const uint32_t code = info.encode(float(sum));
        std::memcpy(to, &code, size_t(info.bits / 8));
    }
};

} // namespace

status_t ref_grouped_backward_weights_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const backward_weights_exec_t x(ctx);
    const memory_t &diff_weights = *ctx.memory(MXDNN_ARG_DIFF_WEIGHTS);
    const dim_t G = p.diff_weights.dims[0], K = p.diff_weights.dims[1], N = p.diff_weights.dims[2];
    const int64_t runs = div_up(K, rows_together), tasks = G * runs;
    if (tasks == 0 || N == 0) return mxdnn_success;
    const int nthr = int(std::min<int64_t>(tasks, threads_of(ctx.stream, p.max_concurrency)));
    parallel(ctx, nthr, [&](int ithr, int n) {
        double *sums = ctx.scratch<double>(scratch_t::thread, ithr);
        ref_backward_weights_run_t run{p, x, diff_weights, sums, sums + rows_together * N};
        int64_t begin, end;
        balance(tasks, n, ithr, begin, end);
        x.for_each_group([&](int64_t g, const backward_weights_exec_t::group_t &group) {
            for (int64_t i = std::max(begin, g * runs); i < std::min(end, (g + 1) * runs); i++) {
                const int64_t first = i % runs * rows_together;
                run.compute(g, group, first, std::min(rows_together, K - first));
            }
        });
    });
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
