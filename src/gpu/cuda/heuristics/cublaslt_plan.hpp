// SPDX-License-Identifier: Apache-2.0
// When it pays to decode packed weights to bf16 or f16 and let cuBLASLt multiply, and how many columns at a
// time: a pure function of sizes.
#pragma once

#include <cstdint>
#include <string>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace cublaslt {

struct plan_t {
    int64_t least_rows; // with fewer rows other kernels run; never_rows: always
    int64_t columns;    // columns that are decoded at a time, a multiple of 64
};
constexpr int64_t never_rows = INT64_MAX;

// The largest size of decoded weights, for any N and K.
constexpr int64_t decoded_bytes = int64_t(64) << 20;

// panel_bytes: the size of 64 packed columns. other_speed: the speed of the other kernels with many rows,
// relative to cuBLASLt.
plan_t plan(int64_t N, int64_t K, int64_t panel_bytes, double other_speed);

// That speed of sm80_gemm; and that of gemv repeated for every 16 rows, which has the rate `all_columns`
// except for the ends of its runs.
constexpr double speed_of_sm80_gemm = .09;
double speed_of_gemv(int64_t N, int64_t K, double all_columns);

// The number of rows from which FP8 is faster than bf16 rows in cuda:sm_90, although weights and rows are
// converted to FP8 in each call.
int64_t least_fp8_rows(int64_t N, int64_t K, int64_t panel_bytes);

// Numbers of rows, ascending, that kernels are chosen for if M is known at execution only. Each serves up to
// the next one.
constexpr int64_t row_steps[] = {1, 64, 256, 1024, 2048, 4096, 8192, 16384};

std::string to_string(const plan_t &p);

} // namespace cublaslt
} // namespace cuda
} // namespace impl
} // namespace mxdnn
