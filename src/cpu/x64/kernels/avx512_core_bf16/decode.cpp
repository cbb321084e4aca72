// SPDX-License-Identifier: Apache-2.0
// Decode kernels: a panel of packed weights to bf16 pairs with scales (and zero points) applied,
// the order in which dense kernels, vdpbf16ps or AMX, read them.
//
// MX formats and NVFP4 are exact where the result is a normal bf16 number; beyond the largest it
// is Inf, and below 2^-126 it is truncated or 0, which dot products take for 0 anyway. int4 is
// computed in f32 as the reference does and rounded once to bf16 (nearest even; results below
// 2^-126 become 0). A NaN scale makes NaN of its block.
#include <algorithm>
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/rows.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::RegExp;
using Xbyak::Zmm;

constexpr int vec_bytes = 64;

// How a pair gets its scale.
enum class scaling_t {
    // Scales are powers of two and the exponents of the table are shifted, so that the rest is an
    // integer operation on both numbers at once. Only for tiles whose results all are normal.
    subtract, // table of large exponents: zeros saturate, the type has no NaN
    add,      // table of small exponents: zeros are masked, NaN saturates
    // In f32.
    multiply,          // the product has no more bits than bf16 (or is no normal number)
    multiply_and_round // with zero points of either kind
};

// Exponents of the values of an element type that are not 0.
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

class decode_t : public jit_base_t {
public:
    explicit decode_t(const kernel_params_t &p) : quant_(p.quant), shape_(shape_of(p)) {
        pair_values_t v;
        v.wei_dt = p.wei_dt;
        v.subtract = float_zero() ? 8 : 0;
        exact_ = make_pair_decoder(*this, v);
        if (p.wei_dt == mxdnn_s4 || p.wei_dt == mxdnn_u4) {
            slow_ = scaling_t::multiply_and_round;
        } else if (quant_.scale_dt == mxdnn_e8m0 && p.wei_dt != mxdnn_f8_e5m2) { // which has Inf
            const exponents_t e = exponents_of(p.wei_dt);
            fast_ = shape_.bits < 8 ? scaling_t::subtract : scaling_t::add;
            // The bf16 exponent field of a result is e + byte: from 1 to 254.
            lowest_ = 1 - e.lowest;
            highest_ = 254 - e.highest;
            v.exponent_shift = fast_ == scaling_t::subtract ? 127 - e.highest : -126 - e.lowest;
            shifted_ = make_pair_decoder(*this, v);
        }
        plan();
    }

private:
    static packed_shape_t shape_of(const kernel_params_t &p) {
        const int64_t any_n = panel_columns;
        return make_packed_shape(p.K, any_n, data_type_info(p.wei_dt)->bits, p.quant);
    }
    bool float_zero() const { return quant_.zp == zero_point_kind_t::float_zero; }
    bool has_zero_points() const { return quant_.zp != zero_point_kind_t::none; }

    const quant_t quant_;
    const packed_shape_t shape_;
    const int block_ = int(shape_.block);
    const int tile_rows_ = int(n16_frame_t::tile_rows(shape_));
    const int unit_rows_ = std::max(block_, k_step);
    const int half_bytes_ = k_step / 2 * panel_columns * shape_.bits / 8;
    int blocks(int rows) const { return int(div_up(rows, block_)); }

    // fast_ is used for tiles whose scale bytes are within lowest_ and highest_.
    scaling_t fast_ = scaling_t::multiply, slow_ = scaling_t::multiply;
    int lowest_ = 0, highest_ = 0;
    std::unique_ptr<pair_decoder_t> exact_, shifted_;

    Zmm wei_[2], temp_, keep_, even_, odd_, scale_, zero_point_, merge_, high_, magnitude_;
    Zmm temps_[tile_params_t::temps];

    void plan() {
        zmm_pool_t pool;
        for (Zmm &z : wei_) z = pool.take();
        for (Zmm *z : {&temp_, &keep_, &even_, &odd_, &scale_, &zero_point_, &merge_, &high_, &magnitude_})
            *z = pool.take();
        for (Zmm &z : temps_) z = pool.take();
        if (shifted_) shifted_->take_constants(pool, exact_->required_constants());
        exact_->take_constants(pool, 0);
    }

    const Xbyak::Reg64 codes_ = r8, dst_ = r9, params_ = rcx, tiles_ = rdx, units_ = r14, steps_ = r15;

    enum param_kind_t { scales, zero_points };
    const int param_bytes_ = tile_params_t::room(blocks(tile_rows_)) * vec_bytes;
    RegExp tile_params(param_kind_t kind) const { return rsp + int(kind) * param_bytes_; }
    RegExp block_params(param_kind_t kind) const { return params_ + int(kind) * param_bytes_; }
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble((1 + has_zero_points()) * param_bytes_);
        mov(codes_, arg(offsetof(decode_args_t, wei)));
        mov(dst_, arg(offsetof(decode_args_t, dst)));
        mov(tiles_, arg(offsetof(decode_args_t, tiles)));
        exact_->load_constants();
        if (shifted_) shifted_->load_constants();
        load_constants();
        tile_params_t(*this, temps_, k1).prepare(quant_.scale_dt, rax);

        Xbyak::Label no_tiles, done;
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { tile(tile_rows_); });
        L(no_tiles);
        if (const int tail = int(shape_.K % tile_rows_)) {
            cmp(arg(offsetof(decode_args_t, tail)), 0);
            je(done, T_NEAR);
            tile(tail);
        }
        L(done);
        postamble();
    }

    void load_constants() {
        const uint32_t high = 0xffff0000, magnitude = 0x7fff7fff;
        vmovdqa64(high_, constant(high));
        vmovdqa64(magnitude_, constant(magnitude));
        // Words of two registers of f32 to pairs.
        uint16_t merge[32];
        for (int i = 0; i < 16; i++) {
            const bool rounded = slow_ == scaling_t::multiply_and_round; // in one register: even, odd
            merge[2 * i] = uint16_t(rounded ? i : 2 * i + 1);
            merge[2 * i + 1] = uint16_t(rounded ? 16 + i : 32 + 2 * i + 1);
        }
        vmovdqu64(merge_, constant(merge, sizeof(merge)));
    }

    void tile(int rows) {
        const int header = int(n16_frame_t::header_bytes(shape_, rows));
        if (!shifted_) {
            convert_params(rows);
            add(codes_, header);
            return codes_of_tile(rows, slow_);
        }
        Xbyak::Label out_of_range, done;
        check_range(rows, out_of_range);
        shifts(rows);
        add(codes_, header);
        codes_of_tile(rows, fast_);
        jmp(done, T_NEAR);
        L(out_of_range);
        convert_params(rows);
        add(codes_, header);
        codes_of_tile(rows, slow_);
        L(done);
    }

    // Jumps if a scale byte of the tile is not within lowest_ and highest_.
    void check_range(int rows, Xbyak::Label &out_of_range) {
        constexpr uint8_t greater = 6;
        const uint8_t lowest = uint8_t(lowest_), range = uint8_t(highest_ - lowest_);
        const int bytes = blocks(rows) * panel_columns;
        for (int at = 0; at < bytes; at += vec_bytes) {
            // What follows the scales in the header is no scale.
            const int n = std::min(bytes - at, vec_bytes);
            if (n < vec_bytes) {
                mov(rax, (uint64_t(1) << n) - 1);
                kmovq(k3, rax);
            }
            vmovdqu64(temps_[0], ptr[codes_ + at]);
            vpsubb(temps_[0], temps_[0], constant(lowest));
            vpcmpub(n < vec_bytes ? k2 | k3 : k2, temps_[0], constant(range), greater);
            kortestq(k2, k2);
            jnz(out_of_range, T_NEAR);
        }
    }

    // What is subtracted from or added to the words of a column, for every block.
    void shifts(int rows) {
        const uint32_t bias = uint32_t(fast_ == scaling_t::subtract ? highest_ : lowest_);
        const Zmm &t = temps_[0], &u = temps_[1];
        for (int b = 0; b < blocks(rows); b++) {
            vpmovzxbd(t, ptr[codes_ + b * panel_columns]);
            vmovdqa64(u, constant(bias));
            if (fast_ == scaling_t::subtract)
                vpsubd(t, u, t);
            else
                vpsubd(t, t, u);
            vpslld(u, t, 7);
            vpslld(t, t, 16 + 7);
            vpord(t, t, u);
            vmovdqa64(ptr[tile_params(scales) + b * vec_bytes], t);
        }
    }

    void convert_params(int rows) {
        const int n = blocks(rows);
        tile_params_t convert(*this, temps_, k1);
        convert.to_f32(quant_.scale_dt, codes_, tile_params(scales), n);
        if (has_zero_points())
            convert.to_f32(quant_.zp_dt, codes_ + n * panel_columns * shape_.scale_bytes,
                    tile_params(zero_points), n);
    }

    void codes_of_tile(int rows, scaling_t scaling) {
        mov(params_, rsp);
        // The last rows of a tail are written apart: padding is zeros, whatever the codes there say.
        const int whole = rows / unit_rows_, rest = rows % unit_rows_;
        loop(units_, whole, [&] { unit(unit_rows_, scaling); });
        if (rest) unit(rest, scaling);
    }

    void unit(int rows, scaling_t scaling) {
        const bool two_blocks = block_ < k_step;
        if (!two_blocks) load_params(0, scaling);
        const auto step = [&](int step_rows) {
            for (int half = 0; half < 2; half++) {
                if (two_blocks) load_params(half, scaling);
                half_step(half, step_rows - half * k_step / 2, scaling);
            }
            add(codes_, 2 * half_bytes_);
            add(dst_, k_step / 2 * vec_bytes);
        };
        loop(steps_, rows / k_step, [&] { step(k_step); });
        if (rows % k_step) step(rows % k_step);
        add(params_, (1 + two_blocks) * vec_bytes);
    }

    void load_params(int block, scaling_t scaling) {
        vmovdqa64(scale_, ptr[block_params(scales) + block * vec_bytes]);
        if (scaling == scaling_t::multiply_and_round && has_zero_points())
            vmovdqa64(zero_point_, ptr[block_params(zero_points) + block * vec_bytes]);
    }

    // Sixteen rows, of which `rows` exist (any number: none, or more).
    void half_step(int half, int rows, scaling_t scaling) {
        const uint32_t low = 0x0000ffff;
        const bool shifted = scaling == scaling_t::subtract || scaling == scaling_t::add;
        pair_decoder_t &decoder = shifted ? *shifted_ : *exact_;
        for (int f = 0; f < decoder.fetches(); f++) {
            decoder.emit(f, {codes_ + half * half_bytes_, RegExp()}, wei_, temp_,
                    decoder.can_keep() ? &keep_ : nullptr);
            for (int i = 0; i < decoder.pairs(); i++) {
                const int pair = decoder.pair(f, i), left = rows - 2 * pair;
                const Zmm &w = wei_[i];
                if (left > 0) apply(w, scaling);
                if (left == 1) vpandd(w, w, constant(low));
                if (left <= 0) vpxord(w, w, w);
                vmovdqu64(ptr[dst_ + (half * 8 + pair) * vec_bytes], w);
            }
        }
    }

    void apply(const Zmm &w, scaling_t scaling) {
        switch (scaling) {
        case scaling_t::subtract: vpsubusw(w, w, scale_); break;
        case scaling_t::add:
            vptestmw(k2, w, magnitude_);
            vpaddusw(w | k2, w, scale_);
            break;
        case scaling_t::multiply:
            split(w);
            vmulps(even_, even_, scale_);
            vmulps(odd_, odd_, scale_);
            vpermt2w(even_, merge_, odd_);
            vmovdqa64(w, even_);
            break;
        case scaling_t::multiply_and_round: {
            split(w);
            const bool integer = has_zero_points() && !float_zero();
            if (integer) vsubps(even_, even_, zero_point_);
            if (integer) vsubps(odd_, odd_, zero_point_);
            vmulps(even_, even_, scale_);
            vmulps(odd_, odd_, scale_);
            if (float_zero()) vaddps(even_, even_, zero_point_);
            if (float_zero()) vaddps(odd_, odd_, zero_point_);
            vcvtne2ps2bf16(even_, odd_, even_);
            vpermw(w, merge_, even_);
            break;
        }
        }
    }
    void split(const Zmm &w) {
        vpslld(even_, w, 16);
        vpandd(odd_, w, high_);
    }
};

} // namespace

status_t make_avx512_core_bf16_decode(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<decode_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
