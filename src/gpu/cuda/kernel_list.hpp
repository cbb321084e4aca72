// SPDX-License-Identifier: Apache-2.0
// The kernels of libmxdnn_cuda by number: what libmxdnn asks for, and device/kernels.cu has.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

enum class kernel_id_t : uint32_t {
    empty, // does nothing: what a launch costs
    ref_mx_matmul,
    ref_mx_reorder,
    count
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
