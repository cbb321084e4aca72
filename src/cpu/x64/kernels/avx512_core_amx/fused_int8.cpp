// SPDX-License-Identifier: Apache-2.0
// Many rows of s8 source times MXFP4 on AMX tiles, in integers: a tile instruction takes twice the values of
// one of bf16. A call multiplies all rows with two panels of 16 columns, a part of K at a time, whose decoded
// weights stay in the first-level cache: they are decoded while the first 32 rows are multiplied.
//
// Weights are integers too, window by window of exponents: int8_windows.hpp.
//
// Tiles leave sums on the stack; they are added up a block of rows later, when they have arrived in the
// cache. Sums of a pass are exact, in 32 bits and in f32 too (exact_int8_rows). Each is multiplied by a power
// of two and added to acc: one rounding per part and pass. Results do not depend on how rows are divided into
// calls, but they do on the parts.
#include <cstddef>

#include "cpu/x64/kernels/avx512_core_amx/int8_windows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::RegExp;
using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int block_rows = source_blocks_t::block_rows;

class amx_fused_int8_t : public int8_windows_t {
public:
    using int8_windows_t::int8_windows_t;

private:
    // ---- registers ----

    // Multiplying.
    const Reg64 src_ = rsi, src_step_ = rbx, wei_ = rdx, row_bytes_ = rcx, steps_ = r14, acc_ = rdi;
    const Reg64 ahead_[panels] = {r12, r13}, ahead_end_ = r15; // codes that are fetched; of the first panel
    // Adding sums up.
    const Reg64 from_ = r8, to_ = r9, stride_ = r10, left_ = r11;

    // Of sums that are added up next.
    static Zmm used_scale(int panel) { return Zmm(16 + panel); }
    const Zmm before_ = Zmm(21), factor_ = Zmm(22), all_factor_ = Zmm(23);
    static Zmm result(int panel) { return Zmm(24 + panel); }
    static Zmm bias(int panel) { return Zmm(26 + panel); }
    const Opmask kept_ = k4, used_kept_ = k5; // none before acc has sums, like scales
    const Opmask columns_ = k6;               // of results

    static Tmm sum(int half, int panel) { return Tmm(half * panels + panel); }
    static Tmm src(int half) { return Tmm(4 + half); }
    static Tmm wei(int panel) { return Tmm(6 + panel); }

    Label add_up_;

    // ---- the stack ----

    enum slot_t {
        part = own_slot, // parts left
        part_src,
        part_steps,
        rows_left,
        final, // not 0: the last pass of the last part, after which results are stored
        dst,
        row_scale,
        // The block before this one, if its sums are still to be added: its rows, where, and what to store.
        to_add,
        to_add_acc,
        to_store,
        to_store_scale,
        dst_stride,
        slots
    };
    static constexpr int panel_sums_bytes = block_rows * amx_row_bytes;
    static constexpr int sums_offset = int(round_up(slots * 8, 64));
    RegExp sums_at(int half, int panel, bool in_routine = false) const {
        return rsp + (sums_offset + panel * panel_sums_bytes + half * amx_tile_bytes + (in_routine ? 8 : 0));
    }

    void generate() override {
        Label over;
        preamble(sums_offset + panels * panel_sums_bytes);
        mov(var(args), abi_param);
        const tile_config_t whole = whole_tiles();
        ldtilecfg(constant(&whole, sizeof(whole)));
        load_constants();
        mov(row_bytes_, amx_row_bytes);
        mov(var(to_add), 0);
        mov(var(to_store), 0);
        kxorw(kept_, kept_, kept_);
        begin_results();
        jmp(over, T_NEAR);
        emit_find_windows();
        emit_add_up();
        L(over);
        all_parts();
        call(add_up_);
        tilerelease();
        postamble();
    }

    // ---- multiplying ----

    void all_parts() {
        Label next, another;
        for (int p = 0; p < panels; p++) {
            load_arg(temp_, offsetof(fused_args_t, wei) + size_t(p) * sizeof(void *));
            mov(var(codes + p), temp_);
        }
        load_arg(temp_, offsetof(fused_args_t, src));
        mov(var(part_src), temp_);
        mov(var(part), int(parts_.count));
        L(next);
        begin_part();
        L(another);
        mov(var(wanted), 0);
        vpxord(any_, any_, any_);
        find_windows();
        is_final();
        all_blocks();
        kxnorw(kept_, kept_, kept_);
        for (int p = 0; p < panels; p++) vmovdqa64(limit(p), base(p));
        cmp(var(wanted), 0);
        jne(another, T_NEAR);

        for (int p = 0; p < panels; p++) add(var(codes + p), int(parts_.code_bytes()));
        load_arg(temp_, offsetof(fused_args_t, src_part_stride));
        add(var(part_src), temp_);
        dec(var(part));
        jnz(next, T_NEAR);
    }

    void begin_results() {
        Label none;
        load_arg(temp_, offsetof(fused_args_t, dst_stride));
        mov(var(dst_stride), temp_);
        load_arg(steps_, offsetof(fused_args_t, store_columns));
        test(steps_, steps_);
        jz(none);
        mov(temp_, -1);
        bzhi(temp_, temp_, steps_);
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
        cmp(var(part), 1);
        jne(no);
        cmp(var(wanted), 0);
        jne(no);
        load_arg(temp_, offsetof(fused_args_t, store_columns));
        mov(var(final), temp_);
        L(no);
    }

    void begin_part() {
        const auto code_bytes = [&](bool last) {
            return int(last ? n16_frame_t::panel_bytes(shape_) - (parts_.count - 1) * parts_.code_bytes()
                            : parts_.code_bytes());
        };
        Label last, none, done;
        for (int p = 0; p < panels; p++) vmovdqa64(limit(p), nan_bytes_);
        cmp(var(part), 1);
        je(last, T_NEAR);
        // What comes next is fetched meanwhile: the next part,
        mov(var(part_steps), int(parts_.steps(0)));
        mov(var(part_tiles), int(parts_.tiles()));
        mov(var(part_tail), 0);
        for (int p = 0; p < panels; p++) {
            mov(ahead_[p], var(codes + p));
            add(ahead_[p], int(parts_.code_bytes()));
        }
        lea(ahead_end_, ptr[ahead_[0] + code_bytes(false)]);
        cmp(var(part), 2);
        jne(done, T_NEAR);
        lea(ahead_end_, ptr[ahead_[0] + code_bytes(true)]);
        jmp(done, T_NEAR);
        // or the first one of the next panels.
        L(last);
        mov(var(part_steps), int(parts_.steps(parts_.count - 1)));
        mov(var(part_tiles), int(parts_.last_rows / tile_rows_));
        mov(var(part_tail), tail_rows_ ? 1 : 0);
        load_arg(temp_, offsetof(fused_args_t, src_last));
        mov(var(part_src), temp_);
        for (int p = 0; p < panels; p++)
            load_arg(ahead_[p], offsetof(fused_args_t, next) + size_t(p) * sizeof(void *));
        xor_(ahead_end_, ahead_end_);
        test(ahead_[0], ahead_[0]);
        jz(none);
        lea(ahead_end_, ptr[ahead_[0] + code_bytes(parts_.count == 1)]);
        L(none);
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
        mov(src_, var(part_src));
        rows_block(true);
        jle(done, T_NEAR);
        // If all codes are 0, there is nothing more to add: but NaN to all rows, of which only scales of the
        // first pass are, and results to store.
        vptestmb(some_, any_, any_);
        kortestq(some_, some_);
        jnz(next, T_NEAR);
        cmp(var(final), 0);
        jne(next, T_NEAR);
        vpcmpeqb(some_, limit(0), nan_bytes_);
        kortestq(some_, some_);
        jz(done, T_NEAR);
        L(next);
        rows_block(false);
        jg(next, T_NEAR);
        L(done);
    }

    // Leaves the comparison of the rows that are left with 0. The first block decodes the weights that all
    // multiply.
    void rows_block(bool decode) {
        Label one, after;
        fetch_destination();
        // A step of a block is as many pieces of 64 bytes as the block has rows.
        min_rows(src_step_, temp_);
        cmp(src_step_, amx_tile_rows);
        jle(one, T_NEAR);
        halves_block(2, decode);
        jmp(after, T_NEAR);
        L(one);
        halves_block(1, decode);
        L(after);
        load_arg(temp_, offsetof(fused_args_t, acc_stride));
        shl(temp_, 5); // by 32
        add(acc_, temp_);
        sub(var(rows_left), block_rows);
    }

    void halves_block(int halves, bool decode) {
        for (int i = 0; i < halves * panels; i++) tilezero(Tmm(i));
        shl(src_step_, 6);
        load_arg(wei_, offsetof(fused_args_t, part));
        if (decode) {
            mov(dst_, wei_);
            for (int p = 0; p < panels; p++) mov(codes_of(p), var(codes + p));
            decode_and_multiply(halves);
        } else {
            mov(steps_, var(part_steps));
            loop_down(steps_, [&] { multiply(int(parts_.step), halves); });
        }
        // Sums of the block before have arrived in the first-level cache by now.
        call(add_up_);
        for (int h = 0; h < halves; h++)
            for (int p = 0; p < panels; p++) tilestored(ptr[sums_at(h, p) + row_bytes_], sum(h, p));
        min_rows(temp_, steps_);
        mov(var(to_add), temp_);
        mov(var(to_add_acc), acc_);
        Label done;
        cmp(var(final), 0);
        je(done, T_NEAR);
        mov(temp_, var(dst));
        mov(var(to_store), temp_);
        mov(steps_, var(dst_stride));
        shl(steps_, 5); // by 32
        add(temp_, steps_);
        mov(var(dst), temp_);
        mov(temp_, var(row_scale));
        mov(var(to_store_scale), temp_);
        add(var(row_scale), block_rows * int(sizeof(float)));
        L(done);
    }
    // d = rows of the block at hand
    void min_rows(const Reg64 &d, const Reg64 &other) {
        mov(d, var(rows_left));
        mov(other, block_rows);
        cmp(d, other);
        cmovg(d, other);
    }

    // Of a block whose results are stored: that would wait for memory.
    void fetch_destination() {
        Label done;
        cmp(var(final), 0);
        je(done, T_NEAR);
        mov(temp_, var(dst));
        min_rows(steps_, wei_);
        loop_down(steps_, [&] {
            prefetchw(ptr[temp_]);
            add(temp_, var(dst_stride));
        });
        L(done);
    }

    // Every tile of both panels is decoded beside the products of the one before it.
    void decode_and_multiply(int halves) {
        Label more, last, no_tail, no_tiles, done;
        mov(tiles_, var(part_tiles));
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        weave(decoding(tile_rows_), {});
        align(16);
        L(more);
        dec(tiles_);
        jz(last, T_NEAR);
        weave(decoding(tile_rows_), products(tile_rows_, halves));
        jmp(more, T_NEAR);
        L(last);
        if (tail_rows_) {
            cmp(var(part_tail), 0);
            je(no_tail, T_NEAR);
            weave(decoding(tail_rows_), products(tile_rows_, halves));
            multiply(tail_rows_, halves);
            jmp(done, T_NEAR);
            L(no_tail);
        }
        multiply(tile_rows_, halves);
        jmp(done, T_NEAR);
        L(no_tiles);
        if (tail_rows_) {
            weave(decoding(tail_rows_), {});
            multiply(tail_rows_, halves);
        }
        L(done);
    }

    // The source is one ascending stream, from step to step and from block to block; each of its lines is
    // read once in a pass: the hint leaves the cache to the weights.
    pieces_t products(int rows, int halves) {
        pieces_t pieces;
        for (int s = 0; s < int(div_up(rows, parts_.step)); s++) {
            pieces.push_back([=] {
                tileloaddt1(src(0), ptr[src_ + row_bytes_]);
                tileloadd(wei(0), ptr[wei_ + row_bytes_]);
                tdpbssd(sum(0, 0), src(0), wei(0));
            });
            if (halves == 2)
                pieces.push_back([=] {
                    tileloaddt1(src(1), ptr[src_ + row_bytes_ + amx_tile_bytes]);
                    tdpbssd(sum(1, 0), src(1), wei(0));
                });
            pieces.push_back([=] {
                fetch_ahead();
                tileloadd(wei(1), ptr[wei_ + row_bytes_ + panel_bytes_]);
                if (halves == 2) tdpbssd(sum(1, 1), src(1), wei(1));
            });
            pieces.push_back([=] {
                tdpbssd(sum(0, 1), src(0), wei(1));
                add(src_, src_step_);
                add(wei_, amx_tile_bytes);
            });
        }
        return pieces;
    }
    void multiply(int rows, int halves) {
        for (const auto &piece : products(rows, halves)) piece();
    }

    // So many lines that two blocks of rows fetch all, to where they do not displace the part at hand.
    void fetch_ahead() {
        const int64_t steps = parts_.steps(0);
        const int lines = int(
                div_up(div_up(steps * parts_.step, parts_.tile_rows) * parts_.tile_bytes / 64, 2 * steps));
        Label done;
        cmp(ahead_[0], ahead_end_);
        jae(done, T_NEAR);
        for (int i = 0; i < lines; i++)
            for (int p = 0; p < panels; p++) prefetcht1(ptr[ahead_[p] + i * 64]);
        for (int p = 0; p < panels; p++) add(ahead_[p], lines * 64);
        L(done);
    }

    // ---- adding up ----

    // The block before this one, whose sums tiles have left on the stack.
    void emit_add_up() {
        Label store, added, done;
        align(16);
        L(add_up_);
        mov(left_, var(to_add, true));
        test(left_, left_);
        jz(done, T_NEAR);
        lea(from_, ptr[sums_at(0, 0, true)]);
        mov(to_, var(to_add_acc, true));
        load_arg(stride_, offsetof(fused_args_t, acc_stride), true);
        cmp(var(to_store, true), 0);
        jne(store, T_NEAR);
        loop_down(left_, [&] {
            for (int p = 0; p < panels; p++) {
                add_row(p);
                vmovups(ptr[to_ + p * amx_row_bytes], result(p));
            }
            next_row();
        });
        jmp(added, T_NEAR);
        L(store);
        store_results();
        L(added);
        mov(var(to_add, true), 0);
        mov(var(to_store, true), 0);
        L(done);
        for (int p = 0; p < panels; p++) vmovaps(used_scale(p), scale(p));
        kmovw(used_kept_, kept_);
        ret();
    }

    // A panel's sums of a row, as numbers and on top of those that acc has.
    void add_row(int panel) {
        vcvtdq2ps(result(panel), ptr[from_ + panel * panel_sums_bytes]);
        vmovups(before_ | used_kept_ | T_z, ptr[to_ + panel * amx_row_bytes]);
        vfmadd213ps(result(panel), used_scale(panel), before_);
    }
    void next_row() {
        add(from_, amx_row_bytes);
        add(to_, stride_);
    }

    // Sums * (scale * the row's) + bias in bf16.
    void store_results() {
        const Reg64 &out = temp_, &row_scales = wei_;
        mov(out, var(to_store, true));
        mov(row_scales, var(to_store_scale, true));
        loop_down(left_, [&] {
            vmulps(factor_, all_factor_, ptr_b[row_scales]);
            for (int p = 0; p < panels; p++) {
                add_row(p);
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
    const panel_parts_t parts(make_packed_shape(p.K, panel_columns, 4, p.quant), p.part_rows, 1);
    if (parts.rows > exact_int8_rows) {
        *reason = "parts of K whose sums would not be exact";
        return mxdnn_invalid_arguments;
    }
    return create_jit<amx_fused_int8_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
