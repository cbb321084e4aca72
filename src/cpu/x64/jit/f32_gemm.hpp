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
    explicit f32_gemm_t(const kernel_params_t &p) : rows_(p.rows), panels_(p.panels), dst_dt_(p.dst_dt) {}

    // As many rows as registers allow: all sums, one row of weights, one source value.
    static constexpr int max_rows(int panels) {
        const int w = panels * panel_columns / Vec::lanes;
        return (Vec::regs - w - 1) / w;
    }

private:
    using base_t = f32_base_t<Vec>;
    using reg_t = typename Vec::reg_t;
    using base_t::rax, base_t::rbx, base_t::rdx, base_t::rsi, base_t::r8, base_t::r9, base_t::r10,
            base_t::r11, base_t::r12, base_t::r13, base_t::r14, base_t::r15, base_t::rbp, base_t::ptr,
            base_t::qword, base_t::dword, base_t::abi_param;

    static constexpr int unroll = 8;        // steps of k in the loop's body; divides k_step
    static constexpr int rows_per_base = 4; // source rows that one register addresses

    const int rows_, panels_;
    const data_type_t dst_dt_;
    const int vecs_ = panels_ * panel_columns / Vec::lanes;
    const int vecs_per_panel_ = panel_columns / Vec::lanes;

    reg_t sum(int row, int v) const { return reg_t(row * vecs_ + v); }
    reg_t wei(int v) const { return reg_t(rows_ * vecs_ + v); }
    reg_t src() const { return reg_t(Vec::regs - 1); }

    const Xbyak::Reg64 bases_[4] = {r8, r9, r10, r11};
    const Xbyak::Reg64 stride_ = rax, stride3_ = rbx, k_ = rdx, acc_ = rsi;
    const Xbyak::Reg64 panel_[2] = {r12, r13};
    const Xbyak::Reg64 acc_stride_ = r14, fetch_ = r15;

    bool stores_results() const { return dst_dt_ != mxdnn_data_type_undef; }
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

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
        if (stores_results()) fetch_results();
        this->mov(bases_[0], arg(offsetof(gemm_args_t, src)));
        this->mov(stride_, arg(offsetof(gemm_args_t, src_stride)));
        this->mov(panel_[0], arg(offsetof(gemm_args_t, wei)));
        this->mov(k_, arg(offsetof(gemm_args_t, k)));
        this->mov(acc_, arg(offsetof(gemm_args_t, acc)));
        this->mov(acc_stride_, arg(offsetof(gemm_args_t, acc_stride)));
        this->mov(fetch_, arg(offsetof(gemm_args_t, fetch)));
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
            for (int s = 0; s < unroll; s++) {
                if (s % gemm_fetch_rows == 0) {
                    this->prefetcht0(ptr[fetch_]);
                    this->add(fetch_, arg(offsetof(gemm_args_t, fetch_step)));
                }
                step(s);
            }
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
        Xbyak::Label sums, done;
        if (stores_results()) {
            this->cmp(arg(offsetof(gemm_args_t, dst)), 0);
            this->je(sums, base_t::T_NEAR);
            store_results();
            this->jmp(done, base_t::T_NEAR);
        }
        this->L(sums);
        for (int r = 0; r < rows_; r++) {
            for (int v = 0; v < vecs_; v++) this->vmovups(ptr[acc_ + v * Vec::bytes], sum(r, v));
            this->add(acc_, acc_stride_);
        }
        this->L(done);
    }

    // The cache lines of results, which are stored at the end.
    void fetch_results() {
        Xbyak::Label none;
        this->mov(acc_, arg(offsetof(gemm_args_t, dst)));
        this->test(acc_, acc_);
        this->jz(none, base_t::T_NEAR);
        this->mov(acc_stride_, arg(offsetof(gemm_args_t, dst_stride)));
        const int bytes = panels_ * panel_columns * (dst_dt_ == mxdnn_bf16 ? 2 : 4);
        for (int r = 0; r < rows_; r++) {
            for (int b = 0; b < bytes; b += 64) this->prefetchw(ptr[acc_ + b]);
            this->add(acc_, acc_stride_);
        }
        this->L(none);
    }

    void store_results() {
        Xbyak::Label by_row, scaled, fewer, done;
        const auto scale = base_t::dword[abi_param + int(offsetof(gemm_args_t, scale))];
        this->mov(bases_[0], arg(offsetof(gemm_args_t, bias)));
        for (int v = 0; v < vecs_; v++) this->vmovups(wei(v), ptr[bases_[0] + v * Vec::bytes]);
        this->mov(bases_[0], arg(offsetof(gemm_args_t, row_scales)));
        this->test(bases_[0], bases_[0]);
        this->jnz(by_row, base_t::T_NEAR);
        this->vbroadcastss(src(), scale);
        for (int r = 0; r < rows_; r++) scale_row(r);
        this->jmp(scaled, base_t::T_NEAR);
        this->L(by_row);
        for (int r = 0; r < rows_; r++) {
            const Xbyak::Xmm factor(src().getIdx());
            this->vmovss(factor, scale);
            this->vmulss(factor, factor, base_t::dword[bases_[0] + r * 4]);
            this->vbroadcastss(src(), factor);
            scale_row(r);
        }
        this->L(scaled);
        this->mov(acc_, arg(offsetof(gemm_args_t, dst)));
        this->mov(acc_stride_, arg(offsetof(gemm_args_t, dst_stride)));
        if (panels_ == 2) {
            this->cmp(arg(offsetof(gemm_args_t, columns)), panels_ * panel_columns);
            this->jl(fewer, base_t::T_NEAR);
        }
        store_rows(vecs_);
        this->jmp(done, base_t::T_NEAR);
        this->L(fewer);
        if (panels_ == 2) store_rows(vecs_per_panel_);
        this->L(done);
    }

    void scale_row(int r) {
        for (int v = 0; v < vecs_; v++) this->vfmadd213ps(sum(r, v), src(), wei(v));
    }

    void store_rows(int vecs) {
        for (int r = 0; r < rows_; r++) {
            for (int v = 0; v < vecs; v++) {
                if (dst_dt_ == mxdnn_f32)
                    this->vmovups(ptr[acc_ + v * Vec::bytes], sum(r, v));
                else
                    this->store_bf16(ptr[acc_ + v * Vec::bytes / 2], sum(r, v), wei(0), src());
            }
            if (r + 1 < rows_) this->add(acc_, acc_stride_);
        }
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
