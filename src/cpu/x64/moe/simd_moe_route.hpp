// SPDX-License-Identifier: Apache-2.0
// moe_route with vector instructions and threads: one class, an ISA each.
#pragma once

#include "common/primitive_desc.hpp"
#include "cpu/x64/impl_name.hpp"
#include "cpu/x64/moe/moe_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Whether code for an ISA may run for the engine of the problem.
reason_t may_run(const problem_t &p, cpu_isa_t isa);
template <cpu_isa_t isa>
const moe_kernels_t &moe_kernels() {
    return isa == cpu_isa_t::avx2 ? moe_kernels_avx2 : moe_kernels_avx512;
}

class simd_moe_route_base_t : public primitive_impl_t {
public:
    explicit simd_moe_route_base_t(const moe_kernels_t &kernels) : kernels_(kernels) {}
    status_t execute(const exec_ctx_t &ctx) const override;

    static void book(scratch_parts_t &scratch, const problem_t &p);

private:
    const moe_kernels_t &kernels_;
};

template <cpu_isa_t isa>
struct simd_moe_route_t : simd_moe_route_base_t {
    static constexpr const char *impl_name = simd_name<isa>.text;
    using simd_moe_route_base_t::simd_moe_route_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        const char *name() const override { return impl_name; }
        reason_t init() {
            book(scratch, problem);
            return may_run(problem, isa);
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<simd_moe_route_t>(moe_kernels<isa>());
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
