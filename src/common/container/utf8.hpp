// SPDX-License-Identifier: Apache-2.0
// Strict UTF-8: one decoder, used to refuse ill-formed headers and to split text into code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mxdnn {
namespace impl {
namespace utf8 {

constexpr uint32_t invalid = 0xffffffffu;

// Decodes the code point at p and moves p past it. p is before end. Ill-formed input (overlong, surrogate,
// above U+10FFFF, truncated) gives `invalid` and moves p by one byte, so that loops end.
inline uint32_t next(const unsigned char *&p, const unsigned char *end) {
    const unsigned char lead = *p++;
    if (lead < 0x80) return lead;
    const int tail = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || end - p < tail) return invalid;
    static constexpr uint32_t lowest[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c = lead & (0x3fu >> tail);
    for (int i = 0; i < tail; i++) {
        if ((p[i] & 0xc0) != 0x80) return invalid;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < lowest[tail] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return invalid;
    p += tail;
    return c;
}

// Offset of the first ill-formed byte; `size` if there is none.
inline size_t first_invalid(const void *bytes, size_t size) {
    const auto *begin = static_cast<const unsigned char *>(bytes), *p = begin, *end = begin + size;
    while (p < end) {
        const unsigned char *at = p;
        if (next(p, end) == invalid) return size_t(at - begin);
    }
    return size;
}

inline void append(std::string &s, uint32_t c) {
    if (c < 0x80) {
        s += char(c);
    } else if (c < 0x800) {
        s += char(0xc0 | c >> 6);
        s += char(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        s += char(0xe0 | c >> 12);
        s += char(0x80 | (c >> 6 & 0x3f));
        s += char(0x80 | (c & 0x3f));
    } else {
        s += char(0xf0 | c >> 18);
        s += char(0x80 | (c >> 12 & 0x3f));
        s += char(0x80 | (c >> 6 & 0x3f));
        s += char(0x80 | (c & 0x3f));
    }
}

} // namespace utf8
} // namespace impl
} // namespace mxdnn
