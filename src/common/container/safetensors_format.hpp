// SPDX-License-Identifier: Apache-2.0
// What is fixed about safetensors files and about packed tensors in them (doc/reference/container.md):
// element types, names, limits. Pure, so that programs that write such files share it with the library that
// reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/shown.hpp"

namespace mxdnn {
namespace impl {
namespace safetensors {

enum class kind_t {
    ok,
    io,              // the system failed, or the file changed; the message has the reason
    too_short,       // shorter than the length of the header
    header_too_long, // the length is above max_header_size
    header_past_end, // the length is larger than the file
    bad_utf8,
    bad_json,
    wrong_type, // a JSON value of another type than is expected, or nested too deeply
    duplicate_name,
    bad_name, // empty or longer than max_name_size
    unknown_field,
    missing_field,
    unknown_dtype,
    bad_shape,   // negative, too many dimensions, overflow, not a whole number of bytes
    bad_offsets, // negative, reversed
    past_end,    // data beyond the end of the file
    wrong_size,  // dtype x shape is not the size of the data
    overlap,
    gap, // bytes that belong to no tensor, also at the end
    not_found
};

inline const char *to_string(kind_t kind) {
    static constexpr const char *names[] = {"ok", "io", "too_short", "header_too_long", "header_past_end",
            "bad_utf8", "bad_json", "wrong_type", "duplicate_name", "bad_name", "unknown_field",
            "missing_field", "unknown_dtype", "bad_shape", "bad_offsets", "past_end", "wrong_size", "overlap",
            "gap", "not_found"};
    return names[size_t(kind)];
}

// The outcome of a call: a kind for programs, and a sentence for people.
struct status_t {
    kind_t kind = kind_t::ok;
    std::string message;
    bool ok() const { return kind == kind_t::ok; }
};

struct dtype_t {
    const char *name; // as in the header
    int bits;
};

inline constexpr dtype_t dtypes[] = {{"BOOL", 8}, {"U8", 8}, {"I8", 8}, {"U16", 16}, {"I16", 16}, {"U32", 32},
        {"I32", 32}, {"U64", 64}, {"I64", 64}, {"F16", 16}, {"BF16", 16}, {"F32", 32}, {"F64", 64},
        {"C64", 64}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
        {"F4", 4}};

// The type with that name; null if there is none.
inline const dtype_t *find_dtype(const std::string &name) {
    for (const dtype_t &d : dtypes)
        if (name == d.name) return &d;
    return nullptr;
}

constexpr uint64_t max_header_size = 100'000'000;
constexpr size_t max_ndims = 32;
constexpr size_t max_name_size = 4096; // of a tensor; for packed ones with the suffix

// Suffixes of mxdnn's tensors and of the metadata key that holds the checksum (16 hexadecimal digits).
constexpr const char *packed_suffix = ".mxdnn_packed";
constexpr const char *desc_suffix = ".mxdnn_desc";
constexpr const char *checksum_suffix = ".mxdnn_checksum";
constexpr uint64_t packed_alignment = 64;

inline bool ends_with(const std::string &s, const std::string &end) {
    return s.size() > end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}
// The name without the suffix, of a tensor whose name ends_with() it.
inline std::string without(const std::string &s, const std::string &end) {
    return s.substr(0, s.size() - end.size());
}

inline std::string hexadecimal(uint64_t v) {
    char text[17];
    snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(v));
    return text;
}

// "[2, 3]"
inline std::string to_string(const std::vector<int64_t> &shape) {
    std::string s = "[";
    for (size_t i = 0; i < shape.size(); i++) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + "]";
}

// The bytes of a tensor of that type and shape. The message of a refusal has no subject: "of shape ...".
inline status_t size_in_bytes(const dtype_t &dtype, const std::vector<int64_t> &shape, uint64_t &bytes) {
    const auto refuse = [&](const char *what) -> status_t {
        return {kind_t::bad_shape,
                "of shape " + to_string(shape).substr(0, 100) + " and dtype " + dtype.name + what};
    };
    // Dimensions count even if another one is 0, so that products of some of them stay below 2^64.
    uint64_t bits = uint64_t(dtype.bits);
    bool empty = false;
    for (const int64_t d : shape) {
        if (d < 0) return refuse(" has a negative dimension");
        empty = empty || d == 0;
        if (d && __builtin_mul_overflow(bits, uint64_t(d), &bits))
            return refuse(" is larger than 2^61 bytes");
    }
    if (empty) bits = 0;
    if (bits % 8) return refuse(" is not a whole number of bytes");
    bytes = bits / 8;
    return {};
}

using impl::shown;
using impl::shown_path;

} // namespace safetensors
} // namespace impl
} // namespace mxdnn
