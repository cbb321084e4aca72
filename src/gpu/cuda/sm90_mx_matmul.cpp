// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sm90_mx_matmul.hpp"

#include "common/formats/format_list.hpp"
#include "common/layouts/n64.hpp"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/ref/ref_mx_matmul.hpp"
#include "gpu/cuda/sm90_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int64_t copy_bytes = 16; // source rows are copied in pieces of so many, aligned to as many

sm90::value_type_t value_type(data_type_t dt) {
    switch (dt) {
    case mxdnn_f32: return sm90::value_type_t::f32;
    case mxdnn_bf16: return sm90::value_type_t::bf16;
    case mxdnn_f16: return sm90::value_type_t::f16;
    default: return sm90::value_type_t::none;
    }
}

bool is_row_major(const memory_desc_t &md) {
    return is_strided(md) && (md.strides[md.ndims - 1] == 1 || md.dims[md.ndims - 1] == 1);
}

// The kernels' format of packed weights; format_t::count where they have none.
sm90::format_t format_of(const memory_desc_t &wei) {
    using sm90::format_t;
    const quant_t &q = wei.packed.quant;
    if (q.zp == zero_point_kind_t::none && q.scale_dt == mxdnn_e8m0 && q.block == 32) {
        switch (wei.dt) {
        case mxdnn_f4_e2m1: return format_t::mxfp4;
        case mxdnn_f6_e2m3: return format_t::mxfp6_e2m3;
        case mxdnn_f6_e3m2: return format_t::mxfp6_e3m2;
        case mxdnn_f8_e4m3: return format_t::mxfp8_e4m3;
        case mxdnn_f8_e5m2: return format_t::mxfp8_e5m2;
        case mxdnn_s8: return format_t::mxint8;
        default: return format_t::count;
        }
    }
    if (wei.dt == mxdnn_f4_e2m1 && q.scale_dt == mxdnn_f8_e4m3 && q.block == 16) return format_t::nvfp4;
    return format_t::count;
}

sm90::tiling_t tiling_of(const packed_shape_t &s) {
    using frame = n64_frame_t;
    sm90::tiling_t t;
    const int64_t rows = frame::tile_rows(s);
    t.panel_bytes = frame::panel_bytes(s);
    t.tile_bytes = int32_t(frame::tile_bytes(s, rows));
    t.header_bytes = int32_t(frame::header_bytes(s));
    while (frame::min_tile_rows << t.tile_steps_shift < rows) t.tile_steps_shift++;
    t.blocks = int32_t(frame::blocks(s));
    return t;
}

sm90::matmul_plan_t plan_of(const problem_t &p, int64_t rows, int sm_count) {
    const int64_t N = dim_from_end(p.weights, 1), K = dim_from_end(p.weights, 2);
    const sm90::tiling_t t = tiling_of(shape_of(p.weights));
    return sm90::plan_matmul(rows, N, K, 1, t.tile_bytes >> t.tile_steps_shift, sm_count);
}

int sm_count_of(const problem_t &p) {
    const device_t *d = exec_engine(p).device;
    return d ? d->info.sm_count : assumed_device(90).sm_count;
}

} // namespace

reason_t sm90_mx_matmul_t::pd_t::init() {
    const memory_desc_t &src = problem.src, &wei = problem.weights, &bias = problem.bias, &dst = problem.dst;
    const engine_t &engine = exec_engine(problem);
    const int arch = engine.device ? arch_of(engine.device->info) : engine.target->arch;
    if (arch != 90) return no("device", "another architecture", "sm_90");
    if (!is_packed(wei)) return no("weights", "plain ones", "packed ones");
    if (format_of(wei) == sm90::format_t::count) return no("weights", to_string(wei).c_str(), "MX or NVFP4");
    if (wei.ndims != 2) return no("weights", "a batch", "one matrix");
    if (src.dt != mxdnn_bf16) return no("src", data_type_name(src.dt), "bf16");
    if (value_type(dst.dt) == sm90::value_type_t::none)
        return no("dst", data_type_name(dst.dt), "f32, bf16 or f16");
    if (!is_row_major(src) || !is_row_major(dst))
        return no("src and dst", "columns apart", "rows of neighbours");
    const int64_t row_elements = copy_bytes / 2;
    if (dim_from_end(wei, 2) % row_elements) return no("K", "no multiple of 8", "one");
    if (src.strides[0] == runtime_dim || src.strides[0] % row_elements)
        return no("src", "rows that are no multiple of 8 elements apart", "a multiple");
    if (dst.strides[0] == runtime_dim)
        return no("dst", "rows at a distance known only at execution", "a known one");
    if (bias.ndims
            && (!is_strided(bias) || value_type(bias.dt) == sm90::value_type_t::none
                    || dim_from_end(bias, 1) != dim_from_end(wei, 1) || bias.strides[bias.ndims - 1] != 1
                    || (bias.ndims > 1 && dim_from_end(bias, 2) != 1)))
        return no("bias", to_string(bias).c_str(), "one dense row of f32, bf16 or f16");
    const auto &ops = problem.attr.post_ops.ops;
    if (ops.size() > 1) return no("post-ops", "several", "none or one gated swiglu");
    if (ops.size() == 1
            && (ops[0].kind != mxdnn_gated || ops[0].alg != mxdnn_gated_swiglu
                    || ops[0].gated_layout != mxdnn_gated_interleaved))
        return no("post-ops", "another", "none or one interleaved gated swiglu");
    return yes();
}

status_t sm90_mx_matmul_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::sm90_few_rows));
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::sm90_many_rows));
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_mx_matmul));
    primitive = std::make_shared<sm90_mx_matmul_t>();
    return mxdnn_success;
}

std::string sm90_mx_matmul_t::pd_t::plan_text() const {
    std::string text;
    for (int64_t rows : {1, 16, 64, 256, 4096}) {
        const sm90::matmul_plan_t p = plan_of(problem, rows, sm_count_of(problem));
        text += (text.empty() ? "M=" : " M=") + std::to_string(rows) + ":"
                + (p.kernel == sm90::kernel_t::few_rows
                                ? "few_rows:" + std::to_string(sm90::few_rows_variants[p.variant].panels)
                                          + "panels"
                                : "many_rows:" + std::to_string(sm90::many_rows_widths[p.variant]) + "wide")
                + ":splits" + std::to_string(p.splits) + ":grid" + std::to_string(p.grid);
    }
    return text;
}

status_t sm90_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &wei = *ctx.memory(MXDNN_ARG_WEIGHTS);
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST);
    // Where a caller's rows start is known only now.
    if (reinterpret_cast<uintptr_t>(src.handle) % copy_bytes) return ref_mx_matmul_t().execute(ctx);
    sm90::launch_args_t launch;
    sm90::matmul_args_t &a = launch.matmul;
    const packed_shape_t shape = shape_of(wei.md);
    a.weights = static_cast<const uint8_t *>(wei.handle) + n64_frame_t::prefix(shape);
    if (shape.global) a.globals = static_cast<const float *>(wei.handle);
    a.tiling = tiling_of(shape);
    launch.format = format_of(wei.md);
    a.src = src.handle;
    a.src_stride = src.md.strides[0];
    a.dst = dst.handle;
    a.dst_stride = dst.md.strides[0];
    a.dst_type = value_type(dst.md.dt);
    const int64_t M = dim_from_end(dst.md, 2);
    if (M > INT32_MAX / 2) return ref_mx_matmul_t().execute(ctx);
    a.M = int32_t(M);
    a.N = int32_t(dim_from_end(p.weights, 1));
    a.K = int32_t(dim_from_end(p.weights, 2));
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) {
        a.bias = bias->handle;
        a.bias_type = value_type(bias->md.dt);
    }
    if (const post_op_t *gated = p.attr.gated()) {
        a.activation = sm90::activation_t::swiglu;
        a.alpha = gated->alpha;
        a.limit = gated->beta;
    }
    if (a.M == 0 || a.N == 0) return mxdnn_success;
    const sm90::matmul_plan_t plan = plan_of(p, a.M, sm_count_of(p));
    a.splits = plan.splits;
    launch.variant = plan.variant;
    launch.grid = plan.grid;
    const kernel_id_t before = ctx.stream.cuda->last_kernel();
    launch.early = before == kernel_id_t::sm90_few_rows || before == kernel_id_t::sm90_many_rows;
    return launch_kernel(ctx,
            plan.kernel == sm90::kernel_t::few_rows ? kernel_id_t::sm90_few_rows
                                                    : kernel_id_t::sm90_many_rows,
            launch);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
