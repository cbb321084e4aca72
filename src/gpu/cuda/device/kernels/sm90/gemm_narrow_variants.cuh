// SPDX-License-Identifier: Apache-2.0
// Variants of gemm_narrow, as lists of the files that compile them.
#pragma once

#include <utility>

#include "gpu/cuda/device/kernels/sm90/gemm_helped.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_narrow.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename format, size_t i>
built_t<gemm_args_t> built_narrow() {
    constexpr narrow_shape_t shape = narrow_shapes[i];
    if constexpr (narrow_is_helped(shape)) {
        using variant = gemm_helped_t<format, shape.width>;
        return {gemm_helped<variant>, variant::threads, variant::bytes, variant::cluster};
    } else {
        using variant = gemm_narrow_t<format, shape.width, shape.parts, shape.panels>;
        return {gemm_narrow<variant>, variant::threads, variant::bytes, variant::cluster};
    }
}

// Variant number first + v, of those from `first` on.
template <typename format, size_t first, size_t... i>
const built_t<gemm_args_t> *narrow_from(int v, std::index_sequence<i...>) {
    static const built_t<gemm_args_t> list[] = {built_narrow<format, first + i>()...};
    return &list[v];
}

const built_t<gemm_args_t> *gemm_narrow_three(int v); // gemm_narrow_three.cu

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
