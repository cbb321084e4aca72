// SPDX-License-Identifier: Apache-2.0
#include "byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "common/container/utf8.hpp"

namespace llm {

namespace {

// Printable characters of Latin-1 stand for themselves; the other bytes, in order, are U+0100 and what
// follows.
constexpr bool is_itself(int c) {
    return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

constexpr int characters = 0x100 + 68;

constexpr std::array<int16_t, characters> make_alphabet() {
    std::array<int16_t, characters> byte{};
    int next = 0x100;
    for (int c = 0; c < 0x100; c++) {
        byte[size_t(c)] = -1;
        if (!is_itself(c)) byte[size_t(next++)] = int16_t(c);
    }
    for (int c = 0; c < 0x100; c++)
        if (is_itself(c)) byte[size_t(c)] = int16_t(c);
    return byte;
}

constexpr std::array<int16_t, characters> alphabet = make_alphabet();

} // namespace

bool bytes_of_alphabet(std::string_view text, std::string &bytes) {
    bytes.clear();
    const auto *p = reinterpret_cast<const unsigned char *>(text.data()), *end = p + text.size();
    while (p < end) {
        const uint32_t c = mxdnn::impl::utf8::next(p, end);
        if (c >= alphabet.size() || alphabet[c] < 0) return false;
        bytes += char(alphabet[c]);
    }
    return true;
}

} // namespace llm
