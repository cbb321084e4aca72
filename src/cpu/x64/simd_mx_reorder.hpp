// SPDX-License-Identifier: Apache-2.0
// mx_reorder with vector instructions: one class, an ISA each.
#pragma once

#include <memory>

#include "common/primitive_desc.hpp"
#include "cpu/x64/isa.hpp"
#include "cpu/x64/reorder/reorder_side.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Everything of a reorder that is known before it is executed.
struct reorder_conf_t {
    reorder_side_conf_t src, dst;
    const reorder_kernels_t *kernels = nullptr;
    bool moves = false;    // codes, scales and zero points stay as they are
    bool given = false;    // the caller's scales are those of the destination
    bool measures = false; // the destination's global scale is computed
    bool by_rows =
            false;       // values are worked on, or codes moved, a row of many lines at a time; else 16 lines
    bool tables = false; // f4_e2m1 to bf16 by tables of each scale
    int chunk = 0;       // positions of a line that are worked on at a time: whole blocks and packed tiles
    int group = 0;       // lines that are worked on together, a multiple of reorder_lines
    // Between bf16 and packed panels, where there are kernels for it: a tile each of so many lines at a time,
    // whole pairs of panels and blocks; what is left goes the other way.
    int panel_lines = 0;

    // What a thread takes at a time.
    int item_lines() const { return panel_lines ? panel_lines : group; }
};

reason_t configure(reorder_conf_t &conf, const problem_t &p, cpu_isa_t isa);

class simd_mx_reorder_base_t : public primitive_impl_t {
public:
    explicit simd_mx_reorder_base_t(const reorder_conf_t &conf) : conf_(conf) {}
    status_t execute(const exec_ctx_t &ctx) const override;

private:
    reorder_conf_t conf_;
};

template <cpu_isa_t isa>
struct simd_name_t;
template <>
struct simd_name_t<cpu_isa_t::avx2> {
    static constexpr const char *name = "simd:avx2";
};
template <>
struct simd_name_t<cpu_isa_t::avx512_core> {
    static constexpr const char *name = "simd:avx512_core";
};

template <cpu_isa_t isa>
struct simd_mx_reorder_t : simd_mx_reorder_base_t {
    static constexpr const char *impl_name = simd_name_t<isa>::name;
    using simd_mx_reorder_base_t::simd_mx_reorder_base_t;

    struct pd_t : impl::pd_t {
        using impl::pd_t::pd_t;
        reorder_conf_t conf;

        const char *name() const override { return impl_name; }
        reason_t init() { return configure(conf, problem, isa); }
        status_t create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const override {
            primitive = std::make_shared<simd_mx_reorder_t>(conf);
            return mxdnn_success;
        }
    };
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
