// SPDX-License-Identifier: Apache-2.0
// Packed codes to packed codes of another format, without values in between. A power of two in both scales
// changes nothing, and magnitudes of codes have the order of their values. So where a new block lies within
// an old one under a power of two, its largest magnitude says what all magnitudes become, and by how much the
// new scale differs from the old one. Where both scales have mantissas, these say the rest.
#pragma once

#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// What the kernels look up. A magnitude of 128, which s8 has, is number 0: zeros become zeros in any case.
struct recode_bytes_t {
    static constexpr int magnitudes = 128, steps = 7, of_mx = 4;

    block_format_t from, to;
    uint8_t most = 0; // the largest magnitude of a finite code
    // Of the new scale: scale[largest magnitude] + offset + unit * the old scale, from `least` to `greatest`.
    // Blocks whose scale would be smaller have `least`.
    int unit = 1, offset = 0, least = 0, greatest = 0;
    alignas(64) uint8_t scale[magnitudes] = {};

    // To f4_e2m1: magnitudes from step[i][largest magnitude] on have a code of at least i + 1.
    alignas(64) uint8_t step[steps][magnitudes];
    // The same with the least scale of f8_e4m3: by the old scale, from 2^-scales_below on.
    static constexpr int scales = 64, scales_below = 32;
    alignas(64) uint8_t step_of_least[steps][scales];
    // For vectors of fewer bytes. From codes of 6 and 8 bits to f4_e2m1: by the largest magnitude and then by
    // the old scale, after which magnitude each step is reached, and the scale. To elements of MX with 6 or 8
    // bits: by the largest magnitude, what is subtracted, or the factor of integers, and the scale. From
    // NVFP4: by so many differences of exponents, each with the mantissas of the old scale, the codes of the
    // eight magnitudes.
    static constexpr int octaves = 24;
    alignas(64) uint8_t entries[magnitudes + scales][steps + 1] = {};
    // Those under which magnitudes of f4_e2m1 become different codes, and one before them.
    static constexpr int nibble_scales = 16, first_nibble_scale = scales_below - 11;

    // Floats: exponent and mantissa of a value as one number, also of subnormal ones. `octave` of them are a
    // power of two; `bits_below` are so many bits of f32, and `base` what is subtracted after these were
    // shifted out.
    alignas(64) uint8_t order[magnitudes] = {};
    int octave = 1, bits_below = 0, base = 0;

    // To elements of MX with 6 or 8 bits: what is subtracted from that number, or the bits by which an
    // integer is shifted to the left, by the largest magnitude; and `code`, the codes of the results.
    alignas(64) uint8_t less[magnitudes] = {};
    // The same for vectors of fewer bytes. `added` makes numbers of the first magnitudes, and of all others
    // as of the last one. The code of 16 * h + l, of which none is beyond `most_code`, is
    //     from floats      first[h] + more[min(h, 3)][l]
    //     from integers    first[h] + more[highest bit of h][l] - (l < bound[h]), where from h = 8 on no code
    //                      is more than 1 above another one
    struct halves_t {
        alignas(16) uint8_t added[16], first[16], bound[16], more[4][16];
        uint8_t most_code = 0;
    };
    halves_t halves = {};
    // From NVFP4: `order` has the number of each magnitude under each mantissa of its scale, eight of them
    // for a power of two; `scale` what is added to the exponent of the largest one, by the last three bits of
    // its number; `base` to the difference of the scales, which is subtracted from numbers of codes. From
    // MXFP4: the codes of the eight magnitudes by the largest one; and under the least scale, by the old
    // scale.
    alignas(64) uint8_t code[2][2 * magnitudes] = {};

    // From NVFP4, for vectors of fewer bytes: each magnitude under each mantissa of its scale, 32 numbers for
    // a power of two; what is added to the largest number before the exponent is taken, and to that; and by
    // how much the new scale is at least above the exponent of the old one.
    alignas(64) uint8_t amax[64 + 3] = {};
    int amax_added = 0, amax_offset = 0, least_apart = 0;

    // MXFP4 and NVFP4 to int4, for vectors of fewer bytes: the codes of the eight magnitudes by the quotient
    // of the scales. Entry 2 * n is for what is between n and n + 1 parts, the one before it for n parts.
    static constexpr int parts = 24, most_parts = parts * 15 + 2; // 0.5 becomes 7.5
    alignas(64) uint8_t quotients[2 * most_parts + 1][8] = {};

    // int4 to NVFP4 and to elements of MX, for vectors of fewer bytes: by the largest magnitude and the
    // mantissa of the old scale, if that is 1 to 2, the new scale, and the codes of magnitudes 1 to 8; then
    // their codes under the least new scale of NVFP4, by the old one.
    static constexpr int mantissas = 128, octaves_of_int4 = 9, first_scale_of_int4 = (127 - 12) * mantissas;
    alignas(64) uint8_t scale_of_int4[9 + 1][mantissas] = {};
    alignas(64) uint8_t codes_of_int4[(9 + octaves_of_int4) * mantissas][8] = {};

    // `with_vbmi`: whether the kernels of AVX-512 run. Those of AVX2 take other formats, too.
    static bool takes(const block_format_t &from, const block_format_t &to, bool with_vbmi);
    recode_bytes_t(const block_format_t &from, const block_format_t &to);

private:
    template <typename E>
    void number();
    template <typename E>
    void fill_steps();
    template <typename E, typename D>
    void fill_codes();
    void fill_halves(bool of_integers);
    void fill_nibbles();
    void fill_of_e4m3();
    void fill_quotients();
    void fill_of_int4();
    template <typename D>
    void fill_entries_of_e4m3();
};

// Packed tiles of some panels: whole blocks on both sides, and a multiple of 32 rows. Codes of 6 bits are
// widened to 8 with the sign in the highest bit, before they are looked up. `ahead`: bytes to the
// next tile. False where a scale or a code has no rule here; tiles are then not complete.
using recode_bytes_of_panels_t = bool(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how);
recode_bytes_of_panels_t recode_bytes_of_panels_avx2, recode_bytes_of_panels_avx512; // this one needs VBMI

} // namespace x64
} // namespace impl
} // namespace mxdnn
