// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device/kernels/sm90/gemm_narrow_variants.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// v: counted from the first one.
const built_t<gemm_args_t> *gemm_narrow_variant(int v) {
    if (v < narrow_threes) return gemm_narrow_three(v);
    return narrow_from<mxfp4_t, narrow_threes>(
            v - narrow_threes, std::make_index_sequence<narrow_count - narrow_threes>());
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
