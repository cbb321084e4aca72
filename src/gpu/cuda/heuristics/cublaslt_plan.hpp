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
    int64_t least_rows; // fewer are left to other kernels; never_rows: all are
    int64_t columns;    // decoded at a time, a multiple of 64
};
constexpr int64_t never_rows = INT64_MAX;

// The room that decoded weights may take, whatever N and K.
constexpr int64_t decoded_bytes = int64_t(64) << 20;

// panel_bytes: 64 packed columns; other_speed: of the kernels that there are beside, at many rows, against
// cuBLASLt's.
plan_t plan(int64_t N, int64_t K, int64_t panel_bytes, double other_speed);

// What that is of sm80_gemm, and of gemv that runs anew for every 16 rows, which has the rate
// `all_columns` but for the ends of its runs.
constexpr double speed_of_sm80_gemm = .09;
double speed_of_gemv(int64_t N, int64_t K, double all_columns);

// From how many rows on FP8 pays, with weights and rows made for it in each call, against decoded rows of
// bf16 that cuda:sm_90 multiplies.
int64_t least_fp8_rows(int64_t N, int64_t K, int64_t panel_bytes);

// Row counts, ascending, that kernels are chosen for where M is known at execution only; each serves up to
// the next.
constexpr int64_t row_steps[] = {1, 64, 256, 1024, 2048, 4096, 8192, 16384};

std::string to_string(const plan_t &p);

} // namespace cublaslt
} // namespace cuda
} // namespace impl
} // namespace mxdnn
