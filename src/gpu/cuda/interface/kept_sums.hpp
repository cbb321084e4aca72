// SPDX-License-Identifier: Apache-2.0
// Sums of FP8 that stay in the tensor cores over all of K (device/kernels/sm90/fp8_kept.cuh): the units that
// they have, for warps that look at the scales of a panel, stage after stage.
//
// The sums of a column have a unit, 2^(top - 128) for a scale byte `top`. Weights become f8_e5m2 in this
// unit, which has e2m1 * 2^e exactly for e from -15 to 1: blocks with bytes from top - 16 to top, and blocks
// of zeros with any byte but NaN. Where a stage has other blocks, the sums are multiplied by a power of two,
// which leads to the next unit and loses nothing: while all units lie within 2^40 of a column's first, no sum
// leaves f32. Where they would not, where no unit has all blocks of a stage, or where a weight may be NaN or
// beyond f32, the sums of the panel become f32 in the unit 1, and the blocks of all further stages are
// multiplied one by one. So any scales are exact.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// What a stage begins with.
enum kept_mode_t : uint32_t { kept_goes_on, kept_new_units, kept_one_by_one };

struct kept_limits_t {
    int range = 16;      // of the bytes of a unit's blocks, which end at its top
    int room = 6;        // of a new unit, at most, above the largest block of its stage
    int apart = 40;      // of the tops of a column's first unit and of later ones
    int largest = 240;   // byte for which a new unit is taken
    int first_top = 128; // the unit 1
};

// Words of two columns: numbers below 2^15 in halves.
struct halves_t {
    static constexpr uint32_t high_bits = 0x80008000u;
    MXDNN_HD static constexpr uint32_t both(int v) { return uint32_t(v) * 0x00010001u; }
    // The high bits of the halves in which a <= b.
    MXDNN_HD static constexpr uint32_t at_most(uint32_t a, uint32_t b) {
        return ((b | high_bits) - a) & high_bits;
    }
    MXDNN_HD static constexpr uint32_t mask_of(uint32_t bits) { return (bits >> 15) * 0xFFFFu; }
    MXDNN_HD static constexpr uint32_t select(uint32_t mask, uint32_t a, uint32_t b) {
        return (a & mask) | (b & ~mask);
    }
    MXDNN_HD static uint32_t least(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
        return __vminu2(a, b); // one instruction
#else
        return select(mask_of(at_most(a, b)), a, b);
#endif
    }
    MXDNN_HD static uint32_t largest(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
        return __vmaxu2(a, b);
#else
        return select(mask_of(at_most(a, b)), b, a);
#endif
    }
};

// A mask of the columns that the words of a block in n64_f4, or-ed, have no other weights than zeros of.
MXDNN_HD constexpr uint32_t kept_zeros(uint32_t words) {
    return (words & 0x0E0E0E0Eu ? 0 : 0x0000FFFFu) | (words & 0x70707070u ? 0 : 0xFFFF0000u);
}

// The scale bytes of a stage's blocks, and the least and the largest one.
struct kept_blocks_t : halves_t {
    static constexpr int count = 4;
    uint32_t scales[count], least_scale, largest_scale;

    MXDNN_HD void find_ends() {
        least_scale = least(least(scales[0], scales[1]), least(scales[2], scales[3]));
        largest_scale = largest(largest(scales[0], scales[1]), largest(scales[2], scales[3]));
    }
    // The same of blocks that are not zeros. zeros: masks of those that are; without NaN on return.
    MXDNN_HD void find_ends_without(uint32_t (&zeros)[count]) {
        least_scale = both(255), largest_scale = 0;
        for (int j = 0; j < count; j++) {
            zeros[j] &= mask_of(at_most(scales[j], both(254)));
            least_scale = least(least_scale, select(zeros[j], both(255), scales[j]));
            largest_scale = largest(largest_scale, scales[j] & ~zeros[j]);
        }
    }
};

// What is remembered of two columns: the tops of the unit they have and of the first one.
struct kept_columns_t : halves_t {
    uint32_t top, first_top;

    MXDNN_HD void begin(const kept_limits_t &l = {}) { top = first_top = both(l.first_top); }
    // The high bits of the halves whose unit has all blocks.
    MXDNN_HD uint32_t fitting(const kept_blocks_t &b, const kept_limits_t &l = {}) const {
        return at_most(b.largest_scale, top) & at_most(top, b.least_scale + both(l.range));
    }
    MXDNN_HD bool fits(const kept_blocks_t &b, const kept_limits_t &l = {}) const {
        return fitting(b, l) == high_bits;
    }
    // Takes units that have all blocks; false: there are none. is_first: there are no sums yet.
    MXDNN_HD bool take_units(const kept_blocks_t &b, bool is_first, const kept_limits_t &l = {}) {
        const uint32_t old = mask_of(fitting(b, l));
        top = select(old, top, least(b.largest_scale + both(l.room), b.least_scale + both(l.range)));
        if (is_first) first_top = top;
        const uint32_t has_all = at_most(b.largest_scale, top),
                       near = at_most(top, first_top + both(l.apart))
                              & at_most(first_top, top + both(l.apart)),
                       exists = at_most(b.largest_scale & ~old, both(l.largest));
        return (has_all & near & exists) == high_bits;
    }
};

// The f32 that the sums of the first or the second column are multiplied by for another unit.
MXDNN_HD constexpr uint32_t kept_change(uint32_t from, uint32_t to, bool second) {
    return ((from + halves_t::both(127) - to) >> (second ? 16 : 0) & 0xFFu) << 23;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
