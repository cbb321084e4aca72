// SPDX-License-Identifier: Apache-2.0
// mxdnn and oneDNN use the same bytes.
#include "mxdnn/mxdnn_dnnl.hpp"

#include "test_api_util.hpp"

using namespace api_test;
namespace io = mxdnn::dnnl_interop;

namespace {

using their_dt = dnnl::memory::data_type;
using their_tag = dnnl::memory::format_tag;

struct DnnlInterop : public testing::Test {
    mxdnn::engine ours{mxdnn::engine::kind::cpu, 0};
    dnnl::engine theirs{dnnl::engine::kind::cpu, 0};
};

template <typename F>
void expect_unimplemented(F &&fn, const std::string &word) {
    try {
        fn();
        ADD_FAILURE() << "no exception";
    } catch (const mxdnn::error &e) {
        EXPECT_EQ(e.status, mxdnn_unimplemented);
        EXPECT_NE(e.message.find(word), std::string::npos) << e.message;
    }
}

} // namespace

TEST_F(DnnlInterop, Types) {
    for (dt t : {dt::undef, dt::f16, dt::bf16, dt::f32, dt::s32, dt::s8, dt::u8}) {
        EXPECT_EQ(io::from_dnnl(io::to_dnnl(t)), t);
        EXPECT_EQ(static_cast<int>(io::to_dnnl(t)), static_cast<int>(t)) << "the values are the same";
    }
    for (dt t : {dt::f8_e4m3, dt::f8_e5m2, dt::s4, dt::u4, dt::e8m0, dt::f4_e2m1}) {
        try {
            EXPECT_EQ(io::from_dnnl(io::to_dnnl(t)), t);
        } catch (const mxdnn::error &e) {
            EXPECT_EQ(e.status, mxdnn_unimplemented);
            EXPECT_LT(MXDNN_DNNL_VERSION, 307) << e.message;
        }
    }
    for (dt t : {dt::f6_e2m3, dt::f6_e3m2, dt::u64})
        expect_unimplemented([&] { io::to_dnnl(t); }, std::to_string(static_cast<int>(t)));
    expect_unimplemented([&] { io::from_dnnl(their_dt::f64); }, "7");
}

TEST_F(DnnlInterop, Descriptors) {
    const memory::desc all[] = {memory::desc({4, 6}, dt::f32, tag::ab),
            memory::desc({4, 6}, dt::bf16, tag::ba), memory::desc({4, 6}, dt::u8, memory::dims{16, 1}),
            memory::desc({2, 3, 5}, dt::s8, tag::acb), memory::desc({7}, dt::s32, tag::a),
            memory::desc({4, 6}, dt::f16, tag::any), memory::desc({1, 6}, dt::f32, memory::dims{1000, 1}),
            memory::desc({runtime, 6}, dt::f32, memory::dims{6, 1})};
    for (const memory::desc &d : all) {
        const dnnl::memory::desc t = io::to_dnnl(d);
        EXPECT_EQ(io::from_dnnl(t), d) << d.to_string();
        EXPECT_EQ(t.get_dims(), d.get_dims());
        // oneDNN counts the gap after the last row, too.
        if (d.get_size() > 0) {
            EXPECT_GE(t.get_size(), d.get_size());
        }
    }
    EXPECT_EQ(io::to_dnnl(all[0]), dnnl::memory::desc({4, 6}, their_dt::f32, their_tag::ab));
    EXPECT_EQ(io::from_dnnl(dnnl::memory::desc({4, 6}, their_dt::f32, their_tag::ba)),
            memory::desc({4, 6}, dt::f32, tag::ba));
}

TEST_F(DnnlInterop, WhatTheOtherCannotSay) {
    expect_unimplemented(
            [] {
                io::from_dnnl(dnnl::memory::desc({2, 16, 3, 3}, their_dt::f32, their_tag::nChw8c));
            },
            "inner blocks");
    expect_unimplemented(
            [] {
                io::from_dnnl(dnnl::memory::desc({2, 13, 3, 3}, their_dt::f32, their_tag::nChw8c));
            },
            "inner blocks");
    const dnnl::memory::desc whole({8, 6}, their_dt::f32, their_tag::ab);
    expect_unimplemented([&] { io::from_dnnl(whole.submemory_desc({2, 6}, {4, 0})); }, "24");
    EXPECT_THROW(io::from_dnnl(dnnl::memory::desc()), mxdnn::error);
    const memory::desc packed = mxfp4_matmul(ours, 1, 64, 32).weights_desc();
    EXPECT_THROW(io::to_dnnl(packed), mxdnn::error);
    expect_unimplemented([&] { io::to_dnnl(memory::desc::grouped({4, 6}, dt::bf16, 0, 2)); }, "grouped");
    EXPECT_THROW(io::to_dnnl(memory::desc()), mxdnn::error);
    expect_unimplemented([] { io::to_dnnl(mxdnn::engine::for_target("cuda:sm_90")); }, "cuda:sm_90");
    // Rows of 4-bit elements, for every version of oneDNN: rows of length 5 share bytes there.
    expect_unimplemented([] { io::detail::check_rows(dt::s4, {3, 5}, {5, 1}); }, "5");
    EXPECT_NO_THROW(io::detail::check_rows(dt::s4, {3, 5}, {6, 1}));
    EXPECT_NO_THROW(io::detail::check_rows(dt::f4_e2m1, {1, 5}, {5, 1}));
    EXPECT_NO_THROW(io::detail::check_rows(dt::s8, {3, 5}, {5, 1}));
}

TEST_F(DnnlInterop, EnginesAndStreams) {
    EXPECT_EQ(io::from_dnnl(theirs), ours);
    EXPECT_EQ(io::to_dnnl(ours).get_kind(), dnnl::engine::kind::cpu);
    EXPECT_EQ(io::from_dnnl(dnnl::stream(theirs)).get_engine(), ours);
    EXPECT_EQ(io::to_dnnl(mxdnn::stream(ours), theirs).get_engine(), theirs);
}

TEST_F(DnnlInterop, MemoryIsShared) {
    const dnnl::memory a(dnnl::memory::desc({4, 6}, their_dt::f32, their_tag::ab), theirs);
    const memory b = io::from_dnnl(a, ours);
    EXPECT_EQ(b.get_data_handle(), a.get_data_handle());
    EXPECT_EQ(io::to_dnnl(b, theirs).get_data_handle(), a.get_data_handle());
    // A part of a tensor: the offset is in the pointer.
    const dnnl::memory part(a.get_desc().submemory_desc({2, 6}, {1, 0}), theirs, a.get_data_handle());
    const memory c = io::from_dnnl(part, ours);
    EXPECT_EQ(c.get_data_handle(), static_cast<float *>(a.get_data_handle()) + 6);
    EXPECT_EQ(c.get_desc(), memory::desc({2, 6}, dt::f32, tag::ab));
    // No data on either side.
    const memory none(memory::desc({4, 6}, dt::f32, tag::ab), ours, MXDNN_MEMORY_NONE);
    EXPECT_EQ(io::to_dnnl(none, theirs).get_data_handle(), nullptr);
}

// oneDNN transposes, mxdnn multiplies with packed weights, oneDNN applies relu in place; no copy.
TEST_F(DnnlInterop, OnePipeline) {
    const int M = 3, K = 64, N = 32;
    std::vector<float> xt(K * M), x(M * K, NAN), y(M * N, NAN);
    for (int i = 0; i < K * M; i++) xt[size_t(i)] = float((i * 7) % 11 - 5) * 0.25f;
    const std::vector<uint16_t> nk = random_bf16(size_t(N) * K, 21);

    dnnl::stream their_stream(theirs);
    dnnl::memory in({{M, K}, their_dt::f32, their_tag::ba}, theirs, xt.data());
    dnnl::memory mid({{M, K}, their_dt::f32, their_tag::ab}, theirs, x.data());
    dnnl::memory out({{M, N}, their_dt::f32, their_tag::ab}, theirs, y.data());
    dnnl::reorder(in, mid).execute(their_stream, in, mid);

    mxdnn::stream s = io::from_dnnl(their_stream);
    const memory src = io::from_dnnl(mid, ours), dst = io::from_dnnl(out, ours);
    const mxdnn::mx_matmul::primitive_desc pd(ours, src.get_desc(),
            memory::desc({K, N}, dt::f4_e2m1, tag::any), dst.get_desc(), mxfp4_weights_attr());
    const memory w = pack_mxfp4(ours, pd.weights_desc(), nk);
    mxdnn::mx_matmul(pd).execute(s, {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_DST, dst}});
    s.wait();
    const std::vector<float> before = y;

    const dnnl::eltwise_forward::primitive_desc relu(theirs, dnnl::prop_kind::forward_inference,
            dnnl::algorithm::eltwise_relu, out.get_desc(), out.get_desc(), 0.f, 0.f);
    dnnl::eltwise_forward(relu).execute(their_stream, {{DNNL_ARG_SRC, out}, {DNNL_ARG_DST, out}});
    their_stream.wait();

    const std::vector<float> wv = mxfp4_values(nk, K, N);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                const double p = double(xt[size_t(k) * M + m]) * wv[size_t(n) * K + k];
                sum += p;
                size += std::fabs(p);
            }
            ASSERT_NEAR(before[size_t(m) * N + n], sum, (K + 1) * std::ldexp(size, -24) * 1.01);
            ASSERT_EQ(y[size_t(m) * N + n], std::fmax(before[size_t(m) * N + n], 0.f));
        }
}
