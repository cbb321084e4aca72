// SPDX-License-Identifier: Apache-2.0
// grouped_matmul on packed weights with generated kernels: one class, an ISA each.
#pragma once

#include "cpu/x64/grouped_plan.hpp"
#include "cpu/x64/impl_name.hpp"
#include "cpu/x64/panel_matmul.hpp"
#include "cpu/x64/task_shares.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Rows of one expert in the order of computation: by group, then by row.
struct expert_rows_t {
    int64_t total;      // rows of the whole execution
    int64_t count;      // rows that are added to the current rows of the destination
    int64_t begin, end; // the range of these that is in the window
    int64_t slot;       // position of the first of them in the window
    int64_t seen;
};

struct grouped_conf_t {
    matmul_conf_t matmul;
    grouped_limits_t limits;
    int64_t experts = 0, dst_n = 0, sums_stride = 0; // floats
    // Beside matmul.scratch: the next task of every thread; the experts, the segments, the rows of the window
    // and their shifts; and for sums of several rows the lists of rows, their results, and sums across
    // windows.
    void book(scratch_parts_t &scratch) const;
};

reason_t configure(grouped_conf_t &conf, const problem_t &p, cpu_isa_t isa);
std::string describe(const grouped_limits_t &limits);

class jit_grouped_matmul_base_t : public primitive_impl_t {
public:
    explicit jit_grouped_matmul_base_t(const grouped_conf_t &conf) : conf_(conf), kernels_(conf.matmul) {}
    status_t create_kernels(const problem_t &p) {
        return kernels_.create(p, runtime_dim, grouped_tasks_per_thread);
    }
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    struct run_t; // one execution
    friend struct run_t;

    grouped_conf_t conf_;
    panel_matmul_t kernels_;
};

template <cpu_isa_t isa>
struct jit_grouped_matmul_t : jit_grouped_matmul_base_t {
    static constexpr const char *impl_name = jit_name<isa>.text;
    using jit_grouped_matmul_base_t::jit_grouped_matmul_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        grouped_conf_t conf;

        const char *name() const override { return impl_name; }
        reason_t init() {
            const reason_t r = configure(conf, problem, isa);
            if (r.ok()) conf.book(scratch);
            return r;
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            auto p = std::make_shared<jit_grouped_matmul_t>(conf);
            MXDNN_CHECK(p->create_kernels(problem));
            primitive = std::move(p);
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
