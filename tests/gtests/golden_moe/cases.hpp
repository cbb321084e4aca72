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

#ifndef MXDNN_TEST_DATA // the build says where; without it, the current folder is the root of the sources
#define MXDNN_TEST_DATA "tests/gtests"
#endif

namespace golden_moe {

struct case_t {
    std::string kind, name;
    std::map<std::string, std::string> words;
    std::map<std::string, std::vector<uint8_t>> arrays;

    const std::string &word(const std::string &key) const { return words.at(key); }
    int64_t number(const std::string &key) const { return std::stoll(words.at(key)); }
    bool has(const std::string &what) const { return arrays.count(what) != 0; }
    const std::vector<uint8_t> &bytes(const std::string &what) const { return arrays.at(what); }
    template <typename T>
    std::vector<T> as(const std::string &what) const {
        const auto &b = arrays.at(what);
        std::vector<T> v(b.size() / sizeof(T));
        if (!v.empty()) std::memcpy(v.data(), b.data(), b.size());
        return v;
    }
};

// Throws what names the file or the line that is not as it should be.
inline const std::vector<case_t> &cases() {
    static const std::vector<case_t> all = [] {
        const std::string folder = MXDNN_TEST_DATA "/golden_moe/";
        std::ifstream bin(folder + "cases.bin", std::ios::binary), text(folder + "cases.txt");
        const std::vector<uint8_t> blob(std::istreambuf_iterator<char>(bin), {});
        if (!bin || blob.empty()) throw std::runtime_error("cannot read " + folder + "cases.bin");
        std::vector<case_t> cases;
        for (std::string line; std::getline(text, line);) {
            std::istringstream in(line);
            std::string first, what, type, shape, word;
            in >> first;
            if (first == "case") {
                case_t c;
                in >> c.kind >> c.name;
                while (in >> word) c.words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
                cases.push_back(c);
                continue;
            }
            size_t offset = 0, size = 0;
            in >> what >> type >> shape >> offset >> size;
            if (!in || cases.empty() || offset + size > blob.size())
                throw std::runtime_error(folder + "cases.txt: " + line);
            cases.back().arrays[what].assign(blob.begin() + long(offset), blob.begin() + long(offset + size));
        }
        if (cases.empty()) throw std::runtime_error(folder + "cases.txt has no cases");
        return cases;
    }();
    return all;
}

} // namespace golden_moe
