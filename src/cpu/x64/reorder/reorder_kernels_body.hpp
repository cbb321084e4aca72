// SPDX-License-Identifier: Apache-2.0
// The body of reorder_kernels_avx2.cpp and reorder_kernels_avx512.cpp.
#pragma once

#include "cpu/x64/reorder/body_dequantise.hpp"
#include "cpu/x64/reorder/body_n16_rows.hpp"
#include "cpu/x64/reorder/body_n64.hpp"
#include "cpu/x64/reorder/body_n64_params.hpp"
#include "cpu/x64/reorder/body_quantise_n64.hpp"
#ifdef __AVX512BW__
#include "cpu/x64/reorder/body_dequantise_lines_avx512.hpp"
#include "cpu/x64/reorder/body_n16_tiles_avx512.hpp"
#include "cpu/x64/reorder/body_quantise_lines_avx512.hpp"
#include "cpu/x64/reorder/body_recode_avx512.hpp"
#else
#include "cpu/x64/reorder/body_recode.hpp"
#endif

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// ---- the layouts ----

#ifdef __AVX512BW__
constexpr auto pack_n16 = n16_pack_tiles;
constexpr auto unpack_n16 = n16_unpack_tiles;
constexpr auto pack_n16_nibbles = n16_pack_nibbles_tiles;
constexpr auto unpack_n16_nibbles = n16_unpack_nibbles_tiles;
#else
constexpr auto pack_n16 = n16_pack;
constexpr auto unpack_n16 = n16_unpack;
constexpr auto pack_n16_nibbles = n16_pack_nibbles;
constexpr auto unpack_n16_nibbles = n16_unpack_nibbles;
#endif

// Calls body(row, rows, codes of the tile) for some tiles.
template <typename F>
MXDNN_INLINE void for_n16_tiles(const code_tiles_t &t, F &&body) {
    uint8_t *codes = t.codes;
    for (int r = 0; r < t.rows; r += t.tile_rows, codes += t.tile_bytes)
        body(r, min_of(t.tile_rows, t.rows - r), codes);
}
MXDNN_INLINE void fetch_16_lines(const uint8_t *p, int64_t pitch, int bytes) {
    for (int l = 0; l < reorder_lines; l++)
        for (int b = 0; b < bytes; b += 64)
            _mm_prefetch(reinterpret_cast<const char *>(p + l * pitch + b), _MM_HINT_T1);
}
MXDNN_INLINE void fetch_tile(const uint8_t *p, int bytes) {
    for (int b = 0; b < bytes; b += 64) prefetch_line(p + b);
}

template <typename L>
constexpr panel_codec_t n16_codec() {
    constexpr int bits = L::bits;
    panel_codec_t c = {target_family_t::cpu_x64, L::id, bits, int(L::columns), int(L::row_step),
            [](const uint8_t *codes, int64_t pitch, const code_tiles_t &to, int64_t ahead, write_t how) {
                for_n16_tiles(to, [&](int r, int rows, uint8_t *tile) {
                    if (ahead) fetch_16_lines(codes + r + ahead, pitch, rows);
                    pack_n16(bits, codes + r, pitch, rows, tile, how);
                });
            },
            [](const code_tiles_t &from, int64_t ahead, uint8_t *codes, int64_t pitch) {
                for_n16_tiles(from, [&](int r, int rows, const uint8_t *tile) {
                    if (ahead) fetch_tile(tile + ahead, rows * reorder_lines * bits / 8);
                    unpack_n16(bits, tile, rows, codes + r, pitch, write_t::cached);
                });
            },
            [](const uint8_t *codes, int64_t pitch, int rows, uint8_t *panel, write_t how) {
                n16_pack_rows(bits, codes, pitch, rows, panel, how);
            },
            [](const uint8_t *panel, int rows, uint8_t *codes, int64_t pitch) {
                n16_unpack_rows(bits, panel, rows, codes, pitch);
            },
            nullptr, nullptr, n16_pack_params, n16_unpack_params, nullptr};
    if constexpr (bits == 4) {
        c.pack_nibbles = [](const uint8_t *nibbles, int64_t pitch, const code_tiles_t &to, int64_t ahead,
                                 write_t how) {
            for_n16_tiles(to, [&](int r, int rows, uint8_t *tile) {
                if (ahead) fetch_16_lines(nibbles + r / 2 + ahead, pitch, rows / 2);
                pack_n16_nibbles(nibbles + r / 2, pitch, rows, tile, how);
            });
        };
        c.unpack_nibbles = [](const code_tiles_t &from, int64_t ahead, uint8_t *nibbles, int64_t pitch) {
            for_n16_tiles(from, [&](int r, int rows, const uint8_t *tile) {
                if (ahead) fetch_tile(tile + ahead, rows * reorder_lines * bits / 8);
                unpack_n16_nibbles(tile, rows, nibbles + r / 2, pitch, write_t::cached);
            });
        };
    }
    return c;
}
template <typename L>
constexpr panel_codec_t n64_codec() {
    panel_codec_t c = {target_family_t::cuda, L::id, L::bits, n64_columns, n64_rows(L::bits), n64_pack<L>,
            n64_unpack<L>, n64_pack_rows<L>, n64_unpack_rows<L>, nullptr, nullptr, n64_pack_params,
            n64_unpack_params, nullptr};
#ifndef __AVX512BW__
    c.quantise = n64_quantise<L>;
#endif
    if constexpr (L::bits == 4) {
        c.pack_nibbles = n64_pack_nibbles<L>;
        c.unpack_nibbles = n64_unpack_nibbles<L>;
    }
    return c;
}

constexpr panel_codec_t panel_codecs[] = {n16_codec<n16_b4_t>(), n16_codec<n16_b6_t>(), n16_codec<n16_b8_t>(),
        n64_codec<n64_b4_t>(), n64_codec<n64_i4_t>(), n64_codec<n64_b6_t>(), n64_codec<n64_b8_t>(),
        n64_codec<n64_f4_t>()};

} // namespace

extern const reorder_kernels_t MXDNN_REORDER_KERNELS;
const reorder_kernels_t MXDNN_REORDER_KERNELS = {quantise, quantise_rows, dequantise, fill_tables,
        dequantise_rows, finite_amax, transpose, unpack_row, pack_row, panel_codecs,
        int(sizeof(panel_codecs) / sizeof(panel_codecs[0])), write_some, write_later, finish,
#ifdef __AVX512BW__
        quantise_panels, quantise_code_lines, dequantise_panels, dequantise_code_lines,
#else
        nullptr, nullptr, nullptr, nullptr,
#endif
        recode_panels};

} // namespace x64
} // namespace impl
} // namespace mxdnn
