// SPDX-License-Identifier: Apache-2.0
// Many rows on AMX tiles. A call multiplies all rows with two panels of 16 columns, a part of K at a time:
// a part's decoded weights and the source that they meet fit in the first-level cache. Meanwhile vector
// instructions, which tiles leave idle, decode the next part: the decoder is a routine of its own that the
// multiplying loop calls every now and then, that decodes 16 rows and remembers where it was.
//
// Sums wait in acc from part to part, so each is one chain of additions along k, however rows and columns are
// divided into calls. tdpbf16ps takes subnormal numbers for zero and flushes subnormal sums to zero.
#include <cstddef>

#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_walk.hpp"
#include "cpu/x64/panel_parts.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Label;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int panels = 2;
constexpr int block_rows = source_blocks_t::block_rows;

class amx_fused_t : public jit_base_t {
public:
    explicit amx_fused_t(const kernel_params_t &p)
        : walk_(*this, p, {r8, r9, r10, r12, r13, rax}, 1), parts_(walk_.shape(), p.part_rows) {}

private:
    panel_walk_t walk_;
    const panel_parts_t parts_;
    const int64_t panel_bytes_ = parts_.panel_bytes(); // of a decoded part

    // The decoder's: codes r8, dst r9, params r10, units r12, steps r13, and
    const Reg64 tiles_ = r11;
    // The multiplier's.
    const Reg64 src_ = rsi, src_step_ = rbx, wei_ = rdx, row_bytes_ = rcx, steps_ = r14;
    const Reg64 turn_ = r15; // wraps around when it is the decoder's turn
    const Reg64 acc_ = rdi;
    const Reg64 temp_ = rax;

    // Storing results.
    const Xbyak::Opmask columns_ = k5;
    Zmm scale() const { return walk_.spare(0); }
    Zmm bias(int panel) const { return walk_.spare(1 + panel); }
    Zmm result(int panel) const { return walk_.spare(3 + panel); }

    static Tmm sum(int half, int panel) { return Tmm(half * panels + panel); }
    static Tmm src(int half) { return Tmm(4 + half); }
    static Tmm wei(int panel) { return Tmm(6 + panel); }

    // The stack.
    enum slot_t {
        args,
        resume, // where the decoder goes on
        codes,  // of both panels, where the next part starts
        codes1,
        decode_to,    // the part's place
        decode_tiles, // whole tiles, and whether a partial one follows
        decode_tail,
        part,    // parts left
        part_at, // decoded weights of the part at hand, and of the next one
        part_next,
        part_src,
        part_steps,
        rows_left,
        dst,
        rate,     // added to turn_, 2^32 being once around
        to_store, // rows of the block before this one, if its results are still to be stored,
        store_acc,
        store_dst, // and where
        dst_stride,
        slots
    };
    static constexpr int params_offset = int(round_up(slots * 8, 64));
    // Inside the decoder the return address lies below.
    Xbyak::Address var(int s, bool in_decoder = false) { return qword[rsp + s * 8 + (in_decoder ? 8 : 0)]; }
    RegExp params() const { return rsp + params_offset + 8; }
    void load_arg(const Reg64 &r, size_t offset) {
        mov(r, var(args));
        mov(r, qword[r + int(offset)]);
    }

    void generate() override {
        Label multiply, begin;
        preamble(params_offset + walk_.param_bytes());
        mov(var(args), abi_param);
        const tile_config_t whole = whole_tiles();
        ldtilecfg(constant(&whole, sizeof(whole)));
        walk_.load_constants();
        mov(row_bytes_, amx_row_bytes);
        xor_(turn_, turn_);
        load_arg(temp_, offsetof(fused_args_t, dst_stride));
        mov(var(dst_stride), temp_);
        mov(var(to_store), 0);
        for (int i = 0; i < 2; i++) {
            load_arg(temp_, offsetof(fused_args_t, part) + i * sizeof(void *));
            mov(var(part_at + i), temp_);
            load_arg(temp_, offsetof(fused_args_t, wei) + i * sizeof(void *));
            mov(var(codes + i), temp_);
        }
        mov(temp_, var(args));
        cmp(qword[temp_ + int(offsetof(fused_args_t, begin))], 0);
        jne(begin, T_NEAR);
        for (int i = 0; i < 2; i++) add(var(codes + i), int(parts_.code_bytes()));
        jmp(multiply, T_NEAR);
        emit_decoder();
        emit_store();
        L(begin);
        start_decoder(part_at, parts_.count == 1);
        finish_decoding();
        L(multiply);
        all_parts();
        tilerelease();
        postamble();
    }

    // ---- the decoder ----

    Label go_on_, done_, store_;

    // Decodes 16 rows of the part that start_decoder() set, or does nothing when that is finished.
    void emit_decoder() {
        const Reg64 &codes_reg = r8, &dst = r9;
        const auto pause = [&] {
            Label here;
            lea(temp_, ptr[rip + here]);
            mov(var(resume, true), temp_);
            ret();
            L(here);
        };
        align(16);
        L(go_on_);
        const auto tile = [&](int rows) {
            for (int p = 0; p < panels; p++) {
                mov(codes_reg, var(codes + p, true));
                mov(dst, var(decode_to, true));
                if (p) add(dst, int(panel_bytes_));
                walk_.tile(params(), rows, pause);
                mov(var(codes + p, true), codes_reg);
            }
            add(var(decode_to, true), rows / k_step * amx_tile_bytes);
        };
        Label no_tiles, no_tail;
        mov(tiles_, var(decode_tiles, true));
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { tile(walk_.tile_rows()); });
        L(no_tiles);
        if (const int tail = walk_.tail_rows()) {
            cmp(var(decode_tail, true), 0);
            je(no_tail, T_NEAR);
            tile(tail);
            L(no_tail);
        }
        lea(temp_, ptr[rip + done_]);
        mov(var(resume, true), temp_);
        L(done_);
        ret();
    }
    // For the part of `codes`, to be left where the slot `to` says.
    void start_decoder(int to, bool last) {
        mov(temp_, var(to));
        mov(var(decode_to), temp_);
        mov(var(decode_tiles), int(last ? parts_.last_rows / walk_.tile_rows() : parts_.tiles()));
        mov(var(decode_tail), last && walk_.tail_rows());
        lea(temp_, ptr[rip + go_on_]);
        mov(var(resume), temp_);
    }
    void finish_decoding() {
        Label again, finished;
        align(16);
        L(again);
        lea(temp_, ptr[rip + done_]);
        cmp(var(resume), temp_);
        je(finished, T_NEAR);
        call(var(resume));
        jmp(again, T_NEAR);
        L(finished);
    }

    // ---- the multiplier ----

    void all_parts() {
        Label next, not_last, set, no_more, ready;
        mov(var(part), int(parts_.count));
        load_arg(temp_, offsetof(fused_args_t, src));
        mov(var(part_src), temp_);
        load_arg(temp_, offsetof(fused_args_t, decode_rate));
        mov(var(rate), temp_);
        L(next);
        // What is decoded meanwhile: the next part, or the first one of the next panels.
        cmp(var(part), 1);
        jne(not_last, T_NEAR);
        load_arg(temp_, offsetof(fused_args_t, next));
        test(temp_, temp_);
        jz(no_more, T_NEAR);
        mov(var(codes), temp_);
        load_arg(temp_, offsetof(fused_args_t, next) + sizeof(void *));
        mov(var(codes1), temp_);
        start_decoder(part_next, parts_.count == 1);
        jmp(ready, T_NEAR);
        L(no_more);
        lea(temp_, ptr[rip + done_]);
        mov(var(resume), temp_);
        jmp(ready, T_NEAR);
        L(not_last);
        start_decoder(part_next, false);
        if (parts_.count > 1) {
            cmp(var(part), 2);
            jne(ready, T_NEAR);
            start_decoder(part_next, true);
        }
        L(ready);

        mov(var(part_steps), int(parts_.steps(0)));
        mov(src_, var(part_src));
        cmp(var(part), 1);
        jne(set, T_NEAR);
        mov(var(part_steps), int(parts_.steps(parts_.count - 1)));
        load_arg(src_, offsetof(fused_args_t, src_last));
        L(set);
        all_blocks();
        finish_decoding();
        call(store_);

        mov(temp_, var(part_at));
        xchg(temp_, var(part_next));
        mov(var(part_at), temp_);
        load_arg(temp_, offsetof(fused_args_t, src_part_stride));
        add(var(part_src), temp_);
        dec(var(part));
        jnz(next, T_NEAR);
    }

    void all_blocks() {
        Label next, whole, one, after;
        load_arg(temp_, offsetof(fused_args_t, rows));
        mov(var(rows_left), temp_);
        load_arg(acc_, offsetof(fused_args_t, acc));
        load_arg(temp_, offsetof(fused_args_t, dst));
        mov(var(dst), temp_);
        L(next);
        fetch_destination();
        // A step of a block is as many pieces of 64 bytes as the block has rows.
        mov(src_step_, var(rows_left));
        cmp(src_step_, block_rows);
        jle(whole, T_NEAR);
        mov(src_step_, block_rows);
        L(whole);
        cmp(src_step_, amx_tile_rows);
        jle(one, T_NEAR);
        block(2);
        jmp(after, T_NEAR);
        L(one);
        block(1);
        L(after);
        call(store_);
        next_destination();
        load_arg(temp_, offsetof(fused_args_t, acc_stride));
        shl(temp_, 5); // by 32
        add(acc_, temp_);
        sub(var(rows_left), block_rows);
        jg(next, T_NEAR);
    }

    // Two lines of each of a block's rows, with the last part: the results follow soon, and storing them
    // would wait for memory.
    void fetch_destination() {
        Label done;
        cmp(var(part), 1);
        jne(done, T_NEAR);
        mov(temp_, var(dst));
        test(temp_, temp_);
        jz(done, T_NEAR);
        load_arg(steps_, offsetof(fused_args_t, dst_stride));
        for (int r = 0; r < block_rows; r++) {
            for (int line = 0; line < 2; line++) prefetchw(ptr[temp_ + line * 64]);
            add(temp_, steps_);
        }
        L(done);
    }

    // After a block of the last part.
    void next_destination() {
        Label done;
        cmp(var(part), 1);
        jne(done, T_NEAR);
        mov(temp_, var(dst));
        test(temp_, temp_);
        jz(done, T_NEAR);
        mov(var(store_dst), temp_);
        mov(steps_, var(dst_stride));
        shl(steps_, 5); // by 32
        add(temp_, steps_);
        mov(var(dst), temp_);
        load_arg(temp_, offsetof(fused_args_t, store_columns));
        test(temp_, temp_);
        jz(done, T_NEAR);
        mov(temp_, var(rows_left));
        mov(steps_, block_rows);
        cmp(temp_, steps_);
        cmovg(temp_, steps_);
        mov(var(to_store), temp_);
        mov(var(store_acc), acc_);
        L(done);
    }

    // Stores results of the block before, whose sums have arrived in the first-level cache by now.
    void emit_store() {
        const Reg64 &from = wei_, &to = src_step_, &from_stride = temp_;
        Label next, none;
        align(16);
        L(store_);
        mov(steps_, var(to_store, true));
        test(steps_, steps_);
        jz(none, T_NEAR);
        mov(temp_, var(args, true));
        mov(steps_, qword[temp_ + int(offsetof(fused_args_t, store_columns))]);
        mov(from, -1);
        bzhi(from, from, steps_);
        kmovd(columns_, from.cvt32());
        mov(steps_, qword[temp_ + int(offsetof(fused_args_t, bias))]);
        for (int p = 0; p < panels; p++) vmovups(bias(p), ptr[steps_ + p * amx_row_bytes]);
        vbroadcastss(scale(), dword[temp_ + int(offsetof(fused_args_t, scale))]);
        mov(from_stride, qword[temp_ + int(offsetof(fused_args_t, acc_stride))]);
        mov(from, var(store_acc, true));
        mov(to, var(store_dst, true));
        mov(steps_, var(to_store, true));
        loop_down(steps_, [&] {
            for (int p = 0; p < panels; p++) {
                vmulps(result(p), scale(), ptr[from + p * amx_row_bytes]);
                vaddps(result(p), result(p), bias(p));
            }
            vcvtne2ps2bf16(result(0), result(1), result(0));
            vmovdqu16(ptr[to] | columns_, result(0));
            add(from, from_stride);
            add(to, var(dst_stride, true));
        });
        mov(var(to_store, true), 0);
        L(none);
        ret();
    }

    void block(int halves) {
        Label first, loaded;
        cmp(var(part), int(parts_.count));
        je(first, T_NEAR);
        for_sums(halves, [&](const Tmm &t, const Xbyak::Address &at) { tileloadd(t, at); });
        jmp(loaded, T_NEAR);
        L(first);
        for (int i = 0; i < halves * panels; i++) tilezero(Tmm(i));
        L(loaded);
        shl(src_step_, 6);
        mov(wei_, var(part_at));
        mov(steps_, var(part_steps));
        loop_down(steps_, [&] { step(halves); });
        for_sums(halves, [&](const Tmm &t, const Xbyak::Address &at) { tilestored(at, t); });
    }
    // f(tile, its place in acc) for all sums.
    template <typename F>
    void for_sums(int halves, F f) {
        const Reg64 &below = steps_;
        load_arg(temp_, offsetof(fused_args_t, acc_stride));
        if (halves == 2) {
            mov(below, temp_);
            shl(below, 4);
            add(below, acc_);
        }
        for (int h = 0; h < halves; h++)
            for (int p = 0; p < panels; p++)
                f(sum(h, p), ptr[(h ? below : acc_) + temp_ + p * amx_row_bytes]);
    }

    // The source is one ascending stream, from step to step and from block to block.
    void step(int halves) {
        // Each of its lines is read once in a part: the hint leaves the cache to the weights.
        const auto load_src = [&](int h) {
            tileloaddt1(src(h), ptr[src_ + row_bytes_ + h * amx_tile_bytes]);
        };
        const auto load_wei = [&](int p) {
            tileloadd(wei(p), ptr[wei_ + row_bytes_ + int(p * panel_bytes_)]);
        };
        load_src(0);
        load_wei(0);
        tdpbf16ps(sum(0, 0), src(0), wei(0));
        if (halves == 2) {
            load_src(1);
            tdpbf16ps(sum(1, 0), src(1), wei(0));
        }
        perhaps_decode();
        load_wei(1);
        if (halves == 2) tdpbf16ps(sum(1, 1), src(1), wei(1));
        tdpbf16ps(sum(0, 1), src(0), wei(1));
        perhaps_decode();
        add(src_, src_step_);
        add(wei_, amx_tile_bytes);
    }

    void perhaps_decode() {
        Label not_yet;
        add(turn_.cvt32(), dword[rsp + rate * 8]);
        jnc(not_yet, T_NEAR);
        call(var(resume));
        L(not_yet);
    }
};

} // namespace

status_t make_avx512_core_amx_fused(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<amx_fused_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
