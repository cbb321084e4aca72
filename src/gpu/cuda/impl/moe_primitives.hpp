// SPDX-License-Identifier: Apache-2.0
// moe_route in one launch, and moe_permute and moe_unpermute at the memory's speed: device/kernels/moe_*.cu.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct moe_route_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_80";

    struct pd_t : kernel_pd_t<moe_route_t> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct moe_permute_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_80";

    struct pd_t : kernel_pd_t<moe_permute_t, kernel_id_t::moe_permute> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct moe_unpermute_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_80";

    struct pd_t : kernel_pd_t<moe_unpermute_t> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
