// SPDX-License-Identifier: Apache-2.0
// mx_reorder to two destinations: each gets the bytes that a reorder to it alone gives, by every
// implementation.
#include "cuda_call.hpp"
#include "test_api_util.hpp"

using namespace cuda_test;

namespace {

using mode_t = mxdnn::quantization_mode;

struct form_t {
    const char *name;
    dt type;
    tag order;
    memory::dims groups; // empty: high precision
    dt scale;
    mode_t mode;
    bool swizzled, global, packed;
};
const form_t forms[] = {
        {"mxfp8 rows", dt::f8_e4m3, tag::ab, {1, 32}, dt::e8m0, mode_t::dynamic_mx, false, false, false},
        {"mxfp8 columns", dt::f8_e4m3, tag::ba, {32, 1}, dt::e8m0, mode_t::dynamic_mx, true, false, false},
        {"mxfp6", dt::f6_e2m3, tag::ab, {32, 1}, dt::e8m0, mode_t::dynamic_mx, false, false, false},
        {"nvfp4", dt::f4_e2m1, tag::ab, {1, 16}, dt::f8_e4m3, mode_t::dynamic_fp, false, true, false},
        {"int4", dt::u4, tag::ab, {64, 1}, dt::bf16, mode_t::dynamic_affine, false, false, false},
        {"packed mxfp4", dt::f4_e2m1, tag::any, {32, 1}, dt::e8m0, mode_t::dynamic_mx, false, false, true},
        {"f16", dt::f16, tag::ba, {}, dt::undef, mode_t::undef, false, false, false},
};

void set_attr(mxdnn::primitive_attr &attr, int arg, const form_t &f) {
    if (f.groups.empty()) return;
    attr.set_scales(arg, 3, f.groups, f.scale, false, f.mode);
    if (f.type == dt::u4) attr.set_zero_points(arg, 3, f.groups, dt::u8);
    if (f.global) attr.set_global_scale(arg, mode_t::dynamic_fp);
    if (f.swizzled) attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    if (f.mode == mode_t::dynamic_mx) attr.set_scale_rounding(arg, mxdnn::scale_rounding::rceil);
}

memory::desc desc_in(const form_t &f, const memory::dims &dims) {
    if (!f.packed) return memory::desc(dims, f.type, f.order);
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 3, f.groups, f.scale);
    return mxdnn::mx_matmul::primitive_desc(cpu(), memory::desc({1, dims[0]}, dt::bf16, tag::ab),
            memory::desc(dims, f.type, tag::any), memory::desc({1, dims[1]}, dt::f32, tag::ab), attr)
            .weights_desc();
}

TEST(two_reorders, give_the_bytes_of_each) {
    std::mt19937 rng(5);
    using pd_t = mxdnn::mx_reorder::primitive_desc;
    for (const memory::dims &dims : {memory::dims{77, 131}, memory::dims{256, 96}})
        for (const form_t &a : forms)
            for (const form_t &b : forms) {
                SCOPED_TRACE(std::string(a.name) + " and " + b.name);
                const memory::desc src(dims, dt::bf16, tag::ab), dst = desc_in(a, dims),
                                                                 dst_1 = desc_in(b, dims);
                mxdnn::primitive_attr first, second, both;
                set_attr(first, MXDNN_ARG_DST, a);
                set_attr(second, MXDNN_ARG_DST, b);
                set_attr(both, MXDNN_ARG_DST, a);
                set_attr(both, MXDNN_ARG_DST_1, b);
                const values_t in = {{MXDNN_ARG_SRC, random_bytes(mxdnn_bf16, src.get_size(), rng)}};
                const values_t want = run(pd_t(cpu(), src, cpu(), dst, first), cpu(), in),
                               want_1 = run(pd_t(cpu(), src, cpu(), dst_1, second), cpu(), in);
                pd_t pd(cpu(), src, cpu(), dst, dst_1, both);
                EXPECT_EQ(pd.dst_desc(0), dst);
                EXPECT_EQ(pd.dst_desc(1), dst_1);
                std::vector<std::string> names;
                do {
                    names.push_back(pd.impl_info_str());
                    const values_t got = run(pd, cpu(), in);
                    EXPECT_EQ(got.size(), want.size() + want_1.size());
                    for (const auto &w : want) EXPECT_EQ(got.at(w.first), w.second) << "argument " << w.first;
                    for (const auto &w : want_1)
                        EXPECT_EQ(got.at(w.first - MXDNN_ARG_DST + MXDNN_ARG_DST_1), w.second)
                                << "argument " << w.first << " of the second";
                } while (pd.next_impl());
                EXPECT_EQ(names, (std::vector<std::string>{"two:any", "ref:two"}));
            }
}

TEST(two_reorders, need_both_memories_apart) {
    const memory::dims dims = {64, 64};
    const memory::desc src(dims, dt::f32, tag::ab), dst(dims, dt::bf16, tag::ab),
            dst_1(dims, dt::f16, tag::ba);
    const mxdnn::engine eng = cpu();
    mxdnn::stream s(eng);
    const mxdnn::mx_reorder r(mxdnn::mx_reorder::primitive_desc(eng, src, eng, dst, dst_1));
    const memory from(src, eng), to(dst, eng), to_1(dst_1, eng);
    const auto refusal = [&](const std::unordered_map<int, memory> &args) {
        try {
            r.execute(s, args);
        } catch (const mxdnn::error &e) {
            return std::string(mxdnn_get_last_error());
        }
        return std::string("none");
    };
    EXPECT_NE(refusal({{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to}}).find("dst_1"), std::string::npos);
    EXPECT_NE(refusal({{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to},
                              {MXDNN_ARG_DST_1, memory(dst_1, eng, to.get_data_handle())}})
                      .find("overlaps"),
            std::string::npos);
    EXPECT_EQ(refusal({{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to}, {MXDNN_ARG_DST_1, to_1}}), "none");
}

// Weights for both directions of training. The second destination equals a reorder of the transposed matrix,
// also for square matrices.
TEST(two_reorders, pack_the_transposed_matrix) {
    std::mt19937 rng(8);
    using pd_t = mxdnn::mx_reorder::primitive_desc;
    mxdnn::stream stream(cpu());
    for (const memory::dims &dims : {memory::dims{96, 70}, memory::dims{3, 64, 64}, memory::dims{2, 33, 160}})
        for (const bool n_first : {false, true}) {
            const size_t nd = dims.size();
            const int mask = (1 << nd) - 1;
            memory::dims turned_dims = dims;
            std::swap(turned_dims[nd - 1], turned_dims[nd - 2]);
            const tag order = nd == 2   ? (n_first ? tag::ba : tag::ab)
                              : n_first ? tag::acb
                                        : tag::abc,
                      turned_order = nd == 2   ? (n_first ? tag::ab : tag::ba)
                                     : n_first ? tag::abc
                                               : tag::acb;
            const memory::desc src(dims, dt::bf16, order), turned(turned_dims, dt::bf16, turned_order),
                    any(dims, dt::f8_e4m3, tag::any);
            const memory::dims one(nd - 2, 1);
            const auto groups = [&](memory::dim k, memory::dim n) {
                memory::dims g = one;
                g.push_back(k), g.push_back(n);
                return g;
            };
            mxdnn::primitive_attr both, each;
            both.set_scales(MXDNN_ARG_DST, mask, groups(32, 1), dt::e8m0, false, mode_t::dynamic_mx);
            both.set_scales(MXDNN_ARG_DST_1, mask, groups(1, 32), dt::e8m0, false, mode_t::dynamic_mx);
            each.set_scales(MXDNN_ARG_DST, mask, groups(32, 1), dt::e8m0, false, mode_t::dynamic_mx);
            memory x(src, cpu());
            uint16_t *values = static_cast<uint16_t *>(x.get_data_handle());
            std::normal_distribution<float> normal(0, 1);
            for (size_t i = 0; i < src.get_size() / 2; i++) values[i] = api_test::to_bf16(normal(rng));
            const auto packed = [&](const memory::desc &from) {
                pd_t pd(cpu(), from, cpu(), memory::desc(from.get_dims(), dt::f8_e4m3, tag::any), each);
                memory to(pd.dst_desc(), cpu());
                mxdnn::mx_reorder(pd).execute(
                        stream, {{MXDNN_ARG_FROM, memory(from, cpu(), values)}, {MXDNN_ARG_TO, to}});
                return to;
            };
            const memory want[2] = {packed(src), packed(turned)};
            pd_t pd(cpu(), src, cpu(), any, any, both);
            // The descriptors that were chosen may be passed as well.
            const pd_t again(cpu(), src, cpu(), pd.dst_desc(0), pd.dst_desc(1), both);
            EXPECT_EQ(again.dst_desc(1), pd.dst_desc(1));
            do {
                SCOPED_TRACE(pd.impl_info_str());
                memory to[2];
                for (int i = 0; i < 2; i++) {
                    ASSERT_EQ(pd.dst_desc(i), want[i].get_desc());
                    to[i] = memory(pd.dst_desc(i), cpu());
                }
                mxdnn::mx_reorder(pd).execute(
                        stream, {{MXDNN_ARG_FROM, x}, {MXDNN_ARG_DST, to[0]}, {MXDNN_ARG_DST_1, to[1]}});
                for (int i = 0; i < 2; i++)
                    EXPECT_EQ(std::memcmp(to[i].get_data_handle(), want[i].get_data_handle(),
                                      want[i].get_desc().get_size()),
                            0)
                            << "destination " << i;
            } while (pd.next_impl());
        }
}

} // namespace
