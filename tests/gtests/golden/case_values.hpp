// SPDX-License-Identifier: Apache-2.0
// Types by the names that make_golden.py gives them, and values of tensors' bytes, by arithmetic of its own.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtests/test_api_util.hpp"

namespace golden {

using api_test::dt;

inline dt type_of(const std::string &name) {
    static const std::map<std::string, dt> types{{"f32", dt::f32}, {"bf16", dt::bf16}, {"f16", dt::f16},
            {"f8_e4m3", dt::f8_e4m3}, {"f8_e5m2", dt::f8_e5m2}, {"f6_e2m3", dt::f6_e2m3},
            {"f6_e3m2", dt::f6_e3m2}, {"f4_e2m1", dt::f4_e2m1}, {"s8", dt::s8}, {"s4", dt::s4},
            {"u4", dt::u4}, {"u8", dt::u8}, {"e8m0", dt::e8m0}, {"none", dt::undef}};
    return types.at(name);
}

inline double from_f16(uint16_t h) {
    const int field = h >> 10 & 31, mantissa = h & 1023;
    const double v = field == 31 ? (mantissa ? std::nan("") : double(INFINITY))
                     : field     ? std::ldexp(1024 + mantissa, field - 25)
                                 : std::ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}

// Element `i` of f32, bf16 or f16.
inline double value_at(const std::vector<uint8_t> &bytes, dt type, size_t i) {
    if (type == dt::f32) {
        float f;
        std::memcpy(&f, &bytes[i * 4], 4);
        return f;
    }
    uint16_t h;
    std::memcpy(&h, &bytes[i * 2], 2);
    return type == dt::bf16 ? double(api_test::from_bf16(h)) : from_f16(h);
}

} // namespace golden
