// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device/kernels/sm90/gemm_helped.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_narrow.cuh"

#include <utility>

#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename format, size_t i>
static built_t<gemm_args_t> built() {
    constexpr narrow_shape_t shape = narrow_shapes[narrow_threes + i];
    if constexpr (narrow_is_helped(shape)) {
        using variant = gemm_helped_t<format, shape.width>;
        return {gemm_helped<variant>, variant::threads, variant::bytes, variant::cluster};
    } else {
        using variant = gemm_narrow_t<format, shape.width, shape.parts, shape.panels>;
        return {gemm_narrow<variant>, variant::threads, variant::bytes, variant::cluster};
    }
}
template <typename format, size_t... i>
static const built_t<gemm_args_t> *variant_of_shape(int v, std::index_sequence<i...>) {
    static const built_t<gemm_args_t> list[] = {built<format, i>()...};
    return &list[v];
}

const built_t<gemm_args_t> *gemm_narrow_three(int v); // gemm_narrow_three.cu

// v: counted from the first one.
const built_t<gemm_args_t> *gemm_narrow_variant(int v) {
    if (v < narrow_threes) return gemm_narrow_three(v);
    return variant_of_shape<mxfp4_t>(
            v - narrow_threes, std::make_index_sequence<narrow_count - narrow_threes>());
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
