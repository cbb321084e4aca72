// SPDX-License-Identifier: Apache-2.0
// Integers of at most 8 bits whose codes are two's complement or unsigned.
#pragma once

#include "common/formats/float_bits.hpp"
#include "common/formats/roles.hpp"

namespace mxdnn {
namespace impl {

template <int bits_, bool is_signed_>
struct small_int_t {
    static_assert(bits_ >= 2 && bits_ <= 8);
    static constexpr int bits = bits_;
    static constexpr int mantissa_bits = 0;
    static constexpr bool is_float = false;
    static constexpr bool is_signed = is_signed_;
    static constexpr int lowest = is_signed_ ? -(1 << (bits_ - 1)) : 0;
    static constexpr int highest = (1 << (bits_ - int(is_signed_))) - 1;
    static constexpr float max = float(highest);
    static constexpr int emax = bits_ - 1 - int(is_signed_);
    static constexpr uint32_t code_mask = (1u << bits_) - 1;

    // Bits above the code are ignored.
    MXDNN_HD static constexpr int to_int(uint32_t code) {
        const int value = int(code & code_mask);
        return value > highest ? value - (1 << bits_) : value;
    }
    MXDNN_HD static constexpr uint32_t from_int(int value) { return uint32_t(value) & code_mask; }

    MXDNN_HD static constexpr float decode(uint32_t code) { return float(to_int(code)); }
    // Rounds to nearest even and saturates. NaN gives 0.
    MXDNN_HD static constexpr uint32_t encode(float x) { return from_int(rne_clamp(x, lowest, highest)); }
    MXDNN_HD static constexpr uint32_t encode_saturating(float x) { return encode(x); }
};

} // namespace impl
} // namespace mxdnn
