// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device/kernels/sm90/gemm_widths.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template const built_t<gemm_args_t> *gemm_of_int4<gemm_variants::bf16_of_f16_scales>(int4_kind_t, int);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
