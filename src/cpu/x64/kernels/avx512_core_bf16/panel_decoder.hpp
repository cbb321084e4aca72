// SPDX-License-Identifier: Apache-2.0
// Emits code that decodes a packed panel to bf16 pairs with scales (and zero points) applied: the
// order in which gemm kernels, vdpbf16ps or AMX, read them. The kernels around it own the loops,
// the addresses and the places of the results.
//
// MX formats and NVFP4 are exact where the result is a normal bf16 number; beyond the largest it
// is Inf, and below 2^-126 it is truncated or 0, which dot products take for 0 anyway. int4 and int8
// are computed in f32 as the reference does and rounded once to bf16 (nearest even; results below
// 2^-126 become 0). A NaN scale makes NaN of its block.
#pragma once

#include "common/layouts/n16.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/int4_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class panel_decoder_t {
public:
    panel_decoder_t(jit_base_t &j, const kernel_params_t &p);

    const packed_shape_t &shape() const { return shape_; }
    int tile_rows() const { return int(n16_frame_t::tile_rows(shape_)); }
    int header_bytes(int rows) const { return int(n16_frame_t::header_bytes(shape_, rows)); }
    int half_bytes() const { return k_step / 2 * panel_columns * shape_.bits / 8; } // codes of 16 rows
    int blocks(int rows) const { return int(div_up(rows, shape_.block)); }
    bool two_blocks() const { return shape_.block < k_step; } // one for each half of a step

    // A tile is decoded in one of two ways. The fast way is integer arithmetic on two numbers at once. It
    // exists for some formats, and for tiles with ordinary scales.
    bool has_fast() const { return bool(shifted_); }

    void take_registers(zmm_pool_t &pool);
    void load_constants(const Xbyak::Reg64 &temp);

    // Jumps if the tile with that header needs the slow way. `temp` is overwritten.
    void check(const Xbyak::RegExp &header, int rows, Xbyak::Label &slow, const Xbyak::Reg64 &temp);

    // The size of a tile's converted parameters. Those of a block are at block * 64; those of the second kind
    // kind_bytes() behind.
    int param_bytes() const { return kinds_ * kind_bytes(); }
    int kind_bytes() const { return tile_params_t::room(blocks(tile_rows())) * 64; }
    void convert(const Xbyak::RegExp &header, const Xbyak::RegExp &to, int rows, bool fast);

    // Loads the parameters of one block for the half steps that follow.
    void load_params(const Xbyak::RegExp &at, bool fast);
    // Of tiles that are decoded in the fast way some kernels load the scales themselves, one block for each
    // step of 32 rows, so that nothing is converted before a tile.
    bool loads_scales() const {
        return (fast_ == scaling_t::subtract || fast_ == scaling_t::add) && shape_.block == k_step;
    }
    void take_scale_registers(zmm_pool_t &pool);
    void load_scales(const Xbyak::RegExp &scales);
    // Five registers that are free between half steps.
    Xbyak::Zmm spare(int i) const { return i < tile_params_t::temps ? temps_[i] : wei_[0]; }
    // Decodes 16 rows of codes to eight vectors. `rows` of them exist: any number from none to more than 16.
    void half_step(const Xbyak::RegExp &codes, const Xbyak::RegExp &dst, int rows, bool fast);
    // The same in pieces, from 0 to fetches() - 1, in that order.
    int fetches(bool fast) const;
    void fetch(int i, const Xbyak::RegExp &codes, const Xbyak::RegExp &dst, int rows, bool fast);

private:
    enum class scaling_t {
        // Scales are powers of two. The table has shifted exponents, so that one more operation suffices.
        // Only for tiles with normal results.
        subtract, // table with large exponents: zeros saturate; the type has no NaN
        add,      // table with small exponents: zeros are masked, NaN saturates (f8_e4m3)
        // f4 with f8_e4m3 scales. A value is 0, 2^e or 1.5 * 2^e. So a result is the bf16 of the scale, or of
        // 1.5 times the scale, with e added to its exponent. The difference of both, as integers, fits in the
        // bits of the mantissa. The table has all these bits set for 1.5, and a mask leaves the difference.
        // Zeros saturate.
        subtract_f8,
        // s4 with bf16 scales. A magnitude is 2^e times 1, 1.25, 1.5 or 1.75. So a result is one of four
        // words, the rounded products of these and the scale, with e added to its exponent. A word is the sum
        // of both logarithms plus a correction of at most 22, which is looked up by column and mantissa.
        subtract_bf16,
        multiply, // in f32: the product has no more bits than bf16 (or is not normal)
        round     // in f32, and rounded to bf16
    };

    jit_base_t &j_;
    const quant_t quant_;
    const packed_shape_t shape_;
    int kinds_ = 1;
    scaling_t fast_ = scaling_t::multiply, slow_ = scaling_t::multiply;
    int lowest_ = 0, highest_ = 0; // range of scale bytes for the fast way
    std::unique_ptr<pair_decoder_t> exact_, shifted_;
    std::unique_ptr<int4_decoder_t> int4_; // used instead of exact_

    Xbyak::Zmm wei_[2], temp_, keep_, even_, odd_, scale_, second_, merge_, high_, bits_;
    Xbyak::Zmm from_, columns_; // of load_scales(), if it is used
    bool takes_scales_ = false;
    Xbyak::Zmm temps_[tile_params_t::temps];

    bool has_zero_points() const { return quant_.zp != zero_point_kind_t::none; }
    uint8_t power_from() const { return uint8_t(fast_ == scaling_t::subtract ? highest_ : lowest_); }
    void convert_powers(const Xbyak::RegExp &header, const Xbyak::RegExp &to, int rows);
    void convert_f8(const Xbyak::RegExp &header, const Xbyak::RegExp &to, int rows);
    void convert_bf16(const Xbyak::RegExp &header, const Xbyak::RegExp &to, int rows);
    void apply(const Xbyak::Zmm &w, scaling_t scaling);
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
