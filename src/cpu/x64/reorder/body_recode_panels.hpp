// SPDX-License-Identifier: Apache-2.0
// The panels of packed codes that become codes of another format, what all ISAs and formats share.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"
#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// A tile of n16_b6 as one of n16_b8.
void widen_tile(const uint8_t *from, int header_bytes, int rows, uint8_t *to) {
    const auto bits = [](__m256i v, int mask) { return _mm256_and_si256(v, _mm256_set1_epi8(char(mask))); };
    const auto wide = [&](__m256i v) {
        return _mm256_or_si256(bits(v, 0x1f), bits(_mm256_slli_epi16(v, 2), 0x80));
    };
    for (int i = 0; i < header_bytes; i += 64) write_line(false, to + i, from + i);
    from += header_bytes;
    to += header_bytes;
    for (int r = 0; r < rows; r += 16, from += 3 * 64, to += 4 * 64)
        for (int h = 0; h < 64; h += 32) {
            const __m256i v[3] = {load256(from + h), load256(from + 64 + h), load256(from + 128 + h)};
            const __m256i two = _mm256_or_si256(
                    bits(_mm256_srli_epi16(v[0], 6), 0x03), bits(_mm256_srli_epi16(v[1], 4), 0x0c));
            for (int j = 0; j < 3; j++) store256(to + 64 * j + h, wide(v[j]));
            store256(to + 3 * 64 + h, wide(_mm256_or_si256(two, bits(_mm256_srli_epi16(v[2], 2), 0x30))));
        }
}

// One tile after the other, each with one fetched that lies so many bytes ahead. Codes of 6 bits are widened.
// false: `tile` refused one.
template <typename recode, typename tile_fn, typename fetch_fn>
MXDNN_INLINE bool recode_each_panel(recode &r, tile_fn tile, fetch_fn fetch, const uint8_t *from,
        int64_t from_panel, uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, bool around) {
    constexpr int most_header_bytes = recode_t::most_rows * reorder_lines / int(nvfp4_block);
    alignas(64) uint8_t wide[most_header_bytes + recode_t::most_rows * reorder_lines];
    const int bits = data_type_info(r.from.elem)->bits, header_bytes = recode_t::header_bytes(r.from, rows),
              bytes = header_bytes + rows * reorder_lines * bits / 8;
    for (int p = 0; p < panels; p++, from += from_panel, to += to_panel) {
        for (int i = 0; i < bytes; i += 64) fetch(from + ahead + i);
        if (bits == 6) widen_tile(from, header_bytes, rows, wide);
        if (!tile(r, bits == 6 ? wide : from, to, rows, around)) return false;
    }
    return true;
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
