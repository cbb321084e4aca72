// SPDX-License-Identifier: Apache-2.0
// mx_matmul of packed weights by kernels that are built for each format of weights: Hopper's own
// (device/kernels/sm90), and one for every device (device/kernels/sm80_gemm.cuh).
#pragma once

#include "gpu/cuda/impl/packed/packed_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

template <const matmul_kernels_t &kernels>
struct packed_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = kernels.impl_name;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

using sm90_mx_matmul_t = packed_mx_matmul_t<sm90_matmul_kernels>;
using sm80_mx_matmul_t = packed_mx_matmul_t<sm80_matmul_kernels>;

// Executes one of these. wanted [panels of 64 columns]: panels with 0 need not be computed, if there are more
// rows than gemv and grouped_gemv take.
status_t multiply_packed(const matmul_kernels_t &kernels, const exec_ctx_t &ctx, const int32_t *wanted);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
