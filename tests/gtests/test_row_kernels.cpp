// SPDX-License-Identifier: Apache-2.0
// s8 codes of the row kernels of every ISA, against division and rounding of single values: values near the
// middle between two integers, where a faster method could be wrong, and both ends of the range.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

uint8_t code_of(float x, float step) {
    return uint8_t(int8_t(std::nearbyint(std::fmin(std::fmax(x / step, -127.f), 127.f))));
}

// Rounds x towards zero to bf16, and returns that.
std::vector<uint16_t> upper_halves(std::vector<float> &x) {
    std::vector<uint16_t> words(x.size());
    for (size_t i = 0; i < x.size(); i++) {
        uint32_t bits;
        std::memcpy(&bits, &x[i], sizeof(bits));
        words[i] = uint16_t(bits >> 16);
        bits &= 0xffff0000u;
        std::memcpy(&x[i], &bits, sizeof(bits));
    }
    return words;
}

void check(const row_kernels_t &k) {
    std::mt19937 g(1);
    std::vector<float> x(1000);
    std::vector<uint8_t> codes(x.size());
    for (int exponent = -149; exponent <= 127; exponent++)
        for (const float mantissa : {1.f, 1.00000012f, 1.3333334f, 1.7f, 1.9999999f}) {
            const float step = std::ldexp(mantissa, exponent);
            for (size_t i = 0; i < x.size(); i++) {
                const int integer = int(g() % 260) - 130;
                x[i] = (float(integer) + (i % 3 ? 0.5f : float(g()) * 0x1p-32f)) * step;
                for (uint32_t away = g() % 4; away > 0; away--)
                    x[i] = std::nextafter(x[i], g() % 2 ? INFINITY : -INFINITY);
                if (!std::isfinite(x[i])) x[i] = step;
            }
            const size_t n = x.size() - g() % 40;
            k.to_s8(mxdnn_f32, x.data(), step, codes.data(), int64_t(n));
            for (size_t i = 0; i < n; i++)
                ASSERT_EQ(codes[i], code_of(x[i], step)) << x[i] << " by steps of " << step;
            const std::vector<uint16_t> words = upper_halves(x);
            k.to_s8(mxdnn_bf16, words.data(), step, codes.data(), int64_t(n));
            for (size_t i = 0; i < n; i++)
                ASSERT_EQ(codes[i], code_of(x[i], step)) << x[i] << " in bf16 by steps of " << step;
        }
}

// Magnitudes and codes of blocks of `values`, which are those of x.
void check_blocks(const row_kernels_t &k, mxdnn_data_type_t dt, const void *values,
        const std::vector<float> &x, const std::vector<float> &steps) {
    const int64_t n = int64_t(x.size());
    std::vector<uint32_t> amax(steps.size());
    k.amax_bits_of_blocks(dt, values, amax.data(), n);
    std::vector<uint8_t> codes(x.size());
    k.blocks_to_s8(dt, values, steps.data(), codes.data(), n);
    uint32_t of_all = 0;
    for (int64_t b = 0; b < int64_t(steps.size()); b++) {
        uint32_t most = 0;
        for (int64_t i = b * 32; i < std::min(n, b * 32 + 32); i++) {
            uint32_t bits;
            std::memcpy(&bits, &x[size_t(i)], sizeof(bits));
            most = std::max(most, bits & 0x7fffffff);
            if (std::isnan(x[size_t(i)])) continue;
            ASSERT_EQ(codes[size_t(i)], code_of(x[size_t(i)], steps[size_t(b)]))
                    << x[size_t(i)] << " by steps of " << steps[size_t(b)];
        }
        ASSERT_EQ(amax[size_t(b)], most);
        of_all = std::max(of_all, most);
    }
    ASSERT_EQ(k.amax_bits(dt, values, n), of_all);
}

// Blocks of 32, the last one shorter, each with a power of two.
void check_blocks(const row_kernels_t &k) {
    std::mt19937 g(2);
    for (int turn = 0; turn < 2000; turn++) {
        const int64_t n = 1 + int64_t(g() % 256), blocks = (n + 31) / 32;
        std::vector<float> x(static_cast<size_t>(n)), steps(static_cast<size_t>(blocks));
        for (float &s : steps) s = std::ldexp(1.f, int(g() % 277) - 149);
        for (int64_t i = 0; i < n; i++)
            x[size_t(i)] = std::ldexp(float(int(g() % 1040) - 520), -2) * steps[size_t(i / 32)];
        for (float &v : x)
            if (!std::isfinite(v)) v = 1;
        if (turn % 8 == 0) x[g() % x.size()] = turn % 16 ? INFINITY : NAN;
        check_blocks(k, mxdnn_f32, x.data(), x, steps);
        const std::vector<uint16_t> words = upper_halves(x);
        check_blocks(k, mxdnn_bf16, words.data(), x, steps);
    }
}

TEST(row_kernels, blocks_have_magnitudes_and_codes_of_their_own) {
    check_blocks(row_kernels_avx2);
    if (mayiuse(cpu_isa_t::avx512_core)) check_blocks(row_kernels_avx512);
}

TEST(row_kernels, codes_of_s8_are_divided_and_rounded) {
    check(row_kernels_avx2);
    if (mayiuse(cpu_isa_t::avx512_core)) check(row_kernels_avx512);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
