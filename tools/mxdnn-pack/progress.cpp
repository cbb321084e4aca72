// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <cstdio>
#include <utility>

#include <unistd.h>

namespace mxdnn_pack {

namespace {

std::string with_unit(double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t u = 0;
    for (; bytes >= 1000 && u + 1 < sizeof(units) / sizeof(*units); u++) bytes /= 1000;
    char text[32];
    snprintf(text, sizeof(text), bytes < 10 && u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

} // namespace

std::string progress_text(const std::string &what, uint64_t done, uint64_t total, double seconds) {
    constexpr int width = 20;
    const double part = total ? double(done) / double(total) : 1,
                 rate = seconds > 0 ? double(done) / seconds : 0;
    std::string bar(width, '.');
    for (int i = 0; i < int(part * width); i++) bar[size_t(i)] = '#';
    std::string s = "[" + bar + "] " + std::to_string(int(part * 100)) + " %  " + with_unit(double(done))
                    + " of " + with_unit(double(total)) + "  " + with_unit(rate) + "/s";
    if (rate > 0) {
        const auto left = uint64_t(double(total - done) / rate + 0.5);
        s += "  " + (left >= 120 ? std::to_string(left / 60) + " min" : std::to_string(left) + " s")
             + " left";
    }
    return s + "  " + what;
}

progress_t::progress_t(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), is_terminal_(isatty(STDERR_FILENO) == 1), start_(clock::now()),
      last_(start_) {}

progress_t::~progress_t() {
    if (has_bar_) fprintf(stderr, "\r\033[K");
}

void progress_t::update(uint64_t done) {
    const auto now = clock::now();
    if (now - last_ < (is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000)))
        return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const std::string text = progress_text(what_, done, total_, seconds);
    if (is_terminal_)
        fprintf(stderr, "\r%s\033[K", text.c_str());
    else
        fprintf(stderr, "%s\n", text.c_str());
    fflush(stderr);
    has_bar_ = is_terminal_;
}

} // namespace mxdnn_pack
