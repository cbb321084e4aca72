// SPDX-License-Identifier: Apache-2.0
// Which Hopper kernel a matmul of packed weights gets, in which variant, on how many CTAs: a pure function of
// sizes.
#pragma once

#include <cstdint>

#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The variants that are built. The files of the kernels check what fits. grouped_gemv: rows of a row block,
// in multiples of eight.
constexpr int grouped_gemv_tiles[] = {1, 2};
constexpr int gemv_most = 16; // rows
// gemv: the largest number of source rows, in multiples of eight.
constexpr int gemv_tiles[] = {1, 2};
constexpr int gemv_ctas = 2; // that a multiprocessor holds
// gemm: the first ones are built for every weight format, the others for MXFP4 only, because every width
// takes the compiler long.
constexpr int gemm_widths[] = {32, 64, 128, 256, 48, 96, 144, 288};
constexpr int gemm_all = sizeof(gemm_widths) / sizeof(gemm_widths[0]), gemm_common = 4;
// At the rate of FP8, for MXFP4: one width more.
constexpr int gemm_fp8 = gemm_all, gemm_fp8_width = 288;
constexpr int gemm_width(int v) { return v == gemm_fp8 ? gemm_fp8_width : gemm_widths[v]; }
// An item has 256 columns. With the widest blocks it is divided between two CTAs that share the source rows.
constexpr int gemm_pair(int width) { return width > 144 ? 2 : 1; }
// Rows that are copied together; for wide blocks not many more than exist.
constexpr int gemm_box_rows(int width) { return width > 256 ? 48 : width > 144 ? 32 : width; }
// Blocks are as wide as their rows need, down to half of the width, in steps of 16 (8 for the width of
// experts with few rows). This is the next width below `rows`; 0: none.
constexpr int gemm_narrower(int width, int rows) {
    const int less = rows - (width == 48 ? 8 : 16);
    return less >= width / 2 ? less : 0;
}

// sm80_gemm: rows of a row block, in multiples of eight.
constexpr int sm80_gemm_tiles[] = {1, 6};

// The input of a plan.
struct plan_sizes_t {
    int64_t rows, N, K;
    int64_t groups; // groups of rows; 0: one matrix, each of whose columns gives one column of the results
    int tile_bytes; // 64 x 64 weights with their scales
    int sm_count;
    int terms;       // terms of a source row
    bool all_widths; // all widths of gemm are built for the format
};

struct matmul_plan_t {
    kernel_id_t kernel;
    int shape;  // index into the kernel's list above
    int splits; // CTAs that share K: for gemm any number, otherwise those of a cluster
    int grid;
};

// rows: source rows. groups: experts that they are distributed among; 0 if there is one matrix, and every
// column of the results belongs to one of its columns. tile_bytes: size of 64 x 64 weights with their scales.
// widths: number of gemm_widths that exist. terms: of a source row (matmul_args_t); each is a row for kernels
// of few rows, and another pass over K for those of many.
matmul_plan_t plan_matmul(int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count,
        int widths = gemm_all, int terms = 1);

// For many rows of one matrix that only sm80_gemm takes: the number of rows of a call, of `rows`. gemv is
// called again and again as long as that is faster.
int64_t rows_per_gemv(int64_t rows, int terms = 1);

// The same on a device of any architecture. groups: 0 or 1 if there is one matrix.
matmul_plan_t plan_sm80_matmul(int64_t rows, int64_t N, int groups, int sm_count, int terms = 1);

// Whether products of f8_e4m3 rows and MXFP4 weights of so many experts are faster in FP8 than in bf16.
// Decoding to FP8 costs more, so each expert has to have many rows.
bool fp8_pays(int64_t rows, int groups);
matmul_plan_t plan_fp8_matmul(int64_t rows, int64_t N, int groups, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
