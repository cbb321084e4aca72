// SPDX-License-Identifier: Apache-2.0
// Direct kernels on bytes for ISAs without a dot product of their own: rows of int8 source
// (int8_row.hpp) times weights of 4 bits that are small integers: int4, and MXFP4 doubled.
//
// vpmaddubsw multiplies weights, made positive by their offset (at most 24), with codes of the
// source and adds pairs: at most 6144 in 16 bits. Four of those fit (24576), so a step of 32 rows
// of K is two sums in 16 bits, which vpmaddwd with ones widens: exact throughout. The sum is
// converted to f32 (exact below 2^24), less a zero point exact too, multiplied by the row's scale, a
// power of two or 1, and added to the result times the weights' scale: one rounding per step, and one
// more for a zero that is floating-point.
//
// The tiles of all panels are walked side by side, as f32_direct.hpp does; results stay in memory.
#pragma once

#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/f32_vec.hpp"
#include "cpu/x64/jit/row_addr.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

template <class Vec>
class int8_direct_t : public f32_base_t<Vec> {
public:
    explicit int8_direct_t(const kernel_params_t &p)
        : rows_(p.rows), panels_(p.panels), wei_dt_(p.wei_dt), quant_(p.quant),
          shape_(make_packed_shape(p.K, panel_columns, 4, p.quant)), together_(p.rows == 1 ? halves : 1),
          regs_(Vec::regs), low_mask_(regs_.take()), table_(regs_.take()), ones_(regs_.take()),
          src_(regs_.take()), tmp_(regs_.take()), wei_(regs_.take(2 * together_)),
          zeros_(has_zeros() ? regs_.take(together_) : 0), pairs_(regs_.take(rows_ * together_)),
          sums_(regs_.take(rows_ * together_)) {}

    static constexpr int max_rows = Vec::is_zmm ? 8 : 4;

private:
    using base_t = f32_base_t<Vec>;
    using reg_t = typename Vec::reg_t;
    using base_t::rax, base_t::rbx, base_t::rcx, base_t::rdx, base_t::rdi, base_t::rsi, base_t::rsp,
            base_t::r8, base_t::r9, base_t::r10, base_t::r11, base_t::r12, base_t::r13, base_t::r14,
            base_t::r15, base_t::ptr, base_t::abi_param;

    static_assert(max_rows <= row_addr_t::rows_per_base, "one base register for the rows");
    static constexpr int halves = panel_columns / Vec::lanes;
    static constexpr int unit_rows = 8; // of K: a dword of codes per column
    static constexpr int units = k_step / unit_rows;
    static constexpr int unit_bytes = unit_rows * panel_columns / 2;
    // About two tiles. This is far enough ahead for memory, and near enough for the first-level cache.
    static constexpr int prefetch_ahead = 4096;

    const int rows_, panels_;
    const data_type_t wei_dt_;
    const quant_t quant_;
    const packed_shape_t shape_;
    const int together_; // halves of a panel that are multiplied at once
    vregs_t regs_;
    const reg_t low_mask_, table_, ones_, src_, tmp_;
    const int wei_, zeros_, pairs_, sums_;

    bool has_zeros() const { return quant_.zp != zero_point_kind_t::none; }
    bool adds_zeros() const { return is_added(quant_.zp); }
    // Sums of u4 codes begin at 0, unless codes count from the middle. Zero points are subtracted at the end.
    bool begins_at_zero() const { return wei_dt_ == mxdnn_u4 && code_of_added(quant_.zp) == 0; }

    reg_t wei(int half, int high) const { return reg_t(wei_ + half * 2 + high); }
    reg_t zeros(int half) const { return reg_t(zeros_ + half); }
    reg_t pairs(int row, int half) const { return reg_t(pairs_ + row * together_ + half); } // 16 bits
    reg_t sum(int row, int half) const { return reg_t(sums_ + row * together_ + half); }    // 32 bits

    const row_addr_t src_at_ = {{rsi, rsi}, rax, rbx, r12, r13};
    const row_addr_t scale_at_ = {{r15, r15}, rax, rbx, r12, r13}; // scale of the current block
    const Xbyak::Reg64 codes_ = r8, panel_ = r9, tile_ = r10, row_ = r11, params_ = rcx, acc_ = rdx,
                       zp_ = rdi, blocks_ = r14;

    // Stack: counters of the outer loops, stride of the weights, address of the results.
    enum slot_t {
        at_tiles = 0,
        at_panels = 8,
        at_wei_stride = 16,
        at_acc = 24,
        at_acc_stride = 32,
        at_steps = 40,
        stack_bytes = 64
    };
    Xbyak::Address slot(slot_t s) const { return base_t::qword[rsp + int(s)]; }

    void generate() override {
        this->preamble(stack_bytes);
        const auto arg = [&](size_t offset) { return ptr[abi_param + int(offset)]; };
        this->mov(src_at_.base[0], arg(offsetof(direct_args_t, src)));
        this->mov(src_at_.stride, arg(offsetof(direct_args_t, src_stride)));
        src_at_.set_multiples(*this, rows_);
        this->lea(scale_at_.base[0], ptr[src_at_.base[0] + int(int8_row_t::scales_at(shape_.K))]);
        this->mov(tile_, arg(offsetof(direct_args_t, wei)));
        this->mov(row_, arg(offsetof(direct_args_t, wei_stride)));
        this->mov(slot(at_wei_stride), row_);
        this->mov(acc_, arg(offsetof(direct_args_t, acc)));
        this->mov(slot(at_acc), acc_);
        this->mov(row_, arg(offsetof(direct_args_t, acc_stride)));
        this->mov(slot(at_acc_stride), row_);
        zero_acc();
        load_constants();

        const int64_t rows = n16_frame_t::tile_rows(shape_);
        const int64_t full = shape_.K / rows, tail = shape_.K % rows;
        if (full) {
            Xbyak::Label again;
            this->mov(slot(at_tiles), int(full));
            this->align(16);
            this->L(again);
            tile_of_panels(rows);
            src_at_.advance(*this, rows_, int(rows));
            scale_at_.advance(*this, rows_, int(rows / int8_row_t::block * 4));
            this->add_imm(tile_, n16_frame_t::tile_bytes(shape_, rows));
            this->dec(slot(at_tiles));
            this->jnz(again, base_t::T_NEAR);
        }
        if (tail) tile_of_panels(tail);
        this->postamble();
    }

    void zero_acc() {
        this->set_zero(src_);
        this->mov(row_, acc_);
        for (int r = 0; r < rows_; r++) {
            if (r) this->add(row_, slot(at_acc_stride));
            for (int v = 0; v < panels_ * halves; v++) this->vmovups(ptr[row_ + v * Vec::bytes], src_);
        }
    }

    void load_constants() {
        const int8_weights_t w = int8_weights(wei_dt_, quant_);
        uint8_t table[16]; // codes as unsigned integers: u4 as they are, others with their offset
        for (uint32_t c = 0; c < 16; c++)
            table[c] = uint8_t(
                    int(data_type_info(wei_dt_)->decode(c) / w.unit) + (wei_dt_ == mxdnn_u4 ? 0 : w.offset));
        this->vmovups(low_mask_, this->constant(uint8_t(0x0f)));
        this->vmovups(table_, this->constant(table, sizeof(table)));
        this->vmovups(ones_, this->constant(uint16_t(1)));
    }

    void tile_of_panels(int64_t rows) {
        this->mov(acc_, slot(at_acc));
        this->mov(panel_, tile_);
        if (panels_ == 1) return tile(rows);
        Xbyak::Label again;
        this->mov(slot(at_panels), panels_);
        this->align(16);
        this->L(again);
        tile(rows);
        this->add(acc_, panel_columns * 4);
        this->add(panel_, slot(at_wei_stride));
        this->dec(slot(at_panels));
        this->jnz(again, base_t::T_NEAR);
    }

    // One tile of one panel. The source address does not change.
    void tile(int64_t rows) {
        const int64_t block = shape_.block;
        this->mov(params_, panel_);
        this->lea(codes_, ptr[panel_ + int(n16_frame_t::header_bytes(shape_, rows))]);
        const bool short_blocks = block <= k_step; // the last one has codes for a whole step, too
        if (has_zeros())
            this->lea(zp_, ptr[panel_ + int(div_up(rows, block)) * panel_columns * shape_.scale_bytes]);
        this->loop(blocks_, short_blocks ? div_up(rows, block) : rows / block, [&] { steps(block); });
        if (!short_blocks && rows % block) steps(rows % block);
        const int walked = int(div_up(rows, k_step));
        src_at_.advance(*this, rows_, -walked * k_step);
        scale_at_.advance(*this, rows_, -walked * 4);
    }

    // One block.
    void steps(int64_t rows) {
        const int n = int(div_up(rows, k_step));
        Xbyak::Label again;
        if (n > 1) this->mov(slot(at_steps), n);
        this->L(again);
        for (int h = 0; h < halves; h += together_) step(h);
        this->add(codes_, units * unit_bytes);
        src_at_.advance(*this, rows_, k_step);
        scale_at_.advance(*this, rows_, 4);
        if (n > 1) {
            this->dec(slot(at_steps));
            this->jnz(again, base_t::T_NEAR);
        }
        this->add(params_, panel_columns * shape_.scale_bytes);
        if (has_zeros()) this->add(zp_, panel_columns * shape_.zp_bytes);
    }

    void step(int first) {
        for (int u = 0; u < units; u++) {
            if (first == 0) this->prefetcht0(ptr[codes_ + u * unit_bytes + prefetch_ahead]);
            for (int h = 0; h < together_; h++) decode(h, u * unit_bytes + (first + h) * Vec::bytes);
            const bool begins = u % (units / 2) == 0;
            for (int r = 0; r < rows_; r++)
                for (int high = 0; high < 2; high++) {
                    this->vpbroadcastd(src_, ptr[src_at_(r) + u * unit_rows + high * 4]);
                    for (int h = 0; h < together_; h++) multiply(r, h, high, begins && high == 0);
                }
            if (u == units / 2 - 1)
                for (int i = 0; i < rows_ * together_; i++)
                    this->vpmaddwd(reg_t(sums_ + i), reg_t(pairs_ + i), ones_);
        }
        for (int i = 0; i < rows_ * together_; i++) {
            const reg_t pairs(pairs_ + i), sum(sums_ + i);
            this->vpmaddwd(pairs, pairs, ones_);
            this->vpaddd(sum, sum, pairs);
        }
        if (!begins_at_zero())
            for (int r = 0; r < rows_; r++) {
                this->vpbroadcastd(src_, start_at(r));
                for (int h = 0; h < together_; h++) this->vpaddd(sum(r, h), sum(r, h), src_);
            }
        add_to_results(first);
    }

    // The initial value of the sums, which is stored with the row.
    Xbyak::Address start_at(int row) const {
        return ptr[scale_at_(row) + int(int8_row_t::starts_at(shape_.K) - int8_row_t::scales_at(shape_.K))];
    }

    void add_to_results(int first) {
        for (int h = 0; h < together_; h++) {
            const int column = (first + h) * Vec::lanes;
            this->load_columns(wei(h, 0), tmp_, quant_.scale_dt, ptr[params_ + column * shape_.scale_bytes]);
            if (!has_zeros()) continue;
            // As multiples of the negative sums of the rows.
            const float of = float(int8_weights(wei_dt_, quant_).offset);
            this->load_columns(zeros(h), tmp_, quant_.zp_dt, ptr[zp_ + column * shape_.zp_bytes]);
            this->vmulps(zeros(h), zeros(h), this->constant(adds_zeros() ? -1 / of : 1 / of));
        }
        for (int r = 0; r < rows_; r++) {
            if (r == 1) this->mov(row_, acc_);
            if (r) this->add(row_, slot(at_acc_stride));
            this->vbroadcastss(src_, ptr[scale_at_(r)]);
            if (has_zeros()) {
                this->vpbroadcastd(tmp_, start_at(r));
                this->vcvtdq2ps(tmp_, tmp_);
                if (adds_zeros()) this->vmulps(tmp_, tmp_, src_);
            }
            for (int h = 0; h < together_; h++) {
                const reg_t s = sum(r, h);
                const Xbyak::Address acc = ptr[(r ? row_ : acc_) + (first + h) * Vec::bytes];
                this->vcvtdq2ps(s, s);
                if (has_zeros() && !adds_zeros()) this->vfmadd231ps(s, tmp_, zeros(h));
                this->vmulps(s, s, src_);
                this->vfmadd213ps(s, wei(h, 0), acc);
                if (adds_zeros()) this->vfmadd231ps(s, tmp_, zeros(h));
                this->vmovups(acc, s);
            }
        }
    }

    // A dword of codes per column becomes bytes: four rows in each of two registers, in the order of
    // int8_row.hpp.
    void decode(int half, int at) {
        const reg_t &low = wei(half, 0), &high = wei(half, 1);
        this->vmovups(low, ptr[codes_ + at]);
        this->vpsrlw(high, low, 4);
        for (const reg_t &w : {low, high}) {
            if constexpr (Vec::is_zmm)
                this->vpandd(w, w, low_mask_);
            else
                this->vpand(w, w, low_mask_);
            this->vpshufb(w, table_, w);
        }
    }

    void multiply(int row, int half, int high, bool begins) {
        if (begins) return this->vpmaddubsw(pairs(row, half), wei(half, high), src_);
        this->vpmaddubsw(tmp_, wei(half, high), src_);
        this->vpaddw(pairs(row, half), pairs(row, half), tmp_);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
