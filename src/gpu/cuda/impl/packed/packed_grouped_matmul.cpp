// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/packed_grouped_matmul.hpp"

#include <algorithm>

#include "common/grouped_exec.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"
#include "gpu/cuda/heuristics/packed_matmul_text.hpp"
#include "gpu/cuda/heuristics/scatter_sum_plan.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/impl/packed/packed_results.hpp"
#include "gpu/cuda/impl/packed/packed_source.hpp"
#include "gpu/cuda/impl/ref/ref_grouped_matmul.hpp"
#include "gpu/cuda/interface/group_by_ids_args.hpp"
#include "gpu/cuda/interface/scatter_sum_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The number of columns for which a pass over the rows pays.
constexpr int64_t least_columns = 64;

// The rows in groups, as far as the descriptor says.
int64_t listed_rows(const problem_t &p) {
    if (p.attr.max_rows_hint > 0) return p.attr.max_rows_hint;
    for (const memory_desc_t *md : {&p.src, &p.dst})
        if (md->kind == mxdnn_format_kind_grouped) return md->dims[0];
    return runtime_dim;
}

// Whether the 128x4 scales of the source begin again with every group. Each padded group is a matrix.
bool scales_begin_with_groups(const problem_t &p, const grouped_exec_t &x) {
    return p.attr.src.layout == mxdnn_scales_swizzle_128x4
           && (p.src.ndims == 3 || swizzled_by_group(x, true));
}
// The distance in bytes follows from the rows of the groups; for padded ones the caller decides it.
bool scales_follow_groups(const memory_desc_t &scales, const memory_desc_t &src, int64_t block) {
    return src.ndims < 3 || src.dims[0] <= 1
           || scales.strides[0] == swizzle_128x4::size(src.dims[1], div_up(src.dims[2], block));
}

// Rows with ids become rows of groups, in this much of the scratchpad.
constexpr int64_t most_rows_with_ids = 1 << 17; // if their number is not known
int64_t bytes_of_ids(const problem_t &p) {
    if (p.attr.row_grouping != mxdnn_row_grouping_row_ids) return 0;
    const int64_t rows = listed_rows(p) == runtime_dim ? most_rows_with_ids : listed_rows(p);
    return round_up(4 * (p.weights.dims[0] + 1 + 3 * rows), 256);
}
int64_t bytes_of_ids(const grouped_exec_t &x) { return 4 * (x.groups.experts + 1 + 3 * x.groups.rows); }

status_t group_by_ids(const exec_ctx_t &ctx, char *space, grouped_exec_t &x) {
    const int64_t rows = x.groups.rows, experts = x.groups.experts;
    group_by_ids_args_t g;
    g.rows = x.groups;
    g.gather = x.gather;
    g.scatter = x.scatter;
    g.topk = x.topk;
    g.topk_dt = x.topk_dt;
    g.starts = reinterpret_cast<int32_t *>(space);
    g.gather_out = g.starts + experts + 1;
    g.scatter_out = g.gather_out + rows;
    if (x.topk) g.topk_out = reinterpret_cast<float *>(g.scatter_out + rows);
    MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::group_by_ids, g));
    x.groups = {};
    x.groups.grouping = mxdnn_row_grouping_starts;
    x.groups.groups = x.groups.ids = x.groups.experts = experts;
    x.groups.rows = rows;
    x.groups.bounds = g.starts;
    x.gather = g.gather_out;
    x.scatter = g.scatter_out;
    x.topk = g.topk_out;
    x.topk_dt = mxdnn_f32;
    return mxdnn_success;
}

// The factor of the destination in a sum as the last post-op; 0: there is none.
float scale_of_old(const problem_t &p) {
    const auto &ops = p.attr.post_ops.ops;
    return !ops.empty() && ops.back().kind == mxdnn_sum ? ops.back().scale : 0.f;
}

// Multiplies the rows of the list, in as many passes as the columns need. If the source does not have rows in
// the form that the kernel reads, it prepares them first. gemm takes contiguous rows only. grouped_gemv
// gathers by itself, if necessary from prepared rows.
class rows_multiplier_t {
public:
    rows_multiplier_t(const exec_ctx_t &ctx, const matmul_kernels_t &kernels, bool fp8, char *rows,
            const grouped_exec_t &x, packed::launch_args_t &launch)
        : ctx_(ctx), launch_(launch), src_(static_cast<const char *>(launch.matmul.src)), rows_(rows),
          all_(x.groups.rows), each_(all_), groups_(std::max<int64_t>(x.groups.groups, 1)) {
        const problem_t &p = ctx.pd.problem;
        kernel_ = plan_packed_launch(p, kernels, all_, groups_, launch, fp8);
        // Kernels of groups read nothing before earlier work has ended.
        launch.early = kernel_ != sm80_matmul_kernels.gemm;
        const bool in_place =
                !makes_rows(p) && reinterpret_cast<uintptr_t>(ctx.data(MXDNN_ARG_SRC)) % row_copy_bytes == 0;
        gathers_ = x.gather
                   && (kernel_ == kernel_id_t::sm90_gemm || (!in_place && x.src_rows > made_rows_at_once(p)));
        in_fp8_ = is_fp8() && !x.gather && has_fp8_rows(ctx, launch.matmul);
        factors_ = launch.matmul.row_factors;
        makes_ = !in_fp8_ && (gathers_ || !in_place);
        source_ = {0, x.gather && !gathers_ ? x.src_rows : all_, gathers_ ? x.gather : nullptr, x.src_rows,
                scales_begin_with_groups(p, x) ? &x.groups : nullptr};
        listed_ = gathers_ || !x.gather;
        if (makes_ && listed_) each_ = made_rows_each(p, all_, is_fp8());
        if (finishes_apart(p) && !x.scatter) each_ = std::min(each_, results_at_once(p));
        if (gathers_) launch.matmul.gather = nullptr;
    }

    status_t multiply() { return multiply(nullptr, nullptr, sweep_t::all); }
    // With results in the scratchpad, for as many rows at a time as there is room for.
    status_t multiply(char *results, finisher_t *finisher, sweep_t sweep) {
        packed::matmul_args_t &a = launch_.matmul;
        const bool kept = sweep == sweep_t::stores && each_ >= all_;
        for (int64_t first = 0; first < all_; first += each_) {
            a.row_begin = int32_t(first);
            a.M = int32_t(std::min(each_, all_ - first));
            if (finisher) a.dst = results - first * a.dst_stride * int64_t(sizeof(float));
            if (!kept) MXDNN_CHECK(multiply_rows(first));
            if (finisher) MXDNN_CHECK(finisher->finish(sweep, results, first, a.M, kept));
        }
        return mxdnn_success;
    }

private:
    const exec_ctx_t &ctx_;
    packed::launch_args_t &launch_;
    const char *src_;
    char *rows_; // prepared rows in the scratchpad
    kernel_id_t kernel_;
    int64_t all_, each_; // rows of the list, and how many of them are processed at a time
    int64_t groups_;
    bool gathers_, makes_, made_ = false;
    bool in_fp8_;          // the source has rows that are multiplied in FP8 as they are,
    const float *factors_; // and their factors
    bool listed_;          // the kernel reads the rows of the list one after the other
    made_rows_t source_;   // the rows to prepare; one part has all

    bool is_fp8() const {
        return kernel_ == kernel_id_t::sm90_gemm && launch_.format.decoder == decoder_t::mxfp4
               && (launch_.variant == packed::gemm_fp8 || packed::is_f4(launch_.variant));
    }
    status_t multiply_rows(int64_t first) {
        packed::matmul_args_t &a = launch_.matmul;
        a.makers = a.maker_rounds = 0;
        if (makes_)
            MXDNN_CHECK(make(first, a.M));
        else if (listed_)
            a.src = src_ + first * a.src_stride * (in_fp8_ ? 1 : 2);
        if (in_fp8_) a.row_factors = factors_ + first;
        return launch_packed(ctx_, kernel_, launch_);
    }
    status_t make(int64_t first, int64_t count) {
        if (listed_ && each_ < all_)
            source_.first = first, source_.count = count;
        else if (made_)
            return mxdnn_success;
        made_ = true;
        if (is_fp8()) {
            const problem_t &p = ctx_.pd.problem;
            const packed::makers_t m = packed::plan_makers({kernel_, launch_.variant, 1, launch_.grid}, count,
                    dim_from_end(p.weights, 1), dim_from_end(p.weights, 2), int(groups_), sm_count_of(p));
            launch_.matmul.makers = uint8_t(m.ctas), launch_.matmul.maker_rounds = uint8_t(m.rounds);
        }
        return (is_fp8() ? make_rows_of_fp8 : make_rows)(ctx_, source_, rows_, launch_.matmul);
    }
};

// What a call says beyond the descriptor, and how its results get to the destination.
struct call_t {
    call_t(const exec_ctx_t &ctx, const grouped_exec_t &x, packed::activation_t activation, int64_t sum_bytes)
        : src(*ctx.memory(MXDNN_ARG_SRC)), dst(*ctx.memory(MXDNN_ARG_DST)),
          src_stride(even_row_stride(src.md)), dst_columns(dim_from_end(dst.md, 1)),
          panel_columns(least_columns / (activation == packed::activation_t::gated_pairs ? 2 : 1)),
          by_ids(x.groups.grouping == mxdnn_row_grouping_row_ids), adds(x.scatter), meets(adds || by_ids),
          apart(meets ? makes_result_codes(ctx.pd.problem) : finishes_apart(ctx.pd.problem)),
          nothing(x.dst_rows == 0 || dst_columns == 0 || (!adds && x.groups.rows == 0)),
          sums(packed::plan_sums(x.groups.rows, x.dst_rows, dst_columns, panel_columns, sum_bytes)) {
        const problem_t &p = ctx.pd.problem;
        to = apart ? ctx.scratch<char>(scratch_t::results) : static_cast<char *>(dst.handle);
        to_stride = apart ? results_stride(p) : even_row_stride(dst.md);
        to_type = apart ? packed::value_type_t::f32 : value_type_of(dst.md.dt);
    }

    const memory_t &src, &dst;
    int64_t src_stride, dst_columns;
    int64_t panel_columns; // columns of the destination that a panel has at least
    // Rows with ids are sorted, and their results put back. This uses the sums of rows, although no two rows
    // are added.
    bool by_ids, adds, meets;
    bool apart;   // results are finished by another kernel
    bool nothing; // there are none
    packed::sum_plan_t sums;
    // Where rows of results go.
    char *to;
    int64_t to_stride;
    packed::value_type_t to_type;

    // Values that are known only now. What the kernels do not take is the reference's.
    bool is_taken(const exec_ctx_t &ctx, const grouped_exec_t &x, int64_t id_bytes) const {
        const problem_t &p = ctx.pd.problem;
        const memory_t *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC);
        if (src_stride < 0 || even_row_stride(dst.md) < 0) return false;
        if (scales && even_row_stride(scales->md) < 0) return false;
        if (scales && scales_begin_with_groups(p, x)
                && !scales_follow_groups(scales->md, src.md, p.attr.src.scales.groups[1]))
            return false;
        if (nothing && p.attr.dst.global == mxdnn_quantization_mode_dynamic_fp) return false;
        if (std::max({x.groups.rows, x.src_rows, x.dst_rows}) > INT32_MAX / 2) return false;
        if ((by_ids ? x.groups.experts : x.groups.groups) > packed::max_groups) return false;
        if (by_ids && bytes_of_ids(x) > id_bytes) return false;
        if (!meets) return true;
        return sums.panels > 0 && (!apart || x.dst_rows <= results_at_once(p))
               && (applies_post_ops(p) || applies_post_ops_before_sums(p));
    }
};

// All but the destination.
void set_arguments(
        const exec_ctx_t &ctx, const grouped_exec_t &x, const call_t &call, packed::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    a.weights = ctx.data(MXDNN_ARG_WEIGHTS);
    a.weights_ptrs = x.weights_ptrs;
    a.expert_stride = p.weights.packed.stride;
    a.src = call.src.handle;
    a.src_stride = call.src_stride;
    a.src_rows = int32_t(x.src_rows);
    a.grouped = true;
    a.groups = x.groups;
    a.gather = x.gather;
    a.expert_alpha = x.expert_alpha;
    a.row_weights_on_input = p.attr.topk_weights_placement == mxdnn_topk_weights_on_input;
    if (a.row_weights_on_input || applies_post_ops(p)) {
        a.row_weights = x.topk;
        a.row_weights_type = value_type_of(x.topk_dt);
    }
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) {
        a.bias = bias->handle;
        a.bias_type = value_type_of(bias->md.dt);
        a.bias_stride = bias->md.strides[0];
    }
    a.activation_params = x.activation_params;
    a.activation_stride = int32_t(x.activation_stride);
}

// Each row of the list is a row of the destination.
status_t store(const exec_ctx_t &ctx, const call_t &call, rows_multiplier_t &rows, packed::matmul_args_t &a) {
    a.dst = call.to;
    a.dst_stride = call.to_stride;
    a.dst_type = call.to_type;
    if (!call.apart) return rows.multiply();
    finisher_t finisher(ctx, true);
    return finisher.run([&](sweep_t sweep) { return rows.multiply(call.to, &finisher, sweep); });
}

// Rows of the list are added to, or put into, the rows of the destination that they name; as many columns at
// a time as there is room for.
status_t put_together(const exec_ctx_t &ctx, const grouped_exec_t &x, const call_t &call,
        rows_multiplier_t &rows, packed::matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const bool ops_apart = !applies_post_ops(p);
    packed::scatter_sum_args_t sum;
    sum.M = int32_t(x.groups.rows);
    sum.groups = x.groups;
    sum.scatter = x.scatter;
    sum.dst_stride = call.to_stride;
    sum.dst_type = call.to_type;
    sum.dst_rows = int32_t(x.dst_rows);
    sum.keeps = !call.adds;
    sum.old_scale = ops_apart ? scale_of_old(p) : a.old_scale;
    a.old_scale = 0.f;
    char *const space = ctx.scratch<char>(scratch_t::sums);
    if (call.sums.next_bytes) {
        sum.next = reinterpret_cast<int32_t *>(space);
        sum.first = reinterpret_cast<int32_t *>(space + call.sums.next_bytes);
        MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::scatter_link, sum));
    }
    sum.row_stride = call.sums.row_stride;
    a.dst = space + call.sums.next_bytes + call.sums.first_bytes;
    sum.rows = static_cast<float *>(a.dst);
    a.dst_stride = sum.row_stride;
    a.dst_type = packed::value_type_t::f32;
    const int panels = a.panel_end;
    for (int panel = 0; panel < panels; panel += call.sums.panels) {
        a.panel_begin = panel;
        a.panel_end = std::min(panel + call.sums.panels, panels);
        a.dst_first = int32_t(panel * call.panel_columns);
        sum.columns = int32_t(
                std::min<int64_t>(call.sums.panels * call.panel_columns, call.dst_columns - a.dst_first));
        sum.dst = call.to + a.dst_first * (call.to_type == packed::value_type_t::f32 ? 4 : 2);
        MXDNN_CHECK(rows.multiply());
        if (ops_apart)
            MXDNN_CHECK(apply_post_ops_before_sums(
                    ctx, x, static_cast<float *>(a.dst), sum.row_stride, sum.columns));
        MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::scatter_sum, sum));
    }
    if (!call.apart) return mxdnn_success;
    // All of them exist.
    finisher_t finisher(ctx, !call.adds, true);
    return finisher.run([&](sweep_t sweep) {
        return finisher.finish(sweep, call.to, 0, x.dst_rows, sweep == sweep_t::stores);
    });
}

} // namespace

template <const matmul_kernels_t &kernels>
reason_t packed_grouped_matmul_t<kernels>::pd_t::init() {
    reason_t r = fp8 ? reason_t{} : check_not_for_fp8(problem.weights);
    if (!r.ok()) return r;
    r = check_packed_problem(problem, kernels, false);
    if (!r.ok()) return r;
    sum_bytes = packed::sum_bytes(listed_rows(problem), dim_from_end(problem.dst, 1),
            problem.attr.max_rows_hint > 0 ? packed::most_hinted_bytes : packed::most_sum_bytes);
    id_bytes = bytes_of_ids(problem);
    scratch.book(scratch_t::sums, sum_bytes);
    scratch.book(scratch_t::results, results_bytes(problem));
    scratch.book(scratch_t::group_ids, id_bytes);
    scratch.book(scratch_t::source_rows, made_rows_bytes(problem));
    return yes();
}

template <const matmul_kernels_t &kernels>
status_t packed_grouped_matmul_t<kernels>::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_packed_kernels(problem, kernels, false, fp8));
    MXDNN_CHECK(prepare_convert_source(problem));
    for (const kernel_id_t id : {kernel_id_t::group_by_ids, kernel_id_t::scatter_link,
                 kernel_id_t::scatter_sum, kernel_id_t::ref_grouped_matmul})
        MXDNN_CHECK(prepare_kernel(problem, id));
    MXDNN_CHECK(prepare_results(problem));
    primitive = std::make_shared<packed_grouped_matmul_t>();
    return mxdnn_success;
}

template <const matmul_kernels_t &kernels>
std::string packed_grouped_matmul_t<kernels>::pd_t::plan_text() const {
    std::string text;
    for (int64_t rows : {4, 32, 256, 1024, 4096, 16384, 32768})
        text += (text.empty() ? "rows=" : " rows=") + std::to_string(rows) + ":"
                + to_string(plan_packed(
                        problem, kernels, rows, std::max<int64_t>(problem.weights.dims[0], 1), fp8));
    return text;
}

bool takes_fp8_layout(const problem_t &p) {
    return check_fp8_problem(p).ok() && check_packed_problem(p, sm90_matmul_kernels, false).ok();
}

reason_t sm90_fp8_grouped_matmul_t::pd_t::init() {
    if (const reason_t r = check_fp8_problem(problem); !r.ok()) return r;
    const int64_t rows = listed_rows(problem);
    if (!is_for_fp8(problem.weights) && rows != runtime_dim
            && !packed::fp8_pays(rows, int(problem.weights.dims[0])))
        return no("rows", std::to_string(rows).c_str(), "enough for each expert");
    fp8 = true;
    return sm90_grouped_matmul_t::pd_t::init();
}

template <const matmul_kernels_t &kernels>
status_t packed_grouped_matmul_t<kernels>::execute(const exec_ctx_t &ctx) const {
    const auto &pd = static_cast<const pd_t &>(ctx.pd);
    grouped_exec_t x(ctx);
    packed::launch_args_t launch;
    set_packed_args(pd.problem, launch);
    const call_t call(ctx, x, launch.matmul.activation, pd.sum_bytes);
    if (!call.is_taken(ctx, x, pd.id_bytes)) return ref_grouped_matmul_t().execute(ctx);
    if (call.nothing) return mxdnn_success;
    if (call.by_ids) MXDNN_CHECK(group_by_ids(ctx, ctx.scratch<char>(scratch_t::group_ids), x));
    set_arguments(ctx, x, call, launch.matmul);
    rows_multiplier_t rows(ctx, kernels, pd.fp8, ctx.scratch<char>(scratch_t::source_rows), x, launch);
    return call.meets ? put_together(ctx, x, call, rows, launch.matmul)
                      : store(ctx, call, rows, launch.matmul);
}

template struct packed_grouped_matmul_t<sm90_matmul_kernels>;
template struct packed_grouped_matmul_t<sm80_matmul_kernels>;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
