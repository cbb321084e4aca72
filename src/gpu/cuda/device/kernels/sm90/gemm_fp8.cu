// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8, for MXFP4 weights in both layouts.
#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/packed/built.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

namespace {

template <typename format, int i>
constexpr built_t<gemm_args_t> built() {
    constexpr int width = gemm_fp8_widths[i];
    using shared_t = gemm_shared_t<format, width>;
    return {gemm<format, width>, shared_t::threads, shared_t::bytes, shared_t::pair};
}

} // namespace

const built_t<gemm_args_t> *gemm_of_fp8(int v) {
    static const built_t<gemm_args_t> list[] = {built<mxfp4_as_fp8_t, 0>(), built<f4_e5m2_t, 1>(),
            built<f4_e5m2_t, 2>(), built<f4_e5m2_t, 3>(), built<f4_as_fp8_t, 4>(), built<f4_as_fp8_t, 5>()};
    static_assert(std::size(list) == std::size(gemm_fp8_widths), "one for each");
    return v < int(std::size(list)) ? &list[v] : nullptr;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
