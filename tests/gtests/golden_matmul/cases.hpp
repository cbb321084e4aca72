// SPDX-License-Identifier: Apache-2.0
// What make_golden.py wrote; it says what the arrays are.
#pragma once

#include "gtests/golden/case_files.hpp"
#include "gtests/golden/case_values.hpp"

namespace golden_matmul {

using golden::dt;
using mxdnn::memory;

struct format_t : golden::with_arrays_t {
    dt elem, scale, zero; // zero: undef for none
    memory::dim block;
    bool global;
    bool is_mx() const { return scale == dt::e8m0; }
    bool is_int4() const { return elem == dt::s4 || elem == dt::u4; }
    int bits() const {
        return elem == dt::f6_e2m3 || elem == dt::f6_e3m2 ? 6 : is_int4() || elem == dt::f4_e2m1 ? 4 : 8;
    }
};

struct cases_t {
    memory::dim M = 0, K = 0, N = 0;
    std::vector<float> x, bias;
    std::vector<format_t> formats;
};

inline const cases_t &cases() {
    static const cases_t all = [] {
        cases_t c;
        const auto describe = [&](const std::string &kind, std::istringstream &in) {
            if (kind == "problem") in >> c.M >> c.K >> c.N;
            if (kind != "format") return;
            format_t f;
            std::string elem, scale, zero;
            in >> f.name >> elem >> scale >> f.block >> zero >> f.global;
            f.elem = golden::type_of(elem), f.scale = golden::type_of(scale), f.zero = golden::type_of(zero);
            c.formats.push_back(f);
        };
        // Names are OWNER.WHAT: a format, or all of them.
        golden::with_arrays_t shared;
        const auto array = [&](const std::string &name, const golden::array_t &a) {
            const size_t dot = name.find('.');
            golden::with_arrays_t &owner = name.substr(0, dot) == "all" ? shared : c.formats.back();
            owner.arrays[name.substr(dot + 1)] = a;
        };
        golden::read_case_files("golden_matmul", describe, array);
        c.x = shared.as<float>("x");
        c.bias = shared.as<float>("bias");
        return c;
    }();
    return all;
}

} // namespace golden_matmul
