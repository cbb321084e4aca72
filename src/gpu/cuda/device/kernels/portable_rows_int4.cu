// SPDX-License-Identifier: Apache-2.0
// portable_rows of int4 weights, of any scales and zeros: also for devices whose own kernels take few rows
// only.
#include "gpu/cuda/device/kernels/portable_rows_variants.cuh"
#include "gpu/cuda/device/mma/decode_int4.cuh"
#include "gpu/cuda/device/mma/decode_int4_f16.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace rows {

const built_t<matmul_args_t> *portable_rows_of_int4(int v, bool f16_rows) {
    using any_t = int4_t<int4_kind_t::any>;
    return f16_rows ? portable_rows_shape<with_f16_source_t<any_t>::type>(v) : portable_rows_shape<any_t>(v);
}

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn
