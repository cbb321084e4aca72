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
            // Scores, keys, and a counter or position of each expert; ids and weights of a token.
            scratchpad_bytes = 4 * (3 * problem.src.dims[1] + 2 * problem.route.topk);
            return yes();
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
