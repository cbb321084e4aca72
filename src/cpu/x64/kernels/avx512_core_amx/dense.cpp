// SPDX-License-Identifier: Apache-2.0
// Dense kernel on AMX tiles. Rows of the source are tile rows as they stand; 16 pairs of a panel
// are a tile in the order that the instruction wants. A call is walked in blocks of 32 rows, 2 x 2
// tiles of 16 x 16 sums for two panels; a last block of up to 16 rows takes 1 x 4 tiles if there
// are four panels. The shapes of the last block's tiles are made from the rows that are left, so a
// call may have any number of them.
//
// A sum always is one chain of additions along k, so neither the number of panels nor the way that
// rows are divided into calls changes a result. tdpbf16ps takes subnormal numbers for zero and
// flushes subnormal sums to zero.
#include <algorithm>
#include <cstddef>

#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int tile_rows = amx_tile_rows, row_bytes = amx_row_bytes, tile_bytes = amx_tile_bytes;
constexpr int sum_tiles = 4; // an addition takes long: four in turn hide that

class amx_dense_t : public jit_base_t {
public:
    explicit amx_dense_t(const kernel_params_t &p) : panels_(p.panels) {}

private:
    const int panels_;

    // Panels that a block of one or two halves of 16 rows has sums for at once.
    int group(int halves) const { return std::min(panels_, sum_tiles / halves); }
    static Tmm sum(int half, int panel) { return Tmm(half * 2 + panel); }
    static Tmm src(int half) { return Tmm(sum_tiles + half); }
    static Tmm wei(int panel) { return Tmm(sum_tiles + 2 + panel % 2); }

    const Reg64 src_ = rsi, src_stride_ = rax, wei_ = r8, wei_stride_ = r9, acc_ = r10, acc_stride_ = rbx;
    const Reg64 rows_ = r14, row_bytes_ = rcx;
    const Reg64 wei3_ = r11, src_at_ = r12, src16_at_ = r13; // while k runs; and of acc before and after
    const Reg64 steps_ = rdx, temp_ = r15;

    // On the stack.
    Xbyak::Address config() const { return ptr[rsp]; }
    Xbyak::Address config_rows(const Tmm &t) const {
        return byte[rsp + int(offsetof(tile_config_t, rows)) + t.getIdx()];
    }
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble(sizeof(tile_config_t));
        mov(src_, arg(offsetof(dense_args_t, src)));
        mov(src_stride_, arg(offsetof(dense_args_t, src_stride)));
        mov(wei_stride_, arg(offsetof(dense_args_t, wei_stride)));
        mov(acc_, arg(offsetof(dense_args_t, acc)));
        mov(acc_stride_, arg(offsetof(dense_args_t, acc_stride)));
        mov(rows_, arg(offsetof(dense_args_t, rows)));
        mov(row_bytes_, row_bytes);

        const tile_config_t whole = whole_tiles();
        vmovdqa64(Zmm(0), constant(&whole, sizeof(whole)));
        vmovdqa64(config(), Zmm(0));

        Xbyak::Label two_halves, rest, one_half, done;
        cmp(rows_, 2 * tile_rows);
        jl(rest, T_NEAR);
        ldtilecfg(config());
        L(two_halves);
        block(2);
        sub(rows_, 2 * tile_rows);
        jz(done, T_NEAR);
        advance_rows(src_, src_stride_);
        advance_rows(acc_, acc_stride_);
        cmp(rows_, 2 * tile_rows);
        jge(two_halves, T_NEAR);

        L(rest);
        cmp(rows_, tile_rows);
        jle(one_half, T_NEAR);
        lea(temp_, ptr[rows_ - tile_rows]);
        for (const Tmm &t : {sum(1, 0), sum(1, 1), src(1)}) mov(config_rows(t), temp_.cvt8());
        ldtilecfg(config());
        block(2);
        jmp(done, T_NEAR);

        L(one_half);
        test(rows_, rows_);
        jle(done, T_NEAR);
        for (int p = 0; p < group(1); p++) mov(config_rows(sum(0, p)), rows_.cvt8());
        mov(config_rows(src(0)), rows_.cvt8());
        ldtilecfg(config());
        block(1);

        L(done);
        tilerelease();
        postamble();
    }

    void advance_rows(const Reg64 &base, const Reg64 &stride) {
        mov(temp_, stride);
        shl(temp_, 5); // by 32
        add(base, temp_);
    }
    // d = base + 16 rows
    void half_below(const Reg64 &d, const Reg64 &base, const Reg64 &stride) {
        mov(d, stride);
        shl(d, 4);
        add(d, base);
    }

    void block(int halves) {
        for (int first = 0; first < panels_; first += group(halves)) {
            sums_from_acc(halves, first);
            multiply(halves, first);
            sums_to_acc(halves, first);
        }
    }

    void multiply(int halves, int first_panel) {
        mov(src_at_, src_);
        if (halves == 2) half_below(src16_at_, src_, src_stride_);
        mov(wei_, arg(offsetof(dense_args_t, wei)));
        for (int p = 0; p < first_panel; p++) add(wei_, wei_stride_);
        if (group(halves) > 2) lea(wei3_, ptr[wei_stride_ + wei_stride_ * 2]);
        mov(steps_, arg(offsetof(dense_args_t, k)));
        Xbyak::Label done;
        shr(steps_, 5);
        jz(done, T_NEAR);
        loop_down(steps_, [&] {
            step(halves);
            add(src_at_, row_bytes);
            if (halves == 2) add(src16_at_, row_bytes);
            add(wei_, tile_bytes);
        });
        L(done);
    }

    // A tile's memory operand is a base plus a stride: the second panel of a group needs a base of
    // its own, made as it is used.
    void step(int halves) {
        for (int h = 0; h < halves; h++) tileloadd(src(h), ptr[(h ? src16_at_ : src_at_) + src_stride_]);
        for (int p = 0; p < group(halves); p++) {
            switch (p) {
            case 0: break;
            case 1: lea(temp_, ptr[wei_ + wei_stride_]); break;
            case 2: lea(temp_, ptr[wei_ + wei_stride_ * 2]); break;
            default: lea(temp_, ptr[wei_ + wei3_]); break;
            }
            tileloadd(wei(p), ptr[(p ? temp_ : wei_) + row_bytes_]);
            for (int h = 0; h < halves; h++) tdpbf16ps(sum(h, p), src(h), wei(p));
        }
    }

    // f(tile, its place in acc) for all sums.
    template <typename F>
    void for_sums(int halves, int first_panel, F f) {
        if (halves == 2) half_below(temp_, acc_, acc_stride_);
        for (int h = 0; h < halves; h++)
            for (int p = 0; p < group(halves); p++)
                f(sum(h, p), ptr[(h ? temp_ : acc_) + acc_stride_ + (first_panel + p) * row_bytes]);
    }
    void sums_from_acc(int halves, int first_panel) {
        Xbyak::Label overwrite, done;
        cmp(arg(offsetof(dense_args_t, accumulate)), 0);
        je(overwrite, T_NEAR);
        for_sums(halves, first_panel, [&](const Tmm &t, const Xbyak::Address &at) { tileloadd(t, at); });
        jmp(done, T_NEAR);
        L(overwrite);
        for (int h = 0; h < halves; h++)
            for (int p = 0; p < group(halves); p++) tilezero(sum(h, p));
        L(done);
    }
    void sums_to_acc(int halves, int first_panel) {
        for_sums(halves, first_panel, [&](const Tmm &t, const Xbyak::Address &at) { tilestored(at, t); });
    }
};

} // namespace

status_t make_avx512_core_amx_dense(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<amx_dense_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
