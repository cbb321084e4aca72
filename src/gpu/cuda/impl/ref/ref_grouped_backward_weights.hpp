// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights on a device for every legal problem.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct ref_grouped_backward_weights_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : kernel_pd_t<ref_grouped_backward_weights_t, kernel_id_t::ref_grouped_backward_weights> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init() { return yes(); }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
