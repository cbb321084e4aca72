// SPDX-License-Identifier: Apache-2.0
// grouped_matmul gives the same bits for any number of threads, any hint of rows, any way to pass the same
// rows, and any order of scales.
#include <algorithm>
#include <numeric>

#include "test_api_util.hpp"

using namespace api_test;
using mxdnn::grouped_matmul;
using mxdnn::row_grouping;

namespace {

using dim = memory::dim;

mxdnn::engine eng() {
    static const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    return e;
}

// Rows in the order of experts, with their source and destination rows.
struct rows_t {
    dim K, N, E, tokens;
    std::vector<int32_t> ends, ids, gather, scatter;
    std::vector<float> topk;

    rows_t(dim k, dim n, const std::vector<int> &counts, dim t, unsigned seed)
        : K(k), N(n), E(dim(counts.size())), tokens(t) {
        std::mt19937 rng(seed);
        for (size_t e = 0; e < counts.size(); e++) {
            for (int i = 0; i < counts[e]; i++) {
                ids.push_back(int32_t(e));
                gather.push_back(int32_t(rng() % unsigned(tokens)));
                scatter.push_back(int32_t(rng() % unsigned(tokens)));
                topk.push_back(float(rng() % 1000) / 1000);
            }
            ends.push_back(int32_t(ids.size()));
        }
    }
    dim rows() const { return dim(ids.size()); }
};

memory ints(const std::vector<int32_t> &v) {
    return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), eng(), const_cast<int32_t *>(v.data()));
}

enum class how_t { ends, starts, row_ids, shuffled };

struct grouped_problem_t {
    const rows_t &r;
    bool summed, gated;
    std::vector<uint16_t> x, w;
    memory packed;

    grouped_problem_t(const rows_t &rows, bool s, bool g) : r(rows), summed(s), gated(g) {
        x = random_bf16(size_t(r.tokens * r.K), 5);
        w = random_bf16(size_t(r.E * r.K * r.N), 6);
        packed = memory(describe(how_t::ends, 0).weights_desc(), eng());
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        memory from(memory::desc({r.E, r.K, r.N}, dt::bf16, tag::acb), eng(), w.data());
        mxdnn::stream stream(eng());
        mxdnn::mx_reorder(
                mxdnn::mx_reorder::primitive_desc(eng(), from.get_desc(), eng(), packed.get_desc(), q))
                .execute(stream, from, packed);
    }
    dim dst_n() const { return gated ? r.N / 2 : r.N; }
    dim dst_rows() const { return summed ? r.tokens : r.rows(); }

    grouped_matmul::primitive_desc describe(how_t how, dim hint) const {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        a.set_row_grouping(how == how_t::ends     ? row_grouping::ends
                           : how == how_t::starts ? row_grouping::starts
                                                  : row_grouping::row_ids);
        a.set_max_rows_hint(hint);
        if (gated) {
            mxdnn::post_ops ops;
            ops.append_gated(
                    mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
            a.set_post_ops(ops);
        }
        return grouped_matmul::primitive_desc(eng(), memory::desc({runtime, r.K}, dt::bf16, tag::ab),
                memory::desc({r.E, r.K, r.N}, dt::f4_e2m1, tag::any),
                memory::desc({runtime, dst_n()}, dt::bf16, tag::ab), a);
    }

    std::vector<uint16_t> run(const grouped_matmul::primitive_desc &pd, how_t how) {
        rows_t in = r;
        std::vector<int32_t> starts = in.ends;
        starts.insert(starts.begin(), 0);
        // Shuffled: rows of different experts are mixed, and rows of one expert keep their order.
        std::vector<size_t> order(in.ids.size());
        std::iota(order.begin(), order.end(), size_t(0));
        if (how == how_t::shuffled) {
            std::vector<int32_t> mixed = in.ids;
            std::shuffle(mixed.begin(), mixed.end(), std::mt19937(9));
            std::vector<size_t> next(size_t(in.E), 0);
            for (size_t e = 1; e < next.size(); e++) next[e] = size_t(in.ends[e - 1]);
            for (size_t i = 0; i < order.size(); i++) order[i] = next[size_t(mixed[i])]++;
            for (size_t i = 0; i < order.size(); i++) {
                in.ids[i] = r.ids[order[i]];
                in.gather[i] = r.gather[order[i]];
                in.scatter[i] = r.scatter[order[i]];
                in.topk[i] = r.topk[order[i]];
            }
        }
        std::vector<uint16_t> y(size_t(dst_rows() * dst_n()), 0xffff);
        std::unordered_map<int, memory> args = {
                {MXDNN_ARG_SRC, memory(memory::desc({r.tokens, r.K}, dt::bf16, tag::ab), eng(), x.data())},
                {MXDNN_ARG_WEIGHTS, packed}, {MXDNN_ARG_GATHER_IDX, ints(in.gather)},
                {MXDNN_ARG_TOPK_WEIGHTS,
                        memory(memory::desc({r.rows()}, dt::f32, tag::a), eng(), in.topk.data())},
                {MXDNN_ARG_DST,
                        memory(memory::desc({dst_rows(), dst_n()}, dt::bf16, tag::ab), eng(), y.data())}};
        if (how == how_t::ends)
            args[MXDNN_ARG_GROUP_OFFSETS] = ints(in.ends);
        else if (how == how_t::starts)
            args[MXDNN_ARG_GROUP_OFFSETS] = ints(starts);
        else
            args[MXDNN_ARG_ROW_EXPERT_IDS] = ints(in.ids);
        if (summed) args[MXDNN_ARG_SCATTER_IDX] = ints(in.scatter);
        mxdnn::stream stream(eng());
        grouped_matmul(pd).execute(stream, args);
        // Back into the order of experts.
        if (summed || how != how_t::shuffled) return y;
        std::vector<uint16_t> sorted(y.size());
        for (size_t i = 0; i < order.size(); i++)
            std::copy_n(y.begin() + long(i) * dst_n(), dst_n(), sorted.begin() + long(order[i]) * dst_n());
        return sorted;
    }
};

void check(const rows_t &rows, bool summed, bool gated) {
    const restore_threads_t restore;
    grouped_problem_t p(rows, summed, gated);
    std::vector<std::vector<uint16_t>> first; // by implementation
    for (int threads : {1, 2, 3, 7}) {
        ASSERT_EQ(mxdnn::set_max_concurrency(threads), mxdnn::status::success);
        for (dim hint : {0, 1, 40, 100000})
            for (how_t how : {how_t::ends, how_t::starts, how_t::row_ids, how_t::shuffled}) {
                auto pd = p.describe(how, hint);
                size_t i = 0;
                do {
                    if (std::string(pd.impl_info_str()) == "ref:any" && rows.rows() > 40)
                        continue; // it is slow
                    const std::vector<uint16_t> y = p.run(pd, how);
                    if (i == first.size()) first.push_back(y);
                    EXPECT_TRUE(y == first[i]) << pd.impl_info_str() << ", " << threads << " threads, hint "
                                               << hint << ", grouping " << int(how)
                                               << (summed ? ", summed" : "") << (gated ? ", gated" : "");
                    i++;
                } while (pd.next_impl());
            }
    }
}

TEST(grouped_determinism, few_rows) {
    const rows_t rows(96, 80, {1, 0, 3, 2, 7}, 5, 1);
    check(rows, false, false);
    check(rows, true, false);
    check(rows, false, true);
}

TEST(grouped_determinism, many_rows) {
    const rows_t rows(161, 200, {1, 130, 0, 19, 2, 60, 3}, 70, 2);
    check(rows, false, true);
    check(rows, true, false);
}

// Offset of a scale in the 128x4 order, as that order is defined.
size_t swizzled(dim row, dim col, dim cols) {
    return size_t(
            (row / 128 * ((cols + 3) / 4) + col / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4);
}

// Scales of source and destination in either order: the same results.
TEST(grouped_determinism, order_of_scales) {
    const rows_t r(160, 96, {3, 0, 130, 20, 1}, 60, 3);
    grouped_problem_t p(r, false, false);
    const dim kb = r.K / 32, nb = r.N / 32, rows = r.rows(), shared = dim(r.gather.size());
    std::mt19937 rng(4);
    std::vector<uint8_t> codes(size_t(shared * r.K)), scales(size_t(shared * kb));
    for (auto &c : codes) c = uint8_t(rng() % 0x78); // finite e4m3
    for (auto &s : scales) s = uint8_t(120 + rng() % 10);
    // Rows of a group start a tile of 128.
    std::vector<dim> padded;
    dim before = 0, total = 0;
    for (size_t e = 0; e < r.ends.size(); e++) {
        const dim first = e ? r.ends[e - 1] : 0;
        for (dim i = first; i < r.ends[e]; i++) padded.push_back(before + i - first);
        before += (r.ends[e] - first + 127) / 128 * 128;
    }
    total = before;
    const auto swizzle_size = [&](dim cols) { return size_t(total * ((cols + 3) / 4 * 4)); };
    std::vector<std::vector<uint8_t>> results; // of the linear order, by implementation
    for (bool swizzle : {false, true}) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        a.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
        a.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        if (swizzle)
            for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_DST})
                a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
        const auto src = memory::desc::grouped({rows, r.K}, dt::f8_e4m3, 0, r.E);
        const auto dst = memory::desc::grouped({rows, r.N}, dt::f8_e4m3, 0, r.E);
        grouped_matmul::primitive_desc pd(
                eng(), src, memory::desc({r.E, r.K, r.N}, dt::f4_e2m1, tag::any), dst, a);
        size_t i = 0;
        do {
            std::vector<uint8_t> in(scales.begin(), scales.begin() + rows * kb), y(size_t(rows * r.N), 0xa5);
            std::vector<uint8_t> out(size_t(rows * nb), 0);
            if (swizzle) {
                in.assign(swizzle_size(kb), 0xff); // padding is no number
                out.assign(swizzle_size(nb), 0);
                for (dim m = 0; m < rows; m++)
                    for (dim c = 0; c < kb; c++)
                        in[swizzled(padded[size_t(m)], c, kb)] = scales[size_t(m * kb + c)];
            }
            const auto scales_md = [&](const std::vector<uint8_t> &v, dim cols) {
                return swizzle ? memory::desc({1, dim(v.size())}, dt::e8m0, tag::ab)
                               : memory::desc({rows, cols}, dt::e8m0, tag::ab);
            };
            mxdnn::stream stream(eng());
            grouped_matmul(pd).execute(
                    stream, {{MXDNN_ARG_SRC, memory(src, eng(), codes.data())},
                                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                                            memory(scales_md(in, kb), eng(), in.data())},
                                    {MXDNN_ARG_WEIGHTS, p.packed}, {MXDNN_ARG_GROUP_OFFSETS, ints(r.ends)},
                                    {MXDNN_ARG_DST, memory(dst, eng(), y.data())},
                                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST,
                                            memory(scales_md(out, nb), eng(), out.data())}});
            for (dim m = 0; m < rows; m++)
                for (dim c = 0; c < nb; c++)
                    y.push_back(out[swizzle ? swizzled(padded[size_t(m)], c, nb) : size_t(m * nb + c)]);
            if (!swizzle)
                results.push_back(y);
            else
                EXPECT_TRUE(y == results[i]) << pd.impl_info_str();
            i++;
        } while (pd.next_impl());
    }
}

} // namespace
