// SPDX-License-Identifier: Apache-2.0
// The sets of kernels that multiply rows by packed weights, a row of facts each. An implementation is made of
// one set; another architecture's own kernels are another row.
#pragma once

#include "common/problem.hpp"
#include "gpu/cuda/arch.hpp"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct matmul_kernels_t {
    const char *impl_name = nullptr;
    const arch_t *arch = nullptr; // the architecture whose instructions they need; null: those of all
    // The kernels: for few rows of one matrix, for few rows of each of several, and for many rows; `empty` if
    // there is none.
    kernel_id_t gemv = kernel_id_t::empty, grouped_gemv = kernel_id_t::empty, gemm = kernel_id_t::empty;
    // The kernels for int4 with more rows than gemv takes; null: gemm.
    const matmul_kernels_t *int4_gemm = nullptr;
    int64_t most_grouped_int4_block = INT64_MAX; // largest block of int4 weights with groups, in rows
    bool shares_k = false; // CTAs of gemm may compute parts of K, which are added up in the scratchpad
    packed::matmul_plan_t (*plan)(const packed::plan_sizes_t &) = nullptr;
};

namespace packed {
inline matmul_plan_t plan_by_sm80(const plan_sizes_t &s) {
    return plan_sm80_matmul(s.rows, s.N, int(s.groups), s.sm_count, s.terms);
}
inline matmul_plan_t plan_by_sm90(const plan_sizes_t &s) {
    return plan_matmul(s.rows, s.N, s.K, int(s.groups), s.tile_bytes, s.sm_count,
            s.all_widths ? gemm_all : gemm_common, s.terms);
}
} // namespace packed

inline constexpr matmul_kernels_t sm80_matmul_kernels = [] {
    matmul_kernels_t k;
    k.impl_name = sm80.own_matmuls[0];
    k.gemm = kernel_id_t::sm80_gemm;
    k.plan = packed::plan_by_sm80;
    return k;
}();

inline constexpr matmul_kernels_t sm90_matmul_kernels = [] {
    matmul_kernels_t k;
    k.impl_name = sm90.own_matmuls[0];
    k.arch = &sm90;
    k.gemv = kernel_id_t::sm90_gemv;
    k.grouped_gemv = kernel_id_t::sm90_grouped_gemv;
    k.gemm = kernel_id_t::sm90_gemm;
    k.int4_gemm = &sm80_matmul_kernels;
    k.most_grouped_int4_block = 128; // rows of a stage of grouped_gemv
    k.shares_k = true;
    k.plan = packed::plan_by_sm90;
    return k;
}();

} // namespace cuda
} // namespace impl
} // namespace mxdnn
