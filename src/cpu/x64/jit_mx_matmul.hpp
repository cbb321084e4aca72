// SPDX-License-Identifier: Apache-2.0
// mx_matmul on packed weights with generated kernels: one class, an ISA each.
#pragma once

#include <algorithm>

#include "cpu/x64/impl_name.hpp"
#include "cpu/x64/panel_matmul.hpp"
#include "cpu/x64/task_shares.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class jit_mx_matmul_base_t : public primitive_impl_t {
public:
    // `few`, if not null, is for so few rows that it is faster.
    explicit jit_mx_matmul_base_t(
            const matmul_conf_t &conf, std::unique_ptr<jit_mx_matmul_base_t> few = nullptr)
        : conf_(conf), kernels_(conf), few_(std::move(few)) {}
    status_t create_kernels(const problem_t &p) {
        const dim_t M = dim_from_end(p.dst, 2), batch = batch_of(p.dst);
        if (M != runtime_dim && batch != runtime_dim) {
            const bool small = is_small(batch * M, conf_.weights.K, conf_.weights.N);
            usual_.M = M;
            usual_.threads = small ? 1 : conf_.machine.threads;
            usual_.plan = plan(p, M, 1, usual_.threads);
        }
        if (few_) MXDNN_CHECK(few_->create_kernels(p));
        return kernels_.create(p, M, matmul_tasks_for(M, conf_.kernels));
    }
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    struct run_t; // one execution
    friend struct run_t;

    // For M rows of a matrix, or of each of `batch` matrices that threads share.
    matmul_plan_t plan(const problem_t &p, dim_t M, int64_t batch, int threads) const;

    // The plan of most executions: for the rows of the descriptor and all threads.
    struct usual_t {
        dim_t M = -1;
        int threads = 0;
        matmul_plan_t plan;
    } usual_;
    matmul_conf_t conf_;
    panel_matmul_t kernels_;
    std::unique_ptr<jit_mx_matmul_base_t> few_;
};

template <cpu_isa_t isa>
struct jit_mx_matmul_t : jit_mx_matmul_base_t {
    static constexpr const char *impl_name = jit_name<isa>.text;
    using jit_mx_matmul_base_t::jit_mx_matmul_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        matmul_conf_t conf, few;

        const char *name() const override { return impl_name; }
        reason_t init() {
            const reason_t r = configure(conf, problem, isa);
            if (!r.ok()) return r;
            const int64_t rows =
                    max_plan_rows(conf.weights.K, problem.attr.max_rows_hint, conf.machine, conf.kernels);
            int64_t most = std::max<int64_t>(rows, 2 * conf.kernels.direct_rows);
            const bool batched = batch_of(problem.dst) > 1;
            const bool several = conf.machine.threads > 1;
            conf.own_parts = several && batch_of(problem.dst) == 1
                             && conf.copies_parts_alone(problem, dim_from_end(problem.dst, 2));
            conf.scratch.own_sources = conf.own_parts || (batched && several);
            if (batched && conf.scratch.own_sources)
                most = own_source_rows(most, conf.weights.K, conf.kernels);
            most += joined_rows(conf.kernels);
            size_scratch(conf, most, most);
            conf.few_apart = conf.few_rows > 0 && dim_from_end(problem.dst, 2) == runtime_dim
                             && configure_few(few, problem, conf).ok();
            if (conf.few_apart) {
                conf.scratch.source = std::max(conf.scratch.source, few.scratch.sources());
                conf.scratch.acc = std::max(conf.scratch.acc, few.scratch.per_thread());
            }
            if (!conf.scratch.own_sources)
                conf.scratch.parts = plan_parts_together(dim_from_end(problem.dst, 2), rows,
                        conf.scratch.sources(), conf.machine, conf.kernels);
            conf.scratch.book(scratch, conf.machine.threads);
            scratch.book(scratch_t::tasks,
                    conf.scratch.parts * conf.machine.threads * int64_t(sizeof(task_shares_t::share_t)));
            return r;
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            auto p = std::make_shared<jit_mx_matmul_t>(
                    conf, conf.few_apart ? std::make_unique<jit_mx_matmul_base_t>(few) : nullptr);
            MXDNN_CHECK(p->create_kernels(problem));
            primitive = std::move(p);
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
