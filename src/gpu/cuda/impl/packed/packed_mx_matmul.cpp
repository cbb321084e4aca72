// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/packed_mx_matmul.hpp"

#include <algorithm>

#include "common/formats/format_list.hpp"
#include "gpu/cuda/heuristics/packed_matmul_text.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/packed/batch_parts.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/impl/packed/packed_results.hpp"
#include "gpu/cuda/impl/packed/packed_source.hpp"
#include "gpu/cuda/impl/ref/ref_mx_matmul.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The number of groups as plans count it: 0 if every column of the results belongs to one column of the
// weights.
int64_t groups_of(const problem_t &p) {
    const post_op_t *gated = p.attr.gated();
    return gated && gated->gated_layout == mxdnn_gated_halves && applies_post_ops(p) ? 1 : 0;
}

// Checks that rows, counted through the matrices of a batch, have equal distances, as far as known.
bool has_even_rows(const memory_desc_t &md) { return has_runtime_dims(md) || even_row_stride(md) >= 0; }

} // namespace

template <const matmul_kernels_t &kernels>
reason_t packed_mx_matmul_t<kernels>::pd_t::init() {
    reason_t r = check_not_for_fp8(problem.weights);
    if (!r.ok()) return r;
    r = check_packed_problem(problem, kernels, groups_of(problem) == 0);
    if (!r.ok()) return r;
    const memory_desc_t &bias = problem.bias;
    if (!has_even_rows(problem.src) || !has_even_rows(problem.dst))
        return no("src and dst", "matrices with gaps between them", "rows equally far apart");
    if (bias.ndims > 1 && dim_from_end(bias, 2) != 1) return no("bias", "one of every row", "one row");
    scratch.book(scratch_t::results, results_bytes(problem));
    scratch.book(scratch_t::partial_sums, kernels.shares_k ? parts_bytes_of(problem) : 0);
    scratch.book(scratch_t::source_rows, makes_rows(problem) ? made_rows_bytes(problem) : 0);
    return yes();
}

template <const matmul_kernels_t &kernels>
status_t packed_mx_matmul_t<kernels>::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_packed_kernels(problem, kernels, true));
    if (makes_rows(problem)) MXDNN_CHECK(prepare_convert_source(problem));
    MXDNN_CHECK(prepare_results(problem));
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_mx_matmul));
    primitive = std::make_shared<packed_mx_matmul_t>();
    return mxdnn_success;
}

template <const matmul_kernels_t &kernels>
std::string packed_mx_matmul_t<kernels>::pd_t::plan_text() const {
    std::string text;
    for (int64_t rows : {1, 16, 64, 256, 4096}) {
        const int64_t groups = groups_of(problem), each = rows_each(problem, kernels, rows, groups);
        text += (text.empty() ? "M=" : " M=") + std::to_string(rows) + ":"
                + to_string(plan_packed(problem, kernels, std::min(rows, each), groups));
        if (each < rows) text += ":launches" + std::to_string(div_up(rows, each));
    }
    return text;
}

namespace {

// Of the scratchpad.
struct space_t {
    char *results; // that become codes
    float *parts;  // sums over parts of K
    char *rows;    // that are made of the source
};

// The rows of one part of a batch, as many at a time as there is room for.
class part_multiplier_t {
public:
    // finisher: null if kernels write the final results to dst.
    part_multiplier_t(const exec_ctx_t &ctx, const matmul_kernels_t &kernels, const space_t &space,
            const int32_t *wanted, finisher_t *finisher)
        : ctx_(ctx), p_(ctx.pd.problem), kernels_(kernels), space_(space), finisher_(finisher),
          makes_rows_(makes_rows(p_)) {
        packed::matmul_args_t &a = launch_.matmul;
        set_packed_args(p_, launch_);
        a.wanted = wanted;
        a.expert_stride = p_.weights.packed.stride;
        if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) {
            a.bias_type = value_type_of(bias->md.dt);
            if (batch_of(bias->md) > 1) a.bias_stride = even_row_stride(bias->md);
        }
        a.src_stride = even_row_stride(memory(MXDNN_ARG_SRC).md);
        a.dst_stride = finisher ? results_stride(p_) : even_row_stride(memory(MXDNN_ARG_DST).md);
        a.dst_type = finisher ? packed::value_type_t::f32 : value_type_of(p_.dst.dt);
    }

    // only: it is the only part.
    status_t multiply(const batch_part_t &part, sweep_t sweep, bool only) {
        packed::matmul_args_t &a = launch_.matmul;
        a.weights =
                static_cast<const char *>(memory(MXDNN_ARG_WEIGHTS).handle) + part.weights * a.expert_stride;
        if (const memory_t *bias = ctx_.memory(MXDNN_ARG_BIAS))
            a.bias = static_cast<const char *>(bias->handle) + part.bias * bytes_of(bias->md);
        a.grouped = part.groups > 0;
        if (a.grouped) a.groups = equal_groups(part.groups, part.rows);
        const int64_t groups = a.grouped ? part.groups : groups_of(p_);
        int64_t each = makes_rows_ ? made_rows_each(p_, part.rows) : part.rows;
        if (finisher_) each = std::min(each, results_at_once(p_));
        const bool kept = sweep == sweep_t::stores && only && each >= part.rows;
        for (int64_t first = 0; first < part.rows; first += each) {
            a.row_begin = int32_t(first);
            a.M = int32_t(std::min(each, part.rows - first));
            if (!kept) MXDNN_CHECK(multiply_rows(part, first, groups));
            if (finisher_)
                MXDNN_CHECK(finisher_->finish(sweep, space_.results, part.dst_row + first, a.M, kept));
        }
        return mxdnn_success;
    }

private:
    const exec_ctx_t &ctx_;
    const problem_t &p_;
    const matmul_kernels_t &kernels_;
    space_t space_;
    finisher_t *finisher_;
    bool makes_rows_;
    packed::launch_args_t launch_;

    const memory_t &memory(int arg) const { return *ctx_.memory(arg); }
    static int64_t bytes_of(const memory_desc_t &md) { return data_type_info(md.dt)->bits / 8; }

    status_t multiply_rows(const batch_part_t &part, int64_t first, int64_t groups) {
        packed::matmul_args_t &a = launch_.matmul;
        MXDNN_CHECK(set_source(part, first));
        // dst, or the space for results, begins with row `first` of the part.
        const memory_t &dst = memory(MXDNN_ARG_DST);
        a.dst = finisher_ ? space_.results - first * a.dst_stride * int64_t(sizeof(float))
                          : static_cast<char *>(dst.handle) + part.dst_row * a.dst_stride * bytes_of(dst.md);
        const int64_t rows = a.M, each = a.wanted ? rows : rows_each(p_, kernels_, rows, groups);
        for (int64_t at = 0; at < rows; at += each) {
            a.row_begin = int32_t(first + at);
            a.M = int32_t(std::min(each, rows - at));
            MXDNN_CHECK(launch(groups));
            a.src = static_cast<const char *>(a.src) + a.M * a.src_stride * 2;
            if (a.row_factors) a.row_factors += a.M;
        }
        a.row_begin = int32_t(first);
        a.M = int32_t(rows);
        return mxdnn_success;
    }
    status_t launch(int64_t groups) {
        packed::matmul_args_t &a = launch_.matmul;
        const kernel_id_t kernel = plan_packed_launch(p_, kernels_, a.M, groups, launch_);
        // Kernels of groups read nothing before earlier work has ended.
        launch_.early = kernel != sm80_matmul_kernels.gemm
                        && (a.grouped || writes_no_weights(cuda_stream_of(ctx_.stream).last_kernel()));
        return launch_packed(ctx_, kernel, launch_, space_.parts);
    }
    status_t set_source(const batch_part_t &part, int64_t first) {
        packed::matmul_args_t &a = launch_.matmul;
        const int64_t row = part.src_row + first;
        if (!makes_rows_) {
            a.src = static_cast<const char *>(memory(MXDNN_ARG_SRC).handle) + row * a.src_stride * 2;
            return mxdnn_success;
        }
        // Scales in the 128x4 order begin again with every matrix of the source.
        const memory_desc_t &src = memory(MXDNN_ARG_SRC).md;
        const int64_t matrices = batch_of(src);
        const row_groups_t groups = equal_groups(matrices, matrices * dim_from_end(src, 2));
        const bool begin_anew = p_.attr.src.layout == mxdnn_scales_swizzle_128x4 && matrices > 1;
        MXDNN_CHECK(make_rows(ctx_, {row, a.M, nullptr, 0, begin_anew ? &groups : nullptr}, space_.rows, a));
        if (a.src_global) a.src_global += part.src_matrix * a.src_global_step;
        return mxdnn_success;
    }
};

// Matrices of 128x4 scales that are not contiguous.
bool is_swizzled_with_gaps(const problem_t &p, const memory_desc_t &scales) {
    return p.attr.src.layout == mxdnn_scales_swizzle_128x4 && scales.dims[0] > 1
           && scales.strides[0] != scales.dims[1];
}

template <const matmul_kernels_t &kernels>
status_t multiply_rows(const exec_ctx_t &ctx, const int32_t *wanted) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &dst = *ctx.memory(MXDNN_ARG_DST),
                   *bias = ctx.memory(MXDNN_ARG_BIAS),
                   *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC),
                   *global = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC);
    const int64_t rows = batch_of(dst.md) * dim_from_end(dst.md, 2);
    // Values that are known only now: the address of the caller's rows, their number (without rows there may
    // still be a global scale), gaps between matrices.
    if (rows == 0 || dim_from_end(dst.md, 1) == 0
            || (!makes_rows(p) && reinterpret_cast<uintptr_t>(src.handle) % row_copy_bytes)
            || rows > INT32_MAX / 2 || even_row_stride(dst.md) < 0 || even_row_stride(src.md) < 0
            || (scales && (even_row_stride(scales->md) < 0 || is_swizzled_with_gaps(p, scales->md))))
        return ref_mx_matmul_t().execute(ctx);
    const batch_parts_t batch(src.md, p.weights, bias ? &bias->md : nullptr, dst.md, !leaves_int4(kernels, p),
            !global || global->md.dims[0] == 1);
    const space_t spaces = {ctx.scratch<char>(scratch_t::results),
            ctx.scratch<float>(scratch_t::partial_sums), ctx.scratch<char>(scratch_t::source_rows)};
    const auto all = [&](finisher_t *finisher, sweep_t sweep) -> status_t {
        part_multiplier_t multiplier(ctx, kernels, spaces, wanted, finisher);
        for (int64_t i = 0; i < batch.parts(); i++)
            MXDNN_CHECK(multiplier.multiply(batch.part(i), sweep, batch.parts() == 1));
        return mxdnn_success;
    };
    if (!finishes_apart(p)) return all(nullptr, sweep_t::all);
    finisher_t finisher(ctx, false);
    return finisher.run([&](sweep_t sweep) { return all(&finisher, sweep); });
}

} // namespace

template <const matmul_kernels_t &kernels>
status_t packed_mx_matmul_t<kernels>::execute(const exec_ctx_t &ctx) const {
    return multiply_rows<kernels>(ctx, nullptr);
}

status_t multiply_packed(const matmul_kernels_t &kernels, const exec_ctx_t &ctx, const int32_t *wanted) {
    return &kernels == &sm90_matmul_kernels ? multiply_rows<sm90_matmul_kernels>(ctx, wanted)
                                            : multiply_rows<sm80_matmul_kernels>(ctx, wanted);
}

template struct packed_mx_matmul_t<sm90_matmul_kernels>;
template struct packed_mx_matmul_t<sm80_matmul_kernels>;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
