// SPDX-License-Identifier: Apache-2.0
// gemm of one weight format, in the widths that plans choose from. Each family of formats has a file of
// its own that builds them, because they take the compiler long.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {

struct mxfp4_t;

namespace cuda {
namespace packed {

template <typename format, size_t... i>
const built_t<gemm_args_t> *gemm_of(int v, std::index_sequence<i...>) {
    static const built_t<gemm_args_t> list[] = {
            {gemm<format, gemm_widths[i]>, gemm_shared_t<format, gemm_widths[i]>::threads,
                    gemm_shared_t<format, gemm_widths[i]>::bytes, gemm_pair(gemm_widths[i])}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}

// Null after the last one.
template <typename format>
const built_t<gemm_args_t> *gemm_variant(int v) {
    constexpr int widths = std::is_same_v<format, mxfp4_t> ? gemm_all : gemm_common;
    return gemm_of<format>(v, std::make_index_sequence<widths>());
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
