// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups to one or two MX destinations, which only the device knows the groups of.
#pragma once

#include <memory>

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct groups_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "groups:sm_80";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::unique_ptr<impl::pd_t> each[2]; // the reference, for memory that the kernel does not take
    };

    status_t execute(const exec_ctx_t &ctx) const override;
    std::shared_ptr<primitive_impl_t> each[2];
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
