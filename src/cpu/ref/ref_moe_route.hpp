// SPDX-License-Identifier: Apache-2.0
// moe_route, one token and one expert at a time.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

struct ref_moe_route_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init() {
            // Scores, keys, and a counter or position of each expert.
            scratchpad_bytes = 3 * 4 * problem.src.dims[1];
            return yes();
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<ref_moe_route_t>();
            return mxdnn_success;
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
