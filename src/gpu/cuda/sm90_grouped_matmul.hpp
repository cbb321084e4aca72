// SPDX-License-Identifier: Apache-2.0
// grouped_matmul of packed MXFP4 weights by Hopper's own instructions: the kernels of sm90_mx_matmul, and
// those that add up rows which meet.
#pragma once

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct sm90_grouped_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_90";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
