// SPDX-License-Identifier: Apache-2.0
// Reads what make_golden.py wrote.
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

namespace golden_grouped {

struct array_t {
    std::vector<int64_t> dims;
    std::vector<uint8_t> bytes;

    template <typename T>
    std::vector<T> as() const {
        std::vector<T> v(bytes.size() / sizeof(T));
        std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
        return v;
    }
};

struct with_arrays_t {
    std::string name;
    std::map<std::string, array_t> arrays;
    bool has(const std::string &what) const { return arrays.count(what) != 0; }
    const array_t &operator[](const std::string &what) const { return arrays.at(what); }
};

struct format_t : with_arrays_t {
    std::string elem, scale, zero; // zero: "none", "u8" or a floating type
    int64_t block = 0;
    bool global = false;
    bool is_int4() const { return elem == "s4" || elem == "u4"; }
};

struct case_t : with_arrays_t {
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

// Throws what names the file or the line that is not as it should be.
inline const cases_t &cases() {
    static const cases_t all = [] {
        const std::string folder = MXDNN_TEST_DATA "/golden_grouped/";
        std::ifstream bin(folder + "cases.bin", std::ios::binary), text(folder + "cases.txt");
        const std::vector<uint8_t> blob(std::istreambuf_iterator<char>(bin), {});
        if (!bin || blob.empty()) throw std::runtime_error("cannot read " + folder + "cases.bin");
        cases_t c;
        with_arrays_t *owner = nullptr;
        for (std::string line; std::getline(text, line);) {
            std::istringstream in(line);
            std::string kind, name;
            in >> kind;
            if (kind == "problem") {
                in >> c.E >> c.K >> c.N;
            } else if (kind == "format") {
                format_t f;
                in >> f.name >> f.elem >> f.scale >> f.block >> f.zero >> f.global;
                owner = &(c.formats[f.name] = f);
            } else if (kind == "case") {
                case_t one;
                in >> one.name;
                for (std::string word; in >> word;) {
                    const size_t equals = word.find('=');
                    one.options[word.substr(0, equals)] = word.substr(equals + 1);
                }
                in.clear();
                c.cases.push_back(one);
                owner = &c.cases.back();
            } else if (kind == "array") {
                std::string type, shape;
                size_t offset = 0, size = 0;
                in >> name >> type >> shape >> offset >> size;
                if (in && owner && offset + size <= blob.size()) {
                    array_t &a = owner->arrays[name];
                    a.bytes.assign(blob.begin() + long(offset), blob.begin() + long(offset + size));
                    std::istringstream dims(shape);
                    for (std::string d; std::getline(dims, d, 'x');) a.dims.push_back(std::stoll(d));
                } else {
                    in.setstate(std::ios::failbit);
                }
            }
            if (in.fail()) throw std::runtime_error(folder + "cases.txt: " + line);
        }
        return c;
    }();
    return all;
}

} // namespace golden_grouped
