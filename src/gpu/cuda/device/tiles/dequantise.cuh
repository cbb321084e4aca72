// SPDX-License-Identifier: Apache-2.0
// The codes of a tile to high-precision values, lines along k or n, by the rules of
// formats/quantize_block.hpp.
#pragma once

#include "common/formats/quantize_block.hpp"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"
#include "gpu/cuda/device/tiles/code_tile.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Types of the destination.
struct to_bf16_t {
    static constexpr int bytes = 2;
    __device__ static uint32_t pair(float a, float b) {
        return uint32_t(to_bf16(a)) | uint32_t(to_bf16(b)) << 16;
    }
};
struct to_f16_t {
    static constexpr int bytes = 2;
    __device__ static uint32_t pair(float a, float b) {
        return uint32_t(to_f16(a)) | uint32_t(to_f16(b)) << 16;
    }
};
struct to_f32_t {
    static constexpr int bytes = 4;
};

// The value of a code; `code` has no other bits.
template <typename element_t>
__device__ __forceinline__ float decode_code(uint32_t code) {
    if constexpr (element_t::is_float) {
        // The fields are moved to the place of those of f32, with another bias. This is right for subnormals,
        // too.
        constexpr uint32_t magnitudes = element_t::sign_code - 1;
        constexpr float rebias = exp2_f32(127 - element_t::bias);
        const uint32_t magnitude = code & magnitudes;
        float x = mul_f32(float_of(magnitude << (23 - element_t::mantissa_bits)), rebias);
        if (element_t::specials == specials_t::nan && magnitude == magnitudes) x = float_of(f32_nan_bits);
        if (element_t::specials == specials_t::ieee && magnitude >= element_t::inf_code)
            x = float_of(magnitude == element_t::inf_code ? f32_inf_bits : f32_nan_bits);
        return float_of(bits_of(x) | (code & element_t::sign_code) << (32 - element_t::bits));
    } else if constexpr (element_t::bits == 8) {
        // The bits of 2^23, combined with a number below 2^23, are those of their sum. MXINT8's step of 2^-6
        // is in the factor (block_values).
        return float_of(0x4b000000u | (code ^ 0x80u)) - 8388736.f;
    } else {
        const uint32_t shifted = element_t::is_signed ? code ^ 8u : code;
        return float_of(0x4b000000u | shifted) - (element_t::is_signed ? 8388616.f : 8388608.f);
    }
}

// The factor and the zero point of a block. Floating-point zeros are added last.
struct block_values_t {
    float factor, offset;
};
__device__ inline block_values_t block_values(
        const tile_args_t &a, uint32_t scale, uint32_t zp, float global) {
    // Most scales are powers of two.
    block_values_t v{a.scale_dt == mxdnn_e8m0 ? e8m0_t::decode(scale) : decode_value(a.scale_dt, scale), 0};
    if (a.src.dt == mxdnn_s8 && a.scale_dt == mxdnn_e8m0) v.factor = mul_f32(v.factor, s8_t::step); // exact
    if (a.two_levels) v.factor = mul_f32(global, v.factor);
    if (a.zp == zero_point_kind_t::u8) v.offset = float(zp & 0xff);
    if (is_added(a.zp)) v.offset = decode_value(a.zp_dt, zp);
    return v;
}
template <typename element_t>
__device__ __forceinline__ float dequantise(const tile_args_t &a, uint32_t code, float factor, float offset) {
    const float x = decode_code<element_t>(code);
    if constexpr (element_t::is_float || element_t::bits == 8) return mul_f32(x, factor);
    if (is_added(a.zp)) return add_f32(mul_f32(sub_f32(x, float(code_of_added(a.zp))), factor), offset);
    return mul_f32(sub_f32(x, offset), factor);
}

// Eight neighbouring values, or the first n of them.
template <typename to_t>
__device__ __forceinline__ void store_words(
        uint8_t *p, const uint32_t (&w)[2 * to_t::bytes], bool whole, int n) {
    if (whole) {
#pragma unroll
        for (int i = 0; i < to_t::bytes / 2; i++)
            reinterpret_cast<uint4 *>(p)[i] = make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i >= n) continue;
        if (to_t::bytes == 2)
            reinterpret_cast<uint16_t *>(p)[i] = uint16_t(w[i / 2] >> i % 2 * 16);
        else
            reinterpret_cast<uint32_t *>(p)[i] = w[i];
    }
}

template <typename to_t>
__device__ __forceinline__ void store_values(uint8_t *p, const float (&x)[8], bool whole, int n) {
    uint32_t w[2 * to_t::bytes];
#pragma unroll
    for (int i = 0; i < 2 * to_t::bytes; i++)
        if constexpr (to_t::bytes == 2)
            w[i] = to_t::pair(x[2 * i], x[2 * i + 1]);
        else
            w[i] = bits_of(x[i]);
    store_words<to_t>(p, w, whole, n);
}

// Two bf16, or two f16, in a word. Factors and zero points, which are f32, can be represented in that type.
struct bf16_pairs_t : bf16x2_t {
    __device__ static __forceinline__ uint32_t pair(uint32_t a, uint32_t b) {
        return __byte_perm(a, b, 0x7632);
    }
};
struct f16_pairs_t : f16x2_t {
    __device__ static __forceinline__ uint32_t pair(uint32_t a, uint32_t b) {
        return to_f16_t::pair(float_of(a), float_of(b));
    }
};

// The values of the i-th 4-bit codes of the halves of a word. The product is rounded once.
struct f4_pairs_t : bf16_pairs_t {
    static constexpr bool zeros = false;
    __device__ static __forceinline__ uint32_t values(uint32_t codes, int i, uint32_t factors, uint32_t) {
        // Exponent and mantissa are moved to the place of those of bf16, with another bias. The subnormal is
        // right, too.
        const uint32_t magnitudes = (i < 2 ? codes << (6 - 4 * i) : codes >> (4 * i - 6)) & 0x01c001c0u;
        const uint32_t signs = codes << (12 - 4 * i) & 0x80008000u;
        return mul(mul(magnitudes | signs, of(exp2_f32(126))), factors);
    }
};
// Signed codes without zero points, or unsigned ones with zero points of a byte.
template <bool is_signed, typename pairs_t>
struct int4_pairs_t : pairs_t {
    static constexpr bool zeros = !is_signed;
    __device__ static __forceinline__ uint32_t values(
            uint32_t codes, int i, uint32_t factors, uint32_t zero_points) {
        // As integers in the mantissa of an integer. All differences are integers up to 255.
        constexpr float base = pairs_t::integers;
        const uint32_t landed =
                (codes >> 4 * i & 0x000f000fu) ^ pairs_t::of(base) ^ (is_signed ? 0x00080008u : 0u);
        uint32_t v = add(landed, pairs_t::of(is_signed ? -base - 8.f : -base));
        if (zeros) v = add(v, zero_points ^ 0x80008000u);
        return pairs_t::mul(v, factors);
    }

private:
    __device__ static __forceinline__ uint32_t add(uint32_t a, uint32_t b) {
        return pairs_t::fma(a, pairs_t::of(1.f), b);
    }
};

// Of 4-bit codes.
template <typename pairs_t>
__device__ __forceinline__ void dequantise_pairs(
        const code_tile_t<4> &t, const tile_args_t &a, const tile_place_t &at) {
    uint8_t *p = a.dst.data + at.matrix * a.dst.batch_step;
    const bool whole = at.whole && a.dst.aligned;
    constexpr int value_bytes = 2;
    if (a.dst.lines_along_k) {
        constexpr int parts = code_tile_t<4>::rows / 8, columns = threads / parts;
        const int part = threadIdx.x % parts, first = threadIdx.x / parts, b = part * 8 >> a.block_shift;
        p += (at.n + first) * a.dst.line_step + (at.k + part * 8) * value_bytes;
#pragma unroll 4
        for (int pass = 0; pass < tile_n / columns; pass++) {
            const int column = first + pass * columns;
            const uint32_t codes = t.at<uint32_t>(column, part * 8);
            const uint32_t factor = t.scale[b][column], zero = pairs_t::zeros ? t.zp[b][column] : 0;
            const uint32_t factors = pairs_t::pair(factor, factor), zeros = pairs_t::pair(zero, zero);
            uint32_t v[4]; // values i and i + 4
#pragma unroll
            for (int i = 0; i < 4; i++) v[i] = pairs_t::values(codes, i, factors, zeros);
            const uint32_t w[4] = {__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[2], v[3], 0x5410),
                    __byte_perm(v[0], v[1], 0x7632), __byte_perm(v[2], v[3], 0x7632)};
            if (whole || column < at.columns)
                store_words<to_bf16_t>(p + pass * columns * a.dst.line_step, w, whole, at.rows - part * 8);
        }
        return;
    }
    constexpr int across = tile_n / 8, down = threads / across;
    const int column = threadIdx.x % across * 8, first = threadIdx.x / across * 8;
    p += (at.k + first) * a.dst.line_step + (at.n + column) * value_bytes;
#pragma unroll
    for (int pass = 0; pass < code_tile_t<4>::rows / down / 8; pass++) {
        const int row = first + pass * down * 8, b = row >> a.block_shift;
        uint32_t codes[2][4], factors[4], zeros[4] = {}; // for two columns, four rows and four rows
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint32_t x = t.at<uint32_t>(column + 2 * j, row),
                           y = t.at<uint32_t>(column + 2 * j + 1, row);
            codes[0][j] = __byte_perm(x, y, 0x5410), codes[1][j] = __byte_perm(x, y, 0x7632);
            factors[j] = pairs_t::pair(t.scale[b][column + 2 * j], t.scale[b][column + 2 * j + 1]);
            if (pairs_t::zeros)
                zeros[j] = pairs_t::pair(t.zp[b][column + 2 * j], t.zp[b][column + 2 * j + 1]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            uint32_t w[4];
#pragma unroll
            for (int j = 0; j < 4; j++) w[j] = pairs_t::values(codes[i / 4][j], i % 4, factors[j], zeros[j]);
            if (whole || row + i < at.rows)
                store_words<to_bf16_t>(
                        p + (pass * down * 8 + i) * a.dst.line_step, w, whole, at.columns - column);
        }
    }
}

// The scales and zero points of the tile have become block_values_t.
template <typename element_t, typename to_t, int width>
__device__ __forceinline__ void dequantise_tile(
        const code_tile_t<width> &t, const tile_args_t &a, const tile_place_t &at) {
    constexpr bool zeros = !element_t::is_float && element_t::bits == 4;
    constexpr uint32_t mask = (1u << width) - 1;
    uint8_t *p = a.dst.data + at.matrix * a.dst.batch_step;
    const bool whole = at.whole && a.dst.aligned;
    if (a.dst.lines_along_k) {
        constexpr int parts = code_tile_t<width>::rows / 8, columns = threads / parts;
        const int part = threadIdx.x % parts, first = threadIdx.x / parts, b = part * 8 >> a.block_shift;
        p += (at.n + first) * a.dst.line_step + (at.k + part * 8) * to_t::bytes;
#pragma unroll 4
        for (int pass = 0; pass < tile_n / columns; pass++) {
            const int column = first + pass * columns;
            uint32_t w[width / 4];
#pragma unroll
            for (int i = 0; i < width / 4; i++) w[i] = t.template at<uint32_t>(column, part * 8 + i * 4);
            const float factor = float_of(t.scale[b][column]), offset = zeros ? float_of(t.zp[b][column]) : 0;
            float x[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                x[i] = dequantise<element_t>(a, w[i * width / 32] >> i * width % 32 & mask, factor, offset);
            if (whole || column < at.columns)
                store_values<to_t>(p + pass * columns * a.dst.line_step, x, whole, at.rows - part * 8);
        }
        return;
    }
    constexpr int side = 32 / width, across = tile_n / 8, down = threads / across;
    const int column = threadIdx.x % across * 8, first = threadIdx.x / across * side;
    p += (at.k + first) * a.dst.line_step + (at.n + column) * to_t::bytes;
#pragma unroll
    for (int pass = 0; pass < code_tile_t<width>::rows / down / side; pass++) {
        const int row = first + pass * down * side, b = row >> a.block_shift;
        uint32_t w[8];
        float factor[8], offset[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            w[j] = t.template at<uint32_t>(column + j, row);
            factor[j] = float_of(t.scale[b][column + j]);
            offset[j] = zeros ? float_of(t.zp[b][column + j]) : 0;
        }
#pragma unroll
        for (int i = 0; i < side; i++) {
            float x[8];
#pragma unroll
            for (int j = 0; j < 8; j++)
                x[j] = dequantise<element_t>(a, w[j] >> i * width & mask, factor[j], offset[j]);
            if (whole || row + i < at.rows)
                store_values<to_t>(
                        p + (pass * down * side + i) * a.dst.line_step, x, whole, at.columns - column);
        }
    }
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
