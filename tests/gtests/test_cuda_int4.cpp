// SPDX-License-Identifier: Apache-2.0
// Every weight of int4 by itself, on every implementation that keeps it exact: a row of the source that has
// an infinity in one place takes it from there with the weight's sign, one that has 1 there takes the weight.
#include <cmath>

#include "cuda_call.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;

namespace {

constexpr memory::dim K = 256, N = 1280, block = 32;
// The exponents of scales, block after block of K: subnormal ones, the least and the largest that kernels
// have a fast way for, those next to them, and the largest with which weights are finite.
constexpr uint32_t exponents[] = {0, 1, 64, 65, 127, 192, 193, 246};
static_assert(sizeof(exponents) / sizeof(exponents[0]) == K / block, "one for each block");

// Differences of codes and zero points reach from -127 to 15, and, in some columns, beyond.
uint32_t zero_of(int64_t n) {
    constexpr uint32_t zeros[] = {15, 31, 47, 63, 79, 95, 111, 127, 143, 255};
    return zeros[n % 10];
}
// Every mantissa for every zero point, and both signs.
uint32_t scale_of(int64_t k, int64_t n) {
    return exponents[k / block] << 7 | uint32_t(n / 10) | uint32_t(k / block + n) % 2 << 15;
}
uint32_t code_of(int64_t k, int64_t n) { return uint32_t(k + n / 3) % 16; }
float weight(bool zeros, int64_t k, int64_t n) {
    const float code = decode_value(zeros ? mxdnn_u4 : mxdnn_s4, code_of(k, n));
    return (zeros ? code - float(zero_of(n)) : code) * decode_value(mxdnn_bf16, scale_of(k, n));
}

void expect_weights(mxdnn::mx_matmul::primitive_desc &pd, memory::dim M, bool zeros) {
    const std::string what =
            std::string(pd.impl_info_str()) + (zeros ? " u4" : " s4") + " M " + std::to_string(M);
    const memory::desc wei = pd.weights_desc();
    bytes_t weights(wei.get_size(), 0);
    packed_view_t view{layout_of(*wei.get()), shape_of(*wei.get()), weights.data()};
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            view.set_code(k, n, code_of(k, n));
            if (k % block) continue;
            view.set_scale(k, n, scale_of(k, n));
            if (zeros) view.set_zero_point(k, n, zero_of(n));
        }
    const auto place = [](int64_t m) { return (m * 37 + 5) % K; };
    for (uint16_t special : {0x3F80, 0x7F80, 0xFF80, 0x7FC0}) {
        const float x = decode_value(mxdnn_bf16, special);
        bytes_t src(size_t(M * K) * 2, 0);
        for (int64_t m = 0; m < M; m++) std::memcpy(&src[size_t(m * K + place(m)) * 2], &special, 2);
        const bytes_t out =
                run(pd, gpu(), {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, weights}}).at(MXDNN_ARG_DST);
        for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < N; n++) {
                float got;
                std::memcpy(&got, &out[size_t(m * N + n) * 4], 4);
                const float w = weight(zeros, place(m), n), want = x * w;
                // The least bf16 is no sum of two.
                if (std::isinf(x) && std::fabs(w) == std::ldexp(1.f, -133)) continue;
                ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
                        << what << ": " << x << " times " << w << " is " << got << " in row " << m
                        << " column " << n << ", scale " << std::hex << scale_of(place(m), n) << " code "
                        << code_of(place(m), n);
            }
    }
}

TEST(cuda_int4, infinities_take_the_sign_of_every_weight) {
    int found = 0;
    for (bool zeros : {false, true})
        for (memory::dim M : {1, 2, 16, 17, 64, 300}) {
            mxdnn::primitive_attr attr;
            attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {block, 1}, dt::bf16);
            if (zeros) attr.set_zero_points(MXDNN_ARG_WEIGHTS, 3, {block, 1}, dt::u8);
            mxdnn::mx_matmul::primitive_desc pd(gpu(), memory::desc({M, K}, dt::bf16, tag::ab),
                    memory::desc({K, N}, zeros ? dt::u4 : dt::s4, tag::any),
                    memory::desc({M, N}, dt::f32, tag::ab), attr, true);
            for (bool more = bool(pd); more; more = pd.next_impl()) {
                const std::string name = pd.impl_info_str();
                if (name.find("cublaslt") != std::string::npos) continue; // weights are rounded there
                found++;
                expect_weights(pd, M, zeros);
                if (HasFatalFailure()) return;
            }
        }
    if (!found) GTEST_SKIP() << "no device that has a kernel for int4";
}

} // namespace
