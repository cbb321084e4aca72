// SPDX-License-Identifier: Apache-2.0
// moe_route, moe_permute, moe_unpermute. Every implementation gives the same bits for any number of threads.
// Optional outputs may be left out. Wrong arguments are refused before anything is written.
#include <algorithm>
#include <functional>
#include <numeric>

#include "test_api_util.hpp"

using namespace api_test;
using mxdnn::algorithm;
using mxdnn::moe_permute;
using mxdnn::moe_route;
using mxdnn::moe_unpermute;

namespace {

using dim = memory::dim;
using args_t = std::unordered_map<int, memory>;

struct Moe : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    void TearDown() override { mxdnn::set_max_concurrency(0); }

    template <typename T>
    memory of(const memory::dims &dims, dt type, std::vector<T> &v) const {
        return memory(memory::desc(dims, type, dims.size() == 1 ? tag::a : tag::ab), eng, v.data());
    }
    // At addresses where nothing is, for sizes that are refused.
    memory never_read(const memory::dims &dims, dt type) const {
        return memory(memory::desc(dims, type, dims.size() == 1 ? tag::a : tag::ab), eng,
                reinterpret_cast<void *>(uintptr_t(1) << 40));
    }
    static memory::desc matrix(dim rows, dim cols, dt type) {
        return memory::desc({rows, cols}, type, tag::ab);
    }

    mxdnn_status_t execute(const mxdnn::primitive &p, const args_t &args) const {
        std::vector<mxdnn_exec_arg_t> c;
        for (const auto &a : args) c.push_back({a.first, a.second.get(true)});
        return mxdnn_primitive_execute(p.get(), str.get(), int(c.size()), c.data());
    }
};

// ---- moe_route ----

struct route_result_t {
    std::vector<int32_t> ids, counts, ends, order, tokens;
    std::vector<uint32_t> weights, row_weights;
    bool operator==(const route_result_t &o) const {
        return ids == o.ids && counts == o.counts && ends == o.ends && order == o.order && tokens == o.tokens
               && weights == o.weights && row_weights == o.row_weights;
    }
};

TEST_F(Moe, RouteGivesTheSameBitsEverywhere) {
    const unsigned seed = 20;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, 3);
    struct {
        dim T, E, k;
        algorithm scoring;
        unsigned flags;
        dim groups, kept;
    } const problems[] = {
            {700, 33, 4, algorithm::route_topk_softmax, 0, 1, 1},
            {257, 128, 8, algorithm::route_softmax_topk, moe_route::renormalize, 1, 1},
            {300, 256, 8, algorithm::route_sigmoid, moe_route::renormalize | moe_route::bias, 8, 4},
            {130, 210, 7, algorithm::route_softmax_topk, moe_route::bias | moe_route::group_max, 70, 40},
            {90, 96, 6, algorithm::route_sigmoid, 0, 6, 2},
    };
    for (const auto &p : problems) {
        SCOPED_TRACE(p.E);
        std::vector<float> logits(size_t(p.T * p.E)), bias(static_cast<size_t>(p.E));
        // Few distinct values: scores that differ in their last bits, and many ties.
        for (float &x : logits) x = std::round(normal(rng) * 8) / 8;
        for (float &x : bias) x = std::round(normal(rng) * 4) / 16;
        std::vector<route_result_t> results;
        for (int threads : {1, 2, 5}) {
            mxdnn::set_max_concurrency(threads);
            moe_route::primitive_desc pd(
                    eng, matrix(p.T, p.E, dt::f32), p.k, p.scoring, p.flags, p.groups, p.kept);
            do {
                SCOPED_TRACE(pd.impl_info_str());
                route_result_t r;
                const size_t rows = size_t(p.T * p.k);
                for (auto *v : {&r.ids, &r.order, &r.tokens}) v->assign(rows, -7);
                for (auto *v : {&r.counts, &r.ends}) v->assign(size_t(p.E), -7);
                for (auto *v : {&r.weights, &r.row_weights}) v->assign(rows, 0xa5a5a5a5);
                args_t args = {{MXDNN_ARG_SRC, of({p.T, p.E}, dt::f32, logits)},
                        {MXDNN_ARG_TOPK_IDS, of({p.T, p.k}, dt::s32, r.ids)},
                        {MXDNN_ARG_TOPK_WEIGHTS, of({p.T, p.k}, dt::f32, r.weights)},
                        {MXDNN_ARG_GROUP_COUNTS, of({p.E}, dt::s32, r.counts)},
                        {MXDNN_ARG_GROUP_OFFSETS, of({p.E}, dt::s32, r.ends)},
                        {MXDNN_ARG_ROW_ORDER, of({p.T * p.k}, dt::s32, r.order)},
                        {MXDNN_ARG_GATHER_IDX, of({p.T * p.k}, dt::s32, r.tokens)},
                        {MXDNN_ARG_ROW_WEIGHTS, of({p.T * p.k}, dt::f32, r.row_weights)}};
                if (p.flags & moe_route::bias) args[MXDNN_ARG_ROUTE_BIAS] = of({p.E}, dt::f32, bias);
                EXPECT_OK(execute(moe_route(pd), args));
                results.push_back(r);
                EXPECT_TRUE(r == results.front());
                // A permutation that is sorted by expert and stable.
                for (size_t i = 1; i < rows; i++) {
                    const int32_t a = r.order[i - 1], b = r.order[i];
                    ASSERT_TRUE(r.ids[size_t(a)] < r.ids[size_t(b)]
                                || (r.ids[size_t(a)] == r.ids[size_t(b)] && a < b));
                }
                EXPECT_EQ(std::accumulate(r.counts.begin(), r.counts.end(), 0), int(rows));
                EXPECT_EQ(r.ends.back(), int(rows));
            } while (pd.next_impl());
        }
        EXPECT_GE(results.size(), 6u); // at least two implementations, three times
    }
}

// Every subset of the outputs equals that of a call with all outputs, and nothing else is written. Some
// problems have more tokens and choices than implementations keep between choosing and placing.
TEST_F(Moe, RouteOutputsMayBeLeftOut) {
    struct {
        dim T, E, k;
        unsigned flags;
        bool runtime_rows;
    } const problems[] = {{9, 12, 3, moe_route::none, true}, {1, 40, 1, moe_route::bias, false},
            {0, 8, 2, moe_route::none, true}, {1400, 64, 6, moe_route::renormalize, true},
            {12, 300, 300, moe_route::none, false}};
    for (const auto &p : problems) {
        SCOPED_TRACE(std::to_string(p.T) + "x" + std::to_string(p.E));
        const size_t rows = size_t(p.T * p.k);
        std::vector<uint16_t> logits = random_bf16(size_t(p.T * p.E), 4);
        std::vector<float> bias(size_t(p.E), 0.f);
        for (size_t e = 0; e < bias.size(); e++) bias[e] = float(e % 5) / 8;
        struct output_t {
            int arg;
            memory::dims dims;
            dt type;
            std::vector<uint32_t> all, part; // bits
        };
        std::vector<output_t> outputs = {{MXDNN_ARG_TOPK_IDS, {p.T, p.k}, dt::s32, {}, {}},
                {MXDNN_ARG_TOPK_WEIGHTS, {p.T, p.k}, dt::f32, {}, {}},
                {MXDNN_ARG_GROUP_COUNTS, {p.E}, dt::s32, {}, {}},
                {MXDNN_ARG_GROUP_OFFSETS, {p.E}, dt::s32, {}, {}},
                {MXDNN_ARG_ROW_ORDER, {p.T * p.k}, dt::s32, {}, {}},
                {MXDNN_ARG_GATHER_IDX, {p.T * p.k}, dt::s32, {}, {}},
                {MXDNN_ARG_ROW_WEIGHTS, {p.T * p.k}, dt::f32, {}, {}}};
        for (output_t &o : outputs)
            o.all.resize(o.dims == memory::dims{p.E} ? size_t(p.E) : rows), o.part.resize(o.all.size());
        args_t inputs = {{MXDNN_ARG_SRC, of({p.T, p.E}, dt::bf16, logits)}};
        if (p.flags & moe_route::bias) inputs[MXDNN_ARG_ROUTE_BIAS] = of({p.E}, dt::f32, bias);
        for (const int threads : {1, 3}) {
            mxdnn::set_max_concurrency(threads);
            moe_route::primitive_desc pd(eng, matrix(p.runtime_rows ? runtime : p.T, p.E, dt::bf16), p.k,
                    p.flags & moe_route::bias ? algorithm::route_sigmoid : algorithm::route_topk_softmax,
                    p.flags, 1, 1);
            do {
                SCOPED_TRACE(pd.impl_info_str());
                const moe_route prim(pd);
                args_t args = inputs;
                for (output_t &o : outputs) {
                    std::fill(o.all.begin(), o.all.end(), 0xa5a5a5a5);
                    args[o.arg] = of(o.dims, o.type, o.all);
                }
                EXPECT_OK(execute(prim, args));
                EXPECT_REFUSED(mxdnn_invalid_arguments, execute(prim, inputs), "no output", "moe_route");
                for (unsigned subset = 1; subset < 1u << outputs.size(); subset++) {
                    args = inputs;
                    for (size_t i = 0; i < outputs.size(); i++) {
                        output_t &o = outputs[i];
                        std::fill(o.part.begin(), o.part.end(), 0x5a5a5a5a);
                        if (subset >> i & 1) args[o.arg] = of(o.dims, o.type, o.part);
                    }
                    EXPECT_OK(execute(prim, args));
                    for (size_t i = 0; i < outputs.size(); i++)
                        if (subset >> i & 1) {
                            ASSERT_EQ(outputs[i].part, outputs[i].all)
                                    << "output " << i << " of subset " << subset << ", " << threads
                                    << " threads";
                        }
                }
            } while (pd.next_impl());
        }
    }
    // The logits are no output.
    std::vector<int32_t> ids(4);
    const moe_route prim(moe_route::primitive_desc(
            eng, matrix(2, 4, dt::bf16), 2, algorithm::route_topk_softmax, moe_route::none, 1, 1));
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute(prim, {{MXDNN_ARG_TOPK_IDS, of({2, 2}, dt::s32, ids)}}),
            "missing");
}

TEST_F(Moe, RouteProblemsThatAreNone) {
    mxdnn_primitive_desc_t pd = nullptr;
    const mxdnn_alg_kind_t softmax = mxdnn_route_softmax_topk;
    const auto make = [&](const memory::desc &logits, dim k, mxdnn_alg_kind_t alg, unsigned flags, dim groups,
                              dim kept, const mxdnn::primitive_attr &attr = mxdnn::primitive_attr()) {
        return mxdnn_moe_route_primitive_desc_create(
                &pd, eng.get(), logits.get(), k, alg, flags, groups, kept, attr.get());
    };
    const memory::desc good = matrix(4, 12, dt::f32);
    EXPECT_REFUSED(
            mxdnn_invalid_data_type, make(matrix(4, 12, dt::s8), 2, softmax, 0, 1, 1), "logits", "s8", "f32");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(memory::desc({12}, dt::f32, tag::a), 2, softmax, 0, 1, 1),
            "logits", "12");
    EXPECT_REFUSED(
            mxdnn_invalid_shape, make(matrix(4, runtime, dt::f32), 2, softmax, 0, 1, 1), "logits", "runtime");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(matrix(4, 0, dt::f32), 1, softmax, 0, 1, 1), "0 columns");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(matrix(4, 1 << 17, dt::f32), 1, softmax, 0, 1, 1), "131072");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 0, softmax, 0, 1, 1), "topk is 0", "12");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 13, softmax, 0, 1, 1), "topk is 13", "12");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 7, softmax, 0, 4, 2), "topk is 7", "6");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, mxdnn_eltwise_relu, 0, 1, 1), "scoring", "0x20");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 8, 1, 1), "flags", "0x8");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 5, 1), "12 experts in 5 groups");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 0, 1), "0 groups");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, -3, 1), "-3 groups");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 4, 5), "topk_groups is 5");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 4, 0), "topk_groups is 0");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(matrix(dim(1) << 30, 12, dt::f32), 2, softmax, 0, 1, 1),
            "1073741824", "s32");
    mxdnn::primitive_attr attr;
    attr.set_row_grouping(mxdnn::row_grouping::padded);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 1, 1, attr), "row grouping is 2");
    attr = mxdnn::primitive_attr();
    attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 1, 1, attr), "scales");
    const struct {
        algorithm alg;
        float alpha, beta;
    } post_ops[] = {{algorithm::eltwise_relu, 1, 0}, {algorithm::eltwise_linear, 2, 1},
            {algorithm::eltwise_linear, NAN, 0}};
    for (const auto &p : post_ops) {
        mxdnn::post_ops po;
        po.append_eltwise(p.alg, p.alpha, p.beta);
        attr = mxdnn::primitive_attr();
        attr.set_post_ops(po);
        EXPECT_REFUSED(mxdnn_invalid_arguments, make(good, 2, softmax, 0, 1, 1, attr), "eltwise_linear");
    }
    EXPECT_EQ(pd, nullptr);
}

TEST_F(Moe, RouteArgumentsThatDoNotFit) {
    constexpr dim T = 4, E = 8, k = 2;
    std::vector<float> logits(T * E), weights(T * k + 2, 9.f), bias(E + 1);
    std::vector<int32_t> ids(T * k + 2, -9), order(T * k + 2, -9);
    moe_route::primitive_desc pd(
            eng, matrix(runtime, E, dt::f32), k, algorithm::route_sigmoid, moe_route::bias, 1, 1);
    do {
        const moe_route prim(pd);
        const args_t good = {{MXDNN_ARG_SRC, of({T, E}, dt::f32, logits)},
                {MXDNN_ARG_ROUTE_BIAS, of({E}, dt::f32, bias)},
                {MXDNN_ARG_TOPK_IDS, of({T, k}, dt::s32, ids)},
                {MXDNN_ARG_TOPK_WEIGHTS, of({T, k}, dt::f32, weights)},
                {MXDNN_ARG_ROW_ORDER, of({T * k}, dt::s32, order)}};
        const auto with = [&](int arg, const memory &m) {
            args_t args = good;
            args[arg] = m;
            return execute(prim, args);
        };
        std::fill(ids.begin(), ids.end(), -9);
        EXPECT_REFUSED(mxdnn_invalid_arguments, with(MXDNN_ARG_TOPK_IDS, of({T + 1, k}, dt::s32, ids)),
                "TOPK_IDS", "5", "4");
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                with(MXDNN_ARG_TOPK_WEIGHTS, of({T - 1, k}, dt::f32, weights)), "TOPK_WEIGHTS");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with(MXDNN_ARG_ROW_ORDER, of({T * k + 1}, dt::s32, order)),
                "ROW_ORDER", "9", "8");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with(MXDNN_ARG_ROUTE_BIAS, of({E + 1}, dt::f32, bias)),
                "ROUTE_BIAS");
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, with(MXDNN_ARG_GATHER_IDX, of({T * k}, dt::s32, ids)), "overlaps");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with(MXDNN_ARG_SCATTER_IDX, of({T * k}, dt::s32, order)),
                "SCATTER_IDX");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with(MXDNN_ARG_SRC, never_read({dim(1) << 30, E}, dt::f32)),
                "1073741824 tokens", "s32");
        EXPECT_EQ(ids, std::vector<int32_t>(ids.size(), -9));
        EXPECT_OK(execute(prim, good));
    } while (pd.next_impl());
}

// ---- moe_permute ----

TEST_F(Moe, PermuteProblemsThatAreNone) {
    mxdnn_primitive_desc_t pd = nullptr;
    const auto make = [&](const memory::desc &src, const memory::desc &dst, dim ranks, dim experts, dim align,
                              const mxdnn::primitive_attr &attr = mxdnn::primitive_attr()) {
        return mxdnn_moe_permute_primitive_desc_create(
                &pd, eng.get(), src.get(), dst.get(), ranks, experts, align, attr.get());
    };
    const memory::desc src = matrix(20, 64, dt::bf16), dst = matrix(64, 64, dt::bf16);
    EXPECT_REFUSED(mxdnn_invalid_shape, make(src, matrix(64, 63, dt::bf16), 2, 4, 8), "20x64", "64x63");
    EXPECT_REFUSED(mxdnn_invalid_data_type, make(src, matrix(64, 64, dt::f32), 2, 4, 8), "bf16", "f32");
    EXPECT_REFUSED(
            mxdnn_invalid_data_type, make(matrix(20, 64, dt::s32), matrix(64, 64, dt::s32), 2, 4, 8), "s32");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 0, 4, 8), "0 source ranks");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 2, -1, 8), "-1 local experts");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, dim(1) << 40, dim(1) << 40, 8), "source ranks");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 2, 4, 0), "alignment is 0");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 2, 4, dim(1) << 40), "alignment");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(src, matrix(31, 64, dt::bf16), 2, 4, 8), "31 rows", "32");
    EXPECT_REFUSED(mxdnn_invalid_shape, make(src, memory::desc::grouped({64, 64}, dt::bf16, 0, 5), 2, 4, 8),
            "5 groups", "4");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            make(memory::desc::grouped({20, 64}, dt::bf16, 0, 4), dst, 2, 4, 8), "src", "grouped");
    const memory::desc q_src = matrix(20, 64, dt::f8_e4m3), q_dst = matrix(512, 64, dt::f8_e4m3);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(q_src, q_dst, 2, 4, 128), "src", "scales");
    const auto attr = [](dim g0, dim g1, bool swizzled) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_SRC, 3, {g0, g1}, dt::e8m0);
        if (swizzled) a.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
        return a;
    };
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, make(q_src, q_dst, 2, 4, 128, attr(32, 1, false)), "32x1", "1x32");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(q_src, q_dst, 2, 4, 32, attr(1, 32, true)),
            "alignment is 32", "128");
    mxdnn::primitive_attr other = attr(1, 32, false);
    other.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0);
    other.set_element_packing(MXDNN_ARG_DST, mxdnn::element_packing::dense);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(q_src, q_dst, 2, 4, 32, other), "packing");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            make(matrix(20, 64, dt::f6_e2m3), matrix(512, 64, dt::f6_e2m3), 2, 4, 32, other),
            "packing of src and dst differ");
    other = attr(1, 32, false);
    other.set_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3);
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            make(matrix(20, 64, dt::f4_e2m1), matrix(512, 64, dt::f4_e2m1), 2, 4, 32, other),
            "of src and dst differ");
    other = mxdnn::primitive_attr();
    other.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, make(q_src, q_dst, 2, 4, 32, other), "src has dynamic scales", "static");
    mxdnn::post_ops po;
    po.append_sum(1.f);
    other = mxdnn::primitive_attr();
    other.set_post_ops(po);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 2, 4, 8, other), "no post-ops");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(src, dst, 2, 4, 8, attr(1, 32, false)), "bf16");
    EXPECT_EQ(pd, nullptr);
}

TEST_F(Moe, PermuteRefusesHostileCountsBeforeItWrites) {
    constexpr dim D = 8;
    std::vector<uint16_t> src = random_bf16(10 * D, 1), dst(16 * D, 0x1234);
    std::vector<int32_t> offsets(2, -9), idx(16, -9);
    const auto before = dst;
    moe_permute::primitive_desc pd(eng, matrix(runtime, D, dt::bf16), matrix(runtime, D, dt::bf16), 2, 2, 4);
    do {
        SCOPED_TRACE(pd.impl_info_str());
        const moe_permute prim(pd);
        const auto good = [&](std::vector<int32_t> &counts) {
            return args_t{{MXDNN_ARG_SRC, of({10, D}, dt::bf16, src)},
                    {MXDNN_ARG_DST, of({16, D}, dt::bf16, dst)},
                    {MXDNN_ARG_GROUP_COUNTS, of({2, 2}, dt::s32, counts)},
                    {MXDNN_ARG_GROUP_OFFSETS, of({2}, dt::s32, offsets)},
                    {MXDNN_ARG_PERMUTED_IDX, of({16}, dt::s32, idx)}};
        };
        const auto with = [&](std::vector<int32_t> counts) { return execute(prim, good(counts)); };
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({1, -1, 2, 3}), "GROUP_COUNTS[0, 1]", "-1");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({1, 1, 2, 7}), "11 rows", "10");
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, with({INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}), "2147483647");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({INT32_MIN, 0, 0, 0}), "-2147483648");
        for (const int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST}) {
            std::vector<int32_t> counts(4);
            args_t args = good(counts);
            args[arg] = never_read({dim(1) << 31, D}, dt::bf16);
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(prim, args), "has 2147483648 rows", "s32");
        }
        EXPECT_EQ(dst, before);
        EXPECT_EQ(offsets, std::vector<int32_t>(2, -9));
        EXPECT_EQ(idx, std::vector<int32_t>(16, -9));
        // Nine rows of one expert and one of the other: 12 + 4.
        EXPECT_OK(with({4, 1, 5, 0}));
        EXPECT_EQ(offsets, (std::vector<int32_t>{12, 16}));
        dst = before;
        std::fill(offsets.begin(), offsets.end(), -9);
        std::fill(idx.begin(), idx.end(), -9);
    } while (pd.next_impl());
    // The same rows, but one group needs more of the destination than there is.
    moe_permute::primitive_desc tight(eng, matrix(10, D, dt::bf16), matrix(12, D, dt::bf16), 2, 2, 4);
    do {
        std::vector<int32_t> counts = {4, 1, 5, 0};
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                execute(moe_permute(tight), {{MXDNN_ARG_SRC, of({10, D}, dt::bf16, src)},
                                                    {MXDNN_ARG_DST, of({12, D}, dt::bf16, dst)},
                                                    {MXDNN_ARG_GROUP_COUNTS, of({2, 2}, dt::s32, counts)}}),
                "expert 1", "16 rows", "12");
        EXPECT_EQ(dst, before);
    } while (tight.next_impl());
}

// ---- moe_unpermute ----

TEST_F(Moe, UnpermuteProblemsThatAreNone) {
    mxdnn_primitive_desc_t pd = nullptr;
    const auto make = [&](const memory::desc &src, const memory::desc &dst,
                              const mxdnn::primitive_attr &attr = mxdnn::primitive_attr()) {
        return mxdnn_moe_unpermute_primitive_desc_create(&pd, eng.get(), src.get(), dst.get(), attr.get());
    };
    EXPECT_REFUSED(
            mxdnn_invalid_shape, make(matrix(8, 64, dt::bf16), matrix(2, 32, dt::bf16)), "8x64", "2x32");
    EXPECT_REFUSED(mxdnn_invalid_data_type, make(matrix(8, 64, dt::bf16), matrix(2, 64, dt::s32)), "s32");
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    EXPECT_REFUSED(mxdnn_unimplemented, make(matrix(8, 64, dt::f8_e4m3), matrix(2, 64, dt::bf16), attr),
            "f8_e4m3", "bf16");
    EXPECT_REFUSED(mxdnn_invalid_data_type,
            make(matrix(8, 64, dt::f8_e4m3), matrix(2, 64, dt::f8_e5m2), attr), "f8_e5m2");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, make(matrix(8, 64, dt::bf16), matrix(2, 64, dt::bf16), attr), "bf16");
    mxdnn::post_ops po;
    po.append_sum(1.f);
    attr = mxdnn::primitive_attr();
    attr.set_post_ops(po);
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(matrix(8, 64, dt::bf16), matrix(2, 64, dt::bf16), attr),
            "post-ops");
    EXPECT_EQ(pd, nullptr);
}

TEST_F(Moe, UnpermuteRefusesHostileIndicesBeforeItWrites) {
    constexpr dim D = 8, T = 2, k = 2, rows = 5;
    std::vector<uint16_t> src = random_bf16(rows * D, 1), dst(T * D, 0x1234);
    std::vector<float> weights(T * k + 1, 1.f); // the last is of rows that do not follow each other
    const auto before = dst;
    moe_unpermute::primitive_desc pd(eng, matrix(runtime, D, dt::bf16), matrix(runtime, D, dt::bf16));
    do {
        SCOPED_TRACE(pd.impl_info_str());
        const moe_unpermute prim(pd);
        const auto good = [&](std::vector<int32_t> &idx) {
            return args_t{{MXDNN_ARG_SRC, of({rows, D}, dt::bf16, src)},
                    {MXDNN_ARG_DST, of({T, D}, dt::bf16, dst)},
                    {MXDNN_ARG_PERMUTED_IDX, of({dim(idx.size())}, dt::s32, idx)},
                    {MXDNN_ARG_TOPK_WEIGHTS, of({T, k}, dt::f32, weights)}};
        };
        const auto with = [&](std::vector<int32_t> idx, bool weighted = true) {
            args_t args = good(idx);
            if (!weighted) args.erase(MXDNN_ARG_TOPK_WEIGHTS);
            return execute(prim, args);
        };
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({0, 1, 4, -1, -1}), "PERMUTED_IDX[2] is 4", "-1 to 3");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({0, 1, -2, -1, -1}), "PERMUTED_IDX[2] is -2");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({0, 1, INT32_MIN, -1, -1}), "PERMUTED_IDX[2]");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({0, 1, INT32_MAX, -1, -1}), "PERMUTED_IDX[2]");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({3, 1, -1, 3, 0}), "PERMUTED_IDX[3] is 3", "one row");
        EXPECT_REFUSED(mxdnn_invalid_arguments, with({0, 1, 2}), "PERMUTED_IDX", "5");
        // Without weights a row has one entry.
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, with({0, 2, -1, -1, -1}, false), "PERMUTED_IDX[1] is 2", "-1 to 1");
        const auto replaced = [&](int arg, const memory &m) {
            std::vector<int32_t> idx(rows, -1);
            args_t args = good(idx);
            args[arg] = m;
            return execute(prim, args);
        };
        for (const dim columns : {dim(0), dim(1) << 17})
            EXPECT_REFUSED(mxdnn_invalid_arguments,
                    replaced(MXDNN_ARG_TOPK_WEIGHTS, never_read({T, columns}, dt::f32)),
                    "TOPK_WEIGHTS have " + std::to_string(columns) + " columns");
        const memory apart(memory::desc({T, k}, dt::f32, memory::dims{3, 1}), eng, weights.data());
        EXPECT_REFUSED(mxdnn_invalid_arguments, replaced(MXDNN_ARG_TOPK_WEIGHTS, apart),
                "TOPK_WEIGHTS have strides 3x1", "2x1");
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                replaced(MXDNN_ARG_SRC, never_read({dim(1) << 31, D}, dt::bf16)),
                "2147483648 rows for 2 tokens with 2 choices", "s32");
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                replaced(MXDNN_ARG_DST, never_read({dim(1) << 30, D}, dt::bf16)),
                "5 rows for 1073741824 tokens with 2 choices", "s32");
        EXPECT_EQ(dst, before);
        EXPECT_OK(with({3, -1, 0, 1, 2}));
        // Weights of bf16 are the same numbers here.
        const auto summed = dst;
        std::vector<uint16_t> half(T * k, to_bf16(1.f));
        std::vector<int32_t> idx = {3, -1, 0, 1, 2};
        dst = before;
        args_t args = good(idx);
        args[MXDNN_ARG_TOPK_WEIGHTS] = of({T, k}, dt::bf16, half);
        EXPECT_OK(execute(prim, args));
        EXPECT_EQ(dst, summed);
        EXPECT_OK(with({1, -1, 0, -1, -1}, false));
        EXPECT_TRUE(std::equal(dst.begin(), dst.begin() + D, src.begin() + 2 * D));
        dst = before;
    } while (pd.next_impl());
}

// Two rows for one entry are noticed, also among more entries than are checked together.
TEST_F(Moe, UnpermuteOfManyRows) {
    constexpr dim T = 40000, k = 4;
    std::vector<int32_t> idx(T * k);
    std::iota(idx.begin(), idx.end(), 0);
    std::mt19937 rng(9);
    std::shuffle(idx.begin(), idx.end(), rng);
    std::vector<float> src(T * k), weights(T * k), dst(T), want(T, 0.f);
    for (size_t i = 0; i < src.size(); i++) src[i] = float(i % 97), weights[i] = float(i % 7);
    std::vector<size_t> row_of(T * k);
    for (size_t r = 0; r < idx.size(); r++) row_of[size_t(idx[r])] = r;
    for (size_t i = 0; i < row_of.size(); i++) want[i / k] += weights[i] * src[row_of[i]]; // exact
    moe_unpermute::primitive_desc pd(eng, matrix(T * k, 1, dt::f32), matrix(T, 1, dt::f32));
    do {
        SCOPED_TRACE(pd.impl_info_str());
        const moe_unpermute prim(pd);
        const args_t args = {{MXDNN_ARG_SRC, of({T * k, 1}, dt::f32, src)},
                {MXDNN_ARG_DST, of({T, 1}, dt::f32, dst)},
                {MXDNN_ARG_PERMUTED_IDX, of({T * k}, dt::s32, idx)},
                {MXDNN_ARG_TOPK_WEIGHTS, of({T, k}, dt::f32, weights)}};
        EXPECT_OK(execute(prim, args));
        EXPECT_EQ(dst, want);
        std::fill(dst.begin(), dst.end(), -3.f);
        const int32_t own = idx[100000];
        idx[100000] = idx[7];
        EXPECT_REFUSED(mxdnn_invalid_arguments, execute(prim, args), "PERMUTED_IDX[100000]");
        EXPECT_EQ(dst, std::vector<float>(T, -3.f));
        idx[100000] = own;
    } while (pd.next_impl());
}

// With any index tensors, every implementation refuses and writes nothing, or all give the same bytes.
TEST_F(Moe, FuzzedCountsAndIndices) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const auto below = [&](int n) { return int(rng() % unsigned(n)); };
    const int32_t hostile[] = {-2, -1, 100, 1 << 20, INT32_MAX, INT32_MIN};
    constexpr dim D = 3, ranks = 2, experts = 3;
    struct outcome_t {
        mxdnn_status_t status;
        std::vector<uint16_t> dst;
        std::vector<int32_t> offsets, idx;
        bool operator==(const outcome_t &o) const {
            return status == o.status && dst == o.dst && offsets == o.offsets && idx == o.idx;
        }
    };
    int done[2] = {}, refused[2] = {};
    for (int round = 0; round < 1500; round++) {
        const dim rows = below(12), dst_rows = 3 * (1 + below(12)), T = below(5), k = 1 + below(3);
        std::vector<uint16_t> src = random_bf16(size_t(rows * D) + 1, rng());
        std::vector<int32_t> counts(ranks * experts), back(size_t(rows) + 1, -1);
        for (int32_t &c : counts) c = below(40) == 0 ? hostile[below(6)] : below(4);
        // Entries in order, some of them missing, some hostile.
        int32_t entry = 0;
        for (dim r = 0; r < rows; r++) {
            entry += 1 + below(2);
            back[size_t(r)] = below(60) == 0 ? hostile[below(6)] : entry <= T * k ? entry - 1 : -1;
        }
        std::shuffle(back.begin(), back.begin() + rows, rng);
        std::vector<float> weights(size_t(T * k) + 1, .5f);

        const auto run =
                [&](auto pd, const std::function<mxdnn_status_t(const mxdnn::primitive &, outcome_t &)> &body,
                        int which) {
                    std::vector<outcome_t> outcomes;
                    do {
                        outcome_t o = {mxdnn_success,
                                std::vector<uint16_t>(size_t(dst_rows * D + T * D), 0x1234),
                                std::vector<int32_t>(experts, -9),
                                std::vector<int32_t>(size_t(dst_rows), -9)};
                        const outcome_t before = o;
                        o.status = body(mxdnn::primitive(pd), o);
                        if (o.status != mxdnn_success) {
                            EXPECT_EQ(o.status, mxdnn_invalid_arguments);
                            EXPECT_TRUE(o.dst == before.dst && o.offsets == before.offsets
                                        && o.idx == before.idx);
                        }
                        outcomes.push_back(o);
                        EXPECT_TRUE(o == outcomes.front()) << pd.impl_info_str();
                    } while (pd.next_impl());
                    (outcomes.front().status == mxdnn_success ? done : refused)[which]++;
                };
        run(
                moe_permute::primitive_desc(
                        eng, matrix(runtime, D, dt::bf16), matrix(runtime, D, dt::bf16), ranks, experts, 3),
                [&](const mxdnn::primitive &p, outcome_t &o) {
                    return execute(p, {{MXDNN_ARG_SRC, of({rows, D}, dt::bf16, src)},
                                              {MXDNN_ARG_DST, of({dst_rows, D}, dt::bf16, o.dst)},
                                              {MXDNN_ARG_GROUP_COUNTS, of({ranks, experts}, dt::s32, counts)},
                                              {MXDNN_ARG_GROUP_OFFSETS, of({experts}, dt::s32, o.offsets)},
                                              {MXDNN_ARG_PERMUTED_IDX, of({dst_rows}, dt::s32, o.idx)}});
                },
                0);
        run(
                moe_unpermute::primitive_desc(
                        eng, matrix(runtime, D, dt::bf16), matrix(runtime, D, dt::bf16)),
                [&](const mxdnn::primitive &p, outcome_t &o) {
                    return execute(p, {{MXDNN_ARG_SRC, of({rows, D}, dt::bf16, src)},
                                              {MXDNN_ARG_DST, of({T, D}, dt::bf16, o.dst)},
                                              {MXDNN_ARG_PERMUTED_IDX, of({rows}, dt::s32, back)},
                                              {MXDNN_ARG_TOPK_WEIGHTS, of({T, k}, dt::f32, weights)}});
                },
                1);
    }
    for (int which : {0, 1}) {
        EXPECT_GT(done[which], 50) << which;
        EXPECT_GT(refused[which], 50) << which;
    }
}

} // namespace
