// SPDX-License-Identifier: Apache-2.0
// cuda:sm_90 against double arithmetic over the packed bytes: every format, code and scale byte, odd sizes,
// few rows and many, bias and gate, with a bound that follows from the arithmetic.
#include <array>
#include <cmath>

#include "cuda_call.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;

namespace {

using mode_t = mxdnn::quantization_mode;

struct format_t {
    const char *name;
    dt wei, scale;
    memory::dim block;
    bool zeros = false, global = false;
};
constexpr format_t mxfp4 = {"mxfp4", dt::f4_e2m1, dt::e8m0, 32};
constexpr format_t formats[] = {
        mxfp4,
        {"nvfp4", dt::f4_e2m1, dt::f8_e4m3, 16},
        {"nvfp4 with a global scale", dt::f4_e2m1, dt::f8_e4m3, 16, false, true},
        {"mxfp6 e2m3", dt::f6_e2m3, dt::e8m0, 32},
        {"mxfp6 e3m2", dt::f6_e3m2, dt::e8m0, 32},
        {"mxfp8 e4m3", dt::f8_e4m3, dt::e8m0, 32},
        {"mxfp8 e5m2", dt::f8_e5m2, dt::e8m0, 32},
        {"mxint8", dt::s8, dt::e8m0, 32},
        {"s4 by 32", dt::s4, dt::bf16, 32},
        {"s4 by 128", dt::s4, dt::bf16, 128},
        {"u4 by 32", dt::u4, dt::bf16, 32, true},
        {"u4 by 64", dt::u4, dt::bf16, 64, true},
        {"u4 by 256", dt::u4, dt::bf16, 256, true},
};

struct case_t {
    memory::dim M, N, K;
    dt dst;
    bool bias, gated;
    format_t format = mxfp4;
};

mxdnn::mx_matmul::primitive_desc make_pd(const mxdnn::engine &e, const case_t &c) {
    mxdnn::primitive_attr attr;
    const memory::dims block = {c.format.block, 1};
    attr.set_scales(MXDNN_ARG_WEIGHTS, 3, block, c.format.scale, false, mode_t::static_sazp);
    if (c.format.zeros) attr.set_zero_points(MXDNN_ARG_WEIGHTS, 3, block, dt::u8);
    if (c.format.global) attr.set_global_scale(MXDNN_ARG_WEIGHTS, mode_t::static_sazp);
    if (c.gated) {
        mxdnn::post_ops ops;
        ops.append_gated(mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
        attr.set_post_ops(ops);
    }
    const memory::desc src({c.M, c.K}, dt::bf16, tag::ab), wei({c.K, c.N}, c.format.wei, tag::any);
    const memory::desc dst({c.M, c.gated ? c.N / 2 : c.N}, c.dst, tag::ab), bias({1, c.N}, dt::f32, tag::ab);
    return c.bias ? mxdnn::mx_matmul::primitive_desc(e, src, wei, bias, dst, attr, true)
                  : mxdnn::mx_matmul::primitive_desc(e, src, wei, dst, attr, true);
}

bool on_hopper(const case_t &c) {
    const auto pd = make_pd(gpu(), c);
    return pd && std::string(pd.impl_info_str()) == "cuda:sm_90";
}

struct result_t {
    values_t in;
    bytes_t weights; // packed
    packed_view_t view;
    std::vector<double> got;    // [M, columns]
    std::vector<float> decoded; // [N, K], before any global scale
};

// A code of any value but the infinities and NaN of FP8.
uint32_t any_number(dt type, std::mt19937 &rng) {
    const uint32_t code = rng() & ((1u << data_type_info(mxdnn_data_type_t(type))->bits) - 1);
    return std::isfinite(decode_value(mxdnn_data_type_t(type), code)) ? code : 1;
}

constexpr float global_scale = 0.37f;

// Random inputs, and packed weights that are still to be set, through their view.
result_t without_weights(const mxdnn::mx_matmul::primitive_desc &pd, std::mt19937 &rng) {
    result_t r{random_inputs(pd, rng), {}, {}, {}, {}};
    const memory::desc wei = pd.weights_desc();
    r.weights.assign(wei.get_size(), 0);
    r.view = {layout_of(*wei.get()), shape_of(*wei.get()), r.weights.data()};
    return r;
}

// A weight in f32, where a large code under a large scale is an infinity.
float decoded_weight(const format_t &f, const packed_view_t &view, int64_t k, int64_t n) {
    float code = decode_value(mxdnn_data_type_t(f.wei), view.code(k, n));
    if (f.zeros) code -= float(view.zero_point(k, n));
    return code * decode_value(mxdnn_data_type_t(f.scale), view.scale(k, n));
}

// Runs a case on weights whose scales' codes come from `scale`; the source is small numbers, exact in bf16.
result_t run_case(const case_t &c, unsigned seed, uint32_t (*scale)(std::mt19937 &, int64_t, int64_t)) {
    std::mt19937 rng(seed);
    const auto pd = make_pd(gpu(), c);
    result_t r = without_weights(pd, rng);
    for (int64_t k = 0; k < c.K; k++)
        for (int64_t n = 0; n < c.N; n++) {
            r.view.set_code(k, n, any_number(c.format.wei, rng));
            if (k % c.format.block) continue;
            r.view.set_scale(k, n, scale(rng, k, n));
            if (c.format.zeros) r.view.set_zero_point(k, n, rng() % 8 ? rng() % 16 : rng() % 256);
        }
    r.decoded.resize(size_t(c.N * c.K));
    for (int64_t n = 0; n < c.N; n++)
        for (int64_t k = 0; k < c.K; k++)
            r.decoded[size_t(n * c.K + k)] = decoded_weight(c.format, r.view, k, n);
    if (c.format.global) std::memcpy(r.weights.data(), &global_scale, sizeof(global_scale)); // the prefix
    r.in[MXDNN_ARG_WEIGHTS] = r.weights;
    const bytes_t out = run(pd, gpu(), r.in).at(MXDNN_ARG_DST);
    const size_t width = c.dst == dt::f32 ? 4 : 2;
    for (size_t i = 0; i + width <= out.size(); i += width) {
        uint32_t code = 0;
        std::memcpy(&code, &out[i], width);
        r.got.push_back(decode_value(mxdnn_data_type_t(c.dst), code));
    }
    return r;
}

// Value and rounding bound of column n of a row, before the gate. The tensor cores add a step's products with
// at least f32's bits and round or cut each addition: at most two units of 2^-24 for every product, of all
// magnitudes.
struct sum_t {
    double value, bound, magnitude;
};
sum_t exact_sum(const case_t &c, const result_t &r, int64_t m, int64_t n) {
    sum_t s{0, 0, 0};
    const bytes_t &src = r.in.at(MXDNN_ARG_SRC);
    for (int64_t k = 0; k < c.K; k++) {
        uint16_t x;
        std::memcpy(&x, &src[size_t(m * c.K + k) * 2], 2);
        const double product = double(decode_value(mxdnn_bf16, x)) * r.decoded[size_t(n * c.K + k)];
        s.value += product;
        s.magnitude += std::fabs(product);
    }
    if (c.format.global) s.value *= global_scale, s.magnitude *= global_scale;
    // Many rows of one matrix meet int4 weights that are rounded to bf16.
    const bool rounded = c.M > 16 && (c.format.wei == dt::s4 || c.format.wei == dt::u4);
    const double rounding = rounded ? std::ldexp(s.magnitude, -8) : 0.;
    if (c.bias) {
        float b;
        std::memcpy(&b, &r.in.at(MXDNN_ARG_BIAS)[size_t(n) * 4], 4);
        s.value += b;
        s.magnitude += std::fabs(b);
    }
    s.bound = double(c.K + 4) * std::ldexp(s.magnitude, -23) + rounding + double(c.K) * std::ldexp(1., -149);
    return s;
}

// Half a unit in the last place of dst.
double rounding(dt dst, double v) {
    return dst == dt::f32    ? std::ldexp(std::fabs(v), -24) + std::ldexp(1., -150)
           : dst == dt::bf16 ? std::ldexp(std::fabs(v), -8) + std::ldexp(1., -134)
                             : std::ldexp(std::fabs(v), -11) + std::ldexp(1., -25);
}

void expect_close(const case_t &c, const result_t &r, const std::string &what) {
    const int64_t columns = c.gated ? c.N / 2 : c.N;
    for (int64_t m = 0; m<c.M; m += c.M> 40 ? 1 + m % 13 : 1)
        for (int64_t n = 0; n < columns; n++) {
            double want, bound;
            if (c.gated) {
                const sum_t g = exact_sum(c, r, m, 2 * n), u = exact_sum(c, r, m, 2 * n + 1);
                const double gate = std::min(g.value, 7.), up = std::max(-7., std::min(u.value, 7.));
                want = gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
                // The slope of x * sigmoid(1.702 x) is below 1.2, that of the other factor 1; f32 functions
                // err by a few units.
                bound = 1.2 * g.bound * (std::fabs(up) + 1) + u.bound * std::fabs(gate)
                        + 1.2 * g.bound * u.bound + std::ldexp(std::fabs(want), -20);
            } else {
                const sum_t s = exact_sum(c, r, m, n);
                want = s.value, bound = s.bound;
            }
            bound += rounding(c.dst, std::fabs(want) + bound);
            if (c.dst == dt::f16 && std::fabs(want) + bound >= 65520) { // may round to infinity, or has to
                const double got = r.got[size_t(m * columns + n)];
                ASSERT_TRUE(got == std::copysign(HUGE_VAL, want)
                            || (std::fabs(want) - bound <= 65520 && std::fabs(got - want) <= bound))
                        << what << ": row " << m << " column " << n << " is " << got << ", not " << want;
                continue;
            }
            ASSERT_LE(std::fabs(r.got[size_t(m * columns + n)] - want), bound)
                    << what << ": row " << m << " column " << n << " is " << r.got[size_t(m * columns + n)]
                    << ", not " << want;
        }
}

uint32_t moderate(std::mt19937 &rng, int64_t, int64_t) { return 110 + rng() % 20; }
uint32_t fp8_scale(std::mt19937 &rng, int64_t, int64_t) { return rng() % 0x60; } // subnormal ones, too
// Some are very large or subnormal.
uint32_t bf16_scale(std::mt19937 &rng, int64_t, int64_t n) {
    return n % 16 ? 0x3C00 + rng() % 0x400 : rng() % 2 ? 0x6000 + rng() % 0x100 : rng() % 0x100;
}
uint32_t byte_of_column(std::mt19937 &, int64_t, int64_t n) { return uint32_t(n) & 255; }
// Scale bytes that the fast decoder of MXFP4 takes, from the least to the largest.
uint32_t fast_byte_of_column(std::mt19937 &, int64_t, int64_t n) { return 1 + uint32_t(n) % 128; }
uint32_t nan_in_column_5(std::mt19937 &, int64_t k, int64_t n) { return n == 5 && k == 32 ? 255 : 127; }

// Any byte in one block of 32 of a column, and in other columns in neighbouring warps. All other blocks
// decode fast.
uint32_t special_now_and_then(std::mt19937 &rng, int64_t k, int64_t n) {
    return k / 32 == n / 16 % 4 ? rng() & 255 : 110 + rng() % 18;
}

// A row of f32 whose sums may be infinite or NaN.
void expect_close_or_special(const case_t &c, const result_t &r, int64_t m) {
    for (int64_t n = 0; n < c.N; n++) {
        const sum_t s = exact_sum(c, r, m, n);
        const double got = r.got[size_t(m * c.N + n)];
        if (std::isnan(s.value))
            EXPECT_TRUE(std::isnan(got)) << "row " << m << " of " << c.M << " column " << n;
        else if (s.magnitude > 3.4e38)
            EXPECT_TRUE(!std::isfinite(got) || std::fabs(got - s.value) <= s.bound)
                    << "row " << m << " of " << c.M << " column " << n;
        else
            EXPECT_LE(std::fabs(got - s.value), s.bound + rounding(c.dst, s.value))
                    << "row " << m << " of " << c.M << " column " << n;
    }
}

TEST(cuda_sm90, every_size_is_within_its_bound) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    const case_t cases[] = {
            {1, 64, 64, dt::f32, false, false},
            {1, 1, 8, dt::f32, true, false},
            {1, 130, 1000, dt::bf16, true, false},
            {1, 9000, 264, dt::f32, true, false}, // more panels than CTAs
            {1, 70, 4136, dt::f16, false, false},
            {7, 100, 200, dt::bf16, true, false},
            {8, 130, 1000, dt::f32, false, false},
            {16, 321, 576, dt::f16, true, false},
            {3, 64, 2880, dt::bf16, false, false},
            {9, 2880, 72, dt::f32, true, false},
            {17, 65, 136, dt::f32, false, false},
            {33, 257, 328, dt::bf16, true, false},
            {64, 300, 512, dt::f32, false, false},
            {77, 128, 40, dt::f32, true, false},
            {129, 260, 264, dt::bf16, true, false},
            {300, 70, 512, dt::f32, false, false},
            {256, 520, 192, dt::bf16, true, false},
            {250, 264, 136, dt::bf16, true, false},
            {510, 72, 1032, dt::bf16, false, false},
            {190, 392, 320, dt::f16, true, false},
            {254, 330, 72, dt::bf16, true, true},
            {100, 264, 200, dt::f32, true, false}, // blocks of rows, two panels a CTA
            {131, 1300, 328, dt::f16, true, false},
            {225, 2880, 136, dt::bf16, true, false},
            {370, 4092, 72, dt::bf16, false, false},
            {640, 2880, 264, dt::bf16, true, false},
            {998, 8192, 24, dt::bf16, true, false}, // some columns, all columns have narrower blocks
            {3290, 2040, 24, dt::f32, false, false},
            {5, 140, 256, dt::bf16, true, true},
            {40, 262, 192, dt::f32, true, true},
    };
    for (const case_t &c : cases) {
        const std::string what =
                "M " + std::to_string(c.M) + " N " + std::to_string(c.N) + " K " + std::to_string(c.K);
        ASSERT_TRUE(on_hopper(c)) << what;
        expect_close(c, run_case(c, unsigned(c.M), moderate), what);
        if (HasFatalFailure()) return;
    }
}

TEST(cuda_sm90, every_format_is_within_its_bound) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (const format_t &f : formats)
        for (const auto &size :
                {std::array<memory::dim, 3>{1, 64, 64}, {1, 70, 8}, {1, 130, 1304}, {3, 70, 8},
                        {6, 100, 1048}, {16, 130, 576}, {24, 257, 296}, {70, 130, 1032}, {130, 65, 352},
                        // Rings that do not hold all weights.
                        {1, 8, 4648}, {3, 8, 4648}, {16, 8, 4648}}) {
            const case_t c = {size[0], size[1], size[2], dt::f32, size[0] % 2 == 0, false, f};
            const std::string what = std::string(f.name) + " M " + std::to_string(c.M) + " N "
                                     + std::to_string(c.N) + " K " + std::to_string(c.K);
            ASSERT_TRUE(on_hopper(c)) << what;
            const auto scale = f.scale == dt::e8m0 ? moderate : f.scale == dt::bf16 ? bf16_scale : fp8_scale;
            expect_close(c, run_case(c, unsigned(c.M), scale), what);
            if (HasFatalFailure()) return;
        }
}

TEST(cuda_sm90, infinities_and_nan_of_codes_are_kept) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (const format_t &f : formats) {
        if (f.wei != dt::f8_e4m3 && f.wei != dt::f8_e5m2) continue;
        for (memory::dim M : {2, 40}) {
            const case_t c{M, 128, 64, dt::f32, false, false, f};
            const int odd = M == 2 ? 0 : 1;
            std::mt19937 rng(6);
            const auto pd = make_pd(gpu(), c);
            result_t r = without_weights(pd, rng);
            // Column n has code 2 n or 2 n + 1 in one place, ones elsewhere; the source is ones.
            for (int64_t k = 0; k < c.K; k++)
                for (int64_t n = 0; n < c.N; n++) {
                    r.view.set_code(k, n,
                            k == 37                ? uint32_t(2 * n + odd)
                            : f.wei == dt::f8_e4m3 ? 0x38
                                                   : 0x3C);
                    r.view.set_scale(k, n, 127);
                }
            r.in[MXDNN_ARG_WEIGHTS] = r.weights;
            for (size_t i = 0; i + 1 < r.in[MXDNN_ARG_SRC].size(); i += 2)
                r.in[MXDNN_ARG_SRC][i] = 0x80, r.in[MXDNN_ARG_SRC][i + 1] = 0x3F;
            const bytes_t out = run(pd, gpu(), r.in).at(MXDNN_ARG_DST);
            for (int64_t i = 0; i < M * c.N; i++) {
                float got;
                std::memcpy(&got, &out[size_t(i) * 4], 4);
                const float want = 63 + decode_value(mxdnn_data_type_t(f.wei), uint32_t(2 * (i % c.N) + odd));
                if (std::isnan(want))
                    EXPECT_TRUE(std::isnan(got)) << f.name << " column " << i % c.N;
                else
                    EXPECT_FLOAT_EQ(got, want) << f.name << " column " << i % c.N;
            }
        }
    }
}

TEST(cuda_sm90, infinities_and_nan_of_the_source_are_kept) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (const format_t &f : formats)
        for (memory::dim M : {1, 3, 40})
            for (uint16_t special : {0x7F80, 0xFF80, 0x7FC0}) {
                const case_t c{M, 128, 320, dt::f32, false, false, f};
                std::mt19937 rng(6);
                const auto pd = make_pd(gpu(), c);
                result_t r = without_weights(pd, rng);
                const uint32_t one = f.scale == dt::e8m0 ? 127 : f.scale == dt::bf16 ? 0x3F80 : 0x38;
                for (int64_t k = 0; k < c.K; k++)
                    for (int64_t n = 0; n < c.N; n++) {
                        r.view.set_code(k, n, 1);
                        r.view.set_scale(k, n, one);
                    }
                if (f.global) std::memcpy(r.weights.data(), &global_scale, sizeof(global_scale));
                r.in[MXDNN_ARG_WEIGHTS] = r.weights;
                bytes_t &src = r.in[MXDNN_ARG_SRC];
                for (int64_t i = 0; i < M * c.K; i++) {
                    const uint16_t x = i % c.K == 197 ? special : 0x3F80;
                    std::memcpy(&src[size_t(i) * 2], &x, 2);
                }
                const bytes_t out = run(pd, gpu(), r.in).at(MXDNN_ARG_DST);
                const float want = decode_value(mxdnn_bf16, special);
                for (int64_t i = 0; i < M * c.N; i++) {
                    float got;
                    std::memcpy(&got, &out[size_t(i) * 4], 4);
                    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
                            << f.name << " row " << i / c.N << " of " << M << " column " << i % c.N << " is "
                            << got;
                }
            }
}

TEST(cuda_sm90, every_scale_byte_counts) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (auto scale : {byte_of_column, fast_byte_of_column})
        for (memory::dim M : {1, 4, 40}) {
            const case_t c{M, 256, M == 1 ? 328 : 32, dt::f32, false, false};
            const result_t r = run_case(c, 3, scale);
            for (int64_t m = 0; m < c.M; m++) expect_close_or_special(c, r, m);
        }
}

// So many columns that there is a block of each width of gemm beyond 32.
TEST(cuda_sm90, special_scales_of_wide_blocks) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (const auto &size : {std::array<memory::dim, 2>{40, 17152}, {60, 17152}, {120, 17152}, {140, 17152},
                 {250, 8704}, {280, 11520}, {230, 8192}, {500, 2880}}) {
        const case_t c{size[0], size[1], 96, dt::f32, false, false};
        const result_t r = run_case(c, unsigned(c.M), special_now_and_then);
        for (int64_t m : {int64_t(0), c.M / 2, c.M - 1}) expect_close_or_special(c, r, m);
    }
}

TEST(cuda_sm90, a_nan_scale_stays_in_its_column) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (memory::dim M : {1, 2, 50, 250}) {
        const case_t c{M, 96, 128, dt::f32, false, false};
        const result_t r = run_case(c, 4, nan_in_column_5);
        for (int64_t i = 0; i < c.M * c.N; i++) EXPECT_EQ(std::isnan(r.got[size_t(i)]), i % c.N == 5) << i;
    }
}

TEST(cuda_sm90, the_same_bits_every_time) {
    if (!on_hopper({1, 64, 64, dt::f32, false, false})) GTEST_SKIP() << "no Hopper device";
    for (memory::dim M : {1, 16, 100, 256}) {
        const case_t c{M, 512, 1024, dt::f32, false, false};
        const result_t first = run_case(c, 5, moderate);
        for (int i = 0; i < 5; i++) EXPECT_EQ(run_case(c, 5, moderate).got, first.got);
    }
}

} // namespace
