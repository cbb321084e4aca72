// SPDX-License-Identifier: Apache-2.0
// mx_matmul of many rows: packed weights are decoded to bf16, some columns at a time, and multiplied by
// cuBLASLt. Fewer rows go to what stands after it in the list.
#pragma once

#include <vector>

#include "common/primitive_desc.hpp"
#include "gpu/cuda/dense_args.hpp"
#include "gpu/cuda/heuristics/cublaslt_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct cublaslt_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = "cublaslt:bf16";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;

        cublaslt::plan_t plan{};
        std::unique_ptr<impl::pd_t> others; // for fewer rows, and for pointers that are not aligned
    };

    status_t execute(const exec_ctx_t &ctx) const override;

private:
    // Chosen for so many rows and more, of all columns and of those of the last pass.
    struct kernels_t {
        int64_t rows;
        dense_kernel_t whole, last;
    };
    std::vector<kernels_t> kernels_;
    std::shared_ptr<primitive_impl_t> others_;
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
