// SPDX-License-Identifier: Apache-2.0
// What the Hopper matmul kernels (device/kernels/sm90) are told at execution; plain data.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

enum class value_type_t : int32_t { none = 0, f32 = 1, bf16 = 2, f16 = 3 };

// How rows of the source belong to experts.
enum class rows_kind_t : int32_t {
    dense = 0,  // one matrix of weights, M rows
    ends = 1,   // offsets[g] is the end of group g
    starts = 2, // offsets[g] and offsets[g + 1] are the start and end of group g
    padded = 3  // group g has offsets[g] rows of the max_rows from g * max_rows on
};

enum class activation_t : int32_t { none = 0, swiglu = 1 };

// How the weights of a format reach the tensor cores (device/mma/decode_*.cuh).
enum class format_t : int32_t {
    mxfp4 = 0,
    nvfp4,
    mxfp6_e2m3,
    mxfp6_e3m2,
    mxfp8_e4m3,
    mxfp8_e5m2,
    mxint8,
    int4,       // s4, bf16 scales
    int4_zeros, // u4, bf16 scales, u8 zero points
    count
};

// The tiles of a packed panel (common/layouts/n64.hpp), in bytes where nothing else is said. The kernels work
// in steps of 64 rows; a tile is one, but for blocks of 128 and 256 rows.
struct tiling_t {
    int64_t panel_bytes = 0;
    int32_t tile_bytes = 0;       // of a whole tile; the last one may be shorter
    int32_t header_bytes = 0;     // scales and zero points, before the codes
    int32_t tile_steps_shift = 0; // log2 of the steps in a tile
    int32_t blocks = 1;           // of rows that share a scale, in a tile
};

// What both kernels take.
struct matmul_args_t {
    const void *weights = nullptr;  // packed, n64_b*, from the first panel on
    int64_t expert_stride = 0;      // bytes between experts
    const float *globals = nullptr; // NVFP4: an expert's global scale, expert_stride apart; null: none
    tiling_t tiling;
    const void *src = nullptr; // bf16 rows, 16-byte aligned, row stride a multiple of 8 elements
    int64_t src_stride = 0;    // elements
    void *dst = nullptr;
    int64_t dst_stride = 0; // elements
    value_type_t dst_type = value_type_t::bf16;
    int32_t M = 0; // rows of dst; of all groups together
    int32_t N = 0, K = 0;

    rows_kind_t rows_kind = rows_kind_t::dense;
    int32_t groups = 1;
    int32_t max_rows = 0; // padded: rows that a group has room for
    const int32_t *offsets = nullptr;
    const int32_t *group_experts = nullptr; // [groups], -1 skips; null: group g is expert g
    const int32_t *gather = nullptr;        // [M] row of src, -1 a row of zeros; null: row m
    const int32_t *scatter = nullptr;       // [M] row of dst, -1 drops; null: row m
    const float *row_weights = nullptr;     // [M] multiplies the finished row

    const void *bias = nullptr; // [experts, N]
    value_type_t bias_type = value_type_t::none;
    activation_t activation = activation_t::none; // interleaved (gate, up): dst has N / 2 columns
    float alpha = 1.f, limit = 0.f;               // limit 0: none

    int32_t splits = 1; // CTAs of a cluster that share K: 1 or 2, from the plan
};

// An argument struct of the kernel table: the plan's choice of a variant and its grid.
struct launch_args_t {
    matmul_args_t matmul;
    format_t format = format_t::mxfp4;
    int32_t variant = 0; // index into few_rows_variants or many_rows_widths
    int32_t grid = 0;
    // The stream's kernel before this is one of these, too. They write no weights, so this one may start, and
    // read its own, while that one runs.
    bool early = false;
};

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
