// SPDX-License-Identifier: Apache-2.0
// A row of source for kernels that multiply integers: codes, and for every 32 of them a scale and
// the number that its sum starts from.
//
// Weights are integers, too: f4 doubled (-12 to 12), s8, s4 and u4 as they are. The instruction wants one
// side without a sign, so kernels add an offset to every weight; offset times the sum of the row's codes
// is taken off again by starting from its negative. All of that is exact. Codes of u4 have no sign; what is
// taken off is a zero point, a multiple of that start.
#pragma once

#include <cstring>
#include <emmintrin.h>

#include "common/formats/s8.hpp"
#include "common/quant.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct int8_row_t {
    static constexpr int64_t block = 32;
    // Offsets in bytes from the start of a row.
    static constexpr int64_t scales_at(int64_t K) { return round_up(K, 64); }
    static constexpr int64_t starts_at(int64_t K) {
        return scales_at(K) + round_up(div_up(K, block) * 4, 64);
    }
    static constexpr int64_t bytes(int64_t K) { return starts_at(K) + round_up(div_up(K, block) * 4, 64); }
};

struct int8_weights_t {
    int offset;       // added to every weight; for u4 the unit of zero points
    float unit;       // value of the integer 1
    uint8_t order[8]; // which of eight rows the bytes of two dwords belong to
};

// In n16_b4 the low halves of a column's bytes are rows 0 4 1 5, the high ones rows 2 6 3 7.
constexpr int8_weights_t int8_weights(data_type_t dt, const quant_t &q) {
    switch (dt) {
    case mxdnn_s8: return {128, q.scale_dt == mxdnn_e8m0 ? s8_t::step : 1.f, {0, 1, 2, 3, 4, 5, 6, 7}};
    case mxdnn_f4_e2m1: return {12, 0.5f, {0, 4, 1, 5, 2, 6, 3, 7}};
    default: return {8, 1.f, {0, 4, 1, 5, 2, 6, 3, 7}}; // s4, u4
    }
}

// Stores `n` codes, a multiple of eight, in that order.
inline void order_int8(const uint8_t *codes, int64_t n, const int8_weights_t &w, uint8_t *out) {
    if (w.order[1] == 1) {
        std::memcpy(out, codes, size_t(n));
        return;
    }
    int64_t i = 0;
    // 0 4 1 5 2 6 3 7: the bytes of dwords 1, 3, ... go between those of dwords 0, 2, ...
    for (; i + 16 <= n; i += 16) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i *>(codes + i));
        const __m128i even_odd = _mm_shuffle_epi32(x, _MM_SHUFFLE(3, 1, 2, 0));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i),
                _mm_unpacklo_epi8(even_odd, _mm_unpackhi_epi64(even_odd, even_odd)));
    }
    for (; i < n; i++) out[i] = codes[i / 8 * 8 + w.order[i % 8]];
}

// The sum of the codes of a block, as integers with a sign.
inline int sum_of_block(const uint8_t *codes) {
    const __m128i flip = _mm_set1_epi8(-128), zero = _mm_setzero_si128(); // codes + 128 have no sign
    __m128i s = zero;
    for (int64_t i = 0; i < int8_row_t::block; i += 16)
        s = _mm_add_epi64(
                s, _mm_sad_epu8(
                           _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i *>(codes + i)), flip),
                           zero));
    return _mm_cvtsi128_si32(_mm_add_epi64(s, _mm_unpackhi_epi64(s, s))) - 128 * int(int8_row_t::block);
}

// The scales of a row at `out`: one for every 32 codes.
inline float *int8_row_scales(void *out, int64_t K) {
    return reinterpret_cast<float *>(static_cast<uint8_t *>(out) + int8_row_t::scales_at(K));
}

// Stores `n` codes from k0 on (whole blocks, or the rest of the row) in the row at `out`, whose scales the
// caller stores.
inline void pack_int8_codes(
        const uint8_t *codes, int64_t k0, int64_t n, int64_t K, const int8_weights_t &w, void *out) {
    uint8_t *const row = static_cast<uint8_t *>(out), *const o = row + k0;
    int32_t *const starts =
            reinterpret_cast<int32_t *>(row + int8_row_t::starts_at(K)) + k0 / int8_row_t::block;
    for (int64_t i0 = 0; i0 < n; i0 += int8_row_t::block) {
        uint8_t last[int8_row_t::block] = {};
        const uint8_t *from = codes + i0;
        if (n - i0 < int8_row_t::block) {
            std::memcpy(last, from, size_t(n - i0));
            from = last;
        }
        order_int8(from, int8_row_t::block, w, o + i0);
        starts[i0 / int8_row_t::block] = -w.offset * sum_of_block(o + i0);
    }
}

// The same, and a scale for every 32 of them.
inline void pack_int8_row(const uint8_t *codes, const float *scales, int64_t k0, int64_t n, int64_t K,
        const int8_weights_t &w, void *out) {
    pack_int8_codes(codes, k0, n, K, w, out);
    float *const s = int8_row_scales(out, K) + k0 / int8_row_t::block;
    for (int64_t b = 0; b * int8_row_t::block < n; b++) s[b] = scales[b] * w.unit;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
