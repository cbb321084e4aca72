// SPDX-License-Identifier: Apache-2.0
// Reads the files of this folder: lines of key=value words.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/formats/format_list.hpp"
#include "common/layouts/layout_list.hpp"
#include "common/memory_desc.hpp"
#include "common/packed_desc.hpp"

#ifndef MXDNN_TEST_DATA // the build says where; without it, the current folder is the root of the sources
#define MXDNN_TEST_DATA "tests/gtests"
#endif

namespace mxdnn {
namespace impl {
namespace golden {

inline std::string path(const std::string &file) { return std::string(MXDNN_TEST_DATA "/golden/") + file; }

inline std::vector<uint8_t> read_file(const std::string &file) {
    std::ifstream in(path(file), std::ios::binary);
    EXPECT_TRUE(in.good()) << path(file);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

inline std::vector<uint8_t> from_hex(const std::string &hex) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(uint8_t(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16)));
    return bytes;
}

struct line_t {
    std::string text;
    std::map<std::string, std::string> words;
    std::vector<std::pair<int64_t, std::vector<uint8_t>>> samples; // offset, bytes

    bool has(const char *key) const { return words.count(key) != 0; }
    std::string str(const char *key) const {
        const auto found = words.find(key);
        return found == words.end() ? "" : found->second;
    }
    int64_t num(const char *key) const { return std::strtoll(str(key).c_str(), nullptr, 10); }
    uint64_t hex(const char *key) const { return std::strtoull(str(key).c_str(), nullptr, 16); }
    data_type_t type(const char *key) const { return data_type_from_name(str(key).c_str()); }
    std::vector<dim_t> dims(const char *key) const {
        std::vector<dim_t> list;
        std::istringstream in(str(key));
        for (std::string word; std::getline(in, word, 'x');)
            list.push_back(word == "*" ? runtime_dim : std::strtoll(word.c_str(), nullptr, 10));
        return list;
    }
    target_family_t family() const {
        return str("family") == "cuda" ? target_family_t::cuda : target_family_t::cpu_x64;
    }
    quant_t quant() const {
        quant_t q;
        q.scale_dt = type("scale");
        q.block = num("block");
        const std::string zp = str("zp"), global = str("global");
        q.zp = zp == "u8"           ? zero_point_kind_t::u8
               : zp == "float_zero" ? zero_point_kind_t::float_zero
               : zp == "minimum"    ? zero_point_kind_t::minimum
                                    : zero_point_kind_t::none;
        q.zp_dt = type("zp_dt");
        q.global = global == "one"          ? global_scale_kind_t::one
                   : global == "per_expert" ? global_scale_kind_t::per_expert
                                            : global_scale_kind_t::none;
        return q;
    }
};

inline std::vector<line_t> read_lines(const std::string &file) {
    std::vector<line_t> lines;
    std::ifstream in(path(file));
    EXPECT_TRUE(in.good()) << path(file);
    for (std::string text; std::getline(in, text);) {
        line_t line;
        line.text = text;
        std::istringstream words(text);
        for (std::string word; words >> word;) {
            const size_t eq = word.find('=');
            const std::string key = word.substr(0, eq), value = word.substr(eq + 1);
            if (key == "at")
                line.samples.emplace_back(std::strtoll(value.c_str(), nullptr, 10),
                        from_hex(value.substr(value.find(':') + 1)));
            else
                line.words[key] = value;
        }
        lines.push_back(line);
    }
    return lines;
}

// The descriptor that a line of blobs.txt or packed.txt describes, without fields of later releases.
inline status_t make_desc(const line_t &line, memory_desc_t &md) {
    const std::vector<dim_t> dims = line.dims("dims");
    const std::string kind = line.has("kind") ? line.str("kind") : "packed";
    status_t status;
    if (kind == "strided")
        status =
                init_strided(md, int(dims.size()), dims.data(), line.type("dt"), line.dims("strides").data());
    else if (kind == "grouped")
        status = init_grouped(
                md, int(dims.size()), dims.data(), line.type("dt"), 0, line.num("groups"), mxdnn_s32);
    else if (line.has("layout")) {
        const std::string name = line.str("layout");
        const auto *layout = std::find_if(std::begin(layout_list), std::end(layout_list),
                [&](const layout_t &l) { return l.name == name; });
        EXPECT_NE(layout, std::end(layout_list)) << name;
        status = init_packed_as(md, int(dims.size()), dims.data(), line.type("dt"), line.quant(), *layout);
    } else
        status = init_packed(md, int(dims.size()), dims.data(), line.type("dt"), line.quant(), line.family());
    md.annotation.original_dt = line.type("type");
    md.annotation.recipe = line.str("recipe");
    return status;
}

// The noise that fills golden tensors; make_golden.py has the same.
inline uint32_t noise(uint32_t tag, int64_t e, int64_t k, int64_t n) {
    uint32_t x = tag * 0x9e3779b1u + uint32_t(e) * 0x85ebca77u + uint32_t(k) * 0xc2b2ae3du
                 + uint32_t(n) * 0x27d4eb2fu;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

} // namespace golden
} // namespace impl
} // namespace mxdnn
