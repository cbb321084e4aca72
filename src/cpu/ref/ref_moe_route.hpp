// SPDX-License-Identifier: Apache-2.0
// moe_route, one token and one expert at a time.
#pragma once

#include "common/stateless_pd.hpp"

namespace mxdnn {
namespace impl {

struct ref_moe_route_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : stateless_pd_t<ref_moe_route_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init() {
            for (const scratch_t of_experts : {scratch_t::scores, scratch_t::keys, scratch_t::positions})
                scratch.book(of_experts, 4 * problem.src.dims[1]);
            for (const scratch_t of_a_token : {scratch_t::ids, scratch_t::row_weights})
                scratch.book(of_a_token, 4 * problem.route.topk);
            return yes();
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
