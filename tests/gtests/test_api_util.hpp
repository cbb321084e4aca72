// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the public API: refusals with their sentences, bf16, and a small problem.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mxdnn/mxdnn.hpp"

namespace api_test {

using mxdnn::memory;
using dt = memory::data_type;
using tag = memory::format_tag;
constexpr mxdnn_dim_t runtime = MXDNN_RUNTIME_DIM_VAL;

// The names of the API in `text` that stand between these words. (std::regex takes the compiler seconds.)
inline std::vector<std::string> names_between(
        const std::string &text, const std::string &before, const std::string &after) {
    std::vector<std::string> names;
    for (size_t at = 0; (at = text.find(before + "mxdnn_", at)) != text.npos;) {
        at += before.size();
        const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
        if (end != text.npos && text.compare(end, after.size(), after) == 0)
            names.push_back(text.substr(at, end - at));
    }
    return names;
}

// Sets a known last error, so that an old message cannot be taken for a new one.
inline void plant_error() { mxdnn_set_verbose("planted_by_the_test"); }

// A word of a sentence, by reference.
struct word_t {
    word_t(const char *w) : text(w) {}
    word_t(const std::string &w) : text(w.c_str()) {}
    const char *text;
};

// A failed call has the right status, and a sentence of its own with all of `words` in it.
inline testing::AssertionResult refused(
        mxdnn_status_t got, mxdnn_status_t want, std::initializer_list<word_t> words) {
    const std::string text = mxdnn_get_last_error();
    if (got != want)
        return testing::AssertionFailure() << "status " << mxdnn_status2str(got) << ", expected "
                                           << mxdnn_status2str(want) << "; last error: " << text;
    if (text.find("planted_by_the_test") != std::string::npos)
        return testing::AssertionFailure() << mxdnn_status2str(got) << " without a sentence";
    for (const word_t &w : words)
        if (text.find(w.text) == std::string::npos)
            return testing::AssertionFailure() << "the sentence lacks '" << w.text << "': " << text;
    return testing::AssertionSuccess();
}

// The work of the macros below, in functions: files with hundreds of calls compile in half the time.
inline void expect_refused(const char *file, int line, const char *call, mxdnn_status_t got,
        mxdnn_status_t want, std::initializer_list<word_t> words) {
    if (const testing::AssertionResult result = refused(got, want, words); !result)
        ADD_FAILURE_AT(file, line) << call << ": " << result.message();
}
inline void expect_ok(const char *file, int line, const char *call, mxdnn_status_t got) {
    if (got != mxdnn_success)
        ADD_FAILURE_AT(file, line) << call << ": " << mxdnn_status2str(got) << ", " << mxdnn_get_last_error();
}

#define EXPECT_REFUSED(want, call, ...)                                                                      \
    do {                                                                                                     \
        ::api_test::plant_error();                                                                           \
        const mxdnn_status_t got_ = (call);                                                                  \
        ::api_test::expect_refused(__FILE__, __LINE__, #call, got_, want, {__VA_ARGS__});                    \
    } while (0)

#define EXPECT_OK(call) ::api_test::expect_ok(__FILE__, __LINE__, #call, (call))

// oneTBB is not instrumented, so ThreadSanitizer reports races inside it. Tests that run under it use their
// own threads.
#if defined(__SANITIZE_THREAD__)
constexpr bool under_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool under_tsan = true;
#else
constexpr bool under_tsan = false;
#endif
#else
constexpr bool under_tsan = false;
#endif

// Restores the number of threads of the machine at the end of the scope.
struct restore_threads_t {
    ~restore_threads_t() { mxdnn::set_max_concurrency(0); }
};

// A pointer that no call may follow or change.
template <typename T>
T poison() {
    return reinterpret_cast<T>(uintptr_t(0xdead0));
}

inline uint16_t to_bf16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000) return uint16_t(u >> 16 | 0x40);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float from_bf16(uint16_t b) {
    const uint32_t u = uint32_t(b) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}

inline std::vector<uint16_t> random_bf16(size_t n, unsigned seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<uint16_t> v(n);
    for (auto &x : v) x = to_bf16(normal(rng));
    return v;
}

// Quantises a column-major [K, N] matrix of bf16 to MXFP4 along K by the rules of the format, with scales by
// rceil. Returns the decoded values.
inline std::vector<float> mxfp4_values(const std::vector<uint16_t> &nk, int K, int N) {
    constexpr float grid[] = {0.f, .5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f};
    std::vector<float> out(size_t(K) * N);
    for (int n = 0; n < N; n++)
        for (int b = 0; b < K; b += 32) {
            const int end = b + 32 < K ? b + 32 : K;
            float amax = 0;
            for (int k = b; k < end; k++) amax = std::fmax(amax, std::fabs(from_bf16(nk[size_t(n) * K + k])));
            int byte = 0;
            if (amax > 0) {
                int e;
                const float m = std::frexp(amax * (1.f / 6.f), &e); // in [0.5, 1)
                byte = e - 1 + (m > 0.5f) + 127;
            }
            for (int k = b; k < end; k++) {
                const float x = std::ldexp(from_bf16(nk[size_t(n) * K + k]), 127 - byte);
                int best = 0; // to nearest, ties to the even code
                for (int c = 1; c < 8; c++) {
                    const float d = std::fabs(std::fabs(x) - grid[c]),
                                have = std::fabs(std::fabs(x) - grid[best]);
                    if (d < have || (d == have && c % 2 == 0)) best = c;
                }
                out[size_t(n) * K + k] = std::copysign(std::ldexp(grid[best], byte - 127), x);
            }
        }
    return out;
}

inline mxdnn::primitive_attr mxfp4_weights_attr() {
    mxdnn::primitive_attr a;
    a.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    return a;
}
inline mxdnn::primitive_attr mxfp4_quantise_attr() {
    mxdnn::primitive_attr a;
    a.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    a.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
    return a;
}

// bf16 [M, K] x mxfp4 [K, N] -> bf16 [M, N], weights left to the descriptor.
inline mxdnn::mx_matmul::primitive_desc mxfp4_matmul(const mxdnn::engine &e, mxdnn_dim_t M, mxdnn_dim_t K,
        mxdnn_dim_t N, const mxdnn::primitive_attr &attr = mxfp4_weights_attr()) {
    return mxdnn::mx_matmul::primitive_desc(e, memory::desc({M, K}, dt::bf16, tag::ab),
            memory::desc({K, N}, dt::f4_e2m1, tag::any), memory::desc({M, N}, dt::bf16, tag::ab), attr);
}

// Weights for the matmul above, packed from column-major bf16.
inline memory pack_mxfp4(
        const mxdnn::engine &e, const memory::desc &packed, const std::vector<uint16_t> &nk) {
    const memory::dims dims = packed.get_dims();
    memory from(memory::desc(dims, dt::bf16, tag::ba), e, const_cast<uint16_t *>(nk.data()));
    memory to(packed, e);
    mxdnn::stream s(e);
    mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(e, from.get_desc(), e, packed, mxfp4_quantise_attr()))
            .execute(s, from, to);
    return to;
}

} // namespace api_test
