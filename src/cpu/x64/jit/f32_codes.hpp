// SPDX-License-Identifier: Apache-2.0
// Decoders: packed codes to f32 vectors. A decoder knows the order of the codes in its layout and
// nothing of what becomes of the vectors.
//
//   unit_rows         rows that one call of unit() decodes, for Vec::lanes columns
//   pairs             false: a vector is one row, a lane per column
//                     true: two vectors are two rows; lanes 2i and 2i + 1 of one of them are the
//                     two rows of one column. join() adds the two rows up, into v0; split()
//                     leaves the first row in v0, the second in a register of its own
//   exponent()        value of a code = decoded value * 2^exponent
//   load_constants()  once, before the loops
//   unit(codes, offset, half, more, emit)
//                     calls emit(row, v) or, for pairs, emit(row, v0, v1) for every row or pair of
//                     rows of the unit; the vectors are emit's to change. `more`: at least three more
//                     bytes may be read
//
// Decoded values are exact. Values of 6 and 8 bits go through f16, into which every minifloat
// shifts once its exponent bias is made up for; what is subnormal stays exact, because the
// processor's conversion from f16 normalises it.
#pragma once

#include "common/formats/format_list.hpp"
#include "common/quant.hpp"
#include "cpu/x64/jit/f32_vec.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// The 16 values of a 4-bit type. u4 with an added zero point counts from the code that stands for it.
struct table16_t {
    float values[16];
    table16_t(data_type_t dt, const quant_t &q) {
        const data_type_info_t *info = data_type_info(dt);
        for (uint32_t c = 0; c < 16; c++) values[c] = info->decode(c) - float(code_of_added(q.zp));
    }
};

// n16_b4 on AVX2. All values of 4-bit types fit in bf16, so two byte tables give two bytes each. Interleaved,
// these are f32 values whose low halves are cleared by a shift or a mask.
class codes4_avx2_t {
public:
    using vec_t = avx2_vec_t;
    using reg_t = Xbyak::Ymm;
    static constexpr int bits = 4, unit_rows = 8;
    static constexpr bool pairs = true;

    codes4_avx2_t(f32_base_t<vec_t> &j, vregs_t &regs, data_type_t dt, const quant_t &q)
        : j_(j), table_(dt, q), high_(regs.take()), low_(regs.take()),
          nibble_(regs.take()), t_{reg_t(regs.take()), reg_t(regs.take()), reg_t(regs.take()),
                                        reg_t(regs.take())} {}

    int exponent() const { return 0; }

    void load_constants() {
        uint8_t high[16], low[16];
        for (int c = 0; c < 16; c++) {
            const uint32_t bits = bits_of(table_.values[c]);
            assert((bits & 0xffff) == 0);
            high[c] = uint8_t(bits >> 24);
            low[c] = uint8_t(bits >> 16);
        }
        j_.vmovdqu(high_, j_.constant(high, 16));
        j_.vmovdqu(low_, j_.constant(low, 16));
        j_.vmovdqu(nibble_, j_.constant(uint8_t(0x0f)));
    }

    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int half, bool, F emit) {
        const Xbyak::Address from = j_.ptr[codes + offset + half * vec_t::bytes];
        // The low nibbles of a lane's bytes are rows 0 4 1 5, the high nibbles rows 2 6 3 7.
        j_.vpand(t_[0], nibble_, from);
        four_rows(0, emit);
        j_.vmovdqu(t_[0], from);
        j_.vpsrlw(t_[0], t_[0], 4);
        j_.vpand(t_[0], t_[0], nibble_);
        four_rows(2, emit);
    }

    // The lanes of v0 have columns 0 0 1 1, 4 4 5 5; those of v1 2 2 3 3, 6 6 7 7.
    void join(const reg_t &v0, const reg_t &v1, const reg_t &) { j_.vhaddps(v0, v0, v1); }
    void split(const reg_t &v0, const reg_t &v1, const reg_t &second) {
        j_.vshufps(second, v0, v1, 0xdd);
        j_.vshufps(v0, v0, v1, 0x88);
    }
    // One value per column, in the order of v0 and v1.
    void spread(const reg_t &columns, const reg_t &v0, const reg_t &v1) {
        j_.vunpckhps(v1, columns, columns);
        j_.vunpcklps(v0, columns, columns);
    }

    reg_t tmp(int i) const { return t_[i]; } // free outside of unit()

private:
    f32_base_t<vec_t> &j_;
    const table16_t table_;
    const reg_t high_, low_, nibble_;
    const reg_t t_[4];

    template <typename F>
    void four_rows(int row, F emit) {
        j_.vpshufb(t_[1], high_, t_[0]);
        j_.vpshufb(t_[0], low_, t_[0]);
        j_.vpunpcklbw(t_[2], t_[0], t_[1]);
        j_.vpunpckhbw(t_[0], t_[0], t_[1]);
        j_.vpslld(t_[1], t_[2], 16);
        j_.vpslld(t_[3], t_[0], 16);
        emit(row, t_[1], t_[3]);
        j_.vpand(t_[2], t_[2], j_.constant(0xffff0000u));
        j_.vpand(t_[0], t_[0], j_.constant(0xffff0000u));
        emit(row + 4, t_[2], t_[0]);
    }
};

// n16_b4 on AVX-512. A permute of floats uses only the low four bits of a lane.
class codes4_avx512_t {
public:
    using vec_t = avx512_vec_t;
    using reg_t = Xbyak::Zmm;
    static constexpr int bits = 4, unit_rows = 8;
    static constexpr bool pairs = false;

    codes4_avx512_t(f32_base_t<vec_t> &j, vregs_t &regs, data_type_t dt, const quant_t &q)
        : j_(j), table_(dt, q), values_(regs.take()), t_{reg_t(regs.take()), reg_t(regs.take()),
                                                              reg_t(regs.take()), reg_t(regs.take())} {}

    int exponent() const { return 0; }
    void load_constants() { j_.vmovups(values_, j_.constant(table_.values, sizeof(table_.values))); }

    // Where more codes follow, every second shift is a load from the next byte: shifts have a single port.
    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int, bool more, F emit) {
        for (int i = 0; i < 8; i++) {
            const reg_t &v = t_[1 + i % 2];
            if (i == 0 || (more && i % 2 == 0)) j_.vmovdqu32(t_[0], j_.ptr[codes + offset + i / 2]);
            const int shift = more ? i % 2 * 4 : i * 4;
            if (shift) j_.vpsrld(v, t_[0], shift);
            j_.vpermps(v, shift ? v : t_[0], values_);
            emit(i % 4 * 2 + i / 4, v);
        }
    }

    reg_t tmp(int i) const { return t_[i]; }

private:
    f32_base_t<vec_t> &j_;
    const table16_t table_;
    const reg_t values_;
    const reg_t t_[4];
};

// The order of the rows of an n16_b8 byte vector after its bytes became words: the low halves of the 128-bit
// lanes are rows 0 1, the high halves rows 2 3. Each lane has four columns with two words each.
template <class Vec>
class f16_words_t {
public:
    using vec_t = Vec;
    using reg_t = typename Vec::reg_t;
    using half_t = typename Vec::half_t;
    static constexpr bool pairs = true;

    f16_words_t(f32_base_t<Vec> &j, vregs_t &regs, data_type_t dt)
        : j_(j), dt_(dt), zero_(regs.take()),
          mask_(regs.take()), t_{reg_t(regs.take()), reg_t(regs.take()), reg_t(regs.take())},
          even_(Vec::is_zmm ? regs.take() : 0), odd_(Vec::is_zmm ? regs.take() : 0) {}

    // The bias of f16 minus that of the type.
    int exponent() const {
        switch (dt_) {
        case mxdnn_f8_e4m3: return 15 - 7;
        case mxdnn_f6_e2m3: return 15 - 1;
        case mxdnn_f6_e3m2: return 15 - 3;
        default: return 0; // f8_e5m2
        }
    }

    void load_constants() {
        j_.set_zero(zero_);
        const uint16_t mask = dt_ == mxdnn_f8_e4m3 ? 0xbfff : dt_ == mxdnn_f6_e2m3 ? 0x8f80 : 0x9f00;
        if (dt_ != mxdnn_f8_e5m2) j_.vmovups(mask_, j_.constant(mask));
        if constexpr (Vec::is_zmm) {
            uint32_t even[16], odd[16];
            for (uint32_t i = 0; i < 16; i++) {
                even[i] = 2 * i;
                odd[i] = 2 * i + 1;
            }
            j_.vmovups(even_, j_.constant(even, sizeof(even)));
            j_.vmovups(odd_, j_.constant(odd, sizeof(odd)));
        }
    }

    // The lanes of v0 have the first half of the columns, twice each; v1 has the other half.
    void join(const reg_t &v0, const reg_t &v1, const reg_t &tmp) {
        if constexpr (Vec::is_zmm) {
            split(v0, v1, tmp);
            j_.vaddps(v0, v0, tmp);
        } else {
            j_.vhaddps(v0, v0, v1);
            j_.vpermpd(v0, v0, 0xd8);
        }
    }
    void split(const reg_t &v0, const reg_t &v1, const reg_t &second) {
        if constexpr (Vec::is_zmm) {
            j_.vmovaps(second, v0);
            j_.vpermt2ps(v0, even_, v1);
            j_.vpermt2ps(second, odd_, v1);
        } else {
            j_.vshufps(second, v0, v1, 0xdd);
            j_.vshufps(v0, v0, v1, 0x88);
            j_.vpermpd(v0, v0, 0xd8);
            j_.vpermpd(second, second, 0xd8);
        }
    }

    reg_t tmp(int i) const { return t_[i]; }

protected:
    f32_base_t<Vec> &j_;
    const data_type_t dt_;
    const reg_t zero_, mask_;
    const reg_t t_[3];
    const reg_t even_, odd_;

    // The codes of four rows are in t_[0].
    template <typename F>
    void four_rows(int row, F emit) {
        reg_t low_bytes = zero_;
        if (dt_ == mxdnn_f8_e4m3) { // marks NaN, because f16 would take it for a number: see adjust()
            low_bytes = t_[2];
            j_.vpaddb(t_[2], t_[0], t_[0]); // removes the sign
            if constexpr (Vec::is_zmm) {
                j_.vpcmpeqb(j_.k1, t_[2], j_.constant(uint8_t(0xfe)));
                j_.vpmovm2b(t_[2], j_.k1);
            } else {
                j_.vpcmpeqb(t_[2], t_[2], j_.constant(uint8_t(0xfe)));
            }
        }
        j_.vpunpcklbw(t_[1], low_bytes, t_[0]);
        j_.vpunpckhbw(t_[0], low_bytes, t_[0]);
        two_rows(row, t_[1], emit);
        two_rows(row + 2, t_[0], emit);
    }

private:
    template <typename F>
    void two_rows(int row, const reg_t &words, F emit) {
        adjust(words);
        const half_t low(words.getIdx()), high(t_[2].getIdx());
        if constexpr (Vec::is_zmm)
            j_.vextracti64x4(high, words, 1);
        else
            j_.vextracti128(high, words, 1);
        j_.vcvtph2ps(words, low);
        j_.vcvtph2ps(t_[2], high);
        emit(row, words, t_[2]);
    }

    void and_mask(const reg_t &w) {
        if constexpr (Vec::is_zmm)
            j_.vpandd(w, w, mask_);
        else
            j_.vpand(w, w, mask_);
    }

    // Codes in the high bytes of words become f16. The sign goes to the top. Exponent and mantissa go to
    // where f16 has their boundary (bit 10).
    void adjust(const reg_t &w) {
        switch (dt_) {
        case mxdnn_f8_e4m3:
            j_.vpsraw(w, w, 1);
            and_mask(w); // for NaN the low bits are all set, which then sets the whole exponent
            j_.vpsllw(t_[2], w, 14);
            if constexpr (Vec::is_zmm)
                j_.vpord(w, w, t_[2]);
            else
                j_.vpor(w, w, t_[2]);
            break;
        case mxdnn_f6_e2m3:
            j_.vpsllw(w, w, 2);
            j_.vpsraw(w, w, 3);
            and_mask(w);
            break;
        case mxdnn_f6_e3m2:
            j_.vpsllw(w, w, 2);
            j_.vpsraw(w, w, 2);
            and_mask(w);
            break;
        default: break; // f8_e5m2 is the top byte of f16
        }
    }
};

// n16_b8 of f8_e4m3 and f8_e5m2.
template <class Vec>
class codes_f8_t : public f16_words_t<Vec> {
public:
    static constexpr int bits = 8, unit_rows = 4;

    codes_f8_t(f32_base_t<Vec> &j, vregs_t &regs, data_type_t dt, const quant_t &)
        : f16_words_t<Vec>(j, regs, dt) {}

    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int half, bool, F emit) {
        this->j_.vmovups(this->t_[0], this->j_.ptr[codes + offset + half * Vec::bytes]);
        this->four_rows(0, emit);
    }
};

// n16_b6 of f6_e2m3 and f6_e3m2.
template <class Vec>
class codes_f6_t : public f16_words_t<Vec> {
public:
    static constexpr int bits = 6, unit_rows = 16;

    codes_f6_t(f32_base_t<Vec> &j, vregs_t &regs, data_type_t dt, const quant_t &)
        : f16_words_t<Vec>(j, regs, dt), top_(regs.take()) {}

    void load_constants() {
        f16_words_t<Vec>::load_constants();
        this->j_.vmovups(top_, this->j_.constant(uint8_t(0xc0)));
    }

    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int half, bool, F emit) {
        const auto vector = [&](int i) { return this->j_.ptr[codes + offset + i * 64 + half * Vec::bytes]; };
        for (int i = 0; i < 3; i++) {
            this->j_.vmovups(this->t_[0], vector(i)); // adjust() drops the top two bits
            this->four_rows(4 * i, emit);
        }
        // The fourth vector, two bits at a time, lowest first.
        and_top(this->t_[0], vector(0));
        for (int i = 1; i < 3; i++) {
            this->j_.vpsrlw(this->t_[0], this->t_[0], 2);
            and_top(this->t_[1], vector(i));
            this->j_.vorps(this->t_[0], this->t_[0], this->t_[1]);
        }
        this->j_.vpsrlw(this->t_[0], this->t_[0], 2);
        this->four_rows(12, emit);
    }

private:
    const typename Vec::reg_t top_;

    void and_top(const typename Vec::reg_t &dst, const Xbyak::Address &from) {
        this->j_.vandps(dst, top_, from);
    }
};

// n16_b8 of s8: integers, or under e8m0 scales (MXINT8) numbers of 64ths.
template <class Vec>
class codes_s8_t {
public:
    using vec_t = Vec;
    using reg_t = typename Vec::reg_t;
    static constexpr int bits = 8, unit_rows = 4;
    static constexpr bool pairs = false;

    codes_s8_t(f32_base_t<Vec> &j, vregs_t &regs, data_type_t, const quant_t &q)
        : j_(j), exponent_(q.scale_dt == mxdnn_e8m0 ? -6 : 0),
          zero_(regs.take()), t_{reg_t(regs.take()), reg_t(regs.take()), reg_t(regs.take())} {}

    int exponent() const { return exponent_; }
    void load_constants() { j_.set_zero(zero_); }

    template <typename F>
    void unit(const Xbyak::RegExp &codes, int offset, int half, bool, F emit) {
        j_.vmovups(t_[0], j_.ptr[codes + offset + half * Vec::bytes]);
        j_.vpunpcklbw(t_[1], zero_, t_[0]); // a lane per column: row 0 in byte 1, row 1 in byte 3
        j_.vpunpckhbw(t_[0], zero_, t_[0]);
        two_rows(0, t_[1], emit);
        two_rows(2, t_[0], emit);
    }

    reg_t tmp(int i) const { return t_[i]; }

private:
    f32_base_t<Vec> &j_;
    const int exponent_;
    const reg_t zero_;
    const reg_t t_[3];

    template <typename F>
    void two_rows(int row, const reg_t &v, F emit) {
        j_.vpsrad(t_[2], v, 24);
        j_.vcvtdq2ps(t_[2], t_[2]);
        emit(row + 1, t_[2]);
        j_.vpslld(v, v, 16);
        j_.vpsrad(v, v, 24);
        j_.vcvtdq2ps(v, v);
        emit(row, v);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
