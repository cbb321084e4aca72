// SPDX-License-Identifier: Apache-2.0
// The variants that each kernel for packed weights is built in for a format, and which one a launch takes.
// This is the one place that decides; the kernels' files build what stands here, by the same numbers.
#pragma once

#include <array> // std::size

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// A kernel has all its shapes for one kind of rows, then all for the next.
namespace grouped_gemv_variants {
constexpr int shapes = std::size(grouped_gemv_tiles);
enum rows_t { bf16, sums, f16, kinds }; // sums: each is the sum of several bf16 rows
} // namespace grouped_gemv_variants

namespace gemv_variants {
// The shapes of the plan, and one for a single row.
constexpr int one_row = std::size(gemv_tiles), shapes = one_row + 1;
enum rows_t {
    bf16,
    bf16_of_bf16_scales,
    f16,
    kinds
}; // the second one also for int4 whose scales and zeros are bf16
constexpr int tiles(int variant) { return variant % shapes == one_row ? 1 : gemv_tiles[variant % shapes]; }
} // namespace gemv_variants

namespace gemm_variants {
// int4 weights are rounded to the type of the rows; their zeros have the type of scales. Their variants are
// counted apart from those of other formats.
enum int4_t { f16, bf16, bf16_of_f16_scales, kinds };
} // namespace gemm_variants

namespace sm80_gemm_variants {
constexpr int shapes = std::size(sm80_gemm_tiles);
enum rows_t { bf16, f16, kinds };
} // namespace sm80_gemm_variants

// The variants of a kernel for rows and weights like those of a launch, for any number of rows. fp8: in FP8.
// is_int4: of int4 weights.
struct variants_t {
    int first, count;
};
inline variants_t variants_of(kernel_id_t kernel, const matmul_args_t &a, bool fp8, bool is_int4) {
    const bool f16 = a.src_type == value_type_t::f16;
    if (kernel == kernel_id_t::sm90_gemv) {
        using namespace gemv_variants;
        const int4_types_t &int4 = a.tiling.int4;
        const bool all_bf16 = int4.scales == value_type_t::bf16
                              && (int4.zeros == value_type_t::bf16 || int4.zeros == value_type_t::none);
        const rows_t rows = f16 ? rows_t::f16 : all_bf16 ? bf16_of_bf16_scales : bf16;
        return {rows * shapes, shapes};
    }
    if (kernel == kernel_id_t::sm90_grouped_gemv) {
        using namespace grouped_gemv_variants;
        const rows_t rows = f16 ? rows_t::f16 : a.src_terms > 1 ? sums : bf16;
        return {rows * shapes, shapes};
    }
    if (kernel == kernel_id_t::sm80_gemm) {
        using namespace sm80_gemm_variants;
        return {(f16 ? rows_t::f16 : bf16) * shapes, shapes};
    }
    if (is_int4) {
        using namespace gemm_variants;
        const int4_t types = f16                                          ? gemm_variants::f16
                             : a.tiling.int4.scales == value_type_t::bf16 ? gemm_variants::bf16
                                                                          : bf16_of_f16_scales;
        return {types * gemm_common, gemm_common};
    }
    return fp8 ? variants_t{gemm_fp8, 1} : variants_t{0, gemm_all};
}

// The variant of a launch of the plan's kernel on so many rows.
inline int select_variant(const matmul_plan_t &plan, int64_t rows, const matmul_args_t &a, bool is_int4) {
    if (plan.kernel == kernel_id_t::sm90_gemm && !is_int4) return plan.shape;
    const bool one_row = plan.kernel == kernel_id_t::sm90_gemv && rows * a.src_terms == 1;
    return variants_of(plan.kernel, a, false, is_int4).first
           + (one_row ? gemv_variants::one_row : plan.shape);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
