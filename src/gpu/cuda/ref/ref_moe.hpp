// SPDX-License-Identifier: Apache-2.0
// moe_route, moe_permute and moe_unpermute on a device for every legal problem.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct ref_moe_route_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        int64_t slices = 0; // tokens at work at a time
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct ref_moe_permute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct ref_moe_unpermute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
