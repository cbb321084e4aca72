// SPDX-License-Identifier: Apache-2.0
// Many rows of s8 source times MXFP4 on AMX tiles, in integers: a tile instruction takes twice the values of
// one of bf16. A call multiplies all rows with two panels of 16 columns, a part of K at a time, whose decoded
// weights stay in the first-level cache: they are decoded while the first 32 rows are multiplied.
//
// Tiles know no scales along K, so those of the weights become part of the integers: a doubled code has at
// most 4 bits without its sign, an s8 leaves room for three more, so blocks whose exponents are at most 3
// below the largest one of their column in this part keep their codes shifted left by what they have above
// the least exponent of that window. What lies further below is multiplied by another pass over the part
// with the window below, and so on until nothing is left; a pass in which all codes are 0, as those of
// blocks of zeros, ends with its first rows.
//
// Tiles leave sums on the stack; they are added up a block of rows later, when they have arrived in the
// cache. Sums of a pass are exact, in 32 bits and in f32 too (exact_int8_rows). Each is multiplied by a power
// of two and added to acc: one rounding per part and pass. Results do not depend on how rows are divided into
// calls, but they do on the parts.
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/avx512_core_amx/weave.hpp"
#include "cpu/x64/panel_parts.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Label;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int panels = 2;
constexpr int block_rows = source_blocks_t::block_rows;
constexpr int block = 32, tile_blocks = int(n16_frame_t::min_tile_rows) / block;
constexpr int shifts = 4;    // that a code can take
constexpr int unit_rows = 8; // of K: a dword of codes per column
constexpr float unit = int8_weights(mxdnn_f4_e2m1).unit;
constexpr uint8_t less = 1, not_less = 5; // of unsigned bytes

class amx_fused_int8_t : public jit_base_t {
public:
    explicit amx_fused_int8_t(const kernel_params_t &p)
        : shape_(make_packed_shape(p.K, panel_columns, 4, p.quant)), parts_(shape_, p.part_rows, 1) {}

private:
    const packed_shape_t shape_;
    const panel_parts_t parts_;
    const int tile_rows_ = int(parts_.tile_rows);
    const int tail_rows_ = int(shape_.K % parts_.tile_rows);
    const int tile_bytes_ = int(parts_.tile_bytes);
    const int panel_bytes_ = int(parts_.panel_bytes()); // of a decoded part

    // ---- registers ----

    const Reg64 temp_ = rax;
    // Decoding.
    const Reg64 codes_ = r8, codes1_ = r9, dst_ = r11, tiles_ = r10;
    const Reg64 &codes_of(int panel) const { return panel ? codes1_ : codes_; }
    // Multiplying.
    const Reg64 src_ = rsi, src_step_ = rbx, wei_ = rdx, row_bytes_ = rcx, steps_ = r14, acc_ = rdi;
    const Reg64 ahead_[panels] = {r12, r13}, ahead_end_ = r15; // codes that are fetched; of the first panel
    // Adding sums up.
    const Reg64 from_ = r8, to_ = r9, stride_ = r10, left_ = r11;

    const Zmm table_ = Zmm(0), low_ = Zmm(1), header_ = Zmm(6), shift_ = Zmm(7), raw_ = Zmm(8),
              high_ = Zmm(9);
    const Zmm any_ = Zmm(10); // all codes of the pass, one over the other
    const Zmm most_ = Zmm(18), least_ = Zmm(19), nan_bytes_ = Zmm(20);
    static Zmm spread(int block) { return Zmm(2 + block); }
    static Zmm limit(int panel) { return Zmm(11 + panel); } // exponents that are left are below
    // Of sums: of this pass, and of those that are added up next.
    static Zmm scale(int panel) { return Zmm(14 + panel); }
    static Zmm used_scale(int panel) { return Zmm(16 + panel); }
    const Zmm before_ = Zmm(21), factor_ = Zmm(22), all_factor_ = Zmm(23);
    static Zmm result(int panel) { return Zmm(24 + panel); }
    static Zmm bias(int panel) { return Zmm(26 + panel); }
    static Zmm base(int panel) { return Zmm(28 + panel); }
    const Opmask some_ = k1, valid_ = k2, nan_ = k3;
    const Opmask kept_ = k4, used_kept_ = k5; // none before acc has sums, like scales
    const Opmask columns_ = k6;               // of results

    static Tmm sum(int half, int panel) { return Tmm(half * panels + panel); }
    static Tmm src(int half) { return Tmm(4 + half); }
    static Tmm wei(int panel) { return Tmm(6 + panel); }

    // ---- the stack ----

    enum slot_t {
        args,
        codes, // of both panels, where the part starts
        codes1,
        part, // parts left
        part_src,
        part_steps,
        part_tiles, // whole tiles, and whether a partial one follows
        part_tail,
        wanted, // panels that need another pass
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
    // Inside a routine the return address lies below.
    Xbyak::Address var(int s, bool in_routine = false) { return qword[rsp + s * 8 + (in_routine ? 8 : 0)]; }
    RegExp sums_at(int half, int panel, bool in_routine = false) const {
        return rsp + (sums_offset + panel * panel_sums_bytes + half * amx_tile_bytes + (in_routine ? 8 : 0));
    }
    void load_arg(const Reg64 &r, size_t offset, bool in_routine = false) {
        mov(r, var(args, in_routine));
        mov(r, qword[r + int(offset)]);
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
        for (int p = 0; p < panels; p++) emit_find_window(p);
        emit_add_up();
        L(over);
        all_parts();
        call(add_up_);
        tilerelease();
        postamble();
    }

    void load_constants() {
        uint8_t table[64];
        for (uint32_t i = 0; i < 64; i++)
            table[i] = uint8_t(int8_t(f4_e2m1_t::decode(i % 16) / unit) * (1 << i / 16));
        vmovdqa64(table_, constant(table, sizeof(table)));
        vmovdqa64(low_, constant(uint8_t(0x0f)));
        vmovdqa64(nan_bytes_, constant(uint8_t(e8m0_t::nan_code)));
        for (int b = 0; b < tile_blocks; b++) {
            uint8_t index[64];
            for (int i = 0; i < 64; i++) index[i] = uint8_t(b * panel_columns + i / 4);
            vmovdqa64(spread(b), constant(index, sizeof(index)));
        }
    }

    // ---- decoding ----

    Label find_window_[panels], add_up_;

    // f(rows) for the tiles of a part.
    template <typename F>
    void for_tiles(bool in_routine, F f) {
        Label no_tiles, done;
        mov(tiles_, var(part_tiles, in_routine));
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { f(tile_rows_); });
        L(no_tiles);
        if (!tail_rows_) return;
        cmp(var(part_tail, in_routine), 0);
        je(done, T_NEAR);
        f(tail_rows_);
        L(done);
    }

    // The exponents of the pass, base to base + 3 of each column, the factor of its sums, and whether there
    // are others below.
    void emit_find_window(int panel) {
        Label last;
        align(16);
        L(find_window_[panel]);
        mov(codes_, var(codes + panel, true));
        vpxord(most_, most_, most_);
        vmovdqa64(least_, nan_bytes_);
        kxorq(nan_, nan_, nan_);
        for_tiles(true, [&](int rows) {
            const int blocks = int(div_up(rows, block));
            if (blocks == tile_blocks) {
                vmovdqu64(header_, ptr[codes_]);
                vpminub(least_, least_, header_);
            } else { // what follows is no scale
                mov(temp_, (uint64_t(1) << blocks * panel_columns) - 1);
                kmovq(valid_, temp_);
                vmovdqu8(header_ | valid_ | T_z, ptr[codes_]);
                vpminub(least_ | valid_, least_, header_);
            }
            vpcmpub(some_, header_, limit(panel), less);
            vpmaxub(most_ | some_, most_, header_);
            vpcmpeqb(some_, header_, nan_bytes_);
            korq(nan_, nan_, some_);
            add(codes_, tile_bytes_);
        });
        // Of the four blocks of a tile.
        for (const uint8_t order : {uint8_t(0x4e), uint8_t(0xb1)}) {
            vshufi32x4(header_, most_, most_, order);
            vpmaxub(most_, most_, header_);
            vshufi32x4(header_, least_, least_, order);
            vpminub(least_, least_, header_);
        }
        vpsubusb(base(panel), most_, constant(uint8_t(shifts - 1)));
        vpmovzxbd(scale(panel), Xbyak::Xmm(base(panel).getIdx()));
        vpsubd(scale(panel), scale(panel), constant(uint32_t(e8m0_t::bias)));
        vcvtdq2ps(scale(panel), scale(panel));
        vmovaps(header_, constant(unit));
        vscalefps(scale(panel), header_, scale(panel));
        // In the first pass of a part, where nothing limits exponents, NaN for a column with a NaN scale.
        vpcmpeqb(some_, limit(panel), nan_bytes_);
        kandq(nan_, nan_, some_);
        kmovq(temp_, nan_);
        for (const int by : {32, 16}) {
            mov(codes_, temp_);
            shr(codes_, by);
            or_(temp_, codes_);
        }
        kmovd(some_, temp_.cvt32());
        vmovaps(scale(panel) | some_, constant(f32_nan_bits));
        vpcmpub(some_, least_, base(panel), less);
        kortestq(some_, some_);
        jz(last);
        inc(var(wanted, true));
        L(last);
        ret();
    }

    // A tile of both panels, to dst_, which is panel 0's.
    pieces_t decoding(int rows) {
        const int header = int(n16_frame_t::header_bytes(shape_, rows)), blocks = int(div_up(rows, block));
        pieces_t pieces;
        for (int p = 0; p < panels; p++) {
            const Reg64 &at = codes_of(p);
            pieces.push_back([=, &at] {
                vmovdqu64(header_, ptr[at]);
                vpcmpub(some_, header_, limit(p), not_less);
                vpsubb(header_, header_, base(p));
                vmovdqu8(header_ | some_, nan_bytes_);
            });
            for (int u = 0; u < blocks * block / unit_rows; u++)
                pieces.push_back([=, &at] {
                    if (u % (block / unit_rows) == 0) {
                        vpermb(shift_, spread(u / (block / unit_rows)), header_);
                        vpcmpub(some_, shift_, constant(uint8_t(shifts)), less);
                        vpsllw(shift_, shift_, 4); // what leaves a byte is none of `some_`
                    }
                    const int to = p * panel_bytes_ + 2 * u * amx_row_bytes;
                    vmovdqu64(raw_, ptr[at + header + u * amx_row_bytes]);
                    vpsrlw(high_, raw_, 4);
                    for (const Zmm &w : {raw_, high_}) {
                        vpternlogd(w, low_, shift_, 0xea); // (w & low) | shift
                        vpermb(w | some_ | T_z, w, table_);
                    }
                    vmovdqu64(ptr[dst_ + to], raw_);
                    vmovdqu64(ptr[dst_ + to + amx_row_bytes], high_);
                    vpternlogd(any_, raw_, high_, 0xfe); // or
                });
            pieces.push_back([=, &at] { add(at, tile_bytes_); });
        }
        pieces.push_back([=] { add(dst_, int(div_up(rows, parts_.step)) * amx_tile_bytes); });
        return pieces;
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
        for (int p = 0; p < panels; p++) call(find_window_[p]);
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
        const int lines = int(
                div_up(div_up(parts_.most_steps() * parts_.step, parts_.tile_rows) * parts_.tile_bytes / 64,
                        2 * parts_.steps(0)));
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
    if (std::max(parts.rows, parts.last_rows) > exact_int8_rows) {
        *reason = "parts of K whose sums would not be exact";
        return mxdnn_invalid_arguments;
    }
    return create_jit<amx_fused_int8_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
