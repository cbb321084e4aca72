// SPDX-License-Identifier: Apache-2.0
// grouped_matmul by every implementation: what one execution must have in common with another, the traps of
// routings, and index tensors that are refused before anything is written.
#include <algorithm>
#include <functional>
#include <thread>

#include "count_allocations.hpp"
#include "test_api_util.hpp"

using namespace api_test;
using mxdnn::grouped_matmul;

namespace {

using dim = memory::dim;
using args_t = std::unordered_map<int, memory>;

const mxdnn::engine &cpu() {
    static const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    return e;
}

memory ints(std::vector<int32_t> &v) {
    return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), cpu(), v.data());
}
memory floats(std::vector<float> &v) {
    return memory(memory::desc({dim(v.size())}, dt::f32, tag::a), cpu(), v.data());
}
memory::desc rows_of(dim rows, dim width, dt type) { return memory::desc({rows, width}, type, tag::ab); }

// MXFP4 weights of E experts, packed, and the values that they stand for, [E][N][K].
struct experts_t {
    dim E, K, N;
    mxdnn::stream stream{cpu()};
    std::vector<float> values;
    memory packed;

    experts_t(dim e, dim k, dim n, int nan_expert = -1) : E(e), K(k), N(n) {
        const std::vector<uint16_t> nk = random_bf16(size_t(E * K * N), 7);
        for (dim i = 0; i < E; i++) {
            const std::vector<uint16_t> one(nk.begin() + i * K * N, nk.begin() + (i + 1) * K * N);
            const std::vector<float> v = mxfp4_values(one, int(K), int(N));
            values.insert(values.end(), v.begin(), v.end());
        }
        std::vector<uint16_t> from = nk;
        if (nan_expert >= 0) from[size_t(nan_expert * K * N + 3 * K + 1)] = 0x7fc0; // column 3
        packed = memory(describe().weights_desc(), cpu());
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        q.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
        memory plain(memory::desc({E, K, N}, dt::bf16, tag::acb), cpu(), from.data());
        mxdnn::mx_reorder(
                mxdnn::mx_reorder::primitive_desc(cpu(), plain.get_desc(), cpu(), packed.get_desc(), q))
                .execute(stream, plain, packed);
    }

    // f32 results of a bf16 source.
    grouped_matmul::primitive_desc describe(mxdnn::primitive_attr a = {}, dim dst_columns = 0,
            dim rows = runtime, dt src = dt::bf16, const memory::desc &bias = {}) const {
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        return grouped_matmul::primitive_desc(cpu(), rows_of(rows, K, src),
                memory::desc({E, K, N}, dt::f4_e2m1, tag::any), bias,
                rows_of(rows, dst_columns ? dst_columns : N, dt::f32), a);
    }

    double exact(const std::vector<uint16_t> &x, dim row, dim e, dim n) const {
        double v = 0;
        for (dim k = 0; k < K; k++)
            v += double(from_bf16(x[size_t(row * K + k)])) * double(values[size_t((e * N + n) * K + k)]);
        return v;
    }
    // Bound of a sum: (K + 16) roundings of terms of these sizes, and the storing.
    double bound(const std::vector<uint16_t> &x, dim row, dim e, dim n) const {
        double size = 0;
        for (dim k = 0; k < K; k++)
            size += std::fabs(
                    double(from_bf16(x[size_t(row * K + k)])) * double(values[size_t((e * N + n) * K + k)]));
        return double(K + 18) * 0x1p-24 * size + 0x1p-120;
    }
};

const experts_t &four() {
    static const experts_t x(4, 64, 48);
    return x;
}

constexpr float poison = -77.25f;

// Executes with a poisoned destination and returns it.
std::vector<float> run(const experts_t &w, const grouped_matmul::primitive_desc &pd, args_t args,
        const std::vector<uint16_t> &x, dim dst_rows, dim columns = 0) {
    columns = columns ? columns : w.N;
    std::vector<float> y(size_t(dst_rows * columns), poison);
    if (!args.count(MXDNN_ARG_WEIGHTS) && !args.count(MXDNN_ARG_WEIGHTS_PTRS))
        args[MXDNN_ARG_WEIGHTS] = w.packed;
    args[MXDNN_ARG_SRC] =
            memory(rows_of(dim(x.size()) / w.K, w.K, dt::bf16), cpu(), const_cast<uint16_t *>(x.data()));
    args[MXDNN_ARG_DST] = memory(rows_of(dst_rows, columns, dt::f32), cpu(), y.data());
    grouped_matmul(pd).execute(w.stream, args);
    return y;
}

void by_every_implementation(grouped_matmul::primitive_desc pd,
        const std::function<void(const grouped_matmul::primitive_desc &)> &body) {
    std::string impl;
    do {
        impl = pd.impl_info_str();
        SCOPED_TRACE(impl);
        body(pd);
    } while (pd.next_impl());
    EXPECT_EQ(impl, "ref:any");
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

mxdnn::primitive_attr grouped_by(mxdnn::row_grouping grouping) {
    mxdnn::primitive_attr a;
    a.set_row_grouping(grouping);
    return a;
}

TEST(grouped_matmul, sums_and_rows_past_the_last_end) {
    const experts_t &w = four();
    const dim rows = 45;
    const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 3);
    std::vector<int32_t> ends = {5, 5, 6, 41};
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const std::vector<float> y = run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}}, x, rows);
        for (dim r = 0; r < rows; r++) {
            const dim e = std::upper_bound(ends.begin(), ends.end(), int32_t(r)) - ends.begin();
            for (dim n = 0; n < w.N; n++) {
                const double want = e < w.E ? w.exact(x, r, e, n) : double(poison);
                EXPECT_NEAR(double(y[size_t(r * w.N + n)]), want, e < w.E ? w.bound(x, r, e, n) : 0)
                        << r << ", " << n;
            }
        }
    });
}

// The same rows under the same experts, said in four ways, give the same bits.
TEST(grouped_matmul, groupings_agree) {
    const experts_t &w = four();
    const dim Mmax = 6, rows = w.E * Mmax;
    const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 5);
    std::vector<int32_t> counts = {4, 0, 6, 1}, ids(size_t(rows), -1), gather, ends, starts = {0};
    for (dim e = 0; e < w.E; e++) {
        for (int i = 0; i < counts[size_t(e)]; i++) {
            ids[size_t(e * Mmax + i)] = int32_t(e);
            gather.push_back(int32_t(e * Mmax + i));
        }
        ends.push_back(int32_t(gather.size()));
        starts.push_back(int32_t(gather.size()));
    }
    by_every_implementation(w.describe(), [&](const auto &by_ends) {
        const auto of = [&](mxdnn::row_grouping g) {
            auto pd = w.describe(grouped_by(g));
            while (std::string(pd.impl_info_str()) != by_ends.impl_info_str() && pd.next_impl()) {
            }
            return pd;
        };
        const std::vector<float> padded =
                run(w, of(mxdnn::row_grouping::padded), {{MXDNN_ARG_GROUP_COUNTS, ints(counts)}}, x, rows);
        EXPECT_TRUE(same_bits(padded,
                run(w, of(mxdnn::row_grouping::row_ids), {{MXDNN_ARG_ROW_EXPERT_IDS, ints(ids)}}, x, rows)));
        std::vector<float> packed;
        for (int32_t r : gather)
            packed.insert(packed.end(), padded.begin() + r * w.N, padded.begin() + (r + 1) * w.N);
        const dim n = dim(gather.size());
        EXPECT_TRUE(same_bits(packed,
                run(w, by_ends, {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}, {MXDNN_ARG_GATHER_IDX, ints(gather)}},
                        x, n)));
        EXPECT_TRUE(same_bits(packed,
                run(w, of(mxdnn::row_grouping::starts),
                        {{MXDNN_ARG_GROUP_OFFSETS, ints(starts)}, {MXDNN_ARG_GATHER_IDX, ints(gather)}}, x,
                        n)));
    });
}

TEST(grouped_matmul, one_token_and_128_experts) {
    const experts_t w(128, 32, 16);
    const std::vector<uint16_t> x = random_bf16(size_t(w.K), 11);
    by_every_implementation(w.describe(), [&](const auto &pd) {
        for (dim e = 0; e < w.E; e++) {
            std::vector<int32_t> ends(size_t(w.E), 0);
            for (dim i = e; i < w.E; i++) ends[size_t(i)] = 1;
            const std::vector<float> y = run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}}, x, 1);
            for (dim n = 0; n < w.N; n++)
                ASSERT_NEAR(double(y[size_t(n)]), w.exact(x, 0, e, n), w.bound(x, 0, e, n)) << "expert " << e;
        }
    });
}

// A token that chose one expert twice gets the sum of both results.
TEST(grouped_matmul, same_expert_twice) {
    const experts_t &w = four();
    const std::vector<uint16_t> x = random_bf16(size_t(2 * w.K), 13);
    std::vector<int32_t> ends = {0, 3, 3, 3}, gather = {1, 0, 1}, scatter = {1, 0, 1};
    std::vector<float> topk = {0.25f, 1.f, 0.5f};
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const std::vector<float> y = run(w, pd,
                {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}, {MXDNN_ARG_GATHER_IDX, ints(gather)},
                        {MXDNN_ARG_SCATTER_IDX, ints(scatter)}, {MXDNN_ARG_TOPK_WEIGHTS, floats(topk)}},
                x, 3);
        for (dim n = 0; n < w.N; n++) {
            EXPECT_NEAR(double(y[size_t(n)]), w.exact(x, 0, 1, n), w.bound(x, 0, 1, n));
            EXPECT_NEAR(double(y[size_t(w.N + n)]), .75 * w.exact(x, 1, 1, n), 2 * w.bound(x, 1, 1, n));
            EXPECT_EQ(y[size_t(2 * w.N + n)], 0.f) << "a row that nothing meets is a sum of nothing";
        }
    });
}

// A NaN in the weights of one expert: its rows have it in one column, all others keep every bit.
TEST(grouped_matmul, nan_stays_in_its_expert) {
    const experts_t &clean = four();
    const experts_t w(clean.E, clean.K, clean.N, 2);
    for (const dim rows : {8, 200}) {
        const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 17);
        const int32_t r = int32_t(rows);
        std::vector<int32_t> ends = {r / 4, r / 2, 3 * r / 4, r};
        by_every_implementation(w.describe(), [&](const auto &pd) {
            const args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
            const std::vector<float> y = run(w, pd, args, x, rows), z = run(clean, pd, args, x, rows);
            for (dim m = 0; m < rows; m++)
                for (dim n = 0; n < w.N; n++) {
                    const size_t i = size_t(m * w.N + n);
                    if (m / (rows / 4) == 2 && n == 3)
                        EXPECT_TRUE(std::isnan(y[i])) << m;
                    else
                        ASSERT_EQ(std::memcmp(&y[i], &z[i], 4), 0) << m << ", " << n;
                }
        });
    }
}

TEST(grouped_matmul, hints_and_known_rows_change_nothing) {
    const experts_t &w = four();
    const dim rows = 150;
    const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 19);
    std::vector<int32_t> ends = {1, 4, 100, 149};
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
        const std::vector<float> want = run(w, pd, args, x, rows);
        for (const dim hint : {0, 1, 7, 150, 100000})
            for (const dim known : {dim(runtime), rows}) {
                mxdnn::primitive_attr a;
                a.set_max_rows_hint(hint);
                auto other = w.describe(a, 0, known);
                while (std::string(other.impl_info_str()) != pd.impl_info_str() && other.next_impl()) {
                }
                EXPECT_TRUE(same_bits(run(w, other, args, x, rows), want)) << "hint " << hint;
            }
    });
}

TEST(grouped_matmul, threads_change_nothing) {
    const experts_t &w = four();
    const dim rows = 130, tokens = 33;
    const std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 23);
    std::vector<int32_t> ends = {60, 61, 100, 130}, scatter(rows);
    for (dim r = 0; r < rows; r++) scatter[size_t(r)] = int32_t(r * 7 % tokens);
    struct restore_t {
        ~restore_t() { mxdnn::set_max_concurrency(0); }
    } restore;
    std::vector<std::vector<float>> first;
    for (const int threads : {1, 2, 3, 7}) {
        mxdnn::set_max_concurrency(threads);
        size_t at = 0;
        by_every_implementation(w.describe(), [&](const auto &pd) {
            for (const bool summed : {false, true, true}) {
                args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
                if (summed) args[MXDNN_ARG_SCATTER_IDX] = ints(scatter);
                const std::vector<float> y = run(w, pd, args, x, summed ? tokens : rows);
                if (first.size() <= at) first.push_back(y);
                EXPECT_TRUE(same_bits(y, first[at])) << threads << " threads" << (summed ? ", summed" : "");
                at++;
            }
        });
    }
}

// One primitive from many threads at once, with a scratchpad each; and executions that allocate nothing.
TEST(grouped_matmul, many_threads_and_no_allocations) {
    const experts_t &w = four();
    const dim rows = 40, tokens = 9;
    std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 53);
    std::vector<int32_t> ends = {3, 20, 20, 38}, scatter(rows);
    for (dim r = 0; r < rows; r++) scatter[size_t(r)] = int32_t(r * 5 % tokens);
    struct restore_t {
        ~restore_t() { mxdnn::set_max_concurrency(0); }
    } restore;
    mxdnn::set_max_concurrency(1);
    mxdnn::primitive_attr a;
    a.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    by_every_implementation(w.describe(a), [&](const auto &pd) {
        const grouped_matmul primitive(pd);
        const memory src(rows_of(rows, w.K, dt::bf16), cpu(), x.data()), offsets = ints(ends),
                                                                         to = ints(scatter);
        const auto execute = [&](std::vector<float> &y) {
            const memory dst(rows_of(tokens, w.N, dt::f32), cpu(), y.data()),
                    scratchpad(pd.scratchpad_desc(), cpu());
            const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, w.packed.get()},
                    {MXDNN_ARG_GROUP_OFFSETS, offsets.get()}, {MXDNN_ARG_SCATTER_IDX, to.get()},
                    {MXDNN_ARG_DST, dst.get()}, {MXDNN_ARG_SCRATCHPAD, scratchpad.get()}};
            const mxdnn::stream s(cpu());
            const long before = count_of_allocations();
            EXPECT_OK(mxdnn_primitive_execute(primitive.get(), s.get(), 6, args));
            return count_of_allocations() - before;
        };
        std::vector<float> want(size_t(tokens * w.N), poison);
        EXPECT_EQ(execute(want), 0);
        EXPECT_EQ(execute(want), 0);
        if (under_tsan) return;
        std::vector<std::vector<float>> got(4, std::vector<float>(want.size(), poison));
        std::vector<std::thread> all;
        for (auto &y : got)
            all.emplace_back([&execute, &y] {
                for (int i = 0; i < 10; i++) execute(y);
            });
        for (auto &t : all) t.join();
        for (const auto &y : got) EXPECT_TRUE(same_bits(y, want));
    });
}

// No rows, no groups with rows, no columns, sums of nothing.
TEST(grouped_matmul, empty) {
    const experts_t &w = four();
    std::vector<int32_t> zeros = {0, 0, 0, 0};
    std::vector<int32_t> scatter;
    by_every_implementation(w.describe(), [&](const auto &pd) {
        EXPECT_TRUE(run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(zeros)}}, {}, 0).empty());
        const std::vector<uint16_t> x = random_bf16(size_t(3 * w.K), 1);
        for (float v : run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(zeros)}}, x, 3)) EXPECT_EQ(v, poison);
        for (float v : run(w, pd,
                     {{MXDNN_ARG_GROUP_OFFSETS, ints(zeros)}, {MXDNN_ARG_SCATTER_IDX, ints(scatter)}}, {}, 2))
            EXPECT_EQ(v, 0.f);
    });
    // No padded rows, and a rank that holds none of the experts.
    by_every_implementation(w.describe(grouped_by(mxdnn::row_grouping::padded)), [&](const auto &pd) {
        EXPECT_TRUE(run(w, pd, {{MXDNN_ARG_GROUP_COUNTS, ints(zeros)}}, {}, 0).empty());
    });
    const experts_t none(0, 64, 48);
    std::vector<int32_t> two = {1, 3}, nobody = {-1, -1};
    by_every_implementation(none.describe(), [&](const auto &pd) {
        const std::vector<uint16_t> x = random_bf16(size_t(3 * none.K), 1);
        const args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(two)}, {MXDNN_ARG_EXPERT_MAP, ints(nobody)}};
        for (float v : run(none, pd, args, x, 3)) EXPECT_EQ(v, poison);
    });
    const experts_t no_k(2, 0, 16);
    std::vector<int32_t> ends = {1, 3};
    std::vector<float> bias(32, 2.5f);
    const memory::desc bias_md({2, 16}, dt::f32, tag::ab);
    by_every_implementation(no_k.describe({}, 0, runtime, dt::bf16, bias_md), [&](const auto &pd) {
        std::vector<float> y(48, poison);
        uint16_t nothing = 0;
        grouped_matmul(pd).execute(
                no_k.stream, {{MXDNN_ARG_SRC, memory(rows_of(3, 0, dt::bf16), cpu(), &nothing)},
                                     {MXDNN_ARG_WEIGHTS, no_k.packed},
                                     {MXDNN_ARG_BIAS, memory(bias_md, cpu(), bias.data())},
                                     {MXDNN_ARG_GROUP_OFFSETS, ints(ends)},
                                     {MXDNN_ARG_DST, memory(rows_of(3, 16, dt::f32), cpu(), y.data())}});
        for (float v : y) EXPECT_EQ(v, 2.5f);
    });
}

// Attributes that only grouped_matmul has make different primitives, in the cache, too.
TEST(grouped_matmul, attributes_are_part_of_the_cache_key) {
    const experts_t &w = four();
    const std::vector<uint16_t> x = random_bf16(size_t(2 * w.K), 29);
    std::vector<int32_t> ends = {0, 0, 1, 2};
    std::vector<float> topk = {0.5f, 3.f};
    mxdnn::post_ops relu2;
    relu2.append_eltwise(mxdnn::algorithm::eltwise_relu2, 0.f, 0.f);
    mxdnn::primitive_attr output, input, range;
    for (auto *a : {&output, &input, &range}) a->set_post_ops(relu2);
    input.set_topk_weights(mxdnn::topk_weights::input);
    range.set_expert_range(2, 6);
    const args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}, {MXDNN_ARG_TOPK_WEIGHTS, floats(topk)}};
    const std::vector<float> a = run(w, w.describe(output), args, x, 2),
                             b = run(w, w.describe(input), args, x, 2),
                             c = run(w, w.describe(range), args, x, 2);
    for (dim n = 0; n < w.N; n++) {
        const double v = std::max(w.exact(x, 1, 3, n), 0.);
        EXPECT_NEAR(double(a[size_t(w.N + n)]), 3 * v * v, 1e-4 * (1 + v * v));
        EXPECT_NEAR(double(b[size_t(w.N + n)]), 9 * v * v, 3e-4 * (1 + v * v));
        const double other = std::max(w.exact(x, 1, 1, n), 0.);
        EXPECT_NEAR(double(c[size_t(w.N + n)]), 3 * other * other, 1e-4 * (1 + other * other))
                << "id 3 is expert 1";
    }
}

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
            std::vector<float> y(size_t(rows * w.N), poison);
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
            for (float v : y) ASSERT_EQ(v, poison);
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

// Strides of rows and columns, and descriptors of either kind, change nothing but where things are.
TEST(grouped_matmul, strides_and_kinds_of_descriptors) {
    const experts_t &w = four();
    const dim rows = 11, far_k = w.K + 8, far_n = w.N + 5;
    std::vector<uint16_t> x = random_bf16(size_t(rows * w.K), 47), wide(size_t(rows * far_k), 0x7fc0),
                          turned(size_t(rows * w.K));
    for (dim r = 0; r < rows; r++)
        for (dim k = 0; k < w.K; k++)
            wide[size_t(r * far_k + k)] = turned[size_t(k * rows + r)] = x[size_t(r * w.K + k)];
    std::vector<int32_t> ends = {2, 3, 3, 10};
    const auto describe = [&](const memory::desc &src, const memory::desc &dst) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        return grouped_matmul::primitive_desc(
                cpu(), src, memory::desc({w.E, w.K, w.N}, dt::f4_e2m1, tag::any), dst, a);
    };
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const std::vector<float> want = run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}}, x, rows);
        struct form_t {
            memory::desc src, dst;
            uint16_t *data;
        };
        const memory::desc plain_dst = rows_of(rows, w.N, dt::f32);
        const form_t forms[] = {
                {memory::desc({rows, w.K}, dt::bf16, memory::dims{far_k, 1}),
                        memory::desc({rows, w.N}, dt::f32, memory::dims{far_n, 1}), wide.data()},
                {memory::desc({rows, w.K}, dt::bf16, memory::dims{1, rows}),
                        memory::desc({rows, w.N}, dt::f32, memory::dims{1, rows}), turned.data()},
                {memory::desc::grouped({rows, w.K}, dt::bf16, 0, 4), plain_dst, x.data()},
                {memory::desc::grouped({rows, w.K}, dt::bf16, 0, 4),
                        memory::desc::grouped({rows, w.N}, dt::f32, 0, 4), x.data()}};
        for (const form_t &f : forms) {
            SCOPED_TRACE(f.src.to_string());
            auto other = describe(f.src, f.dst);
            while (std::string(other.impl_info_str()) != pd.impl_info_str() && other.next_impl()) {
            }
            ASSERT_EQ(other.impl_info_str(), pd.impl_info_str());
            std::vector<float> y(size_t(rows * far_n), poison);
            grouped_matmul(other).execute(
                    w.stream, {{MXDNN_ARG_SRC, memory(f.src, cpu(), f.data)}, {MXDNN_ARG_WEIGHTS, w.packed},
                                      {MXDNN_ARG_GROUP_OFFSETS, ints(ends)},
                                      {MXDNN_ARG_DST, memory(f.dst, cpu(), y.data())}});
            const bool strided = f.data == wide.data(), columns = f.data == turned.data();
            size_t written = 0;
            for (dim r = 0; r < rows; r++)
                for (dim n = 0; n < w.N; n++) {
                    const size_t at = size_t(columns ? n * rows + r : r * (strided ? far_n : w.N) + n);
                    ASSERT_EQ(y[at], want[size_t(r * w.N + n)]) << r << ", " << n;
                    written += y[at] != poison;
                }
            EXPECT_EQ(
                    size_t(std::count_if(y.begin(), y.end(), [](float v) { return v != poison; })), written);
        }
    });
}

// ---- pointers ----

TEST(grouped_matmul, pointers_to_experts) {
    const experts_t &w = four();
    const std::vector<uint16_t> x = random_bf16(size_t(3 * w.K), 41);
    std::vector<int32_t> ends = {1, 1, 3, 3};
    int64_t stride = 0;
    EXPECT_OK(mxdnn_memory_desc_query(w.packed.get_desc().get(), mxdnn_query_expert_stride_s64, &stride));
    const uint64_t base = reinterpret_cast<uintptr_t>(w.packed.get_data_handle());
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const args_t whole{{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
        // Experts without rows may be elsewhere; expert 0 is where expert 3 was.
        std::vector<uint64_t> table = {base + 3 * uint64_t(stride), 0, base + 2 * uint64_t(stride), 1};
        args_t args = whole;
        const memory table_memory(memory::desc({w.E}, dt::u64, tag::a), cpu(), table.data());
        args[MXDNN_ARG_WEIGHTS_PTRS] = table_memory;
        const std::vector<float> y = run(w, pd, args, x, 3), z = run(w, pd, whole, x, 3);
        for (dim n = 0; n < w.N; n++) {
            EXPECT_NEAR(double(y[size_t(n)]), w.exact(x, 0, 3, n), w.bound(x, 0, 3, n));
            for (dim r : {1, 2}) EXPECT_EQ(y[size_t(r * w.N + n)], z[size_t(r * w.N + n)]);
        }
        for (const uint64_t bad : {uint64_t(0), base + 8}) {
            table[2] = bad;
            std::vector<float> untouched(size_t(3 * w.N), poison);
            try {
                args[MXDNN_ARG_SRC] =
                        memory(rows_of(3, w.K, dt::bf16), cpu(), const_cast<uint16_t *>(x.data()));
                args[MXDNN_ARG_DST] = memory(rows_of(3, w.N, dt::f32), cpu(), untouched.data());
                grouped_matmul(pd).execute(w.stream, args);
                ADD_FAILURE() << "a pointer to 0x" << std::hex << bad << " was accepted";
            } catch (const mxdnn::error &e) {
                EXPECT_EQ(e.status, mxdnn_invalid_arguments);
                EXPECT_NE(std::string(e.what()).find("WEIGHTS_PTRS[2]"), std::string::npos) << e.what();
            }
            for (float v : untouched) ASSERT_EQ(v, poison);
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
    const auto refuse = [](mxdnn_status_t status, std::initializer_list<std::string> words, auto &&change) {
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
    std::vector<float> y(size_t(rows * w.N), poison), four_floats(12, 1.f);
    std::vector<int32_t> ends = {1, 2, 3, 4}, ids = {0, 1, 2, 3};
    std::vector<uint64_t> table(4, reinterpret_cast<uintptr_t>(w.packed.get_data_handle()));
    const args_t good{{MXDNN_ARG_SRC, memory(rows_of(rows, w.K, dt::bf16), cpu(), x.data())},
            {MXDNN_ARG_WEIGHTS, w.packed}, {MXDNN_ARG_GROUP_OFFSETS, ints(ends)},
            {MXDNN_ARG_DST, memory(rows_of(rows, w.N, dt::f32), cpu(), y.data())}};
    const auto refuse = [&](const grouped_matmul::primitive_desc &pd,
                                std::initializer_list<std::string> words, auto &&change) {
        args_t args = good;
        change(args);
        std::vector<mxdnn_exec_arg_t> c_args;
        for (const auto &a : args) c_args.push_back({a.first, a.second.get()});
        const grouped_matmul primitive(pd);
        std::fill(y.begin(), y.end(), poison);
        plant_error();
        EXPECT_TRUE(refused(
                mxdnn_primitive_execute(primitive.get(), w.stream.get(), int(c_args.size()), c_args.data()),
                mxdnn_invalid_arguments, words));
        for (float v : y) ASSERT_EQ(v, poison);
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
    std::vector<float> y(size_t(8 * w.N), poison);
    std::vector<int32_t> ends = {2, 4, 6, 8}, counts = {2, 2, 2, 2}, ids = {0, 1, 2, 3, 0, 1, 2, 3};
    const auto execute = [&](bool padded, bool by_row, bool swizzled, memory::dims scale_dims) {
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
        std::fill(y.begin(), y.end(), poison);
        plant_error();
        return mxdnn_primitive_execute(primitive.get(), w.stream.get(), 5, args);
    };
    const auto short_one = [&](mxdnn_status_t status) {
        EXPECT_TRUE(refused(status, mxdnn_invalid_arguments, {"the scales of src"}));
        for (float v : y) ASSERT_EQ(v, poison);
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

// What printing says, and what queries answer.
TEST(grouped_matmul, words_and_queries) {
    description_t d;
    d.src = memory::desc::grouped({runtime, 64}, dt::bf16, 0, 4);
    d.attr.set_topk_weights(mxdnn::topk_weights::input);
    d.attr.set_expert_range(4, 16);
    d.attr.set_row_grouping(mxdnn::row_grouping::starts);
    grouped_matmul::primitive_desc pd(
            cpu(), d.src, d.weights, memory::desc({4, 48}, dt::bf16, tag::ab), d.dst, d.attr);
    EXPECT_EQ(pd.get_kind(), mxdnn::primitive::kind::grouped_matmul);
    EXPECT_EQ(pd.src_desc().to_string(), "bf16:grouped:4:s32:*x64");
    EXPECT_NE(pd.weights_desc().to_string().find("packed"), std::string::npos);
    const auto arg = [&](int which) {
        const_mxdnn_memory_desc_t md =
                mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_exec_arg_md, which);
        char text[128] = "none";
        size_t size = sizeof(text);
        if (md) EXPECT_OK(mxdnn_memory_desc_to_string(text, &size, md));
        return std::string(text);
    };
    EXPECT_EQ(arg(MXDNN_ARG_GROUP_OFFSETS), "s32:blocked:a:5") << "starts of 4 groups";
    EXPECT_EQ(arg(MXDNN_ARG_GROUP_EXPERT_IDS), "s32:blocked:a:4");
    EXPECT_EQ(arg(MXDNN_ARG_GROUP_COUNTS), "none");
    EXPECT_EQ(arg(MXDNN_ARG_EXPERT_MAP), "none") << "there is a range";
    EXPECT_EQ(arg(MXDNN_ARG_TOPK_WEIGHTS), "f32:blocked:a:*");
    EXPECT_EQ(arg(MXDNN_ARG_EXPERT_ALPHA), "f32:blocked:a:4");
    EXPECT_EQ(arg(MXDNN_ARG_WEIGHTS_PTRS), "u64:blocked:a:4");
    int inputs = 0, outputs = 0;
    EXPECT_OK(mxdnn_primitive_desc_query(pd.get(), mxdnn_query_num_of_inputs_s32, 0, &inputs));
    EXPECT_OK(mxdnn_primitive_desc_query(pd.get(), mxdnn_query_num_of_outputs_s32, 0, &outputs));
    // src, weights or pointers, bias, offsets, group ids, gather, scatter, top-k weights, alpha
    EXPECT_EQ(inputs, 10);
    EXPECT_EQ(outputs, 1);
}

} // namespace
