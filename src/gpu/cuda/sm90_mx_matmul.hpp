// SPDX-License-Identifier: Apache-2.0
// mx_matmul of packed weights by Hopper's own instructions: device/kernels/sm90.
#pragma once

#include "gpu/cuda/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct sm90_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_90";

    struct pd_t : kernel_pd_t<sm90_mx_matmul_t, kernel_id_t::sm90_dense_rows, kernel_id_t::sm90_few_rows,
                          kernel_id_t::sm90_many_rows, kernel_id_t::ref_mx_matmul> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

// What it executes, with the scratchpad of its descriptor at `space`. wanted: [panels of 64 columns] those
// that have a 0 need not be computed; null: all are.
status_t multiply_sm90(const exec_ctx_t &ctx, char *space, const int32_t *wanted = nullptr);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
