// SPDX-License-Identifier: Apache-2.0
// Tensors that are legal alone but unusual in their place: strides that repeat elements, storage that does
// not match, large sizes with few or no bytes in memory. Each is refused, or takes time in proportion to its
// bytes.
#include <cstring>
#include <numeric>

#include <sys/mman.h>
#include <unistd.h>

#include "test_api_util.hpp"

using namespace api_test;
using mode = mxdnn::quantization_mode;

namespace {

using pd_t = mxdnn_primitive_desc_t;
const memory::desc none;

struct OddTensors : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};

    // Destroys what was made.
    mxdnn_status_t drop(mxdnn_status_t status, pd_t pd) const {
        if (status == mxdnn_success) mxdnn_primitive_desc_destroy(pd);
        return status;
    }
    mxdnn_status_t matmul(const memory::desc &src, const memory::desc &wei, const memory::desc &dst,
            const mxdnn::primitive_attr &a) const {
        pd_t pd;
        const auto s = mxdnn_mx_matmul_primitive_desc_create(
                &pd, eng.get(), src.get(), wei.get(), nullptr, dst.get(), a.get());
        return drop(s, pd);
    }
    mxdnn_status_t grouped(const memory::desc &src, const memory::desc &wei, const memory::desc &dst,
            const mxdnn::primitive_attr &a) const {
        pd_t pd;
        const auto s = mxdnn_grouped_matmul_primitive_desc_create(
                &pd, eng.get(), src.get(), wei.get(), nullptr, dst.get(), a.get());
        return drop(s, pd);
    }
    mxdnn_status_t reorder(const memory::desc &src, const memory::desc &dst,
            const mxdnn::primitive_attr &a = {}, const memory::desc &dst_1 = {}) const {
        pd_t pd;
        const auto s = dst_1.get(true) ? mxdnn_mx_reorder_primitive_desc_create_with_dst_1(
                               &pd, src.get(), eng.get(), dst.get(), dst_1.get(), eng.get(), a.get())
                                       : mxdnn_mx_reorder_primitive_desc_create(
                                               &pd, src.get(), eng.get(), dst.get(), eng.get(), a.get());
        return drop(s, pd);
    }
    mxdnn_status_t permute(
            const memory::desc &src, const memory::desc &dst, const mxdnn::primitive_attr &a = {}) const {
        pd_t pd;
        const auto s = mxdnn_moe_permute_primitive_desc_create(
                &pd, eng.get(), src.get(), dst.get(), 1, 1, 1, a.get());
        return drop(s, pd);
    }
    mxdnn_status_t unpermute(
            const memory::desc &src, const memory::desc &dst, const mxdnn::primitive_attr &a = {}) const {
        pd_t pd;
        const auto s =
                mxdnn_moe_unpermute_primitive_desc_create(&pd, eng.get(), src.get(), dst.get(), a.get());
        return drop(s, pd);
    }
    mxdnn_status_t described(const memory::dims &dims, dt type, const memory::dims &strides) const {
        mxdnn_memory_desc_t md;
        const auto s = mxdnn_memory_desc_create_with_strides(
                &md, int(dims.size()), dims.data(), mxdnn_data_type_t(type), strides.data());
        if (s == mxdnn_success) mxdnn_memory_desc_destroy(md);
        return s;
    }
};

// The arguments of `to` and one more. Copies of a wrapper object share the object.
mxdnn::primitive_attr with_scales(int arg, int mask, const memory::dims &groups, dt type = dt::e8m0,
        mode m = mode::static_sazp, const mxdnn::primitive_attr &to = {}) {
    mxdnn_primitive_attr_t clone;
    mxdnn_primitive_attr_clone(&clone, to.get());
    mxdnn::primitive_attr a;
    a.reset(clone);
    a.set_scales(arg, mask, groups, type, false, m);
    return a;
}

// All implementations of a descriptor execute.
template <typename pd_type>
void execute_all(pd_type &pd, const mxdnn::stream &s, const std::unordered_map<int, memory> &args) {
    do mxdnn::primitive(pd).execute(s, args);
    while (pd.next_impl());
}

} // namespace

// ---- how scales and codes are stored ----

// Zero points are linear, so they cannot be combined with scales in the 128x4 order.
TEST_F(OddTensors, SwizzledScalesHaveOneByteAndNoZeroPoints) {
    const auto int4 = [](int arg, int mask, const memory::dims &groups, bool zero_points, mode m) {
        auto a = with_scales(arg, mask, groups, dt::bf16, m);
        if (zero_points) a.set_zero_points(arg, mask, groups, dt::u8);
        a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
        return a;
    };
    const memory::desc f32({4, 64}, dt::f32, tag::ab), u4({4, 64}, dt::u4, tag::ab),
            wei({64, 64}, dt::u4, tag::ab), experts({2, 64, 64}, dt::u4, tag::abc);
    for (const bool zp : {true, false}) {
        SCOPED_TRACE(zp ? "with zero points" : "without");
        const auto of_wei = int4(MXDNN_ARG_WEIGHTS, 3, {32, 1}, zp, mode::static_sazp);
        const auto of_experts = int4(MXDNN_ARG_WEIGHTS, 7, {32, 1}, zp, mode::static_sazp);
        const auto of_src = int4(MXDNN_ARG_SRC, 3, {1, 32}, zp, mode::static_sazp);
        const auto of_dst = int4(MXDNN_ARG_DST, 3, {1, 32}, zp, mode::dynamic_affine);
        const auto plain_wei =
                with_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::bf16, mode::static_sazp, of_src);
        const auto plain_wei_2 =
                with_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::bf16, mode::static_sazp, of_dst);
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(f32, wei, f32, of_wei), "128x4", "weights", "bf16");
        EXPECT_REFUSED(mxdnn_invalid_arguments, grouped(f32, experts, f32, of_experts), "128x4", "weights");
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(u4, wei, f32, plain_wei), "128x4", "src");
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(f32, wei, u4, plain_wei_2), "128x4", "dst");
        EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(u4, f32, of_src), "128x4", "src");
        EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(f32, u4, of_dst), "128x4", "dst");
        if (!zp) EXPECT_REFUSED(mxdnn_invalid_arguments, permute(u4, u4, of_src), "128x4", "src");
    }
    // Of one byte they would have the order, and the zero points would not.
    for (const dt one_byte : {dt::e8m0, dt::f8_e4m3}) {
        const auto with_zero_points = [&](int arg, int mask, const memory::dims &groups) {
            auto a = with_scales(arg, mask, groups, one_byte);
            a.set_zero_points(arg, mask, groups, dt::u8);
            a.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
            return a;
        };
        const char *const why = "zero points, which have no 128x4 swizzle";
        const auto of_wei = with_zero_points(MXDNN_ARG_WEIGHTS, 3, {32, 1});
        const auto of_experts = with_zero_points(MXDNN_ARG_WEIGHTS, 7, {32, 1});
        const auto of_src = with_zero_points(MXDNN_ARG_SRC, 3, {1, 32});
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(f32, wei, f32, of_wei), "weights", why);
        EXPECT_REFUSED(mxdnn_invalid_arguments, grouped(f32, experts, f32, of_experts), "weights", why);
        EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(u4, f32, of_src), "src", why);
    }
}

TEST_F(OddTensors, DenseCodesAreOfSixBitsSideBySide) {
    const auto dense = [](int arg, const memory::dims &groups, mode m) {
        auto a = with_scales(arg, 3, groups, dt::e8m0, m);
        a.set_element_packing(arg, mxdnn::element_packing::dense);
        return a;
    };
    const auto of_src = dense(MXDNN_ARG_SRC, {1, 32}, mode::static_sazp);
    const auto of_dst = dense(MXDNN_ARG_DST, {1, 32}, mode::dynamic_mx);
    const memory::desc f32({4, 64}, dt::f32, tag::ab), fp8({4, 64}, dt::f8_e4m3, tag::ab);
    const memory::desc repeated({4, 64}, dt::f6_e2m3, memory::dims{64, 0}),
            apart({4, 64}, dt::f6_e2m3, memory::dims{128, 2});
    auto wei = with_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0, mode::static_sazp, of_src);
    const memory::desc any({64, 64}, dt::f4_e2m1, tag::any);
    EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(fp8, any, f32, wei), "6-bit", "src");
    for (const memory::desc *odd : {&repeated, &apart}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(*odd, any, f32, wei), "dense", "stride 1", "src");
        EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(*odd, f32, of_src), "dense", "stride 1", "src");
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(f32, apart, of_dst), "dense", "stride 1", "dst");
    EXPECT_OK(reorder(f32, memory::desc({4, 64}, dt::f6_e2m3, tag::ab), of_dst));
    // Checks that need a runtime stride happen at execution.
    const memory::desc any_strides({runtime, runtime}, dt::f6_e2m3, memory::dims{runtime, runtime});
    pd_t pd;
    ASSERT_EQ(mxdnn_mx_reorder_primitive_desc_create(&pd, any_strides.get(), eng.get(),
                      memory::desc({runtime, runtime}, dt::f32, memory::dims{runtime, 1}).get(), eng.get(),
                      of_src.get()),
            mxdnn_success)
            << mxdnn_get_last_error();
    mxdnn::primitive_desc_base owner;
    owner.reset(pd);
    memory src(apart, eng), dst(f32, eng), scales(memory::desc({4, 2}, dt::e8m0, tag::ab), eng);
    mxdnn_primitive_t p;
    ASSERT_EQ(mxdnn_primitive_create(&p, pd), mxdnn_success);
    const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_DST, dst.get()},
            {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales.get()}};
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_primitive_execute(p, str.get(), 3, args), "dense", "stride 1");
    mxdnn_primitive_destroy(p);
}

// 256 codes of 4 bits need more than one byte, whichever dim has which stride.
TEST_F(OddTensors, CodesThatShareBytesHaveStrideOne) {
    for (const dt type : {dt::f4_e2m1, dt::s4, dt::u4}) {
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, described({1, 256}, type, {256, 0}), "strides[1]", "must be 1");
        EXPECT_REFUSED(mxdnn_invalid_arguments, described({2, 256}, type, {256, 0}), "must be 1");
        EXPECT_REFUSED(mxdnn_invalid_arguments, described({256, 2}, type, {0, 0}), "must be 1");
        EXPECT_REFUSED(mxdnn_invalid_arguments, described({256}, type, {0}), "must be 1");
        EXPECT_REFUSED(mxdnn_invalid_arguments, described({2, 256}, type, {0, 2}), "must be 1");
        EXPECT_OK(described({16, 256}, type, {0, 1}));
        EXPECT_OK(described({256, 16}, type, {1, 0}));
        EXPECT_OK(described({1, 1}, type, {0, 0}));
    }
    EXPECT_OK(described({1, 256}, dt::f8_e4m3, {256, 0}));
}

// ---- what is written ----

TEST_F(OddTensors, DestinationsHaveAPlaceForEachElement) {
    const memory::desc f32({4, 64}, dt::f32, tag::ab), wei({64, 64}, dt::f4_e2m1, tag::any),
            experts({2, 64, 64}, dt::f4_e2m1, tag::any), codes({4, 64}, dt::f8_e4m3, tag::ab);
    const auto mx = mxfp4_weights_attr();
    const auto mx3 = with_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1});
    const auto both = with_scales(MXDNN_ARG_DST_1, 3, {1, 32}, dt::e8m0, mode::dynamic_mx,
            with_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, mode::dynamic_mx));
    const auto moved = with_scales(MXDNN_ARG_SRC, 3, {1, 32});
    for (const memory::dims &strides : {memory::dims{0, 1}, memory::dims{64, 0}, memory::dims{0, 0}}) {
        const memory::desc odd({4, 64}, dt::f32, strides), odd_codes({4, 64}, dt::f8_e4m3, strides);
        const char *which = strides[0] == 0 ? "strides[0] is 0" : "strides[1] is 0";
        EXPECT_REFUSED(mxdnn_invalid_arguments, matmul(f32, wei, odd, mx), "dst is written", which);
        EXPECT_REFUSED(mxdnn_invalid_arguments, grouped(f32, experts, odd, mx3), "dst is written", which);
        EXPECT_REFUSED(mxdnn_invalid_arguments, reorder(f32, odd), "dst is written", which);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, reorder(f32, odd_codes, both, codes), "dst is written", which);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, reorder(f32, codes, both, odd_codes), "dst_1 is written", which);
        EXPECT_REFUSED(mxdnn_invalid_arguments, permute(f32, odd), "dst is written", which);
        EXPECT_REFUSED(mxdnn_invalid_arguments, unpermute(f32, odd), "dst is written", which);
        EXPECT_REFUSED(mxdnn_invalid_arguments, permute(codes, odd_codes, moved), "dst is written", which);
        // Reading them is legal, and so is a single row.
        EXPECT_OK(reorder(odd, f32));
        EXPECT_OK(permute(odd, f32));
    }
    EXPECT_OK(reorder(
            memory::desc({1, 64}, dt::f32, tag::ab), memory::desc({1, 64}, dt::f32, memory::dims{0, 1})));
}

// Strides that are known at execution only: runtime strides, strides of written scales, of a global scale.
TEST_F(OddTensors, WrittenMemoryHasAPlaceForEachElement) {
    const auto strides = memory::dims{runtime, 1};
    mxdnn::mx_reorder::primitive_desc pd(eng, memory::desc({runtime, 64}, dt::f32, strides), eng,
            memory::desc({runtime, 64}, dt::f4_e2m1, tag::ab), [] {
                auto a = with_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3, mode::dynamic_fp);
                a.set_global_scale(MXDNN_ARG_DST, mode::dynamic_fp);
                return a;
            }());
    memory src(memory::desc({4, 64}, dt::f32, tag::ab), eng),
            dst(memory::desc({4, 64}, dt::f4_e2m1, tag::ab), eng);
    memory good(memory::desc({4, 4}, dt::f8_e4m3, tag::ab), eng),
            bad(memory::desc({4, 4}, dt::f8_e4m3, memory::dims{0, 1}), eng),
            one(memory::desc({1}, dt::f32, tag::a), eng);
    const auto execute = [&](mxdnn_primitive_t p, const memory &to, const memory &scales,
                                 const memory &global) {
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_DST, to.get()},
                {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, scales.get()},
                {MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST, global.get()}};
        return mxdnn_primitive_execute(p, str.get(), 4, args);
    };
    do {
        mxdnn::mx_reorder p(pd);
        EXPECT_OK(execute(p.get(), dst, good, one));
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, execute(p.get(), dst, bad, one), "the scales of dst", "strides[0]");
    } while (pd.next_impl());

    mxdnn::mx_reorder::primitive_desc rows(eng, memory::desc({runtime, 64}, dt::f32, strides), eng,
            memory::desc({runtime, 64}, dt::f32, strides));
    memory repeated(memory::desc({4, 64}, dt::f32, memory::dims{0, 1}), eng);
    do {
        mxdnn::mx_reorder p(rows);
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_DST, repeated.get()}};
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_execute(p.get(), str.get(), 2, args),
                "dst is written", "strides[0]");
    } while (rows.next_impl());
}

// Global scales are read one after the other.
TEST_F(OddTensors, GlobalScalesLieSideBySide) {
    auto a = with_scales(MXDNN_ARG_SRC, 7, {1, 16}, dt::f8_e4m3);
    a.set_global_scale(MXDNN_ARG_SRC, mode::static_sazp);
    mxdnn::mx_reorder::primitive_desc pd(eng, memory::desc({64, 2, 16}, dt::f4_e2m1, tag::abc), eng,
            memory::desc({64, 2, 16}, dt::f32, tag::abc), a);
    memory src(pd.src_desc(), eng), dst(pd.dst_desc(), eng),
            scales(memory::desc({64, 2, 1}, dt::f8_e4m3, tag::abc), eng),
            one(memory::desc({64}, dt::f32, memory::dims{0}), eng);
    const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_DST, dst.get()},
            {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales.get()},
            {MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_SRC, one.get()}};
    do {
        mxdnn::mx_reorder p(pd);
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_execute(p.get(), str.get(), 4, args),
                "stride 0 of the global scale of src");
    } while (pd.next_impl());
}

// A global scale that the caller passes may be in read-only memory.
TEST_F(OddTensors, AGivenGlobalScaleIsOnlyRead) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    void *const at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    *static_cast<float *>(at) = 0.5f;
    ASSERT_EQ(mprotect(at, page, PROT_READ), 0);
    auto a = with_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3, mode::dynamic_fp);
    a.set_global_scale(MXDNN_ARG_DST, mode::static_sazp);
    mxdnn::mx_reorder::primitive_desc pd(eng, memory::desc({3, 48}, dt::f32, tag::ab), eng,
            memory::desc({3, 48}, dt::f4_e2m1, tag::ab), a);
    const memory src(pd.src_desc(), eng);
    std::memset(src.get_data_handle(), 0, pd.src_desc().get_size());
    execute_all(pd, str,
            {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DST, memory(pd.dst_desc(), eng)},
                    {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST,
                            memory(memory::desc({3, 3}, dt::f8_e4m3, tag::ab), eng)},
                    {MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST,
                            memory(memory::desc({1}, dt::f32, tag::a), eng, at)}});
    munmap(at, page);
}

// Each padded group has the same number of tiles of 128x4 scales, for any number of rows in use.
TEST_F(OddTensors, SwizzledScalesOfPaddedGroupsHaveAPlaceForAllRows) {
    constexpr int groups = 3, each = 130, K = 32, N = 16, tile = 512, tiles = 2;
    auto a = with_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0, mode::static_sazp,
            with_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}));
    a.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
    a.set_row_grouping(mxdnn::row_grouping::padded);
    mxdnn::grouped_matmul::primitive_desc pd(eng, memory::desc({groups * each, K}, dt::f8_e4m3, tag::ab),
            memory::desc({groups, K, N}, dt::f4_e2m1, tag::any),
            memory::desc({groups * each, N}, dt::f32, tag::ab), a);
    std::vector<uint8_t> codes(groups * each * K, 0x38), scales(groups * tiles * tile, 127); // ones
    for (int g = 0; g < groups; g++) scales[size_t(g) * tiles * tile] = uint8_t(128 + g);    // of row 0
    std::vector<int32_t> counts = {0, 2, each};
    const mxdnn_dim_t dims[] = {groups, K, N};
    std::vector<float> ones(groups * K * N, 1.f);
    memory wei(pd.weights_desc(), eng);
    mxdnn::mx_reorder(
            mxdnn::mx_reorder::primitive_desc(eng, memory::desc({groups, K, N}, dt::f32, tag::abc), eng,
                    pd.weights_desc(), with_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, mode::dynamic_mx)))
            .execute(str, memory(memory::desc({dims, dims + 3}, dt::f32, tag::abc), eng, ones.data()), wei);
    do {
        std::vector<float> dst(groups * each * N, -1.f);
        mxdnn::grouped_matmul(pd).execute(
                str, {{MXDNN_ARG_SRC, memory(pd.src_desc(), eng, codes.data())}, {MXDNN_ARG_WEIGHTS, wei},
                             {MXDNN_ARG_DST, memory(pd.dst_desc(), eng, dst.data())},
                             {MXDNN_ARG_GROUP_COUNTS,
                                     memory(memory::desc({groups}, dt::s32, tag::a), eng, counts.data())},
                             {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC,
                                     memory(memory::desc({1, mxdnn_dim_t(scales.size())}, dt::e8m0, tag::ab),
                                             eng, scales.data())}});
        for (int g = 0; g < groups; g++)
            for (int r = 0; r < each; r++)
                EXPECT_EQ(dst[size_t((g * each + r) * N)], r >= counts[size_t(g)] ? -1.f
                                                           : r == 0               ? float(K << (g + 1))
                                                                                  : float(K))
                        << pd.impl_info_str() << " group " << g << " row " << r;
    } while (pd.next_impl());
}

// ---- empty tensors ----

// Creating takes no longer for many columns than for few.
TEST_F(OddTensors, AMatmulOfManyColumnsIsCreatedAtOnce) {
    restore_threads_t restore;
    mxdnn::set_max_concurrency(2);
    const mxdnn_dim_t N = mxdnn_dim_t(1) << 38;
    auto gated = mxfp4_weights_attr();
    mxdnn::post_ops po;
    po.append_gated(mxdnn::algorithm::gated_silu, 1.f, 0.f, mxdnn::gated_layout::halves);
    gated.set_post_ops(po);
    for (const mxdnn_dim_t M : {mxdnn_dim_t(1), mxdnn_dim_t(100), runtime}) {
        for (const mxdnn_dim_t n : {N, N + 17}) mxdnn::mx_matmul(mxfp4_matmul(eng, M, 32, n));
        for (const mxdnn_dim_t half : {N / 2, N / 2 + 9})
            mxdnn::mx_matmul(mxdnn::mx_matmul::primitive_desc(eng, memory::desc({M, 32}, dt::bf16, tag::ab),
                    memory::desc({32, 2 * half}, dt::f4_e2m1, tag::any),
                    memory::desc({M, half}, dt::bf16, tag::ab), gated));
    }
}

TEST_F(OddTensors, MatricesWithoutElementsTakeNoTime) {
    const mxdnn_dim_t many = mxdnn_dim_t(1) << 40;
    const auto q = with_scales(MXDNN_ARG_DST, 7, {1, 32}, dt::e8m0, mode::dynamic_mx);
    for (const bool no_rows : {true, false}) {
        const memory::dims dims = {many, no_rows ? 0 : 32, no_rows ? 32 : 0},
                           scales = {many, no_rows ? 0 : 32, no_rows ? 1 : 0};
        const memory::desc f32(dims, dt::f32, tag::abc), bf16(dims, dt::bf16, tag::abc),
                fp8(dims, dt::f8_e4m3, tag::abc);
        mxdnn::mx_reorder::primitive_desc plain(eng, f32, eng, bf16), quantised(eng, f32, eng, fp8, q);
        execute_all(plain, str, {{MXDNN_ARG_SRC, memory(f32, eng)}, {MXDNN_ARG_DST, memory(bf16, eng)}});
        execute_all(quantised, str,
                {{MXDNN_ARG_SRC, memory(f32, eng)}, {MXDNN_ARG_DST, memory(fp8, eng)},
                        {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST,
                                memory(memory::desc(scales, dt::e8m0, tag::abc), eng)}});
    }
}

TEST_F(OddTensors, RowsWithoutColumnsTakeNoTime) {
    const mxdnn_dim_t many = INT32_MAX - 128;
    const memory::desc rows({many, 0}, dt::f32, tag::ab), ten({10, 0}, dt::f32, tag::ab);
    const memory src(rows, eng), dst(rows, eng), few(ten, eng);
    mxdnn::moe_permute::primitive_desc permute(eng, rows, rows, 1, 1, many);
    std::vector<int32_t> counts = {int32_t(many)}, idx(10);
    std::iota(idx.begin(), idx.end(), 0);
    execute_all(permute, str,
            {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DST, dst},
                    {MXDNN_ARG_GROUP_COUNTS,
                            memory(memory::desc({1, 1}, dt::s32, tag::ab), eng, counts.data())}});
    mxdnn::moe_unpermute::primitive_desc unpermute(eng, ten, rows);
    execute_all(unpermute, str,
            {{MXDNN_ARG_SRC, few}, {MXDNN_ARG_DST, dst},
                    {MXDNN_ARG_PERMUTED_IDX, memory(memory::desc({10}, dt::s32, tag::a), eng, idx.data())}});
    // No columns of weights.
    const memory::desc wei({1, 0, 0}, dt::f4_e2m1, tag::any);
    mxdnn::grouped_matmul::primitive_desc grouped(
            eng, rows, wei, rows, with_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}));
    const memory weights(grouped.weights_desc(), eng);
    execute_all(grouped, str,
            {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DST, dst}, {MXDNN_ARG_WEIGHTS, weights},
                    {MXDNN_ARG_GROUP_OFFSETS,
                            memory(memory::desc({1}, dt::s32, tag::a), eng, counts.data())}});
}

TEST_F(OddTensors, ExpertsAreSoManyAsAnExecutionMayLookAt) {
    const mxdnn_dim_t most = 1 << 20;
    const memory::desc src({4, 0}, dt::f32, tag::ab), dst({4, 64}, dt::f32, tag::ab);
    const auto a = with_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1});
    EXPECT_OK(grouped(src, memory::desc({most, 0, 64}, dt::f4_e2m1, tag::any), dst, a));
    EXPECT_REFUSED(mxdnn_invalid_shape,
            grouped(src, memory::desc({most + 1, 0, 64}, dt::f4_e2m1, tag::any), dst, a), "1048577",
            "1048576");
}

// The padding of each matrix counts, so an argument list never contains a descriptor that cannot be created.
TEST_F(OddTensors, ArgumentsBeyondAllSizesAreRefused) {
    auto a = with_scales(MXDNN_ARG_DST, 7, {1, 32}, dt::e8m0, mode::dynamic_mx);
    a.set_scales_layout(MXDNN_ARG_DST, mxdnn::scales_layout::swizzle_128x4);
    const memory::dims dims = {mxdnn_dim_t(1) << 40, 1, 512};
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            reorder(memory::desc(dims, dt::bf16, tag::abc), memory::desc(dims, dt::f8_e4m3, tag::abc), a),
            "the scales of dst", "2^50");
}

// Rows of more matrices than the weights have.
TEST_F(OddTensors, ABatchThatIsKnownAtExecutionHasToBeThatOfTheWeights) {
    constexpr auto runtime = MXDNN_RUNTIME_DIM_VAL;
    const mxdnn::mx_matmul::primitive_desc pd(eng, memory::desc({runtime, 4, 64}, dt::bf16, tag::abc),
            memory::desc({2, 64, 32}, dt::f4_e2m1, tag::any),
            memory::desc({runtime, 4, 32}, dt::f32, tag::abc), with_scales(MXDNN_ARG_WEIGHTS, 7, {1, 32, 1}));
    const mxdnn::mx_matmul matmul(pd);
    const memory weights(pd.weights_desc(), eng);
    std::memset(weights.get_data_handle(), 0, weights.get_desc().get_size());
    for (const mxdnn_dim_t batch : {1, 2, 3, 4}) {
        const memory src(memory::desc({batch, 4, 64}, dt::bf16, tag::abc), eng),
                dst(memory::desc({batch, 4, 32}, dt::f32, tag::abc), eng);
        std::memset(src.get_data_handle(), 0, src.get_desc().get_size());
        const mxdnn_exec_arg_t args[] = {
                {MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, weights.get()}, {MXDNN_ARG_DST, dst.get()}};
        const auto execute = [&] { return mxdnn_primitive_execute(matmul.get(), str.get(), 3, args); };
        if (batch == 2)
            EXPECT_OK(execute());
        else
            EXPECT_REFUSED(mxdnn_invalid_arguments, execute(),
                    "batch dim 0 is 2 in weights and " + std::to_string(batch) + " in dst");
    }
}

// Rows that move whole take their codes and block scales along, and nothing else.
TEST_F(OddTensors, RowsThatMoveHaveNeitherZeroPointsNorAGlobalScale) {
    const int args[] = {MXDNN_ARG_SRC, MXDNN_ARG_DST};
    mxdnn::primitive_attr global, zero_points;
    for (const int arg : args) {
        global.set_scales(arg, 3, {1, 16}, dt::f8_e4m3);
        global.set_global_scale(arg, mode::static_sazp);
        zero_points.set_scales(arg, 3, {1, 32}, dt::f16);
        zero_points.set_zero_points(arg, 3, {1, 32}, dt::u8);
    }
    const memory::desc fp4({4, 32}, dt::f4_e2m1, tag::ab), u4({4, 32}, dt::u4, tag::ab);
    EXPECT_REFUSED(mxdnn_unimplemented, permute(fp4, fp4, global), "src has a global scale");
    EXPECT_REFUSED(mxdnn_unimplemented, permute(u4, u4, zero_points), "src has zero points");
    EXPECT_REFUSED(mxdnn_unimplemented, unpermute(fp4, fp4, global), "src has a global scale");
}

// Scales of matrices in the 128x4 order lie one after the other, also where the batch is known at execution
// only.
TEST_F(OddTensors, SwizzledScalesOfABatchHaveNoGaps) {
    constexpr auto runtime = MXDNN_RUNTIME_DIM_VAL;
    auto a = with_scales(MXDNN_ARG_SRC, 7, {1, 1, 32}, dt::e8m0, mode::static_sazp,
            with_scales(MXDNN_ARG_WEIGHTS, 7, {1, 32, 1}));
    a.set_scales_layout(MXDNN_ARG_SRC, mxdnn::scales_layout::swizzle_128x4);
    const mxdnn::mx_matmul::primitive_desc pd(eng, memory::desc({runtime, 4, 64}, dt::f8_e4m3, tag::abc),
            memory::desc({2, 64, 16}, dt::f4_e2m1, tag::any),
            memory::desc({runtime, 4, 16}, dt::f32, tag::abc), a);
    const mxdnn::mx_matmul matmul(pd);
    const memory weights(pd.weights_desc(), eng), src(memory::desc({2, 4, 64}, dt::f8_e4m3, tag::abc), eng),
            dst(memory::desc({2, 4, 16}, dt::f32, tag::abc), eng);
    for (const memory &m : {weights, src}) std::memset(m.get_data_handle(), 0, m.get_desc().get_size());
    std::vector<uint8_t> bytes(2048, 127);
    const auto execute = [&](mxdnn_dim_t stride) {
        const memory scales(memory::desc({2, 512}, dt::e8m0, memory::dims{stride, 1}), eng, bytes.data());
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, weights.get()},
                {MXDNN_ARG_DST, dst.get()}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales.get()}};
        return mxdnn_primitive_execute(matmul.get(), str.get(), 4, args);
    };
    EXPECT_OK(execute(512));
    EXPECT_REFUSED(mxdnn_invalid_arguments, execute(600),
            "stride 0 of the scales of src is 600; in the 128x4 order it is 512");
}
