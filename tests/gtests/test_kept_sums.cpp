// SPDX-License-Identifier: Apache-2.0
// Sums of FP8 that stay in the tensor cores: a model of the kernel (fp8_kept.cuh) on the host, with the rule
// of its units (kept_sums.hpp), against sums in double. It needs no device.
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "common/formats/float_bits.hpp"
#include "common/formats/quantize_block.hpp"
#include "common/layouts/n64_f4.hpp"
#include "gpu/cuda/interface/kept_sums.hpp"

using namespace mxdnn::impl;
using namespace mxdnn::impl::cuda::packed;

namespace {

constexpr int columns = 64, lanes = 32, blocks = kept_blocks_t::count, block_rows = 32,
              stage_rows = blocks * block_rows;

// Of a lane in the lower halves of its words.
int column_of(int lane) { return lane / 8 * 16 + lane % 8; }
uint32_t in_halves(uint32_t first, uint32_t second) { return first | second << 16; }
int half_of(uint32_t word, bool second) { return int(word >> (second ? 16 : 0) & 0xFFFF); }

size_t place(int row, int column) { return size_t(row) * size_t(columns) + size_t(column); }

struct panel_t {
    int K; // a multiple of 32
    std::vector<uint8_t> codes, scales;
    uint32_t code(int k, int c) const { return codes[place(k, c)]; }
    // As packed weights have it: nothing behind K, and the scales of a tile that is not there are not read.
    uint32_t scale(int block, int c) const {
        const int all = K / block_rows, tile = (all + 1) / 2;
        if (block >= 2 * tile) block -= 2;
        return block < all ? scales[place(block, c)] : 0;
    }
    bool is_zero(int block, int c) const {
        const int all = K / block_rows, tile = (all + 1) / 2;
        if (block >= 2 * tile) block -= 2;
        for (int k = block * block_rows; k < std::min((block + 1) * block_rows, K); k++)
            if (code(k, c) & 7) return false;
        return true;
    }
};

double e2m1(uint32_t code) { return decode_value(mxdnn_f4_e2m1, code); }
double e4m3(uint32_t code) { return decode_value(mxdnn_f8_e4m3, code); }

// A weight as f32 has it.
double weight(uint32_t code, uint32_t scale) {
    if (scale == 255) return NAN;
    const double w = std::ldexp(e2m1(code), int(scale) - 127);
    return std::fabs(w) > double(float_of(f32_max_bits)) ? std::copysign(INFINITY, w) : w;
}

// What the tensor cores make of a sum and 32 products: each is cut off 2^-13 below the largest one.
float add_products(float sum, const std::array<double, block_rows> &products) {
    double largest = std::fabs(double(sum)), all = sum;
    for (const double p : products) largest = std::fmax(largest, std::fabs(p)), all += p;
    if (!std::isfinite(all)) return float(all);
    if (largest == 0) return 0.f;
    const double step = std::ldexp(1., std::ilogb(largest) - 13);
    all = std::trunc(double(sum) / step);
    for (const double p : products) all += std::trunc(p / step);
    return float(all * step);
}

// Codes decoded by products (decode_f4_products.cuh): f16, of which f8_e5m2 is the high byte.
double decoded(uint32_t code, uint32_t scales, uint32_t tops, bool second) {
    const uint32_t factor = (scales - tops + halves_t::both(15 + 14 + 1)) << 10;
    const double product =
            std::ldexp(e2m1(code), -14) * decode_value(mxdnn_f16, uint32_t(half_of(factor, second)));
    return decode_value(mxdnn_f8_e5m2, encode_value(mxdnn_f16, float(product)) >> 8);
}

struct outcome_t {
    std::array<float, columns> sums{};
    std::vector<kept_mode_t> modes; // of the stages
    bool exact = true;              // weights in their units, and sums in another unit
};

// Whether a number has remained what it is; f32 may have no room for it.
bool is_same(double before, double after) {
    if (std::isnan(before)) return std::isnan(after);
    if (std::fabs(before) > double(float_of(f32_max_bits))) return true;
    return std::fabs(before - after) <= std::ldexp(1., -149);
}

outcome_t multiply(const panel_t &p, const std::vector<uint8_t> &x, const kept_limits_t &l) {
    outcome_t r;
    std::array<kept_columns_t, lanes> memory{};
    bool one_by_one = false;
    for (int first = 0; first < p.K; first += stage_rows) {
        std::array<kept_blocks_t, lanes> b{};
        std::array<uint32_t, lanes> old{};
        kept_mode_t mode = one_by_one ? kept_one_by_one : kept_goes_on;
        bool fits = true;
        for (int i = 0; i < lanes && !one_by_one; i++) {
            if (first == 0) memory[i].begin(l);
            for (int j = 0; j < blocks; j++)
                b[i].scales[j] = in_halves(p.scale(first / block_rows + j, column_of(i)),
                        p.scale(first / block_rows + j, column_of(i) + 8));
            b[i].find_ends();
            old[i] = memory[i].top;
            fits &= memory[i].fits(b[i], l);
        }
        if (!fits) {
            std::array<std::array<uint32_t, blocks>, lanes> zeros{};
            for (int i = 0; i < lanes; i++) {
                uint32_t masks[blocks];
                for (int j = 0; j < blocks; j++)
                    masks[j] = in_halves(p.is_zero(first / block_rows + j, column_of(i)) ? 0xFFFF : 0,
                            p.is_zero(first / block_rows + j, column_of(i) + 8) ? 0xFFFF : 0);
                b[i].find_ends_without(masks);
                one_by_one |= !memory[i].take_units(b[i], first == 0, l);
                for (int j = 0; j < blocks; j++) zeros[i][j] = masks[j];
            }
            if (one_by_one)
                for (kept_columns_t &m : memory) m.begin(l);
            bool changes = false;
            for (int i = 0; i < lanes; i++) changes |= memory[i].top != old[i];
            for (int i = 0; i < lanes; i++)
                for (int j = 0; j < blocks; j++)
                    b[i].scales[j] = halves_t::select(zeros[i][j], memory[i].top, b[i].scales[j]);
            mode = one_by_one ? kept_one_by_one : changes && first > 0 ? kept_new_units : kept_goes_on;
            if (mode != kept_goes_on)
                for (int i = 0; i < lanes; i++)
                    for (const bool second : {false, true}) {
                        float &sum = r.sums[place(0, column_of(i) + 8 * second)];
                        const double before = std::ldexp(double(sum), half_of(old[i], second) - 128);
                        sum = mul_f32(sum, float_of(kept_change(old[i], memory[i].top, second)));
                        const double after = std::ldexp(double(sum), half_of(memory[i].top, second) - 128);
                        r.exact &= is_same(before, after);
                    }
        }
        r.modes.push_back(mode);
        for (int i = 0; i < lanes; i++)
            for (const bool second : {false, true}) {
                const int c = column_of(i) + 8 * second;
                float &sum = r.sums[size_t(c)];
                for (int j = 0; j < blocks && first + j * block_rows < p.K; j++) {
                    const uint32_t scale = p.scale(first / block_rows + j, c);
                    std::array<double, block_rows> products{};
                    for (int k = 0; k < block_rows; k++) {
                        const int row = first + j * block_rows + k;
                        const uint32_t code = p.code(row, c);
                        const double exact = weight(code, scale);
                        double w = std::isinf(exact) ? exact : e2m1(code);
                        if (!one_by_one) {
                            w = decoded(code, b[i].scales[j], memory[i].top, second);
                            r.exact &= std::ldexp(w, half_of(memory[i].top, second) - 128) == exact;
                        }
                        products[size_t(k)] = w * e4m3(x[size_t(row)]);
                    }
                    sum = one_by_one ? std::fma(add_products(0.f, products),
                                  scale == 255 ? NAN : exp2_f32(int(scale) - 127), sum)
                                     : add_products(sum, products);
                }
            }
    }
    for (int i = 0; i < lanes; i++)
        for (const bool second : {false, true})
            if (!one_by_one)
                r.sums[place(0, column_of(i) + 8 * second)] *= float_of(
                        kept_change(memory[i].top, halves_t::both(kept_limits_t().first_top), second));
    return r;
}

// Whether results are within the bound: 32 products and the sum so far, with what it has lost, are cut off
// 2^-13 below the largest of them.
bool is_within_the_bound(const panel_t &p, const std::vector<uint8_t> &x, const outcome_t &r) {
    for (int c = 0; c < columns; c++) {
        const double cut = 33 * std::ldexp(1., -13) + std::ldexp(1., -23);
        double sum = 0, lost = 0, magnitudes = 0;
        for (int first = 0; first < p.K; first += block_rows) {
            double largest = std::fabs(sum) + lost;
            for (int k = first; k < first + block_rows; k++) {
                const double product = weight(p.code(k, c), p.scale(k / block_rows, c)) * e4m3(x[size_t(k)]);
                sum += product;
                largest = std::fmax(largest, std::fabs(product)), magnitudes += std::fabs(product);
            }
            lost += cut * largest;
        }
        const double got = r.sums[size_t(c)];
        if (std::isnan(magnitudes)) {
            if (!std::isnan(got)) return false;
        } else if (magnitudes < double(float_of(f32_max_bits))) { // else sums may leave f32 in another order
            if (!(std::fabs(got - sum) <= lost + std::ldexp(1., -148))) return false;
        }
    }
    return true;
}

// ---- panels ----

using scale_fn = uint32_t (*)(std::mt19937 &, int block, int column);
using code_fn = uint32_t (*)(std::mt19937 &);
uint32_t any_code(std::mt19937 &rng) { return rng() % 16; }
uint32_t smallest_code(std::mt19937 &rng) { return rng() % 2 * 8 + rng() % 2; } // 0 and 0.5
uint32_t largest_code(std::mt19937 &) { return 7; }
uint32_t no_weight(std::mt19937 &rng) { return rng() % 2 * 8; }

panel_t make_panel(int K, scale_fn scale, code_fn code, uint32_t seed, bool zeros = false) {
    std::mt19937 rng(seed);
    panel_t p{K, std::vector<uint8_t>(place(K, 0)), std::vector<uint8_t>(place(K / block_rows, 0))};
    for (int block = 0; block < K / block_rows; block++)
        for (int c = 0; c < columns; c++) {
            const bool zero = zeros && rng() % 5 == 0;
            p.scales[place(block, c)] = uint8_t(zero ? 0 : scale(rng, block, c));
            for (int k = block * block_rows; k < (block + 1) * block_rows; k++)
                p.codes[place(k, c)] = uint8_t(zero ? rng() % 2 * 8 : code(rng));
        }
    return p;
}

using row_fn = uint32_t (*)(std::mt19937 &);
uint32_t any_finite(std::mt19937 &rng) {
    const uint32_t code = rng() % 256;
    return (code & 127) == 127 ? code - 1 : code;
}
uint32_t any_with_nan(std::mt19937 &rng) { return rng() % 2000 ? any_finite(rng) : 127; }
uint32_t subnormal(std::mt19937 &rng) { return rng() % 2 * 128 + rng() % 8; }
uint32_t largest_number(std::mt19937 &) { return 126; }

std::vector<uint8_t> make_row(int K, row_fn code, uint32_t seed) {
    std::mt19937 rng(seed);
    std::vector<uint8_t> x(static_cast<size_t>(K));
    for (uint8_t &v : x) v = uint8_t(code(rng));
    return x;
}

// Scales of a block: those of quantised weights, and adversaries.
uint32_t close_by(std::mt19937 &rng, int, int) { return 118 + rng() % 5; }
uint32_t far_below(std::mt19937 &rng, int, int c) { return 20 + uint32_t(c) / 2 + rng() % 10; }
uint32_t as_wide_as_a_unit(std::mt19937 &rng, int block, int) { return block % 4 ? 110 + rng() % 17 : 126; }
uint32_t wider_than_a_unit(std::mt19937 &rng, int block, int) { return block % 9 ? 110 + rng() % 13 : 127; }
uint32_t rising(std::mt19937 &rng, int block, int) { return uint32_t(60 + block) + rng() % 8; }
uint32_t falling(std::mt19937 &rng, int block, int) { return uint32_t(200 - block) - rng() % 8; }
uint32_t up_and_down(std::mt19937 &rng, int block, int) {
    return uint32_t(100 + 58 * (block / 4 % 2)) + rng() % 2;
}
uint32_t leaps(std::mt19937 &rng, int block, int c) {
    return (block / 4 + c) % 7 == 0 ? 10 + rng() % 4 : (block / 4 + c) % 5 == 0 ? 230 + rng() % 10 : 120;
}
uint32_t late_leap(std::mt19937 &rng, int block, int) { return block < 8 ? 30 + rng() % 9 : 225 + rng() % 9; }
uint32_t late_fall(std::mt19937 &rng, int block, int) { return block < 8 ? 225 + rng() % 9 : 30 + rng() % 9; }
uint32_t any_number(std::mt19937 &rng, int, int) { return rng() % 255; }
uint32_t any_byte(std::mt19937 &rng, int, int c) {
    const uint32_t r = rng() % 256;
    if (c % 8) return 118 + r % 5;
    return r < 4 ? std::array<uint32_t, 4>{0, 241, 254, 255}[r] : 100 + r % 40;
}
uint32_t a_late_nan(std::mt19937 &rng, int block, int c) {
    return block == 11 && c == 5 ? 255 : 118 + rng() % 5;
}
uint32_t largest_bytes(std::mt19937 &rng, int, int) { return 236 + rng() % 10; }
uint32_t nan_of_a_stage(std::mt19937 &rng, int block, int c) {
    return c == 5 && block / 4 != 1 ? 255 : 250 + rng() % 5;
}

constexpr scale_fn all_scales[] = {close_by, far_below, as_wide_as_a_unit, wider_than_a_unit, rising, falling,
        up_and_down, leaps, late_leap, late_fall, any_number, any_byte, a_late_nan, largest_bytes,
        nan_of_a_stage};

// Whether weights and sums in other units are exact, and results within the bound.
bool holds(const kept_limits_t &l, scale_fn scale) {
    uint32_t seed = 1;
    for (const int K : {32, 160, 1152})
        for (const code_fn code : {any_code, smallest_code, largest_code, no_weight})
            for (const row_fn row : {any_finite, any_with_nan, subnormal, largest_number})
                for (const bool zeros : {false, true}) {
                    seed++;
                    const panel_t p = make_panel(K, scale, code, seed, zeros);
                    const std::vector<uint8_t> x = make_row(K, row, seed);
                    const outcome_t r = multiply(p, x, l);
                    if (!r.exact || !is_within_the_bound(p, x, r)) return false;
                }
    return true;
}

TEST(kept_sums, are_within_the_bound_for_any_scales) {
    for (const scale_fn &scale : all_scales) EXPECT_TRUE(holds({}, scale)) << &scale - all_scales;
}

// A model that no rule could break would prove nothing.
TEST(kept_sums, are_not_with_other_limits) {
    const auto with = [](int kept_limits_t::*limit, int value) {
        kept_limits_t l;
        l.*limit = value;
        return l;
    };
    EXPECT_FALSE(holds(with(&kept_limits_t::range, 17), wider_than_a_unit));
    EXPECT_FALSE(holds(with(&kept_limits_t::apart, 200), late_leap));
    EXPECT_FALSE(holds(with(&kept_limits_t::apart, 200), late_fall));
    EXPECT_FALSE(holds(with(&kept_limits_t::largest, 255), nan_of_a_stage));
    EXPECT_FALSE(holds(with(&kept_limits_t::first_top, 129), a_late_nan));
}

// ---- units ----

// The modes of stages whose blocks have these bytes, in all columns but the one that is given.
std::vector<kept_mode_t> modes_of(const std::vector<std::array<int, blocks>> &stages, int column = 0) {
    panel_t p = make_panel(int(stages.size()) * stage_rows, close_by, any_code, 3);
    for (size_t s = 0; s < stages.size(); s++)
        for (int j = 0; j < blocks; j++) {
            const int block = int(s) * blocks + j, scale = stages[s][size_t(j)];
            p.scales[place(block, column)] = uint8_t(scale);
            if (scale == 0) // zeros
                for (int k = 0; k < block_rows; k++)
                    p.codes[place(block * block_rows + k, column)] = uint8_t(k % 2 * 8);
        }
    const std::vector<uint8_t> x = make_row(p.K, any_finite, 4);
    const outcome_t r = multiply(p, x, {});
    EXPECT_TRUE(r.exact && is_within_the_bound(p, x, r));
    return r.modes;
}
using modes_t = std::vector<kept_mode_t>;
constexpr kept_mode_t on = kept_goes_on, changes = kept_new_units, single = kept_one_by_one;

TEST(kept_sums, keep_a_unit_that_has_all_blocks) {
    for (const int column : {0, 8, 63}) {
        EXPECT_EQ(modes_of({{112, 128, 120, 118}, {128, 128, 112, 112}, {120, 120, 120, 120}}, column),
                (modes_t{on, on, on}));
        // The first stage begins with its own.
        EXPECT_EQ(modes_of({{80, 81, 90, 85}, {90, 80, 80, 96}, {80, 80, 80, 80}}, column),
                (modes_t{on, on, on}));
        EXPECT_EQ(modes_of({{120, 120, 120, 120}, {120, 120, 129, 120}, {135, 119, 120, 125},
                                   {134, 134, 134, 118}, {118, 134, 130, 120}, {129, 129, 129, 129}},
                          column),
                (modes_t{on, changes, on, changes, on, on}));
    }
}

TEST(kept_sums, leave_zeros_out) {
    for (const int column : {0, 8, 63}) {
        EXPECT_EQ(modes_of({{0, 120, 118, 121}, {120, 120, 0, 0}, {0, 0, 0, 0}, {120, 0, 120, 120}}, column),
                (modes_t{on, on, on, on}));
        EXPECT_EQ(modes_of({{0, 0, 0, 0}, {120, 120, 0, 0}, {90, 0, 0, 92}, {0, 0, 0, 0}, {95, 0, 90, 91}},
                          column),
                (modes_t{on, on, changes, on, on}));
        EXPECT_EQ(modes_of({{0, 0, 0, 0}, {0, 0, 0, 0}}, column), (modes_t{on, on}));
    }
    // A tile that is half beyond K, and one that is.
    for (const int K : {32, 96, 160, 192, 224}) {
        const panel_t p = make_panel(K, close_by, any_code, 5);
        for (const kept_mode_t mode : multiply(p, make_row(K, any_finite, 6), {}).modes) EXPECT_EQ(mode, on);
    }
}

TEST(kept_sums, are_f32_where_no_unit_has_all_blocks) {
    for (const int column : {0, 8, 63}) {
        EXPECT_EQ(modes_of({{120, 120, 120, 120}, {104, 121, 110, 110}, {120, 120, 120, 120}}, column),
                (modes_t{on, single, single}));
        EXPECT_EQ(modes_of({{120, 120, 120, 120}, {120, 255, 120, 120}}, column), (modes_t{on, single}));
        EXPECT_EQ(modes_of({{241, 241, 241, 241}}, column), (modes_t{single}));
        EXPECT_EQ(modes_of({{240, 240, 230, 230}, {246, 246, 246, 246}}, column), (modes_t{on, on}));
        // Units are 40 apart from the first one at most.
        EXPECT_EQ(modes_of({{80, 80, 80, 80}, {120, 120, 120, 120}, {40, 40, 40, 40}}, column),
                (modes_t{on, changes, changes}));
        EXPECT_EQ(modes_of({{80, 80, 80, 80}, {121, 121, 121, 121}}, column), (modes_t{on, single}));
        EXPECT_EQ(modes_of({{80, 80, 80, 80}, {110, 110, 110, 110}, {39, 39, 39, 39}}, column),
                (modes_t{on, changes, single}));
    }
}

// Where zeros are found in packed words.
TEST(kept_sums, zeros_of_both_columns_of_a_word) {
    EXPECT_EQ(kept_zeros(0), 0xFFFFFFFFu);
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(kept_zeros(1u << n64_f4_bit(i, 3)), 0xFFFFFFFFu) << "a sign";
        for (int b = 0; b < 3; b++)
            EXPECT_EQ(kept_zeros(1u << n64_f4_bit(i, b)), i < 4 ? 0xFFFF0000u : 0x0000FFFFu);
    }
}

} // namespace
