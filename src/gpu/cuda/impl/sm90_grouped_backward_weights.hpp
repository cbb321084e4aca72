// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights by Hopper's tensor cores: rows of bf16 and f16, and MXFP8, which becomes
// bf16 in the scratchpad first.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct sm90_grouped_backward_weights_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_90";

    // Memory at odd addresses, and more rows than the scratchpad has room for, are the reference's.
    struct pd_t : kernel_pd_t<sm90_grouped_backward_weights_t, kernel_id_t::ref_grouped_backward_weights> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;

        bool has_scales() const { return problem.attr.src.scales.set; }
        // Of the scratchpad.
        int64_t most_rows = 0;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
