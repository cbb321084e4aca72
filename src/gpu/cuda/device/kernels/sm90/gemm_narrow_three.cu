// SPDX-License-Identifier: Apache-2.0
// gemm_narrow with three panels of a CTA and all of K: in a file of its own, because all variants together
// take the compiler long.
#include "gpu/cuda/device/kernels/sm90/gemm_narrow_variants.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

const built_t<gemm_args_t> *gemm_narrow_three(int v) {
    return narrow_from<mxfp4_t, 0>(v, std::make_index_sequence<narrow_threes>());
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
