// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured in this process: the limit that kernels are held against.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

// Milliseconds of a clock for work by so many threads. A thread that works alone is timed by its own clock,
// which stands still while another has its core.
double work_clock_ms(int threads);

// Memory beyond every cache, a part for each thread, that they read or copy at once.
class far_memory_t {
public:
    explicit far_memory_t(int threads);
    ~far_memory_t();
    far_memory_t(const far_memory_t &) = delete;
    far_memory_t &operator=(const far_memory_t &) = delete;

    double bytes() const { return double(part_) * double(parts_.size()); }
    // Milliseconds to read all of it, each part as so many streams, or to copy half of it onto the other.
    double read(int streams), copy();

private:
    size_t part_; // bytes
    std::vector<char *> parts_;
};
// Kept from its first use on.
far_memory_t &far_memory(int threads);

struct ceilings_t {
    double read_gbs = 0;    // GB/s: the best of several numbers of streams per thread
    double copy_gbs = 0;    // GB/s read plus written, with memcpy
    double bf16_gflops = 0; // of the fastest exact dot-product instruction for bf16 products
    double f32_gflops = 0;
    const char *bf16_instruction = "", *f32_instruction = "";
    int streams = 1; // that read_gbs was reached with
};

// Measured once per number of threads, then kept.
const ceilings_t &ceilings(int threads);

} // namespace bench
