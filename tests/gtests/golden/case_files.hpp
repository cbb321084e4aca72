// SPDX-License-Identifier: Apache-2.0
// Reads cases.txt and cases.bin of a folder, which its make_golden.py wrote: lines that describe, and lines
// that say where in cases.bin an array is.
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

namespace golden {

struct array_t {
    std::vector<int64_t> dims;
    std::vector<uint8_t> bytes;

    template <typename T>
    std::vector<T> as() const {
        std::vector<T> v(bytes.size() / sizeof(T));
        if (!v.empty()) std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
        return v;
    }
};

struct with_arrays_t {
    std::string name;
    std::map<std::string, array_t> arrays;
    bool has(const std::string &what) const { return arrays.count(what) != 0; }
    const array_t &operator[](const std::string &what) const { return arrays.at(what); }
    const std::vector<uint8_t> &bytes(const std::string &what) const { return arrays.at(what).bytes; }
    template <typename T>
    std::vector<T> as(const std::string &what) const {
        return arrays.at(what).as<T>();
    }
};

// The rest of a line: "key=value" words.
inline std::map<std::string, std::string> read_options(std::istringstream &line) {
    std::map<std::string, std::string> options;
    for (std::string word; line >> word;) {
        const size_t equals = word.find('=');
        options[word.substr(0, equals)] = word.substr(equals + 1);
    }
    line.clear();
    return options;
}

// describe(kind, rest of the line) for each line but those of arrays, array(name, array) for each of these,
// in the order of the file. Throws what names the file or the line that is not as it should be.
template <typename describe_t, typename array_fn_t>
void read_case_files(const std::string &name, describe_t &&describe, array_fn_t &&array) {
    const std::string folder = MXDNN_TEST_DATA "/" + name + "/";
    std::ifstream bin(folder + "cases.bin", std::ios::binary), text(folder + "cases.txt");
    const std::vector<uint8_t> blob(std::istreambuf_iterator<char>(bin), {});
    if (!bin || blob.empty()) throw std::runtime_error("cannot read " + folder + "cases.bin");
    const auto wrong = [&](const std::string &line) {
        return std::runtime_error(folder + "cases.txt: " + line);
    };
    bool any = false;
    for (std::string line; std::getline(text, line); any = true) {
        std::istringstream in(line);
        std::string kind, what, type, shape;
        in >> kind;
        if (kind != "array") {
            describe(kind, in);
        } else {
            size_t offset = 0, size = 0;
            in >> what >> type >> shape >> offset >> size;
            if (!in || !any || offset + size > blob.size()) throw wrong(line);
            array_t a;
            a.bytes.assign(blob.begin() + long(offset), blob.begin() + long(offset + size));
            std::istringstream dims(shape);
            for (std::string d; std::getline(dims, d, 'x');) a.dims.push_back(std::stoll(d));
            array(what, a);
        }
        if (in.fail()) throw wrong(line);
    }
    if (!any) throw std::runtime_error(folder + "cases.txt has no cases");
}

} // namespace golden
