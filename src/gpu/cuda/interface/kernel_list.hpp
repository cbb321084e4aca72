// SPDX-License-Identifier: Apache-2.0
// The kernels of libmxdnn_cuda, a row each: what libmxdnn asks for by number, and what verbose lines call
// them. Their names follow doc/concepts/naming.md; each has an entry <name>_kernel in the file of its kernel
// (device/kernels.hpp).
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

// Kernels that run on every device, and those with instructions of one architecture.
// clang-format off
#define MXDNN_CUDA_KERNELS(every, sm90) \
    every(empty) /* does nothing: what a launch costs */ \
    every(convert_source) every(dequantise_groups) every(dequantise_tiles) every(group_by_ids) \
    every(moe_permute) every(moe_route) every(moe_unpermute) every(move_tiles) \
    every(quantise_both_axes) every(quantise_groups) every(quantise_results) every(quantise_tiles) \
    every(ref_grouped_backward_weights) every(ref_grouped_matmul) every(ref_grouped_mx_reorder) \
    every(ref_moe_permute) every(ref_moe_route) every(ref_moe_unpermute) every(ref_mx_matmul) \
    every(ref_mx_reorder) every(scatter_link) every(scatter_sum) every(sm80_gemm) \
    every(sm80_table_gemm) \
    sm90(sm90_fp8_weights) sm90(sm90_gemm) sm90(sm90_gemv) sm90(sm90_gradient) \
    sm90(sm90_grouped_gemv)
// clang-format on

#define MXDNN_CUDA_ID(name) name,
enum class kernel_id_t : uint32_t { MXDNN_CUDA_KERNELS(MXDNN_CUDA_ID, MXDNN_CUDA_ID) count };
#undef MXDNN_CUDA_ID

inline const char *kernel_name(kernel_id_t id) {
#define MXDNN_CUDA_NAME(name) #name,
    static constexpr const char *names[] = {MXDNN_CUDA_KERNELS(MXDNN_CUDA_NAME, MXDNN_CUDA_NAME)};
#undef MXDNN_CUDA_NAME
    return names[uint32_t(id)];
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
