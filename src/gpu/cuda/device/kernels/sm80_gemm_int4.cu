// SPDX-License-Identifier: Apache-2.0
// sm80_gemm of int4 weights, of any scales and zeros: also for devices whose own kernels take few rows
// only.
#include "gpu/cuda/device/kernels/sm80_gemm_shapes.cuh"
#include "gpu/cuda/device/mma/decode_int4.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

const built_t<matmul_args_t> *sm80_gemm_of_int4(int v, bool f16_rows) {
    using any_t = int4_t<int4_kind_t::any>;
    return f16_rows ? sm80_gemm_shape<with_f16_source_t<any_t>::type>(v) : sm80_gemm_shape<any_t>(v);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
