// SPDX-License-Identifier: Apache-2.0
// The kinds of matmul kernels, and the calls that they take.
//
//   direct    a few rows of source times packed weights, decoded in registers (few rows; on tiles any number)
//   decode    one panel of packed weights to a plain panel in cache            (many rows, step 1)
//   gemm      a block of source rows times plain panels                        (many rows, step 2)
//   decode_int8, gemm_int8   the same in integers, for rows of s8 with one scale (int8_panel.hpp)
//   many      as direct, for formats that have a direct kernel that is better for one or two rows
//   fused     many rows of s8 times packed weights, for all rows in one call   (many rows, instead of both)
//   gradient  as gemm on tiles, whole groups of 32 rows; sums only             (gradients of weights)
//
// All of them read the source in the kernel's compute type (f32, or bf16 for the ISAs with bf16
// dot products), rows padded with zeros to whole steps of 32, and leave f32 sums. Rows are contiguous;
// kernels on tiles read more than 16 of them in the order of source_blocks_t.
// Bias, post-ops and conversion are the epilogue's business; the global scale is its too.
#pragma once

#include <cstdint>

#include "common/layouts/packed_shape.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

constexpr int panel_columns = 16;
constexpr int k_step = 32; // the source is padded to whole steps

enum class kernel_kind_t { direct, decode, gemm, decode_int8, gemm_int8, many, fused, gradient };

// Kernels whose weights are decoded panels of any K.
constexpr bool multiplies_panels(kernel_kind_t kind) {
    return kind == kernel_kind_t::gemm || kind == kernel_kind_t::gemm_int8 || kind == kernel_kind_t::gradient;
}

// Kernels that use tiles: what they do with decoded panels.
enum class decoded_t {
    dropped, // not stored
    kept,    // stored in direct_args_t::panels
    found,   // read from direct_args_t::panels; nothing is decoded
};

// The parameters that a kernel is generated for.
struct kernel_params_t {
    data_type_t wei_dt = mxdnn_data_type_undef; // not used by gemm kernels
    quant_t quant;                              // not used by gemm kernels
    int64_t K = 0;                              // rows of the weights; known when a primitive is created
    int64_t k_rows = 0;  // kernels that use tiles: rows of the weights that a call multiplies; 0: all
    int rows = 1;        // rows of source per call: the kernel's m
    int panels = 1;      // panels of 16 columns per call
    int fetch_ahead = 0; // how many bytes ahead weights are prefetched; 0: the kernel decides
    // f32 kernels: weights are prefetched one tile ahead. With AVX-512, codes of 4 bits are loaded from every
    // byte, which is faster than shifts.
    bool fetches_near = false;
    decoded_t decoded = decoded_t::dropped;
    data_type_t dst_dt = mxdnn_data_type_undef; // gemm kernels: of the results that they can store; or none
    bool row_scaled = false; // rows of s8: they have one scale, which is the caller's business
    int64_t calls =
            0; // kernels that use tiles: number of consecutive calls for the same panels; 0: not known
};

struct direct_args_t {
    const void *src;    // [rows][round_up(K, 32)] of the compute type
    int64_t src_stride; // bytes between rows
    int64_t src_step;   // kernels that use tiles: bytes from 32 values of a row to the next 32
    const uint8_t *wei; // first panel
    int64_t wei_stride; // bytes between panels
    float *acc;         // [rows][panels * 16], overwritten
    int64_t acc_stride; // bytes between rows
    // Kernels that use tiles: sums of the rows of K before, to which this call adds, in the form of acc;
    // null: zeros.
    const float *begin;
    const float
            *xsum; // with zeros that are added: [rows][div_up(K, block)] sums of the source over each block
    int64_t xsum_stride; // bytes between rows
    int64_t rows; // rows of this call: those of the kernel, or fewer with tiles, see kernel_row_t::on_tiles
    // Kernels that use tiles: the address of the results of the first row, which is prefetched meanwhile; may
    // be null.
    void *dst;
    int64_t dst_stride; // bytes between rows, here and in `before`
    // The previous call, if its results are to be stored: sums * scale + bias[column] in bf16, from the sums
    // that it left in the same acc. A call without rows only does that.
    struct stored_t {
        int64_t rows; // 0: none
        int64_t columns;
        void *dst;
        const float *bias; // for 32 columns, or 64 if there are more than 32
    } before;
    float scale;
    void *panels; // unless decoded_t is dropped: [round_up(K, 32) / 32][panels][16][16] pairs of bf16
    // Memory that later calls read. With every step of 32 rows of K by_exponent kernels prefetch fetch_step
    // bytes of it for each panel, kernels that use tiles next_panel_lines().
    const void *fetch;
    int64_t fetch_step;
};

struct decode_args_t {
    const uint8_t *wei; // first tile to decode of one panel
    int64_t tiles;      // whole tiles (n16_frame_t::tile_rows rows each)
    int64_t tail;       // not 0: the partial last tile follows (its rows are known from K)
    void *dst;          // f32: [rows][16]; bf16: [rows / 2][16][2], pairs of rows; rows padded to 32
};

struct gemm_args_t {
    const void *src;    // [rows][k] of the compute type
    int64_t src_stride; // bytes between rows
    const void *wei;    // results of decode, or panels in their form, `panels` of them
    int64_t wei_stride; // bytes between panels
    int64_t k;          // rows of the panels, a multiple of 32
    float *acc;         // [rows][panels * 16]
    int64_t acc_stride; // bytes between rows
    int64_t accumulate; // not 0: add to acc instead of overwriting
    // Not null, in kernels with a kernel_params_t::dst_dt: results go there, not to acc: sums *
    // (scale * row_scales[row]) + bias[column].
    void *dst;
    int64_t dst_stride; // bytes between rows
    int64_t columns;    // of the results: 16 or 32, at most panels * 16
    const float *bias;  // readable for all panels
    float scale;
    const float *row_scales; // or null
    // Memory that the next calls read. It is prefetched, step by step, beside the products.
    const void *fetch;
    int64_t fetch_step; // bytes for every gemm_fetch_rows rows of k
};
constexpr int gemm_fetch_rows = 4;

// Two panels of one matrix.
struct fused_args_t {
    const void *src;       // rows in the order of source_blocks_t
    int64_t rows;          // any number; up to 15 more are read
    const uint8_t *wei[2]; // the panels; what follows the second one is prefetched
    float *acc;            // [rows][32], overwritten
    int64_t acc_stride;    // bytes between rows
    void *dst;          // address of the results of the first row, which is prefetched meanwhile; may be null
    int64_t dst_stride; // bytes between rows
    // Not 0: the call finally stores that many columns there, at most 32: sums * (scale * row_scale[row]) +
    // bias[column] in bf16.
    int64_t store_columns;
    const float *bias;
    float scale;
    const float *row_scale;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
