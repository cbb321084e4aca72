// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/cublaslt_fp8_mx_matmul.hpp"

#include <algorithm>

#include "common/layouts/n64.hpp"
#include "gpu/cuda/heuristics/cublaslt_plan.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/packed/packed_mx_matmul.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/impl/packed/packed_source.hpp"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Room for the codes of weights, and for those of rows.
constexpr int64_t most_codes = 64 << 20, step = 64;

// The workspace that cuBLASLt needs.
struct space_t {
    int64_t columns, rows; // that are computed at a time
    scratch_parts_t parts;

    explicit space_t(const problem_t &p) {
        const int64_t K = dim_from_end(p.weights, 2), N = dim_from_end(p.weights, 1),
                      M = dim_from_end(p.dst, 2), fit = std::max(step, most_codes / K / step * step);
        columns = std::min(fit, round_up(N, step));
        rows = M == runtime_dim ? fit : std::min(fit, round_up(M, step));
        parts.book(scratch_t::column_scales, columns * 4);
        parts.book(scratch_t::row_scales, rows * 4);
        parts.book(scratch_t::weights, columns * K);
        parts.book(scratch_t::source_rows, rows * K);
        parts.book(scratch_t::workspace, cublaslt_workspace_bytes);
    }
};

int64_t width_of(const memory_desc_t &dst) { return dst.dt == mxdnn_f32 ? 4 : 2; }

cublaslt_matmul_t fp8_matmul_of(const problem_t &p, int64_t rows, int64_t columns) {
    cublaslt_matmul_t m{};
    m.rows = rows;
    m.columns = columns;
    m.depth = m.weights_stride = m.src_stride = dim_from_end(p.weights, 2);
    m.dst_stride = p.dst.strides[0];
    m.factors = mxdnn_f8_e4m3;
    m.dst = p.dst.dt;
    return m;
}

} // namespace

reason_t cublaslt_fp8_mx_matmul_t::pd_t::init() {
    const memory_desc_t &wei = problem.weights, &dst = problem.dst;
    if (const reason_t r = check_fp8_problem(problem); !r.ok()) return r;
    const int64_t K = dim_from_end(wei, 2), N = dim_from_end(wei, 1), M = dim_from_end(dst, 2);
    if (K % step || N % cublaslt_align) return no("K or N", "no multiple of 64, or of 16", "ones");
    if (dst.dt != mxdnn_bf16 && dst.dt != mxdnn_f32) return no("dst", data_type_name(dst.dt), "bf16 or f32");
    if (problem.bias.ndims || !problem.attr.post_ops.ops.empty())
        return no("bias or post-ops", "some", "none");
    exact = std::make_unique<sm90_mx_matmul_t::pd_t>(problem);
    const reason_t r = static_cast<sm90_mx_matmul_t::pd_t &>(*exact).init();
    if (!r.ok()) return r;
    if (dst.strides[0] * width_of(dst) % cublaslt_align)
        return no("dst", "rows that do not start on 16 bytes", "rows that do");
    least_rows = cublaslt::least_fp8_rows(N, K, n64_frame_t::panel_bytes(shape_of(wei)));
    const int64_t hint = problem.attr.max_rows_hint, most = M != runtime_dim ? M
                                                            : hint > 0       ? hint
                                                                             : cublaslt::never_rows;
    if (most < least_rows)
        return no("rows", std::to_string(most).c_str(), std::to_string(least_rows).c_str());
    if (const device_t *device = device_of(exec_engine(problem))) {
        const result_t opened = device->table->cublaslt_open(device->index, true);
        if (!opened.ok()) return no("cuBLASLt", opened.text, "the library");
    }
    // The remaining panels are computed exactly, afterwards.
    scratch.book(scratch_t::left_panels, div_up(N, step) * 4);
    scratch.book(scratch_t::nested, std::max(space_t(problem).parts.size(), exact->scratch.size()));
    return yes();
}

std::string cublaslt_fp8_mx_matmul_t::pd_t::plan_text() const {
    return "M>=" + std::to_string(least_rows) + " else " + exact->name() + ":" + exact->plan_text();
}

status_t cublaslt_fp8_mx_matmul_t::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::sm90_fp8_weights));
    MXDNN_CHECK(prepare_convert_source(problem));
    auto p = std::make_shared<cublaslt_fp8_mx_matmul_t>();
    MXDNN_CHECK(exact->create_primitive(p->exact_));
    const device_t &d = exec_device(problem);
    const space_t space(problem);
    const int64_t N = dim_from_end(problem.weights, 1);
    MXDNN_CHECK(check(d.table->cublaslt_choose(d.index,
                              fp8_matmul_of(problem, space.rows, std::min(space.columns, N)), 0, &p->kernel_),
            "choosing a kernel of cuBLASLt"));
    primitive = std::move(p);
    return mxdnn_success;
}

status_t cublaslt_fp8_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    const auto &pd = static_cast<const pd_t &>(ctx.pd);
    const problem_t &p = pd.problem;
    const exec_ctx_t exact_ctx = ctx.nested(*pd.exact);
    const memory_t &wei = *ctx.memory(MXDNN_ARG_WEIGHTS), &dst = *ctx.memory(MXDNN_ARG_DST);
    const int64_t M = dim_from_end(dst.md, 2), N = dim_from_end(p.weights, 1), K = dim_from_end(p.weights, 2);
    if (M < pd.least_rows || M > INT32_MAX / 2 || reinterpret_cast<uintptr_t>(dst.handle) % cublaslt_align)
        return exact_->execute(exact_ctx);

    const space_t space(p);
    const cuda_stream_t &s = cuda_stream_of(ctx.stream);
    const auto at = [&](scratch_t part) {
        return ctx.scratch<char>(scratch_t::nested) + space.parts.offset(part);
    };
    auto *left = ctx.scratch<int32_t>(scratch_t::left_panels);
    packed::fp8_weights_args_t w;
    w.panel_bytes = n64_frame_t::panel_bytes(shape_of(p.weights));
    w.K = int32_t(K);
    w.codes = reinterpret_cast<uint8_t *>(at(scratch_t::weights));
    w.scales = reinterpret_cast<float *>(at(scratch_t::column_scales));
    cublaslt_buffers_t buffers{};
    buffers.src = at(scratch_t::source_rows);
    buffers.weights = w.codes;
    buffers.row_scales = reinterpret_cast<float *>(at(scratch_t::row_scales));
    buffers.column_scales = w.scales;
    buffers.workspace = at(scratch_t::workspace);
    const int64_t rows_each = round_up(div_up(M, div_up(M, space.rows)), step);
    for (int64_t n = 0; n < N; n += space.columns) {
        const int64_t columns = std::min(space.columns, N - n);
        w.panels = static_cast<const uint8_t *>(wei.handle) + n / step * w.panel_bytes;
        w.count = int32_t(div_up(columns, step));
        w.columns = int32_t(columns);
        w.left = left + n / step;
        w.early = writes_no_weights(s.last_kernel());
        MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::sm90_fp8_weights, w));
        for (int64_t m = 0; m < M; m += rows_each) {
            const int64_t rows = std::min(rows_each, M - m);
            MXDNN_CHECK(make_fp8_rows(ctx, {m, rows}, reinterpret_cast<uint8_t *>(at(scratch_t::source_rows)),
                    reinterpret_cast<float *>(at(scratch_t::row_scales))));
            buffers.dst = static_cast<char *>(dst.handle) + (m * dst.md.strides[0] + n) * width_of(dst.md);
            if (ctx.record) ctx.record->add_kernel("cublaslt");
            MXDNN_CHECK(check(s.device().table->cublaslt_launch(
                                      s.launch(), fp8_matmul_of(p, rows, columns), kernel_, buffers),
                    "a product by cuBLASLt"));
        }
    }
    return multiply_packed(sm90_matmul_kernels, exact_ctx, left);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
