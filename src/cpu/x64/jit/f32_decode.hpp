// SPDX-License-Identifier: Apache-2.0
// Decode kernels to f32: packed tiles of one panel to rows of sixteen values. A value is the one
// that the format's rule gives, in f32: decoded value (zero point subtracted, exact) times scale,
// rounded; with a float zero, plus zero, rounded again. Rows from K on are zeros.
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
class f32_decode_t : public f32_base_t<typename Codes::vec_t> {
public:
    using vec_t = typename Codes::vec_t;
    using base_t = f32_base_t<vec_t>;
    using reg_t = typename vec_t::reg_t;

    explicit f32_decode_t(const kernel_params_t &p)
        : fetches_near_(p.fetches_near), quant_(p.quant),
          shape_(make_packed_shape(p.K, n16_frame_t::columns, Codes::bits, p.quant)),
          step_rows_(int(std::min<int64_t>(p.quant.block, k_step))), regs_(vec_t::regs),
          codes_(*this, regs_, p.wei_dt, p.quant), tmp_(regs_.take()), scale_(regs_.take(halves)),
          zero_(regs_.take(halves)) {}

private:
    using base_t::rbx, base_t::rcx, base_t::rdx, base_t::rsi, base_t::r8, base_t::r9, base_t::r10,
            base_t::r11, base_t::ptr, base_t::abi_param;

    static constexpr int halves = panel_columns / vec_t::lanes;
    static constexpr int row_bytes = panel_columns * 4;

    const bool fetches_near_;
    const quant_t quant_;
    const packed_shape_t shape_;
    const int step_rows_;
    vregs_t regs_;
    Codes codes_;
    const reg_t tmp_;
    const int scale_, zero_;

    const Xbyak::Reg64 tile_ = r8, dst_ = r9, code_ = r10, scales_ = r11, zps_ = rsi;
    const Xbyak::Reg64 tiles_ = rbx, blocks_ = rcx, steps_ = rdx;

    bool has_zp() const { return quant_.zp == zero_point_kind_t::u8; }
    bool has_zero() const { return is_added(quant_.zp); }
    int64_t codes_of(int64_t rows) const { return rows * panel_columns * Codes::bits / 8; }
    Xbyak::Address arg(size_t offset) const { return ptr[abi_param + int(offset)]; }

    void generate() override {
        this->preamble();
        this->mov(tile_, arg(offsetof(decode_args_t, wei)));
        this->mov(dst_, arg(offsetof(decode_args_t, dst)));
        this->mov(tiles_, arg(offsetof(decode_args_t, tiles)));
        codes_.load_constants();

        Xbyak::Label no_tiles, no_tail;
        const int64_t rows = n16_frame_t::tile_rows(shape_), tail = shape_.K % rows;
        this->test(tiles_, tiles_);
        this->jz(no_tiles, base_t::T_NEAR);
        this->loop_down(tiles_, [&] {
            tile(rows);
            this->add_imm(tile_, n16_frame_t::tile_bytes(shape_, rows));
        });
        this->L(no_tiles);
        if (tail) {
            this->cmp(base_t::qword[abi_param + int(offsetof(decode_args_t, tail))], 0);
            this->je(no_tail, base_t::T_NEAR);
            tile(tail);
            this->L(no_tail);
        }
        this->postamble();
    }

    // Advances dst.
    void tile(int64_t rows) {
        const int64_t block_rows = shape_.block;
        this->mov(scales_, tile_);
        this->lea(code_, ptr[tile_ + int(n16_frame_t::header_bytes(shape_, rows))]);
        if (shape_.zp_bytes)
            this->lea(zps_, ptr[tile_ + int(div_up(rows, block_rows) * panel_columns * shape_.scale_bytes)]);
        this->loop(blocks_, rows / block_rows, [&] { block(block_rows); });
        if (rows % block_rows) block(rows % block_rows);
        // A short last block may leave half of the last step of 32 rows undone.
        const int64_t walked = round_up(rows, step_rows_);
        zero_rows(0, int(round_up(rows, k_step) - walked));
    }

    void block(int64_t rows) {
        for (int h = 0; h < halves; h++) {
            const int column = h * vec_t::lanes;
            this->load_columns(
                    reg_t(scale_ + h), tmp_, quant_.scale_dt, ptr[scales_ + column * shape_.scale_bytes]);
            if (shape_.zp_bytes)
                this->load_columns(
                        reg_t(zero_ + h), tmp_, quant_.zp_dt, ptr[zps_ + column * shape_.zp_bytes]);
        }
        this->loop(steps_, rows / step_rows_, [&] { step(step_rows_); });
        if (rows % step_rows_) step(int(rows % step_rows_));
        this->add_imm(scales_, panel_columns * shape_.scale_bytes);
        this->add_imm(zps_, panel_columns * shape_.zp_bytes);
    }

    void step(int rows) {
        for (int u = 0; u * Codes::unit_rows < rows; u++) {
            const int k0 = u * Codes::unit_rows;
            const bool more = fetches_near_ && k0 + Codes::unit_rows < step_rows_;
            for (int h = 0; h < halves; h++) {
                const auto put = [&](int k, const reg_t &v) {
                    if (k >= rows) return;
                    to_value(v, h);
                    this->vmovups(ptr[dst_ + k * row_bytes + h * vec_t::bytes], v);
                };
                if constexpr (Codes::pairs)
                    codes_.unit(code_, int(codes_of(k0)), h, more,
                            [&](int row, const reg_t &v0, const reg_t &v1) {
                                codes_.split(v0, v1, tmp_);
                                put(k0 + row, v0);
                                put(k0 + row + 1, tmp_);
                            });
                else
                    codes_.unit(code_, int(codes_of(k0)), h, more,
                            [&](int row, const reg_t &v) { put(k0 + row, v); });
            }
        }
        zero_rows(rows, step_rows_ - rows);
        this->add_imm(code_, codes_of(step_rows_));
        this->add_imm(dst_, step_rows_ * row_bytes);
    }

    void to_value(const reg_t &v, int h) {
        if (has_zp()) this->vsubps(v, v, reg_t(zero_ + h));
        // Not combined with the scale, which could leave its range.
        if (codes_.exponent()) this->vmulps(v, v, this->constant(exp2_f32(codes_.exponent())));
        this->vmulps(v, v, reg_t(scale_ + h));
        if (has_zero()) this->vaddps(v, v, reg_t(zero_ + h));
    }

    void zero_rows(int first, int count) {
        if (count <= 0) return;
        this->set_zero(tmp_);
        for (int k = first; k < first + count; k++)
            for (int h = 0; h < halves; h++)
                this->vmovups(ptr[dst_ + k * row_bytes + h * vec_t::bytes], tmp_);
    }
};

template <class Codes>
status_t make_f32_decode(const char *name, const kernel_params_t &p, std::unique_ptr<jit_kernel_t> *kernel,
        const char **reason) {
    return create_jit<f32_decode_t<Codes>>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
