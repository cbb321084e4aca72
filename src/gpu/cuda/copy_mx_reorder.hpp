// SPDX-License-Identifier: Apache-2.0
// mx_reorder between equal descriptors, on one device or between a device and the host: bytes are copied as
// they are.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct copy_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "copy:cuda";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<copy_mx_reorder_t>();
            return mxdnn_success;
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
