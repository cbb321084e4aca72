// SPDX-License-Identifier: Apache-2.0
// What make_golden.py wrote; it says what the arrays are.
#pragma once

#include "gtests/golden/case_files.hpp"

namespace golden_moe {

struct case_t : golden::with_arrays_t {
    std::string kind;
    std::map<std::string, std::string> words;

    const std::string &word(const char *key) const { return words.at(key); }
    int64_t number(const std::string &key) const { return std::stoll(words.at(key)); }
};

inline const std::vector<case_t> &cases() {
    static const std::vector<case_t> all = [] {
        std::vector<case_t> cases;
        const auto describe = [&](const std::string &, std::istringstream &in) {
            case_t c;
            in >> c.kind >> c.name;
            c.words = golden::read_options(in);
            cases.push_back(c);
        };
        golden::read_case_files("golden_moe", describe,
                [&](const std::string &what, const golden::array_t &a) { cases.back().arrays[what] = a; });
        return cases;
    }();
    return all;
}

} // namespace golden_moe
