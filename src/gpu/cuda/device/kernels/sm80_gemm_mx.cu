// SPDX-License-Identifier: Apache-2.0
// sm80_gemm of MX and NVFP4 weights: for devices whose architecture has no kernels of its own.
#include "gpu/cuda/device/kernels/sm80_gemm_shapes.cuh"
#include "gpu/cuda/device/mma/weight_formats.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

const built_t<matmul_args_t> *sm80_gemm_of_mx(format_t f, int v) {
    return of_format(f, [v](auto format) -> const built_t<matmul_args_t> * {
        if constexpr (!has_unscaled<decltype(format)>)
            return sm80_gemm_shape<decltype(format)>(v);
        else
            return nullptr;
    });
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
