// SPDX-License-Identifier: Apache-2.0
// Rows of integers times decoded panels of integers on vpdpbusd: int8_panel.hpp. Sums of a window stay in
// registers. Where it ends, they are converted to f32 (exact below 2^24, which 128 products of eight and
// seven bits stay under), scaled and added to the results in memory: one rounding for each window.
//
// Four panels for each code of the source, so that there are as few loads as possible for a product.
#include <cstddef>

#include "cpu/x64/int8_panel.hpp"
#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Zmm;

class gemm_int8_t : public jit_base_t {
public:
    explicit gemm_int8_t(const kernel_params_t &p) : rows_(p.rows), panels_(p.panels) {}

private:
    const int rows_, panels_;

    Zmm sum(int row, int panel) const { return Zmm(row * panels_ + panel); }
    static Zmm wei(int panel) { return Zmm(24 + panel); }
    const Zmm src_{28}, scale_{29};

    const row_addr_t src_at_ = {{rsi, rsi}, rax, rbx, r12, rsi}, acc_at_ = {{rcx, rcx}, rdi, r13, r11, rcx};
    const Reg64 wei_ = r8, wei_stride_ = r9, wei_stride3_ = r10, blocks_ = rdx, fetch_ = r14,
                fetch_step_ = r15;

    RegExp panel_at(int panel) const {
        switch (panel) {
        case 0: return wei_;
        case 1: return wei_ + wei_stride_;
        case 2: return wei_ + wei_stride_ * 2;
        default: return wei_ + wei_stride3_;
        }
    }

    void generate() override {
        preamble();
        const auto arg = [&](size_t offset) { return qword[abi_param + int(offset)]; };
        mov(src_at_.base[0], arg(offsetof(gemm_args_t, src)));
        mov(src_at_.stride, arg(offsetof(gemm_args_t, src_stride)));
        mov(wei_, arg(offsetof(gemm_args_t, wei)));
        mov(wei_stride_, arg(offsetof(gemm_args_t, wei_stride)));
        mov(blocks_, arg(offsetof(gemm_args_t, k)));
        mov(acc_at_.base[0], arg(offsetof(gemm_args_t, acc)));
        mov(fetch_, arg(offsetof(gemm_args_t, fetch)));
        mov(fetch_step_, arg(offsetof(gemm_args_t, fetch_step)));
        mov(wei_stride3_, arg(offsetof(gemm_args_t, accumulate)));
        mov(acc_at_.stride, arg(offsetof(gemm_args_t, acc_stride))); // the arguments are lost
        src_at_.set_multiples(*this, rows_);
        acc_at_.set_multiples(*this, rows_);
        begin_results();
        if (panels_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        for (int p = 0; p < panels_; p++) begin_window(p, panel_at(p));
        shr(blocks_, 5);
        loop_down(blocks_, [&] { block(); });
        postamble();
    }

    void begin_results() {
        Xbyak::Label accumulate;
        test(wei_stride3_, wei_stride3_);
        jnz(accumulate, T_NEAR);
        vpxord(scale_, scale_, scale_);
        for (int r = 0; r < rows_; r++)
            for (int p = 0; p < panels_; p++) vmovups(ptr[acc_at_(r) + p * vec_bytes], scale_);
        L(accumulate);
    }

    void begin_window(int panel, const RegExp &at) {
        vmovdqu64(sum(0, panel), ptr[at + int8_panel_t::start]);
        for (int r = 1; r < rows_; r++) vmovdqa64(sum(r, panel), sum(0, panel));
    }

    void block() {
        for (int k = 0; k < k_step; k += gemm_fetch_rows) {
            prefetcht0(ptr[fetch_]);
            add(fetch_, fetch_step_);
            for (int p = 0; p < panels_; p++) vmovdqu64(wei(p), ptr[panel_at(p) + k * panel_columns]);
            for (int r = 0; r < rows_; r++) {
                vpbroadcastd(src_, ptr[src_at_(r) + k]);
                for (int p = 0; p < panels_; p++) vpdpbusd(sum(r, p), src_, wei(p));
            }
        }
        for (int p = 0; p < panels_; p++) {
            Xbyak::Label goes_on;
            cmp(dword[panel_at(p) + int8_panel_t::scale], int(int8_panel_t::goes_on));
            je(goes_on, T_NEAR);
            end_window(p);
            begin_window(p, panel_at(p) + int8_panel_t::block_bytes);
            L(goes_on);
        }
        add(wei_, int8_panel_t::block_bytes);
        src_at_.advance(*this, rows_, k_step);
    }

    void end_window(int p) {
        vmovups(scale_, ptr[panel_at(p) + int8_panel_t::scale]);
        for (int r = 0; r < rows_; r++) {
            const Xbyak::Address acc = ptr[acc_at_(r) + p * vec_bytes];
            vcvtdq2ps(sum(r, p), sum(r, p));
            vfmadd213ps(sum(r, p), scale_, acc);
            vmovups(acc, sum(r, p));
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_gemm_int8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<gemm_int8_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
