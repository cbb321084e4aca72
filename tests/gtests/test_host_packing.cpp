// SPDX-License-Identifier: Apache-2.0
// mx_reorder on the host to and from the layouts of CUDA targets. No device is needed. Every implementation
// gives the bytes of the reference, padding included.
#include <cstdlib>
#include <random>

#include "reorder_cases.hpp"

using namespace reorder_test;

namespace {

constexpr const char *targets[] = {"cuda:sm_80", "cuda:sm_90"};
// Sizes near panels of 64 columns, tiles of 64 to 256 rows and blocks of 16 to 256.
constexpr dim whole[] = {64, 128, 192, 256, 512},
              sizes[] = {1, 2, 15, 16, 17, 33, 63, 64, 65, 96, 100, 127, 128, 129, 190, 256, 257, 320};

unsigned seed_of_run() {
    const char *given = std::getenv("MXDNN_TEST_SEED");
    static const unsigned seed = given ? unsigned(std::atoll(given)) : std::random_device()();
    return seed;
}

template <typename T, size_t n>
T pick(const T (&from)[n], std::mt19937 &rng) {
    return from[rng() % n];
}

void vary(side_t &s, const format_t &f, std::mt19937 &rng) {
    s.padding = rng() % 3 ? 0 : dim(rng() % 7);
    if (s.form == form_t::high) return;
    s.format = &f;
    s.for_fp8 = s.form == form_t::packed && s.target && f.elem == dt::f4_e2m1 && rng() % 3 == 0;
    if (s.form == form_t::packed) return;
    s.scales_transposed = rng() % 3 == 0;
    s.swizzled = bytes_of(f.scale) == 1 && rng() % 3 == 0;
    s.dense = f.bits == 6 && rng() % 2;
}

class HostPacking : public testing::TestWithParam<format_t> {
protected:
    const format_t &f = GetParam();
    std::mt19937 rng{seed_of_run() ^ unsigned(std::hash<std::string>()(f.name))};

    // Sides of these forms, in every order of both, or, large ones, in any; packed ones for a target.
    void check(form_t src, form_t dst, const char *src_target, const char *dst_target, int times,
            bool large = false) {
        SCOPED_TRACE("MXDNN_TEST_SEED=" + std::to_string(seed_of_run()));
        constexpr dt types[] = {dt::bf16, dt::f32, dt::f16};
        const int only = int(rng() % 4);
        for (int order = 0; order < 4; order++)
            for (int i = 0; i < times; i++) {
                if (large && order != only) continue;
                problem_t p;
                p.seed = unsigned(rng());
                p.usual = rng() % 2;
                p.src.form = src;
                p.dst.form = dst;
                p.src.target = src_target;
                p.dst.target = dst_target;
                p.src.type = p.dst.type = types[(i + order) % 3];
                p.src.last_contiguous = order & 1;
                p.dst.last_contiguous = order & 2;
                vary(p.src, f, rng);
                vary(p.dst, f, rng);
                p.dims = {pick(sizes, rng), pick(sizes, rng)};
                if (i % 2) p.dims = {pick(whole, rng), pick(whole, rng)};
                if (large) p.dims = {dim(1050 + rng() % 80), dim(640 + rng() % 70)};
                if (p.dims[0] == 1 && p.dims[1] == 1) continue; // no order to speak of
                if (!large && rng() % 3 == 0) p.dims.insert(p.dims.begin(), 3);
                p.rounding = static_cast<mxdnn::scale_rounding>(rng() % (f.elem == dt::s8 ? 2 : 4));
                reorder_test_t(p).check();
                if (HasFailure()) return;
            }
    }
    const char *target() { return pick(targets, rng); }
};

} // namespace

TEST_P(HostPacking, Quantise) {
    if (f.computable()) check(form_t::high, form_t::packed, target(), target(), 6);
}
TEST_P(HostPacking, Dequantise) { check(form_t::packed, form_t::high, target(), target(), 6); }
TEST_P(HostPacking, Pack) { check(form_t::plain, form_t::packed, target(), target(), 4); }
TEST_P(HostPacking, Unpack) { check(form_t::packed, form_t::plain, target(), target(), 4); }
// The plain side is on this machine's engine, whether or not the reorder runs there.
TEST_P(HostPacking, OnTheCpuEngine) {
    if (f.computable()) check(form_t::high, form_t::packed, nullptr, target(), 1);
    check(form_t::packed, form_t::high, target(), nullptr, 1);
    check(form_t::plain, form_t::packed, nullptr, target(), 1);
    check(form_t::packed, form_t::plain, target(), nullptr, 1);
}
// From one family of targets to another, and within one.
TEST_P(HostPacking, Repack) {
    check(form_t::packed, form_t::packed, nullptr, target(), 2);
    check(form_t::packed, form_t::packed, target(), nullptr, 2);
    check(form_t::packed, form_t::packed, target(), target(), 1);
}
// Larger than the cache of one thread, on one thread, so that stores bypass the cache.
TEST_P(HostPacking, Large) {
    const int threads = mxdnn::get_max_concurrency();
    mxdnn::set_max_concurrency(1);
    if (f.computable()) check(form_t::high, form_t::packed, target(), target(), 1, true);
    check(form_t::packed, form_t::high, target(), target(), 1, true);
    check(form_t::plain, form_t::packed, target(), target(), 1, true);
    check(form_t::packed, form_t::plain, target(), target(), 1, true);
    mxdnn::set_max_concurrency(threads);
}

INSTANTIATE_TEST_SUITE_P(Formats, HostPacking, testing::ValuesIn(formats),
        [](const testing::TestParamInfo<format_t> &i) { return std::string(i.param.name); });
