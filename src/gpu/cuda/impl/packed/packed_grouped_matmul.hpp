// SPDX-License-Identifier: Apache-2.0
// grouped_matmul of packed weights by the kernels of packed_mx_matmul_t, and those that make its rows and add
// up rows which meet.
#pragma once

#include "gpu/cuda/impl/packed/packed_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

template <const matmul_kernels_t &kernels>
struct packed_grouped_matmul_t : primitive_impl_t {
    static constexpr const char *impl_name = kernels.impl_name;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override;
        std::string plan_text() const override;
        int64_t sum_bytes = 0, id_bytes = 0; // of the scratchpad
        bool fp8 = false;                    // many rows are multiplied in FP8
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

using sm90_grouped_matmul_t = packed_grouped_matmul_t<sm90_matmul_kernels>;
using sm80_grouped_matmul_t = packed_grouped_matmul_t<sm80_matmul_kernels>;

// The same if relaxed sums are allowed, for MXFP4 weights and f8_e4m3 rows with one scale each, given or
// computed in execute.
struct sm90_fp8_grouped_matmul_t : sm90_grouped_matmul_t {
    static constexpr const char *impl_name = "cuda:sm_90:f8_e4m3";

    struct pd_t : sm90_grouped_matmul_t::pd_t {
        using sm90_grouped_matmul_t::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init();
    };
};

// Whether the weights of a problem are best in n64_f4: if it may be multiplied in FP8.
bool takes_fp8_layout(const problem_t &p);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
