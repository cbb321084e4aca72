// SPDX-License-Identifier: Apache-2.0
// What the matmul kernels for rows (device/kernels/sm90, sm80_gemm) are told at execution; plain data.
#pragma once

#include <cstdint>

#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

enum class value_type_t : int32_t { none = 0, f32 = 1, bf16 = 2, f16 = 3 };

// What happens to a sum after the bias. A gate takes pairs of columns, gate g and up u:
// g * sigmoid(alpha * g) * (u + beta), both limited; silu is alpha 1 and beta 0.
enum class activation_t : int32_t { none = 0, gated_pairs = 1, gated_halves = 2, relu = 3, relu2 = 4 };

constexpr int max_groups = 512; // that the kernels' lists have room for

// How the weights of a format reach the tensor cores (device/mma/decode_*.cuh).
enum class format_t : int32_t {
    mxfp4 = 0,
    nvfp4,
    mxfp6_e2m3,
    mxfp6_e3m2,
    mxfp8_e4m3,
    mxfp8_e5m2,
    mxint8,
    int4,             // s4, 16-bit scales
    int4_zero_points, // u4, 16-bit scales, u8 zero points
    int4_zeros,       // u4, 16-bit scales, floating zeros of 16 bits
    int4_any,         // every int4
    count
};

// What int4 weights are besides their codes.
struct int4_types_t {
    value_type_t scales = value_type_t::bf16, zeros = value_type_t::none; // the second: floating ones
    bool is_signed = true, zero_points = false;                           // of 8 bits
};

// The tiles of a packed panel (common/layouts/n64.hpp), in bytes where nothing else is said. The kernels work
// in steps of 64 rows; a tile is one, but for blocks of 128 and 256 rows.
struct tiling_t {
    int64_t panel_bytes = 0;
    int32_t tile_bytes = 0;       // of a whole tile; the last one may be shorter
    int32_t header_bytes = 0;     // scales and zero points, before the codes
    int32_t tile_steps_shift = 0; // log2 of the steps in a tile
    int32_t blocks = 1;           // of rows that share a scale, in a tile
    int4_types_t int4;
};

// What both kernels take.
struct matmul_args_t {
    const void *weights = nullptr;          // packed, n64_*
    const uint64_t *weights_ptrs = nullptr; // [experts], instead of weights
    int64_t expert_stride = 0;              // bytes between experts
    int32_t prefix = 0;                     // bytes before an expert's panels; NVFP4: its global scale
    tiling_t tiling;
    const void *src = nullptr; // rows of 16 bits, 16-byte aligned, row stride a multiple of 8 elements
    int64_t src_stride = 0;    // elements
    value_type_t src_type = value_type_t::bf16; // f16: of int4 weights
    // A row of src is a sum: so many rows of bf16 side by side, src_stride / src_terms apart, a multiple
    // of 64.
    int32_t src_terms = 1;
    const float *row_factors = nullptr; // of rows of src: what their sums are multiplied by; null: 1
    const float *src_global = nullptr;  // what sums are multiplied by, too; null: 1
    int32_t src_global_step = 0;        // from an expert's to the next
    void *dst = nullptr;
    int64_t dst_stride = 0; // elements
    value_type_t dst_type = value_type_t::bf16;
    int32_t src_rows = 0;  // that there are to gather from
    int32_t M = 0;         // rows of dst; of all groups together
    int32_t row_begin = 0; // of the list of rows: M of them from here on are computed
    int32_t N = 0, K = 0;

    bool grouped = false; // else one matrix of weights and M rows
    row_groups_t groups;  // what rows of the list [0, M) belong to
    const int32_t *gather =
            nullptr; // [M] row of src, else a row of zeros; null: row m, as gemm has to have it

    // Panels of 64 columns that are computed; with gated_halves those of the gates.
    int32_t panel_begin = 0, panel_end = 0;
    // [panels]: those that have a 0 need not be computed, of gemm and sm80_gemm; null: all are.
    const int32_t *wanted = nullptr;
    int32_t dst_first = 0; // column of the results that is column 0 of dst

    const float *expert_alpha = nullptr; // [experts]
    const void *row_weights = nullptr;   // [M] multiplies the sum, or the finished row
    value_type_t row_weights_type = value_type_t::none;
    bool row_weights_on_input = false;
    const void *bias = nullptr; // [experts, N]
    value_type_t bias_type = value_type_t::none;
    int64_t bias_stride = 0; // elements between experts
    activation_t activation = activation_t::none;
    float alpha = 1.f, beta = 1.f, limit = 0.f; // limit 0: none
    // Instead of these, alpha, beta and limit of every expert; a silu takes the limit only.
    const float *activation_params = nullptr;
    int32_t activation_stride = 0;
    bool limit_only = false;
    float old_scale = 0.f; // times what dst held, added at the end

    int32_t splits = 1; // CTAs of a cluster that share K: 1 to 4, from the plan
    // The attribute: weights may be read before earlier kernels of the stream have ended.
    bool constant_weights = false;
};

// An argument struct of the kernel table: the variant of the kernel, and its grid.
struct launch_args_t {
    matmul_args_t matmul;
    format_t format = format_t::mxfp4;
    int32_t variant = 0;  // heuristics/packed_variants.hpp
    int32_t variants = 1; // that prepare() loads, from that one on
    int32_t grid = 0;
    // The kernel starts while the stream's kernel before it runs. It reads nothing that an earlier kernel may
    // write until these have ended; its weights belong to that unless the caller says that they are constant.
    bool early = false;
};

// The panels of a gate's columns, or of all; the whole range for a call that computes everything.
inline int32_t panels_of(const matmul_args_t &a) {
    const int32_t columns = a.activation == activation_t::gated_halves ? a.N / 2 : a.N;
    return (columns + 63) / 64;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
