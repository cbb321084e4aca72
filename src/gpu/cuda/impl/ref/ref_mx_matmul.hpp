// SPDX-License-Identifier: Apache-2.0
// mx_matmul on a device for every legal problem: what its kernels fall back to and are compared with.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct ref_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:cuda";

    struct pd_t : kernel_pd_t<ref_mx_matmul_t, kernel_id_t::ref_mx_matmul> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
