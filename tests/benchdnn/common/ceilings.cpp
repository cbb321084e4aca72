// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/ceilings.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <immintrin.h>
#include <map>
#include <thread>
#include <vector>

#include "benchdnn/common/buffer.hpp"
#include "cpu/x64/isa.hpp"

namespace bench {

namespace {

using mxdnn::impl::x64::cpu_isa_t;
using mxdnn::impl::x64::mayiuse;

std::atomic<uint64_t> sink{0};

// Milliseconds that body(thread) takes on `threads` threads that start together.
double time_of(int threads, const std::function<void(int)> &body) {
    if (threads == 1) {
        const double start = work_clock_ms(1);
        body(0);
        return work_clock_ms(1) - start;
    }
    std::atomic<int> ready{0};
    std::atomic<double> start{0};
    std::vector<std::thread> pool;
    pool.reserve(size_t(threads));
    std::vector<double> ends(size_t(threads), 0.);
    for (int t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            ready++;
            while (ready < threads) {
            }
            if (t == 0) start = work_clock_ms(threads);
            body(t);
            ends[size_t(t)] = work_clock_ms(threads);
        });
    for (auto &p : pool) p.join();
    return *std::max_element(ends.begin(), ends.end()) - start;
}

template <typename F>
double best_of(int rounds, F &&time_of_one) {
    double best = 1e30;
    for (int r = 0; r < rounds; r++) best = std::min(best, time_of_one());
    return best;
}

__attribute__((target("avx2"))) void read_streams(const char *p, size_t bytes, int streams) {
    const size_t part = bytes / size_t(streams) / 256 * 256;
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i < part; i += 128)
        for (int s = 0; s < streams; s++) {
            const __m256i *q = reinterpret_cast<const __m256i *>(p + size_t(s) * part + i);
            a = _mm256_xor_si256(a, _mm256_loadu_si256(q));
            b = _mm256_xor_si256(b, _mm256_loadu_si256(q + 1));
            c = _mm256_xor_si256(c, _mm256_loadu_si256(q + 2));
            d = _mm256_xor_si256(d, _mm256_loadu_si256(q + 3));
        }
    a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    sink += uint64_t(_mm256_extract_epi64(a, 0));
}

constexpr int dot_repeats = 1 << 20, tile_repeats = dot_repeats / 16;

// Twelve independent chains hide the latency of any of these instructions: written out, since a compiler
// may keep sums in memory beside their registers.
#define MXDNN_BENCH_OP(op, r, i) op " %%" r "12, %%" r "13, %%" r #i "\n\t"
#define MXDNN_BENCH_CHAINS(op, r)                                                                            \
    int64_t left = dot_repeats;                                                                              \
    __asm__ volatile("vpxor %%xmm12, %%xmm12, %%xmm12\n\t"                                                   \
                     "vpxor %%xmm13, %%xmm13, %%xmm13\n\t"                                                   \
                     "1:\n\t" MXDNN_BENCH_OP(op, r, 0) MXDNN_BENCH_OP(op, r, 1) MXDNN_BENCH_OP(op, r, 2)     \
                             MXDNN_BENCH_OP(op, r, 3) MXDNN_BENCH_OP(op, r, 4) MXDNN_BENCH_OP(op, r, 5)      \
                                     MXDNN_BENCH_OP(op, r, 6) MXDNN_BENCH_OP(op, r, 7) MXDNN_BENCH_OP(       \
                                             op, r, 8) MXDNN_BENCH_OP(op, r, 9) MXDNN_BENCH_OP(op, r, 10)    \
                                             MXDNN_BENCH_OP(op, r, 11) "dec %0\n\t"                          \
                                                                       "jnz 1b\n\t"                          \
                                                                       "vzeroupper"                          \
                     : "+r"(left)                                                                            \
                     :                                                                                       \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                     "xmm10", "xmm11", "xmm12", "xmm13")

__attribute__((target("avx2,fma"), noinline)) void fma_avx2(int) { MXDNN_BENCH_CHAINS("vfmadd231ps", "ymm"); }
__attribute__((target("avx512f"), noinline)) void fma_avx512(int) {
    MXDNN_BENCH_CHAINS("vfmadd231ps", "zmm");
}
__attribute__((target("avx512f,avx512bf16"), noinline)) void dot_bf16(int) {
    MXDNN_BENCH_CHAINS("vdpbf16ps", "zmm");
}
__attribute__((target("avx2"), noinline)) void pairs_avx2(int) { MXDNN_BENCH_CHAINS("vpmaddubsw", "ymm"); }
__attribute__((target("avx512f,avx512bw"), noinline)) void pairs_avx512(int) {
    MXDNN_BENCH_CHAINS("vpmaddubsw", "zmm");
}
__attribute__((target("avx512f,avx512vnni"), noinline)) void dot_int8(int) {
    MXDNN_BENCH_CHAINS("vpdpbusd", "zmm");
}

// All tiles with 16 rows of 64 bytes of zeros.
__attribute__((target("avx512f,amx-tile"))) inline void tiles_of_zeros() {
    alignas(64) uint8_t config[64] = {};
    config[0] = 1;
    for (int t = 0; t < 8; t++) {
        config[16 + 2 * t] = 64;
        config[48 + t] = 16;
    }
    __asm__ volatile("" ::"m"(config) : "memory");
    _tile_loadconfig(config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
}
#define MXDNN_BENCH_TILES(op)                                                                                \
    tiles_of_zeros();                                                                                        \
    for (int i = 0; i < tile_repeats; i++) {                                                                 \
        op(0, 4, 6);                                                                                         \
        op(1, 4, 7);                                                                                         \
        op(2, 5, 6);                                                                                         \
        op(3, 5, 7);                                                                                         \
    }                                                                                                        \
    _tile_release()
__attribute__((target("avx512f,amx-tile,amx-bf16"), noinline)) void tile_bf16(int) {
    MXDNN_BENCH_TILES(_tile_dpbf16ps);
}
__attribute__((target("avx512f,amx-tile,amx-int8"), noinline)) void tile_int8(int) {
    MXDNN_BENCH_TILES(_tile_dpbssd);
}

void measure_bandwidth(ceilings_t &c, int threads) {
    far_memory_t memory(threads);
    for (int streams : {1, 2, 4, 6, 8}) {
        const double gbs = memory.bytes() / best_of(4, [&] { return memory.read(streams); }) * 1e-6;
        if (gbs > c.read_gbs) {
            c.read_gbs = gbs;
            c.streams = streams;
        }
    }
    c.copy_gbs = memory.bytes() / best_of(4, [&] { return memory.copy(); }) * 1e-6;
}

// The instructions of each ISA, slower ones first. A later one replaces those before it.
struct instruction_t {
    cpu_isa_t isa;
    products_t products;
    const char *name;
    void (*body)(int);
    double flops; // of a call of body
};
constexpr double vectors = 12. * dot_repeats, tiles = 4. * tile_repeats * 16 * 16 * 2;
constexpr instruction_t instructions[] = {
        {cpu_isa_t::avx2, products_t::f32, "vfmadd231ps ymm", fma_avx2, vectors * 16},
        {cpu_isa_t::avx2, products_t::int8, "vpmaddubsw ymm", pairs_avx2, vectors * 64},
        {cpu_isa_t::avx512_core, products_t::f32, "vfmadd231ps zmm", fma_avx512, vectors * 32},
        {cpu_isa_t::avx512_core, products_t::int8, "vpmaddubsw zmm", pairs_avx512, vectors * 128},
        {cpu_isa_t::avx512_core_bf16, products_t::bf16, "vdpbf16ps zmm", dot_bf16, vectors * 64},
        {cpu_isa_t::avx512_core_bf16, products_t::int8, "vpdpbusd zmm", dot_int8, vectors * 128},
        {cpu_isa_t::avx512_core_amx, products_t::bf16, "tdpbf16ps", tile_bf16, tiles * 32},
        {cpu_isa_t::avx512_core_amx, products_t::int8, "tdpbssd", tile_int8, tiles * 64},
};

void measure_arithmetic(ceilings_t &c, int threads) {
    for (const instruction_t &i : instructions) {
        if (!mayiuse(i.isa)) continue;
        const double ms = best_of(5, [&] { return time_of(threads, i.body); });
        c.rate(i.products) = {i.flops * threads / ms * 1e-6, i.name};
    }
    // f32 arithmetic multiplies bf16 exactly, too, and may be faster.
    if (!(c.rate(products_t::bf16).gflops > c.rate(products_t::f32).gflops))
        c.rate(products_t::bf16) = c.rate(products_t::f32);
}

} // namespace

const char *name_of(products_t p) {
    return p == products_t::f32 ? "f32" : p == products_t::bf16 ? "bf16" : "int8";
}

double work_clock_ms(int threads) {
    timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

// Larger than every cache, whatever the machine reports as its last level.
far_memory_t::far_memory_t(int threads) : part_(size_t(512) << 20 >> (threads > 4 ? 1 : 0)) {
    for (int t = 0; t < threads; t++) {
        char *p = static_cast<char *>(std::aligned_alloc(4096, part_));
        if (!p) break;
        prefer_large_pages(p, part_);
        std::memset(p, t + 1, part_);
        parts_.push_back(p);
    }
}
far_memory_t::~far_memory_t() {
    for (char *p : parts_) std::free(p);
}
double far_memory_t::read(int streams) {
    return time_of(int(parts_.size()), [&](int t) { read_streams(parts_[size_t(t)], part_, streams); });
}
double far_memory_t::copy() {
    return time_of(int(parts_.size()), [&](int t) {
        char *p = parts_[size_t(t)];
        std::memcpy(p + part_ / 2, p, part_ / 2);
    });
}

far_memory_t &far_memory(int threads) {
    static std::map<int, far_memory_t> known;
    return known.try_emplace(threads, threads).first->second;
}

const ceilings_t &ceilings(int threads) {
    static std::map<int, ceilings_t> known;
    const auto it = known.find(threads);
    if (it != known.end()) return it->second;
    ceilings_t &c = known[threads];
    measure_bandwidth(c, threads);
    measure_arithmetic(c, threads);
    return c;
}

} // namespace bench
