// SPDX-License-Identifier: Apache-2.0
// grouped_matmul by every implementation: executions that must agree with each other, and special routings.
#include <algorithm>
#include <thread>

#include "common/formats/float_bits.hpp"
#include "count_allocations.hpp"
#include "grouped_cases.hpp"

using namespace api_test;

namespace {

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
                const double want = e < w.E ? w.exact(x, r, e, n) : double(unwritten);
                EXPECT_NEAR(double(y[size_t(r * w.N + n)]), want, e < w.E ? w.bound(x, r, e, n) : 0)
                        << r << ", " << n;
            }
        }
    });
}

// Four descriptions of the same rows and experts give the same bits.
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

// A search through all groups for every few rows would take minutes here.
TEST(grouped_matmul, millions_of_empty_groups) {
    const experts_t w(1, 32, 2);
    const dim groups = 1 << 23, rows = 1 << 17;
    const std::vector<uint16_t> row = random_bf16(size_t(w.K), 19);
    std::vector<uint16_t> x;
    for (dim r = 0; r < rows; r++) x.insert(x.end(), row.begin(), row.end());
    std::vector<int32_t> ends(size_t(groups), 0), ids(size_t(groups), 0);
    ends.back() = int32_t(rows);
    by_every_implementation(w.describe(), [&](const auto &pd) {
        const std::vector<float> y = run(w, pd,
                {{MXDNN_ARG_GROUP_OFFSETS, ints(ends)}, {MXDNN_ARG_GROUP_EXPERT_IDS, ints(ids)}}, x, rows);
        for (const dim r : {dim(0), rows / 2, rows - 1})
            for (dim n = 0; n < w.N; n++)
                EXPECT_NEAR(double(y[size_t(r * w.N + n)]), w.exact(x, r, 0, n), w.bound(x, r, 0, n)) << r;
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
                        ASSERT_EQ(mxdnn::impl::bits_of(y[i]), mxdnn::impl::bits_of(z[i])) << m << ", " << n;
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
    const restore_threads_t restore;
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
    const restore_threads_t restore;
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
        std::vector<float> want(size_t(tokens * w.N), unwritten);
        EXPECT_EQ(execute(want), 0);
        EXPECT_EQ(execute(want), 0);
        if (under_tsan) return;
        std::vector<std::vector<float>> got(4, std::vector<float>(want.size(), unwritten));
        std::vector<std::thread> all;
        all.reserve(got.size());
        for (auto &y : got)
            all.emplace_back([&execute, &y] {
                for (int i = 0; i < 10; i++) execute(y);
            });
        for (auto &t : all) t.join();
        for (const auto &y : got) EXPECT_TRUE(same_bits(y, want));
    });
}

// No rows, no groups with rows, no columns, and K of 0.
TEST(grouped_matmul, empty) {
    const experts_t &w = four();
    std::vector<int32_t> zeros = {0, 0, 0, 0};
    std::vector<int32_t> scatter;
    by_every_implementation(w.describe(), [&](const auto &pd) {
        EXPECT_TRUE(run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(zeros)}}, {}, 0).empty());
        const std::vector<uint16_t> x = random_bf16(size_t(3 * w.K), 1);
        for (float v : run(w, pd, {{MXDNN_ARG_GROUP_OFFSETS, ints(zeros)}}, x, 3)) EXPECT_EQ(v, unwritten);
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
        for (float v : run(none, pd, args, x, 3)) EXPECT_EQ(v, unwritten);
    });
    const experts_t no_k(2, 0, 16);
    std::vector<int32_t> ends = {1, 3};
    std::vector<float> bias(32, 2.5f);
    const memory::desc bias_md({2, 16}, dt::f32, tag::ab);
    by_every_implementation(no_k.describe({}, 0, runtime, dt::bf16, bias_md), [&](const auto &pd) {
        std::vector<float> y(48, unwritten);
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

// Attributes of grouped_matmul alone give different primitives, also in the cache.
TEST(grouped_matmul, attributes_are_part_of_the_cache_key) {
    const experts_t &w = four();
    const std::vector<uint16_t> x = random_bf16(size_t(2 * w.K), 29);
    std::vector<int32_t> ends = {0, 0, 1, 2};
    std::vector<float> topk = {0.5f, 3.f};
    mxdnn::post_ops relu2;
    relu2.append_eltwise(mxdnn::algorithm::eltwise_relu2, 0.f, 0.f);
    mxdnn::primitive_attr output, input, range;
    for (auto *a : {&output, &input, &range}) a->set_post_ops(relu2);
    input.set_topk_weights_placement(mxdnn::topk_weights_placement::on_input);
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

// Strides and the kind of descriptor change the addresses of elements, not the results.
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
            std::vector<float> y(size_t(rows * far_n), unwritten);
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
                    written += y[at] != unwritten;
                }
            EXPECT_EQ(size_t(std::count_if(y.begin(), y.end(), [](float v) { return v != unwritten; })),
                    written);
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
            std::vector<float> untouched(size_t(3 * w.N), unwritten);
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
            for (float v : untouched) ASSERT_EQ(v, unwritten);
        }
    });
}

// Printed text, and answers of queries.
TEST(grouped_matmul, words_and_queries) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    attr.set_topk_weights_placement(mxdnn::topk_weights_placement::on_input);
    attr.set_expert_range(4, 16);
    attr.set_row_grouping(mxdnn::row_grouping::starts);
    const grouped_matmul::primitive_desc pd(cpu(), memory::desc::grouped({runtime, 64}, dt::bf16, 0, 4),
            memory::desc({4, 64, 48}, dt::f4_e2m1, tag::any), memory::desc({4, 48}, dt::bf16, tag::ab),
            rows_of(runtime, 48, dt::f32), attr);
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

// The matrix of a padded source is one group; the expert of the group has the global scale.
TEST(grouped_matmul, global_scales_of_padded_sources_are_those_of_experts) {
    const experts_t &w = four();
    const dim groups = 6, rows = 2, size = groups * rows * w.K;
    std::vector<uint8_t> codes(size_t(size / 2)), scales(size_t(size / 16), 0x38); // 1
    for (size_t i = 0; i < codes.size(); i++) codes[i] = uint8_t(i * 37 + 11);
    std::vector<int32_t> counts = {2, 1, 2, 2, 1, 2}, experts = {3, 0, 2, 1, 0, 3};
    const memory::desc src({groups, rows, w.K}, dt::f4_e2m1, tag::abc),
            dst({groups, rows, w.N}, dt::f32, tag::abc);
    auto a = grouped_by(mxdnn::row_grouping::padded);
    a.set_scales(MXDNN_ARG_SRC, 7, {1, 16}, dt::f8_e4m3);
    a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    a.set_global_scale(MXDNN_ARG_SRC, mxdnn::quantization_mode::static_sazp);
    const memory::desc wei({w.E, w.K, w.N}, dt::f4_e2m1, tag::any);
    by_every_implementation(grouped_matmul::primitive_desc(cpu(), src, wei, {}, dst, a), [&](const auto &pd) {
        const auto results = [&](std::vector<float> global) {
            std::vector<float> y(size_t(groups * rows * w.N), unwritten);
            args_t args{{MXDNN_ARG_WEIGHTS, w.packed}, {MXDNN_ARG_GROUP_COUNTS, ints(counts)},
                    {MXDNN_ARG_GROUP_EXPERT_IDS, ints(experts)},
                    {MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC, floats(global)}};
            args[MXDNN_ARG_SRC] = memory(src, cpu(), codes.data());
            args[MXDNN_ARG_DST] = memory(dst, cpu(), y.data());
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                    memory({{groups, rows, w.K / 16}, dt::f8_e4m3, tag::abc}, cpu(), scales.data());
            grouped_matmul(pd).execute(w.stream, args);
            return y;
        };
        std::vector<float> due = results({1});
        const std::vector<float> of_experts = {1, 2, 4, 8};
        for (size_t i = 0; i < due.size(); i++)
            if (due[i] != unwritten) due[i] *= of_experts[size_t(experts[i / size_t(rows * w.N)])];
        EXPECT_TRUE(same_bits(results(of_experts), due));
    });
}
