// SPDX-License-Identifier: Apache-2.0
// Packed codes under powers of two to packed codes of another format: of 8 bits, and f4_e2m1 to NVFP4. A
// power of two in both scales changes nothing, and magnitudes of codes have the order of their values. So
// where a new block lies within an old one, its largest magnitude says what all magnitudes become, and by how
// much the new scale differs from the old one.
#pragma once

#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// What the kernels look up. A magnitude of 128, which s8 has, is number 0: zeros become zeros in any case.
struct recode_bytes_t {
    static constexpr int magnitudes = 128, steps = 7;

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
    // For vectors of fewer bytes. From codes of 8 bits: by the largest magnitude and then by the old scale,
    // after which magnitude each step is reached, and the scale. From NVFP4: by so many differences of
    // exponents, each with the mantissas of the old scale, the codes of the eight magnitudes.
    static constexpr int octaves = 16;
    alignas(64) uint8_t entries[magnitudes + scales][steps + 1] = {};
    // Those under which magnitudes of f4_e2m1 become different codes, and one before them.
    static constexpr int nibble_scales = 16, first_nibble_scale = scales_below - 11;

    // Floats: exponent and mantissa of a value as one number, also of subnormal ones. `octave` of them are a
    // power of two; `bits_below` are so many bits of f32, and `base` what is subtracted after these were
    // shifted out.
    alignas(64) uint8_t order[magnitudes] = {};
    int octave = 1, bits_below = 0, base = 0;

    // To elements of MX with 6 or 8 bits: what is subtracted from that number, or the bits by which an
    // integer is shifted to the left, by the largest magnitude; the codes of the results; and the same under
    // a scale that is twice as large, as integers may have.
    alignas(64) uint8_t less[magnitudes] = {}, is_twice[magnitudes] = {};
    bool any_twice = false;
    // From NVFP4: `order` has the number of each magnitude under each mantissa of its scale, eight of them
    // for a power of two; `scale` what is added to the exponent of the largest one, by the last three bits of
    // its number; `base` to the difference of the scales, which is subtracted from numbers of codes. From
    // MXFP4: the codes of the eight magnitudes by the largest one; and under the least scale, by the old
    // scale.
    alignas(64) uint8_t code[2][2 * magnitudes] = {};

    // `with_vbmi`: whether the kernels of AVX-512 may run. Those of AVX2 take fewer formats.
    static bool takes(const block_format_t &from, const block_format_t &to, bool with_vbmi);
    recode_bytes_t(const block_format_t &from, const block_format_t &to);

private:
    template <typename E>
    void number();
    template <typename E>
    void fill_steps();
    template <typename E, typename D>
    void fill_codes();
    void fill_nibbles();
    void fill_of_e4m3();
};

// Packed tiles of some panels: whole blocks on both sides, and a multiple of 32 rows. `ahead`: bytes to the
// next tile. False where a scale or a code has no rule here; tiles are then not complete.
using recode_bytes_of_panels_t = bool(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how);
recode_bytes_of_panels_t recode_bytes_of_panels_avx2, recode_bytes_of_panels_avx512; // this one needs VBMI

} // namespace x64
} // namespace impl
} // namespace mxdnn
