// SPDX-License-Identifier: Apache-2.0
// moe_permute and moe_unpermute, one element at a time.
#pragma once

#include "common/stateless_pd.hpp"
#include "cpu/moe_plan.hpp"

namespace mxdnn {
namespace impl {

struct ref_moe_permute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : stateless_pd_t<ref_moe_permute_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init() {
            permute_plan_t::book(scratch, problem.permute);
            return yes();
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

struct ref_moe_unpermute_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : stateless_pd_t<ref_moe_unpermute_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init() {
            unpermute_plan_t::book(scratch);
            return yes();
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
