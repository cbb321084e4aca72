// SPDX-License-Identifier: Apache-2.0
// What kernels share that keep the sums of up to 96 rows and a few panels in tiles for the whole of K: which
// tile has what, the products of a step, and storing the results of the call before.
#pragma once

#include <algorithm>
#include <cstddef>

#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"
#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class tile_sums_t : public jit_base_t {
protected:
    explicit tile_sums_t(const kernel_params_t &p)
        : panels_(p.panels), row_tiles_(int(div_up(p.rows, amx_tile_rows))),
          tile_rows_(row_tiles_ > 2 ? int(div_up(p.rows, row_tiles_)) : amx_tile_rows),
          group_(std::min(p.panels, walked_panels(p.rows))) {}

    const int panels_;
    const int row_tiles_; // tiles of source rows
    // Rows of a tile. A product takes as long as it has rows. Up to two tiles have registers of their own,
    // and the last one is as short as the call needs. More tiles share registers, so all have about equally
    // many.
    const int tile_rows_;
    const int group_; // panels that are processed together

    // --- What a kernel implements ---

    virtual int own_stack_bytes() const { return 0; } // at rsp + own_offset
    virtual void load_own() = 0;                      // loads its constants and arguments
    // All of K for a group of panels. It calls multiply_piece() from src_ on and, after a while,
    // store_before(). It then calls begin_destination() and, as often as that says, fetch_destination().
    virtual void walk() = 0;
    virtual void next_group() = 0; // moves to the next group of weights, if there is one
    virtual void routines() {}     // routines that these call
    // Three registers that are free while results are stored.
    virtual Xbyak::Zmm spare(int i) const = 0;

    // --- registers ---

    // Tiles: sums first, weights last, source tiles between them.
    const int sums_ = row_tiles_ * group_;
    const int wei_tiles_ = sums_ <= 4 ? 2 : 1, src_tiles_ = 8 - sums_ - wei_tiles_;
    Xbyak::Tmm sum(int row_tile, int panel) const { return Xbyak::Tmm(row_tile * group_ + panel); }
    Xbyak::Tmm src(int row_tile) const { return Xbyak::Tmm(sums_ + row_tile % src_tiles_); }
    Xbyak::Tmm wei(int panel) const { return Xbyak::Tmm(8 - wei_tiles_ + panel % wei_tiles_); }

    const Xbyak::Reg64 src_ = rsi, src_stride_ = rax, src_step_ = r11, row_bytes_ = rcx;
    const Xbyak::Reg64 temp_ = r15, result_ = rbx;
    const Xbyak::Reg64 a_ = r12, b_ = r13, c_ = rdi; // overwritten while results are stored
    // The kernel may use r8, r9, r10, r14, rdx.

    // Stack: tile configuration, variables, data of the kernel.
    enum slot_t { args, acc, acc_stride, begin, dst, dst_stride, dst_rows, rows_before, groups, own_slot };
    static constexpr int slots_offset = 64, own_offset = slots_offset + 128;
    // Within a routine, the return address is below these.
    Xbyak::Address var(int s, bool in_routine = false) {
        return qword[rsp + slots_offset + s * 8 + (in_routine ? 8 : 0)];
    }
    // Repeats body() n times. The counter is in memory.
    template <typename F>
    void loop_over(int s, int64_t n, F body) {
        Xbyak::Label again;
        if (n <= 0) return;
        if (n == 1) return body();
        mov(var(s), n);
        align(16);
        L(again);
        body();
        dec(var(s));
        jnz(again, T_NEAR);
    }

    void load_arg(const Xbyak::Reg64 &r, size_t offset) {
        mov(r, var(args));
        mov(r, qword[r + int(offset)]);
    }

    // --- products ---

    // The 32 rows of a panel are multiplied in pieces. The first piece loads the tile of weights. Each
    // further one loads a tile of rows and computes the product. Panels are processed in ascending order.
    int pieces() const { return 1 + row_tiles_; }
    void multiply_piece(const Xbyak::RegExp &weights, int panel, int i) {
        if (i == 0) return tileloadd(wei(panel), ptr[weights + row_bytes_]);
        // If tiles of rows share a register, they are processed in alternating direction.
        const bool shared = row_tiles_ > src_tiles_, back = shared && panel % 2;
        const int row_tile = back ? row_tiles_ - i : i - 1;
        if (panel == 0 || (shared && i > 1)) load_source(row_tile);
        if (panel == 0) fetch_source(row_tile);
        tdpbf16ps(sum(row_tile, panel), src(row_tile), wei(panel));
        if (panel == group_ - 1 && i == row_tiles_) add(src_, src_step_);
    }

    // --- results ---

    // Stores the results of the previous call. Its sums are in the first-level cache by now. Reading them
    // directly after the tile stores would wait.
    void store_before() {
        Xbyak::Label none, two_pairs, done;
        const Xbyak::Reg64 &rows = temp_, &from = b_, &bias = a_, &stride = c_;
        const auto of_before = [&](size_t offset) {
            return qword[c_ + int(offsetof(direct_args_t, before) + offset)];
        };
        mov(rows, var(rows_before));
        test(rows, rows);
        jz(none, T_NEAR);
        mov(var(rows_before), 0);
        mov(c_, var(args));
        // Masks of 32 columns each.
        mov(from, of_before(offsetof(direct_args_t::stored_t, columns)));
        mov(bias, -1);
        bzhi(result_, bias, from);
        kmovd(k5, result_.cvt32());
        sub(from, 2 * panel_columns);
        bzhi(result_, bias, from);
        kmovd(k6, result_.cvt32());
        const Xbyak::Zmm scale = spare(0), result[2] = {spare(1), spare(2)};
        vbroadcastss(scale, dword[c_ + int(offsetof(direct_args_t, scale))]);
        mov(bias, of_before(offsetof(direct_args_t::stored_t, bias)));
        mov(result_, of_before(offsetof(direct_args_t::stored_t, dst)));
        cmp(from, 0);
        mov(from, qword[c_ + int(offsetof(direct_args_t, acc))]);
        const auto all_rows = [&](int pairs) {
            loop_down(rows, [&] {
                for (int pair = 0; pair < pairs; pair++) {
                    for (int i = 0; i < 2; i++) {
                        const int at = (2 * pair + i) * amx_row_bytes;
                        vmulps(result[i], scale, ptr[from + at]);
                        vaddps(result[i], result[i], ptr[bias + at]);
                    }
                    vcvtne2ps2bf16(result[0], result[1], result[0]);
                    vmovdqu16(ptr[result_ + pair * amx_row_bytes] | (pair ? k6 : k5), result[0]);
                }
                add(from, var(acc_stride));
                add(result_, stride);
            });
        };
        mov(stride, qword[c_ + int(offsetof(direct_args_t, dst_stride))]);
        jg(two_pairs, T_NEAR);
        all_rows(1);
        jmp(done, T_NEAR);
        L(two_pairs);
        all_rows(2);
        L(done);
        L(none);
    }

    // The results of this call are written later, and storing them would then wait for memory. Cache lines of
    // a few rows are fetched at a time, because all at once would delay the source. result_ says which.
    void begin_destination() {
        Xbyak::Label none;
        mov(var(dst_rows), 0);
        mov(result_, var(dst));
        load_arg(temp_, offsetof(direct_args_t, dst));
        test(temp_, temp_);
        jz(none);
        load_arg(temp_, offsetof(direct_args_t, rows));
        mov(var(dst_rows), temp_);
        L(none);
    }
    void fetch_destination(int64_t times) {
        Xbyak::Label none;
        const int rows = int(div_up(row_tiles_ * amx_tile_rows, times));
        cmp(var(dst_rows), 0);
        jle(none, T_NEAR);
        for (int r = 0; r < rows; r++) {
            for (int b = 0; b < group_ * panel_columns * 2; b += 64) prefetchw(ptr[result_ + b]);
            add(result_, var(dst_stride));
        }
        sub(var(dst_rows), rows);
        L(none);
    }

private:
    void generate() override {
        Xbyak::Label only_results;
        preamble(own_offset + own_stack_bytes());
        mov(var(args), abi_param);
        const auto keep = [&](int slot, size_t offset) {
            load_arg(temp_, offset);
            mov(var(slot), temp_);
        };
        keep(acc, offsetof(direct_args_t, acc));
        keep(acc_stride, offsetof(direct_args_t, acc_stride));
        keep(begin, offsetof(direct_args_t, begin));
        keep(dst, offsetof(direct_args_t, dst));
        keep(dst_stride, offsetof(direct_args_t, dst_stride));
        keep(rows_before, offsetof(direct_args_t, before) + offsetof(direct_args_t::stored_t, rows));
        load_arg(temp_, offsetof(direct_args_t, rows));
        test(temp_, temp_);
        jz(only_results, T_NEAR);
        configure();
        load_own();
        load_arg(src_stride_, offsetof(direct_args_t, src_stride));
        load_arg(src_step_, offsetof(direct_args_t, src_step));
        mov(row_bytes_, amx_row_bytes);
        loop_over(groups, panels_ / group_, [&] {
            load_arg(src_, offsetof(direct_args_t, src));
            begin_sums();
            walk();
            store_sums();
            if (panels_ == group_) return;
            next_group();
            add(var(acc), group_ * amx_row_bytes);
            add(var(begin), group_ * amx_row_bytes);
            add(var(dst), group_ * amx_row_bytes / 2);
        });
        tilerelease();
        postamble();
        L(only_results);
        store_before();
        postamble();
        routines();
    }

    // Of more than two tiles, rows that do not exist are multiplied, too.
    void configure() {
        tile_config_t tiles = whole_tiles();
        const int last = row_tiles_ - 1;
        for (int t = 0; t < sums_ + src_tiles_; t++) tiles.rows[t] = uint8_t(tile_rows_);
        const auto rows_of = [&](const Xbyak::Tmm &t) {
            return byte[rsp + int(offsetof(tile_config_t, rows)) + t.getIdx()];
        };
        vmovdqa64(Xbyak::Zmm(0), constant(&tiles, sizeof(tiles)));
        vmovdqa64(ptr[rsp], Xbyak::Zmm(0));
        if (row_tiles_ <= 2) {
            load_arg(temp_, offsetof(direct_args_t, rows));
            if (last) sub(temp_, last * amx_tile_rows);
            mov(rows_of(src(last)), temp_.cvt8());
            for (int p = 0; p < group_; p++) mov(rows_of(sum(last, p)), temp_.cvt8());
        }
        ldtilecfg(ptr[rsp]);
    }

    int source_bytes() const { return tile_rows_ * amx_row_bytes; } // of a tile, in a stream

    // With one panel every tile is read once; with two, tiles are prefetched. The first-level cache is kept
    // for weights.
    void load_source(int row_tile) {
        const Xbyak::Address from = ptr[src_ + src_stride_ + row_tile * source_bytes()];
        row_tiles_ == 1 ? tileloadd(src(row_tile), from) : tileloaddt1(src(row_tile), from);
    }

    // Fetches the same tile of the next step if rows are a stream, because the second-level cache is slow.
    // With one panel every product reads a tile, and that cache has no bandwidth left.
    void fetch_source(int row_tile) {
        if (row_tiles_ == 1 || group_ == 1) return;
        for (int b = 0; b < source_bytes(); b += amx_row_bytes)
            prefetcht0(ptr[src_ + src_step_ + row_tile * source_bytes() + b]);
    }

    // Calls f(tile, its address) for all sums from `from` on.
    template <typename F>
    void for_each_sum(slot_t from, F f) {
        mov(result_, var(from));
        mov(temp_, var(acc_stride));
        imul(b_, temp_, tile_rows_);
        for (int t = 0; t < row_tiles_; t++) {
            for (int p = 0; p < group_; p++) f(sum(t, p), ptr[result_ + temp_ + p * amx_row_bytes]);
            add(result_, b_);
        }
    }
    void begin_sums() {
        Xbyak::Label zeros, done;
        load_arg(temp_, offsetof(direct_args_t, begin));
        test(temp_, temp_);
        jz(zeros, T_NEAR);
        for_each_sum(begin, [&](const Xbyak::Tmm &t, const Xbyak::Address &at) { tileloadd(t, at); });
        jmp(done);
        L(zeros);
        for (int i = 0; i < sums_; i++) tilezero(Xbyak::Tmm(i));
        L(done);
    }
    void store_sums() {
        for_each_sum(acc, [&](const Xbyak::Tmm &t, const Xbyak::Address &at) { tilestored(at, t); });
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
