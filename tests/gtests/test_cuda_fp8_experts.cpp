// SPDX-License-Identifier: Apache-2.0
// grouped_matmul at the rate of FP8 by weights in n64_f4: `any` weights get the layout, reorders to and from
// it lose nothing, and sums are within the bound of FP8 sums, or of sums that stay in the tensor cores, for
// every number of rows and every spread of scales.
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "common/layouts/n64_f4.hpp"
#include "common/packed_desc.hpp"
#include "cuda_call.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;

namespace {

using sums = mxdnn::accumulation_mode;

constexpr memory::dim E = 6, K = 424, N = 328;
// The rows of the experts: for each width of blocks, with experts that have none or one, and some that have
// several blocks.
using rows_t = std::array<int32_t, E>;
constexpr rows_t rows_of_experts[] = {{0, 1, 3, 0, 8, 18}, {1, 0, 17, 31, 33, 40}, {48, 0, 47, 30, 49, 50},
        {1, 0, 95, 97, 96, 104}, {1, 0, 127, 129, 128, 200}, {144, 1, 145, 130, 200, 150},
        {160, 1, 161, 150, 145, 240}, {1, 0, 193, 161, 192, 450}, {1, 0, 289, 250, 456, 300}};
memory::dim sum_of(const rows_t &rows) { return std::accumulate(rows.begin(), rows.end(), 0); }

mxdnn::grouped_matmul::primitive_desc make_pd(const mxdnn::engine &e, sums mode, dt src, dt dst,
        memory::dim rows, const memory::desc &weights = memory::desc({E, K, N}, dt::f4_e2m1, tag::any)) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    attr.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32, false,
            src == dt::f8_e4m3 ? mxdnn::quantization_mode::static_sazp
                               : mxdnn::quantization_mode::dynamic_fp);
    attr.set_accumulation_mode(mode);
    return mxdnn::grouped_matmul::primitive_desc(e, memory::desc({rows, K}, src, tag::ab), weights,
            memory::desc(), memory::desc({rows, N}, dst, tag::ab), attr);
}

uint32_t layout_id(const memory::desc &md) { return md.get()->packed.layout_id; }

// Scale bytes of a block. From 256 on: a block of zeros.
using scale_fn = uint32_t (*)(std::mt19937 &, int64_t block);
uint32_t close_by(std::mt19937 &rng, int64_t) { return 118 + rng() % 5; }
uint32_t widest_exact(std::mt19937 &rng, int64_t block) { return 127 - (block % 4 ? rng() % 15 : 0); }
uint32_t any_spread(std::mt19937 &rng, int64_t) { return 40 + rng() % 130; }
// Also the least and the largest ones, and NaN.
uint32_t any_byte(std::mt19937 &rng, int64_t) {
    const uint32_t r = rng() % 256;
    return r < 4 ? std::array<uint32_t, 4>{0, 241, 254, 255}[r] : 100 + r % 40;
}
// What sums that stay in the tensor cores need other units for: in each stage of four blocks, or once, when
// they become f32 for good; and zeros, for which they need none.
uint32_t rising(std::mt19937 &rng, int64_t block) { return uint32_t(105 + block / 4 * 9) + rng() % 6; }
uint32_t falling(std::mt19937 &rng, int64_t block) { return uint32_t(140 - block / 4 * 9) - rng() % 6; }
uint32_t a_leap(std::mt19937 &rng, int64_t block) { return (block < 6 ? 80 : 150) + rng() % 4; }
uint32_t with_zeros(std::mt19937 &rng, int64_t) { return rng() % 4 ? 118 + rng() % 5 : 256; }
uint32_t only_zeros_first(std::mt19937 &rng, int64_t block) { return block < 4 ? 256 : 60 + rng() % 6; }

bytes_t make_weights(const memory::desc &md, scale_fn scale) {
    std::mt19937 rng{5};
    bytes_t w(md.get_size(), 0);
    for (int64_t e = 0; e < E; e++) {
        const packed_view_t view{
                layout_of(*md.get()), shape_of(*md.get()), w.data() + e * md.get()->packed.stride};
        uint32_t byte = 0;
        for (int64_t n = 0; n < N; n++)
            for (int64_t k = 0; k < K; k++) {
                const uint32_t code = rng() & 15;
                if (k % 32 == 0) byte = scale(rng, k / 32), view.set_scale(k, n, byte & 255);
                view.set_code(k, n, byte > 255 ? code & 8 : code);
            }
    }
    return w;
}

struct source_t {
    bytes_t codes, scales;
};
source_t make_source(dt type, memory::dim M) {
    std::mt19937 rng{7};
    source_t s;
    for (int64_t i = 0; i < M * K; i++) {
        if (type == dt::f8_e4m3) {
            const uint32_t code = rng() & 255;
            s.codes.push_back(uint8_t((code & 127) == 127 ? code - 1 : code)); // NaN
        } else {
            const uint32_t code = encode_value(mxdnn_bf16, float(int(rng() % 2001) - 1000) / 64.f);
            s.codes.push_back(uint8_t(code));
            s.codes.push_back(uint8_t(code >> 8));
        }
    }
    for (int64_t m = 0; m < M; m++) {
        const float f = std::ldexp(float(1 + rng() % 100), -int(rng() % 20));
        const uint8_t *p = reinterpret_cast<const uint8_t *>(&f);
        s.scales.insert(s.scales.end(), p, p + 4);
    }
    return s;
}

bytes_t multiply(const mxdnn::grouped_matmul::primitive_desc &pd, const source_t &s, const memory &weights,
        const rows_t &rows, dt src) {
    const memory out = make_memory(pd.dst_desc(), gpu(), bytes_t(pd.dst_desc().get_size(), 0xff)); // NaN
    rows_t ends;
    std::partial_sum(rows.begin(), rows.end(), ends.begin());
    bytes_t bounds(sizeof(ends));
    std::memcpy(bounds.data(), ends.data(), sizeof(ends));
    std::unordered_map<int, memory> args = {{MXDNN_ARG_SRC, make_memory(pd.src_desc(), gpu(), s.codes)},
            {MXDNN_ARG_WEIGHTS, weights}, {MXDNN_ARG_DST, out},
            {MXDNN_ARG_GROUP_OFFSETS, make_memory(memory::desc({E}, dt::s32, tag::a), gpu(), bounds)}};
    if (src == dt::f8_e4m3)
        args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                make_memory(memory::desc({sum_of(rows), 1}, dt::f32, tag::ab), gpu(), s.scales);
    mxdnn::stream stream(gpu());
    mxdnn::grouped_matmul(pd).execute(stream, args);
    stream.wait();
    return read_memory(out);
}

float value_at(const bytes_t &b, int64_t i) {
    float v;
    std::memcpy(&v, &b[size_t(i) * 4], 4);
    return v;
}

TEST(cuda_fp8_experts, any_weights_get_the_layout) {
    const mxdnn::engine hopper = mxdnn::engine::for_target("cuda:sm_90"),
                        others = mxdnn::engine::for_target("cuda:sm_80");
    for (const memory::dim rows : {memory::dim(1), memory::dim(100000), memory::dim(MXDNN_RUNTIME_DIM_VAL)})
        for (const dt src : {dt::f8_e4m3, dt::bf16}) {
            for (const sums mode : {sums::relaxed, sums::any})
                EXPECT_EQ(layout_id(make_pd(hopper, mode, src, dt::bf16, rows).weights_desc()), n64_f4_t::id);
            EXPECT_EQ(layout_id(make_pd(hopper, sums::strict, src, dt::bf16, rows).weights_desc()),
                    n64_b4_t::id);
            EXPECT_EQ(layout_id(make_pd(others, sums::relaxed, src, dt::bf16, rows).weights_desc()),
                    n64_b4_t::id);
        }
}

TEST(cuda_fp8_experts, reorders_lose_nothing) {
    const memory::desc f4 = make_pd(gpu(), sums::relaxed, dt::bf16, dt::f32, 1).weights_desc(),
                       b4 = make_pd(gpu(), sums::strict, dt::bf16, dt::f32, 1).weights_desc();
    if (layout_id(f4) != n64_f4_t::id) GTEST_SKIP() << "not Hopper";
    const bytes_t in_f4 = make_weights(f4, any_spread), in_b4 = make_weights(b4, any_spread);
    const auto reorder = [](const mxdnn::engine &e, const memory::desc &from, const bytes_t &bytes,
                                 const memory::desc &to) {
        const memory a = make_memory(from, e, bytes), b = make_memory(to, e, bytes_t(to.get_size(), 0xc3));
        mxdnn::stream s(e);
        mxdnn::mx_reorder(a, b).execute(s, a, b);
        s.wait();
        return read_memory(b);
    };
    EXPECT_EQ(reorder(gpu(), f4, in_f4, b4), in_b4);
    EXPECT_EQ(reorder(gpu(), b4, in_b4, f4), in_f4);
}

// The same weights without signs.
bytes_t magnitudes_of(const memory::desc &desc, bytes_t weights) {
    const memory_desc_t &md = *desc.get();
    for (int64_t e = 0; e < E; e++) {
        const packed_view_t view{layout_of(md), shape_of(md), weights.data() + e * md.packed.stride};
        for (int64_t n = 0; n < N; n++)
            for (int64_t k = 0; k < K; k++) view.set_code(k, n, view.code(k, n) & 7);
    }
    return weights;
}

// Whether sums stay in the tensor cores where they may.
bool keeps_sums(const rows_t &rows) {
    return cuda::packed::keeps_sums(cuda::packed::plan_f4_matmul(sum_of(rows), N, E, 132, true).shape);
}

TEST(cuda_fp8_experts, every_width_is_tested) {
    std::set<int> widths, kept;
    for (const rows_t &rows : rows_of_experts) {
        widths.insert(cuda::packed::plan_f4_matmul(sum_of(rows), N, E, 132, false).shape);
        if (keeps_sums(rows)) kept.insert(cuda::packed::plan_f4_matmul(sum_of(rows), N, E, 132, true).shape);
    }
    EXPECT_EQ(widths.size(), size_t(cuda::packed::f4_count));
    EXPECT_EQ(kept.size(), size_t(cuda::packed::f4_kept));
}

void check(const std::vector<scale_fn> &scales, const std::vector<rows_t> &all_rows) {
    const auto f4 = make_pd(gpu(), sums::relaxed, dt::bf16, dt::f32, 1).weights_desc(),
               b4 = make_pd(gpu(), sums::strict, dt::bf16, dt::f32, 1).weights_desc();
    if (layout_id(f4) != n64_f4_t::id) GTEST_SKIP() << "not Hopper";
    for (const scale_fn scale : scales) {
        const bytes_t in_b4 = make_weights(b4, scale);
        const memory weights = make_memory(f4, gpu(), make_weights(f4, scale)),
                     same = make_memory(b4, gpu(), in_b4),
                     plain = make_memory(b4, gpu(), magnitudes_of(b4, in_b4));
        for (const rows_t &rows : all_rows)
            for (const dt src : {dt::f8_e4m3, dt::bf16}) {
                const memory::dim M = sum_of(rows);
                SCOPED_TRACE(std::to_string(M) + (src == dt::bf16 ? " rows of bf16" : " rows of f8_e4m3"));
                const auto relaxed = make_pd(gpu(), sums::relaxed, src, dt::f32, M, f4),
                           strict = make_pd(gpu(), sums::strict, src, dt::f32, M);
                ASSERT_EQ(std::string(relaxed.impl_info_str()), "cuda:sm_90:f8_e4m3");
                const source_t s = make_source(src, M);
                const bytes_t got = multiply(relaxed, s, weights, rows, src),
                              want = multiply(strict, s, same, rows, src);
                // The magnitudes of products, row by row: those of the same problem without signs.
                source_t positive = s;
                const size_t width = src == dt::bf16 ? 2 : 1;
                for (size_t i = width - 1; i < positive.codes.size(); i += width) positive.codes[i] &= 127;
                const bytes_t magnitudes = multiply(strict, positive, plain, rows, src);
                // 32 products and the sum so far are cut off 2^-13 below the largest, four times before the
                // sum becomes f32.
                const float cut = 4 * 33 * 0x1p-13f;
                int64_t different = 0;
                for (int64_t i = 0; i < M * N; i++) {
                    const float x = value_at(got, i), y = value_at(want, i);
                    if (std::isnan(y)) {
                        ASSERT_TRUE(std::isnan(x)) << "row " << i / N << " column " << i % N << ": " << x;
                        continue;
                    }
                    // Sums may leave f32 in another order.
                    if (!std::isfinite(value_at(magnitudes, i))) continue;
                    different += x != y;
                    ASSERT_LE(std::fabs(x - y), cut * value_at(magnitudes, i))
                            << "row " << i / N << " column " << i % N << ": " << x << ", not " << y;
                }
                EXPECT_GT(different, 0) << "not multiplied in FP8";
                EXPECT_EQ(multiply(relaxed, s, weights, rows, src), got) << "other bits at another time";
            }
    }
}

TEST(cuda_fp8_experts, sums_are_within_the_bound) {
    check({close_by, widest_exact, any_spread, any_byte},
            {std::begin(rows_of_experts), std::end(rows_of_experts)});
}
TEST(cuda_fp8_experts, sums_of_few_rows_are_within_the_bound) {
    check({any_byte}, {rows_of_experts[0], rows_of_experts[2]});
}

// ---- the accumulation mode `any` ----

// Weights in f32, where some codes of the largest bytes are infinite, [E, K, N].
std::vector<float> values_of(const memory::desc &desc, const bytes_t &weights) {
    const memory_desc_t &md = *desc.get();
    std::vector<float> v;
    for (int64_t e = 0; e < E; e++) {
        bytes_t own(weights.begin() + e * md.packed.stride, weights.end());
        const packed_view_t view{layout_of(md), shape_of(md), own.data()};
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++)
                v.push_back(decode_value(mxdnn_f4_e2m1, view.code(k, n))
                            * decode_value(mxdnn_e8m0, view.scale(k, n)));
    }
    return v;
}

// A row in double. Sums that are kept are cut off with 32 products at a time, 2^-13 below the largest of
// these and of the sum so far, with what it has lost.
struct exact_row_t {
    std::vector<double> sum, lost, magnitudes;
    exact_row_t(const uint8_t *x, const float *w) : sum(N), lost(N), magnitudes(N) {
        std::vector<double> largest(N);
        for (int64_t k = 0; k < K; k++) {
            const double v = decode_value(mxdnn_f8_e4m3, x[k]);
            for (int64_t n = 0; n < N; n++) {
                if (k % 32 == 0) largest[n] = std::fabs(sum[n]) + lost[n];
                const double product = v * double(w[k * N + n]);
                sum[n] += product;
                magnitudes[n] += std::fabs(product);
                largest[n] = std::fmax(largest[n], std::fabs(product));
                if (k % 32 == 31 || k == K - 1) lost[n] += (33 * 0x1p-13 + 0x1p-23) * largest[n];
            }
        }
    }
};

// Rows of f8_e4m3 as they are, or what the library makes of rows of bf16.
source_t in_fp8(const source_t &s, dt src, memory::dim M) {
    if (src == dt::f8_e4m3) return s;
    source_t r;
    for (int64_t m = 0; m < M; m++) {
        std::array<float, size_t(K)> x;
        uint32_t amax = 0;
        for (size_t k = 0; k < x.size(); k++) {
            const uint8_t *p = &s.codes[(size_t(m * K) + k) * 2];
            x[k] = decode_value(mxdnn_bf16, uint32_t(p[0] | p[1] << 8));
            amax = std::max(amax, magnitude_bits(x[k]));
        }
        const float scale = row_fp8_scale(amax);
        for (const float v : x) r.codes.push_back(uint8_t(row_fp8_quantize(v, scale)));
        const uint8_t *p = reinterpret_cast<const uint8_t *>(&scale);
        r.scales.insert(r.scales.end(), p, p + 4);
    }
    return r;
}

// kept: some sums stay in the tensor cores. Otherwise blocks of all panels and stages are multiplied one by
// one, as in the mode `relaxed`.
void check_any_sums(scale_fn scale, bool kept = true) {
    const auto f4 = make_pd(gpu(), sums::any, dt::f8_e4m3, dt::f32, 1).weights_desc();
    if (layout_id(f4) != n64_f4_t::id) GTEST_SKIP() << "not Hopper";
    const bytes_t bytes = make_weights(f4, scale);
    const memory weights = make_memory(f4, gpu(), bytes);
    const std::vector<float> w = values_of(f4, bytes);
    for (const rows_t &rows : rows_of_experts)
        for (const dt src : {dt::f8_e4m3, dt::bf16}) {
            if (!keeps_sums(rows)) continue;
            const memory::dim M = sum_of(rows);
            SCOPED_TRACE(std::to_string(M) + (src == dt::bf16 ? " rows of bf16" : " rows of f8_e4m3"));
            const auto any = make_pd(gpu(), sums::any, src, dt::f32, M, f4),
                       relaxed = make_pd(gpu(), sums::relaxed, src, dt::f32, M, f4);
            ASSERT_EQ(std::string(any.impl_info_str()), "cuda:sm_90:f8_e4m3");
            source_t s = make_source(src, M);
            if (src == dt::f8_e4m3) s.codes[size_t(M / 2 * K + 7)] = 127; // NaN
            const bytes_t got = multiply(any, s, weights, rows, src);
            EXPECT_EQ(multiply(any, s, weights, rows, src), got) << "other bits at another time";
            EXPECT_NE(multiply(relaxed, s, weights, rows, src) == got, kept)
                    << "sums were " << (kept ? "not kept" : "kept");
            const source_t x = in_fp8(s, src, M);
            int64_t m = M / 2 % 3, end = 0;
            for (int64_t e = 0; e < E; e++)
                for (end += rows[size_t(e)]; m < end; m += 3) {
                    const exact_row_t want(&x.codes[size_t(m * K)], &w[size_t(e * K * N)]);
                    const double factor = value_at(x.scales, m);
                    for (size_t n = 0; n < size_t(N); n++) {
                        const double v = value_at(got, m * N + int64_t(n)), y = want.sum[n] * factor;
                        if (std::isnan(y)) {
                            ASSERT_TRUE(std::isnan(v)) << "row " << m << " column " << n << ": " << v;
                            continue;
                        }
                        // Sums may leave f32 in another order.
                        if (!std::isfinite(float(2 * want.magnitudes[n] * std::fmax(factor, 1.)))) continue;
                        ASSERT_LE(std::fabs(v - y), want.lost[n] * factor + std::fabs(y) * 0x1p-22 + 0x1p-140)
                                << "row " << m << " column " << n << ": " << v << ", not " << y;
                    }
                }
        }
}

TEST(cuda_fp8_experts, kept_sums_of_near_scales) {
    check_any_sums(close_by);
    check_any_sums(widest_exact);
}
TEST(cuda_fp8_experts, kept_sums_in_several_units) {
    check_any_sums(rising);
    check_any_sums(falling);
}
TEST(cuda_fp8_experts, kept_sums_that_become_f32) {
    check_any_sums(a_leap);
    check_any_sums(any_spread, false);
    check_any_sums(any_byte, false);
}
TEST(cuda_fp8_experts, kept_sums_of_zeros) {
    check_any_sums(with_zeros);
    check_any_sums(only_zeros_first);
}

} // namespace
