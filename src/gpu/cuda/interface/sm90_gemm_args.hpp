// SPDX-License-Identifier: Apache-2.0
// What gemm is told: the table's entry, and the kernel.
#pragma once

#include "gpu/cuda/interface/sm90_mapped_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The largest number of CTAs that share K, and of sums that one of them has.
constexpr int most_parts = 8;
constexpr int64_t most_sums = 144 * 256;

// If CTAs share K (matmul_args_t::splits), each writes its sums here, and they are added up.
struct gemm_launch_t : launch_args_t {
    float *parts = nullptr; // [splits, M, parts_stride()], 16-byte aligned
};

// Sums of a row.
inline int64_t parts_stride(int64_t N) { return (N + 63) / 64 * 64; }

struct gemm_args_t : mapped_args_t {
    float *parts; // null: K is not shared
    int64_t parts_stride;
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
