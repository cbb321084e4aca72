// SPDX-License-Identifier: Apache-2.0
// mx_reorder through tiles in shared memory: quantising, packing, unpacking and moving of codes, in any order
// of either side. device/tiles has the parts, device/kernels/*_tiles.cu the kernels. One format becomes
// another by way of f32 values in the scratchpad, so many columns at a time as there is room for.
#pragma once

#include "common/primitive_desc.hpp"
#include "gpu/cuda/interface/kernel_list.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct tiles_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "tiles:sm_80";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        reason_t by_way_of_values(const quant_t &to, int axis);
        kernel_id_t kernel = kernel_id_t::quantise_tiles;
        int64_t panel = 0; // columns that are converted through values together; 0: none
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

// The arguments of the kernels for an execution of such a reorder.
status_t reorder_tile_args(const exec_ctx_t &ctx, tile_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
