// SPDX-License-Identifier: Apache-2.0
// The kernel of each way of quantising. kernels_t::of<quantiser_t>() is the one that is built for a
// quantiser.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/tiles/quantise.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Null if there is none. Two levels: NVFP4 with a global scale.
template <typename kernels_t>
typename kernels_t::kernel_t quantiser_kernel(data_type_t dt, bool nvfp4, bool two_levels) {
    if (nvfp4)
        return two_levels ? kernels_t::template of<nvfp4_two_levels_t>()
                          : kernels_t::template of<nvfp4_quantiser_t>();
    typename kernels_t::kernel_t k = nullptr;
    visit_type(mx_element_types(), dt,
            [&](auto e) { k = kernels_t::template of<mx_quantiser_t<decltype(e)>>(); });
    return k;
}

template <typename kernels_t>
cudaError_t load_quantiser_kernels() {
    cudaError_t e = cudaSuccess;
    for (bool two_levels : {false, true})
        if (e == cudaSuccess) e = load_kernel(quantiser_kernel<kernels_t>(mxdnn_f4_e2m1, true, two_levels));
    for_each_type(mx_element_types(), [&](auto t) {
        if (e == cudaSuccess) e = load_kernel(quantiser_kernel<kernels_t>(decltype(t)::id, false, false));
    });
    return e;
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
