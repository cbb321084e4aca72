// SPDX-License-Identifier: Apache-2.0
// grouped_matmul at the rate of FP8 by weights in n64_f4: `any` weights get the layout, reorders to and from
// it lose nothing, and sums are within the bound of FP8 sums for every number of rows and every spread of
// scales.
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

constexpr memory::dim E = 6, K = 424, N = 328;
// The rows of the experts: for each width of blocks, with experts that have none or one, and some that have
// several blocks.
using rows_t = std::array<int32_t, E>;
constexpr rows_t rows_of_experts[] = {{0, 1, 3, 0, 8, 18}, {1, 0, 17, 31, 33, 40}, {48, 0, 47, 30, 49, 50},
        {1, 0, 95, 97, 96, 104}, {1, 0, 127, 129, 128, 200}, {144, 1, 145, 130, 200, 150},
        {1, 0, 193, 161, 192, 450}, {1, 0, 289, 250, 456, 300}};
memory::dim sum_of(const rows_t &rows) { return std::accumulate(rows.begin(), rows.end(), 0); }

mxdnn::grouped_matmul::primitive_desc make_pd(const mxdnn::engine &e, bool relaxed, dt src, dt dst,
        memory::dim rows, const memory::desc &weights = memory::desc({E, K, N}, dt::f4_e2m1, tag::any)) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    attr.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32, false,
            src == dt::f8_e4m3 ? mxdnn::quantization_mode::static_sazp
                               : mxdnn::quantization_mode::dynamic_fp);
    if (relaxed) attr.set_accumulation_mode(mxdnn::accumulation_mode::relaxed);
    return mxdnn::grouped_matmul::primitive_desc(e, memory::desc({rows, K}, src, tag::ab), weights,
            memory::desc(), memory::desc({rows, N}, dst, tag::ab), attr);
}

uint32_t layout_id(const memory::desc &md) { return md.get()->packed.layout_id; }

// Scale bytes of a block.
using scale_fn = uint32_t (*)(std::mt19937 &, int64_t block);
uint32_t close_by(std::mt19937 &rng, int64_t) { return 118 + rng() % 5; }
uint32_t widest_exact(std::mt19937 &rng, int64_t block) { return 127 - (block % 4 ? rng() % 15 : 0); }
uint32_t any_spread(std::mt19937 &rng, int64_t) { return 40 + rng() % 130; }
// Also the least and the largest ones, and NaN.
uint32_t any_byte(std::mt19937 &rng, int64_t) {
    const uint32_t r = rng() % 256;
    return r < 4 ? std::array<uint32_t, 4>{0, 241, 254, 255}[r] : 100 + r % 40;
}

bytes_t make_weights(const memory::desc &md, scale_fn scale) {
    std::mt19937 rng{5};
    bytes_t w(md.get_size(), 0);
    for (int64_t e = 0; e < E; e++) {
        const packed_view_t view{
                layout_of(*md.get()), shape_of(*md.get()), w.data() + e * md.get()->packed.stride};
        for (int64_t n = 0; n < N; n++)
            for (int64_t k = 0; k < K; k++) {
                view.set_code(k, n, rng() & 15);
                if (k % 32 == 0) view.set_scale(k, n, scale(rng, k / 32));
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
            EXPECT_EQ(layout_id(make_pd(hopper, true, src, dt::bf16, rows).weights_desc()), n64_f4_t::id);
            EXPECT_EQ(layout_id(make_pd(hopper, false, src, dt::bf16, rows).weights_desc()), n64_b4_t::id);
            EXPECT_EQ(layout_id(make_pd(others, true, src, dt::bf16, rows).weights_desc()), n64_b4_t::id);
        }
}

TEST(cuda_fp8_experts, reorders_lose_nothing) {
    const memory::desc f4 = make_pd(gpu(), true, dt::bf16, dt::f32, 1).weights_desc(),
                       b4 = make_pd(gpu(), false, dt::bf16, dt::f32, 1).weights_desc();
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

TEST(cuda_fp8_experts, every_width_is_tested) {
    std::set<int> widths;
    for (const rows_t &rows : rows_of_experts)
        widths.insert(cuda::packed::plan_f4_matmul(sum_of(rows), N, E, 132).shape);
    EXPECT_EQ(widths.size(), size_t(cuda::packed::f4_count));
}

void check(const std::vector<scale_fn> &scales, const std::vector<rows_t> &all_rows) {
    const auto f4 = make_pd(gpu(), true, dt::bf16, dt::f32, 1).weights_desc(),
               b4 = make_pd(gpu(), false, dt::bf16, dt::f32, 1).weights_desc();
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
                const auto relaxed = make_pd(gpu(), true, src, dt::f32, M, f4),
                           strict = make_pd(gpu(), false, src, dt::f32, M);
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

} // namespace
