// SPDX-License-Identifier: Apache-2.0
// The three decoders of bf16 pairs, one per width of the codes.
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"

#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Zmm;

// The bits of a value that bf16 can represent. No type here has more than 8 bits of mantissa.
uint16_t bf16_of(float x) { return uint16_t(bits_of(x) >> 16); }

uint16_t pair_value(const pair_values_t &v, uint32_t code) {
    const float value = data_type_info(v.wei_dt)->decode(code) - float(v.subtract);
    if (v.exponent_shift == 0) return bf16_of(value);
    if (is_nan(value)) return 0xffff;
    // The sign of a zero never matters in a sum, and +0 is unchanged by a saturating subtraction.
    if (value == 0) return 0;
    const uint16_t word = uint16_t(bf16_of(value) + v.exponent_shift * (1 << 7)); // the shift may be negative
    if (v.number_mantissa) return uint16_t(word | (word >> 5 & 3));
    return v.spread_mantissa && (word & 0x40) ? uint16_t(word | 0x3f) : word;
}

// d |= s & mask
constexpr int or_masked = 0xf8;
// d = d & mask | s
constexpr int masked_or = 0xec;
// d = mask ? d : s, bit by bit
constexpr int select = 0xe4;

// Shifted right by 4 s, each word of a vector begins with the code of pair s. The table repeats after 16
// entries because a word permute uses five bits.
class b4_decoder_t : public pair_decoder_t {
public:
    b4_decoder_t(jit_base_t &j, const pair_values_t &v) : pair_decoder_t(j, 1) {
        can_keep_ = true;
        uint16_t table[32];
        for (uint32_t i = 0; i < 32; i++) table[i] = pair_value(v, i % 16);
        table_ = add_constant(table, sizeof(table));
        // Byte shifts do the work of word shifts, but on the permute port. Intel's processors execute word
        // shifts, saturating sums and half of a word permute on the other port.
        for (int s = 1; s < 4 && !v.beside_dots; s++) {
            uint8_t from[8];
            for (int b = 0; b < 8; b++) from[b] = uint8_t(b / 2 * 16 + 4 * s + b % 2 * 8);
            shift_[s] = add_constant(from, sizeof(from));
        }
    }

    void emit(int fetch, const source_t &s, const Zmm *w, const Zmm &, const Zmm *keep) override {
        const int n = fetch % 4;
        if (n == 0) {
            const Zmm &codes = keep ? *keep : w[0];
            j_.vmovdqu64(codes, j_.ptr[s.codes + fetch / 4 * 64]);
            j_.vpermw(w[0], codes, constant(table_));
            return;
        }
        const auto shift = [&](const Xbyak::Operand &codes) {
            if (shift_[n] >= 0 && in_reg(shift_[n]))
                j_.vpmultishiftqb(w[0], reg(shift_[n]), codes);
            else
                j_.vpsrlw(w[0], codes, uint8_t(4 * n));
        };
        if (keep)
            shift(*keep);
        else
            shift(j_.ptr[s.codes + fetch / 4 * 64]);
        j_.vpermw(w[0], w[0], constant(table_));
    }

private:
    int table_, shift_[4] = {-1, -1, -1, -1};
};

// Codes become bytes, and 16 - zero point is added. The sum, 1 to 31, is the table index of code - zero
// point.
class b4_zero_point_decoder_t : public pair_decoder_t {
public:
    explicit b4_zero_point_decoder_t(jit_base_t &j) : pair_decoder_t(j, 2) {
        uint16_t table[32];
        for (int i = 0; i < 32; i++) table[i] = bf16_of(float(i - 16));
        const uint8_t low = 0x0f;
        table_ = add_constant(table, sizeof(table));
        low_ = add_constant(&low, 1);
    }

    // Even fetches have pairs 0 and 2 of a vector, odd ones pairs 1 and 3.
    int pair(int fetch, int i) const override { return fetch / 2 * 4 + fetch % 2 + i * 2; }

    void emit(int fetch, const source_t &s, const Zmm *w, const Zmm &, const Zmm *) override {
        const Xbyak::Address mem = j_.ptr[s.codes + fetch / 2 * 64];
        if (fetch % 2)
            j_.vpsrlw(w[1], mem, 4);
        else
            j_.vmovdqu64(w[1], mem);
        j_.vpandd(w[1], w[1], constant(low_));
        j_.vpaddb(w[1], w[1], j_.ptr[s.zero_points]);
        j_.vpermw(w[0], w[1], constant(table_));
        j_.vpsrlw(w[1], w[1], 8);
        j_.vpermw(w[1], w[1], constant(table_));
    }

private:
    int table_, low_;
};

// One table gives the low bytes, another the high bytes. Unpacking them within lanes makes the pairs, because
// the layouts have the codes in that order.
class byte_decoder_t : public pair_decoder_t {
protected:
    explicit byte_decoder_t(jit_base_t &j) : pair_decoder_t(j, 2) { has_temp_ = true; }

    // w[1]: low bytes, temp: high bytes
    void unpack(const Zmm *w, const Zmm &temp) {
        j_.vpunpcklbw(w[0], w[1], temp);
        j_.vpunpckhbw(w[1], w[1], temp);
    }
};

class b6_decoder_t : public byte_decoder_t {
public:
    b6_decoder_t(jit_base_t &j, const pair_values_t &v) : byte_decoder_t(j) {
        uint8_t low[64], high[64];
        for (uint32_t i = 0; i < 64; i++) {
            low[i] = uint8_t(pair_value(v, i));
            high[i] = uint8_t(pair_value(v, i) >> 8);
        }
        const uint8_t two_bits = 0x03, four_bits = 0x0f;
        low_ = add_constant(low, sizeof(low));
        high_ = add_constant(high, sizeof(high));
        two_bits_ = add_constant(&two_bits, 1);
        four_bits_ = add_constant(&four_bits, 1);
    }

    void emit(int fetch, const source_t &s, const Zmm *w, const Zmm &temp, const Zmm *) override {
        const auto vector = [&](int i) { return j_.ptr[s.codes + i * 64]; };
        if (fetch < 3) {
            j_.vmovdqu64(w[0], vector(fetch));
        } else {
            // Bits that the byte permute ignores in the other three. It ignores its own top bits, too.
            j_.vpsrlw(w[0], vector(0), 6);
            j_.vpsrlw(temp, vector(1), 4);
            j_.vpternlogd(w[0], temp, constant(two_bits_), select);
            j_.vpsrlw(temp, vector(2), 2);
            j_.vpternlogd(w[0], temp, constant(four_bits_), select);
        }
        j_.vpermb(w[1], w[0], constant(low_));
        j_.vpermb(temp, w[0], constant(high_));
        unpack(w, temp);
    }

private:
    int low_, high_, two_bits_, four_bits_;
};

// Tables of 128 bytes, indexed by the code without its sign, which is added to the high byte. A low byte has
// the last bit of the exponent, and the mantissa. For codes with few bits of mantissa a table of 64 suffices:
// an upper bit of the exponent only has to distinguish large numbers from subnormal ones, whose last bits
// have another meaning. NaN remains NaN with any low byte that has the exponent's last bit and some mantissa.
class b8_decoder_t : public byte_decoder_t {
public:
    b8_decoder_t(jit_base_t &j, const pair_values_t &v) : byte_decoder_t(j), is_int_(v.wei_dt == mxdnn_s8) {
        uint8_t low[128], high[128];
        for (uint32_t i = 0; i < 128; i++) {
            low[i] = uint8_t(pair_value(v, i));
            high[i] = uint8_t(pair_value(v, i) >> 8);
        }
        for (uint32_t i = 0; i < 128; i++)
            if (const uint8_t shared = low[(i | (i >> 1 & fold)) % 64]; shared != low[i])
                folds_ = folds_ && high[i] == 0xff && shared > 0x80;
        const uint8_t sign = 0x80;
        low0_ = add_constant(low, 64, true);
        high0_ = add_constant(high, 64, true);
        low1_ = folds_ ? add_constant(&fold, 1) : add_constant(low + 64, 64);
        high1_ = add_constant(high + 64, 64);
        sign_ = add_constant(&sign, 1);
        if (is_int_) {
            const uint8_t two = uint8_t((pair_value(v, 0x80) & 0x7fff) >> 8);
            two_ = add_constant(&two, 1);
        }
    }

    void emit(int fetch, const source_t &s, const Zmm *w, const Zmm &temp, const Zmm *) override {
        const Xbyak::Address mem = j_.ptr[s.codes + fetch * 64];
        if (is_int_)
            j_.vpabsb(w[0], mem);
        else
            j_.vmovdqu64(w[0], mem);
        if (folds_) {
            j_.vpsrlw(w[1], w[0], 1);
            j_.vpternlogd(w[1], w[0], constant(low1_), masked_or);
            j_.vpermb(w[1], w[1], reg(low0_));
        } else {
            j_.vmovdqa64(w[1], w[0]);
            j_.vpermi2b(w[1], reg(low0_), constant(low1_));
        }
        j_.vmovdqa64(temp, w[0]);
        j_.vpermi2b(temp, reg(high0_), constant(high1_));
        if (is_int_) {
            // The table has magnitudes 0 to 127. Magnitude 128 is looked up as 0, whose low byte is right:
            // it is a power of two with an even exponent.
            j_.vpmovb2m(j_.k2, w[0]);
            j_.vmovdqu8(temp | j_.k2, constant(two_));
            j_.vmovdqu64(w[0], mem);
        }
        j_.vpternlogd(temp, w[0], constant(sign_), or_masked);
        unpack(w, temp);
    }

private:
    static constexpr uint8_t fold = 0x20; // the bit that replaces the one above it
    const bool is_int_;
    bool folds_ = true; // then low1_ is the mask
    int low0_, low1_, high0_, high1_, sign_, two_ = 0;
};

} // namespace

std::unique_ptr<pair_decoder_t> make_pair_decoder(jit_base_t &j, const pair_values_t &v) {
    switch (data_type_info(v.wei_dt)->bits) {
    case 4:
        if (v.zero_points) return std::make_unique<b4_zero_point_decoder_t>(j);
        return std::make_unique<b4_decoder_t>(j, v);
    case 6: return std::make_unique<b6_decoder_t>(j, v);
    default: return std::make_unique<b8_decoder_t>(j, v);
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
