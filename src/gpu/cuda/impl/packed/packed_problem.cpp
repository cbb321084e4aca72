// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/packed_problem.hpp"

#include <algorithm>
#include <iterator>

#include "common/formats/format_list.hpp"
#include "common/layouts/n64_f4.hpp"
#include "common/layouts/n64_i4.hpp"
#include "common/problem_util.hpp"
#include "gpu/cuda/cuda_backend.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"
#include "gpu/cuda/heuristics/grouped_int4.hpp"
#include "gpu/cuda/heuristics/packed_variants.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/packed/packed_results.hpp"
#include "gpu/cuda/impl/packed/packed_source.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

bool is_int4(const memory_desc_t &wei) { return wei.dt == mxdnn_s4 || wei.dt == mxdnn_u4; }

int4_kind_t int4_kind_of(data_type_t dt, const quant_t &q) {
    if (q.scale_dt == mxdnn_f32) return int4_kind_t::any;
    if (dt == mxdnn_s4) return int4_kind_t::s4;
    if (q.zp == zero_point_kind_t::u8) return int4_kind_t::zero_points;
    return is_added(q.zp) && q.zp_dt != mxdnn_f32 ? int4_kind_t::zeros : int4_kind_t::any;
}

// The format of packed weights for kernels; no_format if none is built for them.
packed::format_t format_of(const memory_desc_t &wei) {
    const quant_t &q = wei.packed.quant;
    packed::format_t f{decoder_of(wei.dt, q)};
    if (f.decoder == decoder_t::int4) {
        if (wei.packed.layout_id != n64_i4_t::id) return packed::no_format;
        f.kind = int4_kind_of(wei.dt, q);
    }
    const auto *end = std::end(packed::formats);
    return std::find(std::begin(packed::formats), end, f) == end ? packed::no_format : f;
}

packed::int4_types_t int4_types_of(const memory_desc_t &wei) {
    const quant_t &q = wei.packed.quant;
    packed::int4_types_t t;
    t.scales = value_type_of(q.scale_dt);
    if (is_added(q.zp)) t.zeros = value_type_of(q.zp_dt);
    t.minima = q.zp == zero_point_kind_t::minimum;
    t.is_signed = wei.dt == mxdnn_s4;
    t.zero_points = q.zp == zero_point_kind_t::u8;
    return t;
}

packed::tiling_t tiling_of(const memory_desc_t &wei) {
    using frame = n64_frame_t;
    const packed_shape_t s = shape_of(wei);
    packed::tiling_t t;
    if (is_int4(wei)) t.int4 = int4_types_of(wei);
    const int64_t rows = frame::tile_rows(s);
    t.panel_bytes = frame::panel_bytes(s);
    t.tile_bytes = int32_t(frame::tile_bytes(s, rows));
    t.header_bytes = int32_t(frame::header_bytes(s));
    while (frame::min_tile_rows << t.tile_steps_shift < rows) t.tile_steps_shift++;
    t.blocks = int32_t(frame::blocks(s));
    return t;
}

bool is_relu(const post_op_t &o) {
    return o.kind == mxdnn_eltwise
           && (o.alg == mxdnn_eltwise_relu2 || (o.alg == mxdnn_eltwise_relu && o.alpha == 0.f));
}

bool is_gate(const post_op_t &o) {
    return o.kind == mxdnn_gated && (o.alg == mxdnn_gated_swiglu_oai || o.alg == mxdnn_gated_silu);
}

} // namespace

// Whether sums of FP8 may stay in the tensor cores.
static bool allows_any_sums(const problem_t &p) { return p.attr.accumulation == mxdnn_accumulation_mode_any; }

packed::value_type_t value_type_of(data_type_t dt) {
    switch (dt) {
    case mxdnn_f32: return packed::value_type_t::f32;
    case mxdnn_bf16: return packed::value_type_t::bf16;
    case mxdnn_f16: return packed::value_type_t::f16;
    default: return packed::value_type_t::none;
    }
}

packed::format_t kernel_format(const problem_t &p) {
    // Kernels for f16 rows take f16 scales and zeros, or read the types of all of them.
    const quant_t &q = p.weights.packed.quant;
    const bool f16 = q.scale_dt == mxdnn_f16 && (!is_added(q.zp) || q.zp_dt == mxdnn_f16);
    return source_type(p) == packed::value_type_t::f16 && !f16 ? packed::any_int4 : format_of(p.weights);
}

// The format for a kernel. sm80_gemm is built for int4 with any types.
static packed::format_t format_for(const problem_t &p, kernel_id_t kernel) {
    return kernel == kernel_id_t::sm80_gemm && is_packed_int4(p) ? packed::any_int4 : kernel_format(p);
}

packed::matmul_plan_t plan_packed(
        const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups, bool fp8) {
    const int64_t N = dim_from_end(p.weights, 1);
    if (is_for_fp8(p.weights))
        return packed::plan_f4_matmul(rows, N, int(groups), sm_count_of(p), allows_any_sums(p));
    if (fp8 && packed::fp8_pays(rows, int(groups)))
        return packed::plan_fp8_matmul(rows, N, int(groups), sm_count_of(p));
    const packed::tiling_t t = tiling_of(p.weights);
    packed::plan_sizes_t s{};
    s.rows = rows;
    s.N = N;
    s.K = dim_from_end(p.weights, 2);
    s.groups = groups;
    s.tile_bytes = t.tile_bytes >> t.tile_steps_shift;
    s.sm_count = sm_count_of(p);
    s.terms = source_terms(p);
    s.all_widths = format_of(p.weights).decoder == decoder_t::mxfp4;
    const bool leaves = leaves_int4(kernels, p) && !rounds_int4(kernels, p);
    if (leaves && groups > 0 && s.terms == 1 && kernel_format(p) != packed::any_int4)
        return packed::plan_grouped_int4(rows, N, s.K, int(groups), s.tile_bytes, s.sm_count);
    const packed::matmul_plan_t plan = kernels.plan(s);
    return leaves && plan.kernel == kernels.gemm ? kernels.int4_gemm->plan(s) : plan;
}

int64_t rows_each(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups) {
    // Kernels that read the types should do so once for many rows.
    const bool few_only = groups == 0 && leaves_int4(kernels, p) && !rounds_int4(kernels, p)
                          && kernel_format(p) != packed::any_int4;
    return few_only ? packed::rows_per_gemv(rows, source_terms(p)) : rows;
}

int64_t parts_bytes_of(const problem_t &p) {
    const int64_t most = sm_count_of(p) * packed::most_sums;
    if (has_runtime_dims(p.dst)) return int64_t(sizeof(float)) * most;
    const int64_t rows = batch_of(p.dst) * dim_from_end(p.dst, 2),
                  sums = packed::most_parts * rows * packed::parts_stride(dim_from_end(p.weights, 1));
    return round_up(int64_t(sizeof(float)) * std::min(most, sums), 256);
}

kernel_id_t plan_packed_launch(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows,
        int64_t groups, packed::launch_args_t &launch, bool fp8) {
    // What is left of a product of rounded weights (wanted) is exact.
    const bool left = launch.matmul.wanted && leaves_int4(kernels, p);
    const packed::matmul_plan_t plan = plan_packed(p, left ? *kernels.int4_gemm : kernels, rows, groups, fp8);
    launch.grid = plan.grid;
    launch.matmul.splits = plan.splits;
    launch.format = format_for(p, plan.kernel);
    launch.variant = packed::select_variant(plan, rows, launch.matmul, is_packed_int4(p));
    return plan.kernel;
}

status_t prepare_packed_kernels(
        const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix, bool fp8) {
    packed::gemm_launch_t launch;
    set_packed_args(p, launch);
    const auto prepare_variants = [&](kernel_id_t id, packed::variants_t v) {
        launch.format = format_for(p, id);
        launch.variant = v.first;
        launch.variants = v.count;
        const packed::launch_args_t &of_others = launch;
        return id == kernel_id_t::sm90_gemm ? prepare_kernel(p, id, launch)
                                            : prepare_kernel(p, id, of_others);
    };
    const auto prepare = [&](kernel_id_t id, bool by_fp8) {
        return prepare_variants(id, packed::variants_of(id, launch.matmul, by_fp8, is_packed_int4(p)));
    };
    if (is_for_fp8(p.weights))
        return prepare_variants(kernels.gemm,
                {packed::gemm_f4_first, allows_any_sums(p) ? packed::f4_all : packed::f4_count});
    const bool leaves = leaves_int4(kernels, p), takes = !leaves || rounds_int4(kernels, p);
    for (const kernel_id_t id : {kernels.gemv, kernels.grouped_gemv, kernels.gemm})
        if (id != kernel_id_t::empty && (id != kernels.gemv || one_matrix) && (id != kernels.gemm || takes))
            MXDNN_CHECK(prepare(id, false));
    if (one_matrix && kernels.gemm == kernel_id_t::sm90_gemm
            && format_of(p.weights).decoder == decoder_t::mxfp4)
        MXDNN_CHECK(prepare_variants(
                kernels.gemm, {packed::gemm_narrow_first,
                                      packed::narrow_variants(dim_from_end(p.weights, 1), sm_count_of(p))}));
    if (fp8) MXDNN_CHECK(prepare(kernels.gemm, true));
    return leaves ? prepare(kernels.int4_gemm->gemm, false) : mxdnn_success;
}

status_t launch_packed(
        const exec_ctx_t &ctx, kernel_id_t id, const packed::launch_args_t &launch, float *parts) {
    if (id != kernel_id_t::sm90_gemm) return launch_kernel(ctx, id, launch);
    return launch_kernel(ctx, id, packed::gemm_launch_t{launch, launch.matmul.splits > 1 ? parts : nullptr});
}

bool writes_no_weights(kernel_id_t id) {
    return id == kernel_id_t::sm90_gemv || id == kernel_id_t::sm90_grouped_gemv
           || id == kernel_id_t::sm90_gemm || id == kernel_id_t::convert_source
           || id == kernel_id_t::quantise_results || id == kernel_id_t::sm90_fp8_weights;
}

reason_t check_fp8_problem(const problem_t &p) {
    const mxdnn_accumulation_mode_t sums = p.attr.accumulation;
    if (sums != mxdnn_accumulation_mode_relaxed && sums != mxdnn_accumulation_mode_any)
        return no("accumulation mode", "strict sums", "relaxed or any");
    quant_t q;
    if (source_format(p, q) != mxdnn_f8_e4m3 || !has_row_scale(mxdnn_f8_e4m3, q))
        return no("src", to_string(p.src).c_str(), "f8_e4m3 with a scale per row, or a recipe for it");
    const memory_desc_t &wei = p.weights;
    if (wei.dt != mxdnn_f4_e2m1 || !is_packed(wei) || wei.packed.quant.scale_dt != mxdnn_e8m0)
        return no("weights", to_string(wei).c_str(), "packed MXFP4");
    return {};
}

bool is_for_fp8(const memory_desc_t &wei) { return is_packed(wei) && wei.packed.layout_id == n64_f4_t::id; }

reason_t check_not_for_fp8(const memory_desc_t &wei) {
    if (is_for_fp8(wei)) return no("weights", "n64_f4, which is for FP8", "n64_b4");
    return {};
}

bool leaves_int4(const matmul_kernels_t &kernels, const problem_t &p) {
    return kernels.int4_gemm && is_packed_int4(p);
}

bool rounds_int4(const matmul_kernels_t &kernels, const problem_t &p) {
    if (!leaves_int4(kernels, p) || p.kind != mxdnn_primitive_kind_mx_matmul) return false;
    if (source_terms(p) > 1) return false; // rows that are not to be rounded
    const quant_t &q = p.weights.packed.quant;
    const int4_kind_t kind = format_of(p.weights).kind;
    if (kind == int4_kind_t::any) return false;
    const bool added = is_added(q.zp), same = !added || q.zp_dt == q.scale_dt;
    const data_type_t rows = source_type(p) == packed::value_type_t::f16 ? mxdnn_f16 : mxdnn_bf16;
    return same && (q.scale_dt == rows || (rows == mxdnn_bf16 && !added));
}

bool is_packed_int4(const problem_t &p) {
    return is_int4(p.weights) && format_of(p.weights) != packed::no_format;
}

reason_t check_packed_problem(const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix) {
    const memory_desc_t &wei = p.weights, &bias = p.bias;
    const engine_t &engine = exec_engine(p);
    const device_t *device = device_of(engine); // null: the engine is a description
    if (kernels.arch && kernels.arch != &arch_of(engine))
        return no("device", "another architecture", kernels.arch->name());
    if (kernels.arch && device && !device->table->has_kernels_of(kernels.arch->capability))
        return no("libmxdnn_cuda", "built without this architecture's own kernels",
                (std::string("MXDNN_CUDA_ARCHITECTURES with ") + kernels.arch->build).c_str());
    if (!is_packed(wei)) return no("weights", "plain ones", "packed ones");
    if (format_of(wei) == packed::no_format)
        return no("weights", to_string(wei).c_str(), "MX, NVFP4, or int4 in n64_i4");
    if (leaves_int4(kernels, p) && !one_matrix && wei.packed.quant.block > kernels.most_grouped_int4_block)
        return no("weights", to_string(wei).c_str(), "one matrix, or blocks of 128 rows at most");
    reason_t r = check_decoders(p);
    if (!r.ok()) return r;
    r = check_results(p);
    if (!r.ok()) return r;
    r = check_source(p);
    if (!r.ok()) return r;
    if (bias.ndims
            && (!is_strided(bias) || value_type_of(bias.dt) == packed::value_type_t::none
                    || dim_from_end(bias, 1) != dim_from_end(wei, 1) || bias.strides[bias.ndims - 1] != 1))
        return no("bias", to_string(bias).c_str(), "dense rows of f32, bf16 or f16");
    return yes();
}

bool applies_post_ops(const problem_t &p) {
    const auto &ops = p.attr.post_ops.ops;
    size_t n = ops.size();
    if (n && ops[n - 1].kind == mxdnn_sum) {
        const post_op_t &o = ops[n - 1];
        if (p.kind != mxdnn_primitive_kind_grouped_matmul || o.zero_point
                || (o.dt != mxdnn_data_type_undef && o.dt != p.dst.dt))
            return false;
        n--;
    }
    if (n > 1 || (n == 1 && !is_relu(ops[0]) && !is_gate(ops[0]))) return false;
    return n == 0 || ops[0].kind != mxdnn_gated || ops[0].gated_layout != mxdnn_gated_halves
           || dim_from_end(p.weights, 1) / 2 % n64_frame_t::columns == 0;
}

void set_packed_args(const problem_t &p, packed::launch_args_t &launch) {
    const packed_shape_t shape = shape_of(p.weights);
    packed::matmul_args_t &a = launch.matmul;
    a.prefix = int32_t(n64_frame_t::prefix(shape));
    a.tiling = tiling_of(p.weights);
    a.constant_weights = p.attr.constant_weights;
    a.N = int32_t(dim_from_end(p.weights, 1));
    a.K = int32_t(dim_from_end(p.weights, 2));
    for (const post_op_t &o : p.attr.post_ops.ops) {
        if (!applies_post_ops(p)) break;
        if (o.kind == mxdnn_sum) {
            a.old_scale = o.scale;
        } else if (o.kind == mxdnn_eltwise) {
            a.activation =
                    o.alg == mxdnn_eltwise_relu ? packed::activation_t::relu : packed::activation_t::relu2;
        } else {
            a.activation = o.gated_layout == mxdnn_gated_halves ? packed::activation_t::gated_halves
                                                                : packed::activation_t::gated_pairs;
            const bool silu = o.alg == mxdnn_gated_silu;
            a.alpha = silu ? 1.f : o.alpha;
            a.beta = silu ? 0.f : 1.f;
            a.limit = o.beta;
            a.limit_only = silu;
        }
    }
    a.panel_end = packed::panels_of(a);
    a.src_type = source_type(p);
    a.src_terms = source_terms(p);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
