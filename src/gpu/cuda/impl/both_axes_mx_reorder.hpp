// SPDX-License-Identifier: Apache-2.0
// mx_reorder to two MX destinations that are blocked along different dims, reading the source once.
#pragma once

#include "common/two_mx_reorders.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct both_axes_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "both_axes:sm_80";

    struct pd_t : two_mx_reorders_t<false>::pd_t {
        using two_mx_reorders_t<false>::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        std::string plan_text() const override { return ""; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
