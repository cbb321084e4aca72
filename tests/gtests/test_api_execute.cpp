// SPDX-License-Identifier: Apache-2.0
// Executions with the wrong arguments: refused before anything is written.
#include <functional>
#include <map>

#include "test_api_util.hpp"

using namespace api_test;

namespace {

constexpr int64_t M = 4, K = 64, N = 32;

struct Execute : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    memory::desc bias_md{{1, N}, dt::f32, tag::ab};
    std::vector<uint16_t> x = random_bf16(M * K, 1);
    std::vector<uint16_t> y = std::vector<uint16_t>(M * N, 0xabcd);
    std::vector<float> bias = std::vector<float>(N, 1.f);

    // Every argument by its number; a test replaces or removes some.
    std::map<int, memory> args;
    std::vector<mxdnn_exec_arg_t> extra;
    mxdnn::primitive prim;
    memory::desc packed;

    void SetUp() override { init(mxfp4_weights_attr(), M); }

    void init(const mxdnn::primitive_attr &attr, mxdnn_dim_t rows) {
        const mxdnn::mx_matmul::primitive_desc pd(eng, memory::desc({rows, K}, dt::bf16, tag::ab),
                memory::desc({K, N}, dt::f4_e2m1, tag::any), bias_md,
                memory::desc({rows, N}, dt::bf16, tag::ab), attr);
        prim = mxdnn::mx_matmul(pd);
        packed = pd.weights_desc();
        args[MXDNN_ARG_SRC] = memory({{M, K}, dt::bf16, tag::ab}, eng, x.data());
        args[MXDNN_ARG_WEIGHTS] = pack_mxfp4(eng, packed, random_bf16(N * K, 2));
        args[MXDNN_ARG_BIAS] = memory(bias_md, eng, bias.data());
        args[MXDNN_ARG_DST] = memory({{M, N}, dt::bf16, tag::ab}, eng, y.data());
    }

    mxdnn_status_t execute() const {
        std::vector<mxdnn_exec_arg_t> c_args;
        for (const auto &a : args) c_args.push_back({a.first, a.second.get(true)});
        c_args.insert(c_args.end(), extra.begin(), extra.end());
        return mxdnn_primitive_execute(prim.get(), str.get(), int(c_args.size()), c_args.data());
    }

    // One change, one refusal, nothing written; without the change it works.
    void expect_refused(const std::function<void()> &change, std::initializer_list<word_t> words,
            mxdnn_status_t want = mxdnn_invalid_arguments) {
        const auto saved = args;
        const auto before = y;
        change();
        plant_error();
        const mxdnn_status_t st = execute();
        EXPECT_TRUE(refused(st, want, words));
        EXPECT_EQ(y, before);
        args = saved;
        extra.clear();
        EXPECT_OK(execute());
    }

    memory make(const memory::dims &dims, dt type, tag t, void *data) {
        return memory(memory::desc(dims, type, t), eng, data);
    }
};

// Plain s8 rows with one scale per row: codes times scale, by every implementation, also in batches.
TEST(ExecuteSources, PlainS8WithOneScalePerRow) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(e);
    const int64_t B = 2, M = 5, K = 70, N = 20;
    const std::vector<uint16_t> nk = random_bf16(size_t(K * N), 5);
    const std::vector<float> w = mxfp4_values(nk, K, N);
    std::mt19937 rng(9);
    std::vector<int8_t> x(size_t(B * M * K));
    for (int8_t &v : x) v = int8_t(int(rng() % 255) - 127);
    std::vector<float> scales(size_t(B * M));
    for (float &v : scales) v = float(rng() % 1000 + 1) / 7919.f;
    scales[3] = NAN;
    mxdnn::primitive_attr q;
    q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    q.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
    for (const bool by_mask : {true, false}) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        // One scale per row: by a mask without the columns, or by a group as long as a row.
        if (by_mask)
            a.set_scales(MXDNN_ARG_SRC, 3, {}, dt::f32);
        else
            a.set_scales(MXDNN_ARG_SRC, 7, {1, K}, dt::f32);
        mxdnn::mx_matmul::primitive_desc pd(e, memory::desc({B, M, K}, dt::s8, tag::abc),
                memory::desc({1, K, N}, dt::f4_e2m1, tag::any), memory::desc({B, M, N}, dt::f32, tag::abc),
                a);
        memory from(memory::desc({1, K, N}, dt::bf16, tag::acb), e, const_cast<uint16_t *>(nk.data()));
        memory packed(pd.weights_desc(), e);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(e, from.get_desc(), e, packed.get_desc(), q))
                .execute(s, from, packed);
        std::string impl;
        do {
            impl = pd.impl_info_str();
            SCOPED_TRACE(impl);
            std::vector<float> y(size_t(B * M * N), -1.f);
            mxdnn::mx_matmul(pd).execute(
                    s, {{MXDNN_ARG_SRC, memory(pd.src_desc(), e, x.data())}, {MXDNN_ARG_WEIGHTS, packed},
                               {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                                       memory(memory::desc({B, M, 1}, dt::f32, tag::abc), e, scales.data())},
                               {MXDNN_ARG_DST, memory(pd.dst_desc(), e, y.data())}});
            for (int r = 0; r < B * M; r++)
                for (int n = 0; n < N; n++) {
                    double sum = 0, size = 0;
                    for (int k = 0; k < K; k++) {
                        const double t = double(x[size_t(r * K + k)]) * double(w[size_t(n * K + k)]);
                        sum += t;
                        size += std::fabs(t);
                    }
                    const double scale = double(scales[size_t(r)]), got = double(y[size_t(r * N + n)]);
                    if (r == 3)
                        EXPECT_TRUE(std::isnan(got));
                    else
                        EXPECT_NEAR(got, sum * scale, (K + 18) * 0x1p-24 * size * scale) << r << ", " << n;
                }
        } while (pd.next_impl());
        EXPECT_EQ(impl, "ref:any");
    }
}

// Scales must match the rows, also when the number of rows is known at execution only.
TEST(ExecuteSources, ScalesFollowRuntimeRows) {
    const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(e);
    const int64_t M = 200, K = 64, N = 16;
    const std::vector<uint16_t> nk = random_bf16(size_t(K * N), 5);
    std::vector<uint8_t> x(size_t(M * K), 0x38), scales(4096, 127);
    std::vector<float> y(size_t(M * N));
    for (const bool swizzled : {false, true}) {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        a.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
        if (swizzled) a.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
        const mxdnn::mx_matmul::primitive_desc pd(e, memory::desc({runtime, K}, dt::f8_e4m3, tag::ab),
                memory::desc({K, N}, dt::f4_e2m1, tag::any), memory::desc({runtime, N}, dt::f32, tag::ab), a);
        const mxdnn::mx_matmul primitive(pd);
        const memory src(memory::desc({M, K}, dt::f8_e4m3, tag::ab), e, x.data()),
                wei = pack_mxfp4(e, pd.weights_desc(), nk),
                dst(memory::desc({M, N}, dt::f32, tag::ab), e, y.data());
        const auto execute = [&](mxdnn_dim_t rows, mxdnn_dim_t columns) {
            const memory m(memory::desc({rows, columns}, dt::e8m0, tag::ab), e, scales.data());
            const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, wei.get()},
                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, m.get()}, {MXDNN_ARG_DST, dst.get()}};
            plant_error();
            return mxdnn_primitive_execute(primitive.get(), s.get(), 4, args);
        };
        if (swizzled) {
            EXPECT_OK(execute(1, 1024)); // two tiles of 128 rows
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(1, 512), "the scales of src", "512", "1024");
        } else {
            EXPECT_OK(execute(M, 2));
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(1, 2), "the scales of src", "200");
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(M - 1, 2), "the scales of src", "199", "200");
        }
    }
}

} // namespace

TEST_F(Execute, Count) {
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_primitive_execute(prim.get(), str.get(), -1, nullptr), "-1");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_primitive_execute(prim.get(), str.get(), 0, nullptr), "missing");
}

TEST_F(Execute, MissingExtraTwiceNull) {
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_WEIGHTS, MXDNN_ARG_BIAS, MXDNN_ARG_DST}) {
        const std::string n = std::to_string(arg);
        expect_refused([&] { args.erase(arg); }, {n, "missing"});
        expect_refused([&] { args[arg] = memory(); }, {n, "null"});
        expect_refused([&] { extra.push_back({arg, args[arg].get()}); }, {"twice"});
    }
    for (int arg : {0, -1, 2, 12345, int(MXDNN_ARG_GROUP_OFFSETS), MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                 MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, MXDNN_ARG_ATTR_MULTIPLE_POST_OP(0) | MXDNN_ARG_SRC_1})
        expect_refused([&] { extra.push_back({arg, args[MXDNN_ARG_BIAS].get()}); }, {std::to_string(arg)});
    // Packed bytes hold everything.
    for (int attr : {MXDNN_ARG_ATTR_SCALES, MXDNN_ARG_ATTR_ZERO_POINTS, MXDNN_ARG_ATTR_GLOBAL_SCALE})
        expect_refused(
                [&] {
                    extra.push_back({attr | MXDNN_ARG_WEIGHTS, args[MXDNN_ARG_BIAS].get()});
                },
                {std::to_string(attr | MXDNN_ARG_WEIGHTS), "packed"});
}

TEST_F(Execute, OtherDescriptors) {
    std::vector<float> wide(4096);
    void *p = wide.data();
    expect_refused([&] { args[MXDNN_ARG_SRC] = make({M, K}, dt::f16, tag::ab, p); }, {"src", "f16", "bf16"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_SRC] = make({M, K + 1}, dt::bf16, tag::ab, p);
            },
            {"src", "65", "64"});
    expect_refused([&] { args[MXDNN_ARG_SRC] = make({M + 1, K}, dt::bf16, tag::ab, p); }, {"src", "5", "4"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_SRC] = make({M, K}, dt::bf16, tag::ba, p);
            },
            {"src", "stride", "64"});
    expect_refused([&] { args[MXDNN_ARG_SRC] = make({1, M, K}, dt::bf16, tag::abc, p); }, {"src", "1x4x64"});
    expect_refused([&] { args[MXDNN_ARG_DST] = make({M, N}, dt::f32, tag::ab, p); }, {"dst", "f32", "bf16"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_DST] = make({M, N - 1}, dt::bf16, tag::ab, p);
            },
            {"dst", "31", "32"});
    expect_refused([&] { args[MXDNN_ARG_BIAS] = make({N}, dt::f32, tag::a, p); }, {"bias"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_BIAS] = make({1, N}, dt::bf16, tag::ab, p);
            },
            {"bias", "bf16", "f32"});
    expect_refused([&] { args[MXDNN_ARG_BIAS] = make({1, 1}, dt::f32, tag::ab, p); }, {"bias", "1", "32"});
    // Plain weights, weights of another shape, and of another format with the same bytes' size.
    expect_refused([&] { args[MXDNN_ARG_WEIGHTS] = make({K, N}, dt::f4_e2m1, tag::ab, p); }, {"weights"});
    const memory::desc other = mxfp4_matmul(eng, 1, 2 * K, N).weights_desc();
    expect_refused([&] { args[MXDNN_ARG_WEIGHTS] = memory(other, eng); }, {"weights", "128x32", "64x32"});
    mxdnn::primitive_attr nv;
    nv.set_scales(MXDNN_ARG_WEIGHTS, 3, {16, 1}, dt::f8_e4m3);
    const memory::desc nvfp4 = mxfp4_matmul(eng, 1, K, N, nv).weights_desc();
    expect_refused([&] { args[MXDNN_ARG_WEIGHTS] = memory(nvfp4, eng); }, {"weights", "f8_e4m3", "e8m0"});
    memory::desc grouped = memory::desc::grouped({M, K}, dt::bf16, 0, 2);
    expect_refused([&] { args[MXDNN_ARG_SRC] = memory(grouped, eng, p); }, {"src", "grouped"});
}

TEST_F(Execute, NoDataAndMisaligned) {
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_WEIGHTS, MXDNN_ARG_BIAS, MXDNN_ARG_DST})
        expect_refused(
                [&] { args[arg] = memory(args[arg].get_desc(), eng, MXDNN_MEMORY_NONE); }, {"null", "bytes"});
    std::vector<char> bytes(packed.get_size() + 64);
    char *base = bytes.data() + (64 - uintptr_t(bytes.data()) % 64) % 64;
    for (int off : {1, 4, 8, 15})
        expect_refused([&] { args[MXDNN_ARG_WEIGHTS] = memory(packed, eng, base + off); }, {"weights", "16"});
    // 16 is enough.
    std::memcpy(base + 16, args[MXDNN_ARG_WEIGHTS].get_data_handle(), packed.get_size());
    EXPECT_OK(execute());
    const auto want = y;
    args[MXDNN_ARG_WEIGHTS] = memory(packed, eng, base + 16);
    y.assign(y.size(), 0xabcd);
    EXPECT_OK(execute());
    EXPECT_EQ(y, want);
}

// CUDA devices cannot read other addresses; here they would be undefined behaviour.
TEST_F(Execute, ValuesLieAtMultiplesOfTheirSize) {
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_BIAS, MXDNN_ARG_DST}) {
        const memory given = args[arg];
        const memory::desc md = given.get_desc();
        const size_t bytes = md.get_data_type() == dt::f32 ? 4 : 2;
        std::vector<double> room(md.get_size() / sizeof(double) + 2);
        char *const base = reinterpret_cast<char *>(room.data());
        for (size_t shift = 1; shift <= 4; shift++) {
            const memory moved(md, eng, base + shift);
            if (shift % bytes) {
                expect_refused([&] { args[arg] = moved; }, {"is at address", "multiple of"});
                continue;
            }
            std::memcpy(base + shift, given.get_data_handle(), md.get_size());
            args[arg] = moved;
            EXPECT_OK(execute());
            args[arg] = given;
        }
    }
}

TEST_F(Execute, Overlap) {
    std::vector<uint16_t> both(M * K + M * N);
    const auto src_at = [&](size_t i) { return make({M, K}, dt::bf16, tag::ab, both.data() + i); };
    const auto dst_at = [&](size_t i) { return make({M, N}, dt::bf16, tag::ab, both.data() + i); };
    for (size_t i : {size_t(0), size_t(1), size_t(M * K - 1)})
        expect_refused(
                [&] {
                    args[MXDNN_ARG_SRC] = src_at(0);
                    args[MXDNN_ARG_DST] = dst_at(i);
                },
                {"dst", "src", "overlap"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_DST] =
                        make({M, N}, dt::bf16, tag::ab, args[MXDNN_ARG_WEIGHTS].get_data_handle());
            },
            {"dst", "weights", "overlap"});
    // With room for all of dst, so that it does not reach the memory of another argument.
    std::vector<float> room(M * N);
    expect_refused(
            [&] {
                args[MXDNN_ARG_BIAS] = memory(bias_md, eng, room.data());
                args[MXDNN_ARG_DST] = make({M, N}, dt::bf16, tag::ab, room.data());
            },
            {"dst", "bias", "overlap"});
    // Neighbours are no overlap, and inputs may share.
    args[MXDNN_ARG_SRC] = src_at(0);
    args[MXDNN_ARG_DST] = dst_at(M * K);
    EXPECT_OK(execute());
}

TEST_F(Execute, StreamOfAnotherEngine) {
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    const mxdnn::stream other(cuda);
    std::vector<mxdnn_exec_arg_t> c_args;
    for (const auto &a : args) c_args.push_back({a.first, a.second.get()});
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_execute(prim.get(), other.get(), int(c_args.size()), c_args.data()), "cuda:sm_90",
            "cpu:x64");
}

TEST_F(Execute, MemoryOfAnotherEngine) {
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    for (int arg : {MXDNN_ARG_SRC, MXDNN_ARG_WEIGHTS, MXDNN_ARG_DST})
        expect_refused([&] { args[arg] = memory(args[arg].get_desc(), cuda, args[arg].get_data_handle()); },
                {"cuda:sm_90", "cpu:x64"});
}

TEST_F(Execute, RuntimeRows) {
    init(mxfp4_weights_attr(), runtime);
    std::vector<float> wide(4096);
    void *p = wide.data();
    expect_refused([&] { args[MXDNN_ARG_SRC] = make({M + 1, K}, dt::bf16, tag::ab, p); }, {"5", "4"});
    expect_refused([&] { args[MXDNN_ARG_DST] = make({M - 1, N}, dt::bf16, tag::ab, p); }, {"3", "4"});
    // A value has to be there at execution.
    expect_refused(
            [&] {
                args[MXDNN_ARG_SRC] = make({runtime, K}, dt::bf16, tag::ab, p);
            },
            {"dim 0 of src is a runtime value", "actual"});
    expect_refused(
            [&] {
                args[MXDNN_ARG_SRC] =
                        memory(memory::desc({M, K}, dt::bf16, memory::dims{runtime, 1}), eng, wide.data());
            },
            {"dim 0 of src is a runtime value", "strides"});
    // The message names the dim that differs, not the stride that follows from it.
    expect_refused(
            [&] {
                args[MXDNN_ARG_SRC] = make({M, K - 1}, dt::bf16, tag::ab, p);
            },
            {"dim 1 of src is 63", "64"});
    // No rows: nothing to do, also without data.
    args[MXDNN_ARG_SRC] = make({0, K}, dt::bf16, tag::ab, nullptr);
    args[MXDNN_ARG_DST] = make({0, N}, dt::bf16, tag::ab, nullptr);
    EXPECT_OK(execute());
}

TEST_F(Execute, VerboseLinesSayTheRowsOfTheExecution) {
    init(mxfp4_weights_attr(), runtime);
    testing::internal::CaptureStdout();
    mxdnn::set_verbose("profile_exec");
    EXPECT_OK(execute());
    mxdnn::set_verbose("none");
    const std::string line = testing::internal::GetCapturedStdout();
    for (const char *words :
            {"primitive,exec,mx_matmul,", "src:bf16:blocked:ab:4x64 ", "dst:bf16:blocked:ab:4x"})
        EXPECT_NE(line.find(words), std::string::npos) << words << " in " << line;
}

// The field before the last: the kernels that ran for these rows, and on how many threads.
TEST(Verbose, LinesNameTheKernelAndTheThreads) {
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(4);
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const mxdnn::stream str(eng);
    constexpr int K = 256, N = 1024;
    const auto plan_of = [&](const mxdnn::mx_matmul::primitive_desc &pd, int M) {
        const std::vector<uint16_t> nk = random_bf16(size_t(N) * K, 1), x = random_bf16(size_t(M) * K, 2);
        std::vector<uint16_t> y(size_t(M) * N);
        const memory w = pack_mxfp4(eng, pd.weights_desc(), nk);
        testing::internal::CaptureStdout();
        mxdnn::set_verbose("profile_exec");
        mxdnn::mx_matmul(pd).execute(str,
                {{MXDNN_ARG_SRC, memory(memory::desc({M, K}, dt::bf16, tag::ab), eng,
                                         const_cast<uint16_t *>(x.data()))},
                        {MXDNN_ARG_WEIGHTS, w},
                        {MXDNN_ARG_DST, memory(memory::desc({M, N}, dt::bf16, tag::ab), eng, y.data())}});
        mxdnn::set_verbose("none");
        std::string line = testing::internal::GetCapturedStdout();
        EXPECT_EQ(std::count(line.begin(), line.end(), ','), 8) << line;
        line.erase(line.rfind(','));
        return line.substr(line.rfind(',') + 1);
    };
    mxdnn::mx_matmul::primitive_desc pd = mxfp4_matmul(eng, runtime, K, N);
    do {
        SCOPED_TRACE(pd.impl_info_str());
        const std::string one = plan_of(pd, 1), many = plan_of(pd, 130);
        EXPECT_EQ(one.rfind("kernel:", 0), 0u) << one;
        EXPECT_NE(many.find(" threads:4"), std::string::npos) << many;
        if (pd.impl_info_str() == "jit:avx2") {
            EXPECT_NE(one.find("kernel:avx2_direct"), std::string::npos) << one;
            EXPECT_EQ(one.find("gemm"), std::string::npos) << one;
            EXPECT_NE(many.find("kernel:avx2_decode"), std::string::npos) << many;
            EXPECT_NE(many.find("+avx2_gemm"), std::string::npos) << many;
        }
        if (pd.impl_info_str() == "ref:any") {
            EXPECT_EQ(many, "kernel:ref:any threads:4");
        }
        mxdnn::set_max_concurrency(1);
        EXPECT_NE(plan_of(pd, 130).find(" threads:1"), std::string::npos);
        mxdnn::set_max_concurrency(4);
    } while (pd.next_impl());
}

TEST_F(Execute, RuntimeRowsOfOperands) {
    mxdnn::post_ops po;
    po.append_binary(mxdnn::algorithm::binary_add, memory::desc({runtime, N}, dt::f32, tag::ab));
    mxdnn::primitive_attr attr = mxfp4_weights_attr();
    attr.set_post_ops(po);
    init(attr, runtime);
    std::vector<float> operand(1024, 2.f);
    const int arg = MXDNN_ARG_ATTR_MULTIPLE_POST_OP(0) | MXDNN_ARG_SRC_1;
    args[arg] = make({M, N}, dt::f32, tag::ab, operand.data());
    EXPECT_OK(execute());
    expect_refused(
            [&] {
                args[arg] = make({M + 1, N}, dt::f32, tag::ab, operand.data());
            },
            {"5", "4", "the operand of a binary post-op"});
    expect_refused([&] { args[arg] = make({M, N - 1}, dt::f32, tag::ab, operand.data()); }, {"31", "32"});
    expect_refused([&] { args.erase(arg); }, {std::to_string(arg), "missing"});
}

TEST_F(Execute, Scratchpad) {
    mxdnn::primitive_attr attr = mxfp4_weights_attr();
    attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    init(attr, M);
    const_mxdnn_memory_desc_t c_md =
            mxdnn_primitive_desc_query_md(prim.get_primitive_desc(), mxdnn_query_scratchpad_md, 0);
    if (!c_md) GTEST_SKIP() << "the implementation needs no scratchpad";
    const size_t size = mxdnn_memory_desc_get_size(c_md);
    ASSERT_GT(size, 0u);
    memory pad({{mxdnn_dim_t(size)}, dt::u8, tag::a}, eng);
    args[MXDNN_ARG_SCRATCHPAD] = pad;
    EXPECT_OK(execute());
    char *data = static_cast<char *>(pad.get_data_handle());
    const std::string n = std::to_string(MXDNN_ARG_SCRATCHPAD);
    expect_refused([&] { args.erase(MXDNN_ARG_SCRATCHPAD); }, {"scratchpad", n, "missing"});
    expect_refused([&] { args[MXDNN_ARG_SCRATCHPAD] = make({mxdnn_dim_t(size) - 1}, dt::u8, tag::a, data); },
            {"scratchpad", std::to_string(size - 1), std::to_string(size)});
    expect_refused([&] { args[MXDNN_ARG_SCRATCHPAD] = make({mxdnn_dim_t(size)}, dt::u8, tag::a, nullptr); },
            {"scratchpad", "null"});
    std::vector<char> bytes(size + 128);
    char *odd = bytes.data() + (64 - uintptr_t(bytes.data()) % 64) % 64 + 8;
    expect_refused([&] { args[MXDNN_ARG_SCRATCHPAD] = make({mxdnn_dim_t(size)}, dt::u8, tag::a, odd); },
            {"scratchpad", "64"});
    expect_refused([&] { args[MXDNN_ARG_DST] = make({M, N}, dt::bf16, tag::ab, data); }, {"overlap"});
}

// Source and destination are columns of one matrix. The columns beside them stay as they are.
TEST_F(Execute, ColumnsSideBySide) {
    constexpr int64_t row = K + N + 3;
    EXPECT_OK(execute());
    const std::vector<uint16_t> want = y;
    std::vector<uint16_t> all(M * row, 0xabcd);
    for (int m = 0; m < M; m++) std::copy_n(&x[size_t(m * K)], K, &all[size_t(m * row)]);
    const memory::dim any = MXDNN_RUNTIME_DIM_VAL;
    mxdnn::mx_matmul::primitive_desc pd(eng, memory::desc({any, K}, dt::bf16, memory::dims{row, 1}), packed,
            bias_md, memory::desc({any, N}, dt::bf16, memory::dims{row, 1}));
    args[MXDNN_ARG_SRC] = memory({{M, K}, dt::bf16, memory::dims{row, 1}}, eng, all.data());
    do {
        prim = mxdnn::mx_matmul(pd);
        args[MXDNN_ARG_DST] = memory({{M, N}, dt::bf16, memory::dims{row, 1}}, eng, &all[K + 1]);
        EXPECT_OK(execute());
        for (int i = 0; i < M * row; i++) {
            const int m = i / row, n = i % row - K - 1;
            const bool of_src = n < -1, of_dst = n >= 0 && n < N;
            const uint16_t expected = of_src   ? x[size_t(m * K + i % row)]
                                      : of_dst ? want[size_t(m * N + n)]
                                               : 0xabcd;
            // Implementations add in orders of their own.
            if (of_dst)
                EXPECT_NEAR(int(all[size_t(i)]), int(expected), 1) << pd.impl_info_str() << " at " << i;
            else
                EXPECT_EQ(all[size_t(i)], expected) << pd.impl_info_str() << " at " << i;
        }
        args[MXDNN_ARG_DST] = memory({{M, N}, dt::bf16, memory::dims{row, 1}}, eng, &all[K - 1]);
        EXPECT_TRUE(refused(execute(), mxdnn_invalid_arguments, {"dst", "src", "overlap"}));
    } while (pd.next_impl());
}

// Reorders: scales that go with codes are arguments, those of packed bytes are not.
TEST_F(Execute, ReorderScales) {
    const memory::desc codes({K, N}, dt::f4_e2m1, tag::ba);
    mxdnn::primitive_attr from;
    from.set_scales(MXDNN_ARG_SRC, 3, {32, 1}, dt::e8m0);
    prim = mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, codes, eng, packed, from));
    std::vector<uint8_t> c(codes.get_size(), 0x21), s(K / 32 * N, 127);
    args.clear();
    const int scales = MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_FROM;
    args[MXDNN_ARG_FROM] = memory(codes, eng, c.data());
    args[scales] = make({K / 32, N}, dt::e8m0, tag::ba, s.data());
    args[MXDNN_ARG_TO] = memory(packed, eng);
    EXPECT_OK(execute());
    expect_refused([&] { args.erase(scales); }, {std::to_string(scales), "missing", "scales of src"});
    expect_refused([&] { args[scales] = make({K / 32, N - 1}, dt::e8m0, tag::ab, s.data()); }, {"31", "32"});
    expect_refused([&] { args[scales] = make({K / 32, N}, dt::u8, tag::ab, s.data()); }, {"u8", "e8m0"});
    expect_refused([&] { args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO] = args[scales]; },
            {std::to_string(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO), "packed"});
    expect_refused([&] { args[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_FROM] = args[scales]; },
            {std::to_string(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_FROM)});
    expect_refused([&] { args[MXDNN_ARG_TO] = memory(packed, eng, args[MXDNN_ARG_FROM].get_data_handle()); },
            {"overlap"});

    // Dense 6-bit codes take less than a byte each. What follows them directly does not overlap.
    const memory::desc six({K, N}, dt::f6_e2m3, tag::ba);
    mxdnn::primitive_attr dense;
    dense.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    dense.set_element_packing(MXDNN_ARG_DST, mxdnn::element_packing::dense);
    const memory::desc values({K, N}, dt::f32, tag::ba);
    prim = mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, values, eng, six, dense));
    const size_t dense_bytes = size_t(K * N / 4 * 3);
    std::vector<uint8_t> tight(dense_bytes + size_t(K / 32 * N));
    args.clear();
    args[MXDNN_ARG_FROM] = memory(values, eng);
    args[MXDNN_ARG_TO] = memory(six, eng, tight.data());
    const int to_scales = MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO;
    args[to_scales] = make({K / 32, N}, dt::e8m0, tag::ba, tight.data() + dense_bytes);
    EXPECT_OK(execute());
    expect_refused(
            [&] {
                args[to_scales] = make({K / 32, N}, dt::e8m0, tag::ba, tight.data() + dense_bytes - 1);
            },
            {"overlap"});
}

// The same for groups of rows whose scales follow their codes directly.
TEST(ExecuteGroups, DenseCodesOfExpertsEndBeforeTheirScales) {
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const mxdnn_dim_t rows = 4, K = 64, N = 64, experts = 2;
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    attr.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    attr.set_element_packing(MXDNN_ARG_DST, mxdnn::element_packing::dense);
    for (const bool grouped : {true, false}) {
        const memory::desc dst = grouped ? memory::desc::grouped({rows, N}, dt::f6_e2m3, 0, experts)
                                         : memory::desc({rows, N}, dt::f6_e2m3, tag::ab);
        const mxdnn::grouped_matmul::primitive_desc pd(eng,
                memory::desc::grouped({rows, K}, dt::bf16, 0, experts),
                memory::desc({experts, K, N}, dt::f4_e2m1, tag::any), memory::desc(), dst, attr);
        const size_t codes = size_t(rows * N / 4 * 3);
        std::vector<uint8_t> tight(codes + size_t(rows * N / 32));
        memory src(pd.src_desc(), eng), weights(pd.weights_desc(), eng);
        std::memset(src.get_data_handle(), 0, pd.src_desc().get_size());
        std::memset(weights.get_data_handle(), 0, pd.weights_desc().get_size());
        std::vector<int32_t> ends = {1, int32_t(rows)};
        mxdnn::stream stream(eng);
        mxdnn::grouped_matmul(pd).execute(
                stream, {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, weights},
                                {MXDNN_ARG_GROUP_OFFSETS,
                                        memory(memory::desc({experts}, dt::s32, tag::a), eng, ends.data())},
                                {MXDNN_ARG_DST, memory(pd.dst_desc(), eng, tight.data())},
                                {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST,
                                        memory(memory::desc({rows, N / 32}, dt::e8m0, tag::ab), eng,
                                                tight.data() + codes)}});
    }
}

// Indices are read as what they are, so they lie where such values may.
TEST(ExecuteGroups, IndicesAreAligned) {
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    const mxdnn_dim_t rows = 4, K = 64, N = 32, experts = 2;
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    const mxdnn::grouped_matmul::primitive_desc pd(eng,
            memory::desc::grouped({rows, K}, dt::bf16, 0, experts),
            memory::desc({experts, K, N}, dt::f4_e2m1, tag::any), memory::desc(),
            memory::desc::grouped({rows, N}, dt::bf16, 0, experts), attr);
    memory src(pd.src_desc(), eng), weights(pd.weights_desc(), eng), dst(pd.dst_desc(), eng);
    std::memset(src.get_data_handle(), 0, pd.src_desc().get_size());
    std::memset(weights.get_data_handle(), 0, pd.weights_desc().get_size());
    const mxdnn::stream stream(eng);
    const mxdnn::grouped_matmul prim(pd);
    std::vector<int32_t> ends = {1, int32_t(rows), 0};
    for (int shift = 0; shift <= 4; shift++) {
        char *const at = reinterpret_cast<char *>(ends.data()) + shift;
        const memory offsets(memory::desc({experts}, dt::s32, tag::a), eng, at);
        const int32_t given[] = {1, int32_t(rows)};
        std::memcpy(at, given, sizeof(given));
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, weights.get()},
                {MXDNN_ARG_GROUP_OFFSETS, offsets.get()}, {MXDNN_ARG_DST, dst.get()}};
        const auto execute = [&] { return mxdnn_primitive_execute(prim.get(), stream.get(), 4, args); };
        if (shift % 4)
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(), "GROUP_OFFSETS", "s32", "multiple of 4");
        else
            EXPECT_OK(execute());
    }
}
