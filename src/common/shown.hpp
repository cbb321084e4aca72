// SPDX-License-Identifier: Apache-2.0
// Text of strangers in messages: a terminal shows it and does not obey it. Pure, so that programs share it.
#pragma once

#include <cstdio>
#include <string>

namespace mxdnn {
namespace impl {

// Text from a file or from the environment in a form that is safe to print: quoted, with escapes for
// everything but printable ASCII, and shortened if very long.
inline std::string shown(const std::string &name) {
    std::string s = "'";
    for (const char c : name) {
        if (s.size() > 100) return s + "…' (" + std::to_string(name.size()) + " bytes)";
        if (c == '\'' || c == '\\') {
            s += '\\';
            s += c;
        } else if (c >= 0x20 && c < 0x7f) {
            s += c;
        } else {
            char hex[8];
            snprintf(hex, sizeof(hex), "\\x%02x", unsigned(static_cast<unsigned char>(c)));
            s += hex;
        }
    }
    return s + "'";
}

// A path in a form that is safe to print: without control characters. Of a very long path the end is kept.
inline std::string shown_path(const std::string &path) {
    std::string s;
    for (const char c : path) s += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return s.size() <= 150 ? s : "…" + s.substr(s.size() - 147);
}

} // namespace impl
} // namespace mxdnn
