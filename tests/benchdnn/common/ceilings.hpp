// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured in this process: the limit that kernels are held against.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace bench {

// Milliseconds of a clock for work by so many threads. A thread that works alone is timed by its own CPU
// clock, which does not count time in which another thread has its core.
double work_clock_ms(int threads);

// Memory beyond every cache, a part for each thread, that they read or copy at once.
class far_memory_t {
public:
    explicit far_memory_t(int threads);
    ~far_memory_t();
    far_memory_t(const far_memory_t &) = delete;
    far_memory_t &operator=(const far_memory_t &) = delete;

    double bytes() const { return double(part_) * double(parts_.size()); }
    // Milliseconds to read all of it, each part as so many streams, or to copy one half to the other.
    double read(int streams), copy();

private:
    size_t part_; // bytes
    std::vector<char *> parts_;
};
// Kept after the first use.
far_memory_t &far_memory(int threads);

// The types in which a problem's operands can be multiplied without error.
enum class products_t { f32, bf16, int8 };
constexpr products_t all_products[] = {products_t::f32, products_t::bf16, products_t::int8};
const char *name_of(products_t p);

// The rate of the fastest instruction that multiplies and adds exactly; none: 0.
struct rate_t {
    double gflops = 0; // two operations for each product
    const char *instruction = "";
};

struct ceilings_t {
    double read_gbs = 0; // GB/s: the best of several numbers of streams per thread
    double copy_gbs = 0; // GB/s read plus written, with memcpy
    int streams = 1;     // that read_gbs was reached with
    std::array<rate_t, 3> rates;

    rate_t &rate(products_t p) { return rates[size_t(p)]; }
    const rate_t &rate(products_t p) const { return rates[size_t(p)]; }
};

// Measured once per number of threads, then stored.
const ceilings_t &ceilings(int threads);

} // namespace bench
