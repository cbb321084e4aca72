// SPDX-License-Identifier: Apache-2.0
// Direct kernels in f32: a few rows of source times packed weights that are decoded in registers.
//
// The blocks of all panels are walked side by side (block 0 of every panel, block 1 of every panel,
// ...), so that memory sees as many streams as there are panels, each of them all the time. Within a block
// the products of decoded values are summed without their scale, in several independent sums; the scale is
// applied once per block, to the sum, which is added to acc: in registers for one or two rows with AVX-512,
// in memory for more. So per column
//     acc = fma(scale, sum * 2^exponent, acc)     [acc = fma(zero, xsum, acc)]
// and a NaN scale makes its column NaN whatever the sum is.
//
// Where block sums could leave f32's range: values are at most 2^16 and blocks 256 long, so finite
// sources below 2^103 never overflow before they are scaled; and products that are subnormal before
// `exponent` is made up for lose at most 2^-136 each. With an added zero, an Inf in the source makes a
// NaN where Inf * (scaled code + zero) would be Inf: the two products are apart here.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/layouts/n16.hpp"
#include "cpu/x64/jit/f32_codes.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

template <class Codes>
class f32_direct_t : public f32_base_t<typename Codes::vec_t> {
public:
    using vec_t = typename Codes::vec_t;
    using base_t = f32_base_t<vec_t>;
    using reg_t = typename vec_t::reg_t;

    explicit f32_direct_t(const kernel_params_t &p)
        : rows_(p.rows), panels_(p.panels), fetches_near_(p.fetches_near), quant_(p.quant),
          shape_(make_packed_shape(p.K, n16_frame_t::columns, Codes::bits, p.quant)),
          step_rows_(int(std::min<int64_t>(p.quant.block, k_step))), regs_(vec_t::regs),
          codes_(*this, regs_, p.wei_dt, p.quant), src_(regs_.take()), chains_(chains_of(p.rows)),
          sums_(regs_.take(rows_ * parts * chains_)), unrolled_(vec_t::is_zmm && rows_ <= unrolled_rows),
          accs_(unrolled_ ? regs_.take(rows_ * panels_) : 0) {}

    static constexpr int max_rows = vec_t::is_zmm ? 8 : 4;

private:
    using base_t::rax, base_t::rbx, base_t::rcx, base_t::rdx, base_t::rsi, base_t::r8, base_t::r9,
            base_t::r10, base_t::r11, base_t::r12, base_t::r13, base_t::r14, base_t::r15, base_t::rsp,
            base_t::ptr, base_t::abi_param;

    static constexpr int parts = Codes::pairs ? 2 : 1; // sums per row and chain
    // Independent sums of a row, which hide the latency of FMAs; adding them together costs time, too. Two
    // FMAs of four cycles at a time need eight of them. One or two rows wait for decoding, and with AVX-512
    // for the sums of one block beside those of the next one.
    int chains_of(int rows) const {
        if (!vec_t::is_zmm || Codes::pairs)
            return std::max(1, (vec_t::is_zmm && rows > 1 ? 8 : 4) / (rows * parts));
        return rows <= unrolled_rows ? 2 + (step_rows_ == k_step) : 8 / rows;
    }
    static constexpr int halves = panel_columns / vec_t::lanes;
    static constexpr int far = 2048;
    static constexpr int rows_per_base = 4, unrolled_rows = 2;
    const int rows_, panels_;
    const bool fetches_near_;
    const quant_t quant_;
    const packed_shape_t shape_;
    const int step_rows_; // rows that are decoded by straight code
    vregs_t regs_;
    Codes codes_;
    const reg_t src_;
    const int chains_;
    const int sums_;
    const bool unrolled_; // there is code for every panel, and acc is in registers
    const int accs_;
    int panel_ = 0; // the panel that code is emitted for, if unrolled

    const Xbyak::Reg64 x_[2] = {r8, r9}, stride_ = rax, stride3_ = rbx; // source
    const Xbyak::Reg64 acc_ = r10, row_ = r11;
    const Xbyak::Reg64 tile_ = r12; // of panel 0
    // What is prefetched beside code_. Where fetches are near, it is the same line of the next tile, and
    // after the last tile of the first one of the next call. Elsewhere it is about two tiles of 4-bit codes
    // ahead.
    const Xbyak::Reg64 next_ = rsi;
    const Xbyak::Reg64 code_ = r13, scale_ = r14, zp_ = r15;
    const Xbyak::Reg64 blocks_ = rcx, steps_ = rdx;
    const Xbyak::Reg64 wei_stride_ = x_[1], wei_stride3_ = stride3_; // if unrolled

    // Stack: counters of the outer loops, position in xsum, distances from the last panel back to the first
    // one and from the last tile to that of the next call, zero points as vectors.
    static constexpr int at_tiles = 0, at_panels = 8, at_xsum = 16, at_back = 24, at_next_call = 32,
                         at_zero_points = 64, stack_bytes = at_zero_points + 2 * 64;

    bool has_zp() const { return quant_.zp == zero_point_kind_t::u8; }
    bool has_zero() const { return is_added(quant_.zp); }

    Xbyak::Address arg(size_t offset) const { return ptr[abi_param + int(offset)]; }
    Xbyak::Address stack(int offset) const { return ptr[rsp + offset]; }
    Xbyak::Address counter(int offset) const { return base_t::qword[rsp + offset]; }

    Xbyak::Address x_at(int row, int k) const { return ptr[x_of(row, k)]; }
    Xbyak::RegExp x_of(int row, int k) const {
        const Xbyak::Reg64 &b = x_[row / rows_per_base];
        switch (row % rows_per_base) {
        case 0: return b + k * 4;
        case 1: return b + stride_ + k * 4;
        case 2: return b + stride_ * 2 + k * 4;
        default: return b + stride3_ + k * 4;
        }
    }
    void move_x(int64_t rows) {
        for (int b = 0; b * rows_per_base < rows_; b++) this->add_imm(x_[b], rows * 4);
    }

    reg_t sum(int row, int chain, int part) const {
        return reg_t(sums_ + (row * chains_ + chain) * parts + part);
    }

    reg_t acc(int row) const { return reg_t(accs_ + row * panels_ + panel_); }

    // What is at that address in panel 0, in the panel that code is emitted for.
    Xbyak::RegExp here(const Xbyak::Reg64 &address) const {
        switch (panel_) {
        case 0: return address;
        case 1: return address + wei_stride_;
        case 2: return address + wei_stride_ * 2;
        default: return address + wei_stride3_;
        }
    }

    int64_t codes_of(int64_t rows) const { return rows * panel_columns * Codes::bits / 8; }

    void generate() override {
        this->preamble(stack_bytes);
        this->mov(x_[0], arg(offsetof(direct_args_t, src)));
        this->mov(stride_, arg(offsetof(direct_args_t, src_stride)));
        if (unrolled_) {
            this->mov(wei_stride_, arg(offsetof(direct_args_t, wei_stride)));
            this->lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        } else {
            this->lea(stride3_, ptr[stride_ + stride_ * 2]);
        }
        if (rows_ > rows_per_base) this->lea(x_[1], ptr[x_[0] + stride_ * 4]);
        this->mov(tile_, arg(offsetof(direct_args_t, wei)));
        if (has_zero()) {
            this->mov(row_, arg(offsetof(direct_args_t, xsum)));
            this->mov(stack(at_xsum), row_);
        }
        zero_acc();
        codes_.load_constants();

        const int64_t rows = n16_frame_t::tile_rows(shape_), bytes = n16_frame_t::tile_bytes(shape_, rows);
        const int64_t full = shape_.K / rows, tail = shape_.K % rows;
        this->imul(next_, arg(offsetof(direct_args_t, wei_stride)), panels_);
        this->mov(stack(at_back), next_);
        this->add_imm(next_, -bytes * (tail ? full : full - 1));
        this->mov(stack(at_next_call), next_);
        if (full) {
            Xbyak::Label again;
            this->mov(row_, full);
            this->mov(stack(at_tiles), row_);
            this->align(16);
            this->L(again);
            this->mov(next_, fetches_near_ ? bytes : far);
            if (fetches_near_ && !tail) {
                this->cmp(counter(at_tiles), 1);
                this->cmove(next_, stack(at_next_call));
            }
            tile(rows);
            move_x(rows);
            this->add_imm(tile_, bytes);
            if (has_zero()) this->add(counter(at_xsum), int(rows / shape_.block * 4));
            this->dec(counter(at_tiles));
            this->jnz(again, base_t::T_NEAR);
        }
        if (tail) {
            if (fetches_near_)
                this->mov(next_, stack(at_next_call));
            else
                this->mov(next_, far);
            tile(tail);
        }
        if (unrolled_) store_acc();
        this->postamble();
    }

    void zero_acc() {
        if (unrolled_) {
            for (int i = 0; i < rows_ * panels_; i++) this->set_zero(reg_t(accs_ + i));
            return;
        }
        this->set_zero(src_);
        for_acc([&](int, int) { return src_; });
    }
    void store_acc() {
        for_acc([&](int row, int v) { return reg_t(accs_ + row * panels_ + v); });
    }
    // Stores reg(row, vector).
    template <typename F>
    void for_acc(F reg) {
        this->mov(row_, arg(offsetof(direct_args_t, acc)));
        for (int r = 0; r < rows_; r++) {
            if (r) this->add(row_, arg(offsetof(direct_args_t, acc_stride)));
            for (int v = 0; v < panels_ * halves; v++) this->vmovups(ptr[row_ + v * vec_t::bytes], reg(r, v));
        }
    }

    // Emits code for every panel, or a loop that goes through the panels with these addresses. Neither
    // changes them.
    template <typename F>
    void for_panels(std::initializer_list<const Xbyak::Reg64 *> addresses, F body) {
        if (panels_ == 1) return body();
        if (unrolled_) {
            for (panel_ = 0; panel_ < panels_; panel_++) body();
            panel_ = 0;
            return;
        }
        Xbyak::Label again;
        this->mov(counter(at_panels), panels_);
        this->align(16);
        this->L(again);
        body();
        for (const Xbyak::Reg64 *a : addresses) this->add(*a, arg(offsetof(direct_args_t, wei_stride)));
        this->dec(counter(at_panels));
        this->jnz(again, base_t::T_NEAR);
        for (const Xbyak::Reg64 *a : addresses) this->sub(*a, stack(at_back));
    }

    // One tile of all panels. x does not change. next_ has the distance of what is prefetched.
    void tile(int64_t rows) {
        const int64_t block_rows = shape_.block, n = div_up(rows, block_rows);
        const int header = int(n16_frame_t::header_bytes(shape_, rows));
        this->mov(scale_, tile_);
        this->add(next_, tile_);
        if (fetches_near_)
            for_panels({&next_}, [&] {
                for (int b = 0; b < header; b += 64) this->prefetcht0(ptr[here(next_) + b]);
            });
        this->add(next_, header);
        this->lea(code_, ptr[tile_ + header]);
        if (shape_.zp_bytes) this->lea(zp_, ptr[tile_ + int(n * panel_columns * shape_.scale_bytes)]);

        // Short blocks have codes and source rows like whole blocks, also at the end of K.
        const bool short_blocks = block_rows <= k_step;
        const int64_t whole = short_blocks ? n : rows / block_rows;
        const int64_t rest = short_blocks ? 0 : rows % block_rows;
        this->loop(blocks_, whole, [&] { block_of_panels(block_rows); });
        if (rest) block_of_panels(rest);
        const int64_t walked = whole * block_rows + (rest ? round_up(rest, k_step) : 0);
        move_x(-walked);
        if (has_zero()) this->sub(counter(at_xsum), int(n * 4));
    }

    void block_of_panels(int64_t rows) {
        const int64_t walked = round_up(rows, int64_t(step_rows_));
        if (!unrolled_) this->mov(acc_, arg(offsetof(direct_args_t, acc)));
        const auto body = [&] {
            block(rows);
            if (!unrolled_ && panels_ > 1) this->add(acc_, panel_columns * 4);
        };
        if (shape_.zp_bytes)
            for_panels({&code_, &next_, &scale_, &zp_}, body);
        else
            for_panels({&code_, &next_, &scale_}, body);
        move_codes(walked);
        move_x(walked);
        this->add_imm(scale_, panel_columns * shape_.scale_bytes);
        this->add_imm(zp_, panel_columns * shape_.zp_bytes);
        if (has_zero()) this->add(counter(at_xsum), 4);
    }

    // A block of one panel. Addresses do not change.
    void block(int64_t rows) {
        const int64_t steps = div_up(rows, step_rows_), walked = steps * step_rows_;
        const bool straight = steps == 1;
        for (int h = 0; h < halves; h++) {
            if (has_zp()) {
                // Subtracted from the codes before they are multiplied, if that is exact. Subtracting zp
                // times the sum of the source later would cancel.
                if constexpr (Codes::pairs && Codes::bits == 4) {
                    this->load_columns(
                            codes_.tmp(0), codes_.tmp(1), quant_.zp_dt, ptr[here(zp_) + h * vec_t::lanes]);
                    codes_.spread(codes_.tmp(0), codes_.tmp(1), codes_.tmp(2));
                    this->vmovups(stack(at_zero_points), codes_.tmp(1));
                    this->vmovups(stack(at_zero_points + 64), codes_.tmp(2));
                } else {
                    this->load_columns(codes_.tmp(0), codes_.tmp(1), quant_.zp_dt, ptr[here(zp_)]);
                    this->vmovups(stack(at_zero_points), codes_.tmp(0));
                }
            }
            if (!straight)
                for (int i = 0; i < rows_ * chains_ * parts; i++) this->set_zero(reg_t(sums_ + i));
            this->loop(steps_, steps, [&] {
                step(h, straight);
                if (straight) return;
                move_codes(step_rows_);
                move_x(step_rows_);
            });
            if (!straight) {
                move_codes(-walked);
                move_x(-walked);
            }
            apply_scale(h);
        }
    }

    void move_codes(int64_t rows) {
        this->add_imm(code_, codes_of(rows));
        this->add_imm(next_, codes_of(rows));
    }

    // With `first`, the first product overwrites each sum.
    void step(int half, bool first) {
        int calls = 0;
        const auto add_row = [&](int k, const reg_t *const *v) {
            const int chain = calls % chains_;
            const bool overwrite = first && calls < chains_;
            calls++;
            if (has_zp())
                for (int p = 0; p < parts; p++) this->vsubps(*v[p], *v[p], stack(at_zero_points + p * 64));
            for (int r = 0; r < rows_; r++) {
                if constexpr (!Codes::pairs && vec_t::is_zmm) {
                    const Xbyak::Address x = base_t::ptr_b[x_of(r, k)];
                    if (overwrite)
                        this->vmulps(sum(r, chain, 0), *v[0], x);
                    else
                        this->vfmadd231ps(sum(r, chain, 0), *v[0], x);
                    continue;
                }
                if constexpr (Codes::pairs)
                    this->vbroadcastsd(src_, x_at(r, k));
                else
                    this->vbroadcastss(src_, x_at(r, k));
                for (int p = 0; p < parts; p++) {
                    if (overwrite)
                        this->vmulps(sum(r, chain, p), *v[p], src_);
                    else
                        this->vfmadd231ps(sum(r, chain, p), *v[p], src_);
                }
            }
        };
        for (int u = 0; u * Codes::unit_rows < step_rows_; u++) {
            const int k0 = u * Codes::unit_rows;
            const bool more = fetches_near_ && k0 + Codes::unit_rows < step_rows_;
            if (half == 0)
                for (int b = 0; b < codes_of(Codes::unit_rows); b += 64)
                    this->prefetcht0(ptr[here(next_) + int(codes_of(k0)) + b]);
            if constexpr (Codes::pairs)
                codes_.unit(here(code_), int(codes_of(k0)), half, more,
                        [&](int row, const reg_t &v0, const reg_t &v1) {
                            const reg_t *v[] = {&v0, &v1};
                            add_row(k0 + row, v);
                        });
            else
                codes_.unit(here(code_), int(codes_of(k0)), half, more, [&](int row, const reg_t &v0) {
                    const reg_t *v[] = {&v0};
                    add_row(k0 + row, v);
                });
        }
        assert(!first || calls >= chains_);
    }

    void apply_scale(int half) {
        const reg_t scale = codes_.tmp(0), zero = codes_.tmp(1), tmp = codes_.tmp(2);
        this->load_columns(
                scale, tmp, quant_.scale_dt, ptr[here(scale_) + half * vec_t::lanes * shape_.scale_bytes]);
        if (has_zero())
            this->load_columns(
                    zero, tmp, quant_.zp_dt, ptr[here(zp_) + half * vec_t::lanes * shape_.zp_bytes]);
        for (int r = 0; r < rows_; r++) {
            for (int c = 1; c < chains_; c++)
                for (int p = 0; p < parts; p++) this->vaddps(sum(r, 0, p), sum(r, 0, p), sum(r, c, p));
            if constexpr (Codes::pairs) codes_.join(sum(r, 0, 0), sum(r, 0, 1), tmp);
            if (codes_.exponent())
                this->vmulps(sum(r, 0, 0), sum(r, 0, 0), this->constant(exp2_f32(codes_.exponent())));
        }
        if (unrolled_)
            for (int r = 0; r < rows_; r++) this->vfmadd231ps(acc(r), scale, sum(r, 0, 0));
        else
            for_acc_of_rows(
                    [&](int r, const Xbyak::Address &at) {
                        this->vfmadd213ps(sum(r, 0, 0), scale, at);
                        if (!has_zero()) this->vmovups(at, sum(r, 0, 0));
                    },
                    half);
        if (!has_zero()) return;
        // The rows of xsum need the register that was used for the rows of acc.
        this->mov(row_, stack(at_xsum));
        for (int r = 0; r < rows_; r++) {
            if (r) this->add(row_, arg(offsetof(direct_args_t, xsum_stride)));
            this->vbroadcastss(tmp, ptr[row_]);
            this->vfmadd231ps(unrolled_ ? acc(r) : sum(r, 0, 0), zero, tmp);
        }
        if (!unrolled_)
            for_acc_of_rows([&](int r, const Xbyak::Address &at) { this->vmovups(at, sum(r, 0, 0)); }, half);
    }

    // Calls f(row, address of its acc in memory).
    template <typename F>
    void for_acc_of_rows(F f, int half) {
        for (int r = 0; r < rows_; r++) {
            if (r == 1) this->mov(row_, acc_);
            if (r) this->add(row_, arg(offsetof(direct_args_t, acc_stride)));
            f(r, ptr[(r ? row_ : acc_) + half * vec_t::bytes]);
        }
    }
};

template <class Codes>
status_t make_f32_direct(const char *name, const kernel_params_t &p, std::unique_ptr<jit_kernel_t> *kernel,
        const char **reason) {
    return create_jit<f32_direct_t<Codes>>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
