// SPDX-License-Identifier: Apache-2.0
// cublaslt:f8_e4m3, which relaxed sums allow. Where columns are exact in f8_e4m3, results are within the
// bound of FP8 sums. Panels with a column that is not exact have the bits of cuda:sm_90. Also the problems
// that it leaves to cuda:sm_90.
#include <cmath>
#include <functional>

#include "cuda_call.hpp"
#include "gpu/cuda/impl/cublaslt_fp8_mx_matmul.hpp"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;
using mxdnn::impl::cuda::cublaslt_fp8_mx_matmul_t;

namespace {

constexpr memory::dim any_rows = MXDNN_RUNTIME_DIM_VAL, K = 2048, N = 2064;
constexpr int64_t group = 256; // columns that cuda:sm_90 computes together

mxdnn::mx_matmul::primitive_desc make_pd(bool relaxed, dt src, dt dst, memory::dim M = any_rows) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    attr.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32, false,
            src == dt::f8_e4m3 ? mxdnn::quantization_mode::static_sazp
                               : mxdnn::quantization_mode::dynamic_fp);
    if (relaxed) attr.set_accumulation_mode(mxdnn::accumulation_mode::relaxed);
    return mxdnn::mx_matmul::primitive_desc(gpu(), memory::desc({M, K}, src, tag::ab),
            memory::desc({K, N}, dt::f4_e2m1, tag::any), memory::desc({M, N}, dst, tag::ab), attr);
}

bool is_fp8(const mxdnn::mx_matmul::primitive_desc &pd) {
    return std::string(pd.impl_info_str()) == cublaslt_fp8_mx_matmul_t::impl_name;
}
// The machine's cuBLASLt is used where there is one.
bool has_fp8() { return is_fp8(make_pd(true, dt::bf16, dt::f32)); }
int64_t least_rows(const mxdnn::mx_matmul::primitive_desc &pd) {
    return static_cast<const cublaslt_fp8_mx_matmul_t::pd_t &>(*pd.get()->pd).least_rows;
}

struct data_t {
    bytes_t src, scales, weights;
};

// Scale bytes of a column, by block.
using scale_fn = uint32_t (*)(std::mt19937 &, int64_t column, int64_t block);
uint32_t close_by(std::mt19937 &rng, int64_t, int64_t) { return 115 + rng() % 15; }
// The widest spread that is exact, up to the largest scale, and down to the smallest.
uint32_t at_the_edge(std::mt19937 &rng, int64_t column, int64_t block) {
    const uint32_t top = column % 2 ? cuda::packed::fp8_most_scale : cuda::packed::fp8_least_scale;
    return block == 0 ? top : top - rng() % 15;
}
// Columns of the second group of panels that are not exact: too wide, NaN, too large, too small.
uint32_t some_not(std::mt19937 &rng, int64_t column, int64_t block) {
    if (column == group + 3 && block == 5) return 100;
    if (column == group + 70 && block == 63) return 255;
    if (column == group + 200) return cuda::packed::fp8_most_scale + 1;
    if (column == N - 1) return cuda::packed::fp8_least_scale - 1;
    return close_by(rng, column, block);
}

data_t make_data(
        const mxdnn::mx_matmul::primitive_desc &pd, dt src, int64_t M, scale_fn scale, bool positive) {
    std::mt19937 rng{unsigned(M)};
    data_t d;
    const memory::desc wei = pd.weights_desc();
    d.weights.assign(wei.get_size(), 0);
    const packed_view_t view{layout_of(*wei.get()), shape_of(*wei.get()), d.weights.data()};
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++) {
            view.set_code(k, n, rng() & (positive ? 7 : 15));
            if (k % 32 == 0) view.set_scale(k, n, scale(rng, n, k / 32));
        }
    for (int64_t i = 0; i < M * K; i++) {
        if (src == dt::f8_e4m3) {
            const uint32_t code = rng() & (positive ? 127 : 255);
            d.src.push_back(uint8_t((code & 127) == 127 ? code - 1 : code)); // NaN
        } else {
            const uint32_t code = encode_value(
                    mxdnn_bf16, float(int(rng() % 2001) - (positive ? 0 : 1000)) / float(1 + rng() % 50));
            d.src.push_back(uint8_t(code));
            d.src.push_back(uint8_t(code >> 8));
        }
    }
    for (int64_t m = 0; m < M; m++) {
        const float s = std::ldexp(float(1 + rng() % 100), -int(rng() % 20));
        const uint8_t *p = reinterpret_cast<const uint8_t *>(&s);
        d.scales.insert(d.scales.end(), p, p + 4);
    }
    return d;
}

bytes_t multiply(const mxdnn::mx_matmul::primitive_desc &pd, const data_t &d, dt src, dt dst, int64_t M) {
    const memory::desc dst_desc({M, N}, dst, tag::ab);
    const memory out = make_memory(dst_desc, gpu(), bytes_t(dst_desc.get_size(), 0xff)); // NaN
    std::unordered_map<int, memory> args = {
            {MXDNN_ARG_SRC, make_memory(memory::desc({M, K}, src, tag::ab), gpu(), d.src)},
            {MXDNN_ARG_WEIGHTS, make_memory(pd.weights_desc(), gpu(), d.weights)}, {MXDNN_ARG_DST, out}};
    if (src == dt::f8_e4m3)
        args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                make_memory(memory::desc({M, 1}, dt::f32, tag::ab), gpu(), d.scales);
    mxdnn::stream s(gpu());
    mxdnn::mx_matmul(pd).execute(s, args);
    s.wait();
    return read_memory(out);
}

double value_of(const bytes_t &b, dt type, int64_t i) {
    uint32_t code = 0;
    const size_t width = type == dt::f32 ? 4 : 2;
    std::memcpy(&code, &b[size_t(i) * width], width);
    return double(decode_value(mxdnn_data_type_t(type), code));
}

// Compares with the strict sums of cuda:sm_90, which other tests check. `left` says for each group of columns
// whether it must have the same bits. The other groups must differ somewhere. Products are not negative, so a
// sum equals its magnitude.
void expect_close(const bytes_t &got, const bytes_t &want, dt dst, int64_t M, bool positive,
        const std::function<bool(int64_t)> &left, const std::string &what) {
    // 32 products and the sum so far are cut off 2^-13 below the largest, four times before the sum becomes
    // f32.
    const double cut = 4 * 33 * std::ldexp(1., -13), rounded = dst == dt::f32 ? 0 : std::ldexp(1., -8);
    std::vector<int64_t> different(size_t(div_up(N, group)));
    double sum_error = 0, sum = 0;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            const double x = value_of(got, dst, m * N + n), y = value_of(want, dst, m * N + n);
            if (std::isnan(y) && std::isnan(x)) continue;
            different[size_t(n / group)] += x != y;
            if (left(n / group)) {
                ASSERT_EQ(x, y) << what << ": row " << m << " column " << n;
                continue;
            }
            sum_error += std::fabs(x - y), sum += std::fabs(y);
            if (positive) {
                ASSERT_LE(std::fabs(x - y), (cut + 2 * rounded) * y)
                        << what << ": row " << m << " column " << n;
            }
        }
    for (size_t g = 0; g < different.size(); g++)
        EXPECT_EQ(different[g] > 0, !left(int64_t(g))) << what << ": columns from " << g * group;
    EXPECT_LT(sum_error, (std::ldexp(1., -10) + rounded) * sum) << what;
}

TEST(cuda_fp8, columns_that_are_exact) {
    if (!has_fp8()) GTEST_SKIP() << "no cuBLASLt";
    for (const dt src : {dt::f8_e4m3, dt::bf16})
        for (const scale_fn scale : {close_by, at_the_edge}) {
            const dt dst = scale == close_by ? dt::bf16 : dt::f32;
            const auto relaxed = make_pd(true, src, dst), strict = make_pd(false, src, dst);
            ASSERT_TRUE(is_fp8(relaxed));
            ASSERT_EQ(std::string(strict.impl_info_str()), "cuda:sm_90");
            const int64_t M = least_rows(relaxed) + 5;
            const data_t d = make_data(relaxed, src, M, scale, true);
            expect_close(
                    multiply(relaxed, d, src, dst, M), multiply(strict, d, src, dst, M), dst, M, true,
                    [](int64_t) { return false; }, src == dt::bf16 ? "recipe" : "codes");
            if (HasFatalFailure()) return;
        }
}

TEST(cuda_fp8, panels_that_are_not_are_computed_as_strict_sums) {
    if (!has_fp8()) GTEST_SKIP() << "no cuBLASLt";
    for (const dt src : {dt::f8_e4m3, dt::bf16}) {
        const auto relaxed = make_pd(true, src, dt::f32), strict = make_pd(false, src, dt::f32);
        const int64_t M = least_rows(relaxed);
        const data_t d = make_data(relaxed, src, M, some_not, false);
        const bytes_t got = multiply(relaxed, d, src, dt::f32, M);
        expect_close(
                got, multiply(strict, d, src, dt::f32, M), dt::f32, M, false,
                [](int64_t g) { return g == 1 || g == (N - 1) / group; }, "some left");
        if (HasFatalFailure()) return;
        EXPECT_EQ(multiply(relaxed, d, src, dt::f32, M), got) << "other bits at another time";
    }
}

TEST(cuda_fp8, grouped_gemv_and_strict_sums_are_left_to_others) {
    if (!has_fp8()) GTEST_SKIP() << "no cuBLASLt";
    const auto relaxed = make_pd(true, dt::bf16, dt::f32), strict = make_pd(false, dt::bf16, dt::f32);
    EXPECT_FALSE(is_fp8(strict));
    EXPECT_FALSE(is_fp8(make_pd(true, dt::bf16, dt::f32, 16)));
    for (const int64_t M : {int64_t(3), least_rows(relaxed) - 1}) {
        const data_t d = make_data(relaxed, dt::bf16, M, close_by, false);
        EXPECT_EQ(multiply(relaxed, d, dt::bf16, dt::f32, M), multiply(strict, d, dt::bf16, dt::f32, M)) << M;
    }
}

} // namespace
