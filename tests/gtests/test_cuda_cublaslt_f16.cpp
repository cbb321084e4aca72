// SPDX-License-Identifier: Apache-2.0
// cublaslt:f16, each weight by itself: a row of the source that has 1 in one place takes the weight from
// there, which is the rounded one where f16 holds the scales of a panel, and the weight itself where it may
// not; one that has an infinity there takes it with the weight's sign.
#include <array>
#include <cmath>

#include "cuda_int4_weights.hpp"
#include "gpu/cuda/impl/cublaslt_mx_matmul.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;
using mxdnn::impl::cuda::cublaslt_f16_mx_matmul_t;

namespace {

using kind_t = int4_weights_t;
constexpr kind_t kinds[] = {
        {dt::u4, dt::f16, dt::u8, 128},
        {dt::s4, dt::f16, dt::undef, 32},
        {dt::u4, dt::f16, dt::undef, 256},
        {dt::u4, dt::f16, dt::f16, 64},
        {dt::s4, dt::bf16, dt::undef, 128},
        {dt::u4, dt::bf16, dt::u8, 32},
        {dt::u4, dt::bf16, dt::bf16, 64},
        {dt::u4, dt::f16, dt::bf16, 128},
        {dt::s4, dt::f32, dt::undef, 64},
        {dt::u4, dt::f32, dt::u8, 128},
};

constexpr memory::dim K = 264, N = 1288, panel = 64;

mxdnn::mx_matmul::primitive_desc make_pd(const kind_t &kind, memory::dim M, dt dst, bool relu = false) {
    mxdnn::primitive_attr attr;
    kind.set(attr);
    if (relu) {
        mxdnn::post_ops ops;
        ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0.f, 0.f);
        attr.set_post_ops(ops);
    }
    return {gpu(), memory::desc({M, K}, dt::f16, tag::ab), memory::desc({K, N}, kind.wei, tag::any),
            memory::desc({M, N}, dst, tag::ab), attr, true};
}

// Rows from which on the implementation is there; 0: it is not.
memory::dim least_rows(const kind_t &kind) {
    const auto pd = make_pd(kind, MXDNN_RUNTIME_DIM_VAL, dt::f32);
    if (!pd || std::string(pd.impl_info_str()) != cublaslt_f16_mx_matmul_t::impl_name) return 0;
    return static_cast<const cublaslt_f16_mx_matmul_t::pd_t &>(*pd.get()->pd).plan.least_rows;
}

float decoded(dt type, uint32_t bits) { return decode_value(mxdnn_data_type_t(type), bits); }
uint32_t encoded(dt type, float v) { return encode_value(mxdnn_data_type_t(type), v); }
float rounded_to_f16(float v) { return decoded(dt::f16, encoded(dt::f16, v)); }

// What the panels have, in turn: usual scales in all but one block of one column.
enum class panel_t { usual, largest, largest_that_fits, too_large, least, zero, negative_zero, any, count };
panel_t panel_of(int64_t n) { return panel_t(n / panel % int(panel_t::count)); }
// Of f16 that f16 does not hold the weights, where the zero points are usual.
bool is_left(const kind_t &kind, panel_t p) {
    return p == panel_t::largest || p == panel_t::too_large || (p == panel_t::least && kind.scale != dt::f16);
}

class weights_t {
public:
    bytes_t packed;
    std::vector<float> value; // [K, N], by the rule of the format
    std::vector<char> apart;  // whether an infinity may meet code and zero apart, and become NaN

    weights_t(const kind_t &kind, const memory::desc &wei) : kind_(kind), rng_(7) {
        packed.assign(wei.get_size(), 0);
        const packed_view_t view{layout_of(*wei.get()), shape_of(*wei.get()), packed.data()};
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++) {
                const uint32_t bits = uint32_t(k + n / 3) % 16;
                view.set_code(k, n, bits);
                if (k % kind.block == 0) {
                    view.set_scale(k, n, scale(k, n));
                    if (kind.zero != dt::undef) view.set_zero_point(k, n, zero(n));
                }
                const float scale = decoded(kind.scale, view.scale(k, n)), code = decoded(kind.wei, bits);
                const float zero = kind.zero == dt::undef ? 0.f
                                   : kind.zero_points()   ? float(view.zero_point(k, n))
                                                          : decoded(kind.zero, view.zero_point(k, n));
                const float product = (code - (kind.zeros() ? 8 : zero)) * scale;
                value.push_back(kind.zeros() ? product + zero : product);
                apart.push_back(kind.zeros() && !(product * zero > 0));
            }
    }

private:
    const kind_t &kind_;
    std::mt19937 rng_;

    uint32_t scale(int64_t k, int64_t n) {
        const int exponent_bits = kind_.scale == dt::f16 ? 5 : 8, bits = kind_.scale == dt::f32 ? 32 : 16;
        const uint32_t sign = rng_() % 2 << (bits - 1), random = uint32_t(rng_());
        const uint32_t least_exponent = 1u << (bits - 1 - exponent_bits);
        const bool here = n % panel == 5 && k / kind_.block == K / 2 / kind_.block;
        // Every one of its bits counts.
        const float usual = std::ldexp(1.f + float(random % 4096) / 4096, int(random >> 12) % 4 - 9);
        if (panel_of(n) == panel_t::any) {
            // Up to where weights are finite, zero points of 255 included.
            const uint32_t exponents = kind_.scale == dt::f16 ? 31 : 246;
            return sign | (random >> 4) % exponents * least_exponent | random % least_exponent;
        }
        if (!here) return encoded(kind_.scale, usual) | sign;
        switch (panel_of(n)) {
        case panel_t::largest:
            return encoded(kind_.scale, kind_.scale == dt::f16 ? 65504.f : 0x1p119f) | sign;
        case panel_t::largest_that_fits: return encoded(kind_.scale, 4352.f) | sign; // times 15: 65280
        case panel_t::too_large:
            return encoded(kind_.scale, kind_.wei == dt::s4 || kind_.zeros() ? 8224.f : 4384.f) | sign;
        case panel_t::least: return 1u | sign;
        case panel_t::zero: return 0;
        case panel_t::negative_zero: return sign;
        default: return encoded(kind_.scale, usual) | sign;
        }
    }
    uint32_t zero(int64_t n) {
        if (panel_of(n) == panel_t::any && kind_.zero_points()) return uint32_t(rng_()) % 256;
        if (kind_.zero_points()) return uint32_t(rng_()) % 16;
        return encoded(kind_.zero, (float(rng_() % 4097) - 2048) / 65536);
    }
};

bytes_t row_of(const memory::dim M, float x, int64_t (*place)(int64_t)) {
    const auto special = uint16_t(encoded(dt::f16, x));
    bytes_t src(size_t(M * K) * 2, 0);
    for (int64_t m = 0; m < M; m++) std::memcpy(&src[size_t(m * K + place(m)) * 2], &special, 2);
    return src;
}
int64_t place_of(int64_t m) { return (m * 37 + 5) % K; }

float value_at(const bytes_t &b, int64_t i) {
    float v;
    std::memcpy(&v, &b[size_t(i) * 4], 4);
    return v;
}

TEST(cuda_cublaslt_f16, every_weight_is_itself_or_rounded_once) {
    if (!least_rows(kinds[0])) GTEST_SKIP() << "no cuBLASLt";
    for (const kind_t &kind : kinds) {
        const memory::dim M = std::max<memory::dim>(least_rows(kind), K);
        ASSERT_GT(least_rows(kind), 0) << kind.text();
        const auto pd = make_pd(kind, M, dt::f32);
        ASSERT_EQ(std::string(pd.impl_info_str()), cublaslt_f16_mx_matmul_t::impl_name) << kind.text();
        const weights_t w(kind, pd.weights_desc());
        int rounded = 0, kept = 0; // weights that are no f16, in panels of either sort
        for (float x : {1.f, INFINITY, -INFINITY, NAN}) {
            const bytes_t out =
                    run(pd, gpu(), {{MXDNN_ARG_SRC, row_of(M, x, place_of)}, {MXDNN_ARG_WEIGHTS, w.packed}})
                            .at(MXDNN_ARG_DST);
            for (int64_t m = 0; m < K; m++)
                for (int64_t n = 0; n < N; n++) {
                    const size_t at = size_t(place_of(m) * N + n);
                    const float got = value_at(out, m * N + n), value = w.value[at], want = x * value,
                                f16 = rounded_to_f16(value);
                    const auto where = [&] {
                        return kind.text() + ": " + std::to_string(x) + " times " + std::to_string(value)
                               + " is " + std::to_string(got) + " in row " + std::to_string(m) + " column "
                               + std::to_string(n);
                    };
                    if (x != 1.f) {
                        if (w.apart[at] && std::isnan(got)) continue;
                        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << where();
                        continue;
                    }
                    // A value of f16 is the sum of two where scales are met early, and these products add up
                    // in f32.
                    const bool itself =
                            std::fabs(double(got) - value) <= std::ldexp(std::fabs(double(value)), -22);
                    ASSERT_TRUE(itself || got == f16) << where();
                    ASSERT_LE(std::fabs(double(got) - value), std::ldexp(std::fabs(double(value)), -11))
                            << where();
                    const panel_t p = panel_of(n);
                    if (p == panel_t::any
                            || std::fabs(double(f16) - value) <= std::ldexp(std::fabs(double(value)), -20))
                        continue;
                    ASSERT_EQ(itself, is_left(kind, p)) << where();
                    (itself ? kept : rounded)++;
                }
        }
        // Codes of four bits times bf16 have twelve, less where they are signed.
        EXPECT_EQ(rounded > 1000, kind.wei != dt::s4 || kind.scale != dt::bf16) << kind.text();
        EXPECT_GT(kept, 300) << kind.text();
    }
}

// A block of one column has a scale that is no number, or an infinity.
TEST(cuda_cublaslt_f16, scales_that_are_no_numbers) {
    if (!least_rows(kinds[0])) GTEST_SKIP() << "no cuBLASLt";
    for (const kind_t &kind : kinds)
        for (const bool relu : {false, true}) {
            const memory::dim M = least_rows(kind);
            const auto pd = make_pd(kind, M, dt::f16, relu);
            weights_t w(kind, pd.weights_desc());
            const packed_view_t view{
                    layout_of(*pd.weights_desc().get()), shape_of(*pd.weights_desc().get()), w.packed.data()};
            constexpr float scales[] = {INFINITY, -INFINITY, NAN};
            std::vector<float> x; // no zeros
            bytes_t src(size_t(M * K) * 2);
            for (int64_t i = 0; i < M * K; i++) {
                x.push_back(float(i % 7 + 1) * (i % 2 ? -.125f : .125f));
                const uint32_t bits = encoded(dt::f16, x.back());
                std::memcpy(&src[size_t(i) * 2], &bits, 2);
            }
            std::vector<float> value(size_t(K * N));
            for (int64_t n = 0; n < N; n++)
                for (int64_t k = 0; k < K; k++) {
                    value[size_t(k * N + n)] = w.value[size_t(k * N + n)];
                    if (panel_of(n) != panel_t::usual || k / kind.block != K / 2 / kind.block) continue;
                    if (k % kind.block == 0) view.set_scale(k, n, encoded(kind.scale, scales[n % 3]));
                    const float code = decoded(kind.wei, view.code(k, n)),
                                zero = kind.zero_points() ? float(view.zero_point(k, n))
                                       : kind.zeros()     ? 8.f
                                                          : 0.f;
                    value[size_t(k * N + n)] = (code - zero) * scales[n % 3];
                }
            const bytes_t out =
                    run(pd, gpu(), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w.packed}}).at(MXDNN_ARG_DST);
            for (int64_t m = 0; m < M; m += 41)
                for (int64_t n = 0; n < N; n++) {
                    if (panel_of(n) != panel_t::usual) continue;
                    float want = 0;
                    for (int64_t k = 0; k < K; k++) want += x[size_t(m * K + k)] * value[size_t(k * N + n)];
                    if (relu && want < 0) want = 0;
                    uint16_t bits;
                    std::memcpy(&bits, &out[size_t(m * N + n) * 2], 2);
                    const float got = decoded(dt::f16, bits);
                    ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
                            << kind.text() << ": " << got << ", not " << want << " in row " << m << " column "
                            << n << (relu ? " after a relu" : "");
                }
        }
}

// Neither is taken: sums with zeros of f32 may be smaller than every f16, and MX scales are beyond it.
TEST(cuda_cublaslt_f16, leaves_other_weights_to_others) {
    if (!least_rows(kinds[0])) GTEST_SKIP() << "no cuBLASLt";
    EXPECT_EQ(least_rows({dt::u4, dt::f32, dt::bf16, 64}), 0);
    EXPECT_EQ(least_rows({dt::u4, dt::bf16, dt::f32, 64}), 0);
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    for (const dt dst : {dt::f16, dt::f32}) {
        const mxdnn::mx_matmul::primitive_desc pd(gpu(), memory::desc({4096, K}, dt::f16, tag::ab),
                memory::desc({K, N}, dt::f4_e2m1, tag::any), memory::desc({4096, N}, dst, tag::ab), attr);
        EXPECT_NE(std::string(pd.impl_info_str()), cublaslt_f16_mx_matmul_t::impl_name);
    }
    EXPECT_NE(std::string(make_pd(kinds[0], 4096, dt::bf16).impl_info_str()),
            cublaslt_f16_mx_matmul_t::impl_name);
}

} // namespace
