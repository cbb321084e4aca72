// SPDX-License-Identifier: Apache-2.0
// mx_matmul on packed weights with generated kernels: one class, an ISA each.
#pragma once

#include <memory>
#include <vector>

#include "common/primitive_desc.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "cpu/x64/matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Parts of the scratchpad, in bytes; a pure function of N, K, the row hint and the threads.
struct matmul_scratch_t {
    int64_t source = 0; // prepared rows, shared by all threads
    int64_t source_stride = 0; // bytes of a prepared row
    int64_t row_scales = 0, block_sums = 0; // beside the rows
    int64_t sums_per_row = 0; // floats
    int64_t panels = 0; // decoded panels, per thread
    int64_t acc = 0; // f32 sums, per thread
    int64_t acc_columns = 0;
    int64_t per_thread() const { return panels + acc; }
    int64_t total(int threads) const { return source + row_scales + block_sums + per_thread() * threads; }
};

// Everything of a problem's solution that is known before it is executed.
struct matmul_conf_t {
    const kernel_row_t *direct = nullptr, *decode = nullptr, *dense = nullptr;
    data_type_t compute_dt = mxdnn_f32;
    matmul_machine_t machine;
    matmul_kernels_t kernels;
    matmul_scratch_t scratch;
    packed_shape_t weights;
    int64_t weights_stride = 0; // bytes from one batch entry to the next
    int64_t panel_bytes = 0, tile_bytes = 0;
    bool needs_sums = false; // float_zero weights
    bool any_rows = false; // dense calls take any number of rows, without padding to the kernel's
    bool gated = false, halves = false;
    int64_t column_step = 16;
};

// Decides whether and how an ISA takes the problem.
reason_t configure(matmul_conf_t &conf, const problem_t &p, cpu_isa_t isa);

class jit_mx_matmul_base_t : public primitive_impl_t {
public:
    explicit jit_mx_matmul_base_t(const matmul_conf_t &conf) : conf_(conf) {}
    status_t create_kernels(const problem_t &p);
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    using kernel_t = std::unique_ptr<jit_kernel_t>;
    struct run_t; // one execution
    friend struct run_t;

    matmul_conf_t conf_;
    // direct_[i][j]: 2^i rows (the last: the most), conf.direct->panels[j] panels.
    std::vector<int> direct_rows_;
    std::vector<kernel_t> direct_[3];
    kernel_t decode_, dense_;
};

template <cpu_isa_t isa>
struct jit_name_t;
template <>
struct jit_name_t<cpu_isa_t::avx2> {
    static constexpr const char *name = "jit:avx2";
};
template <>
struct jit_name_t<cpu_isa_t::avx512_core> {
    static constexpr const char *name = "jit:avx512_core";
};
template <>
struct jit_name_t<cpu_isa_t::avx512_core_bf16> {
    static constexpr const char *name = "jit:avx512_core_bf16";
};
template <>
struct jit_name_t<cpu_isa_t::avx512_core_amx> {
    static constexpr const char *name = "jit:avx512_core_amx";
};

template <cpu_isa_t isa>
struct jit_mx_matmul_t : jit_mx_matmul_base_t {
    static constexpr const char *impl_name = jit_name_t<isa>::name;
    using jit_mx_matmul_base_t::jit_mx_matmul_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        matmul_conf_t conf;

        const char *name() const override { return impl_name; }
        reason_t init() {
            const reason_t r = configure(conf, problem, isa);
            if (r.ok()) scratchpad_bytes = conf.scratch.total(conf.machine.threads);
            return r;
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            auto p = std::make_shared<jit_mx_matmul_t>(conf);
            MXDNN_CHECK(p->create_kernels(problem));
            primitive = std::move(p);
            return mxdnn_success;
        }
        std::string plan_text() const override;
    };
};

std::string plan_text(const matmul_conf_t &conf, const problem_t &p);
template <cpu_isa_t isa>
std::string jit_mx_matmul_t<isa>::pd_t::plan_text() const {
    return x64::plan_text(conf, problem);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
