// SPDX-License-Identifier: Apache-2.0
// portable_rows of MX and NVFP4 weights: for devices whose architecture has no kernels of its own.
#include "gpu/cuda/device/kernels/portable_rows_variants.cuh"
#include "gpu/cuda/device/mma/weight_formats.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace rows {

const built_t<matmul_args_t> *portable_rows_of_mx(format_t f, int v) {
    return of_format(f, [v](auto format) -> const built_t<matmul_args_t> * {
        if constexpr (!has_unscaled<decltype(format)>)
            return portable_rows_shape<decltype(format)>(v);
        else
            return nullptr;
    });
}

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn
