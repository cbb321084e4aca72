// SPDX-License-Identifier: Apache-2.0
// grouped_matmul of packed weights by Hopper's own instructions: the kernels of sm90_mx_matmul, and
// those that make its rows and add up rows which meet.
#pragma once

#include "gpu/cuda/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct sm90_grouped_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "cuda:sm_90";

    struct pd_t : kernel_pd_t<sm90_grouped_matmul_t, kernel_id_t::sm90_few_rows, kernel_id_t::sm90_many_rows,
                          kernel_id_t::sm90_scatter_link, kernel_id_t::sm90_scatter_sum,
                          kernel_id_t::sm90_source_rows, kernel_id_t::ref_grouped_matmul> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
        std::string plan_text() const override;
        int64_t sum_bytes = 0; // of the scratchpad, for rows that meet
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
