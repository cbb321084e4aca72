// SPDX-License-Identifier: Apache-2.0
// The kernels of libmxdnn_cuda by number: what libmxdnn asks for, and device/kernels.cu has.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

enum class kernel_id_t : uint32_t {
    empty, // does nothing: what a launch costs
    dequantise_tiles,
    group_rows,
    mma_mx_matmul,
    moe_permute,
    moe_route,
    moe_unpermute,
    move_tiles,
    sm80_gemm,
    quantise_both_axes,
    quantise_results,
    quantise_tiles,
    ref_grouped_matmul,
    ref_moe_permute,
    ref_moe_route,
    ref_moe_unpermute,
    ref_mx_matmul,
    ref_mx_reorder,
    scatter_link,
    scatter_sum,
    sm90_gemv,
    sm90_grouped_gemv,
    sm90_fp8_weights,
    sm90_gemm,
    convert_source,
    count
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
