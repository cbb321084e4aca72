// SPDX-License-Identifier: Apache-2.0
#include "utf8_stream.hpp"

#include <cstdint>

#include "common/container/utf8.hpp"

namespace llm {

namespace utf8 = mxdnn::impl::utf8;

namespace {

// How many bytes at p may begin one character: 1 for what begins none. `is_whole`: they are all of one.
size_t prefix(const unsigned char *p, const unsigned char *end, bool &is_whole) {
    const unsigned char *next = p;
    is_whole = utf8::next(next, end) != utf8::invalid;
    if (is_whole) return size_t(next - p);
    // What follows the first byte decides about overlong forms, surrogates and what is too large.
    const unsigned char lead = *p;
    const int tail = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4) return 1;
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    size_t n = 1;
    for (int i = 1; i <= tail && p + i < end; i++, n++)
        if (i == 1 ? p[i] < low || p[i] > high : (p[i] & 0xc0) != 0x80) break;
    return n;
}

} // namespace

std::string utf8_stream_t::put(std::string_view bytes) {
    held_ += bytes;
    return take(false);
}

std::string utf8_stream_t::finish() { return take(true); }

std::string utf8_stream_t::take(bool is_last) {
    std::string text;
    const auto *begin = reinterpret_cast<const unsigned char *>(held_.data()), *p = begin,
               *end = begin + held_.size();
    while (p < end) {
        bool is_whole;
        const size_t n = prefix(p, end, is_whole);
        // More bytes may make a character of it, unless it is one byte that begins none.
        const bool may_grow = !is_whole && p + n == end && *p >= 0xc2 && *p <= 0xf4;
        if (may_grow && !is_last) break;
        text += is_whole ? std::string(p, p + n) : "\uFFFD";
        p += n;
    }
    held_.erase(0, size_t(p - begin));
    return text;
}

} // namespace llm
