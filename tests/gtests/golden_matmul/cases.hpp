// SPDX-License-Identifier: Apache-2.0
// Reads cases.txt and cases.bin; make_golden.py says what the arrays are.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "mxdnn/mxdnn.hpp"

#ifndef MXDNN_TEST_DATA // the build says where; without it, the current folder is the root of the sources
#define MXDNN_TEST_DATA "tests/gtests"
#endif

namespace golden_matmul {

using mxdnn::memory;
using dt = memory::data_type;

inline dt type_of(const std::string &name) {
    static const std::map<std::string, dt> types{{"f32", dt::f32}, {"bf16", dt::bf16}, {"f16", dt::f16},
            {"f8_e4m3", dt::f8_e4m3}, {"f8_e5m2", dt::f8_e5m2}, {"f6_e2m3", dt::f6_e2m3},
            {"f6_e3m2", dt::f6_e3m2}, {"f4_e2m1", dt::f4_e2m1}, {"s8", dt::s8}, {"s4", dt::s4},
            {"u4", dt::u4}, {"u8", dt::u8}, {"e8m0", dt::e8m0}, {"none", dt::undef}};
    return types.at(name);
}

struct format_t {
    std::string name;
    dt elem, scale, zero; // zero: undef for none
    memory::dim block;
    bool global;
    std::map<std::string, std::vector<uint8_t>> arrays;

    bool has(const std::string &what) const { return arrays.count(what) != 0; }
    bool is_mx() const { return scale == dt::e8m0; }
    bool is_int4() const { return elem == dt::s4 || elem == dt::u4; }
    int bits() const {
        return elem == dt::f6_e2m3 || elem == dt::f6_e3m2 ? 6 : is_int4() || elem == dt::f4_e2m1 ? 4 : 8;
    }
    const std::vector<uint8_t> &bytes(const std::string &what) const { return arrays.at(what); }
    std::vector<float> floats(const std::string &what) const {
        const auto &b = arrays.at(what);
        std::vector<float> v(b.size() / 4);
        std::memcpy(v.data(), b.data(), b.size());
        return v;
    }
};

struct cases_t {
    memory::dim M = 0, K = 0, N = 0;
    std::vector<float> x, bias;
    std::vector<format_t> formats;
};

// Throws what names the file or the line that is not as it should be.
inline const cases_t &cases() {
    static const cases_t all = [] {
        const std::string folder = MXDNN_TEST_DATA "/golden_matmul/";
        std::ifstream bin(folder + "cases.bin", std::ios::binary), text(folder + "cases.txt");
        const std::vector<uint8_t> blob(std::istreambuf_iterator<char>(bin), {});
        if (!bin || blob.empty()) throw std::runtime_error("cannot read " + folder + "cases.bin");
        cases_t c;
        format_t shared;
        for (std::string line; std::getline(text, line);) {
            std::istringstream in(line);
            std::string kind, name;
            in >> kind;
            if (kind == "problem") {
                in >> c.M >> c.K >> c.N;
            } else if (kind == "format") {
                format_t f;
                std::string elem, scale, zero;
                in >> f.name >> elem >> scale >> f.block >> zero >> f.global;
                f.elem = type_of(elem), f.scale = type_of(scale), f.zero = type_of(zero);
                c.formats.push_back(f);
            } else if (kind == "array") {
                std::string type, shape;
                size_t offset = 0, size = 0;
                in >> name >> type >> shape >> offset >> size;
                const size_t dot = name.find('.');
                const std::string owner = name.substr(0, dot), what = name.substr(dot + 1);
                if (in && offset + size <= blob.size()) {
                    format_t &f = owner == "all" ? shared : c.formats.back();
                    f.arrays[what].assign(blob.begin() + long(offset), blob.begin() + long(offset + size));
                } else {
                    in.setstate(std::ios::failbit);
                }
            }
            if (in.fail()) throw std::runtime_error(folder + "cases.txt: " + line);
        }
        c.x = shared.floats("x");
        c.bias = shared.floats("bias");
        return c;
    }();
    return all;
}

} // namespace golden_matmul
