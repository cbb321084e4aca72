// SPDX-License-Identifier: Apache-2.0
#include "terminal_text.hpp"

#include <cstdint>
#include <cstdio>

#include "common/container/utf8.hpp"

namespace llm {

std::string terminal_text(std::string_view text) {
    namespace utf8 = mxdnn::impl::utf8;
    std::string shown;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data()), *end = p + text.size();
    while (p < end) {
        const unsigned char *const first = p;
        const uint32_t c = utf8::next(p, end);
        const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        if (c == utf8::invalid) {
            shown += "\uFFFD";
        } else if (is_control && c != '\n' && c != '\t') {
            char escape[8];
            snprintf(escape, sizeof(escape), c < 0x80 ? "\\x%02x" : "\\u%04x", unsigned(c));
            shown += escape;
        } else {
            shown.append(first, p);
        }
    }
    return shown;
}

} // namespace llm
