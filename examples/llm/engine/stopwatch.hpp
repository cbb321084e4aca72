// SPDX-License-Identifier: Apache-2.0
// What measurements count: seconds that pass, or that the threads of this process compute.
#pragma once

#include <ctime>

namespace llm {

class stopwatch_t {
public:
    explicit stopwatch_t(bool is_cpu_time = false)
        : clock_(is_cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC), start_(now()) {}
    double seconds() const { return now() - start_; }

private:
    const clockid_t clock_;
    const double start_;

    double now() const {
        timespec t;
        clock_gettime(clock_, &t);
        return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
    }
};

} // namespace llm
