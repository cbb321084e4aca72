// SPDX-License-Identifier: Apache-2.0
// A block of a gradient of weights on tiles. 32 rows and two panels have their sums in four tiles while k
// runs. The next 32 rows follow in the same call, while the panels are in the first-level cache.
#include <cstddef>

#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/list.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Tmm;

class amx_gradient_t : public jit_base_t {
public:
    static constexpr int tiles = 2, rows_at_once = tiles * amx_tile_rows; // of rows, and as many panels
    explicit amx_gradient_t(const kernel_params_t &p) : groups_(p.rows / rows_at_once) {}

private:
    const int groups_;

    static Tmm sum(int row_tile, int panel) { return Tmm(row_tile * tiles + panel); }
    static Tmm src(int row_tile) { return Tmm(4 + row_tile); }
    static Tmm wei(int panel) { return Tmm(6 + panel); }

    const Xbyak::Reg64 stride_ = rax, acc_stride_ = rbx, line_ = rcx, steps_ = rdx, k_ = rsi;
    const Xbyak::Reg64 rows_[tiles] = {r8, r9}, from_[tiles] = {r10, r11}, panel_[tiles] = {r12, r13},
                       acc_[tiles] = {r14, r15};

    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble();
        const tile_config_t whole = whole_tiles();
        ldtilecfg(constant(&whole, sizeof(whole)));
        mov(stride_, arg(offsetof(gemm_args_t, src_stride)));
        mov(acc_stride_, arg(offsetof(gemm_args_t, acc_stride)));
        mov(line_, amx_row_bytes);
        mov(rows_[0], arg(offsetof(gemm_args_t, src)));
        mov(acc_[0], arg(offsetof(gemm_args_t, acc)));
        mov(steps_, arg(offsetof(gemm_args_t, k)));
        shr(steps_, 5); // by k_step
        for (int g = 0; g < groups_; g++) {
            if (g) next(rows_, stride_), next(acc_, acc_stride_);
            second(rows_, stride_);
            second(acc_, acc_stride_);
            multiply();
        }
        tilerelease();
        postamble();
    }

    // The second tile is 16 rows from the first one, and the next group 16 rows from that.
    void second(const Xbyak::Reg64 *at, const Xbyak::Reg64 &stride) {
        mov(at[1], stride);
        shl(at[1], 4);
        add(at[1], at[0]);
    }
    void next(const Xbyak::Reg64 *at, const Xbyak::Reg64 &stride) {
        mov(k_, stride);
        shl(k_, 4);
        lea(at[0], ptr[at[1] + k_]);
    }

    template <typename F>
    void for_sums(F &&body) {
        for (int r = 0; r < tiles; r++)
            for (int p = 0; p < tiles; p++) body(sum(r, p), ptr[acc_[r] + acc_stride_ + p * amx_row_bytes]);
    }

    void multiply() {
        Xbyak::Label overwrite, begin, done;
        cmp(arg(offsetof(gemm_args_t, accumulate)), 0);
        je(overwrite, T_NEAR);
        for_sums([&](const Tmm &t, const Xbyak::Address &at) { tileloadd(t, at); });
        jmp(begin, T_NEAR);
        L(overwrite);
        for_sums([&](const Tmm &t, const Xbyak::Address &) { tilezero(t); });
        L(begin);
        for (int i = 0; i < tiles; i++) mov(from_[i], rows_[i]);
        mov(panel_[0], arg(offsetof(gemm_args_t, wei)));
        mov(panel_[1], arg(offsetof(gemm_args_t, wei_stride)));
        add(panel_[1], panel_[0]);
        mov(k_, steps_);
        test(k_, k_);
        jz(done, T_NEAR);
        loop_down(k_, [&] { step(); });
        L(done);
        for_sums([&](const Tmm &t, const Xbyak::Address &at) { tilestored(at, t); });
    }

    void step() {
        for (int p = 0; p < tiles; p++) {
            tileloadd(wei(p), ptr[panel_[p] + line_]);
            add(panel_[p], amx_tile_bytes);
        }
        for (int r = 0; r < tiles; r++) {
            tileloadd(src(r), ptr[from_[r] + stride_]);
            add(from_[r], amx_row_bytes);
            for (int p = 0; p < tiles; p++) tdpbf16ps(sum(r, p), src(r), wei(p));
        }
    }
};

} // namespace

status_t make_avx512_core_amx_gradient(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    if (p.rows % amx_gradient_t::rows_at_once != 0) {
        *reason = "rows are no multiple of 32";
        return mxdnn_invalid_arguments;
    }
    return create_jit<amx_gradient_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
