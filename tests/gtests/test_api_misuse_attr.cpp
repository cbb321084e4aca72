// SPDX-License-Identifier: Apache-2.0
// Mistakes of callers outside execution. Each is refused with its status and a sentence that names the
// wrong value, and nothing is written. Here: wrong values for
// attributes, post-ops, queries and settings.
#include <climits>

#include "misuse_fixture.hpp"

using namespace api_test;

TEST_F(Misuse, AttributeEnums) {
    const mxdnn_primitive_attr_t a = attr.get();
    for (int v : {-1, 6, 100}) {
        const std::string s = std::to_string(v);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_fpmath_mode(a, bad<mxdnn_fpmath_mode_t>(v), 0), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_accumulation_mode(a, bad<mxdnn_accumulation_mode_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scratchpad_mode(a, bad<mxdnn_scratchpad_mode_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points_kind(
                        a, MXDNN_ARG_WEIGHTS, bad<mxdnn_zero_points_kind_t>(v)),
                s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scale_rounding(a, MXDNN_ARG_DST, bad<mxdnn_scale_rounding_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales_layout(a, MXDNN_ARG_DST, bad<mxdnn_scales_layout_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_global_scale(a, MXDNN_ARG_DST, bad<mxdnn_quantization_mode_t>(v)),
                s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_element_packing(a, MXDNN_ARG_DST, bad<mxdnn_element_packing_t>(v)),
                s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_row_grouping(a, bad<mxdnn_row_grouping_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_topk_weights_placement(a, bad<mxdnn_topk_weights_placement_t>(v)),
                s);
        const mxdnn_dims_t g = {32, 1};
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(
                        a, MXDNN_ARG_DST, 3, 2, g, mxdnn_e8m0, 0, bad<mxdnn_quantization_mode_t>(v)),
                s);
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_attr_set_global_scale(a, MXDNN_ARG_DST, mxdnn_quantization_mode_dynamic_mx), "2");
    for (mxdnn_dim_t rows : {mxdnn_dim_t(-1), MXDNN_RUNTIME_DIM_VAL, INT64_MAX})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_set_max_rows_hint(a, rows),
                std::to_string(rows));
    const mxdnn_dim_t ranges[][2] = {{-1, 8}, {9, 8}, {0, -1}, {0, mxdnn_dim_t(1) << 31}, {1, 0}};
    for (const auto &r : ranges)
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_set_expert_range(a, r[0], r[1]),
                std::to_string(r[0]), std::to_string(r[1]));
    EXPECT_EQ(attr.get_fpmath_mode(), mxdnn::fpmath_mode::strict) << "refused calls change nothing";
    EXPECT_EQ(attr.get_accumulation_mode(), mxdnn::accumulation_mode::strict);
    EXPECT_EQ(attr.get_scratchpad_mode(), mxdnn::scratchpad_mode::library);
}

TEST_F(Misuse, AttributeArguments) {
    const mxdnn_primitive_attr_t a = attr.get();
    const mxdnn_dims_t g = {32, 1};
    const mxdnn_quantization_mode_t mode = mxdnn_quantization_mode_static_sazp;
    for (int arg : {0, -1, 2, MXDNN_ARG_BIAS, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, INT_MAX}) {
        const std::string s = std::to_string(arg);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, arg, 3, 2, g, mxdnn_e8m0, 0, mode), s);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_primitive_attr_set_zero_points(a, arg, 3, 2, g, mxdnn_u8), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points_kind(a, arg, mxdnn_zero_points_minimum), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scale_rounding(a, arg, mxdnn_scale_rounding_floor), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales_layout(a, arg, mxdnn_scales_swizzle_128x4), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_global_scale(a, arg, mxdnn_quantization_mode_static_sazp), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_element_packing(a, arg, mxdnn_element_packing_dense), s);
        // Getters accept the same arguments.
        int m = 77;
        mxdnn_zero_points_kind_t kind;
        mxdnn_scale_rounding_t rounding;
        mxdnn_scales_layout_t layout;
        mxdnn_quantization_mode_t global;
        mxdnn_element_packing_t packing;
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_get_scales(a, arg, &m, nullptr, nullptr, nullptr, nullptr), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_get_zero_points(a, arg, &m, nullptr, nullptr, nullptr), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_get_zero_points_kind(a, arg, &kind), s);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_primitive_attr_get_scale_rounding(a, arg, &rounding), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_get_scales_layout(a, arg, &layout), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_get_global_scale(a, arg, &global), s);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_primitive_attr_get_element_packing(a, arg, &packing), s);
        EXPECT_EQ(m, 77);
    }
    // One number on the host: oneDNN has such scales, but blocks have more than one.
    for (int on_host : {1, -1}) {
        EXPECT_REFUSED(mxdnn_unimplemented,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_DST, 3, 2, g, mxdnn_e8m0, on_host, mode),
                "is_on_host", std::to_string(on_host), "dst");
        EXPECT_REFUSED(mxdnn_unimplemented,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 0, 0, nullptr, mxdnn_f32, on_host, mode),
                "is_on_host", "src");
    }
    EXPECT_THROW(attr.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, true), mxdnn::error);
    for (int mask : {-1, 1 << 12, INT_MAX, INT_MIN}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, mask, 2, g, mxdnn_e8m0, 0, mode),
                std::to_string(mask));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, mask, 2, g, mxdnn_u8),
                std::to_string(mask));
    }
    for (int ndims : {-1, 13, INT_MAX})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 3, ndims, g, mxdnn_e8m0, 0, mode),
                std::to_string(ndims));
    struct {
        mxdnn_dims_t groups;
        int ndims;
        const char *value;
    } const groups[] = {{{0, 1}, 2, "0"}, {{-32, 1}, 2, "-32"}, {{MXDNN_RUNTIME_DIM_VAL, 1}, 2, "-92233"},
            {{32, 16}, 2, "32x16"}, {{2, 32, 1}, 3, "2"}};
    for (const auto &c : groups) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 7, c.ndims, c.groups, mxdnn_e8m0, 0, mode),
                c.value);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, 7, c.ndims, c.groups, mxdnn_u8),
                c.value);
    }
    struct {
        mxdnn_data_type_t type;
        const char *value;
    } const no_scales[] = {{mxdnn_s32, "s32"}, {mxdnn_f4_e2m1, "f4_e2m1"}, {mxdnn_u8, "u8"},
            {mxdnn_f8_e5m2, "f8_e5m2"}, {mxdnn_data_type_undef, "undef"},
            {bad<mxdnn_data_type_t>(0x1ff), "511"}};
    for (const auto &c : no_scales)
        EXPECT_REFUSED(mxdnn_invalid_data_type,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 3, 2, g, c.type, 0, mode), c.value);
    for (mxdnn_data_type_t t : {mxdnn_s32, mxdnn_e8m0, mxdnn_u4, mxdnn_data_type_undef})
        EXPECT_REFUSED(mxdnn_invalid_data_type,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, 3, 2, g, t), "zero points");
}

TEST_F(Misuse, PostOps) {
    for (int alg :
            {0, 0x22, 0x1fff4, int(mxdnn_binary_add), int(mxdnn_gated_silu), int(mxdnn_route_sigmoid)}) {
        std::ostringstream hex;
        hex << std::hex << alg;
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_append_eltwise(po.get(), bad<mxdnn_alg_kind_t>(alg), 0, 0), hex.str(), "relu");
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_binary(po.get(), mxdnn_eltwise_relu, md.get()), "20", "add");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_eltwise_swish, 1, 0, mxdnn_gated_halves), "2c",
            "silu");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_silu, 1, 0, bad<mxdnn_gated_layout_t>(2)), "2");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_swiglu_oai, NAN, 7, mxdnn_gated_halves), "nan");
    const memory::desc any({1, 64}, dt::f32, tag::any), ints({1, 64}, dt::s32, tag::ab);
    for (const memory::desc &d : {any, ints})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_append_binary(po.get(), mxdnn_binary_mul, d.get()), d.to_string());
    for (mxdnn_data_type_t t : {mxdnn_s8, mxdnn_s32, mxdnn_f4_e2m1})
        EXPECT_REFUSED(mxdnn_invalid_data_type, mxdnn_post_ops_append_sum(po.get(), 1, 0, t),
                t == mxdnn_s8    ? "s8"
                : t == mxdnn_s32 ? "s32"
                                 : "f4_e2m1");
    EXPECT_EQ(po.len(), 0) << "refused calls append nothing";

    po.append_sum();
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_silu, 1, 0, mxdnn_gated_halves), "sum");
    mxdnn::post_ops two;
    two.append_gated(mxdnn::algorithm::gated_silu, 1, 0, mxdnn::gated_layout::halves);
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(two.get(), mxdnn_gated_silu, 1, 0, mxdnn_gated_halves), "one");

    float f = 99;
    mxdnn_alg_kind_t alg = mxdnn_alg_kind_undef;
    for (int index : {-1, 1, INT_MAX}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_sum(po.get(), index, &f, nullptr, nullptr), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_eltwise(po.get(), index, &alg, &f, &f), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_binary(po.get(), index, &alg, nullptr), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_gated(po.get(), index, &alg, &f, &f, nullptr),
                std::to_string(index));
    }
    // A sum is none of the others.
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_eltwise(po.get(), 0, &alg, &f, &f), "0");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_binary(po.get(), 0, &alg, nullptr), "0");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_get_params_gated(po.get(), 0, &alg, &f, &f, nullptr), "0");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_sum(two.get(), 0, &f, nullptr, nullptr), "0");
    EXPECT_EQ(f, 99.f);

    // A full list refuses one more with a sentence, and stays as it was.
    mxdnn_status_t st = mxdnn_success;
    int n = 0;
    while (n < 1000
            && (st = mxdnn_post_ops_append_eltwise(two.get(), mxdnn_eltwise_relu, 0, 0)) == mxdnn_success)
        n++;
    EXPECT_TRUE(refused(st, mxdnn_out_of_memory, {std::to_string(two.len())}));
    EXPECT_GE(two.len(), 31);
    EXPECT_EQ(two.len(), n + 1);
}

TEST_F(Misuse, PrimitiveDescQueries) {
    int64_t wide = 0x7777;
    for (int what : {0, 14, 128, 256, 999})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_desc_query(pd.get(), bad<mxdnn_query_t>(what), 0, &wide),
                std::to_string(what));
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(pd.get(), mxdnn_query_src_md, 5, &wide), "129", "5");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(pd.get(), mxdnn_query_weights_md, 0, &wide), "131", "reorder");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(
                    mxfp4_matmul(eng, 1, 32, 16).get(), mxdnn_query_reorder_src_engine, 0, &wide),
            "mx_matmul");
    EXPECT_EQ(wide, 0x7777);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_src_md, -1), nullptr);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_dims, 0), nullptr);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_exec_arg_md, 12345), nullptr);
}

TEST_F(Misuse, Service) {
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_verbose("dispatch,typo"), "'typo'");
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_verbose("dispatch,\x1b[2J"), "'\\x1b[2J'");
    for (int n : {-1, INT_MIN}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_primitive_cache_capacity(n), std::to_string(n));
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_max_concurrency(n), std::to_string(n));
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_max_concurrency(INT_MAX), std::to_string(INT_MAX));
    EXPECT_STREQ(mxdnn_status2str(bad<mxdnn_status_t>(55)), mxdnn_status2str(bad<mxdnn_status_t>(77)));
    // A primitive descriptor exists already.
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_default), "primitive descriptor");
}

// In a process of its own, where no primitive descriptor has been created yet.
TEST(MisuseDeathTest, CpuIsa) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto check = [] {
        plant_error();
        const mxdnn_status_t wrong = mxdnn_set_max_cpu_isa(bad<mxdnn_cpu_isa_t>(0x99));
        const testing::AssertionResult r = refused(wrong, mxdnn_invalid_arguments, {"99", "avx2"});
        if (!r) std::fprintf(stderr, "%s\n", r.message());
        if (mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_avx2) != mxdnn_success) std::exit(2);
        if (mxdnn_get_effective_cpu_isa() > mxdnn_cpu_isa_avx2) std::exit(3);
        mxfp4_matmul(mxdnn::engine(mxdnn::engine::kind::cpu, 0), 1, 32, 16);
        plant_error();
        const mxdnn_status_t late = mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_avx2);
        const testing::AssertionResult l = refused(late, mxdnn_invalid_arguments, {"primitive descriptor"});
        if (!l) std::fprintf(stderr, "%s\n", l.message());
        std::exit(r && l ? 0 : 1);
    };
    EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}
