// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups on a device, for every legal pair of forms.
#pragma once

#include <memory>

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct ref_grouped_mx_reorder_t : primitive_impl_t {
    static constexpr const char *impl_name = "ref:groups";

    struct pd_t : kernel_pd_t<ref_grouped_mx_reorder_t, kernel_id_t::ref_grouped_mx_reorder> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        std::unique_ptr<impl::pd_t> one; // the reorder of all rows as one matrix, which says the arguments
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
