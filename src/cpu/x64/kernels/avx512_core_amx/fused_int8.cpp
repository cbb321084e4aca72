// SPDX-License-Identifier: Apache-2.0
// Many rows of s8 source times MXFP4 on AMX tiles, in integers: a tile instruction takes twice the values of
// one of bf16. A call multiplies all rows with two panels of 16 columns, a block of rows at a time, whose
// sums stay in tiles for the whole of K. Vector instructions decode the weights, for every block anew, beside
// the products of the tile of weights before.
//
// Weights are integers too, window by window of exponents: int8_windows.hpp.
//
// Tiles leave sums on the stack; they are added up a block of rows later, when they have arrived in the
// cache. Sums of a pass are exact in 32 bits. Each is rounded to f32, multiplied by a power of two and added
// to acc. Results do not depend on how rows are divided into calls or blocks.
#include <algorithm>
#include <cstddef>

#include "common/layouts/n16.hpp"
#include "cpu/x64/kernels/avx512_core_amx/int8_windows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/list.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/source_blocks.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::RegExp;
using Xbyak::Tmm;

constexpr int block_rows = source_blocks_t::fused_block_rows;
static_assert(block_rows == 2 * amx_tile_rows, "");

class amx_fused_int8_t : public int8_windows_t {
public:
    explicit amx_fused_int8_t(const kernel_params_t &p)
        : int8_windows_t(p), blocks_(std::max<int64_t>(p.calls, 2)) {}

private:
    const int64_t blocks_; // blocks of rows in a call, if known
    // ---- registers ----

    // For multiplying.
    const Reg64 src_ = rsi, src_step_ = rbx, wei_ = rdx, row_bytes_ = rcx, rest_ = r14, acc_ = rdi;
    const Reg64 ahead_ = r12, ahead_end_ = r13; // codes of the next panels, which are fetched
    // For adding up sums.
    const Reg64 from_ = r8, to_ = r9, stride_ = r10, left_ = r11;

    // Of the sums that are added up next.
    static Zmm used_scale(int panel) { return Zmm(16 + panel); }
    const Zmm factor_ = Zmm(22), all_factor_ = Zmm(23);
    static Zmm result(int panel) { return Zmm(24 + panel); }
    static Zmm bias(int panel) { return Zmm(26 + panel); }
    const Opmask columns_ = k6; // columns of the results

    static Tmm sum(int row_tile, int panel) { return Tmm(row_tile * panels + panel); }
    static Tmm src(int row_tile) { return Tmm(4 + row_tile); }
    static Tmm wei(int panel) { return Tmm(6 + panel); }

    Label add_up_, decode_tile_, decode_tail_;

    // ---- the stack ----

    enum slot_t {
        rows_left = own_slot,
        on_top,     // not 0: added to the sums of earlier passes
        all_tiles,  // not 0: this pass multiplies all tiles, not only those with codes for it
        multiplied, // not 0: this pass multiplied a tile
        final,      // not 0: the last pass, after which results are stored
        dst,
        row_scale,
        // The previous block, if its sums are still to be added up: its rows, their address, and what to
        // store.
        to_add,
        to_add_acc,
        to_add_on_top,
        to_store,
        to_store_scale,
        dst_stride,
        slots
    };
    static constexpr int panel_sums_bytes = block_rows * amx_row_bytes;
    static constexpr int sums_offset = int(round_up(slots * 8, 64));
    RegExp sums_at(int row_tile, int panel, bool in_routine = false) const {
        return rsp
               + (sums_offset + panel * panel_sums_bytes + row_tile * amx_tile_bytes + (in_routine ? 8 : 0));
    }
    // Two decoded tiles of both panels. One is multiplied while the other is decoded.
    static constexpr int decoded_offset = sums_offset + panels * panel_sums_bytes,
                         decoded_bytes = panels * panel_bytes;

    void generate() override {
        Label over;
        preamble(decoded_offset + 2 * decoded_bytes);
        mov(var(args), abi_param);
        const tile_config_t whole = whole_tiles();
        ldtilecfg(constant(&whole, sizeof(whole)));
        load_constants();
        mov(row_bytes_, amx_row_bytes);
        mov(var(to_add), 0);
        mov(var(to_store), 0);
        mov(var(on_top), 0);
        begin_results();
        jmp(over, T_NEAR);
        emit_find_windows();
        emit_add_up();
        emit_decode();
        L(over);
        all_passes();
        call(add_up_);
        tilerelease();
        postamble();
    }

    // ---- multiplying ----

    void all_passes() {
        Label next;
        for (int p = 0; p < panels; p++) {
            load_arg(temp_, offsetof(fused_args_t, wei) + size_t(p) * sizeof(void *));
            mov(var(codes + p), temp_);
            vmovdqa64(limit(p), nan_bytes_);
        }
        begin_ahead();
        L(next);
        mov(var(wanted), 0);
        find_windows();
        is_final();
        takes_all_tiles();
        all_blocks();
        mov(var(on_top), 1);
        for (int p = 0; p < panels; p++) vmovdqa64(limit(p), base(p));
        cmp(var(wanted), 0);
        jne(next, T_NEAR);
    }

    void begin_results() {
        Label none;
        load_arg(temp_, offsetof(fused_args_t, dst_stride));
        mov(var(dst_stride), temp_);
        load_arg(rest_, offsetof(fused_args_t, store_columns));
        test(rest_, rest_);
        jz(none);
        mov(temp_, -1);
        bzhi(temp_, temp_, rest_);
        kmovd(columns_, temp_.cvt32());
        load_arg(temp_, offsetof(fused_args_t, bias));
        for (int p = 0; p < panels; p++) vmovups(bias(p), ptr[temp_ + p * amx_row_bytes]);
        mov(temp_, var(args));
        vbroadcastss(all_factor_, dword[temp_ + int(offsetof(fused_args_t, scale))]);
        L(none);
    }

    void is_final() {
        Label no;
        mov(var(final), 0);
        cmp(var(wanted), 0);
        jne(no);
        load_arg(temp_, offsetof(fused_args_t, store_columns));
        mov(var(final), temp_);
        L(no);
    }

    // The first pass, and other passes that most tiles are part of.
    void takes_all_tiles() {
        Label done;
        mov(var(all_tiles), 1);
        cmp(var(on_top), 0);
        je(done, T_NEAR);
        for (int p = 0; p < panels; p++) mov(codes_of(p), var(codes + p));
        mov(rest_, -(whole_tiles_ + 1) / 2);
        const auto see = [&](int rows) {
            Label none;
            see_below(rows);
            jz(none);
            inc(rest_);
            L(none);
            for (int p = 0; p < panels; p++) add(codes_of(p), tile_bytes(rows));
        };
        loop(tiles_, whole_tiles_, [&] { see(tile_rows); });
        if (tail_rows_) see(tail_rows_);
        cmp(rest_, 0);
        jg(done);
        mov(var(all_tiles), 0);
        L(done);
    }

    void all_blocks() {
        Label next, done;
        load_arg(temp_, offsetof(fused_args_t, rows));
        mov(var(rows_left), temp_);
        load_arg(acc_, offsetof(fused_args_t, acc));
        load_arg(temp_, offsetof(fused_args_t, dst));
        mov(var(dst), temp_);
        load_arg(temp_, offsetof(fused_args_t, row_scale));
        mov(var(row_scale), temp_);
        load_arg(src_, offsetof(fused_args_t, src));
        mov(var(multiplied), 0);
        L(next);
        rows_block();
        jle(done, T_NEAR);
        // If all codes of the pass are 0, results only have to be stored.
        cmp(var(multiplied), 0);
        jne(next, T_NEAR);
        cmp(var(final), 0);
        jne(next, T_NEAR);
        L(done);
    }

    // Leaves the flags of comparing the remaining rows with 0.
    void rows_block() {
        Label one, after;
        fetch_destination();
        // A step of a block has one piece of 64 bytes for each row of the block.
        min_rows(src_step_, temp_);
        cmp(src_step_, amx_tile_rows);
        jle(one, T_NEAR);
        tiles_block(2);
        jmp(after, T_NEAR);
        L(one);
        tiles_block(1);
        L(after);
        load_arg(temp_, offsetof(fused_args_t, acc_stride));
        imul(temp_, temp_, block_rows);
        add(acc_, temp_);
        sub(var(rows_left), block_rows);
    }

    void tiles_block(int row_tiles) {
        Label some_tiles, done;
        for (int i = 0; i < row_tiles * panels; i++) tilezero(Tmm(i));
        shl(src_step_, 6);
        lea(dst_, ptr[rsp + decoded_offset]);
        lea(wei_, ptr[dst_ + decoded_bytes]);
        for (int p = 0; p < panels; p++) mov(codes_of(p), var(codes + p));
        cmp(var(all_tiles), 0);
        je(some_tiles, T_NEAR);
        multiply_all(row_tiles);
        jmp(done, T_NEAR);
        L(some_tiles);
        multiply_some(row_tiles);
        L(done);
        // The sums of the previous block are in the first-level cache by now.
        call(add_up_);
        for (int t = 0; t < row_tiles; t++)
            for (int p = 0; p < panels; p++) tilestored(ptr[sums_at(t, p) + row_bytes_], sum(t, p));
        remember_block();
    }
    // What add_up_ needs to know of the block.
    void remember_block() {
        Label done;
        min_rows(temp_, rest_);
        mov(var(to_add), temp_);
        mov(var(to_add_acc), acc_);
        mov(temp_, var(on_top));
        mov(var(to_add_on_top), temp_);
        for (int p = 0; p < panels; p++) vmovaps(used_scale(p), scale(p));
        cmp(var(final), 0);
        je(done, T_NEAR);
        mov(temp_, var(dst));
        mov(var(to_store), temp_);
        imul(rest_, var(dst_stride), block_rows);
        add(temp_, rest_);
        mov(var(dst), temp_);
        mov(temp_, var(row_scale));
        mov(var(to_store_scale), temp_);
        add(var(row_scale), block_rows * int(sizeof(float)));
        L(done);
    }
    // d = rows of the current block
    void min_rows(const Reg64 &d, const Reg64 &other) {
        mov(d, var(rows_left));
        mov(other, block_rows);
        cmp(d, other);
        cmovg(d, other);
    }

    // If the results of a block are stored, this would wait for memory.
    void fetch_destination() {
        Label done;
        cmp(var(final), 0);
        je(done, T_NEAR);
        mov(temp_, var(dst));
        min_rows(rest_, wei_);
        loop_down(rest_, [&] {
            prefetchw(ptr[temp_]);
            add(temp_, var(dst_stride));
        });
        L(done);
    }

    void emit_decode() {
        const auto emit = [&](Label &routine, int rows) {
            align(16);
            L(routine);
            weave(decoding(rows, true), {});
            ret();
        };
        emit(decode_tile_, tile_rows);
        if (tail_rows_) emit(decode_tail_, tail_rows_);
    }

    // Multiplies all tiles. Each is decoded beside the products of the one before.
    void multiply_all(int row_tiles) {
        mov(var(multiplied), 1);
        call(whole_tiles_ ? decode_tile_ : decode_tail_);
        xchg(wei_, dst_);
        loop(tiles_, whole_tiles_ - 1, [&] {
            weave(decoding(tile_rows, false), products(tile_rows, row_tiles));
            xchg(wei_, dst_);
        });
        if (whole_tiles_ && tail_rows_) {
            weave(decoding(tail_rows_, false), products(tile_rows, row_tiles));
            xchg(wei_, dst_);
        }
        multiply(tail_rows_ ? tail_rows_ : tile_rows, row_tiles);
    }

    // Multiplies the tiles that have scales below the earlier windows.
    void multiply_some(int row_tiles) {
        const auto tile = [&](int rows, const Label &decode) {
            Label skip, empty, done;
            see_below(rows);
            jz(skip, T_NEAR);
            vpxord(any_, any_, any_);
            call(decode);
            vptestmb(some_, any_, any_);
            kortestq(some_, some_);
            jz(empty, T_NEAR);
            xchg(wei_, dst_);
            multiply(rows, row_tiles);
            mov(var(multiplied), 1);
            jmp(done, T_NEAR);
            L(skip);
            for (int p = 0; p < panels; p++) add(codes_of(p), tile_bytes(rows));
            L(empty);
            for (int s = 0; s < steps_of(rows); s++) add(src_, src_step_);
            L(done);
        };
        loop(tiles_, whole_tiles_, [&] { tile(tile_rows, decode_tile_); });
        if (tail_rows_) tile(tail_rows_, decode_tail_);
    }

    // The source is one ascending stream, over steps and over blocks.
    pieces_t products(int rows, int row_tiles) {
        pieces_t pieces;
        for (int s = 0; s < steps_of(rows); s++)
            for (int p = 0; p < panels; p++) {
                pieces.push_back([=] {
                    fetch_ahead(p);
                    tileloadd(wei(p), ptr[wei_ + row_bytes_ + p * panel_bytes + s * amx_tile_bytes]);
                });
                for (int t = 0; t < row_tiles; t++)
                    pieces.push_back([=] {
                        if (p == 0) load_source(t);
                        tdpbssd(sum(t, p), src(t), wei(p));
                        if (p == panels - 1 && t == row_tiles - 1) add(src_, src_step_);
                    });
            }
        return pieces;
    }
    void multiply(int rows, int row_tiles) {
        for (const auto &piece : products(rows, row_tiles)) piece();
    }

    // Also fetches the same tile of the next step, because the second-level cache is slow.
    void load_source(int row_tile) {
        tileloadd(src(row_tile), ptr[src_ + row_bytes_ + row_tile * amx_tile_bytes]);
        for (int b = 0; b < amx_tile_bytes; b += 64)
            prefetcht0(ptr[src_ + src_step_ + row_tile * amx_tile_bytes + b]);
    }

    // The next panels, which the next call usually has.
    void begin_ahead() {
        const int bytes = panels * int(n16_frame_t::panel_bytes(shape_));
        load_arg(ahead_, offsetof(fused_args_t, wei));
        add(ahead_, bytes);
        lea(ahead_end_, ptr[ahead_ + bytes]);
    }
    // As many cache lines beside the products of each panel as are needed so that all blocks of rows, or two,
    // fetch everything.
    void fetch_ahead(int panel) {
        const int64_t all = panels * n16_frame_t::panel_bytes(shape_) / 64;
        const int step_lines = int(div_up(all, blocks_ * steps_of(int(shape_.K))));
        const int lines = (step_lines + panel) / panels;
        Label done;
        cmp(ahead_, ahead_end_);
        jae(done, T_NEAR);
        for (int i = 0; i < lines; i++) prefetcht1(ptr[ahead_ + i * 64]);
        add(ahead_, lines * 64);
        L(done);
    }

    // ---- adding up ----

    // Adds up the previous block, whose sums the tiles left on the stack.
    void emit_add_up() {
        Label on_top, added, done;
        align(16);
        L(add_up_);
        mov(left_, var(to_add, true));
        test(left_, left_);
        jz(done, T_NEAR);
        lea(from_, ptr[sums_at(0, 0, true)]);
        mov(to_, var(to_add_acc, true));
        load_arg(stride_, offsetof(fused_args_t, acc_stride), true);
        cmp(var(to_add_on_top, true), 0);
        jne(on_top, T_NEAR);
        add_rows(false);
        jmp(added, T_NEAR);
        L(on_top);
        add_rows(true);
        L(added);
        mov(var(to_add, true), 0);
        mov(var(to_store, true), 0);
        L(done);
        ret();
    }
    void add_rows(bool on_top) {
        Label store, done;
        cmp(var(to_store, true), 0);
        jne(store, T_NEAR);
        loop_down(left_, [&] {
            for (int p = 0; p < panels; p++) {
                add_row(p, on_top);
                vmovups(ptr[to_ + p * amx_row_bytes], result(p));
            }
            next_row();
        });
        jmp(done, T_NEAR);
        L(store);
        store_results(on_top);
        L(done);
    }

    // Converts the sums of a row and a panel to f32, and adds them to acc if there are earlier sums.
    // Otherwise acc is not read, not even under a mask: reading memory that was never written takes seven
    // times as long.
    void add_row(int panel, bool on_top) {
        vcvtdq2ps(result(panel), ptr[from_ + panel * panel_sums_bytes]);
        if (on_top)
            vfmadd213ps(result(panel), used_scale(panel), ptr[to_ + panel * amx_row_bytes]);
        else
            vmulps(result(panel), result(panel), used_scale(panel));
    }
    void next_row() {
        add(from_, amx_row_bytes);
        add(to_, stride_);
    }

    // Sums * (scale * the scale of the row) + bias in bf16.
    void store_results(bool on_top) {
        const Reg64 &out = temp_, &row_scales = wei_;
        mov(out, var(to_store, true));
        mov(row_scales, var(to_store_scale, true));
        loop_down(left_, [&] {
            vmulps(factor_, all_factor_, ptr_b[row_scales]);
            for (int p = 0; p < panels; p++) {
                add_row(p, on_top);
                vmulps(result(p), result(p), factor_);
                vaddps(result(p), result(p), bias(p));
            }
            vcvtne2ps2bf16(result(0), result(1), result(0));
            vmovdqu16(ptr[out] | columns_, result(0));
            add(row_scales, int(sizeof(float)));
            add(out, var(dst_stride, true));
            next_row();
        });
    }
};

} // namespace

status_t make_avx512_core_amx_fused_int8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    if (p.K > exact_int8_rows) {
        *reason = "K whose sums would not be exact";
        return mxdnn_invalid_arguments;
    }
    return create_jit<amx_fused_int8_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
