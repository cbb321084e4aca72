// SPDX-License-Identifier: Apache-2.0
// s8 codes of the row kernels of every ISA, against division and rounding of single values: values near the
// middle between two integers, where a faster method could be wrong, and both ends of the range.
#include <gtest/gtest.h>

#include <cmath>
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

TEST(row_kernels, codes_of_s8_are_divided_and_rounded) {
    check(row_kernels_avx2);
    if (mayiuse(cpu_isa_t::avx512_core)) check(row_kernels_avx512);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
