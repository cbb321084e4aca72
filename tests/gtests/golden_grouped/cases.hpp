// SPDX-License-Identifier: Apache-2.0
// What make_golden.py wrote; it says what the arrays are.
#pragma once

#include "gtests/golden/case_files.hpp"

namespace golden_grouped {

struct format_t : golden::with_arrays_t {
    std::string elem, scale, zero; // zero: "none", "u8" or a floating type
    int64_t block = 0;
    bool global = false;
    bool is_int4() const { return elem == "s4" || elem == "u4"; }
};

struct case_t : golden::with_arrays_t {
    std::map<std::string, std::string> options;
    std::string get(const std::string &option, const std::string &otherwise) const {
        const auto at = options.find(option);
        return at == options.end() ? otherwise : at->second;
    }
    bool flag(const std::string &option) const { return get(option, "0") != "0"; }
};

struct cases_t {
    int64_t E = 0, K = 0, N = 0;
    std::map<std::string, format_t> formats;
    std::vector<case_t> cases;
};

inline const cases_t &cases() {
    static const cases_t all = [] {
        cases_t c;
        golden::with_arrays_t *owner = nullptr;
        const auto describe = [&](const std::string &kind, std::istringstream &in) {
            if (kind == "problem") {
                in >> c.E >> c.K >> c.N;
            } else if (kind == "format") {
                format_t f;
                in >> f.name >> f.elem >> f.scale >> f.block >> f.zero >> f.global;
                owner = &(c.formats[f.name] = f);
            } else if (kind == "case") {
                case_t one;
                in >> one.name;
                one.options = golden::read_options(in);
                c.cases.push_back(one);
                owner = &c.cases.back();
            }
        };
        golden::read_case_files("golden_grouped", describe,
                [&](const std::string &what, const golden::array_t &a) { owner->arrays[what] = a; });
        return c;
    }();
    return all;
}

} // namespace golden_grouped
