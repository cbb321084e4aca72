// SPDX-License-Identifier: Apache-2.0
// Problems, arguments and index tensors that grouped_matmul refuses before anything is written.
#include <algorithm>

#include "grouped_cases.hpp"

using namespace api_test;

namespace {

// ---- index tensors that are refused, and nothing is written ----

struct hostile_t {
    const char *name;
    mxdnn::row_grouping grouping;
    std::vector<std::pair<int, std::vector<int32_t>>> tensors;
    std::vector<std::string> says;
};

TEST(grouped_matmul, hostile_indices_are_refused_before_anything_is_written) {
    const experts_t &w = four();
    const dim rows = 8;
    const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 31);
    using g = mxdnn::row_grouping;
    const int offsets = MXDNN_ARG_GROUP_OFFSETS;
    const std::vector<int32_t> ends = {2, 4, 6, 8};
    const hostile_t all[] = {
            {"decreasing", g::ends, {{offsets, {2, 1, 6, 8}}}, {"GROUP_OFFSETS[1] is 1", "never decrease"}},
            {"past the end", g::ends, {{offsets, {2, 4, 6, 9}}}, {"GROUP_OFFSETS[3] is 9", "0 to 8"}},
            {"negative", g::ends, {{offsets, {-2, 4, 6, 8}}}, {"GROUP_OFFSETS[0] is -2"}},
            {"huge", g::ends, {{offsets, {2, 4, 6, INT32_MAX}}}, {"2147483647"}},
            {"starts decrease", g::starts, {{offsets, {3, 2, 4, 6, 8}}}, {"GROUP_OFFSETS[1] is 2"}},
            {"count", g::padded, {{MXDNN_ARG_GROUP_COUNTS, {2, 2, 3, 0}}},
                    {"GROUP_COUNTS[2] is 3", "0 to 2"}},
            {"negative count", g::padded, {{MXDNN_ARG_GROUP_COUNTS, {2, -1, 2, 0}}},
                    {"GROUP_COUNTS[1] is -1"}},
            {"row id", g::row_ids, {{MXDNN_ARG_ROW_EXPERT_IDS, {0, 1, 2, 3, 4, 0, 0, 0}}},
                    {"ROW_EXPERT_IDS[4] is 4", "0 to 3"}},
            {"row id below -1", g::row_ids, {{MXDNN_ARG_ROW_EXPERT_IDS, {0, 1, 2, 3, -2, 0, 0, 0}}},
                    {"ROW_EXPERT_IDS[4] is -2"}},
            {"group id", g::ends, {{offsets, ends}, {MXDNN_ARG_GROUP_EXPERT_IDS, {0, 1, 2, 7}}},
                    {"GROUP_EXPERT_IDS[3] is 7"}},
            {"map", g::ends, {{offsets, ends}, {MXDNN_ARG_EXPERT_MAP, {0, 1, 2, 4}}}, {"EXPERT_MAP[3] is 4"}},
            {"map too short", g::ends, {{offsets, ends}, {MXDNN_ARG_EXPERT_MAP, {0, 1, 2}}},
                    {"4 groups", "GROUP_EXPERT_IDS"}},
            {"too many groups", g::ends, {{offsets, {1, 2, 3, 4, 5}}}, {"5 groups", "GROUP_EXPERT_IDS"}},
            {"ids for other groups", g::ends, {{offsets, ends}, {MXDNN_ARG_GROUP_EXPERT_IDS, {0, 1, 2}}},
                    {"3 entries for 4 groups"}},
            {"gather", g::ends, {{offsets, ends}, {MXDNN_ARG_GATHER_IDX, {0, 1, 2, 3, 4, 5, 6, 8}}},
                    {"GATHER_IDX[7] is 8", "0 to 7"}},
            {"gather below -1", g::ends, {{offsets, ends}, {MXDNN_ARG_GATHER_IDX, {0, 1, 2, 3, 4, 5, 6, -2}}},
                    {"GATHER_IDX[7] is -2"}},
            {"gather of other length", g::ends, {{offsets, ends}, {MXDNN_ARG_GATHER_IDX, {0, 1, 2}}},
                    {"dst has 8 rows and GATHER_IDX 3"}},
            {"scatter", g::ends, {{offsets, ends}, {MXDNN_ARG_SCATTER_IDX, {0, 1, 2, 3, 4, 5, 8, 7}}},
                    {"SCATTER_IDX[6] is 8", "rows of dst"}},
            {"scatter below -1", g::ends,
                    {{offsets, ends}, {MXDNN_ARG_SCATTER_IDX, {INT32_MIN, 1, 2, 3, 4, 5, 6, 7}}},
                    {"SCATTER_IDX[0] is -2147483648"}},
            {"scatter of other length", g::ends, {{offsets, ends}, {MXDNN_ARG_SCATTER_IDX, {0, 1}}},
                    {"SCATTER_IDX has 2 rows and src 8"}},
            {"counts that do not divide", g::padded, {{MXDNN_ARG_GROUP_COUNTS, {1, 1, 1}}},
                    {"8 rows", "3 groups"}},
            {"no start", g::starts, {{offsets, {}}}, {"GROUP_OFFSETS is empty"}},
    };
    for (const hostile_t &h : all)
        by_every_implementation(w.describe(grouped_by(h.grouping)), [&](const auto &pd) {
            SCOPED_TRACE(h.name);
            std::vector<float> y(size_t(rows * w.N), unwritten);
            auto tensors = h.tensors;
            std::vector<mxdnn_exec_arg_t> args;
            std::vector<memory> alive{
                    memory(rows_of(rows, w.K, dt::bf16), cpu(), const_cast<uint16_t *>(x.data())),
                    memory(rows_of(rows, w.N, dt::f32), cpu(), y.data())};
            args.push_back({MXDNN_ARG_SRC, alive[0].get()});
            args.push_back({MXDNN_ARG_DST, alive[1].get()});
            args.push_back({MXDNN_ARG_WEIGHTS, w.packed.get()});
            for (auto &t : tensors) {
                alive.push_back(ints(t.second));
                args.push_back({t.first, alive.back().get()});
            }
            const grouped_matmul primitive(pd);
            plant_error();
            const mxdnn_status_t status =
                    mxdnn_primitive_execute(primitive.get(), w.stream.get(), int(args.size()), args.data());
            EXPECT_TRUE(refused(status, mxdnn_invalid_arguments, {}));
            for (const std::string &word : h.says)
                EXPECT_NE(std::string(mxdnn_get_last_error()).find(word), std::string::npos)
                        << mxdnn_get_last_error();
            for (float v : y) ASSERT_EQ(v, unwritten);
        });
}

// Indices of rows that nobody computes are not read.
TEST(grouped_matmul, unused_indices_may_be_anything) {
    const experts_t &w = four();
    const std::vector<uint16_t> x = random_bf16(size_t(4 * w.K), 37);
    std::vector<int32_t> ends = {1, 2, 3, 3}, ids = {2, -1, 0, 1}, gather = {3, 99, 0, -99},
                         scatter = {1, -7, 0, 4};
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const std::vector<float> y = run(w, pd,
                {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}, {MXDNN_ARG_GROUP_EXPERT_IDS, ints(ids)},
                        {MXDNN_ARG_GATHER_IDX, ints(gather)}, {MXDNN_ARG_SCATTER_IDX, ints(scatter)}},
                x, 2);
        for (dim n = 0; n < w.N; n++) {
            EXPECT_NEAR(double(y[size_t(n)]), w.exact(x, 0, 0, n), w.bound(x, 0, 0, n));
            EXPECT_NEAR(double(y[size_t(w.N + n)]), w.exact(x, 3, 2, n), w.bound(x, 3, 2, n));
        }
    });
}

// ---- problems and arguments that do not fit ----

struct description_t {
    memory::desc src = rows_of(runtime, 64, dt::bf16),
                 weights{memory::dims{4, 64, 48}, dt::f4_e2m1, tag::any}, bias,
                 dst = rows_of(runtime, 48, dt::f32);
    mxdnn::primitive_attr attr;
    description_t() { attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0); }
    mxdnn_status_t create() const {
        mxdnn_primitive_desc_t pd = nullptr;
        const mxdnn_status_t s = mxdnn_grouped_matmul_primitive_desc_create(
                &pd, cpu().get(), src.get(), weights.get(), bias.get(true), dst.get(), attr.get());
        mxdnn_primitive_desc_destroy(pd);
        return s;
    }
};

TEST(grouped_matmul, problems_that_are_refused) {
    const auto refuse = [](mxdnn_status_t status, std::initializer_list<api_test::word_t> words,
                                auto &&change) {
        description_t d;
        EXPECT_OK(d.create());
        change(d);
        plant_error();
        EXPECT_TRUE(refused(d.create(), status, words));
    };
    const auto post = [](description_t &d, auto &&append) {
        mxdnn::post_ops ops;
        append(ops);
        d.attr.set_post_ops(ops);
    };
    refuse(mxdnn_invalid_shape, {"weights", "[experts, K, N]"}, [](description_t &d) {
        d.weights = memory::desc({64, 48}, dt::f4_e2m1, tag::any);
        d.attr = mxdnn::primitive_attr();
        d.attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    });
    refuse(mxdnn_invalid_shape, {"K is 96 in src and 64 in weights"},
            [](description_t &d) { d.src = rows_of(runtime, 96, dt::bf16); });
    refuse(mxdnn_invalid_arguments, {"src is bf16:any", "grouped or plain"}, [](description_t &d) {
        d.src = memory::desc({runtime, 64}, dt::bf16, tag::any);
    });
    refuse(mxdnn_unimplemented, {"the columns of src are a runtime dim"},
            [](description_t &d) { d.src = rows_of(runtime, runtime, dt::bf16); });
    refuse(mxdnn_unimplemented, {"the columns of dst are a runtime dim"},
            [](description_t &d) { d.dst = rows_of(runtime, runtime, dt::f32); });
    refuse(mxdnn_invalid_shape, {"dst has 48 columns"},
            [](description_t &d) { d.dst = rows_of(runtime, 40, dt::f32); });
    refuse(mxdnn_invalid_shape, {"src has 3 dims"}, [](description_t &d) {
        d.src = memory::desc({4, 5, 64}, dt::bf16, tag::abc);
    });
    refuse(mxdnn_invalid_arguments, {"padded groups are a plain tensor"}, [](description_t &d) {
        d.src = memory::desc::grouped({runtime, 64}, dt::bf16, 0, 4);
        d.attr.set_row_grouping(mxdnn::row_grouping::padded);
    });
    refuse(mxdnn_invalid_shape, {"src has 4 groups and dst 3"}, [](description_t &d) {
        d.src = memory::desc::grouped({runtime, 64}, dt::bf16, 0, 4);
        d.dst = memory::desc::grouped({runtime, 48}, dt::f32, 0, 3);
    });
    refuse(mxdnn_invalid_shape, {"padded groups have the same rows"}, [](description_t &d) {
        d.src = memory::desc({4, 5, 64}, dt::bf16, tag::abc);
        d.dst = memory::desc({4, 6, 48}, dt::f32, tag::abc);
        d.attr.set_row_grouping(mxdnn::row_grouping::padded);
    });
    refuse(mxdnn_invalid_shape, {"bias is 4x32", "4x48"}, [](description_t &d) {
        d.bias = memory::desc({4, 32}, dt::f32, tag::ab);
    });
    refuse(mxdnn_invalid_data_type, {"bias is s32"}, [](description_t &d) {
        d.bias = memory::desc({4, 48}, dt::s32, tag::ab);
    });
    refuse(mxdnn_invalid_data_type, {"src is u8"},
            [](description_t &d) { d.src = rows_of(runtime, 64, dt::u8); });
    refuse(mxdnn_invalid_arguments, {"starts at 3 of 6", "have 4"},
            [](description_t &d) { d.attr.set_expert_range(3, 6); });
    refuse(mxdnn_invalid_arguments, {"dynamic"}, [](description_t &d) {
        d.src = rows_of(runtime, 64, dt::f8_e4m3);
        d.attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    });
    refuse(mxdnn_unimplemented, {"weights", "one scale per row"}, [](description_t &d) {
        d.weights = memory::desc({4, 64, 48}, dt::s8, tag::any);
        d.attr = mxdnn::primitive_attr();
        d.attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {}, dt::f32);
    });
    refuse(mxdnn_invalid_shape, {"has to be even"}, [&](description_t &d) {
        d.weights = memory::desc({4, 64, 47}, dt::f4_e2m1, tag::any);
        post(d, [](auto &ops) {
            ops.append_gated(mxdnn::algorithm::gated_silu, 1.f, 0.f, mxdnn::gated_layout::halves);
        });
    });
    refuse(mxdnn_unimplemented, {"binary"}, [&](description_t &d) {
        post(d, [](auto &ops) {
            ops.append_binary(mxdnn::algorithm::binary_add, memory::desc({1, 48}, dt::f32, tag::ab));
        });
    });
    refuse(mxdnn_unimplemented, {"sum is post-op 0 of 2"}, [&](description_t &d) {
        post(d, [](auto &ops) {
            ops.append_sum(1.f);
            ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0.f, 0.f);
        });
    });
    refuse(mxdnn_invalid_arguments, {"sum needs"}, [&](description_t &d) {
        d.dst = rows_of(runtime, 48, dt::f8_e4m3);
        d.attr.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        post(d, [](auto &ops) { ops.append_sum(1.f); });
    });
}

TEST(grouped_matmul, arguments_that_are_refused) {
    const experts_t &w = four();
    const dim rows = 4;
    std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 43);
    std::vector<float> y(size_t(rows * w.N), unwritten), four_floats(12, 1.f);
    std::vector<int32_t> ends = {1, 2, 3, 4}, ids = {0, 1, 2, 3};
    std::vector<uint64_t> table(4, reinterpret_cast<uintptr_t>(w.packed.get_data_handle()));
    const args_t good{{MXDNN_ARG_SRC, memory(rows_of(rows, w.K, dt::bf16), cpu(), x.data())},
            {MXDNN_ARG_WEIGHTS, w.packed}, {MXDNN_ARG_GROUP_OFFSETS, ints(ends)},
            {MXDNN_ARG_DST, memory(rows_of(rows, w.N, dt::f32), cpu(), y.data())}};
    const auto refuse = [&](const grouped_matmul::primitive_desc &pd,
                                std::initializer_list<api_test::word_t> words, auto &&change) {
        args_t args = good;
        change(args);
        std::vector<mxdnn_exec_arg_t> c_args;
        for (const auto &a : args) c_args.push_back({a.first, a.second.get()});
        const grouped_matmul primitive(pd);
        std::fill(y.begin(), y.end(), unwritten);
        plant_error();
        EXPECT_TRUE(refused(
                mxdnn_primitive_execute(primitive.get(), w.stream.get(), int(c_args.size()), c_args.data()),
                mxdnn_invalid_arguments, words));
        for (float v : y) ASSERT_EQ(v, unwritten);
    };
    const auto pd = w.describe();
    grouped_matmul(pd).execute(w.stream, good);
    const memory pointers(memory::desc({w.E}, dt::u64, tag::a), cpu(), table.data());
    refuse(pd, {"GROUP_OFFSETS", "missing"}, [](args_t &a) { a.erase(MXDNN_ARG_GROUP_OFFSETS); });
    refuse(pd, {"neither weights nor WEIGHTS_PTRS"}, [](args_t &a) { a.erase(MXDNN_ARG_WEIGHTS); });
    refuse(pd, {"both weights and WEIGHTS_PTRS"}, [&](args_t &a) { a[MXDNN_ARG_WEIGHTS_PTRS] = pointers; });
    refuse(pd, {"GROUP_COUNTS", "no such argument"},
            [&](args_t &a) { a[MXDNN_ARG_GROUP_COUNTS] = ints(ids); });
    refuse(pd, {"ROW_EXPERT_IDS", "no such argument"},
            [&](args_t &a) { a[MXDNN_ARG_ROW_EXPERT_IDS] = ints(ids); });
    refuse(pd, {"ACTIVATION_PARAMS", "no such argument"}, [&](args_t &a) {
        a[MXDNN_ARG_ACTIVATION_PARAMS] =
                memory(memory::desc({3}, dt::f32, tag::a), cpu(), four_floats.data());
    });
    refuse(pd, {"GROUP_OFFSETS", "f32"}, [&](args_t &a) {
        a[MXDNN_ARG_GROUP_OFFSETS] = memory(memory::desc({4}, dt::f32, tag::a), cpu(), four_floats.data());
    });
    refuse(pd, {"TOPK_WEIGHTS", "f16"}, [&](args_t &a) {
        a[MXDNN_ARG_TOPK_WEIGHTS] = memory(memory::desc({rows}, dt::f16, tag::a), cpu(), four_floats.data());
    });
    refuse(pd, {"TOPK_WEIGHTS has 3 rows"}, [&](args_t &a) {
        a[MXDNN_ARG_TOPK_WEIGHTS] = memory(memory::desc({3}, dt::f32, tag::a), cpu(), four_floats.data());
    });
    refuse(pd, {"EXPERT_ALPHA", "is 3"}, [&](args_t &a) {
        a[MXDNN_ARG_EXPERT_ALPHA] = memory(memory::desc({3}, dt::f32, tag::a), cpu(), four_floats.data());
    });
    refuse(pd, {"dst (written) overlaps"}, [&](args_t &a) {
        a[MXDNN_ARG_TOPK_WEIGHTS] = memory(memory::desc({rows}, dt::f32, tag::a), cpu(), y.data());
    });
    refuse(pd, {"dst has 3 rows and src 4"},
            [&](args_t &a) { a[MXDNN_ARG_DST] = memory(rows_of(3, w.N, dt::f32), cpu(), y.data()); });
    const grouped_matmul::primitive_desc grouped(cpu(), memory::desc::grouped({runtime, w.K}, dt::bf16, 0, 4),
            w.packed.get_desc(), rows_of(runtime, w.N, dt::f32));
    refuse(grouped, {"src has 3 groups", "created for 4"}, [&](args_t &a) {
        a[MXDNN_ARG_SRC] = memory(memory::desc::grouped({rows, w.K}, dt::bf16, 0, 3), cpu(), x.data());
    });
    refuse(pd, {"stride"}, [&](args_t &a) {
        a[MXDNN_ARG_GROUP_OFFSETS] =
                memory(memory::desc({4}, dt::s32, memory::dims{2}), cpu(), four_floats.data());
    });
    mxdnn::primitive_attr range;
    range.set_expert_range(0, 8);
    refuse(w.describe(range), {"EXPERT_MAP", "no such argument"},
            [&](args_t &a) { a[MXDNN_ARG_EXPERT_MAP] = ints(ids); });
}

// Scales that are shorter than the rows need, in every arrangement.
TEST(grouped_matmul, short_scales_are_refused) {
    const experts_t &w = four();
    std::vector<uint8_t> x(size_t(8 * w.K), 0x38), scales(8192, 127);
    std::vector<float> y(size_t(8 * w.N), unwritten);
    std::vector<int32_t> ends = {2, 4, 6, 8}, counts = {2, 2, 2, 2}, ids = {0, 1, 2, 3, 0, 1, 2, 3};
    const auto execute = [&](bool padded, bool by_row, bool swizzled, const memory::dims &scale_dims) {
        mxdnn::primitive_attr a;
        a.set_row_grouping(padded   ? mxdnn::row_grouping::padded
                           : by_row ? mxdnn::row_grouping::row_ids
                                    : mxdnn::row_grouping::ends);
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        a.set_scales(MXDNN_ARG_SRC, padded ? 7 : 3, {1, 32}, dt::e8m0);
        if (swizzled) a.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
        const auto rows_md = [&](dim columns, dt type, bool known) {
            return padded ? memory::desc({known ? 4 : runtime, known ? 2 : runtime, columns}, type, tag::abc)
                          : rows_of(known ? 8 : runtime, columns, type);
        };
        const grouped_matmul::primitive_desc pd(cpu(), rows_md(w.K, dt::f8_e4m3, false), w.packed.get_desc(),
                rows_md(w.N, dt::f32, false), a);
        const int bounds = padded   ? MXDNN_ARG_GROUP_COUNTS
                           : by_row ? MXDNN_ARG_ROW_EXPERT_IDS
                                    : MXDNN_ARG_GROUP_OFFSETS;
        const memory alive[] = {memory(rows_md(w.K, dt::f8_e4m3, true), cpu(), x.data()),
                memory(memory::desc(scale_dims, dt::e8m0, memory::dims()), cpu(), scales.data()),
                memory(rows_md(w.N, dt::f32, true), cpu(), y.data()),
                ints(padded      ? counts
                        : by_row ? ids
                                 : ends)};
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, alive[0].get()}, {MXDNN_ARG_WEIGHTS, w.packed.get()},
                {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, alive[1].get()}, {MXDNN_ARG_DST, alive[2].get()},
                {bounds, alive[3].get()}};
        const grouped_matmul primitive(pd);
        std::fill(y.begin(), y.end(), unwritten);
        plant_error();
        return mxdnn_primitive_execute(primitive.get(), w.stream.get(), 5, args);
    };
    const auto short_one = [&](mxdnn_status_t status) {
        EXPECT_TRUE(refused(status, mxdnn_invalid_arguments, {"the scales of src"}));
        for (float v : y) ASSERT_EQ(v, unwritten);
    };
    EXPECT_OK(execute(false, false, false, {8, 2}));
    short_one(execute(false, false, false, {7, 2}));
    short_one(execute(false, false, false, {1, 2}));
    EXPECT_OK(execute(true, false, false, {4, 2, 2}));
    short_one(execute(true, false, false, {4, 1, 2}));
    EXPECT_OK(execute(false, false, true, {1, 4 * 512}));
    short_one(execute(false, false, true, {1, 3 * 512}));
    EXPECT_OK(execute(false, true, true, {1, 512}));
    short_one(execute(false, true, true, {1, 511}));
    EXPECT_OK(execute(true, false, true, {4, 512}));
    short_one(execute(true, false, true, {4, 511}));
    short_one(execute(true, false, true, {3, 512}));
}

} // namespace
