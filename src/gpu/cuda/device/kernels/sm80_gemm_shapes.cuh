// SPDX-License-Identifier: Apache-2.0
// sm80_gemm of one weight format, in the shapes that plans choose from. Its formats are in two files,
// since devices differ in which of them they need: sm80_gemm_mx.cu and sm80_gemm_int4.cu.
#pragma once

#include <type_traits>
#include <utility>

#include "gpu/cuda/device/kernels/sm80_gemm.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The shapes of the plan; null after the last one.
template <typename format, size_t... i>
const built_t<matmul_args_t> *sm80_gemm_of(int v, std::index_sequence<i...>) {
    static const built_t<matmul_args_t> list[] = {{sm80_gemm<sm80_gemm_variant_t<format, sm80_gemm_tiles[i]>>,
            sm80_gemm_t::threads, sm80_gemm_variant_t<format, sm80_gemm_tiles[i]>::bytes}...};
    return v < int(sizeof...(i)) ? &list[v] : nullptr;
}
template <typename format>
const built_t<matmul_args_t> *sm80_gemm_shape(int v) {
    return sm80_gemm_of<format>(
            v, std::make_index_sequence<sizeof(sm80_gemm_tiles) / sizeof(sm80_gemm_tiles[0])>());
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
