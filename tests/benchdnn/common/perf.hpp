// SPDX-License-Identifier: Apache-2.0
// Timing a problem, alone or interleaved with a peer, and the line that reports it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bench {

struct ceilings_t;
enum class products_t;

double now_ms(); // of a clock that never goes back

struct times_t {
    std::vector<double> ms;
    double min() const, median() const, mean() const, max() const;
};

// Alternates the two (peer may be empty), which use so many threads, until each has been timed for about
// `budget_ms`, at least 5 and at most 20000 times. The first calls of each warm up and are not counted. What
// one thread does is measured in CPU time, so that other work on the machine interrupts nothing.
void time_interleaved(const std::function<void()> &mine, const std::function<void()> &peer, int threads,
        double budget_ms, times_t &mine_times, times_t &peer_times);

// Alternates f, which moves `bytes`, with copies of memory beyond every cache by so many threads, for about
// `budget_ms` each and at least 5 times. `copy_times`: of as many bytes. What f uses is in no cache then.
void time_beside_copies(const std::function<void()> &f, double bytes, int threads, double budget_ms,
        times_t &times, times_t &copy_times);

struct perf_t {
    std::string engine, impl, problem, peer;
    double flops = 0, bytes = 0; // of one execution: operations, and bytes that must move
    products_t products{};       // whose rate limits the operations
    bool copies = false;         // bytes are held against the copy bandwidth, not the read bandwidth
    times_t copy_times;          // of as many bytes, in turn with the executions; or none
    int threads = 1;
    const ceilings_t *limits = nullptr; // of a device; null: those of this machine with so many threads
    times_t times, peer_times;
    times_t create_times, cached_times; // of making the primitive: with no cache, and when the cache has it
};

// Times create() with and without the primitive cache, where the template asks for it.
void time_creation(const std::function<void()> &create, perf_t &r);

// The time that the limits allow: the larger one of those of its bytes and its operations.
double least_ms(const perf_t &p);

// The template with its %fields% filled in. Of a field's value there are the median (no sign),
// minimum (-), mean (0) and maximum (+) time.
std::string perf_line(const std::string &text, const perf_t &p);

// The header of such lines: "# ", and the template with the names of its fields.
std::string perf_header(const std::string &text);

} // namespace bench
