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
            k.to_s8(x.data(), step, codes.data(), int64_t(n));
            for (size_t i = 0; i < n; i++)
                ASSERT_EQ(codes[i], code_of(x[i], step)) << x[i] << " by steps of " << step;
        }
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
        std::vector<uint32_t> amax(static_cast<size_t>(blocks));
        k.amax_bits_of_blocks(x.data(), amax.data(), n);
        std::vector<uint8_t> codes(static_cast<size_t>(n));
        k.blocks_to_s8(x.data(), steps.data(), codes.data(), n);
        for (int64_t b = 0; b < blocks; b++) {
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
        }
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
