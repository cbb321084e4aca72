// SPDX-License-Identifier: Apache-2.0
#include "common/primitive_desc.hpp"

#include "cpu/cpu_impl_lists.hpp"
#include "gpu/cuda/cuda_impl_lists.hpp"

namespace mxdnn {
namespace impl {

impl_list_t impl_list(const problem_t &p) {
    const engine_t &engine = exec_engine(p);
    // Where no device is, reorders run on the host for every target: packing needs none.
    const bool on_host =
            engine.kind() == mxdnn_cpu || (p.kind == mxdnn_primitive_kind_mx_reorder && !engine.device);
    if (!is_zero(p.dst_1)) return on_host ? cpu_two_reorders_list() : cuda_two_reorders_list();
    return on_host ? cpu_impl_list(p.kind) : cuda_impl_list(p.kind);
}

} // namespace impl
} // namespace mxdnn
