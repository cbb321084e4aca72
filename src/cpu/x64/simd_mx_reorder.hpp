// SPDX-License-Identifier: Apache-2.0
// mx_reorder with vector instructions: one class, an ISA each.
#pragma once

#include <memory>

#include "common/primitive_desc.hpp"
#include "cpu/x64/impl_name.hpp"
#include "cpu/x64/reorder/reorder_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class simd_mx_reorder_base_t : public primitive_impl_t {
public:
    simd_mx_reorder_base_t(const reorder_conf_t &conf, const requantise_conf_t &requantise)
        : conf_(conf), requantise_(requantise) {}
    status_t execute(const exec_ctx_t &ctx) const override;
    // The buffers of each thread.
    static void book(scratch_parts_t &scratch, const reorder_conf_t &conf, const problem_t &p);

private:
    reorder_conf_t conf_;
    requantise_conf_t requantise_;
};

template <cpu_isa_t isa>
struct simd_mx_reorder_t : simd_mx_reorder_base_t {
    static constexpr const char *impl_name = simd_name<isa>.text;
    using simd_mx_reorder_base_t::simd_mx_reorder_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        reorder_conf_t conf;
        requantise_conf_t requantise;

        const char *name() const override { return impl_name; }
        reason_t init() {
            reason_t r = configure(conf, problem, isa);
            if (r.ok() && conf.requantises()) r = configure(requantise, conf, problem, isa);
            if (r.ok()) book(scratch, conf, problem);
            return r;
        }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<simd_mx_reorder_t>(conf, requantise);
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
