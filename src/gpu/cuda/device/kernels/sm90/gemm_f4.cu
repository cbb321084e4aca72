// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8, for MXFP4 weights in n64_f4.
#include <array> // std::size

#include "gpu/cuda/device/kernels/sm90/gemm.cuh"
#include "gpu/cuda/device/packed/built.cuh"
#include "gpu/cuda/heuristics/gemm_f4.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

namespace {

template <typename format, int i>
constexpr built_t<gemm_args_t> built() {
    constexpr int width = f4_widths[i];
    using shared_t = gemm_shared_t<format, width>;
    static_assert(shared_t::panels == f4_panels(width) && shared_t::pair == 1
                          && shared_t::may_come == f4_may_come(gemm_f4_first + i),
            "as planned");
    return {gemm<format, width>, shared_t::threads, shared_t::bytes};
}

} // namespace

const built_t<gemm_args_t> *gemm_of_f4(int v) {
    static const built_t<gemm_args_t> list[] = {built<f4_e5m2_t, 0>(), built<f4_e5m2_t, 1>(),
            built<f4_e5m2_t, 2>(), built<f4_by_products_t, 3>(), built<f4_by_products_t, 4>(),
            built<f4_by_tables_t, 5>(), built<f4_by_tables_t, 6>()};
    static_assert(std::size(list) == f4_count, "one for each");
    return v < f4_count ? &list[v] : nullptr;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
