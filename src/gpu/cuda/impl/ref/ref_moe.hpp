// SPDX-License-Identifier: Apache-2.0
// moe_route, moe_permute and moe_unpermute on a device for every legal problem.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct ref_moe_route_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : kernel_pd_t<ref_moe_route_t, kernel_id_t::ref_moe_route> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        int64_t slices = 0; // tokens that are processed at a time
        int64_t part = 0;   // tokens whose choices the scratchpad stores
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct ref_moe_permute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : kernel_pd_t<ref_moe_permute_t, kernel_id_t::ref_moe_permute> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct ref_moe_unpermute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : kernel_pd_t<ref_moe_unpermute_t, kernel_id_t::ref_moe_unpermute> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
