// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/cublaslt_mx_matmul.hpp"

#include <algorithm>

#include "common/layouts/n64.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tile_args.hpp"
#include "gpu/cuda/impl/packed/packed_mx_matmul.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The speed of the implementations after this one with many rows, relative to cuBLASLt, as mxdnn-bench
// measures it on an H200. 1 leaves the format to them. For int4 that is not rounded fewer rows decide.
double speed_of_others(const matmul_kernels_t *kernels, const problem_t &p) {
    const int64_t N = dim_from_end(p.weights, 1), K = dim_from_end(p.weights, 2);
    if (kernels != &sm90_matmul_kernels) return cublaslt::speed_of_sm80_gemm;
    constexpr double of_gemm = .98, of_gemm_with_zeros = .92;
    const packed::format_t format = kernel_format(p);
    if (format.decoder != decoder_t::int4) return of_gemm;
    if (rounds_int4(*kernels, p))
        return format.kind == int4_kind_t::s4 && p.src.dt == mxdnn_bf16 ? of_gemm : of_gemm_with_zeros;
    if (format.kind == int4_kind_t::any) return cublaslt::speed_of_sm80_gemm;
    return cublaslt::speed_of_gemv(N, K, format.kind == int4_kind_t::zeros ? .14 : .21);
}

// The next implementation in the list that takes the problem.
std::unique_ptr<pd_t> next_of_list(const problem_t &p, const char *name) {
    const impl_list_t list = impl_list(p);
    size_t i = 0;
    while (i < list.size && list.items[i].name != name) i++;
    std::unique_ptr<pd_t> pd;
    for (i++; i < list.size && !pd; i++) list.items[i].create(pd, p);
    return pd;
}

// The kernels of an implementation for packed weights; null for others.
const matmul_kernels_t *kernels_of(const pd_t &pd) {
    for (const matmul_kernels_t *k : {&sm90_matmul_kernels, &sm80_matmul_kernels})
        if (pd.name() == std::string(k->impl_name)) return k;
    return nullptr;
}

// Scales and zeros of a type that are 0 or at least this large make weights that f16 represents within 2^-11
// of themselves. Those of f16 are multiples of 2^-24, the smallest f16. So are those of bf16 from 2^-17 on.
// f32 makes normal f16.
float least_for_f16(data_type_t dt) { return dt == mxdnn_f16 ? 0.f : dt == mxdnn_bf16 ? 0x1p-17f : 0x1p-14f; }

int64_t dst_width(const memory_desc_t &dst) { return dst.dt == mxdnn_f32 ? 4 : 2; }

// Contiguous rows that start at multiples of so many bytes, relative to the first one.
bool has_aligned_rows(const memory_desc_t &md, int64_t width) {
    const int64_t step = md.strides[md.ndims - 2];
    return is_strided(md) && (md.strides[md.ndims - 1] == 1 || md.dims[md.ndims - 1] == 1)
           && step != runtime_dim && step * width % cublaslt_align == 0;
}

bool is_aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % cublaslt_align == 0; }

cublaslt_matmul_t cublaslt_of(const problem_t &p, int64_t rows, int64_t columns) {
    cublaslt_matmul_t m{};
    m.rows = rows;
    m.columns = columns;
    m.depth = m.weights_stride = dim_from_end(p.weights, 2);
    m.src_stride = p.src.strides[p.src.ndims - 2];
    m.dst_stride = p.dst.strides[p.dst.ndims - 2];
    m.factors = p.src.dt;
    m.dst = p.dst.dt;
    m.bias = p.bias.ndims != 0;
    m.relu = !p.attr.post_ops.ops.empty();
    m.scaled = p.weights.packed.quant.global != global_scale_kind_t::none;
    return m;
}

} // namespace

template <data_type_t dt>
reason_t cublaslt_mx_matmul_t<dt>::pd_t::init() {
    const memory_desc_t &src = problem.src, &wei = problem.weights, &bias = problem.bias, &dst = problem.dst;
    if (!is_packed(wei)) return no("weights", "plain ones", "packed ones");
    if (wei.ndims != 2) return no("weights", "a batch", "one matrix");
    const char *type = data_type_name(dt);
    if (src.dt != dt) return no("src", data_type_name(src.dt), type);
    if (problem.attr.src.is_dynamic()) return no("src", "one that is to be quantised", type);
    if (dst.dt != dt && dst.dt != mxdnn_f32)
        return no("dst", data_type_name(dst.dt), (std::string(type) + " or f32").c_str());
    if (dt == mxdnn_f16) {
        const quant_t &q = wei.packed.quant;
        if (!is_packed_int4(problem)) return no("weights", to_string(wei).c_str(), "int4");
        if (is_added(q.zp) && (q.scale_dt == mxdnn_f32 || q.zp_dt == mxdnn_f32))
            return no("weights", "sums of f32, which may be below any f16", "scales and zeros of 16 bits");
    }
    const int64_t K = dim_from_end(wei, 2), N = dim_from_end(wei, 1);
    if (!has_aligned_rows(src, 2) || !has_aligned_rows(dst, dst_width(dst)) || K * 2 % cublaslt_align)
        return no("src, K or dst", "rows that do not start on 16 bytes", "rows that do");
    if (bias.ndims
            && (bias.dt != dst.dt || !is_strided(bias) || bias.strides[bias.ndims - 1] != 1
                    || (bias.ndims > 1 && dim_from_end(bias, 2) != 1) || dim_from_end(bias, 1) != N))
        return no("bias", to_string(bias).c_str(), "one row of dst's type");
    const auto &ops = problem.attr.post_ops.ops;
    if (ops.size() > 1
            || (ops.size() == 1
                    && (ops[0].kind != mxdnn_eltwise || ops[0].alg != mxdnn_eltwise_relu
                            || ops[0].alpha != 0.f)))
        return no("post-ops", "others", "one relu or none");

    others = next_of_list(problem, impl_name);
    if (!others) return no("others", "none", "one for few rows");
    kernels = kernels_of(*others);
    if (dt == mxdnn_f16 && !kernels) return no("others", others->name(), "one that computes some panels");
    plan = cublaslt::plan(N, K, n64_frame_t::panel_bytes(shape_of(wei)), speed_of_others(kernels, problem));
    // If one run of gemv suffices, it does not pay to decode weights.
    if (kernels && leaves_int4(*kernels, problem) && !rounds_int4(*kernels, problem))
        plan.least_rows = std::max<int64_t>(plan.least_rows, packed::gemv_most + 1);
    const int64_t M = dim_from_end(src, 2), hint = problem.attr.max_rows_hint,
                  most = M != runtime_dim ? M
                         : hint > 0       ? hint
                                          : cublaslt::never_rows;
    if (plan.least_rows == cublaslt::never_rows || most < plan.least_rows)
        return no("rows", std::to_string(most).c_str(), cublaslt::to_string(plan).c_str());
    if (const device_t *device = device_of(exec_engine(problem))) {
        const result_t r = device->table->cublaslt_open(device->index, false);
        if (!r.ok()) return no("cuBLASLt", r.text, "the library");
    }
    if (dt == mxdnn_f16) scratch.book(scratch_t::left_panels, div_up(N, n64_frame_t::columns) * 4);
    // The other implementation runs instead, or afterwards.
    const int64_t own = plan.columns * K * 2 + cublaslt_workspace_bytes;
    scratch.book(scratch_t::nested, std::max(others->scratch.size(), own));
    return yes();
}

template <data_type_t dt>
std::string cublaslt_mx_matmul_t<dt>::pd_t::plan_text() const {
    return cublaslt::to_string(plan) + " else " + others->name() + ":" + others->plan_text();
}

template <data_type_t dt>
status_t cublaslt_mx_matmul_t<dt>::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    tile_args_t decode{};
    decode.src.dt = problem.weights.dt;
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::dequantise_tiles, decode));
    auto p = std::make_shared<cublaslt_mx_matmul_t>();
    MXDNN_CHECK(others->create_primitive(p->others_));
    const device_t &d = exec_device(problem);
    const int64_t M = dim_from_end(problem.src, 2), N = dim_from_end(problem.weights, 1);
    const auto choose = [&](int64_t rows, int64_t most, int64_t columns, cublaslt_kernel_t &kernel) {
        return check(d.table->cublaslt_choose(d.index, cublaslt_of(problem, rows, columns), most, &kernel),
                "choosing a kernel of cuBLASLt");
    };
    // The numbers of rows up to `most`; 0: any.
    const auto add = [&](int64_t rows, int64_t most) {
        kernels_t k{};
        k.rows = rows;
        MXDNN_CHECK(choose(rows, most, std::min(plan.columns, N), k.whole));
        MXDNN_CHECK(choose(rows, most, N % plan.columns ? N % plan.columns : plan.columns, k.last));
        p->kernels_.push_back(k);
        return mxdnn_success;
    };
    if (M != runtime_dim) {
        MXDNN_CHECK(add(M, M));
    } else {
        // The steps that the number of rows may fall between, from the last one that is not above `least`.
        const int64_t *step = std::begin(cublaslt::row_steps), *end = std::end(cublaslt::row_steps);
        while (step + 1 < end && step[1] <= plan.least_rows) step++;
        for (; step < end; step++)
            MXDNN_CHECK(add(std::max(*step, plan.least_rows), step + 1 < end ? step[1] - 1 : 0));
    }
    primitive = std::move(p);
    return mxdnn_success;
}

template <data_type_t dt>
status_t cublaslt_mx_matmul_t<dt>::execute(const exec_ctx_t &ctx) const {
    const auto &pd = static_cast<const pd_t &>(ctx.pd);
    const problem_t &p = pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &wei = *ctx.memory(MXDNN_ARG_WEIGHTS),
                   &dst = *ctx.memory(MXDNN_ARG_DST), *bias = ctx.memory(MXDNN_ARG_BIAS);
    const int64_t M = dim_from_end(dst.md, 2), N = dim_from_end(dst.md, 1), K = dim_from_end(p.weights, 2);
    const exec_ctx_t others_ctx = ctx.nested(*pd.others);
    // The address of the caller's memory is known only now.
    if (M < pd.plan.least_rows || !is_aligned(src.handle) || !is_aligned(dst.handle)
            || (bias && !is_aligned(bias->handle)))
        return others_->execute(others_ctx);
    const kernels_t *k = &kernels_[0];
    while (k + 1 < kernels_.data() + kernels_.size() && k[1].rows <= M) k++;

    tile_args_t decode{};
    const packed_shape_t shape = shape_of(p.weights);
    auto *left = dt == mxdnn_f16 ? ctx.scratch<int32_t>(scratch_t::left_panels) : nullptr;
    char *const weights = ctx.scratch<char>(scratch_t::nested);
    cublaslt_buffers_t buffers{};
    buffers.src = src.handle;
    buffers.weights = weights;
    buffers.workspace = weights + pd.plan.columns * K * 2;
    if (shape.global) buffers.scale = static_cast<const float *>(wei.handle);
    const cuda_stream_t &s = cuda_stream_of(ctx.stream);
    for (int64_t n = 0; n < N; n += pd.plan.columns) {
        const int64_t columns = std::min(pd.plan.columns, N - n);
        const int64_t panel = n / n64_frame_t::columns;
        char *panels = static_cast<char *>(wei.handle) + panel * n64_frame_t::panel_bytes(shape);
        set_tile_problem(decode, K, columns, 1, p.weights.dt, p.weights.packed.quant);
        decode.two_levels = false; // the global scale is applied to the sums
        decode.src = packed_tile_side(p.weights, panels);
        decode.dst.dt = dt;
        decode.dst.data = reinterpret_cast<uint8_t *>(weights);
        decode.dst.line_step = K * 2;
        decode.dst.lines_along_k = decode.dst.aligned = true;
        if (left) {
            decode.left = left + panel;
            decode.least_scale = least_for_f16(decode.scale_dt);
            decode.least_zero = least_for_f16(decode.zp_dt);
        }
        MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::dequantise_tiles, decode));
        const bool last = n + columns == N;
        buffers.dst = static_cast<char *>(dst.handle) + n * dst_width(dst.md);
        if (bias) buffers.bias = static_cast<const char *>(bias->handle) + n * dst_width(dst.md);
        if (ctx.record) ctx.record->add_kernel("cublaslt");
        MXDNN_CHECK(check(s.device().table->cublaslt_launch(
                                  s.launch(), cublaslt_of(p, M, columns), last ? k->last : k->whole, buffers),
                "a product by cuBLASLt"));
    }
    if (!left) return mxdnn_success;
    return multiply_packed(*pd.kernels, others_ctx, left);
}

template struct cublaslt_mx_matmul_t<mxdnn_bf16>;
template struct cublaslt_mx_matmul_t<mxdnn_f16>;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
