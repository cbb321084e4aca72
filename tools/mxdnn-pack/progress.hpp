// SPDX-License-Identifier: Apache-2.0
// How far a command is, on stderr: a bar with rate and remaining time on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace mxdnn_pack {

class progress_t {
public:
    // `total`: bytes.
    progress_t(std::string what, uint64_t total);
    ~progress_t(); // a bar is removed
    progress_t(const progress_t &) = delete;
    progress_t &operator=(const progress_t &) = delete;

    // Not by several threads at once. Says something at most ten times a second on a terminal, and every two
    // seconds elsewhere.
    void update(uint64_t done);

private:
    using clock = std::chrono::steady_clock;

    const std::string what_;
    const uint64_t total_;
    const bool is_terminal_;
    const clock::time_point start_;
    clock::time_point last_;
    bool has_bar_ = false;
};

// The same line as text: "[####      ] 40 %  1.2 of 3.0 GB  650 MB/s  3 s left  what".
std::string progress_text(const std::string &what, uint64_t done, uint64_t total, double seconds);

} // namespace mxdnn_pack
