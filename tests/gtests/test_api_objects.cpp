// SPDX-License-Identifier: Apache-2.0
// Objects give back what was set: attributes, post-ops, descriptors, queries, clones, the implementation
// list, and the error text of each thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <thread>

#include "test_api_util.hpp"

using namespace api_test;

TEST(Objects, AttributesRoundTrip) {
    mxdnn::primitive_attr a;
    EXPECT_EQ(a.get_fpmath_mode(), mxdnn::fpmath_mode::strict);
    EXPECT_EQ(a.get_accumulation_mode(), mxdnn::accumulation_mode::strict);
    EXPECT_EQ(a.get_scratchpad_mode(), mxdnn::scratchpad_mode::library);
    EXPECT_FALSE(a.get_deterministic());
    EXPECT_EQ(a.get_post_ops().len(), 0);
    for (auto mode : {mxdnn::fpmath_mode::bf16, mxdnn::fpmath_mode::f16, mxdnn::fpmath_mode::any,
                 mxdnn::fpmath_mode::tf32, mxdnn::fpmath_mode::strict})
        for (bool ints : {true, false}) {
            a.set_fpmath_mode(mode, ints);
            mxdnn::fpmath_mode m = mxdnn::fpmath_mode::strict;
            bool i = !ints;
            a.get_fpmath_mode(m, i);
            EXPECT_EQ(m, mode);
            EXPECT_EQ(i, ints);
            EXPECT_EQ(a.get_fpmath_mode(), mode);
        }
    for (auto mode : {mxdnn::accumulation_mode::relaxed, mxdnn::accumulation_mode::any,
                 mxdnn::accumulation_mode::s32, mxdnn::accumulation_mode::f32, mxdnn::accumulation_mode::f16,
                 mxdnn::accumulation_mode::strict}) {
        a.set_accumulation_mode(mode);
        EXPECT_EQ(a.get_accumulation_mode(), mode);
    }
    a.set_deterministic(true);
    EXPECT_TRUE(a.get_deterministic());
    EXPECT_FALSE(a.get_constant_weights());
    a.set_constant_weights(true);
    EXPECT_TRUE(a.get_constant_weights());
    a.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    EXPECT_EQ(a.get_scratchpad_mode(), mxdnn::scratchpad_mode::user);

    // A clone is another object, a copy is the same one.
    const mxdnn::primitive_attr clone = a.clone(), copy = a;
    a.set_deterministic(false);
    EXPECT_TRUE(clone.get_deterministic());
    EXPECT_TRUE(clone.get_constant_weights());
    EXPECT_FALSE(copy.get_deterministic());
    EXPECT_EQ(clone.get_scratchpad_mode(), mxdnn::scratchpad_mode::user);
}

TEST(Objects, AttributesOfArgumentsRoundTrip) {
    using mode = mxdnn::quantization_mode;
    mxdnn::primitive_attr a;
    const int args[] = {MXDNN_ARG_SRC, MXDNN_ARG_WEIGHTS, MXDNN_ARG_DST, MXDNN_ARG_DST_1};
    const auto expect_defaults = [&](int arg) {
        SCOPED_TRACE(arg);
        int mask = -1;
        memory::dims groups = {7};
        dt type = dt::f32;
        mode m = mode::dynamic_mx;
        a.get_scales(arg, mask, groups, type, m);
        EXPECT_EQ(mask, 0);
        EXPECT_TRUE(groups.empty());
        EXPECT_EQ(type, dt::undef);
        EXPECT_EQ(m, mode::undef);
        mask = -1, groups = {7}, type = dt::f32;
        a.get_zero_points(arg, mask, groups, type);
        EXPECT_EQ(mask, 0);
        EXPECT_TRUE(groups.empty());
        EXPECT_EQ(type, dt::undef);
        EXPECT_EQ(a.get_zero_points_kind(arg), mxdnn::zero_points_kind::standard);
        EXPECT_EQ(a.get_scale_rounding(arg), mxdnn::scale_rounding::floor);
        EXPECT_EQ(a.get_scales_layout(arg), mxdnn::scales_layout::linear);
        EXPECT_EQ(a.get_global_scale(arg), mode::undef);
        EXPECT_EQ(a.get_element_packing(arg), mxdnn::element_packing::bytes);
    };
    for (int arg : args) expect_defaults(arg);
    EXPECT_EQ(a.get_row_grouping(), mxdnn::row_grouping::ends);
    EXPECT_EQ(a.get_topk_weights_placement(), mxdnn::topk_weights_placement::on_output);
    EXPECT_EQ(a.get_max_rows_hint(), 0);

    for (int arg : args) {
        SCOPED_TRACE(arg);
        a.set_scales(arg, 7, {1, 64, 1}, dt::bf16, false, mode::dynamic_affine);
        a.set_zero_points(arg, 6, {128, 1}, dt::f16);
        a.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
        a.set_scale_rounding(arg, mxdnn::scale_rounding::rceil);
        a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
        a.set_global_scale(arg, mode::dynamic_fp);
        a.set_element_packing(arg, mxdnn::element_packing::dense);
        int mask = -1;
        memory::dims groups;
        dt type = dt::undef;
        mode m = mode::undef;
        a.get_scales(arg, mask, groups, type, m);
        EXPECT_EQ(mask, 7);
        EXPECT_EQ(groups, (memory::dims{64, 1}));
        EXPECT_EQ(type, dt::bf16);
        EXPECT_EQ(m, mode::dynamic_affine);
        a.get_zero_points(arg, mask, groups, type);
        EXPECT_EQ(mask, 6);
        EXPECT_EQ(groups, (memory::dims{128, 1}));
        EXPECT_EQ(type, dt::f16);
        EXPECT_EQ(a.get_zero_points_kind(arg), mxdnn::zero_points_kind::minimum);
        EXPECT_EQ(a.get_scale_rounding(arg), mxdnn::scale_rounding::rceil);
        EXPECT_EQ(a.get_scales_layout(arg), mxdnn::scales_layout::swizzle_128x4);
        EXPECT_EQ(a.get_global_scale(arg), mode::dynamic_fp);
        EXPECT_EQ(a.get_element_packing(arg), mxdnn::element_packing::dense);
        // A value from a getter can be set again.
        mxdnn::primitive_attr again;
        again.set_scales(arg, mask, groups, type);
        // The other descriptors are unchanged.
        if (arg != MXDNN_ARG_DST_1) expect_defaults(MXDNN_ARG_DST_1);
    }
    a.set_row_grouping(mxdnn::row_grouping::padded);
    EXPECT_EQ(a.get_row_grouping(), mxdnn::row_grouping::padded);
    a.set_topk_weights_placement(mxdnn::topk_weights_placement::on_input);
    EXPECT_EQ(a.get_topk_weights_placement(), mxdnn::topk_weights_placement::on_input);
    a.set_max_rows_hint(4096);
    EXPECT_EQ(a.get_max_rows_hint(), 4096);
    memory::dim first = -1, all = -1;
    a.get_expert_range(first, all);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(all, 0);
    a.set_expert_range(16, 128);
    a.get_expert_range(first, all);
    EXPECT_EQ(first, 16);
    EXPECT_EQ(all, 128);
    // What a packed descriptor implies can be read from the descriptor of a primitive.
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    const mxdnn::mx_reorder::primitive_desc pd(
            e, memory::desc({64, 32}, dt::bf16, tag::ab), e, mxfp4_matmul(e, 1, 64, 32).weights_desc());
    int mask = -1;
    memory::dims groups;
    dt type = dt::undef;
    mode m = mode::undef;
    pd.get_primitive_attr().get_scales(MXDNN_ARG_DST, mask, groups, type, m);
    EXPECT_EQ(groups, (memory::dims{32, 1}));
    EXPECT_EQ(type, dt::e8m0);
    EXPECT_EQ(m, mode::dynamic_mx);
}

TEST(Objects, PostOpsRoundTrip) {
    const memory::desc operand({1, 32}, dt::bf16, tag::ab);
    mxdnn::post_ops po;
    po.append_gated(mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::halves);
    po.append_eltwise(mxdnn::algorithm::eltwise_clip, -0.5f, INFINITY);
    po.append_binary(mxdnn::algorithm::binary_max, operand);
    po.append_sum(0.25f, -3, dt::f32);
    po.append_sum();
    mxdnn::primitive_attr attr;
    attr.set_post_ops(po);
    // The attribute has its own copy.
    po.append_eltwise(mxdnn::algorithm::eltwise_relu, 0, 0);
    const mxdnn::post_ops got = attr.clone().get_post_ops();
    ASSERT_EQ(got.len(), 5);
    EXPECT_EQ(po.len(), 6);

    using kind = mxdnn::primitive::kind;
    const kind kinds[] = {kind::gated, kind::eltwise, kind::binary, kind::sum, kind::sum};
    for (int i = 0; i < 5; i++) EXPECT_EQ(got.kind(i), kinds[i]) << i;
    mxdnn::algorithm alg = mxdnn::algorithm::undef;
    float alpha = 0, beta = 0, scale = 0;
    int32_t zero_point = 7;
    mxdnn::gated_layout layout = mxdnn::gated_layout::interleaved;
    memory::desc md;
    dt type = dt::u8;
    got.get_params_gated(0, alg, alpha, beta, layout);
    EXPECT_EQ(alg, mxdnn::algorithm::gated_swiglu_oai);
    EXPECT_EQ(alpha, 1.702f);
    EXPECT_EQ(beta, 7.f);
    EXPECT_EQ(layout, mxdnn::gated_layout::halves);
    got.get_params_eltwise(1, alg, alpha, beta);
    EXPECT_EQ(alg, mxdnn::algorithm::eltwise_clip);
    EXPECT_EQ(alpha, -0.5f);
    EXPECT_EQ(beta, INFINITY);
    got.get_params_binary(2, alg, md);
    EXPECT_EQ(alg, mxdnn::algorithm::binary_max);
    EXPECT_EQ(md, operand);
    got.get_params_sum(3, scale, zero_point, type);
    EXPECT_EQ(scale, 0.25f);
    EXPECT_EQ(zero_point, -3);
    EXPECT_EQ(type, dt::f32);
    got.get_params_sum(4, scale, zero_point, type);
    EXPECT_EQ(scale, 1.f);
    EXPECT_EQ(zero_point, 0);
    EXPECT_EQ(type, dt::undef);

    const mxdnn::post_ops clone = got.clone();
    EXPECT_EQ(clone.len(), 5);
    // No post-ops again.
    EXPECT_OK(mxdnn_primitive_attr_set_post_ops(attr.get(), nullptr));
    EXPECT_EQ(attr.get_post_ops().len(), 0);
}

TEST(Objects, EveryAlgorithmAppends) {
    mxdnn::post_ops po;
    using alg = mxdnn::algorithm;
    for (alg a : {alg::eltwise_relu, alg::eltwise_tanh, alg::eltwise_square, alg::eltwise_linear,
                 alg::eltwise_logistic, alg::eltwise_gelu_tanh, alg::eltwise_swish, alg::eltwise_clip,
                 alg::eltwise_gelu_erf, alg::eltwise_relu2})
        po.append_eltwise(a, 1, 2);
    const memory::desc md({1, 1}, dt::f32, tag::ab);
    for (alg a : {alg::binary_add, alg::binary_mul, alg::binary_max, alg::binary_min})
        po.append_binary(a, md);
    EXPECT_EQ(po.len(), 14);
    for (alg a : {alg::gated_silu, alg::gated_swiglu_oai, alg::gated_gelu_erf, alg::gated_gelu_tanh}) {
        mxdnn::post_ops gated;
        gated.append_gated(a, 1, 0, mxdnn::gated_layout::interleaved);
        EXPECT_EQ(gated.kind(0), mxdnn::primitive::kind::gated);
    }
}

TEST(Objects, DescriptorsCompareByWhatTheyDescribe) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::primitive_attr nv;
    nv.set_scales(MXDNN_ARG_WEIGHTS, 3, {16, 1}, dt::f8_e4m3);
    mxdnn::primitive_attr nv2 = nv.clone();
    nv2.set_global_scale(MXDNN_ARG_WEIGHTS, mxdnn::quantization_mode::static_sazp);
    // All different from each other.
    const std::vector<memory::desc> all = {memory::desc({64, 32}, dt::bf16, tag::ab),
            memory::desc({64, 32}, dt::bf16, tag::ba), memory::desc({64, 32}, dt::bf16, tag::any),
            memory::desc({64, 32}, dt::bf16, memory::dims{48, 1}), memory::desc({64, 32}, dt::f16, tag::ab),
            memory::desc({32, 64}, dt::bf16, tag::ab), memory::desc({1, 64, 32}, dt::bf16, tag::abc),
            memory::desc({runtime, 32}, dt::bf16, tag::ab), memory::desc::grouped({64, 32}, dt::bf16, 0, 4),
            memory::desc::grouped({64, 32}, dt::bf16, 0, 5), memory::desc({64, 32}, dt::f4_e2m1, tag::ab),
            mxfp4_matmul(e, 1, 64, 32).weights_desc(), mxfp4_matmul(e, 1, 64, 32, nv).weights_desc(),
            mxfp4_matmul(e, 1, 64, 32, nv2).weights_desc(), mxfp4_matmul(e, 1, 32, 64).weights_desc()};
    std::set<std::string> texts;
    for (size_t i = 0; i < all.size(); i++) {
        for (size_t j = 0; j < all.size(); j++) EXPECT_EQ(all[i] == all[j], i == j) << i << " and " << j;
        EXPECT_EQ(all[i].clone(), all[i]);
        EXPECT_EQ(all[i].clone().to_string(), all[i].to_string());
        texts.insert(all[i].to_string());
        if (all[i].get_format_kind() == memory::format_kind::any) continue;
        const memory::desc back(all[i].get_blob());
        EXPECT_EQ(back, all[i]) << all[i].to_string();
        EXPECT_EQ(back.get_blob(), all[i].get_blob());
    }
    EXPECT_EQ(texts.size(), all.size()) << "each has words of its own";
}

TEST(Objects, StridesOfTags) {
    const auto strides = [](const memory::dims &d, tag t, dt type = dt::f32) {
        return memory::desc(d, type, t).get_strides();
    };
    EXPECT_EQ(strides({7}, tag::a), (memory::dims{1}));
    EXPECT_EQ(strides({2, 3}, tag::ab), (memory::dims{3, 1}));
    EXPECT_EQ(strides({2, 3}, tag::ba), (memory::dims{1, 2}));
    EXPECT_EQ(strides({2, 3, 5}, tag::abc), (memory::dims{15, 5, 1}));
    EXPECT_EQ(strides({2, 3, 5}, tag::acb), (memory::dims{15, 1, 3}));
    EXPECT_EQ(strides({2, 3, 5, 7}, tag::abcd), (memory::dims{105, 35, 7, 1}));
    EXPECT_EQ(strides({2, 3, 5, 7}, tag::abdc), (memory::dims{105, 35, 1, 5}));
    EXPECT_EQ(strides({runtime, 3}, tag::ab), (memory::dims{3, 1}));
    EXPECT_EQ(strides({2, 3}, tag::ab, dt::u4), (memory::dims{4, 1})) << "rows start on a byte";
    EXPECT_EQ(strides({2, 3}, tag::ba, dt::u4), (memory::dims{1, 2}));
}

TEST(Objects, AnnotationsTravel) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    memory::desc md = mxfp4_matmul(e, 1, 64, 32).weights_desc();
    const std::vector<uint8_t> plain = md.get_blob();
    md.set_annotation(dt::bf16, "w4a8: dynamic mxfp8 e4m3 \xc3\xa9");
    const memory::desc back(md.get_blob());
    EXPECT_EQ(back.get_annotation_data_type(), dt::bf16);
    EXPECT_EQ(back.get_annotation_recipe(), "w4a8: dynamic mxfp8 e4m3 \xc3\xa9");
    EXPECT_EQ(back, memory::desc(plain));
    EXPECT_NE(md.get_blob(), plain);
    EXPECT_EQ(mxfp4_matmul(e, 1, 64, 32).weights_desc(), md);
    // Removed again.
    md.set_annotation(dt::undef);
    EXPECT_EQ(md.get_blob(), plain);
    // Through a primitive descriptor, too.
    memory::desc any({64, 32}, dt::f4_e2m1, tag::any);
    any.set_annotation(dt::f32, "kept");
    const mxdnn::mx_matmul::primitive_desc pd(e, memory::desc({1, 64}, dt::f32, tag::ab), any,
            memory::desc({1, 32}, dt::f32, tag::ab), mxfp4_weights_attr());
    EXPECT_EQ(pd.weights_desc().get_annotation_recipe(), "kept");
    EXPECT_EQ(pd.weights_desc().get_annotation_data_type(), dt::f32);
}

TEST(Objects, QueriesOfAMatmul) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::primitive_attr attr = mxfp4_weights_attr();
    mxdnn::post_ops po;
    const memory::desc operand({1, 32}, dt::f32, tag::ab);
    po.append_binary(mxdnn::algorithm::binary_add, operand);
    attr.set_post_ops(po);
    attr.set_deterministic(true);
    const memory::desc src({4, 64}, dt::f32, tag::ab), bias({1, 32}, dt::bf16, tag::ab),
            dst({4, 32}, dt::f16, tag::ab);
    const mxdnn::mx_matmul::primitive_desc pd(
            e, src, memory::desc({64, 32}, dt::f4_e2m1, tag::any), bias, dst, attr);
    EXPECT_EQ(pd.src_desc(), src);
    EXPECT_EQ(pd.bias_desc(), bias);
    EXPECT_EQ(pd.weights_desc(1), bias);
    EXPECT_EQ(pd.dst_desc(), dst);
    EXPECT_FALSE(pd.src_desc(1));
    EXPECT_FALSE(pd.dst_desc(-1));
    EXPECT_EQ(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_SRC), src);
    EXPECT_EQ(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_WEIGHTS), pd.weights_desc());
    EXPECT_EQ(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_BIAS), bias);
    EXPECT_EQ(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_DST), dst);
    EXPECT_EQ(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_ATTR_MULTIPLE_POST_OP(0) | MXDNN_ARG_SRC_1),
            operand);
    EXPECT_FALSE(pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_WEIGHTS))
            << "packed bytes hold their scales";
    EXPECT_EQ(pd.get_kind(), mxdnn::primitive::kind::mx_matmul);
    EXPECT_EQ(pd.get_engine(), e);
    EXPECT_EQ(pd.scratchpad_engine(), e);
    EXPECT_EQ(pd.num_of_inputs(), 4);
    EXPECT_EQ(pd.num_of_outputs(), 1);
    EXPECT_TRUE(pd.get_primitive_attr().get_deterministic());
    EXPECT_EQ(pd.get_primitive_attr().get_post_ops().len(), 1);
    EXPECT_FALSE(pd.impl_info_str().empty());

    // The primitive answers the same.
    const mxdnn::mx_matmul prim(pd);
    const_mxdnn_memory_desc_t md =
            mxdnn_primitive_desc_query_md(prim.get_primitive_desc(), mxdnn_query_weights_md, 0);
    ASSERT_NE(md, nullptr);
    EXPECT_EQ(mxdnn_memory_desc_equal(md, pd.weights_desc().get()), 1);
}

// Scales of plain quantised arguments are arguments themselves, of a shape that can be asked for.
TEST(Objects, QueriesOfScales) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    const memory::desc plain({100, 40}, dt::bf16, tag::ab);
    mxdnn::primitive_attr q;
    q.set_scales(MXDNN_ARG_DST, 3, {16, 1}, dt::f8_e4m3, false, mxdnn::quantization_mode::dynamic_fp);
    q.set_global_scale(MXDNN_ARG_DST, mxdnn::quantization_mode::dynamic_fp);
    const mxdnn::mx_reorder::primitive_desc pd(e, plain, e, memory::desc({100, 40}, dt::f4_e2m1, tag::ba), q);
    const memory::desc scales = pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
    ASSERT_TRUE(scales);
    EXPECT_EQ(scales.get_dims(), (memory::dims{7, 40}));
    EXPECT_EQ(scales.get_data_type(), dt::f8_e4m3);
    const memory::desc global =
            pd.query_md(mxdnn::query::exec_arg_md, MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    ASSERT_TRUE(global);
    EXPECT_EQ(global.get_dims(), (memory::dims{1}));
    EXPECT_EQ(global.get_data_type(), dt::f32);
    EXPECT_EQ(pd.num_of_inputs(), 1);
    EXPECT_EQ(pd.num_of_outputs(), 3);
}

TEST(Objects, ScratchpadModes) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::primitive_attr user = mxfp4_weights_attr();
    user.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    auto by_library = mxfp4_matmul(e, 4, 64, 32), by_user = mxfp4_matmul(e, 4, 64, 32, user);
    do {
        SCOPED_TRACE(by_library.impl_info_str());
        EXPECT_FALSE(by_library.scratchpad_desc());
        EXPECT_EQ(by_user.query_s64(mxdnn::query::memory_consumption_s64), 0);
        const int64_t bytes = by_library.query_s64(mxdnn::query::memory_consumption_s64);
        EXPECT_EQ(by_user.impl_info_str(), by_library.impl_info_str());
        EXPECT_EQ(int64_t(by_user.scratchpad_desc().get_size()), bytes);
    } while (by_library.next_impl() && by_user.next_impl());
}

// The packed layout does not depend on M. The scratchpad is that of any number of rows, up to the rounding to
// whole calls of a kernel.
TEST(Objects, ScratchpadAndLayoutDoNotDependOnRows) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    auto any_rows = mxfp4_matmul(e, runtime, 96, 80);
    const memory::desc packed = any_rows.weights_desc();
    EXPECT_EQ(any_rows.src_desc().get_dims(), (memory::dims{runtime, 96}));
    const auto scratchpad = [](const mxdnn::mx_matmul::primitive_desc &pd) {
        return pd.query_s64(mxdnn::query::memory_consumption_s64);
    };
    for (mxdnn_dim_t m : {1, 16, 257, 1 << 20}) {
        const auto known_rows = mxfp4_matmul(e, m, 96, 80);
        EXPECT_EQ(known_rows.weights_desc(), packed) << m;
        EXPECT_LE(scratchpad(known_rows), scratchpad(any_rows) * 5 / 4) << m;
    }
    for (mxdnn_dim_t hint : {1, 4096}) {
        mxdnn::primitive_attr attr = mxfp4_weights_attr();
        attr.set_max_rows_hint(hint);
        EXPECT_EQ(mxfp4_matmul(e, runtime, 96, 80, attr).weights_desc(), packed) << hint;
    }
}

TEST(Objects, ImplementationsEndWithTheReference) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    auto pd = mxfp4_matmul(e, 4, 64, 32);
    const memory::desc packed = pd.weights_desc();
    std::set<std::string> names;
    mxdnn_primitive_desc_t c_clone = nullptr;
    ASSERT_EQ(mxdnn_primitive_desc_clone(&c_clone, pd.get()), mxdnn_success);
    std::string last;
    const std::string first = pd.impl_info_str();
    do {
        last = pd.impl_info_str();
        EXPECT_TRUE(names.insert(last).second) << last << " comes twice";
        EXPECT_EQ(pd.weights_desc(), packed) << last;
    } while (pd.next_impl());
    EXPECT_EQ(last, "ref:any");
    // At the end it stays where it is.
    EXPECT_REFUSED(mxdnn_last_impl_reached, mxdnn_primitive_desc_next_impl(pd.get()), "ref:any");
    EXPECT_EQ(pd.impl_info_str(), "ref:any");
    EXPECT_FALSE(pd.next_impl());
    EXPECT_EQ(mxdnn::mx_matmul(pd).get_kind(), mxdnn::primitive::kind::mx_matmul);
    // A clone made before has not moved.
    const char *name = nullptr;
    EXPECT_OK(mxdnn_primitive_desc_query(c_clone, mxdnn_query_impl_info_str, 0, &name));
    EXPECT_EQ(name, first);
    mxdnn_primitive_desc_destroy(c_clone);
}

TEST(Objects, EveryNamedTargetHasAnEngine) {
    const std::vector<std::string> names = mxdnn::engine::get_target_names();
    ASSERT_FALSE(names.empty());
    for (const std::string &name : names) EXPECT_EQ(mxdnn::engine::for_target(name).get_target(), name);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    // One of them is the target of this machine.
    const std::string here = mxdnn::engine(mxdnn::engine::kind::cpu, 0).get_target();
    EXPECT_EQ(std::count(names.begin(), names.end(), here), 1);
    for (const size_t beyond : {names.size(), SIZE_MAX}) {
        const char *name = nullptr;
        EXPECT_EQ(mxdnn_engine_get_target_name(beyond, &name), mxdnn_invalid_arguments);
        EXPECT_EQ(name, nullptr);
        EXPECT_NE(std::string(mxdnn_get_last_error()).find(std::to_string(beyond)), std::string::npos);
    }
}

TEST(Objects, EnginesOutliveTheirHandles) {
    memory m;
    mxdnn::stream s;
    {
        const mxdnn::engine e = mxdnn::engine::for_target("cpu:x64:avx2");
        m = memory(memory::desc({2, 2}, dt::f32, tag::ab), e);
        s = mxdnn::stream(e);
    }
    EXPECT_EQ(m.get_engine().get_target(), "cpu:x64:avx2");
    EXPECT_EQ(s.get_engine().get_target(), "cpu:x64:avx2");
    s.wait();
}

TEST(Objects, DescriptorsOutliveTheirSources) {
    memory::desc w;
    const_mxdnn_memory_desc_t of_memory = nullptr;
    {
        const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
        w = mxfp4_matmul(e, 4, 64, 32).weights_desc();
    }
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    memory m(w, e);
    w = memory::desc();
    ASSERT_EQ(mxdnn_memory_get_memory_desc(m.get(), &of_memory), mxdnn_success);
    EXPECT_EQ(mxdnn_memory_desc_equal(of_memory, mxfp4_matmul(e, 4, 64, 32).weights_desc().get()), 1);
}

TEST(Objects, Statuses) {
    std::set<std::string> texts;
    for (int s : {0, 1, 2, 3, 4, 5, 6, 9, 10, 100, 101, 102, 103}) {
        const char *t = mxdnn_status2str(static_cast<mxdnn_status_t>(s));
        ASSERT_NE(t, nullptr);
        EXPECT_TRUE(texts.insert(t).second) << t;
    }
    EXPECT_STREQ(mxdnn_status2str(mxdnn_success), "success");
    EXPECT_STREQ(mxdnn_status2str(mxdnn_invalid_arguments), "invalid_arguments");
    EXPECT_STREQ(mxdnn_status2str(mxdnn_incompatible_version), "incompatible_version");
    EXPECT_EQ(texts.count(mxdnn_status2str(static_cast<mxdnn_status_t>(77))), 0u);
}

TEST(Objects, Version) {
    const mxdnn_version_t *v = mxdnn_version();
    ASSERT_NE(v, nullptr);
    EXPECT_GE(v->major, 0);
    EXPECT_GE(v->minor, 0);
    EXPECT_GE(v->patch, 0);
    EXPECT_GT(v->major + v->minor + v->patch, 0);
    ASSERT_NE(v->hash, nullptr);
    const std::string hash = v->hash;
    EXPECT_TRUE(
            hash == "N/A" || (hash.size() == 40 && hash.find_first_not_of("0123456789abcdef") == hash.npos))
            << hash;
    EXPECT_EQ(mxdnn_version(), v);
}

TEST(Objects, EachThreadHasItsLastError) {
    mxdnn_engine_t e = nullptr;
    EXPECT_EQ(mxdnn_engine_create_for_target(&e, "main_thread"), mxdnn_invalid_arguments);
    const std::string mine = mxdnn_get_last_error();
    std::string before, after;
    std::thread([&] {
        before = mxdnn_get_last_error();
        mxdnn_engine_t t = nullptr;
        mxdnn_engine_create_for_target(&t, "other_thread");
        after = mxdnn_get_last_error();
    }).join();
    EXPECT_EQ(before, "");
    EXPECT_NE(after.find("other_thread"), std::string::npos) << after;
    EXPECT_EQ(mxdnn_get_last_error(), mine);
    EXPECT_NE(mine.find("main_thread"), std::string::npos) << mine;
}
