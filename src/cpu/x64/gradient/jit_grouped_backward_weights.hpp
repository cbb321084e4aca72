// SPDX-License-Identifier: Apache-2.0
// grouped_matmul_backward_weights with the generated gemm kernels: one class, an ISA each. The sums run along
// the rows. So one operand is transposed, and the other becomes panels of 16 columns.
#pragma once

#include <memory>

#include "common/primitive_desc.hpp"
#include "cpu/x64/gradient/gradient_plan.hpp"
#include "cpu/x64/impl_name.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct gradient_conf_t {
    const kernel_row_t *gemm = nullptr;
    int rows = 1, panels = 1; // of a call
    bool pairs = false;       // a dword has the bf16 of two rows
    bool swapped = false;     // diff_dst is the operand that is transposed
    gradient_plan_t block;

    int64_t step_rows() const { return gradient_step_bytes / (pairs ? 2 : 4); }
    void book(scratch_parts_t &scratch, int threads) const;
};

reason_t configure(gradient_conf_t &conf, const problem_t &p, cpu_isa_t isa);
std::string describe(const gradient_conf_t &conf);

class jit_grouped_backward_weights_base_t : public primitive_impl_t {
public:
    explicit jit_grouped_backward_weights_base_t(const gradient_conf_t &conf) : conf_(conf) {}
    status_t create_kernel();
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    struct run_t; // the part of one thread
    friend struct run_t;

    gradient_conf_t conf_;
    std::unique_ptr<jit_kernel_t> gemm_;
};

template <cpu_isa_t isa>
struct jit_grouped_backward_weights_t : jit_grouped_backward_weights_base_t {
    static constexpr const char *impl_name = jit_name<isa>.text;
    using jit_grouped_backward_weights_base_t::jit_grouped_backward_weights_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        gradient_conf_t conf;

        const char *name() const override { return impl_name; }
        reason_t init() {
            const reason_t r = configure(conf, problem, isa);
            if (r.ok()) conf.book(scratch, problem.max_concurrency);
            return r;
        }
        std::string plan_text() const override { return describe(conf); }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            auto p = std::make_shared<jit_grouped_backward_weights_t>(conf);
            MXDNN_CHECK(p->create_kernel());
            primitive = std::move(p);
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
