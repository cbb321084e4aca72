// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8, for MXFP4 weights in n64_f4, with sums that stay in the tensor cores.
#include <array> // std::size

#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/gemm_f4.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

namespace {

template <int i>
constexpr built_t<gemm_args_t> built() {
    constexpr int width = f4_widths[f4_count + i];
    using shared_t = gemm_shared_t<f4_kept_t, width>;
    static_assert(shared_t::panels == f4_panels(width) && shared_t::pair == 1
                          && shared_t::may_come == f4_may_come(gemm_f4_first + f4_count + i),
            "as planned");
    return {gemm<f4_kept_t, width>, shared_t::threads, shared_t::bytes};
}

} // namespace

const built_t<gemm_args_t> *gemm_of_f4_kept(int v) {
    static const built_t<gemm_args_t> list[] = {built<0>(), built<1>(), built<2>()};
    static_assert(std::size(list) == f4_kept, "one for each");
    return v < f4_kept ? &list[v] : nullptr;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
