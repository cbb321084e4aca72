// SPDX-License-Identifier: Apache-2.0
// moe_permute and moe_unpermute by whole rows and several threads.
#pragma once

#include "common/stateless_pd.hpp"
#include "cpu/moe_plan.hpp"
#include "cpu/x64/moe/row_mover.hpp"
#include "cpu/x64/moe/simd_moe_route.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Takes tensors whose rows are contiguous.
reason_t takes_rows(const problem_t &p);

// It copies bytes and does not depend on the ISA.
struct rows_moe_permute_t : primitive_impl_t {
    static constexpr const char *impl_name = "rows:any";

    struct pd_t : stateless_pd_t<rows_moe_permute_t> {
        using stateless_pd_t::stateless_pd_t;
        reason_t init() {
            permute_plan_t::book(scratch, problem.permute);
            return takes_rows(problem);
        }
    };

    status_t execute(const exec_ctx_t &ctx) const override;
};

// Quantised rows are moved, others summed.
class simd_moe_unpermute_base_t : public primitive_impl_t {
public:
    explicit simd_moe_unpermute_base_t(const moe_kernels_t &kernels) : kernels_(kernels) {}
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    void combine(const exec_ctx_t &ctx, const unpermute_plan_t &plan, dim_t first, dim_t tokens) const;
    void move(const exec_ctx_t &ctx, const unpermute_plan_t &plan, dim_t first, dim_t tokens) const;

    const moe_kernels_t &kernels_;
};

template <cpu_isa_t isa>
struct simd_moe_unpermute_t : simd_moe_unpermute_base_t {
    static constexpr const char *impl_name = simd_name<isa>.text;
    using simd_moe_unpermute_base_t::simd_moe_unpermute_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init() {
            unpermute_plan_t::book(scratch);
            const reason_t r = may_run(problem, isa);
            return r.ok() ? takes_rows(problem) : r;
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<simd_moe_unpermute_t>(moe_kernels<isa>());
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
