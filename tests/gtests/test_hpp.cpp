// SPDX-License-Identifier: Apache-2.0
// The C++ API: the path from a model's weights to a result, no conversions between handles, enumerations that
// equal those of C, and exceptions with the library's sentence.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <type_traits>

#include "test_api_util.hpp"

using namespace api_test;

namespace {

// |got - want| for f32 accumulation in any order and one rounding to bf16.
void expect_matmul(const uint16_t *y, const uint16_t *x, const std::vector<float> &w, const float *bias,
        int M, int K, int N) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = bias ? bias[n] : 0, size = std::fabs(sum);
            for (int k = 0; k < K; k++) {
                const double p = double(from_bf16(x[m * K + k])) * w[size_t(n) * K + k];
                sum += p;
                size += std::fabs(p);
            }
            const double bound = (K + 2) * std::ldexp(size, -24) * 1.01 + std::ldexp(std::fabs(sum), -8);
            ASSERT_NEAR(from_bf16(y[m * N + n]), sum, bound) << "at " << m << "," << n;
        }
}

// The whole path, as in a program, between the two lines.
void documented_example(int K, int N, mxdnn::memory &hp, mxdnn::memory &x, mxdnn::memory &b, mxdnn::memory &y,
        std::vector<uint8_t> &blob, std::vector<char> &bytes) {
    // clang-format off
// ----------------------------------------------------------------------------------------------
#include <mxdnn/mxdnn.hpp>
using namespace mxdnn;
using dt = memory::data_type; using tag = memory::format_tag;
engine eng(engine::kind::cpu, 0);               // or engine::kind::cuda, or engine::for_target("cuda:sm_90")
stream s(eng);

// 1. Ask what layout the weights should have: nothing but shapes, types and the block is known.
primitive_attr attr;
attr.set_scales(MXDNN_ARG_WEIGHTS, (1 << 0) | (1 << 1), {32, 1}, dt::e8m0);
mx_matmul::primitive_desc pd(eng, memory::desc({MXDNN_RUNTIME_DIM_VAL, K}, dt::bf16, tag::ab),
        memory::desc({K, N}, dt::f4_e2m1, tag::any), memory::desc({1, N}, dt::f32, tag::ab),
        memory::desc({MXDNN_RUNTIME_DIM_VAL, N}, dt::bf16, tag::ab), attr);   // an overload without bias
memory::desc packed = pd.weights_desc();         // opaque: get_size(), get_blob(), to_string()

// 2. Quantise and pack once: bf16 [N, K] as frameworks store it is [K, N] with tag ba.
primitive_attr q;
q.set_scales(MXDNN_ARG_DST, (1 << 0) | (1 << 1), {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
q.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
memory w(packed, eng);
mx_reorder(mx_reorder::primitive_desc(eng, memory::desc({K, N}, dt::bf16, tag::ba), eng, packed, q))
        .execute(s, {{MXDNN_ARG_FROM, hp}, {MXDNN_ARG_TO, w}});

// 3. Run, any M.
mx_matmul(pd).execute(s, {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_BIAS, b}, {MXDNN_ARG_DST, y}});
s.wait();
// ----------------------------------------------------------------------------------------------
    // clang-format on
    blob = packed.get_blob();
    const char *data = static_cast<const char *>(w.get_data_handle());
    bytes.assign(data, data + packed.get_size());
}

std::string text_of(const std::string &path) {
    std::ifstream file(path);
    std::stringstream s;
    s << file.rdbuf();
    return s.str();
}

} // namespace

TEST(Hpp, DocumentedExample) {
    for (int M : {1, 7})
        for (int K : {64, 100})
            for (int N : {48, 37}) {
                SCOPED_TRACE(testing::Message() << M << "x" << K << ":" << K << "x" << N);
                const std::vector<uint16_t> nk = random_bf16(size_t(N) * K, 1),
                                            xs = random_bf16(size_t(M) * K, 2);
                std::vector<float> bias(N);
                for (int n = 0; n < N; n++) bias[n] = 0.25f * float(n - 11);
                std::vector<uint16_t> ys(size_t(M) * N, 0x7fff);

                mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
                memory hp(memory::desc({K, N}, dt::bf16, tag::ba), e, const_cast<uint16_t *>(nk.data()));
                memory x(memory::desc({M, K}, dt::bf16, tag::ab), e, const_cast<uint16_t *>(xs.data()));
                memory b(memory::desc({1, N}, dt::f32, tag::ab), e, bias.data());
                memory y(memory::desc({M, N}, dt::bf16, tag::ab), e, ys.data());
                std::vector<uint8_t> blob;
                std::vector<char> bytes;
                documented_example(K, N, hp, x, b, y, blob, bytes);
                const std::vector<float> w = mxfp4_values(nk, K, N);
                expect_matmul(ys.data(), xs.data(), w, bias.data(), M, K, N);

                // As another process, which has only the blob and mapped bytes.
                std::vector<char> mapped(bytes.size() + 64);
                char *aligned = mapped.data() + (64 - uintptr_t(mapped.data()) % 64) % 64;
                std::memcpy(aligned, bytes.data(), bytes.size());
                memory::desc md(blob);
                EXPECT_EQ(md.get_blob(), blob);
                memory mw(md, e, aligned);
                mxdnn::mx_matmul::primitive_desc pd(e, x.get_desc(), md, b.get_desc(), y.get_desc());
                std::vector<uint16_t> again(ys.size(), 0x7fff);
                y.set_data_handle(again.data());
                mxdnn::stream s(e);
                mxdnn::mx_matmul(pd).execute(s, {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_WEIGHTS, mw},
                                                        {MXDNN_ARG_BIAS, b}, {MXDNN_ARG_DST, y}});
                EXPECT_EQ(again, ys);
            }
}

TEST(Hpp, WithoutBias) {
    const int M = 3, K = 96, N = 20;
    const std::vector<uint16_t> nk = random_bf16(size_t(N) * K, 3), xs = random_bf16(size_t(M) * K, 4);
    std::vector<uint16_t> ys(size_t(M) * N, 0x7fff);
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(e);
    const auto pd = mxfp4_matmul(e, M, K, N);
    EXPECT_FALSE(pd.bias_desc());
    EXPECT_TRUE(pd.bias_desc().is_zero());
    const memory w = pack_mxfp4(e, pd.weights_desc(), nk);
    memory x(pd.src_desc(), e, const_cast<uint16_t *>(xs.data())), y(pd.dst_desc(), e, ys.data());
    mxdnn::mx_matmul prim(pd);
    EXPECT_EQ(prim.get_kind(), mxdnn::primitive::kind::mx_matmul);
    prim.execute(s, {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_DST, y}});
    expect_matmul(ys.data(), xs.data(), mxfp4_values(nk, K, N), nullptr, M, K, N);
}

TEST(Hpp, ReorderOfTwoMemories) {
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(e);
    std::vector<float> from = {1, 2, 3, 4, 5, 6}, to(6, -1);
    memory a(memory::desc({2, 3}, dt::f32, tag::ab), e, from.data());
    memory b(memory::desc({2, 3}, dt::f32, tag::ba), e, to.data());
    mxdnn::mx_reorder(a, b).execute(s, a, b);
    EXPECT_EQ(to, (std::vector<float>{1, 4, 2, 5, 3, 6}));
    const mxdnn::mx_reorder::primitive_desc pd(a, b);
    EXPECT_EQ(pd.get_src_engine(), e);
    EXPECT_EQ(pd.get_dst_engine(), e);
    EXPECT_EQ(pd.get_kind(), mxdnn::primitive::kind::mx_reorder);
}

// There are no implicit conversions between handles of different objects, or from and to C handles.
template <typename From, typename To>
constexpr bool apart() {
    return !std::is_convertible<From, To>::value;
}
static_assert(apart<mxdnn_engine_t, mxdnn::engine>(), "");
static_assert(apart<mxdnn_stream_t, mxdnn::stream>(), "");
static_assert(apart<mxdnn_memory_t, mxdnn::memory>(), "");
static_assert(apart<mxdnn_memory_desc_t, memory::desc>(), "");
static_assert(apart<mxdnn_primitive_attr_t, mxdnn::primitive_attr>(), "");
static_assert(apart<mxdnn::engine, mxdnn_engine_t>(), "");
static_assert(apart<mxdnn::engine, mxdnn::stream>(), "a stream is made on purpose");
static_assert(apart<mxdnn::engine, mxdnn::memory>(), "");
static_assert(apart<memory::desc, mxdnn::memory>(), "");
static_assert(apart<mxdnn::memory, memory::desc>(), "");
static_assert(apart<mxdnn::primitive_attr, mxdnn::post_ops>(), "");
static_assert(apart<mxdnn::mx_matmul::primitive_desc, mxdnn::mx_matmul>(), "");
static_assert(apart<mxdnn::mx_reorder::primitive_desc, mxdnn::mx_matmul::primitive_desc>(), "");
static_assert(!std::is_constructible<mxdnn::mx_matmul, mxdnn::mx_reorder::primitive_desc>::value, "");
static_assert(!std::is_constructible<mxdnn::grouped_matmul, mxdnn::mx_matmul::primitive_desc>::value, "");
static_assert(apart<std::vector<uint8_t>, memory::desc>(), "");
static_assert(apart<mxdnn::engine, bool>(), "");
static_assert(std::is_copy_assignable<mxdnn::primitive>::value, "");
static_assert(std::is_nothrow_move_constructible<mxdnn::memory>::value, "");

// Every enumerator of the header equals its C counterpart: the enumerators are spelled alike.
#define SAME(type, cpp, c) static_assert(static_cast<int>(type::cpp) == static_cast<int>(c), "")
SAME(dt, f4_e2m1, mxdnn_f4_e2m1);
SAME(dt, f6_e2m3, mxdnn_f6_e2m3);
SAME(dt, f6_e3m2, mxdnn_f6_e3m2);
SAME(dt, f8_e4m3, mxdnn_f8_e4m3);
SAME(dt, f8_e5m2, mxdnn_f8_e5m2);
SAME(dt, e8m0, mxdnn_e8m0);
SAME(dt, u64, mxdnn_u64);
SAME(tag, any, mxdnn_format_tag_any);
SAME(tag, ba, mxdnn_ba);
SAME(tag, abdc, mxdnn_abdc);
SAME(mxdnn::engine::kind, cuda, mxdnn_cuda);
SAME(mxdnn::status, device_unavailable, mxdnn_device_unavailable);
SAME(mxdnn::algorithm, gated_swiglu_oai, mxdnn_gated_swiglu_oai);
SAME(mxdnn::algorithm, eltwise_relu2, mxdnn_eltwise_relu2);
SAME(mxdnn::algorithm, route_sigmoid, mxdnn_route_sigmoid);
SAME(mxdnn::quantization_mode, dynamic_affine, mxdnn_quantization_mode_dynamic_affine);
SAME(mxdnn::scale_rounding, rceil, mxdnn_scale_rounding_rceil);
SAME(mxdnn::blob_verdict, corrupt, mxdnn_blob_corrupt);
SAME(mxdnn::cpu_isa, avx512_core_amx, mxdnn_cpu_isa_avx512_core_amx);
SAME(mxdnn::query, target_str, mxdnn_query_target_str);
SAME(mxdnn::primitive::kind, gated, mxdnn_gated);
#undef SAME

// Every exported function is called by one of the C++ headers, and every enumerator is there.
TEST(Hpp, NothingOfTheCApiIsMissing) {
    const std::string root = std::string(MXDNN_TEST_DATA) + "/../..";
    std::string headers;
    for (const auto &file : std::filesystem::recursive_directory_iterator(root + "/include/mxdnn"))
        if (file.path().extension() == ".hpp") headers += text_of(file.path());
    // The sized form takes the same blobs; get_metadata() is a map, which finds by itself.
    const std::set<std::string> left_out = {
            "mxdnn_memory_desc_create_with_blob", "mxdnn_container_find_metadata"};
    std::istringstream exported(text_of(root + "/tests/symbols/exported.txt"));
    int functions = 0;
    for (std::string name; exported >> name; functions++)
        EXPECT_TRUE(left_out.count(name) || headers.find(name + "(") != headers.npos) << name;
    EXPECT_GT(functions, 90);
    const std::string types = text_of(root + "/include/mxdnn/mxdnn_types.h");
    const auto enumerators = names_between(types, " ", " =");
    for (const std::string &name : enumerators)
        EXPECT_NE(headers.find("= " + name + ","), headers.npos) << name;
    EXPECT_GT(enumerators.size(), 130u);
}

TEST(Hpp, ClonesOfPrimitiveDescriptorsMoveAlone) {
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::mx_matmul::primitive_desc pd = mxfp4_matmul(e, 4, 64, 32);
    const std::string first = pd.impl_info_str();
    mxdnn::mx_matmul::primitive_desc clone = pd.clone(), copy = pd;
    ASSERT_TRUE(clone.next_impl());
    EXPECT_EQ(pd.impl_info_str(), first);
    EXPECT_NE(clone.impl_info_str(), first);
    ASSERT_TRUE(copy.next_impl());
    EXPECT_EQ(pd.impl_info_str(), clone.impl_info_str());
    EXPECT_THROW(mxdnn::mx_matmul::primitive_desc().clone(), mxdnn::error);
}

TEST(Hpp, ExceptionsCarryTheSentence) {
    try {
        mxdnn::engine::for_target("cpu:x64:avx9000");
        FAIL() << "no exception";
    } catch (const mxdnn::error &e) {
        EXPECT_EQ(e.status, mxdnn_invalid_arguments);
        EXPECT_NE(e.message.find("cpu:x64:avx9000"), std::string::npos) << e.message;
        EXPECT_EQ(e.message, e.what());
        EXPECT_EQ(e.message, mxdnn::get_last_error());
    }
    // An empty object gives an error instead of a crash.
    EXPECT_THROW(mxdnn::stream().wait(), mxdnn::error);
    EXPECT_THROW(memory::desc().get_blob(), mxdnn::error);
    EXPECT_THROW(memory().get_data_handle(), mxdnn::error);
    EXPECT_THROW(mxdnn::primitive().execute(mxdnn::stream(), {}), mxdnn::error);
    EXPECT_EQ(memory::desc().get_size(), 0u);
    EXPECT_THROW(memory::desc(memory::dims{2, 3}, dt::f32, memory::dims{1}), mxdnn::error);
    EXPECT_THROW(memory::desc(memory::dims(20, 1), dt::f32, memory::dims(20, 1)), mxdnn::error);
    EXPECT_THROW(memory::desc(std::vector<uint8_t>()), mxdnn::error);
    mxdnn::primitive_attr attr;
    EXPECT_THROW(attr.set_scales(MXDNN_ARG_SRC, 3, memory::dims(13, 1), dt::e8m0), mxdnn::error);
    EXPECT_THROW(mxdnn::post_ops().kind(0), mxdnn::error);
}

TEST(Hpp, AllowEmpty) {
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    EXPECT_FALSE(memory::desc({-1, 2}, dt::f32, tag::ab, true));
    EXPECT_FALSE(memory::desc({1, 2}, dt::f32, memory::dims{-1, 2}, true));
    EXPECT_FALSE(memory::desc({1, 2}, dt::f32, memory::dims{1}, true));
    EXPECT_FALSE(memory::desc::grouped({1, 2}, dt::f32, 0, -5, dt::s32, true));
    const memory::desc a({4, 32}, dt::f32, tag::ab), b({5, 32}, dt::f32, tag::ab);
    EXPECT_FALSE((mxdnn::mx_reorder::primitive_desc(e, a, e, b, mxdnn::primitive_attr(), true)));
    EXPECT_FALSE((mxdnn::mx_matmul::primitive_desc(e, a, a, a, mxdnn::primitive_attr(), true)));
    EXPECT_THROW((mxdnn::mx_reorder::primitive_desc(e, a, e, b)), mxdnn::error);
}

TEST(Hpp, DescriptorsAreValues) {
    memory::desc a({4, 6}, dt::bf16, tag::ab);
    const memory::desc b = a;
    EXPECT_EQ(a, b);
    a.set_annotation(dt::f32, "recipe");
    EXPECT_EQ(a, b) << "annotations are not part of equality";
    EXPECT_EQ(a.get_annotation_data_type(), dt::f32);
    EXPECT_EQ(a.get_annotation_recipe(), "recipe");
    EXPECT_EQ(b.get_annotation_data_type(), dt::undef);
    EXPECT_EQ(b.get_annotation_recipe(), "");
    EXPECT_NE(a, memory::desc({4, 6}, dt::bf16, tag::ba));
    EXPECT_NE(a, memory::desc());
    EXPECT_EQ(memory::desc(), memory::desc());
    EXPECT_EQ(a.get_dims(), (memory::dims{4, 6}));
    EXPECT_EQ(a.get_strides(), (memory::dims{6, 1}));
    EXPECT_EQ(a.get_ndims(), 2);
    EXPECT_EQ(a.get_data_type(), dt::bf16);
    EXPECT_EQ(a.get_format_kind(), memory::format_kind::blocked);
    EXPECT_EQ(a.get_size(), 48u);
    EXPECT_EQ(memory::desc({4, 6}, dt::f32, memory::dims()), memory::desc({4, 6}, dt::f32, tag::ab));
    EXPECT_FALSE(a.is_zero());
}

#if defined(__linux__)
TEST(Hpp, LargeMemoryStartsALargePage) {
    constexpr int64_t page = 2 << 20;
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    for (const int64_t bytes : {page, 2 * page + 1, 4 * page + 1}) {
        memory m(memory::desc({bytes}, dt::u8, tag::a), e);
        char *p = m.map_data<char>();
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(uintptr_t(p) % page, 0u) << bytes;
        p[0] = p[bytes - 1] = 1;
        m.unmap_data(p);
    }
}
#endif

TEST(Hpp, MemoryKeepsHandles) {
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    const memory::desc md({3, 5}, dt::f32, tag::ab);
    memory m(md, e);
    ASSERT_NE(m.get_data_handle(), nullptr);
    EXPECT_EQ(uintptr_t(m.get_data_handle()) % 64, 0u);
    float *p = m.map_data<float>();
    for (int i = 0; i < 15; i++) p[i] = float(i);
    m.unmap_data(p);
    const memory same = m; // NOLINT(performance-unnecessary-copy-initialization): copies are the subject
    EXPECT_EQ(same.map_data<float>()[14], 14.f);
    float own[15];
    m.set_data_handle(own);
    EXPECT_EQ(same.get_data_handle(), own) << "a copy refers to the same memory";
    EXPECT_EQ(m.get_desc(), md);
    EXPECT_EQ(m.get_engine(), e);
    EXPECT_EQ(mxdnn::memory(md, e, MXDNN_MEMORY_NONE).get_data_handle(), nullptr);
    EXPECT_EQ(mxdnn::stream(e).get_engine(), e);
}

TEST(Hpp, ManyArgumentsExecute) {
    // More than the wrapper has space for without allocating. The library refuses it, not the wrapper.
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(e);
    const memory::desc md({1, 2}, dt::f32, tag::ab);
    memory m(md, e), n(md, e);
    std::unordered_map<int, memory> args = {{MXDNN_ARG_FROM, m}, {MXDNN_ARG_TO, n}};
    mxdnn::mx_reorder r(m, n);
    r.execute(s, args);
    for (int i = 100; i < 200; i++) args[i] = m;
    EXPECT_THROW(r.execute(s, args), mxdnn::error);
}

TEST(Hpp, Service) {
    EXPECT_STREQ(mxdnn::status2str(mxdnn::status::corrupt_blob), "corrupt_blob");
    ASSERT_NE(mxdnn::version(), nullptr);
    EXPECT_EQ(mxdnn::set_verbose("none"), mxdnn::status::success);
    EXPECT_EQ(mxdnn::set_verbose("nonsense"), mxdnn::status::invalid_arguments);
    EXPECT_EQ(mxdnn::set_jit_dump(false), mxdnn::status::success);
    const int capacity = mxdnn::get_primitive_cache_capacity();
    mxdnn::set_primitive_cache_capacity(5);
    EXPECT_EQ(mxdnn::get_primitive_cache_capacity(), 5);
    mxdnn::set_primitive_cache_capacity(capacity);
    EXPECT_THROW(mxdnn::set_primitive_cache_capacity(-1), mxdnn::error);
    EXPECT_EQ(mxdnn::set_max_concurrency(3), mxdnn::status::success);
    EXPECT_EQ(mxdnn::get_max_concurrency(), 3);
    EXPECT_EQ(mxdnn::set_max_concurrency(0), mxdnn::status::success);
    EXPECT_GE(mxdnn::get_max_concurrency(), 1);
    EXPECT_GE(mxdnn::engine::get_count(mxdnn::engine::kind::cpu), 1u);
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    EXPECT_EQ(e.get_kind(), mxdnn::engine::kind::cpu);
    EXPECT_EQ(e.get_target().rfind("cpu:x64:", 0), 0u);
}

TEST(Hpp, BlobsAndChecksums) {
    mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    const int K = 64, N = 32;
    const memory::desc packed = mxfp4_matmul(e, 1, K, N).weights_desc();
    EXPECT_EQ(packed.get_format_kind(), memory::format_kind::opaque);
    EXPECT_EQ(packed.get_scale_data_type(), dt::e8m0);
    EXPECT_EQ(packed.get_block_size(), 32);
    EXPECT_EQ(packed.get_target(), "cpu:x64");
    EXPECT_GE(packed.get_alignment(), 16);
    EXPECT_GE(packed.get_layout_version(), 1);
    EXPECT_GT(packed.get_layout_id(), 0);
    EXPECT_GE(packed.get_expert_stride(), int64_t(packed.get_size()));
    const std::vector<uint8_t> blob = packed.get_blob();
    EXPECT_LE(blob.size(), 4096u);
    EXPECT_EQ(memory::desc(blob), packed);
    EXPECT_EQ(memory::desc(blob.data(), blob.size()).get_blob(), blob);
    EXPECT_LE(mxdnn::check_blob(e, blob), mxdnn::blob_verdict::slower);
    std::vector<uint8_t> bad = blob;
    bad[bad.size() / 2] ^= 1;
    EXPECT_EQ(mxdnn::check_blob(e, bad), mxdnn::blob_verdict::corrupt);

    memory w = pack_mxfp4(e, packed, random_bf16(size_t(N) * K, 9));
    const uint64_t sum = mxdnn::packed_checksum(packed, w.get_data_handle());
    mxdnn::checksum parts(packed);
    const uint8_t *bytes = static_cast<uint8_t *>(w.get_data_handle());
    for (size_t at = 0, n = 1; at < packed.get_size(); at += n, n = std::min(3 * n, packed.get_size() - at))
        parts.add(bytes + at, n);
    EXPECT_EQ(parts.value(), sum);
    static_cast<uint8_t *>(w.get_data_handle())[7] ^= 0x10;
    EXPECT_NE(mxdnn::packed_checksum(packed, w.get_data_handle()), sum);
}
