// SPDX-License-Identifier: Apache-2.0
// The gemm kernel on vdpbf16ps: rows x (panels * 16) sums in registers; every pair of rows of the
// panels is loaded once and multiplied with a broadcast pair of every source row.
#include <cstddef>

#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Zmm;

class gemm_t : public jit_base_t {
public:
    explicit gemm_t(const kernel_params_t &p) : rows_(p.rows), panels_(p.panels), dst_dt_(p.dst_dt) {
        // Chains of dependent dot products. With few sums there are several for each, to hide their latency.
        // This does not depend on the number of panels, which must not change results.
        chains_ = rows_ == 1 ? 4 : rows_ <= 4 ? 2 : 1;
        unroll_ = rows_ <= 4 ? 8 : 2;
    }

private:
    const int rows_, panels_;
    const data_type_t dst_dt_;
    int chains_ = 1;
    int unroll_ =
            1; // pairs in the loop's body, 16 of which make a k_step; few, since they take long to generate

    Zmm sum(int row, int panel, int chain) const { return Zmm((row * panels_ + panel) * chains_ + chain); }
    Zmm wei(int panel) const { return Zmm(31 - panel); }
    Zmm src() const { return Zmm(29); }

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const Xbyak::Reg64 wei_ = r8, wei_stride_ = r9, k_ = rdx, fetch_ = r14, fetch_step_ = r15;

    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }
    bool stores_results() const { return dst_dt_ != mxdnn_data_type_undef; }
    int dst_bytes() const { return panels_ * panel_columns * (dst_dt_ == mxdnn_bf16 ? 2 : 4); }

    void generate() override {
        preamble();
        if (stores_results()) fetch_results();
        mov(src_at_.base[0], arg(offsetof(gemm_args_t, src)));
        mov(src_at_.stride, arg(offsetof(gemm_args_t, src_stride)));
        mov(wei_, arg(offsetof(gemm_args_t, wei)));
        mov(wei_stride_, arg(offsetof(gemm_args_t, wei_stride)));
        mov(k_, arg(offsetof(gemm_args_t, k)));
        mov(fetch_, arg(offsetof(gemm_args_t, fetch)));
        mov(fetch_step_, arg(offsetof(gemm_args_t, fetch_step)));
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        for (int i = 0; i < rows_ * panels_ * chains_; i++) vpxord(Zmm(i), Zmm(i), Zmm(i));

        Xbyak::Label done;
        shr(k_, unroll_ == 8 ? 4 : 2); // a pair is two rows
        jz(done, T_NEAR);
        loop_down(k_, [&] {
            for (int pair = 0; pair < unroll_; pair++) {
                if (pair * 2 % gemm_fetch_rows == 0) {
                    prefetcht0(ptr[fetch_]);
                    add(fetch_, fetch_step_);
                }
                dot(pair);
            }
            add(wei_, unroll_ * vec_bytes);
            src_at_.advance(*this, rows_, unroll_ * 4);
        });
        L(done);
        store();
        postamble();
    }

    void dot(int pair) {
        for (int p = 0; p < panels_; p++) {
            const Xbyak::RegExp at = p ? wei_ + wei_stride_ : Xbyak::RegExp(wei_);
            vmovups(wei(p), ptr[at + pair * vec_bytes]);
        }
        for (int r = 0; r < rows_; r++) {
            const Xbyak::RegExp at = src_at_(r) + pair * 4;
            if (panels_ == 1) {
                vdpbf16ps(sum(r, 0, pair % chains_), wei(0), ptr_b[at]);
                continue;
            }
            vpbroadcastd(src(), ptr[at]);
            for (int p = 0; p < panels_; p++) vdpbf16ps(sum(r, p, pair % chains_), wei(p), src());
        }
    }

    // The cache lines of results, which are stored at the end.
    void fetch_results() {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        Xbyak::Label none;
        mov(dst, arg(offsetof(gemm_args_t, dst)));
        test(dst, dst);
        jz(none, T_NEAR);
        mov(stride, arg(offsetof(gemm_args_t, dst_stride)));
        for (int r = 0; r < rows_; r++) {
            for (int b = 0; b < dst_bytes(); b += 64) prefetchw(ptr[dst + b]);
            if (r + 1 < rows_) add(dst, stride);
        }
        L(none);
    }

    void store() {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        mov(dst, arg(offsetof(gemm_args_t, acc)));
        mov(stride, arg(offsetof(gemm_args_t, acc_stride)));
        for (int i = 0; i < rows_ * panels_; i++)
            for (int step = chains_ / 2; step > 0; step /= 2)
                for (int c = 0; c < step; c++)
                    vaddps(Zmm(i * chains_ + c), Zmm(i * chains_ + c), Zmm(i * chains_ + c + step));

        Xbyak::Label overwrite, done;
        cmp(arg(offsetof(gemm_args_t, accumulate)), 0);
        je(overwrite, T_NEAR);
        mov(k_, dst);
        for (int r = 0; r < rows_; r++) {
            for (int p = 0; p < panels_; p++) vaddps(sum(r, p, 0), sum(r, p, 0), ptr[k_ + p * vec_bytes]);
            if (r + 1 < rows_) add(k_, stride);
        }
        L(overwrite);
        if (stores_results()) {
            Xbyak::Label sums;
            cmp(arg(offsetof(gemm_args_t, dst)), 0);
            je(sums, T_NEAR);
            store_results();
            jmp(done, T_NEAR);
            L(sums);
        }
        for (int r = 0; r < rows_; r++) {
            for (int p = 0; p < panels_; p++) vmovups(ptr[dst + p * vec_bytes], sum(r, p, 0));
            if (r + 1 < rows_) add(dst, stride);
        }
        L(done);
    }

    void store_results() {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride, &scales = wei_,
                           &bias = wei_stride_;
        Xbyak::Label by_row, scaled, fewer, done;
        const Zmm &scale = src();
        vbroadcastss(scale, dword[abi_param + int(offsetof(gemm_args_t, scale))]);
        mov(bias, arg(offsetof(gemm_args_t, bias)));
        for (int p = 0; p < panels_; p++) vmovups(wei(p), ptr[bias + p * vec_bytes]);
        mov(scales, arg(offsetof(gemm_args_t, row_scales)));
        test(scales, scales);
        jnz(by_row, T_NEAR);
        for (int r = 0; r < rows_; r++) scale_row(r);
        jmp(scaled, T_NEAR);
        L(by_row);
        for (int r = 0; r < rows_; r++) {
            vbroadcastss(scale, dword[abi_param + int(offsetof(gemm_args_t, scale))]);
            vmulps(scale, scale, ptr_b[scales + r * 4]);
            scale_row(r);
        }
        L(scaled);
        mov(dst, arg(offsetof(gemm_args_t, dst)));
        mov(stride, arg(offsetof(gemm_args_t, dst_stride)));
        if (panels_ == 2) {
            cmp(arg(offsetof(gemm_args_t, columns)), panels_ * panel_columns);
            jl(fewer, T_NEAR);
        }
        store_rows(panels_);
        jmp(done, T_NEAR);
        L(fewer);
        if (panels_ == 2) store_rows(1);
        L(done);
    }

    void scale_row(int row) {
        for (int p = 0; p < panels_; p++) vfmadd213ps(sum(row, p, 0), src(), wei(p));
    }

    void store_rows(int panels) {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        for (int r = 0; r < rows_; r++) {
            const Zmm &first = sum(r, 0, 0);
            if (dst_dt_ == mxdnn_f32) {
                for (int p = 0; p < panels; p++) vmovups(ptr[dst + p * vec_bytes], sum(r, p, 0));
            } else if (panels == 2) {
                vcvtne2ps2bf16(first, sum(r, 1, 0), first);
                vmovups(ptr[dst], first);
            } else {
                const Xbyak::Ymm half(first.getIdx());
                vcvtneps2bf16(half, first);
                vmovups(ptr[dst], half);
            }
            if (r + 1 < rows_) add(dst, stride);
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_gemm(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<gemm_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
