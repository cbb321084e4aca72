// SPDX-License-Identifier: Apache-2.0
// Which Hopper kernel a matmul of packed weights gets, in which variant, on how many CTAs: a pure function of
// sizes.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The variants that are built; the kernels' files check what fits. Of grouped_gemv: rows of a row block, in
// eights.
constexpr int grouped_gemv_tiles[] = {1, 2};
constexpr int gemv_most = 16; // rows
// Of gemv: rows of the source, in eights, at most.
constexpr int gemv_tiles[] = {1, 2};
constexpr int gemv_ctas = 2; // that a multiprocessor holds
// Of gemm: the first ones are built for every weight format, the others for MXFP4, because every width
// takes the compiler long.
constexpr int gemm_widths[] = {32, 64, 128, 256, 48, 96, 144, 288};
constexpr int gemm_all = sizeof(gemm_widths) / sizeof(gemm_widths[0]), gemm_common = 4;
// At the rate of FP8, for MXFP4: one width more.
constexpr int gemm_fp8 = gemm_all, gemm_fp8_width = 288;
constexpr int gemm_width(int v) { return v == gemm_fp8 ? gemm_fp8_width : gemm_widths[v]; }
// An item is 256 columns; those of the widest are divided between two CTAs that share the source rows.
constexpr int gemm_pair(int width) { return width > 144 ? 2 : 1; }
// Rows that are copied at once: of wide blocks not many more than there are.
constexpr int gemm_box_rows(int width) { return width > 256 ? 48 : width > 144 ? 32 : width; }
// Blocks run as wide as their rows need, down to half of the width, in steps of 16, or of 8 for the width of
// experts with few rows: the next width below `rows`, 0: none.
constexpr int gemm_narrower(int width, int rows) {
    const int less = rows - (width == 48 ? 8 : 16);
    return less >= width / 2 ? less : 0;
}

// Of sm80_gemm: rows of a row block, in eights.
constexpr int sm80_gemm_tiles[] = {1, 6};

// What a plan is made of.
struct plan_sizes_t {
    int64_t rows, N, K;
    int64_t groups; // that the rows fall into; 0: one matrix, of whose columns each is one of the results for
                    // itself
    int tile_bytes; // 64 x 64 weights with their scales
    int sm_count;
    int terms;       // of a row of the source
    bool all_widths; // of gemm are built for the format
};

struct matmul_plan_t {
    kernel_id_t kernel;
    int shape;  // index into the kernel's list above
    int splits; // CTAs that share K: of a cluster, of gemm any
    int grid;
};

// rows: of the source; groups: experts that they are spread over, 0 where there is one matrix and every
// column of the results belongs to one of its own; tile_bytes: 64 x 64 weights with their scales; widths: how
// many of gemm_widths there are; terms: of a source row (matmul_args_t), each a row to few rows and
// another pass through K to many.
matmul_plan_t plan_matmul(int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count,
        int widths = gemm_all, int terms = 1);

// Where many rows of one matrix have no kernel but sm80_gemm: so many rows at a time, of `rows`, which
// are gemv again and again as long as that is faster.
int64_t rows_per_gemv(int64_t rows, int terms = 1);

// The same on a device of any architecture. groups: 0 or 1 where there is one matrix.
matmul_plan_t plan_sm80_matmul(int64_t rows, int64_t N, int groups, int sm_count, int terms = 1);

// Whether products of f8_e4m3 rows by MXFP4 weights of so many experts are faster at the rate of FP8 than as
// bf16: decoding to FP8 costs more, so rows have to be many of each.
bool fp8_pays(int64_t rows, int groups);
matmul_plan_t plan_fp8_matmul(int64_t rows, int64_t N, int groups, int sm_count);

std::string to_string(const matmul_plan_t &plan);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
