// SPDX-License-Identifier: Apache-2.0
#include "common/primitive_desc.hpp"

#include "cpu/cpu_impl_lists.hpp"

namespace mxdnn {
namespace impl {

impl_list_t impl_list(mxdnn_engine_kind_t engine, mxdnn_primitive_kind_t primitive) {
    // Reorders run on the host for every engine: packing needs no device.
    if (engine == mxdnn_cpu || primitive == mxdnn_primitive_kind_mx_reorder) return cpu_impl_list(primitive);
    return {nullptr, 0};
}

} // namespace impl
} // namespace mxdnn
