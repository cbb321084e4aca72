// SPDX-License-Identifier: Apache-2.0
// mx_matmul of many rows: packed weights are decoded to the type of the source, some columns at a time, and
// multiplied by cuBLASLt. Fewer rows go to what stands after it in the list. bf16 takes every format; f16 is
// for int4, and panels whose weights may be beyond its range are computed anew by what stands after it.
#pragma once

#include <vector>

#include "common/primitive_desc.hpp"
#include "gpu/cuda/heuristics/cublaslt_plan.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/interface/cublaslt_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// dt: the type of the source.
template <data_type_t dt>
struct cublaslt_mx_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = dt == mxdnn_bf16 ? "cublaslt:bf16" : "cublaslt:f16";

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;

        cublaslt::plan_t plan{};
        // For fewer rows, for unaligned pointers, and for panels that are left over.
        std::unique_ptr<impl::pd_t> others;
        const matmul_kernels_t *kernels = nullptr; // its kernels
    };

    status_t execute(const exec_ctx_t &ctx) const override;

private:
    // The kernel chosen from so many rows on: for all columns, and for those of the last pass.
    struct kernels_t {
        int64_t rows;
        cublaslt_kernel_t whole, last;
    };
    std::vector<kernels_t> kernels_;
    std::shared_ptr<primitive_impl_t> others_;
};

using cublaslt_bf16_mx_matmul_t = cublaslt_mx_matmul_t<mxdnn_bf16>;
using cublaslt_f16_mx_matmul_t = cublaslt_mx_matmul_t<mxdnn_f16>;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
