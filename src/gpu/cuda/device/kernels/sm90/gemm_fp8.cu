// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8, for MXFP4 weights.
#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

const built_t<gemm_args_t> *gemm_of_fp8() {
    using shared_t = gemm_shared_t<mxfp4_as_fp8_t, gemm_fp8_width>;
    static const built_t<gemm_args_t> built = {
            gemm<mxfp4_as_fp8_t, gemm_fp8_width>, shared_t::threads, shared_t::bytes, shared_t::pair};
    return &built;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
