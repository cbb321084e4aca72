// SPDX-License-Identifier: Apache-2.0
// Dense kernel on AMX tiles. Rows of the source are tile rows as they stand; 16 pairs of a panel
// are a tile in the order that the instruction wants. A call is walked in blocks of 32 rows, 2 x 2
// tiles of 16 x 16 sums for two panels; the shapes of the last block's tiles are made from the
// rows that are left, so a call may have any number of them.
//
// tdpbf16ps takes subnormal numbers for zero and flushes subnormal sums to zero.
#include <cstddef>

#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int tile_rows = 16;
constexpr int row_bytes = 64; // of every tile: 16 sums, 16 pairs of a panel or 32 source values
constexpr int tile_bytes = tile_rows * row_bytes;
constexpr int sums = 4;

// What ldtilecfg reads.
struct tile_config_t {
    uint8_t palette, start_row, reserved[14];
    uint16_t columns_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(tile_config_t) == 64);

class amx_dense_t : public jit_base_t {
public:
    explicit amx_dense_t(const kernel_params_t &p) : panels_(p.panels) {}

private:
    const int panels_;

    // A block has one or two halves of up to 16 rows. An instruction that adds to a tile has to
    // wait long for the one before it, so there always are four tiles of sums: where the block
    // needs fewer, each sum is several, of steps in turn, and they are added at the end.
    int chains(int halves) const { return sums / (halves * panels_); }
    int sum_index(int halves, int half, int panel, int chain) const {
        return (half * panels_ + panel) * chains(halves) + chain;
    }
    // Tiles that a half has to itself: src(half), or with one half both, in turn.
    static Tmm src(int i) { return Tmm(sums + i % 2); }
    static Tmm wei(int i) { return Tmm(sums + 2 + i % 2); }

    const Xbyak::Reg64 src_ = rsi, src_stride_ = rax, wei_ = r11, wei_row_ = rcx;
    const Xbyak::Reg64 acc_ = r10, acc_stride_ = rbx, rows_ = r14;
    const Xbyak::Reg64 src_at_[2] = {r12, r13}, wei_at_[2] = {r8, r9}, steps_ = rdx;
    const Xbyak::Reg64 temp_ = r15;

    static constexpr int config_offset = tile_bytes; // on the stack, after room for one tile
    Xbyak::Address config_rows(int tile) const {
        return byte[rsp + config_offset + int(offsetof(tile_config_t, rows)) + tile];
    }
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble(config_offset + int(sizeof(tile_config_t)));
        mov(src_, arg(offsetof(dense_args_t, src)));
        mov(src_stride_, arg(offsetof(dense_args_t, src_stride)));
        mov(wei_, arg(offsetof(dense_args_t, wei)));
        mov(acc_, arg(offsetof(dense_args_t, acc)));
        mov(acc_stride_, arg(offsetof(dense_args_t, acc_stride)));
        mov(rows_, arg(offsetof(dense_args_t, rows)));
        mov(wei_row_, row_bytes);

        tile_config_t whole_tiles = {};
        whole_tiles.palette = 1;
        for (int t = 0; t < 8; t++) {
            whole_tiles.columns_bytes[t] = row_bytes;
            whole_tiles.rows[t] = tile_rows;
        }
        vmovdqa64(Zmm(0), constant(&whole_tiles, sizeof(whole_tiles)));
        vmovdqa64(ptr[rsp + config_offset], Zmm(0));

        Xbyak::Label whole, rest, one_half, done;
        cmp(rows_, 2 * tile_rows);
        jl(rest, T_NEAR);
        ldtilecfg(ptr[rsp + config_offset]);
        L(whole);
        block(2);
        sub(rows_, 2 * tile_rows);
        jz(done, T_NEAR);
        mov(temp_, src_stride_);
        shl(temp_, 5); // 32 rows
        add(src_, temp_);
        mov(temp_, acc_stride_);
        shl(temp_, 5);
        add(acc_, temp_);
        cmp(rows_, 2 * tile_rows);
        jge(whole, T_NEAR);

        L(rest);
        cmp(rows_, tile_rows);
        jle(one_half, T_NEAR);
        lea(temp_, ptr[rows_ - tile_rows]);
        mov(config_rows(src(1).getIdx()), temp_.cvt8());
        for (int p = 0; p < panels_; p++)
            for (int c = 0; c < chains(2); c++) mov(config_rows(sum_index(2, 1, p, c)), temp_.cvt8());
        ldtilecfg(ptr[rsp + config_offset]);
        block(2);
        jmp(done, T_NEAR);

        L(one_half);
        test(rows_, rows_);
        jle(done, T_NEAR);
        for (int t = 0; t <= src(1).getIdx(); t++) mov(config_rows(t), rows_.cvt8());
        ldtilecfg(ptr[rsp + config_offset]);
        block(1);

        L(done);
        tilerelease();
        postamble();
    }

    void block(int halves) {
        start_sums(halves);
        mov(src_at_[0], src_);
        if (halves == 2) {
            mov(src_at_[1], src_stride_);
            shl(src_at_[1], 4); // 16 rows
            add(src_at_[1], src_);
        }
        mov(wei_at_[0], wei_);
        if (panels_ == 2) {
            mov(wei_at_[1], arg(offsetof(dense_args_t, wei_stride)));
            add(wei_at_[1], wei_);
        }
        mov(steps_, arg(offsetof(dense_args_t, k)));
        shr(steps_, 5);

        // Rounds of all chains, then what is left on the first.
        const int n = chains(halves);
        Xbyak::Label rounds, single, finished;
        if (n > 1) {
            cmp(steps_, n);
            jl(single, T_NEAR);
        } else {
            test(steps_, steps_);
            jz(finished, T_NEAR);
        }
        align(16);
        L(rounds);
        for (int c = 0; c < n; c++) step(halves, c, c);
        advance(halves, n);
        sub(steps_, n);
        cmp(steps_, n);
        jge(rounds, T_NEAR);
        if (n > 1) {
            L(single);
            test(steps_, steps_);
            jz(finished, T_NEAR);
            loop_down(steps_, [&] {
                step(halves, 0, 0);
                advance(halves, 1);
            });
        }
        L(finished);
        store_sums(halves);
    }

    void step(int halves, int chain, int at) {
        for (int p = 0; p < panels_; p++) {
            tileloadd(wei(panels_ == 1 ? at : p), ptr[wei_at_[p] + wei_row_ + at * tile_bytes]);
        }
        for (int h = 0; h < halves; h++) {
            const Tmm s = src(halves == 1 ? at : h);
            tileloadd(s, ptr[src_at_[h] + src_stride_ + at * row_bytes]);
            for (int p = 0; p < panels_; p++)
                tdpbf16ps(Tmm(sum_index(halves, h, p, chain)), s, wei(panels_ == 1 ? at : p));
        }
    }
    void advance(int halves, int steps) {
        for (int h = 0; h < halves; h++) add(src_at_[h], steps * row_bytes);
        for (int p = 0; p < panels_; p++) add(wei_at_[p], steps * tile_bytes);
    }

    // f(tile, panel, chain) for the sums of a half, with temp_ at the half's rows in acc.
    template <typename F>
    void for_sums(int halves, F f) {
        for (int h = 0; h < halves; h++) {
            if (h == 0) {
                mov(temp_, acc_);
            } else {
                mov(temp_, acc_stride_);
                shl(temp_, 4);
                add(temp_, acc_);
            }
            for (int p = 0; p < panels_; p++)
                for (int c = 0; c < chains(halves); c++) f(Tmm(sum_index(halves, h, p, c)), p, c);
        }
    }

    void start_sums(int halves) {
        Xbyak::Label overwrite, started;
        cmp(arg(offsetof(dense_args_t, accumulate)), 0);
        je(overwrite, T_NEAR);
        for_sums(halves, [&](const Tmm &t, int p, int c) {
            if (c == 0)
                tileloadd(t, ptr[temp_ + acc_stride_ + p * row_bytes]);
            else
                tilezero(t);
        });
        jmp(started, T_NEAR);
        L(overwrite);
        for (int t = 0; t < sums; t++) tilezero(Tmm(t));
        L(started);
    }

    void store_sums(int halves) {
        for_sums(halves, [&](const Tmm &t, int p, int c) {
            if (c == 0) return tilestored(ptr[temp_ + acc_stride_ + p * row_bytes], t);
            // Another chain's sums: through the stack, row by row. With two halves the first has
            // all its rows and the second what is beyond them.
            tilestored(ptr[rsp + wei_row_], t);
            add_rows(halves, p, t.getIdx() >= sums / 2);
        });
    }
    void add_rows(int halves, int panel, bool second) {
        const Xbyak::Reg64 &at = src_at_[0], &from = src_at_[1], &left = steps_;
        if (halves == 2 && second) {
            lea(left, ptr[rows_ - tile_rows]);
            mov(at, tile_rows);
            cmp(left, at);
            cmovg(left, at);
        } else if (halves == 2) {
            mov(left, tile_rows);
        } else {
            mov(left, rows_);
        }
        mov(at, temp_);
        mov(from, rsp);
        loop_down(left, [&] {
            vmovups(Zmm(0), ptr[at + panel * row_bytes]);
            vaddps(Zmm(0), Zmm(0), ptr[from]);
            vmovups(ptr[at + panel * row_bytes], Zmm(0));
            add(at, acc_stride_);
            add(from, row_bytes);
        });
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
