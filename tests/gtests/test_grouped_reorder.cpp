// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups. Each group equals a reorder of that group alone, along either dim, with
// linear and 128x4 scales, to one destination and to two. Runs under each ISA.
#include <algorithm>

#include "rows_in_groups.hpp"
#include "test_api_util.hpp"

using namespace api_test;
using namespace rows_in_groups;
using mxdnn::mx_reorder;
using mxdnn::row_grouping;
using mxdnn::impl::div_up;

namespace {

using args_t = std::unordered_map<int, memory>;
constexpr uint8_t poison = 0xa5;

dim row_bytes(const format_t &f, dim C) { return f.type == dt::f4_e2m1 ? (C + 1) / 2 : C; }
// Bytes of the scales of a matrix.
dim scale_bytes(const format_t &f, dim rows, dim C) {
    const memory::dims d = f.scale_dims(rows, C);
    return d[0] * d[1];
}

struct GroupedReorder : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    std::mt19937 rng{7};

    memory of(const memory::desc &md, std::vector<uint8_t> &v) const { return memory(md, eng, v.data()); }

    // Codes and scales of a matrix, by a reorder of it alone.
    std::pair<std::vector<uint8_t>, std::vector<uint8_t>> alone(
            const uint16_t *x, dim rows, dim C, const format_t &f) {
        std::pair<std::vector<uint8_t>, std::vector<uint8_t>> r;
        r.first.assign(size_t(rows * row_bytes(f, C)), poison);
        r.second.assign(size_t(scale_bytes(f, rows, C)), poison);
        if (rows == 0) return r;
        const memory::desc from({rows, C}, dt::bf16, tag::ab), to({rows, C}, f.type, tag::ab);
        mxdnn::primitive_attr attr;
        f.describe(attr, MXDNN_ARG_DST, true);
        mx_reorder(mx_reorder::primitive_desc(eng, from, eng, to, attr))
                .execute(str, {{MXDNN_ARG_FROM, memory(from, eng, const_cast<uint16_t *>(x))},
                                      {MXDNN_ARG_TO, of(to, r.first)},
                                      {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO,
                                              of(memory::desc(f.scale_dims(rows, C), dt::e8m0, tag::ab),
                                                      r.second)}});
        return r;
    }

    // The results of each group alone, one after the other. Rows and scales of no group stay poisoned.
    void expect_groups(const std::vector<uint16_t> &x, const groups_t &g, dim C, const format_t &f,
            const std::vector<uint8_t> &codes, const std::vector<uint8_t> &scales) {
        std::vector<uint8_t> want_codes, want_scales;
        dim first = 0;
        for (const dim rows : g.rows) {
            const auto one = alone(x.data() + first * C, rows, C, f);
            want_codes.insert(want_codes.end(), one.first.begin(), one.first.end());
            want_scales.insert(want_scales.end(), one.second.begin(), one.second.end());
            first += rows;
        }
        want_codes.resize(codes.size(), poison);
        want_scales.resize(scales.size(), poison);
        EXPECT_EQ(codes, want_codes);
        EXPECT_EQ(scales, want_scales);
    }

    struct output_t {
        std::vector<uint8_t> codes, scales;
        output_t(const groups_t &g, dim C, const format_t &f)
            : codes(size_t(g.all() * row_bytes(f, C)), poison) {
            dim n = 0;
            for (const dim rows : g.rows) n += scale_bytes(f, rows, C);
            // More than enough.
            scales.assign(size_t(f.swizzled ? n + 64
                                            : div_up(n, f.scale_dims(1, C)[1]) * f.scale_dims(1, C)[1]
                                                      + 3 * f.scale_dims(1, C)[1]),
                    poison);
        }
        void add(
                args_t &args, int arg, const GroupedReorder &t, const groups_t &g, dim C, const format_t &f) {
            args[arg] = t.of(memory::desc::grouped({g.all(), C}, f.type, 0, dim(g.rows.size())), codes);
            const dim columns = f.swizzled ? dim(scales.size()) : f.scale_dims(1, C)[1];
            args[MXDNN_ARG_ATTR_SCALES | arg] = t.of(
                    memory::desc({f.swizzled ? 1 : dim(scales.size()) / columns, columns}, dt::e8m0, tag::ab),
                    scales);
        }
    };

    std::vector<uint16_t> values(dim n) {
        std::normal_distribution<float> normal(0, 2);
        std::vector<uint16_t> x(static_cast<size_t>(n));
        for (uint16_t &v : x) v = to_bf16(normal(rng));
        return x;
    }
    memory ints(std::vector<int32_t> &v) const {
        return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), eng, v.data());
    }
};

const groups_t all_groups[] = {{{5, 0, 33, 64, 1}, 3}, {{128, 32}, 0}, {{0}, 2}, {{200, 1, 130}, 0}};

TEST_F(GroupedReorder, EachGroupIsAMatrixOfItsOwn) {
    for (const groups_t &g : all_groups)
        for (const dim C : {1, 40, 97, 256})
            for (const dt type : {dt::f8_e4m3, dt::f4_e2m1})
                for (const bool of_rows : {false, true})
                    for (const bool swizzled : {false, true})
                        for (const bool starts : {false, true}) {
                            const format_t f{type, of_rows, swizzled};
                            SCOPED_TRACE(testing::Message()
                                         << C << " columns, type " << int(type) << " of rows " << of_rows
                                         << " swizzled " << swizzled);
                            std::vector<uint16_t> x = values(g.all() * C);
                            std::vector<int32_t> bounds = g.offsets(starts);
                            mxdnn::primitive_attr attr;
                            f.describe(attr, MXDNN_ARG_DST, true);
                            attr.set_row_grouping(starts ? row_grouping::starts : row_grouping::ends);
                            const dim R = starts ? runtime : g.all(), G = dim(g.rows.size());
                            mx_reorder::primitive_desc pd(eng, memory::desc::grouped({R, C}, dt::bf16, 0, G),
                                    eng, memory::desc::grouped({R, C}, type, 0, G), attr);
                            int tried = 0;
                            do {
                                SCOPED_TRACE(pd.impl_info_str());
                                output_t out(g, C, f);
                                args_t args{{MXDNN_ARG_FROM, memory(memory::desc::grouped(
                                                                            {g.all(), C}, dt::bf16, 0, G),
                                                                     eng, x.data())},
                                        {MXDNN_ARG_GROUP_OFFSETS, ints(bounds)}};
                                out.add(args, MXDNN_ARG_TO, *this, g, C, f);
                                mx_reorder(pd).execute(str, args);
                                expect_groups(x, g, C, f, out.codes, out.scales);
                                tried++;
                            } while (pd.next_impl());
                            EXPECT_EQ(tried, 2);
                        }
}

TEST_F(GroupedReorder, BothDimsInOneCall) {
    const groups_t g{{5, 0, 33, 64, 1}, 3};
    const dim C = 97, G = dim(g.rows.size()), R = g.all();
    const format_t columns{dt::f8_e4m3, false, true}, rows{dt::f8_e4m3, true, false};
    std::vector<uint16_t> x = values(R * C);
    std::vector<int32_t> ends = g.offsets(false);
    mxdnn::primitive_attr attr;
    columns.describe(attr, MXDNN_ARG_DST, true);
    rows.describe(attr, MXDNN_ARG_DST_1, true);
    for (const dim known : {R, runtime}) {
        const auto to = memory::desc::grouped({known, C}, dt::f8_e4m3, 0, G);
        mx_reorder::primitive_desc pd(
                eng, memory::desc::grouped({known, C}, dt::bf16, 0, G), eng, to, to, attr);
        do {
            SCOPED_TRACE(pd.impl_info_str());
            output_t first(g, C, columns), second(g, C, rows);
            args_t args{
                    {MXDNN_ARG_FROM, memory(memory::desc::grouped({R, C}, dt::bf16, 0, G), eng, x.data())},
                    {MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
            first.add(args, MXDNN_ARG_DST, *this, g, C, columns);
            second.add(args, MXDNN_ARG_DST_1, *this, g, C, rows);
            mx_reorder(pd).execute(str, args);
            expect_groups(x, g, C, columns, first.codes, first.scales);
            expect_groups(x, g, C, rows, second.codes, second.scales);
        } while (pd.next_impl());
    }
}

// Decoding gives the same values as decoding each group alone.
TEST_F(GroupedReorder, BackToValues) {
    const groups_t g{{5, 0, 33, 64, 1}, 3};
    const dim C = 40, G = dim(g.rows.size()), R = g.all();
    const format_t f{dt::f8_e4m3, true, false};
    std::vector<uint16_t> x = values(R * C), back(x.size(), 0x7fc0);
    std::vector<int32_t> ends = g.offsets(false);
    output_t q(g, C, f);
    args_t args{{MXDNN_ARG_FROM, memory(memory::desc::grouped({R, C}, dt::bf16, 0, G), eng, x.data())},
            {MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
    q.add(args, MXDNN_ARG_TO, *this, g, C, f);
    const auto plain = memory::desc::grouped({R, C}, dt::bf16, 0, G),
               codes = memory::desc::grouped({R, C}, f.type, 0, G);
    mxdnn::primitive_attr to, from;
    f.describe(to, MXDNN_ARG_DST, true);
    mx_reorder(mx_reorder::primitive_desc(eng, plain, eng, codes, to)).execute(str, args);
    f.describe(from, MXDNN_ARG_SRC, false);
    args_t other{{MXDNN_ARG_TO, memory(plain, eng, back.data())}, {MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
    q.add(other, MXDNN_ARG_FROM, *this, g, C, f);
    mx_reorder(mx_reorder::primitive_desc(eng, codes, eng, plain, from)).execute(str, other);
    for (dim i = 0; i < R * C; i++)
        if (i < (R - g.spare) * C)
            EXPECT_NEAR(from_bf16(back[size_t(i)]), from_bf16(x[size_t(i)]), 1.) << i;
        else
            EXPECT_EQ(back[size_t(i)], 0x7fc0) << i;
}

TEST_F(GroupedReorder, WrongCallsAreRefused) {
    const dim C = 40;
    const auto src = memory::desc::grouped({8, C}, dt::bf16, 0, 2),
               dst = memory::desc::grouped({8, C}, dt::f8_e4m3, 0, 2);
    const format_t f{dt::f8_e4m3, true, false};
    mxdnn::primitive_attr attr;
    f.describe(attr, MXDNN_ARG_DST, true);
    const auto create = [&](const memory::desc &from, const memory::desc &to,
                                const mxdnn::primitive_attr &a) {
        mxdnn_primitive_desc_t pd = nullptr;
        const mxdnn_status_t s = mxdnn_mx_reorder_primitive_desc_create(
                &pd, from.get(), eng.get(), to.get(), eng.get(), a.get());
        mxdnn_primitive_desc_destroy(pd);
        return s;
    };
    EXPECT_OK(create(src, dst, attr));
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(src, memory::desc({8, C}, dt::f8_e4m3, tag::ab), attr),
            "all sides are grouped");
    EXPECT_REFUSED(mxdnn_invalid_shape, create(src, memory::desc::grouped({8, C}, dt::f8_e4m3, 0, 3), attr),
            "same groups");
    EXPECT_REFUSED(mxdnn_invalid_shape, create(src, memory::desc::grouped({9, C}, dt::f8_e4m3, 0, 2), attr),
            "same groups, rows");
    mxdnn::primitive_attr nvfp4, by_id;
    f.describe(by_id, MXDNN_ARG_DST, true);
    nvfp4.set_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3, false, mxdnn::quantization_mode::dynamic_fp);
    EXPECT_REFUSED(mxdnn_unimplemented, create(src, memory::desc::grouped({8, C}, dt::f4_e2m1, 0, 2), nvfp4),
            "MX format");
    by_id.set_row_grouping(row_grouping::row_ids);
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(src, dst, by_id), "row grouping is 3");

    const groups_t g{{5, 3}, 0};
    std::vector<uint16_t> x = values(8 * C);
    const mx_reorder reorder(mx_reorder::primitive_desc(eng, src, eng, dst, attr));
    const auto execute = [&](std::vector<int32_t> ends, dim blocks) {
        output_t out(g, C, f);
        args_t args{{MXDNN_ARG_FROM, memory(src, eng, x.data())}, {MXDNN_ARG_GROUP_OFFSETS, ints(ends)}};
        out.add(args, MXDNN_ARG_TO, *this, g, C, f);
        args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO] =
                of(memory::desc({blocks, C}, dt::e8m0, tag::ab), out.scales);
        std::vector<mxdnn_exec_arg_t> c;
        for (const auto &a : args) c.push_back({a.first, a.second.get(true)});
        const mxdnn_status_t s = mxdnn_primitive_execute(reorder.get(), str.get(), int(c.size()), c.data());
        if (s != mxdnn_success) {
            EXPECT_TRUE(
                    std::all_of(out.codes.begin(), out.codes.end(), [](uint8_t b) { return b == poison; }));
        }
        return s;
    };
    EXPECT_OK(execute({5, 8}, 2));
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute({5, 9}, 2), "GROUP_OFFSETS[1] is 9", "0 to 8");
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute({5, 4}, 2), "never decrease");
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute({8}, 2), "GROUP_OFFSETS has 1 entries", "have 2");
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute({5, 8}, 1), "is 1; these groups need 2");
}

// The first group begins at row 2. Each row has its scales where it is, so scales of 6 rows are too few.
TEST_F(GroupedReorder, ScalesReachTheLastRowOfGroupsThatBeginLate) {
    const dim C = 40;
    const auto src = memory::desc::grouped({8, C}, dt::bf16, 0, 2),
               dst = memory::desc::grouped({8, C}, dt::f8_e4m3, 0, 2);
    const format_t f{dt::f8_e4m3, false, false};
    for (const bool to_values : {false, true}) {
        const auto &from = to_values ? dst : src, &to = to_values ? src : dst;
        const int quantised = to_values ? MXDNN_ARG_FROM : MXDNN_ARG_TO;
        mxdnn::primitive_attr attr;
        f.describe(attr, to_values ? MXDNN_ARG_SRC : MXDNN_ARG_DST, !to_values);
        attr.set_row_grouping(row_grouping::starts);
        const mx_reorder reorder(mx_reorder::primitive_desc(eng, from, eng, to, attr));
        std::vector<uint16_t> x = values(8 * C);
        std::vector<uint8_t> codes(size_t(8 * C), 0), scales(16, 127);
        const auto execute = [&](dim rows) {
            std::vector<int32_t> starts{2, 5, 8};
            args_t args{{MXDNN_ARG_GROUP_OFFSETS, ints(starts)}};
            args[quantised] = memory(dst, eng, codes.data());
            args[to_values ? MXDNN_ARG_TO : MXDNN_ARG_FROM] = memory(src, eng, x.data());
            args[MXDNN_ARG_ATTR_SCALES | quantised] = of(memory::desc({rows, 2}, dt::e8m0, tag::ab), scales);
            std::vector<mxdnn_exec_arg_t> c;
            for (const auto &a : args) c.push_back({a.first, a.second.get(true)});
            return mxdnn_primitive_execute(reorder.get(), str.get(), int(c.size()), c.data());
        };
        EXPECT_OK(execute(8));
        EXPECT_REFUSED(mxdnn_invalid_arguments, execute(7), "is 7; these groups need 8");
        EXPECT_REFUSED(mxdnn_invalid_arguments, execute(6), "is 6; these groups need 8");
    }
}

} // namespace
