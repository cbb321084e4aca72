// SPDX-License-Identifier: Apache-2.0
// Kernels of kind gemm in f32: rows x (panels * 16) sums stay in registers while k runs; each step of k
// loads one row of the panels and broadcasts one source value per row.
#pragma once

#include <cstddef>

#include "cpu/x64/jit/f32_vec.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

template <class Vec>
class f32_gemm_t : public f32_base_t<Vec> {
public:
    explicit f32_gemm_t(const kernel_params_t &p) : rows_(p.rows), panels_(p.panels) {}

    // As many rows as registers allow: all sums, one row of weights, one source value.
    static constexpr int max_rows(int panels) {
        const int w = panels * panel_columns / Vec::lanes;
        return (Vec::regs - w - 1) / w;
    }

private:
    using base_t = f32_base_t<Vec>;
    using reg_t = typename Vec::reg_t;
    using base_t::rax, base_t::rbx, base_t::rdx, base_t::rsi, base_t::r8, base_t::r9, base_t::r10,
            base_t::r11, base_t::r12, base_t::r13, base_t::r14, base_t::ptr, base_t::abi_param;

    static constexpr int unroll = 8;        // steps of k in the loop's body; divides k_step
    static constexpr int rows_per_base = 4; // source rows that one register addresses

    const int rows_, panels_;
    const int vecs_ = panels_ * panel_columns / Vec::lanes;
    const int vecs_per_panel_ = panel_columns / Vec::lanes;

    reg_t sum(int row, int v) const { return reg_t(row * vecs_ + v); }
    reg_t wei(int v) const { return reg_t(rows_ * vecs_ + v); }
    reg_t src() const { return reg_t(Vec::regs - 1); }

    const Xbyak::Reg64 bases_[4] = {r8, r9, r10, r11};
    const Xbyak::Reg64 stride_ = rax, stride3_ = rbx, k_ = rdx, acc_ = rsi;
    const Xbyak::Reg64 panel_[2] = {r12, r13};
    const Xbyak::Reg64 acc_stride_ = r14;

    Xbyak::Address src_at(int row, int step) const {
        const Xbyak::Reg64 &b = bases_[row / rows_per_base];
        const int d = step * 4;
        switch (row % rows_per_base) {
        case 0: return ptr[b + d];
        case 1: return ptr[b + stride_ + d];
        case 2: return ptr[b + stride_ * 2 + d];
        default: return ptr[b + stride3_ + d];
        }
    }

    void generate() override {
        this->preamble();
        const auto arg = [&](size_t offset) { return ptr[abi_param + int(offset)]; };
        this->mov(bases_[0], arg(offsetof(gemm_args_t, src)));
        this->mov(stride_, arg(offsetof(gemm_args_t, src_stride)));
        this->mov(panel_[0], arg(offsetof(gemm_args_t, wei)));
        this->mov(k_, arg(offsetof(gemm_args_t, k)));
        this->mov(acc_, arg(offsetof(gemm_args_t, acc)));
        this->mov(acc_stride_, arg(offsetof(gemm_args_t, acc_stride)));
        this->lea(stride3_, ptr[stride_ + stride_ * 2]);
        for (int b = 1; b * rows_per_base < rows_; b++)
            this->lea(bases_[b], ptr[bases_[b - 1] + stride_ * rows_per_base]);
        if (panels_ > 1) {
            this->mov(panel_[1], arg(offsetof(gemm_args_t, wei_stride)));
            this->add(panel_[1], panel_[0]);
        }

        for (int r = 0; r < rows_; r++)
            for (int v = 0; v < vecs_; v++) this->set_zero(sum(r, v));

        Xbyak::Label done;
        this->shr(k_, 3); // by unroll
        this->jz(done, base_t::T_NEAR);
        this->loop_down(k_, [&] {
            for (int s = 0; s < unroll; s++) step(s);
            for (int b = 0; b * rows_per_base < rows_; b++) this->add(bases_[b], unroll * 4);
            for (int p = 0; p < panels_; p++) this->add(panel_[p], unroll * panel_columns * 4);
        });
        this->L(done);
        store();
        this->postamble();
    }

    void step(int s) {
        for (int v = 0; v < vecs_; v++)
            this->vmovups(wei(v), ptr[panel_[v / vecs_per_panel_] + s * panel_columns * 4
                                          + v % vecs_per_panel_ * Vec::bytes]);
        for (int r = 0; r < rows_; r++) {
            this->vbroadcastss(src(), src_at(r, s));
            for (int v = 0; v < vecs_; v++) this->vfmadd231ps(sum(r, v), src(), wei(v));
        }
    }

    void store() {
        Xbyak::Label overwrite;
        this->cmp(base_t::qword[abi_param + int(offsetof(gemm_args_t, accumulate))], 0);
        this->je(overwrite, base_t::T_NEAR);
        this->mov(bases_[0], acc_);
        for (int r = 0; r < rows_; r++) {
            for (int v = 0; v < vecs_; v++)
                this->vaddps(sum(r, v), sum(r, v), ptr[bases_[0] + v * Vec::bytes]);
            this->add(bases_[0], acc_stride_);
        }
        this->L(overwrite);
        for (int r = 0; r < rows_; r++) {
            for (int v = 0; v < vecs_; v++) this->vmovups(ptr[acc_ + v * Vec::bytes], sum(r, v));
            this->add(acc_, acc_stride_);
        }
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
