// SPDX-License-Identifier: Apache-2.0
// mx_reorder for every legal pair of forms, one element at a time.
#pragma once

#include "common/stateless_pd.hpp"

namespace mxdnn {
namespace impl {

struct ref_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : stateless_pd_t<ref_mx_reorder_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init() { return yes(); }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
