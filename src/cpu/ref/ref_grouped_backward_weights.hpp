// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights for every legal problem, written to be read.
#pragma once

#include "common/stateless_pd.hpp"

namespace mxdnn {
namespace impl {

struct ref_grouped_backward_weights_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:any";

    struct pd_t : stateless_pd_t<ref_grouped_backward_weights_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace impl
} // namespace mxdnn
