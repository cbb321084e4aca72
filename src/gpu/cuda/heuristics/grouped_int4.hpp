// SPDX-License-Identifier: Apache-2.0
// The plan for groups with int4 weights, which gemm does not take.
#pragma once

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Codes, scales and zero points of 16 rows do not fit in the registers of grouped_gemv. So its blocks have
// eight, and those are faster than sm80_gemm as long as groups have few rows.
matmul_plan_t plan_grouped_int4(int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
