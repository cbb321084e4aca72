// SPDX-License-Identifier: Apache-2.0
// Impossible problems: shapes, types and attributes that primitive descriptors refuse. The message contains
// the values that do not match.
#include "test_api_util.hpp"

using namespace api_test;

namespace {

using mode = mxdnn::quantization_mode;

struct Problems : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn_primitive_desc_t out = poison<mxdnn_primitive_desc_t>();
    void TearDown() override { EXPECT_EQ(out, poison<mxdnn_primitive_desc_t>()); }

    mxdnn_status_t matmul(const memory::desc &src, const memory::desc &wei, const memory::desc &bias,
            const memory::desc &dst, const mxdnn::primitive_attr &attr = mxfp4_weights_attr()) {
        return mxdnn_mx_matmul_primitive_desc_create(
                &out, eng.get(), src.get(), wei.get(), bias.get(true), dst.get(), attr.get());
    }
    mxdnn_status_t reorder(const memory::desc &src, const memory::desc &dst,
            const mxdnn::primitive_attr &attr = mxdnn::primitive_attr()) {
        return mxdnn_mx_reorder_primitive_desc_create(
                &out, src.get(), eng.get(), dst.get(), eng.get(), attr.get());
    }
};

memory::desc plain(const memory::dims &dims, dt type = dt::bf16) {
    constexpr tag tags[] = {tag::undef, tag::a, tag::ab, tag::abc, tag::abcd};
    return memory::desc(dims, type, tags[dims.size()]);
}
memory::desc fp4(const memory::dims &dims, tag t = tag::any) { return memory::desc(dims, dt::f4_e2m1, t); }
const memory::desc no_bias;

mxdnn::primitive_attr scales(
        int arg, int mask, const memory::dims &groups, dt type = dt::e8m0, mode m = mode::static_sazp) {
    mxdnn::primitive_attr a;
    a.set_scales(arg, mask, groups, type, false, m);
    return a;
}

} // namespace

// The base cases of this file are legal, so each refusal has one cause.
TEST_F(Problems, TheBaseCasesAreLegal) {
    mxdnn_primitive_desc_t pd = nullptr;
    std::swap(out, pd);
    EXPECT_OK(matmul(plain({4, 64}), fp4({64, 32}), plain({1, 32}), plain({4, 32})));
    mxdnn_primitive_desc_destroy(out);
    EXPECT_OK(matmul(plain({3, 4, 64}), fp4({3, 64, 32}), no_bias, plain({3, 4, 32}),
            scales(MXDNN_ARG_WEIGHTS, 7, {1, 32, 1})));
    mxdnn_primitive_desc_destroy(out);
    EXPECT_OK(reorder(plain({64, 32}), fp4({64, 32}, tag::ab), mxfp4_quantise_attr()));
    mxdnn_primitive_desc_destroy(out);
    std::swap(out, pd);
}

TEST_F(Problems, MatmulShapes) {
    const auto bad = mxdnn_invalid_shape;
    EXPECT_REFUSED(bad, matmul(plain({4, 65}), fp4({64, 32}), no_bias, plain({4, 32})), "65", "64", "K");
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({4, 33})), "33", "32");
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({5, 32})), "5x32", "4");
    EXPECT_REFUSED(
            bad, matmul(plain({1, 4, 64}), fp4({64, 32}), no_bias, plain({4, 32})), "have 3, 2 and 2 dims");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({1, 4, 32})), "have 2, 2 and 3 dims");
    EXPECT_REFUSED(bad, matmul(plain({64}), memory::desc({64}, dt::f4_e2m1, tag::any), no_bias, plain({1})),
            "have 1, 1 and 1 dims");
    const auto batched = scales(MXDNN_ARG_WEIGHTS, 7, {1, 32, 1});
    EXPECT_REFUSED(bad, matmul(plain({2, 4, 64}), fp4({3, 64, 32}), no_bias, plain({3, 4, 32}), batched),
            "2x4x64", "3x64x32");
    EXPECT_REFUSED(
            bad, matmul(plain({2, 4, 64}), fp4({2, 64, 32}), no_bias, plain({5, 4, 32}), batched), "5x4x32");
    EXPECT_REFUSED(
            bad, matmul(plain({1, 4, 64}), fp4({1, 64, 32}), no_bias, plain({5, 4, 32}), batched), "5x4x32");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), plain({1, 31}), plain({4, 32})), "1x31", "bias");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), plain({3, 32}), plain({4, 32})), "3x32", "bias");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), plain({1, 1, 32}), plain({4, 32})), "1x1x32", "bias");
    EXPECT_REFUSED(
            mxdnn_unimplemented, matmul(plain({4, 64}), fp4({64, runtime}), no_bias, plain({4, 32})), "64x*");
    // K of src is known from the weights only.
    EXPECT_REFUSED(bad, matmul(plain({4, runtime}), fp4({64, 32}), no_bias, plain({4, 32})), "4x*",
            "K is * in src and 64");
    // Weights in the order of frameworks.
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), fp4({32, 64}), no_bias, plain({4, 32})),
            "K is 64 in src and 32 in weights", "[.., N, K]", "ba");
}

TEST_F(Problems, MatmulTypes) {
    const auto bad = mxdnn_invalid_data_type;
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}, dt::s32), fp4({64, 32}), no_bias, plain({4, 32})), "src", "s32");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}, dt::e8m0), fp4({64, 32}), no_bias, plain({4, 32})), "src", "e8m0");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({4, 32}, dt::s32)), "dst", "s32");
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), fp4({64, 32}), plain({1, 32}, dt::s32), plain({4, 32})),
            "bias", "s32");
    EXPECT_REFUSED(
            bad, matmul(plain({4, 64}), fp4({64, 32}), plain({1, 32}, dt::s8), plain({4, 32})), "bias", "s8");
    for (dt t : {dt::f32, dt::bf16, dt::f16})
        EXPECT_REFUSED(mxdnn_unimplemented,
                matmul(plain({4, 64}), plain({64, 32}, t), no_bias, plain({4, 32})),
                t == dt::f32   ? "f32"
                : t == dt::f16 ? "f16"
                               : "bf16");
    const memory::desc any_src({4, 64}, dt::bf16, tag::any);
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, matmul(any_src, fp4({64, 32}), no_bias, plain({4, 32})), "src", "any");
    const memory::desc any_dst({4, 32}, dt::bf16, tag::any);
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, matmul(plain({4, 64}), fp4({64, 32}), no_bias, any_dst), "dst", "any");
    const memory::desc grouped = memory::desc::grouped({4, 64}, dt::bf16, 0, 2);
    EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(grouped, fp4({64, 32}), no_bias, plain({4, 32})), "src",
            "grouped");
}

TEST_F(Problems, MatmulWeightAttributes) {
    const auto bad = mxdnn_invalid_arguments;
    const auto with = [&](const mxdnn::primitive_attr &a, tag t = tag::any) {
        return matmul(plain({4, 64}), fp4({64, 32}, t), no_bias, plain({4, 32}), a);
    };
    const int W = MXDNN_ARG_WEIGHTS;
    for (tag t : {tag::any, tag::ab, tag::ba}) {
        EXPECT_REFUSED(bad, with(mxdnn::primitive_attr(), t), "weights", "no scales");
        EXPECT_REFUSED(bad, with(scales(W, 1, {32, 1}), t), "mask 1", "mask 3");
        EXPECT_REFUSED(bad, with(scales(W, 7, {32, 1}), t), "mask 7", "mask 3");
        EXPECT_REFUSED(bad, with(scales(W, 3, {1, 32}), t), "1x32", "32x1");
        EXPECT_REFUSED(bad, with(scales(W, 3, {31, 1}), t), "31");
        EXPECT_REFUSED(bad, with(scales(W, 3, {64, 1}), t), "64");
        EXPECT_REFUSED(bad, with(scales(W, 3, {16, 1}), t), "16", "e8m0");
        EXPECT_REFUSED(bad, with(scales(W, 3, {32, 1}, dt::f8_e4m3), t), "32", "f8_e4m3");
        EXPECT_REFUSED(bad, with(scales(W, 3, {32, 1}, dt::f32), t), "f32");
        EXPECT_REFUSED(bad, with(scales(W, 3, {}), t), "1");
        EXPECT_REFUSED(bad, with(scales(W, 3, {32, 1}, dt::e8m0, mode::dynamic_mx), t), "dynamic");
        mxdnn::primitive_attr zp = mxfp4_weights_attr();
        zp.set_zero_points(W, 3, {32, 1}, dt::u8);
        EXPECT_REFUSED(bad, with(zp, t), "zero point");
        mxdnn::primitive_attr global = mxfp4_weights_attr();
        global.set_global_scale(W, mode::static_sazp);
        EXPECT_REFUSED(bad, with(global, t), "global");
    }
    // int4: zero points follow the scales.
    const auto int4 = [&](const memory::dims &groups, const memory::dims &zp_groups, int zp_mask) {
        mxdnn::primitive_attr a = scales(W, 3, groups, dt::f16);
        a.set_zero_points(W, zp_mask, zp_groups);
        return matmul(plain({4, 64}), memory::desc({64, 32}, dt::u4, tag::any), no_bias, plain({4, 32}), a);
    };
    EXPECT_REFUSED(bad, int4({32, 1}, {64, 1}, 3), "64x1", "32x1");
    EXPECT_REFUSED(bad, int4({32, 1}, {32, 1}, 1), "mask 1", "mask 3");
    EXPECT_REFUSED(bad, int4({48, 1}, {48, 1}, 3), "48");
    EXPECT_REFUSED(bad,
            matmul(plain({4, 64}), memory::desc({64, 32}, dt::s4, tag::any), no_bias, plain({4, 32}),
                    scales(W, 3, {32, 1}, dt::e8m0)),
            "s4", "e8m0");
    // Minima are floating-point numbers, of u4.
    const auto minima = [&](dt elem, dt type) {
        mxdnn::primitive_attr a = scales(W, 3, {32, 1}, dt::f16);
        a.set_zero_points(W, 3, {32, 1}, type);
        a.set_zero_points_kind(W, mxdnn::zero_points_kind::minimum);
        return matmul(plain({4, 64}), memory::desc({64, 32}, elem, tag::any), no_bias, plain({4, 32}), a);
    };
    EXPECT_REFUSED(bad, minima(dt::u4, dt::u8), "bf16, f16 or f32");
    EXPECT_REFUSED(bad, minima(dt::s8, dt::f16), "s8 is symmetric");
    // s8 has groups or, as a source, rows.
    const auto int8 = [&](const memory::dims &groups) {
        return matmul(plain({4, 64}), memory::desc({64, 32}, dt::s8, tag::any), no_bias, plain({4, 32}),
                scales(W, 3, groups, dt::f16));
    };
    EXPECT_REFUSED(bad, int8({48, 1}), "48", "32, 64, 128 or 256");
    EXPECT_REFUSED(bad, int8({16, 1}), "16", "one scale per row");
    // A scale for a batch that has none of its own.
    EXPECT_REFUSED(bad,
            matmul(plain({3, 4, 64}), fp4({3, 64, 32}), no_bias, plain({3, 4, 32}), scales(W, 6, {32, 1})),
            "mask 6", "mask 7");
}

TEST_F(Problems, MatmulPackedWeights) {
    const auto bad = mxdnn_invalid_arguments;
    const memory::desc packed = mxfp4_matmul(eng, 4, 64, 32).weights_desc();
    const auto with = [&](const mxdnn::primitive_attr &a) {
        return matmul(plain({4, 64}), packed, no_bias, plain({4, 32}), a);
    };
    const int W = MXDNN_ARG_WEIGHTS;
    EXPECT_REFUSED(bad, with(scales(W, 3, {16, 1}, dt::f8_e4m3)), "16", "f8_e4m3", packed.to_string());
    EXPECT_REFUSED(bad, with(scales(W, 3, {1, 32})), "1x32");
    mxdnn::primitive_attr layout = mxfp4_weights_attr();
    layout.set_scales_layout(W, mxdnn::scales_layout::swizzle_128x4);
    EXPECT_REFUSED(bad, with(layout), "weights", "layout");
    mxdnn::primitive_attr zp;
    zp.set_zero_points(W, 3, {32, 1}, dt::u8);
    EXPECT_REFUSED(bad, with(zp), "zero points");
    EXPECT_REFUSED(
            mxdnn_invalid_shape, matmul(plain({4, 32}), packed, no_bias, plain({4, 32})), "4x32", "64x32");
    // What is packed for another target family is never reinterpreted.
    mxdnn_primitive_desc_t pd = nullptr;
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    const mxdnn_status_t st = mxdnn_mx_matmul_primitive_desc_create(
            &pd, cuda.get(), plain({4, 64}).get(), packed.get(), nullptr, plain({4, 32}).get(), nullptr);
    EXPECT_TRUE(refused(st, mxdnn_incompatible_target, {"cpu:x64", "cuda:sm_90"}));
}

TEST_F(Problems, MatmulSourceAndDestination) {
    const auto bad = mxdnn_invalid_arguments;
    const auto attr_with = [](int arg, int mask, const memory::dims &groups, dt type, mode m) {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        a.set_scales(arg, mask, groups, type, false, m);
        return a;
    };
    const int S = MXDNN_ARG_SRC, D = MXDNN_ARG_DST;
    const memory::desc w = fp4({64, 32}), x8 = plain({4, 64}, dt::f8_e4m3), y8 = plain({4, 32}, dt::f8_e4m3);
    EXPECT_REFUSED(bad, matmul(x8, w, no_bias, plain({4, 32})), "src", "f8_e4m3", "no scales");
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), w, no_bias, y8), "dst", "f8_e4m3", "no scales");
    EXPECT_REFUSED(bad,
            matmul(x8, w, no_bias, plain({4, 32}), attr_with(S, 3, {32, 1}, dt::e8m0, mode::static_sazp)),
            "32x1", "1x32");
    EXPECT_REFUSED(bad,
            matmul(plain({4, 64}), w, no_bias, y8, attr_with(D, 3, {32, 1}, dt::e8m0, mode::dynamic_mx)),
            "32x1", "1x32");
    EXPECT_REFUSED(bad,
            matmul(x8, w, no_bias, plain({4, 32}), attr_with(S, 3, {1, 32}, dt::e8m0, mode::dynamic_mx)),
            "src", "dynamic");
    EXPECT_REFUSED(bad,
            matmul(plain({4, 64}), w, no_bias, y8, attr_with(D, 3, {1, 32}, dt::e8m0, mode::dynamic_fp)),
            "dst", "f8_e4m3", "e8m0");
    mxdnn::primitive_attr global = scales(MXDNN_ARG_WEIGHTS, 7, {1, 32, 1});
    global.set_scales(S, 7, {1, 1, 16}, dt::f8_e4m3);
    global.set_global_scale(S, mode::static_sazp);
    EXPECT_REFUSED(mxdnn_unimplemented,
            matmul(memory::desc({runtime, 4, 64}, dt::f4_e2m1, memory::dims{256, 64, 1}), fp4({1, 64, 32}),
                    no_bias, plain({runtime, 4, 32}), global),
            "src", "*x4x64", "global scale");
    // High precision has no scales.
    EXPECT_REFUSED(bad,
            matmul(plain({4, 64}), w, no_bias, plain({4, 32}),
                    attr_with(S, 3, {1, 32}, dt::e8m0, mode::static_sazp)),
            "src", "bf16");
    EXPECT_REFUSED(bad,
            matmul(plain({4, 64}), w, no_bias, plain({4, 32}),
                    attr_with(D, 3, {1, 32}, dt::e8m0, mode::dynamic_mx)),
            "dst", "bf16");
}

TEST_F(Problems, MatmulPostOps) {
    const auto with = [&](const mxdnn::post_ops &po, mxdnn_dim_t N, mxdnn_dim_t dst_n,
                              dt dst_type = dt::bf16) {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        a.set_post_ops(po);
        return matmul(plain({4, 64}), fp4({64, N}), no_bias, plain({4, dst_n}, dst_type), a);
    };
    mxdnn::post_ops gated;
    gated.append_gated(mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
    EXPECT_REFUSED(mxdnn_invalid_shape, with(gated, 33, 16), "33");
    EXPECT_REFUSED(mxdnn_invalid_shape, with(gated, 32, 32), "16", "4x32");
    for (const memory::dims &d : {memory::dims{4, 31}, {3, 32}, {1, 4, 32}, {32, 4}}) {
        mxdnn::post_ops binary;
        binary.append_binary(mxdnn::algorithm::binary_add, plain(d, dt::f32));
        std::string text;
        for (mxdnn_dim_t x : d) text += (text.empty() ? "" : "x") + std::to_string(x);
        EXPECT_REFUSED(mxdnn_invalid_shape, with(binary, 32, 32), text, "4x32");
    }
    // Before the gate the operand has N columns, after it N / 2.
    mxdnn::post_ops after = gated.clone();
    after.append_binary(mxdnn::algorithm::binary_mul, plain({1, 32}, dt::f32));
    EXPECT_REFUSED(mxdnn_invalid_shape, with(after, 32, 16), "1x32", "4x16");
    mxdnn::post_ops sum;
    sum.append_sum(1.f, 0, dt::f32);
    EXPECT_REFUSED(mxdnn_invalid_arguments, with(sum, 32, 32), "f32", "bf16");
    mxdnn::post_ops sum8;
    sum8.append_sum();
    mxdnn::primitive_attr a = mxfp4_weights_attr();
    a.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mode::dynamic_mx);
    a.set_post_ops(sum8);
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({4, 32}, dt::f8_e4m3), a), "sum", "f8_e4m3");
}

TEST_F(Problems, Reorder) {
    const auto bad = mxdnn_invalid_arguments;
    EXPECT_REFUSED(mxdnn_invalid_shape, reorder(plain({64, 32}), plain({32, 64})), "64x32", "32x64");
    EXPECT_REFUSED(mxdnn_invalid_shape, reorder(plain({64, 32}), plain({1, 64, 32})), "64x32", "1x64x32");
    EXPECT_REFUSED(mxdnn_invalid_shape, reorder(plain({64}), plain({64})), "64");
    EXPECT_REFUSED(bad, reorder(memory::desc({64, 32}, dt::bf16, tag::any), plain({64, 32})),
            "src is `any`; the source");
    EXPECT_REFUSED(mxdnn_invalid_data_type, reorder(plain({64, 32}, dt::s32), plain({64, 32})), "src", "s32");
    EXPECT_REFUSED(mxdnn_invalid_data_type, reorder(plain({64, 32}), plain({64, 32}, dt::u64)), "dst", "u64");
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), fp4({64, 32}, tag::ab)), "dst", "f4_e2m1", "no scales");
    EXPECT_REFUSED(bad, reorder(fp4({64, 32}, tag::ab), plain({64, 32})), "src", "f4_e2m1", "no scales");
    const int S = MXDNN_ARG_SRC, D = MXDNN_ARG_DST;
    const memory::desc f = fp4({64, 32}, tag::ab), packed = mxfp4_matmul(eng, 1, 64, 32).weights_desc();
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), f, scales(D, 3, {32, 1}, dt::e8m0, mode::dynamic_fp)),
            "f4_e2m1", "e8m0");
    EXPECT_REFUSED(bad, reorder(f, plain({64, 32}), scales(S, 3, {32, 1}, dt::e8m0, mode::dynamic_mx)), "src",
            "dynamic");
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}), scales(S, 3, {32, 1})), "src", "bf16");
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}), mxfp4_weights_attr()),
            "attributes of src and dst");
    mxdnn::primitive_attr post;
    mxdnn::post_ops po;
    po.append_eltwise(mxdnn::algorithm::eltwise_relu, 0, 0);
    post.set_post_ops(po);
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}), post), "post-ops");
    // Packed bytes contain their scales, so static scales are not possible.
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), packed, scales(D, 3, {32, 1})), "static");
    EXPECT_REFUSED(bad,
            reorder(plain({64, 32}), packed, scales(D, 3, {16, 1}, dt::f8_e4m3, mode::dynamic_fp)), "f8_e4m3",
            packed.to_string());
    EXPECT_REFUSED(mxdnn_invalid_shape, reorder(plain({64, 33}), packed), "64x33", "64x32");
    // One global scale per matrix, while the number of matrices is unknown.
    mxdnn::primitive_attr global = scales(S, 7, {1, 16, 1}, dt::f8_e4m3);
    global.set_global_scale(S, mode::static_sazp);
    EXPECT_REFUSED(mxdnn_unimplemented,
            reorder(memory::desc({runtime, 64, 32}, dt::f4_e2m1, memory::dims{2048, 32, 1}),
                    plain({runtime, 64, 32}), global),
            "src", "*x64x32", "global scale");
    mxdnn::primitive_attr global_only = scales(D, 3, {1, 16}, dt::f8_e4m3);
    global_only.set_global_scale(D, mode::dynamic_fp);
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), f, global_only), "static scales and a dynamic global scale");
    // Rounding that a format does not have.
    mxdnn::primitive_attr even = scales(D, 3, {32, 1}, dt::e8m0, mode::dynamic_mx);
    even.set_scale_rounding(D, mxdnn::scale_rounding::even);
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}, dt::s8), even), "even");
    // Storage that a type does not have.
    mxdnn::primitive_attr dense = scales(D, 3, {32, 1}, dt::e8m0, mode::dynamic_mx);
    dense.set_element_packing(D, mxdnn::element_packing::dense);
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}, dt::f8_e4m3), dense), "f8_e4m3", "dense");
    mxdnn::primitive_attr swizzled = scales(D, 3, {32, 1}, dt::f16, mode::dynamic_affine);
    swizzled.set_scales_layout(D, mxdnn::scales_layout::swizzle_128x4);
    EXPECT_REFUSED(bad, reorder(plain({64, 32}), plain({64, 32}, dt::s4), swizzled), "f16", "128x4");
}

TEST_F(Problems, ReorderToTwoDestinations) {
    const auto bad = mxdnn_invalid_arguments;
    const auto two = [&](const memory::desc &src, const memory::desc &dst, const memory::desc &dst_1,
                             const mxdnn::primitive_attr &attr) {
        return mxdnn_mx_reorder_primitive_desc_create_with_dst_1(
                &out, src.get(), eng.get(), dst.get(), dst_1.get(), eng.get(), attr.get());
    };
    const memory::desc src = plain({64, 32}), codes = plain({64, 32}, dt::f8_e4m3);
    mxdnn::primitive_attr attr = scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, mode::dynamic_mx);
    // Each refusal says which of the two.
    EXPECT_REFUSED(bad, two(src, codes, codes, attr), "second destination", "no scales");
    attr.set_scales(MXDNN_ARG_DST_1, 3, {32, 1}, dt::e8m0, false, mode::dynamic_mx);
    EXPECT_REFUSED(mxdnn_invalid_shape, two(src, codes, plain({64, 33}, dt::f8_e4m3), attr),
            "second destination", "64x33");
    EXPECT_REFUSED(bad, two(src, codes, memory::desc({64, 32}, dt::f16, tag::any), attr),
            "second destination", "any");
    EXPECT_REFUSED(bad, two(src, plain({64, 32}), codes, attr), "dst is bf16");
    EXPECT_REFUSED(mxdnn_unimplemented, two(plain({runtime, 32}), codes, codes, attr), "runtime");
    // What is packed transposed is packed from values.
    mxdnn::primitive_attr turned = scales(MXDNN_ARG_DST_1, 3, {1, 32}, dt::e8m0, mode::dynamic_mx);
    turned.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mode::dynamic_mx);
    EXPECT_REFUSED(mxdnn_unimplemented, two(codes, codes, fp4({64, 32}), turned), "src is f8_e4m3",
            "packed transposed");
    EXPECT_REFUSED(mxdnn_invalid_shape,
            two(plain({64}), codes, memory::desc({64}, dt::f4_e2m1, tag::any), turned), "src is 64",
            "two dims");
    // Attributes of a second destination that is not there.
    EXPECT_REFUSED(bad, reorder(src, codes, attr), "dst_1");
    mxdnn::primitive_attr weights = mxfp4_weights_attr();
    weights.set_scale_rounding(MXDNN_ARG_DST_1, mxdnn::scale_rounding::rceil);
    EXPECT_REFUSED(bad, matmul(plain({4, 64}), fp4({64, 32}), no_bias, plain({4, 32}), weights), "dst_1");
}

TEST_F(Problems, ReorderEngines) {
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    const memory::desc packed = mxfp4_matmul(eng, 1, 64, 32).weights_desc(), p = plain({64, 32});
    EXPECT_REFUSED(mxdnn_incompatible_target,
            mxdnn_mx_reorder_primitive_desc_create(
                    &out, p.get(), eng.get(), packed.get(), cuda.get(), mxfp4_quantise_attr().get()),
            "cpu:x64", "cuda:sm_90");
    EXPECT_REFUSED(mxdnn_incompatible_target,
            mxdnn_mx_reorder_primitive_desc_create(
                    &out, packed.get(), cuda.get(), p.get(), eng.get(), nullptr),
            "cpu:x64", "cuda:sm_90");
}

// Some targets have further names. They mean the same target.
TEST_F(Problems, TargetsHaveFurtherNames) {
    const std::pair<const char *, const char *> names[] = {{"cuda:sm_86", "cuda:sm_80"},
            {"cuda:sm_89", "cuda:sm_80"}, {"cuda:sm_103", "cuda:sm_100"}, {"cuda:sm_121", "cuda:sm_120"}};
    for (const auto &[name, target] : names) {
        const mxdnn::engine e = mxdnn::engine::for_target(name), same = mxdnn::engine::for_target(target);
        EXPECT_EQ(e.get_target(), target);
        EXPECT_EQ(e, same) << name;
        const auto pd = mxfp4_matmul(e, 4, 64, 32);
        EXPECT_EQ(pd.weights_desc(), mxfp4_matmul(same, 4, 64, 32).weights_desc()) << name;
        EXPECT_EQ(pd.impl_info_str(), mxfp4_matmul(same, 4, 64, 32).impl_info_str());
    }
}

// Packed weights name their target family only. Any engine of the family unpacks them, present or not.
TEST_F(Problems, AFamilyIsATarget) {
    EXPECT_EQ(mxdnn::engine::for_target("cpu:x64"), mxdnn::engine::for_target("cpu:x64:avx2"));
    EXPECT_EQ(mxdnn::engine::for_target("cuda"), mxdnn::engine::for_target("cuda:sm_80"));
    for (const char *name : {"cpu:x64:avx512_core", "cuda:sm_120"}) {
        const mxdnn::engine e = mxdnn::engine::for_target(name);
        const auto pd = mxfp4_matmul(e, 4, 64, 32);
        const memory packed = pack_mxfp4(e, pd.weights_desc(), random_bf16(64 * 32, 5));
        const mxdnn::engine family = mxdnn::engine::for_target(packed.get_desc().get_target());
        const memory read(packed.get_desc(), family, packed.get_data_handle());
        memory values({{64, 32}, dt::f32, tag::ab}, eng), same({{64, 32}, dt::f32, tag::ab}, eng);
        mxdnn::stream s(eng);
        mxdnn::mx_reorder(read, values).execute(s, read, values);
        mxdnn::mx_reorder(packed, same).execute(s, packed, same);
        EXPECT_EQ(std::memcmp(values.get_data_handle(), same.get_data_handle(), 64 * 32 * 4), 0) << name;
    }
    mxdnn_engine_t out = nullptr;
    for (const char *no_family : {"", "cpu", "cpu:x64:", "none"})
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out, no_family), "possible are");
}

// Targets that are not present describe and pack weights. They do not compute.
TEST_F(Problems, TargetsThatAreNotHere) {
    for (const char *name : {"cpu:x64:avx512_core_amx", "cpu:x64:avx512_core", "cpu:x64:avx2"}) {
        const mxdnn::engine e = mxdnn::engine::for_target(name);
        EXPECT_EQ(e.get_target(), name);
        EXPECT_EQ(e.get_kind(), mxdnn::engine::kind::cpu);
        const auto pd = mxfp4_matmul(e, 4, 64, 32);
        EXPECT_EQ(pd.weights_desc(), mxfp4_matmul(eng, 4, 64, 32).weights_desc())
                << "one layout for all of x64";
        const std::vector<uint16_t> nk = random_bf16(64 * 32, 5);
        const memory here = pack_mxfp4(eng, pd.weights_desc(), nk),
                     there = pack_mxfp4(e, pd.weights_desc(), nk);
        EXPECT_EQ(std::memcmp(here.get_data_handle(), there.get_data_handle(), pd.weights_desc().get_size()),
                0);
        mxdnn_primitive_t p = nullptr;
        plant_error();
        const mxdnn_status_t st = mxdnn_primitive_create(&p, pd.get());
        if (st == mxdnn_success)
            mxdnn_primitive_destroy(p);
        else
            EXPECT_TRUE(refused(st, mxdnn_device_unavailable, {name, "mx_matmul"}));
    }
}

// With tiles, few rows wait for decoding, and a small problem for the configuration of tiles.
TEST_F(Problems, FewRowsAreMultipliedWithoutTiles) {
    const mxdnn::engine e = mxdnn::engine::for_target("cpu:x64:avx512_core_amx");
    mxdnn::primitive_attr groups;
    groups.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::bf16);
    const auto on_tiles = [&](dt weights, mxdnn_dim_t M, mxdnn_dim_t K, mxdnn_dim_t N) {
        const auto pd = mxdnn::mx_matmul::primitive_desc(e, memory::desc({M, K}, dt::bf16, tag::ab),
                memory::desc({K, N}, weights, tag::any), memory::desc({M, N}, dt::bf16, tag::ab),
                weights == dt::s4 ? groups : mxfp4_weights_attr());
        return pd.impl_info_str() == "jit:avx512_core_amx";
    };
    EXPECT_FALSE(on_tiles(dt::f4_e2m1, 1, 128, 256));
    EXPECT_TRUE(on_tiles(dt::f4_e2m1, 1, 128, 272));
    EXPECT_TRUE(on_tiles(dt::f4_e2m1, 2, 128, 256));
    EXPECT_FALSE(on_tiles(dt::s4, 2, 2880, 2880));
    EXPECT_TRUE(on_tiles(dt::s4, 3, 2880, 2880));
    for (const dt weights : {dt::f4_e2m1, dt::s4})
        EXPECT_TRUE(on_tiles(weights, MXDNN_RUNTIME_DIM_VAL, 128, 256));
    EXPECT_FALSE(on_tiles(dt::s8, 1, 2880, 2880)); // MXINT8
    EXPECT_TRUE(on_tiles(dt::s8, 2, 2880, 2880));
}

TEST_F(Problems, ExpertPrimitivesAnswer) {
    const memory::desc x = memory::desc::grouped({8, 64}, dt::bf16, 0, 2),
                       y = memory::desc::grouped({8, 32}, dt::bf16, 0, 2);
    // By reference: the handle is read after the call that fills it.
    const auto answers = [](mxdnn_status_t st, mxdnn_primitive_desc_t &pd, const char *name) {
        EXPECT_EQ(st, mxdnn_success) << name << ": " << mxdnn_get_last_error();
        if (st == mxdnn_success) EXPECT_OK(mxdnn_primitive_desc_destroy(pd));
        pd = nullptr;
    };
    mxdnn_primitive_desc_t pd = nullptr;
    plant_error();
    answers(mxdnn_grouped_matmul_primitive_desc_create(&pd, eng.get(), x.get(), fp4({2, 64, 32}).get(),
                    nullptr, y.get(), scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}).get()),
            pd, "grouped_matmul");
    plant_error();
    answers(mxdnn_moe_route_primitive_desc_create(&pd, eng.get(), plain({8, 4}, dt::f32).get(), 2,
                    mxdnn_route_softmax_topk, 0, 1, 1, nullptr),
            pd, "moe_route");
    plant_error();
    answers(mxdnn_moe_permute_primitive_desc_create(
                    &pd, eng.get(), plain({8, 64}).get(), plain({64, 64}).get(), 1, 2, 32, nullptr),
            pd, "moe_permute");
    plant_error();
    answers(mxdnn_moe_unpermute_primitive_desc_create(
                    &pd, eng.get(), plain({64, 64}).get(), plain({8, 64}).get(), nullptr),
            pd, "moe_unpermute");
    EXPECT_THROW((mxdnn::moe_route::primitive_desc(
                         eng, no_bias, 2, mxdnn::algorithm::route_softmax_topk, 0, 1, 1)),
            mxdnn::error);
}
