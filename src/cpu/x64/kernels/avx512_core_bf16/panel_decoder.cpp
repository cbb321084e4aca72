// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"

#include "common/formats/format_list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::RegExp;
using Xbyak::Zmm;

// Exponents of the nonzero values of an element type.
struct exponents_t {
    int lowest, highest;
};
exponents_t exponents_of(data_type_t dt) {
    const data_type_info_t &info = *data_type_info(dt);
    exponents_t e = {127, -127};
    for (uint32_t c = 0; c < 1u << info.bits; c++) {
        const float v = info.decode(c);
        if (v == 0 || !is_finite(v)) continue;
        const int exponent = int(magnitude_bits(v) >> 23) - 127;
        e.lowest = std::min(e.lowest, exponent);
        e.highest = std::max(e.highest, exponent);
    }
    return e;
}

uint32_t bf16_bits(float x) { return bits_of(x) >> 16; } // for values that bf16 can represent

// For the high bytes of both words of each column: which byte is its scale.
struct columns_t {
    uint8_t bytes[64] = {};
    explicit columns_t(int first) {
        for (int c = 0; c < panel_columns; c++) bytes[4 * c + 1] = bytes[4 * c + 3] = uint8_t(first + c);
    }
};

// Larger than every exponent of an f8_e4m3 scale, so that the number to subtract is positive.
constexpr int f8_exponent_shift = 16;

// For the codes of scales, without their sign: the word to subtract, and the low byte of the second
// parameter.
struct f8_scales_t {
    uint8_t low[128], high[128], second[128];
    uint32_t by_lanes[16]; // columns of four blocks: each lane has four of each block
    f8_scales_t() {
        for (uint32_t i = 0; i < 128; i++) {
            const float s = f8_e4m3_t::decode(i);
            uint32_t first = 0xffff; // a scale of 0: all values saturate
            second[i] = 0x80;        // its highest bit is above the mantissa
            if (s > 0) {
                first = (uint32_t(f8_exponent_shift) << 7) + bf16_bits(1.f) - bf16_bits(s);
                second[i] |= uint8_t(bf16_bits(1.5f * s) - bf16_bits(s)); // 64 to 96
            }
            low[i] = uint8_t(first);
            high[i] = uint8_t(first >> 8);
        }
        for (uint32_t i = 0; i < 16; i++) by_lanes[i] = i / 4 + i % 4 * 4;
    }
};

// Larger than every exponent of a bf16 scale, so that the number to subtract is positive.
constexpr int bf16_exponent_shift = 125;

// For the mantissas of scales: by how much the word of the product with 1 + i / 4 is larger than the sum of
// both words.
struct bf16_scales_t {
    static constexpr int least = 4; // added, so that no value is below 0
    uint8_t beyond[4][128];
    uint64_t by_lanes[8]; // columns of two blocks: each lane has four of each block
    bf16_scales_t() {
        for (uint32_t m = 0; m < 128; m++)
            for (uint32_t i = 0; i < 4; i++) {
                const float scale = 1.f + float(m) / 128;
                const uint32_t product = bf16_t::encode(scale * (1.f + float(i) / 4)); // rounded
                beyond[i][m] = uint8_t(product - bf16_bits(scale) - 33 * i + least);   // 33: number_mantissa
            }
        for (uint64_t i = 0; i < 8; i++) by_lanes[i] = i / 2 + i % 2 * 4;
    }
};

} // namespace

panel_decoder_t::panel_decoder_t(jit_base_t &j, const kernel_params_t &p)
    : j_(j), quant_(p.quant),
      shape_(make_packed_shape(p.K, panel_columns, data_type_info(p.wei_dt)->bits, p.quant)) {
    pair_values_t v;
    v.wei_dt = p.wei_dt;
    if (p.wei_dt == mxdnn_s4 || p.wei_dt == mxdnn_u4) {
        int4_ = std::make_unique<int4_decoder_t>(j, p.wei_dt, quant_);
        kinds_ = 1 + has_zero_points();
        if (p.wei_dt != mxdnn_s4 || quant_.scale_dt != mxdnn_bf16 || has_zero_points()) return;
        fast_ = scaling_t::subtract_bf16;
        kinds_ = 2;
        lowest_ = 0x0080;  // the least normal number
        highest_ = 0x7dff; // 8 times this is below Inf
        v.exponent_shift = bf16_exponent_shift;
        v.number_mantissa = true;
        shifted_ = make_pair_decoder(j, v);
        return;
    }
    if (p.wei_dt == mxdnn_s8 && quant_.scale_dt != mxdnn_e8m0) {
        slow_ = scaling_t::round;
        v.exponent_shift = exponent_shift_of(p.wei_dt, quant_);
        exact_ = make_pair_decoder(j, v);
        return;
    }
    exact_ = make_pair_decoder(j, v);
    const exponents_t e = exponents_of(p.wei_dt);
    if (quant_.scale_dt == mxdnn_e8m0 && p.wei_dt != mxdnn_f8_e5m2) { // f8_e5m2 has Inf
        fast_ = p.wei_dt == mxdnn_f8_e4m3 ? scaling_t::add : scaling_t::subtract;
        // The exponent field of a bf16 result is e + byte: 1 to 254.
        lowest_ = 1 - e.lowest;
        highest_ = 254 - e.highest;
        v.exponent_shift = 127 - e.highest;
        // The smallest exponent in the table is 2, not 1. So the largest one is odd, as that of NaN must be
        // for folded tables of low bytes.
        if (fast_ == scaling_t::add) {
            lowest_++;
            v.exponent_shift = -125 - e.lowest;
        }
    } else if (quant_.scale_dt == mxdnn_f8_e4m3 && p.wei_dt == mxdnn_f4_e2m1) {
        fast_ = scaling_t::subtract_f8;
        kinds_ = 2;
        lowest_ = 0;
        highest_ = 0x7e; // no sign, no NaN
        v.exponent_shift = f8_exponent_shift;
        v.spread_mantissa = true;
    } else {
        return;
    }
    shifted_ = make_pair_decoder(j, v);
}

void panel_decoder_t::take_registers(zmm_pool_t &pool) {
    for (Zmm &z : wei_) z = pool.take();
    for (Zmm &z : temps_) z = pool.take();
    if (int4_) {
        int4_->take_registers(pool);
        if (!shifted_) return;
        for (Zmm *z : {&keep_, &scale_, &second_, &even_, &high_, &bits_}) *z = pool.take();
        return shifted_->take_constants(pool, 0);
    }
    for (Zmm *z : {&temp_, &keep_, &even_, &odd_, &scale_, &second_, &merge_, &high_, &bits_})
        *z = pool.take();
    if (shifted_) shifted_->take_constants(pool, exact_->required_constants());
    exact_->take_constants(pool, 0);
}

void panel_decoder_t::take_scale_registers(zmm_pool_t &pool) {
    takes_scales_ = true;
    from_ = pool.take();
    columns_ = pool.take();
}

void panel_decoder_t::load_constants(const Xbyak::Reg64 &temp) {
    if (int4_) {
        int4_->load_constants();
        if (!shifted_) return;
        shifted_->load_constants();
        // Table indices for a dword of four columns: the number of the mantissa; none for the upper byte of a
        // word.
        uint16_t columns[32];
        const uint16_t number = 3;
        for (int i = 0; i < 32; i++) columns[i] = uint16_t(0x8000 | i / 2 % 4 * 4);
        j_.vmovdqu64(high_, j_.constant(columns, sizeof(columns)));
        j_.vmovdqa64(bits_, j_.constant(number));
        return;
    }
    exact_->load_constants();
    if (shifted_) shifted_->load_constants();
    const uint32_t high = 0xffff0000;
    const uint16_t bits = 0x7fff;
    j_.vmovdqa64(high_, j_.constant(high));
    j_.vmovdqa64(bits_, j_.constant(bits));
    // Words of two f32 registers become pairs, or words of both halves of a register.
    uint16_t merge[32];
    const bool halves = slow_ == scaling_t::round;
    for (int i = 0; i < 16; i++) {
        merge[2 * i] = uint16_t(halves ? i : 2 * i + 1);
        merge[2 * i + 1] = uint16_t(halves ? 16 + i : 32 + 2 * i + 1);
    }
    j_.vmovdqu64(merge_, j_.constant(merge, sizeof(merge)));
    tile_params_t(j_, temps_, j_.k1).prepare(quant_.scale_dt, temp);
    if (!shifted_) return;
    // The bytes of a dword for converted powers of two: the high one of each word.
    j_.mov(temp, 0xaaaaaaaaaaaaaaaaull);
    j_.kmovq(j_.k4, temp);
    if (!takes_scales_) return;
    const uint8_t from = uint8_t(fast_ == scaling_t::subtract ? power_from() : -power_from());
    const columns_t index(0);
    j_.vmovdqa64(from_, j_.constant(from));
    j_.vmovdqa64(columns_, j_.constant(index.bytes, sizeof(index.bytes)));
}

void panel_decoder_t::check(const RegExp &header, int rows, Xbyak::Label &slow, const Xbyak::Reg64 &temp) {
    constexpr uint8_t greater = 6;
    const bool words = shape_.scale_bytes == 2;
    const uint8_t lowest = uint8_t(lowest_), range = uint8_t(highest_ - lowest_);
    const uint16_t lowest_word = uint16_t(lowest_), range_word = uint16_t(highest_ - lowest_);
    const int bytes = blocks(rows) * panel_columns * int(shape_.scale_bytes);
    for (int at = 0; at < bytes; at += vec_bytes) {
        // Bytes of the header after the scales are not scales.
        const int n = std::min(bytes - at, vec_bytes);
        if (n < vec_bytes) {
            j_.mov(temp, (uint64_t(1) << n / shape_.scale_bytes) - 1);
            j_.kmovq(j_.k3, temp);
        }
        const Xbyak::Opmask &found = n < vec_bytes ? j_.k2 | j_.k3 : j_.k2;
        j_.vmovdqu64(temps_[0], j_.ptr[header + at]);
        if (words) {
            j_.vpsubw(temps_[0], temps_[0], j_.constant(lowest_word));
            j_.vpcmpuw(found, temps_[0], j_.constant(range_word), greater);
        } else {
            if (lowest) j_.vpsubb(temps_[0], temps_[0], j_.constant(lowest));
            j_.vpcmpub(found, temps_[0], j_.constant(range), greater);
        }
        j_.kortestq(j_.k2, j_.k2);
        j_.jnz(slow, Xbyak::CodeGenerator::T_NEAR);
    }
}

void panel_decoder_t::convert(const RegExp &header, const RegExp &to, int rows, bool fast) {
    if (fast && fast_ == scaling_t::subtract_f8) return convert_f8(header, to, rows);
    if (fast && fast_ == scaling_t::subtract_bf16) return convert_bf16(header, to, rows);
    if (fast) return convert_powers(header, to, rows);
    const int n = blocks(rows);
    tile_params_t params(j_, temps_, j_.k1);
    params.to_f32(quant_.scale_dt, header, to, n);
    if (has_zero_points())
        params.to_f32(quant_.zp_dt, header + n * panel_columns * shape_.scale_bytes, to + kind_bytes(), n);
}

// The number that is subtracted from or added to both words of a column: the distance of a power of two from
// its value in the table, in the place of the exponent. Headers are whole cache lines.
void panel_decoder_t::convert_powers(const RegExp &header, const RegExp &to, int rows) {
    const Zmm &bytes = temps_[0], &t = temps_[1];
    for (int b = 0; b < blocks(rows); b++) {
        if (b % 4 == 0) {
            const uint8_t from = power_from();
            if (fast_ == scaling_t::subtract) {
                j_.vmovdqa64(bytes, j_.constant(from));
                j_.vpsubb(bytes, bytes, j_.ptr[header + b * panel_columns]);
            } else {
                j_.vmovdqu64(bytes, j_.ptr[header + b * panel_columns]);
                j_.vpsubb(bytes, bytes, j_.constant(from));
            }
        }
        const columns_t index(b % 4 * panel_columns);
        j_.vmovdqa64(t, j_.constant(index.bytes, sizeof(index.bytes)));
        j_.vpermb(t | j_.k4 | Xbyak::util::T_z, t, bytes);
        j_.vpsrlw(t, t, 1);
        j_.vmovdqa64(j_.ptr[to + b * vec_bytes], t);
    }
}

// First kind: the number to subtract from the word of 2^e. Second kind: ones, and in the bits of the mantissa
// the difference to a word of 1.5 * 2^e, which may carry into the exponent.
void panel_decoder_t::convert_f8(const RegExp &header, const RegExp &to, int rows) {
    static const f8_scales_t table;
    const Zmm &scales = wei_[0], &l = temps_[0], &h = temps_[1], &words = temps_[2], &t = temps_[3];
    for (int b = 0; b < blocks(rows); b += 4) {
        const auto look_up = [&](const Zmm &d, const uint8_t *of) {
            j_.vmovdqa64(d, scales);
            j_.vmovdqa64(t, j_.constant(of, 64));
            j_.vpermi2b(d, t, j_.constant(of + 64, 64));
        };
        // Words of four blocks, from their low and high bytes. Twice.
        const auto store = [&](int kind) {
            for (int i = 0; i < 4; i++) {
                if (i == 0) j_.vpunpcklbw(words, l, h);
                if (i == 2) j_.vpunpckhbw(words, l, h);
                if (i % 2)
                    j_.vpunpckhwd(t, words, words);
                else
                    j_.vpunpcklwd(t, words, words);
                j_.vmovdqa64(j_.ptr[to + kind * kind_bytes() + (b + i) * vec_bytes], t);
            }
        };
        j_.vmovdqu64(scales, j_.constant(table.by_lanes, sizeof(table.by_lanes)));
        j_.vpermd(scales, scales, j_.ptr[header + b * panel_columns]);
        look_up(l, table.low);
        look_up(h, table.high);
        store(0);
        look_up(l, table.second);
        j_.vpternlogd(h, h, h, 0xff);
        store(1);
    }
}

// Two blocks at a time; words of a column in the order of its lanes. First kind: the number to subtract from
// the word of a value. Second kind: four bytes for each column, the corrections for the four mantissas.
void panel_decoder_t::convert_bf16(const RegExp &header, const RegExp &to, int rows) {
    static const bf16_scales_t tables;
    const uint16_t none = bf16_scales_t::least, low = 0x00ff;
    const uint16_t first = uint16_t((bf16_exponent_shift << 7) + bf16_bits(1.f) + none);
    const Zmm &scales = temps_[0], &l = temps_[1], &h = temps_[2], &t = temps_[3];
    for (int b = 0; b < blocks(rows); b += 2) {
        const auto look_up = [&](const Zmm &d, int i) {
            j_.vmovdqa64(d, scales);
            j_.vmovdqa64(t, j_.constant(tables.beyond[i], 64));
            j_.vpermi2b(d, t, j_.constant(tables.beyond[i] + 64, 64));
        };
        const auto store = [&](const Zmm &low_words, const Zmm &high_words, int kind) {
            j_.vpunpcklwd(t, low_words, high_words);
            j_.vmovdqa64(j_.ptr[to + kind * kind_bytes() + b * vec_bytes], t);
            j_.vpunpckhwd(t, low_words, high_words);
            j_.vmovdqa64(j_.ptr[to + kind * kind_bytes() + (b + 1) * vec_bytes], t);
        };
        j_.vmovdqu64(scales, j_.constant(tables.by_lanes, sizeof(tables.by_lanes)));
        j_.vpermq(scales, scales, j_.ptr[header + b * panel_columns * 2]);
        look_up(h, 1);
        j_.vpsllw(h, h, 8);
        j_.vpord(h, h, j_.constant(none));
        look_up(l, 3);
        j_.vpsllw(l, l, 8);
        look_up(wei_[0], 2);
        j_.vpternlogd(l, wei_[0], j_.constant(low), 0xf8);
        store(h, l, 1);
        j_.vmovdqa64(l, j_.constant(first));
        j_.vpsubw(l, l, scales);
        store(l, l, 0);
    }
}

void panel_decoder_t::load_params(const RegExp &at, bool fast) {
    if (int4_ && !fast) return int4_->load_params(at, at + kind_bytes());
    j_.vmovdqa64(scale_, j_.ptr[at]);
    if (fast && kinds_ == 2) j_.vmovdqa64(second_, j_.ptr[at + kind_bytes()]);
}

// See convert_powers().
void panel_decoder_t::load_scales(const RegExp &scales) {
    const Xbyak::Xmm bytes(scale_.getIdx()), from(from_.getIdx());
    if (fast_ == scaling_t::subtract)
        j_.vpsubb(bytes, from, j_.ptr[scales]);
    else
        j_.vpaddb(bytes, from, j_.ptr[scales]);
    j_.vpermb(scale_ | j_.k4 | Xbyak::util::T_z, columns_, scale_);
    j_.vpsrlw(scale_, scale_, 1);
}

int panel_decoder_t::fetches(bool fast) const {
    return fast ? shifted_->fetches() : int4_ ? int4_decoder_t::pairs : exact_->fetches();
}

void panel_decoder_t::half_step(const RegExp &codes, const RegExp &dst, int rows, bool fast) {
    for (int f = 0; f < fetches(fast); f++) fetch(f, codes, dst, rows, fast);
}

void panel_decoder_t::fetch(int f, const RegExp &codes, const RegExp &dst, int rows, bool fast) {
    if (int4_ && !fast) return int4_->decode_pair(f, codes, dst, rows);
    const uint32_t low = 0x0000ffff;
    pair_decoder_t &decoder = fast ? *shifted_ : *exact_;
    decoder.emit(f, {codes, codes /* nobody reads zero points */}, wei_, temp_,
            decoder.can_keep() ? &keep_ : nullptr);
    for (int i = 0; i < decoder.pairs(); i++) {
        const int pair = decoder.pair(f, i), left = rows - 2 * pair;
        const Zmm &w = wei_[i];
        if (left > 0) apply(w, fast ? fast_ : slow_);
        if (left == 1) j_.vpandd(w, w, j_.constant(low));
        if (left <= 0) j_.vpxord(w, w, w);
        j_.vmovdqu64(j_.ptr[dst + pair * vec_bytes], w);
    }
}

void panel_decoder_t::apply(const Zmm &w, scaling_t scaling) {
    switch (scaling) {
    case scaling_t::subtract: j_.vpsubusw(w, w, scale_); break;
    case scaling_t::add:
        j_.vptestmw(j_.k2, w, bits_);
        j_.vpaddusw(w | j_.k2, w, scale_);
        break;
    case scaling_t::subtract_f8:
        j_.vpandd(w, w, second_);
        j_.vpsubusw(w, w, scale_);
        break;
    case scaling_t::subtract_bf16:
        j_.vmovdqa64(even_, w);
        j_.vpternlogd(even_, bits_, high_, 0xea); // and, or
        j_.vpshufb(even_, second_, even_);
        j_.vpaddw(w, w, even_);
        j_.vpsubusw(w, w, scale_);
        break;
    case scaling_t::multiply:
    case scaling_t::round:
        j_.vpslld(even_, w, 16);
        j_.vpandd(odd_, w, high_);
        j_.vmulps(even_, even_, scale_);
        j_.vmulps(odd_, odd_, scale_);
        if (scaling == scaling_t::round) {
            j_.vcvtne2ps2bf16(even_, odd_, even_);
            j_.vpermw(w, merge_, even_);
            break;
        }
        j_.vpermt2w(even_, merge_, odd_);
        j_.vmovdqa64(w, even_);
        break;
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
