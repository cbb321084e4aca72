// SPDX-License-Identifier: Apache-2.0
// mx_matmul of many rows at the rate of FP8, where relaxed sums are allowed: MXFP4 weights become f8_e4m3
// with a scale per column, which is exact for columns whose block scales lie within 2^14 of each other, and
// meet rows of f8_e4m3 by cuBLASLt. Panels with other columns are computed by cuda:sm_90 after it, and so is
// all of fewer rows.
#pragma once

#include "common/primitive_desc.hpp"
#include "gpu/cuda/interface/cublaslt_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct cublaslt_fp8_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "cublaslt:f8_e4m3";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;

        int64_t least_rows = 0;
        std::unique_ptr<impl::pd_t> exact; // cuda:sm_90
    };

    status_t execute(const exec_ctx_t &ctx) const override;

private:
    cublaslt_kernel_t kernel_{};
    std::shared_ptr<primitive_impl_t> exact_;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
