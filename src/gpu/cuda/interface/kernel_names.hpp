// SPDX-License-Identifier: Apache-2.0
// Names of kernels for verbose lines, in the order of kernel_id_t.
#pragma once

#include <iterator>

#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

constexpr const char *kernel_names[] = {
        "empty",
        "dequantise_tiles",
        "group_rows",
        "mma_mx_matmul",
        "moe_permute",
        "moe_route",
        "moe_unpermute",
        "move_tiles",
        "sm80_gemm",
        "quantise_both_axes",
        "quantise_results",
        "quantise_tiles",
        "ref_grouped_matmul",
        "ref_moe_permute",
        "ref_moe_route",
        "ref_moe_unpermute",
        "ref_mx_matmul",
        "ref_mx_reorder",
        "scatter_link",
        "scatter_sum",
        "sm90_gemv",
        "sm90_grouped_gemv",
        "sm90_fp8_weights",
        "sm90_gemm",
        "convert_source",
};
static_assert(std::size(kernel_names) == size_t(kernel_id_t::count), "every kernel has a name");

inline const char *kernel_name(kernel_id_t id) { return kernel_names[size_t(id)]; }

} // namespace cuda
} // namespace impl
} // namespace mxdnn
