// SPDX-License-Identifier: Apache-2.0
// Decoders: packed codes in, zmm registers of bf16 pairs out. A register holds two rows (k, k + 1)
// of sixteen columns, a dword per column, row k in its low word: what vdpbf16ps and an AMX tile
// take. A decoder knows one order of codes and nothing of scales.
#pragma once

#include <optional>

#include "common/quant.hpp"
#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// The bf16 values of the codes.
struct pair_values_t {
    data_type_t wei_dt = mxdnn_data_type_undef;
    int subtract = 0;         // subtracted from every code; 4-bit integers only
    bool zero_points = false; // u4: the column's zero point, which must be 0 to 15, is subtracted
    // Added to the exponent of every value except 0. The result must be normal. NaN becomes 0xffff, so that
    // saturating additions do not change it. Inf is not supported.
    int exponent_shift = 0;
    // Codes are decoded beside vdpbf16ps, which leaves less room on the port of permutes than on that of word
    // shifts.
    bool beside_dots = false;
    // The upper bit of the mantissa, the only one that f4 has, is repeated in all lower bits.
    bool spread_mantissa = false;
    // The two upper bits of the mantissa, the only ones of magnitudes up to 8, are repeated in the lowest
    // bits.
    bool number_mantissa = false;
};

// What makes a decoded code the number that the scale multiplies: codes of s8 are numbers of 64ths, and
// integers under floating-point scales.
constexpr int exponent_shift_of(data_type_t wei_dt, const quant_t &q) {
    return wei_dt == mxdnn_s8 && q.scale_dt != mxdnn_e8m0 ? 6 : 0;
}

// Register numbers, allocated in order.
class zmm_pool_t {
public:
    explicit zmm_pool_t(int first = 0) : used_(first) {}
    Xbyak::Zmm take() { return Xbyak::Zmm(used_++); }
    int left() const { return 32 - used_; }

private:
    int used_;
};

class pair_decoder_t {
public:
    // Addresses: the codes of 16 rows of one panel. With zero points also 64 bytes that have the byte 16 -
    // zero point four times for every column.
    struct source_t {
        const Xbyak::RegExp &codes, &zero_points;
    };

    virtual ~pair_decoder_t() = default;

    // The eight pairs of 16 rows are decoded in fetches of one or two.
    int pairs() const { return pairs_; }
    int fetches() const { return 8 / pairs_; }
    // The number, among the eight pairs, of pair i of a fetch.
    virtual int pair(int fetch, int i) const { return fetch * pairs_ + i; }

    // Emits a fetch into w[0..pairs()). `keep`, if not null, is a register that keeps its contents between
    // the fetches of the same 16 rows. These come in ascending order.
    virtual void emit(int fetch, const source_t &s, const Xbyak::Zmm *w, const Xbyak::Zmm &temp,
            const Xbyak::Zmm *keep) = 0;

    bool has_temp() const { return has_temp_; } // whether emit() writes temp
    bool can_keep() const { return can_keep_; } // whether keep is of use

    // Constants are read from memory, except those that this call puts into registers: all required ones, and
    // others as long as `spare` registers remain in the pool. It can be called again.
    void take_constants(zmm_pool_t &pool, int spare) {
        for (int i = 0; i < count_; i++)
            if (!in_reg(i) && (i < required_ || pool.left() > spare)) const_[i].reg.emplace(pool.take());
    }
    int required_constants() const { return required_; }
    void load_constants() {
        for (int i = 0; i < count_; i++)
            if (in_reg(i)) j_.vmovdqu64(*const_[i].reg, *const_[i].mem);
    }

protected:
    pair_decoder_t(jit_base_t &j, int pairs) : j_(j), pairs_(pairs) {}

    int add_constant(const void *bytes, size_t n, bool required = false) {
        const_[count_].mem.emplace(j_.constant(bytes, n));
        if (required) required_ = count_ + 1;
        return count_++;
    }
    bool in_reg(int i) const { return const_[i].reg.has_value(); }
    const Xbyak::Zmm &reg(int i) const { return *const_[i].reg; }
    const Xbyak::Operand &constant(int i) const {
        if (in_reg(i)) return *const_[i].reg;
        return *const_[i].mem;
    }

    jit_base_t &j_;
    const int pairs_;
    bool has_temp_ = false, can_keep_ = false;

private:
    struct const_t {
        std::optional<Xbyak::Address> mem;
        std::optional<Xbyak::Zmm> reg;
    };
    const_t const_[6];
    int count_ = 0, required_ = 0;
};

// For the types of n16_b4, n16_b6 and n16_b8.
std::unique_ptr<pair_decoder_t> make_pair_decoder(jit_base_t &j, const pair_values_t &v);

} // namespace x64
} // namespace impl
} // namespace mxdnn
