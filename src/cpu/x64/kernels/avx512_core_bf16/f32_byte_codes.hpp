// SPDX-License-Identifier: Apache-2.0
// A decoder of f32_codes.hpp for codes of 6 and 8 bits, by the byte tables of pair_decoder.hpp: pairs of bf16
// become two vectors of f32.
#pragma once

#include "cpu/x64/jit/f32_codes.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

template <int code_bits>
class f32_byte_codes_t {
public:
    using vec_t = avx512_vec_t;
    using reg_t = Xbyak::Zmm;
    static constexpr int bits = code_bits, unit_rows = 16;
    static constexpr bool pairs = false;

    f32_byte_codes_t(f32_base_t<vec_t> &j, vregs_t &regs, data_type_t dt, const quant_t &)
        : j_(j), decoder_(make_pair_decoder(j, values_of(dt))), mask_(regs.take()),
          low_(regs.take()), t_{reg_t(regs.take()), reg_t(regs.take()), reg_t(regs.take())} {
        zmm_pool_t pool(regs.take(0));
        const int left = pool.left();
        decoder_->take_constants(pool, 0);
        regs.take(left - pool.left());
    }

    int exponent() const { return 0; }

    void load_constants() {
        j_.vmovups(mask_, j_.constant(0xffff0000u));
        decoder_->load_constants();
    }

    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int, bool, F emit) {
        const Xbyak::RegExp at = codes + offset;
        for (int f = 0; f < decoder_->fetches(); f++) {
            decoder_->emit(f, {at, at /* nobody reads zero points */}, t_, t_[2], nullptr);
            for (int i = 0; i < decoder_->pairs(); i++) {
                const int row = 2 * decoder_->pair(f, i);
                j_.vpslld(low_, t_[i], 16);
                emit(row, low_);
                j_.vpandd(t_[i], t_[i], mask_);
                emit(row + 1, t_[i]);
            }
        }
    }

    reg_t tmp(int i) const { return t_[i]; } // free outside of unit()

private:
    f32_base_t<vec_t> &j_;
    const std::unique_ptr<pair_decoder_t> decoder_;
    const reg_t mask_, low_, t_[3];

    static pair_values_t values_of(data_type_t dt) {
        pair_values_t v;
        v.wei_dt = dt;
        return v;
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
