// SPDX-License-Identifier: Apache-2.0
// int4 weights with every type of scales and zeros, on every implementation that keeps them exact. Each
// weight by itself: a row of the source that has an infinity in one place takes it from there with the
// weight's sign, one that has 1 there takes the weight. And random sums against double arithmetic.
#include <array>
#include <cmath>

#include "cuda_int4_weights.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;

namespace {

using kind_t = int4_weights_t;
constexpr kind_t kinds[] = {
        {dt::s4, dt::bf16, dt::undef},
        {dt::u4, dt::bf16, dt::u8},
        {dt::s4, dt::f16, dt::undef},
        {dt::u4, dt::f16, dt::u8},
        {dt::s4, dt::f32, dt::undef},
        {dt::u4, dt::f32, dt::u8},
        {dt::u4, dt::f16, dt::undef},
        {dt::u4, dt::f16, dt::f16},
        {dt::u4, dt::bf16, dt::bf16},
        {dt::u4, dt::f16, dt::bf16},
        {dt::u4, dt::bf16, dt::f32},
        {dt::u4, dt::f32, dt::bf16},
};

mxdnn::mx_matmul::primitive_desc make_pd(
        const kind_t &kind, memory::dim M, memory::dim K, memory::dim N, dt src) {
    mxdnn::primitive_attr attr;
    kind.set(attr);
    return {gpu(), memory::desc({M, K}, src, tag::ab), memory::desc({K, N}, kind.wei, tag::any),
            memory::desc({M, N}, dt::f32, tag::ab), attr, true};
}

// The kernels for rows, which take int4 weights without their scales, and rows of f16 as they are.
bool multiplies_rows(const std::string &impl) { return impl == "cuda:sm_90" || impl == "rows:sm_80"; }

// How far a weight may be from itself, relative to what it is the sum of: cuda:sm_90 rounds those of many
// rows to the type of the source.
double rounding_of(const std::string &impl, const kind_t &kind, memory::dim M, dt src) {
    if (impl != "cuda:sm_90" || M <= 16 || src == dt::f32) return 0.;
    if (kind.scale == dt::f32 || (kind.zeros() && kind.zero != kind.scale)) return 0.;
    if (src == dt::f16) return kind.scale == dt::f16 ? std::ldexp(1., -11) : 0.;
    if (kind.scale == dt::bf16) return std::ldexp(1., -8);
    return kind.zeros() ? 0. : std::ldexp(1., -8) + std::ldexp(1., -15);
}

// Weights as the rule has them, and the size of what they may be the sum of.
struct weights_t {
    bytes_t packed;
    std::vector<float> value; // [K, N]
    std::vector<double> magnitude;
    std::vector<char> apart; // whether an infinity may meet code and zero apart, and become NaN
};

template <typename F>
weights_t make_weights(const kind_t &kind, const memory::desc &wei, int64_t K, int64_t N, F &&at) {
    weights_t w;
    w.packed.assign(wei.get_size(), 0);
    const packed_view_t view{layout_of(*wei.get()), shape_of(*wei.get()), w.packed.data()};
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            const std::array<uint32_t, 3> bits = at(k, n); // code, scale, zero
            view.set_code(k, n, bits[0]);
            if (k % kind.block == 0) {
                view.set_scale(k, n, bits[1]);
                if (kind.zero != dt::undef) view.set_zero_point(k, n, bits[2]);
            }
            const float scale = decode_value(mxdnn_data_type_t(kind.scale), view.scale(k, n)),
                        code = decode_value(mxdnn_data_type_t(kind.wei), bits[0]);
            if (kind.zeros()) {
                const float zero = decode_value(mxdnn_data_type_t(kind.zero), view.zero_point(k, n)),
                            product = (code - 8) * scale;
                w.value.push_back(product + zero);
                w.magnitude.push_back(double(std::fabs(product)) + std::fabs(zero));
                w.apart.push_back(!(product * zero > 0));
            } else {
                const float zero = kind.zero_points() ? float(view.zero_point(k, n)) : 0.f;
                w.value.push_back((code - zero) * scale);
                w.magnitude.push_back((double(std::fabs(code)) + zero) * std::fabs(scale));
                w.apart.push_back(false);
            }
        }
    return w;
}

// ---- each weight by itself ----

constexpr memory::dim K = 256, N = 1280;
constexpr int sizes = 8; // of scales, block after block of K

// The exponents of scales: subnormal ones, the least and the largest normal ones, and, of eight bits, those
// about the least that meets its codes early, up to the largest with which weights are finite.
uint32_t scale_of(const kind_t &kind, int64_t k, int64_t n) {
    constexpr uint32_t wide[sizes] = {0, 1, 65, 127, 193, 241, 242, 246},
                       narrow[sizes] = {0, 1, 2, 8, 15, 16, 29, 30};
    const int64_t size = k / 32 % sizes;
    const uint32_t mantissa = uint32_t(n / 10), sign = uint32_t(size + n) % 2; // every one of seven bits
    switch (kind.scale) {
    case dt::bf16: return wide[size] << 7 | mantissa | sign << 15;
    case dt::f16: return narrow[size] << 10 | mantissa << 3 | uint32_t(n % 8) | sign << 15;
    default: return wide[size] << 23 | mantissa << 16 | uint32_t(n * 40503 % 65536) | sign << 31;
    }
}
// Differences of codes and zero points reach from -127 to 15, and, in some columns, beyond.
uint32_t zero_of(const kind_t &kind, int64_t n) {
    constexpr uint32_t points[] = {15, 31, 47, 63, 79, 95, 111, 127, 143, 255};
    constexpr float zeros[] = {0.f, .375f, -3.f, 1e-6f, -.01f, 100.f, -3e4f, 7.75f, -1.f, 6e-8f};
    return kind.zero == dt::undef ? 0
           : kind.zero_points()   ? points[n % 10]
                                  : encode_value(mxdnn_data_type_t(kind.zero), zeros[n % 10]);
}

void expect_weights(
        const mxdnn::mx_matmul::primitive_desc &pd, const kind_t &kind, memory::dim M, dt src_type) {
    const std::string what = std::string(pd.impl_info_str()) + " " + kind.text() + " M " + std::to_string(M)
                             + " source " + data_type_name(mxdnn_data_type_t(src_type));
    const weights_t w = make_weights(kind, pd.weights_desc(), K, N, [&](int64_t k, int64_t n) {
        return std::array<uint32_t, 3>{uint32_t(k + n / 3) % 16, scale_of(kind, k, n), zero_of(kind, n)};
    });
    const auto place = [](int64_t m) { return (m * 37 + 5) % K; };
    for (float x : {1.f, INFINITY, -INFINITY, NAN}) {
        const auto special = uint16_t(encode_value(mxdnn_data_type_t(src_type), x));
        bytes_t src(size_t(M * K) * 2, 0);
        for (int64_t m = 0; m < M; m++) std::memcpy(&src[size_t(m * K + place(m)) * 2], &special, 2);
        const bytes_t out =
                run(pd, gpu(), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w.packed}}).at(MXDNN_ARG_DST);
        for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < N; n++) {
                float got;
                std::memcpy(&got, &out[size_t(m * N + n) * 4], 4);
                const size_t at = size_t(place(m) * N + n);
                const float want = x * w.value[at];
                if (std::isinf(x) && w.apart[at] && std::isnan(got)) continue;
                // A value of f16 is the sum of two where scales are met early, and these products add up in
                // f32.
                const double rounding = rounding_of(pd.impl_info_str(), kind, M, src_type);
                const bool sums =
                        (src_type == dt::f16 || rounding > 0) && std::isfinite(want) && std::isfinite(got);
                const double off = sums ? (std::ldexp(1., -22) + rounding) * std::fabs(double(want)) : 0.;
                ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                             : got == want || (sums && std::fabs(double(got) - want) <= off))
                        << what << ": " << x << " times " << w.value[at] << " is " << got << " in row " << m
                        << " column " << n << ", scale " << std::hex << scale_of(kind, place(m), n)
                        << " zero " << zero_of(kind, n);
            }
    }
}

TEST(cuda_int4, infinities_take_the_sign_of_every_weight) {
    int found = 0;
    for (const kind_t &kind : kinds)
        for (memory::dim M : {1, 2, 16, 17, 70})
            for (dt src : {dt::bf16, dt::f16}) {
                auto pd = make_pd(kind, M, K, N, src);
                for (bool more = bool(pd); more; more = pd.next_impl()) {
                    const std::string name = pd.impl_info_str();
                    if (name.find("cublaslt") != std::string::npos) continue; // weights are rounded there
                    if (src == dt::f16 && !multiplies_rows(name)) continue;
                    found++;
                    expect_weights(pd, kind, M, src);
                    if (HasFatalFailure()) return;
                }
            }
    if (!found) GTEST_SKIP() << "no device that has a kernel for int4";
}

// ---- infinite weights where K ends ----

// What lies beyond K in a tile is multiplied with zeros of the source, and has to be 0 for that.
TEST(cuda_int4, infinite_weights_of_the_last_rows) {
    int found = 0;
    for (const kind_t &kind : kinds)
        for (memory::dim M : {1, 2, 16, 17})
            for (memory::dim rows : {8, 33, 40, 136, 296})
                for (dt src_type : {dt::bf16, dt::f16}) {
                    auto pd = make_pd(kind, M, rows, 64, src_type);
                    const memory::dim last = (rows - 1) / kind.block;
                    const weights_t w =
                            make_weights(kind, pd.weights_desc(), rows, 64, [&](int64_t k, int64_t n) {
                                const float scale = k / kind.block < last ? 1.f
                                                    : n % 2               ? INFINITY
                                                                          : -INFINITY;
                                return std::array<uint32_t, 3>{uint32_t(n) % 16,
                                        encode_value(mxdnn_data_type_t(kind.scale), scale),
                                        kind.zero == dt::undef ? 0
                                        : kind.zero_points()
                                                ? 3
                                                : encode_value(mxdnn_data_type_t(kind.zero), .5f)};
                            });
                    bytes_t src(size_t(M * rows) * 2);
                    const auto one = uint16_t(encode_value(mxdnn_data_type_t(src_type), 1.f));
                    for (size_t i = 0; i < src.size(); i += 2) std::memcpy(&src[i], &one, 2);
                    for (bool more = bool(pd); more; more = pd.next_impl()) {
                        const std::string name = pd.impl_info_str();
                        if (!multiplies_rows(name)) continue;
                        found++;
                        const bytes_t out =
                                run(pd, gpu(), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w.packed}})
                                        .at(MXDNN_ARG_DST);
                        for (int64_t m = 0; m < M; m++)
                            for (int64_t n = 0; n < 64; n++) {
                                float got;
                                std::memcpy(&got, &out[size_t(m * 64 + n) * 4], 4);
                                const float want = w.value[size_t((rows - 1) * 64 + n)]; // Inf or NaN
                                ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
                                        << name << " " << kind.text() << " M " << M << " K " << rows << ": "
                                        << got << ", not " << want << " in row " << m << " column " << n;
                            }
                    }
                }
    if (!found) GTEST_SKIP() << "no device that has a kernel for int4";
}

// ---- random sums ----

struct size_t3 {
    memory::dim M, K, N;
};

// Usual scales and zeros, and, in some blocks of some columns, any bits. step: every so many rows are
// compared.
void expect_sums(const mxdnn::mx_matmul::primitive_desc &pd, const kind_t &kind, const size_t3 &s,
        dt src_type, bool any_bits, unsigned seed, memory::dim step = 1) {
    std::mt19937 rng(seed);
    const auto value = [&](dt type, float v) {
        const uint32_t all = type == dt::f32 ? ~0u : type == dt::u8 ? 0xFFu : 0xFFFFu;
        if (any_bits && rng() % 24 == 0) return uint32_t(rng()) & all;
        return type == dt::u8 ? uint32_t(rng()) % 16 : encode_value(mxdnn_data_type_t(type), v);
    };
    const auto random = [&] { return (float(rng() % 4001) - 2000.f) / 1024.f; };
    const weights_t w = make_weights(kind, pd.weights_desc(), s.K, s.N, [&](int64_t, int64_t) {
        const uint32_t code = rng() % 16, scale = value(kind.scale, random());
        return std::array<uint32_t, 3>{code, scale, kind.zero == dt::undef ? 0 : value(kind.zero, random())};
    });
    const size_t width = src_type == dt::f32 ? 4 : 2;
    bytes_t src(size_t(s.M * s.K) * width);
    std::vector<double> x;
    for (size_t i = 0; i < size_t(s.M * s.K); i++) {
        const uint32_t bits = encode_value(mxdnn_data_type_t(src_type), random());
        std::memcpy(&src[i * width], &bits, width);
        x.push_back(decode_value(mxdnn_data_type_t(src_type), bits));
    }
    const double rounding = rounding_of(pd.impl_info_str(), kind, s.M, src_type);
    const std::string what = std::string(pd.impl_info_str()) + " " + kind.text() + " M " + std::to_string(s.M)
                             + " K " + std::to_string(s.K) + " N " + std::to_string(s.N);
    const bytes_t out =
            run(pd, gpu(), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w.packed}}).at(MXDNN_ARG_DST);
    for (int64_t m = 0; m < s.M; m += step)
        for (int64_t n = 0; n < s.N; n++) {
            double want = 0, magnitude = 0; // the second: of weights that are finite
            for (int64_t k = 0; k < s.K; k++) {
                const size_t at = size_t(k * s.N + n);
                want += x[size_t(m * s.K + k)] * w.value[at];
                if (std::isfinite(w.value[at]))
                    magnitude += std::fabs(x[size_t(m * s.K + k)] * w.magnitude[at]);
            }
            float got;
            std::memcpy(&got, &out[size_t(m * s.N + n) * 4], 4);
            const auto at = [&] {
                return what + ": row " + std::to_string(m) + " column " + std::to_string(n) + " is "
                       + std::to_string(got) + ", not " + std::to_string(want);
            };
            // Sums that may be beyond f32 before the last addition.
            if (magnitude > 3.4e38 && !std::isfinite(got)) continue;
            if (!std::isfinite(want)) {
                ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << at();
            } else {
                // Up to two units of 2^-24 for each product and addition, and a few of scales.
                const double bound = double(s.K + 20) * std::ldexp(magnitude, -23)
                                     + (rounding > 0 ? rounding * magnitude : 0.)
                                     + double(s.K + 1) * std::ldexp(1., -149)
                                     + std::ldexp(std::fabs(want), -24);
                ASSERT_LE(std::fabs(got - want), bound) << at();
            }
        }
}

// So many rows and columns that gemm has its widest blocks, and two CTAs share the rows.
TEST(cuda_int4, sums_of_wide_blocks) {
    constexpr size_t3 size{4096, 200, 1000};
    int found = 0;
    for (const kind_t &of : kinds)
        for (memory::dim block : {32, 128})
            for (dt src : {dt::bf16, dt::f16}) {
                kind_t kind = of;
                kind.block = block;
                auto pd = make_pd(kind, size.M, size.K, size.N, src);
                if (rounding_of("cuda:sm_90", kind, size.M, src) == 0. || !go_to(pd, "cuda:sm_90")) continue;
                for (bool any_bits : {false, true}) expect_sums(pd, kind, size, src, any_bits, 5, 67);
                if (HasFatalFailure()) return;
                found++;
            }
    if (!found) GTEST_SKIP() << "no device that has a kernel for int4";
}

void expect_all_sums(const kind_t &kind, const size_t3 &s, dt src_type, int &found) {
    auto pd = make_pd(kind, s.M, s.K, s.N, src_type);
    for (bool more = bool(pd); more; more = pd.next_impl()) {
        const std::string name = pd.impl_info_str();
        if (!multiplies_rows(name)) continue;
        for (bool any_bits : {false, true}) {
            expect_sums(pd, kind, s, src_type, any_bits, unsigned(s.K + s.M));
            if (testing::Test::HasFatalFailure()) return;
        }
        found++;
    }
}

TEST(cuda_int4, sums_are_within_their_bounds) {
    constexpr size_t3 shapes[] = {{1, 8, 70}, {1, 1304, 130}, {1, 4648, 8}, {3, 296, 70}, {7, 33, 66},
            {16, 584, 130}, {40, 328, 65}, {130, 136, 129}};
    int found = 0;
    for (const kind_t &of : kinds)
        for (memory::dim block : {32, 64, 128, 256}) {
            kind_t kind = of;
            kind.block = block;
            for (const size_t3 &s : shapes) {
                expect_all_sums(kind, s, s.M % 3 == 1 ? dt::bf16 : dt::f16, found);
                if (HasFatalFailure()) return;
            }
            for (const memory::dim M : {2, 40}) {
                expect_all_sums(kind, {M, 200, 66}, dt::f32, found);
                if (HasFatalFailure()) return;
            }
        }
    if (!found) GTEST_SKIP() << "no device that has a kernel for int4";
}

} // namespace
