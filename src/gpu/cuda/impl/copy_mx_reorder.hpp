// SPDX-License-Identifier: Apache-2.0
// mx_reorder between equal descriptors, on one device or between a device and the host: bytes are copied as
// they are. On one device that is for values and packed bytes: scales of plain codes may lie in another order
// on either side, and the padding of those in the 128x4 order becomes zero.
#pragma once

#include "common/stateless_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct copy_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "copy:cuda";

    struct pd_t : stateless_pd_t<copy_mx_reorder_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
