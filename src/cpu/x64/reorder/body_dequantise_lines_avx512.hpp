// SPDX-License-Identifier: Apache-2.0
// Lines of plain codes to lines of values, with the values of body_dequantise_panels_avx512.hpp.
#pragma once

#include "cpu/x64/reorder/body_dequantise_panels_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Lines whose parameters are processed together, as load_codes() has them.
constexpr int lines_at_once = 4;

struct code_line_t {
    const uint8_t *codes, *next; // next: what is prefetched meanwhile
    uint8_t *out;
    int positions, block, line; // of four
    bool around;
};

// 64 codes of a line as words, in two halves.
template <int bits>
MXDNN_INLINE two_t words_of_line(const uint8_t *codes) {
    if (bits > 4) { // in both bytes of a word
        const __m512i v = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), load512(codes));
        return {{_mm512_unpacklo_epi8(v, v), _mm512_unpackhi_epi8(v, v)}};
    }
    // In the lowest bits of a word.
    const __m512i order =
            _mm512_set_epi64(0x0f0f0f0f0e0e0e0e, 0x0d0d0d0d0c0c0c0c, 0x0b0b0b0b0a0a0a0a, 0x0909090908080808,
                    0x0707070706060606, 0x0505050504040404, 0x0303030302020202, 0x0101010100000000);
    const auto half = [&](const uint8_t *p) {
        const __m512i v = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(p)), order);
        return _mm512_srlv_epi16(v, dwords(4 << 16));
    };
    return {{half(codes), half(codes + 16)}};
}

template <typename E, typename W, typename S>
void decode_code_line(const code_line_t &q, const blocks_t &b) {
    constexpr int line_bytes = pair_lines * int(sizeof(typename S::raw_t)); // of 32 positions
    constexpr int step = 2 * pair_lines, bytes = step * (E::bits > 4 ? 8 : 4) / 8;
    const int other = q.block < pair_lines ? lines_at_once : 0;
    const auto decode_as = [&](auto &&kind) {
        const uint8_t *codes = q.codes;
        uint8_t *out = q.out;
        for (int p = 0; p < q.positions; p += step, codes += bytes) {
            if (p * bytes % (64 * step) == 0) fetch(q.next + (codes - q.codes));
            const two_t t = words_of_line<E::bits>(codes);
            for (int i = 0; i < 2; i++, out += line_bytes) {
                const int first = (p + i * pair_lines) / q.block * lines_at_once + q.line;
                const auto &w = kind(W::of_line(b, first, first + other));
                if constexpr (E::bits == 8)
                    write_words<S>(q.around, out, w.value_of_both(t.rows[i]));
                else
                    write_words<S>(q.around, out, w.value(t.rows[i], 0));
            }
        }
    };
    if (E::bits < 8 || fits<E>(W::of_line(b, 0, 0), q.codes, q.positions))
        decode_as([](const W &w) { return w; });
    else
        decode_as([](const W &w) { return any_of(w); });
}

struct code_lines_t {
    using type = void (*)(const code_line_t &q, const blocks_t &b);
    template <typename E, typename W, typename S>
    static constexpr type with = decode_code_line<E, W, S>;
};

void dequantise_code_lines(const block_format_t &f, const uint8_t *codes, int64_t line_bytes,
        const uint8_t *next, const line_params_t &params, float global, const panels_values_t &dst,
        write_t how) {
    const int bits = data_type_info(f.elem)->bits;
    const code_storage_t storage = bits == 4   ? code_storage_t::nibbles
                                   : bits == 6 ? code_storage_t::low_6_bits
                                               : code_storage_t::bytes;
    const bool is_mxint8 = f.elem == mxdnn_s8 && f.family == quant_family_t::mx;
    const float unit = is_mxint8 ? mxint8_decoder_t::unit : 1.f;
    const int blocks = dst.rows / f.block;
    const bool direct = how == write_t::cached || goes_around512(how, dst.data, dst.line_bytes);
    alignas(64) uint8_t x[sizeof(float) * reorder_max_length];
    blocks_t b;
    clear_blocks(b, blocks * lines_at_once);
    for (int first = 0; first < dst.lines; first += lines_at_once) {
        line_params_t p = params;
        p.scales += first * f.scale_bytes;
        load_codes(f.scale_bytes, b.scale, p.scales, p.pitch, blocks, lines_at_once);
        if (p.zero_points) {
            p.zero_points += first * f.zp_bytes;
            load_codes(f.zp_bytes, b.zp, p.zero_points, p.pitch, blocks, lines_at_once);
        }
        const auto decode =
                decode_of<code_lines_t>(f, decode_params(b, blocks * lines_at_once, f, global, unit), dst.dt);
        make_offsets(b, blocks * lines_at_once, f);
        const uint8_t *const from = codes + first * line_bytes;
        uint8_t *const to = static_cast<uint8_t *>(dst.data) + first * dst.line_bytes;
        if (!decode) {
            uint8_t bytes[lines_at_once][reorder_max_length];
            for (int l = 0; l < lines_at_once; l++)
                unpack_row(storage, from + l * line_bytes, dst.rows, bytes[l]);
            dequantise(f, bytes[0], reorder_max_length, lines_at_once, dst.rows, global, p, nullptr, dst.dt,
                    to, dst.line_bytes, {}, how);
            continue;
        }
        for (int l = 0; l < lines_at_once; l++) {
            decode({from + l * line_bytes, next + (first + l) * line_bytes,
                           direct ? to + l * dst.line_bytes : x, dst.rows, f.block, l,
                           direct && how == write_t::around},
                    b);
            if (!direct) write_run(how, to + l * dst.line_bytes, x, dst.size() * dst.rows);
        }
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
