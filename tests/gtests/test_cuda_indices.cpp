// SPDX-License-Identifier: Apache-2.0
// Unchecked indices on the device. Rows and experts that do not exist are left out, and source rows that do
// not exist are zeros. With any numbers nothing else is read or written; run under compute-sanitizer to see
// that.
#include <climits>

#include "cuda_grouped_problem.hpp"

using namespace cuda_test;
using namespace cuda_test::grouped;

namespace {

constexpr const char *impls[] = {"cuda:sm_90", "rows:sm_80", "ref:cuda"};

// Of legal numbers below n, none.
int32_t illegal(dice_t &d, int64_t n) {
    const int32_t numbers[] = {
            INT_MIN, INT_MIN + 1, -2, int32_t(n), int32_t(n) + 1, 1 << 24, INT_MAX - 1, INT_MAX};
    return d.one_of(numbers);
}

// Every fourth index becomes an illegal one, and -1 in the twin.
void spoil(dice_t &d, int64_t n, std::vector<int32_t> &indices, std::vector<int32_t> &twin) {
    for (size_t i = 0; i < indices.size(); i++)
        if (d.below(4) == 0) indices[i] = illegal(d, n), twin[i] = -1;
}

// The same rows, each with an expert of its own.
void divide_by_ids(problem_of_test_t &p) {
    const int64_t ids = p.map.empty() ? p.E : int64_t(p.map.size());
    p.grouping = mxdnn::row_grouping::row_ids;
    p.group_rows = 0;
    p.G = p.rows;
    p.ids.clear();
    p.bounds.resize(size_t(p.rows));
    for (int32_t &id : p.bounds) id = p.d.below(int(ids) + 1) - 1;
}

// Groups that begin before the first row and end after the last. The twin has the clamped offsets.
void spoil_bounds(dice_t &d, problem_of_test_t &p, problem_of_test_t &twin) {
    if (p.grouping == mxdnn::row_grouping::row_ids)
        return spoil(d, p.map.empty() ? p.E : int64_t(p.map.size()), p.bounds, twin.bounds);
    if (p.grouping == mxdnn::row_grouping::padded) {
        for (size_t g = 0; g < p.bounds.size(); g++)
            if (d.below(3) == 0) {
                const bool all = d.coin();
                p.bounds[g] = all ? INT_MAX - d.below(2) : d.coin() ? INT_MIN : -1;
                twin.bounds[g] = all ? int32_t(p.group_rows) : 0;
            }
        return;
    }
    if (p.grouping == mxdnn::row_grouping::starts && d.coin()) {
        p.bounds[0] = INT_MIN + d.below(3);
        twin.bounds[0] = 0;
    }
    if (d.coin()) return;
    for (size_t g = p.bounds.size() - 1 - size_t(d.below(int(std::min<size_t>(2, p.bounds.size() - 1)) + 1));
            g < p.bounds.size(); g++) {
        if (g == 0 && p.grouping == mxdnn::row_grouping::starts) continue;
        p.bounds[g] = INT_MAX - 3 + int32_t(std::min<size_t>(g, 3));
        twin.bounds[g] = int32_t(p.rows);
    }
}

// A problem with few weights, because weights take long to generate.
problem_of_test_t problem_of(unsigned seed) {
    const kind_t kind = seed % 12 == 7 ? kind_t::many : kind_t::small;
    problem_of_test_t p(seed, kind);
    while (p.E * p.K * p.N > 400000) p = problem_of_test_t(seed += 100, kind);
    if (seed % 4 == 1) divide_by_ids(p);
    return p;
}

TEST(cuda_indices, out_of_range_are_left_out) {
    int compared = 0;
    for (unsigned seed = 2000; seed < 2024; seed++) {
        problem_of_test_t p = problem_of(seed);
        auto pd = p.make_pd();
        p.make_weights(pd.weights_desc());
        problem_of_test_t twin = p;
        dice_t d(seed);
        spoil(d, p.map.empty() ? p.E : int64_t(p.map.size()), p.ids, twin.ids);
        spoil(d, p.E, p.map, twin.map);
        spoil(d, p.src_rows, p.gather, twin.gather);
        spoil(d, p.dst_rows, p.scatter, twin.scatter);
        spoil_bounds(d, p, twin);
        for (const char *impl : impls) {
            pd = p.make_pd();
            if (!go_to(pd, impl)) continue;
            const bytes_t got = p.run(pd);
            EXPECT_EQ(got, twin.run(pd)) << impl << " seed " << seed << " " << p.text();
            compared++;
        }
    }
    EXPECT_GE(compared, 48);
}

// Numbers in no order: groups that overlap, that end before they begin, that have more rows than exist.
TEST(cuda_indices, out_of_range_and_order_touch_nothing_else) {
    for (unsigned seed = 3000; seed < 3024; seed++) {
        problem_of_test_t p = problem_of(seed);
        auto pd = p.make_pd();
        p.make_weights(pd.weights_desc());
        dice_t d(seed);
        const auto any = [&](std::vector<int32_t> &indices, int64_t n) {
            for (int32_t &i : indices)
                if (d.below(3)) i = d.below(3) ? d.below(int(n) + 1) : illegal(d, n);
        };
        any(p.bounds, p.grouping == mxdnn::row_grouping::row_ids ? p.E : p.rows);
        any(p.ids, p.E);
        any(p.map, p.E);
        any(p.gather, p.src_rows);
        any(p.scatter, p.dst_rows);
        for (const char *impl : impls) {
            pd = p.make_pd();
            if (go_to(pd, impl)) p.run(pd); // throws where the device reports a fault
        }
    }
}

// Rows of several ranks by their experts, and back.
TEST(cuda_indices, out_of_range_of_permute_touch_nothing_else) {
    for (unsigned seed = 0; seed < 20; seed++) {
        dice_t d(seed);
        const int64_t ranks = 1 + d.below(4), experts = 1 + d.below(9), align = 1 + d.below(32),
                      columns = 32 * (1 + d.below(4)), rows = 1 + d.below(300);
        mxdnn::primitive_attr attr;
        const bool codes = d.coin();
        if (codes)
            for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST}) attr.set_scales(arg, 3, {1, 32}, dt::e8m0);
        const dt type = codes ? dt::f8_e4m3 : dt::bf16;
        mxdnn::moe_permute::primitive_desc pd(gpu(), memory::desc({rows, columns}, type, tag::ab),
                memory::desc({rows + align * experts, columns}, type, tag::ab), ranks, experts, align, attr);
        values_t in = random_inputs(pd, d.rng);
        std::vector<int32_t> counts(size_t(ranks * experts), 0);
        for (int32_t &c : counts) c = d.coin() ? d.below(100) : illegal(d, rows);
        in[MXDNN_ARG_GROUP_COUNTS] = bytes_of(counts);
        do run(pd, gpu(), in);
        while (pd.next_impl());
    }
}

TEST(cuda_indices, out_of_range_of_unpermute_go_nowhere) {
    for (unsigned seed = 0; seed < 30; seed++) {
        dice_t d(seed);
        const int64_t topk = d.below(5), choices = std::max<int64_t>(topk, 1), tokens = 1 + d.below(70),
                      columns = 32 * (1 + d.below(4)), rows = tokens * choices + d.below(9);
        mxdnn::primitive_attr attr;
        const bool codes = topk == 0 && d.coin();
        if (codes)
            for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST}) attr.set_scales(arg, 3, {1, 32}, dt::e8m0);
        const dt type = codes ? dt::f8_e4m3 : dt::bf16;
        mxdnn::moe_unpermute::primitive_desc pd(gpu(), memory::desc({rows, columns}, type, tag::ab),
                memory::desc({tokens, columns}, type, tag::ab), attr);
        shapes_t shapes;
        values_t in = random_inputs(pd, d.rng);
        if (topk) {
            shapes[MXDNN_ARG_TOPK_WEIGHTS] = memory::desc({tokens, topk}, dt::f32, tag::ab);
            in[MXDNN_ARG_TOPK_WEIGHTS] = random_bytes(mxdnn_f32, size_t(tokens * topk * 4), d.rng);
        }
        // A row for each choice, in any order, and rows that have none.
        std::vector<int32_t> idx(size_t(rows), -1);
        for (int64_t i = 0; i < tokens * choices; i++) idx[size_t(i)] = int32_t(i);
        std::shuffle(idx.begin(), idx.end(), d.rng);
        std::vector<int32_t> twin = idx;
        spoil(d, tokens * choices, idx, twin);
        do {
            in[MXDNN_ARG_PERMUTED_IDX] = bytes_of(idx);
            const values_t got = run(pd, gpu(), in, shapes);
            in[MXDNN_ARG_PERMUTED_IDX] = bytes_of(twin);
            EXPECT_EQ(got, run(pd, gpu(), in, shapes)) << "seed " << seed << " " << pd.impl_info_str();
        } while (pd.next_impl());
    }
}

} // namespace
