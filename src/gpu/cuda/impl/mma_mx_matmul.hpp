// SPDX-License-Identifier: Apache-2.0
// mx_matmul of packed weights by mma.sync, on every device: device/kernels/sm80_table_gemm.cu.
#pragma once

#include "gpu/cuda/impl/kernel_pd.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct mma_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = sm80.own_matmuls[1];

    struct pd_t : kernel_pd_t<mma_mx_matmul_t, kernel_id_t::sm80_table_gemm> {
        using kernel_pd_t::kernel_pd_t;
        reason_t init();
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
