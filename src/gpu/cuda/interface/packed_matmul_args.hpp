// SPDX-License-Identifier: Apache-2.0
// What the matmul kernels for rows (device/kernels/sm90, sm80_gemm) are told at execution; plain data.
#pragma once

#include <cstdint>

#include "common/row_groups.hpp"
#include "gpu/cuda/interface/weight_formats.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

enum class value_type_t : int32_t { none = 0, f32 = 1, bf16 = 2, f16 = 3 };

// The function that is applied to a sum after the bias. A gate takes pairs of columns, gate g and up u: g *
// sigmoid(alpha * g) * (u + beta), both limited. silu has alpha 1 and beta 0.
enum class activation_t : int32_t { none = 0, gated_pairs = 1, gated_halves = 2, relu = 3, relu2 = 4 };

constexpr int max_groups = 512; // limit of the lists in kernels

// The types of int4 weights besides their codes.
struct int4_types_t {
    value_type_t scales = value_type_t::bf16, zeros = value_type_t::none; // zeros: those that are added
    bool is_signed = true, zero_points = false;                           // zero_points: of 8 bits
    bool minima = false;                                                  // zeros are the values of code 0
};

// The tiles of a packed panel (common/layouts/n64.hpp), in bytes unless otherwise stated. Kernels work in
// steps of 64 rows. A tile is one step, except for blocks of 128 and 256 rows.
struct tiling_t {
    int64_t panel_bytes = 0;
    int32_t tile_bytes = 0;       // of a whole tile; the last one may be shorter
    int32_t header_bytes = 0;     // scales and zero points, before the codes
    int32_t tile_steps_shift = 0; // log2 of the steps in a tile
    int32_t blocks = 1;           // blocks (rows that share a scale) in a tile
    int4_types_t int4;
};

// The arguments of all these kernels.
struct matmul_args_t {
    const void *weights = nullptr;          // packed, n64_*
    const uint64_t *weights_ptrs = nullptr; // [experts], instead of weights
    int64_t expert_stride = 0;              // bytes between experts
    int32_t prefix = 0;                     // bytes before the panels of an expert; NVFP4: its global scale
    tiling_t tiling;
    const void *src = nullptr; // rows of 16 bits, 16-byte aligned, row stride a multiple of 8 elements
    int64_t src_stride = 0;    // elements
    value_type_t src_type = value_type_t::bf16; // f16: with int4 weights
    // A row of src is a sum of so many bf16 rows side by side. They are src_stride / src_terms apart, a
    // multiple of 64.
    int32_t src_terms = 1;
    const float *row_factors = nullptr; // factors of the sums of rows of src; null: 1
    const float *src_global = nullptr;  // a further factor of sums; null: 1
    int32_t src_global_step = 0;        // from the factor of an expert to the next one
    void *dst = nullptr;
    int64_t dst_stride = 0; // elements
    value_type_t dst_type = value_type_t::bf16;
    int32_t src_rows = 0;  // rows of src
    int32_t M = 0;         // rows of dst; of all groups together
    int32_t row_begin = 0; // in the list of rows: M rows from here on are computed
    int32_t N = 0, K = 0;

    bool grouped = false; // otherwise one matrix of weights and M rows
    row_groups_t groups;  // the groups of the rows of the list [0, M)
    const int32_t *gather =
            nullptr; // [M]: row of src, or -1 for a row of zeros; null, as gemm requires: row m

    // The panels of 64 columns to compute; with gated_halves those of the gates.
    int32_t panel_begin = 0, panel_end = 0;
    // [panels]: those with 0 need not be computed (gemm and sm80_gemm); null: all are.
    const int32_t *wanted = nullptr;
    int32_t dst_first = 0; // the column of the results that is column 0 of dst

    const float *expert_alpha = nullptr; // [experts]
    const void *row_weights = nullptr;   // [M]: factors of the sums, or of the finished rows
    value_type_t row_weights_type = value_type_t::none;
    bool row_weights_on_input = false;
    const void *bias = nullptr; // [experts, N]
    value_type_t bias_type = value_type_t::none;
    int64_t bias_stride = 0; // elements between experts
    activation_t activation = activation_t::none;
    float alpha = 1.f, beta = 1.f, limit = 0.f; // limit 0: none
    // alpha, beta and limit of every expert, instead of these. silu uses the limit only.
    const float *activation_params = nullptr;
    int32_t activation_stride = 0;
    bool limit_only = false;
    float old_scale = 0.f; // factor of the previous dst, which is added at the end

    int32_t splits = 1; // CTAs of a cluster that share K: 1 to 4, from the plan
    // The attribute: weights may be read before earlier kernels of the stream have ended.
    bool constant_weights = false;
    // If not 0, so many CTAs of another kernel make the rows of src meanwhile, the first ones first, and as
    // many of this one start late: they have no items in the first maker_rounds rounds. For weights in n64_f4
    // only.
    uint8_t makers = 0, maker_rounds = 0;
};

// An argument struct of the kernel table: the variant of the kernel, and its grid.
struct launch_args_t {
    matmul_args_t matmul;
    format_t format;
    int32_t variant = 0;  // heuristics/packed_variants.hpp
    int32_t variants = 1; // variants that prepare() loads, from that one on
    int32_t grid = 0;
    // The kernel starts while the previous kernel of the stream runs. It reads nothing that an earlier kernel
    // may write before these have ended. This includes its weights, unless the caller says that they are
    // constant.
    bool early = false;
};

// The panels of the gates, or all panels: the whole range for a call that computes everything.
inline int32_t panels_of(const matmul_args_t &a) {
    const int32_t columns = a.activation == activation_t::gated_halves ? a.N / 2 : a.N;
    return (columns + 63) / 64;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
