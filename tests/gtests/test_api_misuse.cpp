// SPDX-License-Identifier: Apache-2.0
// A caller's mistakes in everything but executions: each is refused with its status and a sentence
// that has the offending value in it, and writes nothing.
#include <climits>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "mxdnn/mxdnn_threadpool.hpp"
#include "test_api_util.hpp"

using namespace api_test;

namespace {

// Valid objects to be wrong beside.
struct Misuse : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    memory::desc md{{4, 64}, dt::f32, tag::ab};
    memory mem{md, eng};
    mxdnn::primitive_attr attr;
    mxdnn::post_ops po;
    mxdnn::mx_reorder::primitive_desc pd{eng, md, eng, md};
    mxdnn::mx_reorder prim{pd};
    std::vector<uint8_t> blob = md.get_blob();

    // Where results would go; refused calls leave the poison in place.
    mxdnn_engine_t out_engine = poison<mxdnn_engine_t>();
    mxdnn_stream_t out_stream = poison<mxdnn_stream_t>();
    mxdnn_memory_desc_t out_md = poison<mxdnn_memory_desc_t>();
    mxdnn_memory_t out_mem = poison<mxdnn_memory_t>();
    mxdnn_primitive_attr_t out_attr = poison<mxdnn_primitive_attr_t>();
    mxdnn_post_ops_t out_po = poison<mxdnn_post_ops_t>();
    mxdnn_primitive_desc_t out_pd = poison<mxdnn_primitive_desc_t>();
    mxdnn_primitive_t out_prim = poison<mxdnn_primitive_t>();

    void TearDown() override {
        EXPECT_EQ(out_engine, poison<mxdnn_engine_t>());
        EXPECT_EQ(out_stream, poison<mxdnn_stream_t>());
        EXPECT_EQ(out_md, poison<mxdnn_memory_desc_t>());
        EXPECT_EQ(out_mem, poison<mxdnn_memory_t>());
        EXPECT_EQ(out_attr, poison<mxdnn_primitive_attr_t>());
        EXPECT_EQ(out_po, poison<mxdnn_post_ops_t>());
        EXPECT_EQ(out_pd, poison<mxdnn_primitive_desc_t>());
        EXPECT_EQ(out_prim, poison<mxdnn_primitive_t>());
    }
};

#define EXPECT_NULL_REFUSED(call, name) EXPECT_REFUSED(mxdnn_invalid_arguments, call, "null", name)

template <typename E>
E bad(int value) {
    return static_cast<E>(value);
}

} // namespace

// ---- Null pointers, function by function ----

TEST_F(Misuse, NullEngineAndStream) {
    mxdnn_engine_kind_t kind;
    const char *target;
    EXPECT_NULL_REFUSED(mxdnn_engine_create(nullptr, mxdnn_cpu, 0), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_create_for_target(nullptr, "cpu:x64:avx2"), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_create_for_target(&out_engine, nullptr), "target");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_kind(nullptr, &kind), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_kind(eng.get(), nullptr), "kind");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_target(nullptr, &target), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_target(eng.get(), nullptr), "target");
    EXPECT_NULL_REFUSED(mxdnn_stream_create(nullptr, eng.get(), mxdnn_stream_default_flags), "stream");
    EXPECT_NULL_REFUSED(mxdnn_stream_create(&out_stream, nullptr, mxdnn_stream_default_flags), "engine");
    EXPECT_NULL_REFUSED(mxdnn_stream_get_engine(nullptr, &out_engine), "stream");
    EXPECT_NULL_REFUSED(mxdnn_stream_get_engine(str.get(), nullptr), "engine");
    EXPECT_NULL_REFUSED(mxdnn_stream_wait(nullptr), "stream");
    int not_a_pool;
    EXPECT_NULL_REFUSED(mxdnn_threadpool_interop_stream_create(nullptr, eng.get(), &not_a_pool), "stream");
    EXPECT_NULL_REFUSED(mxdnn_threadpool_interop_stream_create(&out_stream, nullptr, &not_a_pool), "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_threadpool_interop_stream_create(&out_stream, eng.get(), nullptr), "threadpool");
}

TEST_F(Misuse, NullMemoryDesc) {
    const mxdnn_dims_t dims = {2, 3};
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_strides(nullptr, 2, dims, mxdnn_f32, nullptr), "md");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_with_strides(&out_md, 2, nullptr, mxdnn_f32, nullptr), "dims");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_tag(nullptr, 2, dims, mxdnn_f32, mxdnn_ab), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_tag(&out_md, 2, nullptr, mxdnn_f32, mxdnn_ab), "dims");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_with_grouped_encoding(nullptr, 2, dims, mxdnn_f32, 0, 2, mxdnn_s32),
            "md");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_with_grouped_encoding(&out_md, 2, nullptr, mxdnn_f32, 0, 2, mxdnn_s32),
            "dims");
    size_t size = 7;
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_get_blob(nullptr, nullptr, md.get()), "size");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_get_blob(nullptr, &size, nullptr), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_to_string(nullptr, nullptr, md.get()), "size");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_to_string(nullptr, &size, nullptr), "md");
    EXPECT_EQ(size, 7u);
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_blob(nullptr, blob.data()), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_blob(&out_md, nullptr), "blob");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_sized_blob(nullptr, blob.data(), blob.size()), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_sized_blob(&out_md, nullptr, 100), "blob");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_create_with_sized_blob(&out_md, nullptr, 0), "blob");
    mxdnn_blob_verdict_t verdict;
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_check_blob(nullptr, blob.data(), blob.size(), &verdict), "engine");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_check_blob(eng.get(), nullptr, 10, &verdict), "blob");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_check_blob(eng.get(), blob.data(), blob.size(), nullptr), "verdict");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_set_annotation(nullptr, mxdnn_f32, ""), "md");
    int n;
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_query(nullptr, mxdnn_query_ndims_s32, &n), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_query(md.get(), mxdnn_query_ndims_s32, nullptr), "result");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_clone(nullptr, md.get()), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_desc_clone(&out_md, nullptr), "existing");
    EXPECT_EQ(mxdnn_memory_desc_get_size(nullptr), 0u);
    EXPECT_EQ(mxdnn_memory_desc_equal(nullptr, md.get()), 0);
    EXPECT_EQ(mxdnn_memory_desc_equal(md.get(), nullptr), 0);
    uint64_t sum;
    const memory::desc packed = mxfp4_matmul(eng, 1, 64, 16).weights_desc();
    EXPECT_NULL_REFUSED(mxdnn_packed_checksum(nullptr, &sum, &sum), "md");
    EXPECT_NULL_REFUSED(mxdnn_packed_checksum(packed.get(), nullptr, &sum), "packed");
    EXPECT_NULL_REFUSED(mxdnn_packed_checksum(packed.get(), &sum, nullptr), "checksum");
}

TEST_F(Misuse, NullMemory) {
    const_mxdnn_memory_desc_t c_md;
    void *p;
    EXPECT_NULL_REFUSED(mxdnn_memory_create(nullptr, md.get(), eng.get(), MXDNN_MEMORY_NONE), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_create(&out_mem, nullptr, eng.get(), MXDNN_MEMORY_NONE), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_create(&out_mem, md.get(), nullptr, MXDNN_MEMORY_NONE), "engine");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_memory_desc(nullptr, &c_md), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_memory_desc(mem.get(), nullptr), "md");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_engine(nullptr, &out_engine), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_engine(mem.get(), nullptr), "engine");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_data_handle(nullptr, &p), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_get_data_handle(mem.get(), nullptr), "handle");
    EXPECT_NULL_REFUSED(mxdnn_memory_set_data_handle(nullptr, &p), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_map_data(nullptr, &p), "memory");
    EXPECT_NULL_REFUSED(mxdnn_memory_map_data(mem.get(), nullptr), "mapped");
    EXPECT_NULL_REFUSED(mxdnn_memory_unmap_data(nullptr, nullptr), "memory");
}

TEST_F(Misuse, NullAttributes) {
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_create(nullptr), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_clone(nullptr, attr.get()), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_clone(&out_attr, nullptr), "existing");
    mxdnn_fpmath_mode_t fp;
    mxdnn_accumulation_mode_t acc;
    mxdnn_scratchpad_mode_t sp;
    int n;
    const_mxdnn_post_ops_t c_po;
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_fpmath_mode(nullptr, mxdnn_fpmath_mode_bf16, 0), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_fpmath_mode(nullptr, &fp, &n), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_fpmath_mode(attr.get(), nullptr, &n), "mode");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_accumulation_mode(nullptr, mxdnn_accumulation_mode_any), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_accumulation_mode(nullptr, &acc), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_accumulation_mode(attr.get(), nullptr), "mode");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_deterministic(nullptr, 1), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_deterministic(nullptr, &n), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_deterministic(attr.get(), nullptr), "value");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_scratchpad_mode(nullptr, mxdnn_scratchpad_mode_user), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scratchpad_mode(nullptr, &sp), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scratchpad_mode(attr.get(), nullptr), "mode");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_scales(nullptr, MXDNN_ARG_SRC, 0, 0, nullptr, mxdnn_f32, 0,
                                mxdnn_quantization_mode_static_sazp),
            "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_scales(attr.get(), MXDNN_ARG_SRC, 3, 2, nullptr, mxdnn_e8m0,
                                0, mxdnn_quantization_mode_static_sazp),
            "2");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_zero_points(nullptr, MXDNN_ARG_SRC, 0, 0, nullptr, mxdnn_u8), "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_zero_points(attr.get(), MXDNN_ARG_SRC, 3, 2, nullptr, mxdnn_u8), "2");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_scale_rounding(nullptr, MXDNN_ARG_DST, mxdnn_scale_rounding_even),
            "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_scales_layout(nullptr, MXDNN_ARG_DST, mxdnn_scales_swizzle_128x4),
            "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_global_scale(nullptr, MXDNN_ARG_DST, mxdnn_quantization_mode_dynamic_fp),
            "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_element_packing(nullptr, MXDNN_ARG_DST, mxdnn_element_packing_dense),
            "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_row_grouping(nullptr, mxdnn_row_grouping_ends), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_topk_weights(nullptr, mxdnn_topk_weights_output), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_expert_range(nullptr, 0, 0), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_max_rows_hint(nullptr, 1), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_post_ops(nullptr, po.get()), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_post_ops(nullptr, &c_po), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_post_ops(attr.get(), nullptr), "post_ops");
}

TEST_F(Misuse, NullPostOps) {
    EXPECT_NULL_REFUSED(mxdnn_post_ops_create(nullptr), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_clone(nullptr, po.get()), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_clone(&out_po, nullptr), "existing");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_append_sum(nullptr, 1, 0, mxdnn_f32), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_append_eltwise(nullptr, mxdnn_eltwise_relu, 0, 0), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_append_binary(nullptr, mxdnn_binary_add, md.get()), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_append_binary(po.get(), mxdnn_binary_add, nullptr), "src1_desc");
    EXPECT_NULL_REFUSED(
            mxdnn_post_ops_append_gated(nullptr, mxdnn_gated_silu, 1, 0, mxdnn_gated_halves), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_get_params_sum(nullptr, 0, nullptr, nullptr, nullptr), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_get_params_eltwise(nullptr, 0, nullptr, nullptr, nullptr), "post_ops");
    EXPECT_NULL_REFUSED(mxdnn_post_ops_get_params_binary(nullptr, 0, nullptr, nullptr), "post_ops");
    EXPECT_NULL_REFUSED(
            mxdnn_post_ops_get_params_gated(nullptr, 0, nullptr, nullptr, nullptr, nullptr), "post_ops");
    EXPECT_EQ(mxdnn_post_ops_len(nullptr), 0);
    EXPECT_EQ(mxdnn_post_ops_get_kind(nullptr, 0), mxdnn_undefined_primitive);
    EXPECT_EQ(mxdnn_post_ops_get_kind(po.get(), 0), mxdnn_undefined_primitive);
    EXPECT_EQ(mxdnn_post_ops_get_kind(po.get(), -1), mxdnn_undefined_primitive);
}

TEST_F(Misuse, NullPrimitives) {
    const mxdnn_memory_desc_t d = md.get();
    const mxdnn_engine_t e = eng.get();
    EXPECT_NULL_REFUSED(mxdnn_mx_reorder_primitive_desc_create(nullptr, d, e, d, e, nullptr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_mx_reorder_primitive_desc_create(&out_pd, nullptr, e, d, e, nullptr), "src_md");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_reorder_primitive_desc_create(&out_pd, d, nullptr, d, e, nullptr), "src_engine");
    EXPECT_NULL_REFUSED(mxdnn_mx_reorder_primitive_desc_create(&out_pd, d, e, nullptr, e, nullptr), "dst_md");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_reorder_primitive_desc_create(&out_pd, d, e, d, nullptr, nullptr), "dst_engine");
    EXPECT_NULL_REFUSED(mxdnn_mx_matmul_primitive_desc_create(nullptr, e, d, d, d, d, nullptr), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_matmul_primitive_desc_create(&out_pd, nullptr, d, d, d, d, nullptr), "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_matmul_primitive_desc_create(&out_pd, e, nullptr, d, d, d, nullptr), "src_md");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_matmul_primitive_desc_create(&out_pd, e, d, nullptr, d, d, nullptr), "weights_md");
    EXPECT_NULL_REFUSED(
            mxdnn_mx_matmul_primitive_desc_create(&out_pd, e, d, d, d, nullptr, nullptr), "dst_md");
    EXPECT_NULL_REFUSED(mxdnn_grouped_matmul_primitive_desc_create(nullptr, e, d, d, d, d, nullptr), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_primitive_desc_create(&out_pd, nullptr, d, d, d, d, nullptr), "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_primitive_desc_create(&out_pd, e, nullptr, d, d, d, nullptr), "src_md");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_primitive_desc_create(&out_pd, e, d, nullptr, d, d, nullptr), "weights_md");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_primitive_desc_create(&out_pd, e, d, d, d, nullptr, nullptr), "dst_md");
    const mxdnn_alg_kind_t softmax = mxdnn_route_softmax_topk;
    EXPECT_NULL_REFUSED(
            mxdnn_moe_route_primitive_desc_create(nullptr, e, d, 2, softmax, 0, 1, 1, nullptr), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_moe_route_primitive_desc_create(&out_pd, nullptr, d, 2, softmax, 0, 1, 1, nullptr),
            "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_moe_route_primitive_desc_create(&out_pd, e, nullptr, 2, softmax, 0, 1, 1, nullptr),
            "logits_md");
    EXPECT_NULL_REFUSED(mxdnn_moe_permute_primitive_desc_create(nullptr, e, d, d, 1, 4, 16, nullptr), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_moe_permute_primitive_desc_create(&out_pd, nullptr, d, d, 1, 4, 16, nullptr), "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_moe_permute_primitive_desc_create(&out_pd, e, nullptr, d, 1, 4, 16, nullptr), "src_md");
    EXPECT_NULL_REFUSED(
            mxdnn_moe_permute_primitive_desc_create(&out_pd, e, d, nullptr, 1, 4, 16, nullptr), "dst_md");
    EXPECT_NULL_REFUSED(mxdnn_moe_unpermute_primitive_desc_create(nullptr, e, d, d, nullptr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_moe_unpermute_primitive_desc_create(&out_pd, nullptr, d, d, nullptr), "engine");
    EXPECT_NULL_REFUSED(mxdnn_moe_unpermute_primitive_desc_create(&out_pd, e, nullptr, d, nullptr), "src_md");
    EXPECT_NULL_REFUSED(mxdnn_moe_unpermute_primitive_desc_create(&out_pd, e, d, nullptr, nullptr), "dst_md");

    const_mxdnn_primitive_attr_t c_attr;
    const_mxdnn_primitive_desc_t c_pd;
    int n;
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_next_impl(nullptr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_clone(nullptr, pd.get()), "pd");
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_clone(&out_pd, nullptr), "existing");
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_get_attr(nullptr, &c_attr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_get_attr(pd.get(), nullptr), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_desc_query(nullptr, mxdnn_query_num_of_inputs_s32, 0, &n), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_desc_query(pd.get(), mxdnn_query_num_of_inputs_s32, 0, nullptr), "result");
    EXPECT_EQ(mxdnn_primitive_desc_query_md(nullptr, mxdnn_query_src_md, 0), nullptr);
    EXPECT_NULL_REFUSED(mxdnn_primitive_create(nullptr, pd.get()), "primitive");
    EXPECT_NULL_REFUSED(mxdnn_primitive_create(&out_prim, nullptr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_primitive_get_primitive_desc(nullptr, &c_pd), "primitive");
    EXPECT_NULL_REFUSED(mxdnn_primitive_get_primitive_desc(prim.get(), nullptr), "pd");
    EXPECT_NULL_REFUSED(mxdnn_primitive_execute(nullptr, str.get(), 0, nullptr), "primitive");
    EXPECT_NULL_REFUSED(mxdnn_primitive_execute(prim.get(), nullptr, 0, nullptr), "stream");
    EXPECT_NULL_REFUSED(mxdnn_primitive_execute(prim.get(), str.get(), 2, nullptr), "2");
}

TEST_F(Misuse, NullService) {
    EXPECT_NULL_REFUSED(mxdnn_set_verbose(nullptr), "words");
    EXPECT_NULL_REFUSED(mxdnn_get_primitive_cache_capacity(nullptr), "capacity");
}

TEST_F(Misuse, DestroyingNothingIsFine) {
    EXPECT_OK(mxdnn_engine_destroy(nullptr));
    EXPECT_OK(mxdnn_stream_destroy(nullptr));
    EXPECT_OK(mxdnn_memory_desc_destroy(nullptr));
    EXPECT_OK(mxdnn_memory_destroy(nullptr));
    EXPECT_OK(mxdnn_primitive_attr_destroy(nullptr));
    EXPECT_OK(mxdnn_post_ops_destroy(nullptr));
    EXPECT_OK(mxdnn_primitive_desc_destroy(nullptr));
    EXPECT_OK(mxdnn_primitive_destroy(nullptr));
}

// A function that is added to the header without its misuse here makes this fail.
TEST_F(Misuse, EveryFunctionIsHere) {
    const auto read = [](const std::string &path) {
        std::ifstream f(path);
        std::stringstream s;
        s << f.rdbuf();
        EXPECT_GT(s.str().size(), 1000u) << path;
        return s.str();
    };
    const std::string dir = MXDNN_TEST_DATA, header = read(dir + "/../../include/mxdnn/mxdnn.h");
    const std::string here = read(dir + "/test_api_misuse.cpp");
    // These cannot be misused.
    const std::set<std::string> harmless = {"mxdnn_version", "mxdnn_status2str", "mxdnn_get_last_error",
            "mxdnn_get_effective_cpu_isa", "mxdnn_get_max_concurrency", "mxdnn_set_jit_dump"};
    const std::regex declaration("MXDNN_API \\*?(mxdnn_[a-z0-9_]+)\\(");
    int n = 0;
    for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it, n++) {
        const std::string name = (*it)[1];
        EXPECT_TRUE(harmless.count(name) || here.find(name + "(") != std::string::npos) << name;
    }
    EXPECT_GT(n, 70);
}

// ---- Wrong values ----

TEST_F(Misuse, Engines) {
    for (int kind : {0, 3, 77, -1})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_engine_create(&out_engine, bad<mxdnn_engine_kind_t>(kind), 0), std::to_string(kind));
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create(&out_engine, mxdnn_cpu, 1), "1");
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create(&out_engine, mxdnn_cpu, SIZE_MAX),
            std::to_string(SIZE_MAX));
    EXPECT_EQ(mxdnn_engine_get_count(bad<mxdnn_engine_kind_t>(3)), 0u);
    const size_t gpus = mxdnn_engine_get_count(mxdnn_cuda);
    EXPECT_REFUSED(gpus ? mxdnn_invalid_arguments : mxdnn_device_unavailable,
            mxdnn_engine_create(&out_engine, mxdnn_cuda, gpus), "cuda", std::to_string(gpus));
    for (const char *target : {"", "cpu", "cpu:x64", "cpu:x64:avx3", "CPU:X64:AVX2", "cpu:x64:avx2 ",
                 "cuda:sm_75", "cuda", "cuda:sm_", "%s%n"})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out_engine, target),
                std::string("'") + target + "'", "cpu:x64:avx2", "cuda:sm_90");
    const std::string longer(100000, 'x');
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out_engine, longer.c_str()), "xxxxxxxx");
}

TEST_F(Misuse, Streams) {
    for (unsigned flags : {0u, 2u, 3u, 0x80000001u}) {
        std::ostringstream hex;
        hex << std::hex << flags;
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_stream_create(&out_stream, eng.get(), flags), hex.str());
    }
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    int not_a_pool;
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_threadpool_interop_stream_create(&out_stream, cuda.get(), &not_a_pool), "cuda:sm_90");
}

TEST_F(Misuse, Dims) {
    const mxdnn_dims_t dims = {2, 3, 4, 5};
    for (int ndims : {0, -1, 13, INT_MAX, INT_MIN}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_strides(&out_md, ndims, dims, mxdnn_f32, nullptr),
                std::to_string(ndims));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_tag(&out_md, ndims, dims, mxdnn_f32, mxdnn_format_tag_any),
                std::to_string(ndims));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_grouped_encoding(
                        &out_md, ndims, dims, mxdnn_f32, 0, 2, mxdnn_s32),
                std::to_string(ndims));
    }
    for (mxdnn_dim_t d : {mxdnn_dim_t(-1), mxdnn_dim_t(-4096), MXDNN_RUNTIME_DIM_VAL + 1, INT64_MAX,
                 (mxdnn_dim_t(1) << 40) + 1})
        for (int where : {0, 1}) {
            mxdnn_dims_t wrong = {2, 3};
            wrong[where] = d;
            for (mxdnn_data_type_t t : {mxdnn_f32, mxdnn_f4_e2m1, mxdnn_f6_e2m3}) {
                EXPECT_REFUSED(mxdnn_invalid_arguments,
                        mxdnn_memory_desc_create_with_strides(&out_md, 2, wrong, t, nullptr),
                        std::to_string(d));
                EXPECT_REFUSED(mxdnn_invalid_arguments,
                        mxdnn_memory_desc_create_with_tag(&out_md, 2, wrong, t, mxdnn_ba), std::to_string(d));
                EXPECT_REFUSED(mxdnn_invalid_arguments,
                        mxdnn_memory_desc_create_with_tag(&out_md, 2, wrong, t, mxdnn_format_tag_any),
                        std::to_string(d));
            }
        }
    // Each dimension possible, their product not.
    for (mxdnn_dim_t d : {mxdnn_dim_t(1) << 40, mxdnn_dim_t(1) << 26}) {
        const mxdnn_dims_t huge = {d, d, 2};
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_tag(&out_md, 2, huge, mxdnn_f32, mxdnn_ab), "2^50");
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_tag(&out_md, 3, huge, mxdnn_f4_e2m1, mxdnn_format_tag_any),
                "2^50");
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_strides(&out_md, 2, huge, mxdnn_u8, nullptr), "2^50");
    }
    // An empty dimension does not hide an overflow of the others.
    const mxdnn_dims_t empty = {mxdnn_dim_t(1) << 40, 0, mxdnn_dim_t(1) << 40};
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_desc_create_with_tag(&out_md, 3, empty, mxdnn_f32, mxdnn_abc), "2^50");
}

TEST_F(Misuse, EmptyAndRuntimeDimsAreDefined) {
    for (tag t : {tag::ab, tag::ba, tag::any}) {
        EXPECT_EQ(memory::desc({0, 5}, dt::f32, t).get_size(), 0u);
        EXPECT_EQ(memory::desc({5, 0}, dt::f4_e2m1, t).get_size(), 0u);
        EXPECT_EQ(memory::desc({runtime, 5}, dt::f32, t).get_size(), 0u);
        EXPECT_EQ(memory::desc({runtime, 0}, dt::f32, t).get_size(), 0u);
    }
    EXPECT_EQ(memory::desc({3, 5}, dt::f4_e2m1, tag::ab).get_size(), 9u) << "rows start on a byte";
    EXPECT_EQ(memory::desc({3, 5}, dt::f4_e2m1, tag::ba).get_size(), 10u);
    EXPECT_EQ(memory::desc({3, 5}, dt::f6_e2m3, tag::ab).get_size(), 15u) << "a code per byte";
    EXPECT_NE(memory(memory::desc({0, 5}, dt::f32, tag::ab), eng).get_data_handle(), nullptr);
}

TEST_F(Misuse, TypesAndTags) {
    const mxdnn_dims_t dims = {2, 4, 6};
    for (int t : {0, 7, 8, 15, 0x102, 0x1ff}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_strides(&out_md, 2, dims, bad<mxdnn_data_type_t>(t), nullptr),
                std::to_string(t));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_tag(&out_md, 2, dims, bad<mxdnn_data_type_t>(t), mxdnn_ab),
                std::to_string(t));
    }
    for (int t : {0, 6, 13, 31})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_tag(&out_md, 2, dims, mxdnn_f32, bad<mxdnn_format_tag_t>(t)),
                std::to_string(t));
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_desc_create_with_tag(&out_md, 3, dims, mxdnn_f32, mxdnn_ab), "ab", "3");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_desc_create_with_tag(&out_md, 2, dims, mxdnn_f32, mxdnn_acb), "acb", "2");
}

TEST_F(Misuse, Strides) {
    const mxdnn_dims_t dims = {4, 6};
    struct {
        mxdnn_data_type_t type;
        mxdnn_dims_t strides;
        const char *value;
    } const cases[] = {
            {mxdnn_f32, {-6, 1}, "-6"}, {mxdnn_f32, {6, -1}, "-1"}, {mxdnn_f32, {5, 1}, "5"}, // rows overlap
            {mxdnn_f32, {1, 3}, "3"}, // columns overlap
            {mxdnn_f32, {1, 1}, "1"}, {mxdnn_f32, {INT64_MAX, 1}, "9223372036854775807"},
            {mxdnn_f32, {int64_t(1) << 50, 1}, "2^50"}, {mxdnn_f4_e2m1, {7, 1}, "7"}, // rows share a byte
            {mxdnn_u4, {1, 5}, "5"}, {mxdnn_s4, {12, 2}, "2"},                        // no neighbours
    };
    for (const auto &c : cases)
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_create_with_strides(&out_md, 2, dims, c.type, c.strides), c.value);
    const mxdnn_dims_t repeated = {0, 1}, padded = {100, 1};
    mxdnn_memory_desc_t ok = nullptr;
    EXPECT_OK(mxdnn_memory_desc_create_with_strides(&ok, 2, dims, mxdnn_f32, repeated));
    EXPECT_EQ(mxdnn_memory_desc_get_size(ok), 24u);
    mxdnn_memory_desc_destroy(ok);
    EXPECT_OK(mxdnn_memory_desc_create_with_strides(&ok, 2, dims, mxdnn_f4_e2m1, padded));
    EXPECT_EQ(mxdnn_memory_desc_get_size(ok), 153u);
    mxdnn_memory_desc_destroy(ok);
}

TEST_F(Misuse, Grouped) {
    const mxdnn_dims_t dims = {100, 64};
    const auto make = [&](int ndims, int variable_dim, mxdnn_dim_t groups, mxdnn_data_type_t offsets) {
        return mxdnn_memory_desc_create_with_grouped_encoding(
                &out_md, ndims, dims, mxdnn_bf16, variable_dim, groups, offsets);
    };
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(1, 0, 4, mxdnn_s32), "1");
    EXPECT_REFUSED(mxdnn_unimplemented, make(2, 1, 4, mxdnn_s32), "1");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, 2, 4, mxdnn_s32), "2");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, -1, 4, mxdnn_s32), "-1");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, 0, 0, mxdnn_s32), "0");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, 0, -9, mxdnn_s32), "-9");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, 0, INT64_MAX, mxdnn_s32), "9223372036854775807");
    EXPECT_REFUSED(mxdnn_invalid_arguments, make(2, 0, 4, mxdnn_u8), "u8");
}

TEST_F(Misuse, Blobs) {
    // Two calls; the second one's size is the capacity.
    size_t size = blob.size() - 1;
    std::vector<uint8_t> to(blob.size() + 1, 0xcc);
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_get_blob(to.data(), &size, md.get()),
            std::to_string(blob.size()), std::to_string(blob.size() - 1));
    EXPECT_EQ(to, std::vector<uint8_t>(blob.size() + 1, 0xcc));
    size = to.size();
    EXPECT_OK(mxdnn_memory_desc_get_blob(to.data(), &size, md.get()));
    EXPECT_EQ(size, blob.size());
    EXPECT_EQ(to.back(), 0xcc);
    const memory::desc any({4, 6}, dt::f32, tag::any);
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_get_blob(nullptr, &size, any.get()), "any");

    for (size_t n = 0; n < blob.size(); n++)
        EXPECT_REFUSED(mxdnn_corrupt_blob, mxdnn_memory_desc_create_with_sized_blob(&out_md, blob.data(), n),
                std::to_string(n));
    std::vector<uint8_t> other = blob;
    other.push_back(0);
    EXPECT_REFUSED(mxdnn_corrupt_blob,
            mxdnn_memory_desc_create_with_sized_blob(&out_md, other.data(), other.size()),
            std::to_string(other.size()));
    const std::vector<uint8_t> foreign(4096, 'x');
    EXPECT_REFUSED(mxdnn_corrupt_blob, mxdnn_memory_desc_create_with_blob(&out_md, foreign.data()));
    EXPECT_REFUSED(mxdnn_corrupt_blob,
            mxdnn_memory_desc_create_with_sized_blob(&out_md, foreign.data(), foreign.size()));
    // Bad bytes are a verdict.
    mxdnn_blob_verdict_t v = mxdnn_blob_native;
    EXPECT_OK(mxdnn_memory_desc_check_blob(eng.get(), foreign.data(), foreign.size(), &v));
    EXPECT_EQ(v, mxdnn_blob_corrupt);
    v = mxdnn_blob_native;
    EXPECT_OK(mxdnn_memory_desc_check_blob(eng.get(), foreign.data(), 0, &v));
    EXPECT_EQ(v, mxdnn_blob_corrupt);
}

TEST_F(Misuse, Annotations) {
    memory::desc d = md.clone();
    const std::string longest(1024, 'a'), longer(1025, 'a');
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_desc_set_annotation(d.get(), mxdnn_f32, longer.c_str()), "1025", "1024");
    EXPECT_REFUSED(mxdnn_invalid_data_type,
            mxdnn_memory_desc_set_annotation(d.get(), bad<mxdnn_data_type_t>(7), "a"), "7");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_memory_desc_set_annotation(d.get(), mxdnn_f32, "a\xff"), "UTF-8");
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_set_annotation(d.get(), mxdnn_f32, "\xe2\x82"),
            "UTF-8");
    EXPECT_EQ(d.get_annotation_data_type(), dt::undef) << "refused calls change nothing";
    EXPECT_EQ(d.get_annotation_recipe(), "");
    EXPECT_OK(mxdnn_memory_desc_set_annotation(d.get(), mxdnn_bf16, longest.c_str()));
    EXPECT_EQ(memory::desc(d.get_blob()).get_annotation_recipe(), longest);
}

TEST_F(Misuse, DescriptorQueries) {
    int64_t wide = 0x7777;
    for (int what : {0, 1, 8, 128, 129, 999})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_memory_desc_query(md.get(), bad<mxdnn_query_t>(what), &wide), std::to_string(what));
    for (mxdnn_query_t what : {mxdnn_query_expert_stride_s64, mxdnn_query_scale_data_type,
                 mxdnn_query_block_size_s64, mxdnn_query_layout_id_s32, mxdnn_query_layout_version_s32,
                 mxdnn_query_alignment_s64, mxdnn_query_target_str})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_query(md.get(), what, &wide),
                std::to_string(int(what)), "4x64");
    const memory::desc any({4, 6}, dt::f32, tag::any), grouped = memory::desc::grouped({4, 6}, dt::f32, 0, 2);
    const memory::desc packed = mxfp4_matmul(eng, 1, 64, 16).weights_desc();
    for (const memory::desc &d : {any, grouped, packed})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_query(d.get(), mxdnn_query_strides, &wide),
                std::to_string(int(mxdnn_query_strides)));
    EXPECT_EQ(wide, 0x7777);

    size_t size = 3;
    char text[4] = "???";
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_desc_to_string(text, &size, md.get()), "3");
    EXPECT_STREQ(text, "???");
    uint64_t sum = 0;
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_packed_checksum(md.get(), &sum, &sum), "4x64");
}

TEST_F(Misuse, Memory) {
    const memory::desc any({4, 6}, dt::f32, tag::any), rows({runtime, 6}, dt::f32, tag::ab);
    const memory::desc huge({int64_t(1) << 40, 256}, dt::f32, tag::ab);
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_create(&out_mem, any.get(), eng.get(), MXDNN_MEMORY_NONE), "any");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_memory_create(&out_mem, rows.get(), eng.get(), MXDNN_MEMORY_ALLOCATE), rows.to_string());
    EXPECT_REFUSED(mxdnn_out_of_memory,
            mxdnn_memory_create(&out_mem, huge.get(), eng.get(), MXDNN_MEMORY_ALLOCATE),
            std::to_string(int64_t(1) << 50));
    void *before = mem.get_data_handle();
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_memory_set_data_handle(mem.get(), MXDNN_MEMORY_ALLOCATE),
            "ALLOCATE");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_memory_unmap_data(mem.get(), static_cast<char *>(before) + 1));
    EXPECT_EQ(mem.get_data_handle(), before);
}

TEST_F(Misuse, AttributeEnums) {
    const mxdnn_primitive_attr_t a = attr.get();
    for (int v : {-1, 6, 100}) {
        const std::string s = std::to_string(v);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_fpmath_mode(a, bad<mxdnn_fpmath_mode_t>(v), 0), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_accumulation_mode(a, bad<mxdnn_accumulation_mode_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scratchpad_mode(a, bad<mxdnn_scratchpad_mode_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scale_rounding(a, MXDNN_ARG_DST, bad<mxdnn_scale_rounding_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales_layout(a, MXDNN_ARG_DST, bad<mxdnn_scales_layout_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_global_scale(a, MXDNN_ARG_DST, bad<mxdnn_quantization_mode_t>(v)),
                s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_element_packing(a, MXDNN_ARG_DST, bad<mxdnn_element_packing_t>(v)),
                s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_row_grouping(a, bad<mxdnn_row_grouping_t>(v)), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_topk_weights(a, bad<mxdnn_topk_weights_t>(v)), s);
        const mxdnn_dims_t g = {32, 1};
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(
                        a, MXDNN_ARG_DST, 3, 2, g, mxdnn_e8m0, 0, bad<mxdnn_quantization_mode_t>(v)),
                s);
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_attr_set_global_scale(a, MXDNN_ARG_DST, mxdnn_quantization_mode_dynamic_mx), "2");
    for (mxdnn_dim_t rows : {mxdnn_dim_t(-1), MXDNN_RUNTIME_DIM_VAL, INT64_MAX})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_set_max_rows_hint(a, rows),
                std::to_string(rows));
    const mxdnn_dim_t ranges[][2] = {{-1, 8}, {9, 8}, {0, -1}, {0, mxdnn_dim_t(1) << 31}, {1, 0}};
    for (const auto &r : ranges)
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_primitive_attr_set_expert_range(a, r[0], r[1]),
                std::to_string(r[0]), std::to_string(r[1]));
    EXPECT_EQ(attr.get_fpmath_mode(), mxdnn::fpmath_mode::strict) << "refused calls change nothing";
    EXPECT_EQ(attr.get_accumulation_mode(), mxdnn::accumulation_mode::strict);
    EXPECT_EQ(attr.get_scratchpad_mode(), mxdnn::scratchpad_mode::library);
}

TEST_F(Misuse, AttributeArguments) {
    const mxdnn_primitive_attr_t a = attr.get();
    const mxdnn_dims_t g = {32, 1};
    const mxdnn_quantization_mode_t mode = mxdnn_quantization_mode_static_sazp;
    for (int arg : {0, -1, 2, MXDNN_ARG_BIAS, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, INT_MAX}) {
        const std::string s = std::to_string(arg);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, arg, 3, 2, g, mxdnn_e8m0, 0, mode), s);
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_primitive_attr_set_zero_points(a, arg, 3, 2, g, mxdnn_u8), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scale_rounding(a, arg, mxdnn_scale_rounding_floor), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales_layout(a, arg, mxdnn_scales_swizzle_128x4), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_global_scale(a, arg, mxdnn_quantization_mode_static_sazp), s);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_element_packing(a, arg, mxdnn_element_packing_dense), s);
    }
    for (int mask : {-1, 1 << 12, INT_MAX, INT_MIN}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, mask, 2, g, mxdnn_e8m0, 0, mode),
                std::to_string(mask));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, mask, 2, g, mxdnn_u8),
                std::to_string(mask));
    }
    for (int ndims : {-1, 13, INT_MAX})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 3, ndims, g, mxdnn_e8m0, 0, mode),
                std::to_string(ndims));
    struct {
        mxdnn_dims_t groups;
        int ndims;
        const char *value;
    } const groups[] = {{{0, 1}, 2, "0"}, {{-32, 1}, 2, "-32"}, {{MXDNN_RUNTIME_DIM_VAL, 1}, 2, "-92233"},
            {{32, 16}, 2, "32x16"}, {{2, 32, 1}, 3, "2"}};
    for (const auto &c : groups) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 7, c.ndims, c.groups, mxdnn_e8m0, 0, mode),
                c.value);
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, 7, c.ndims, c.groups, mxdnn_u8),
                c.value);
    }
    struct {
        mxdnn_data_type_t type;
        const char *value;
    } const no_scales[] = {{mxdnn_s32, "s32"}, {mxdnn_f4_e2m1, "f4_e2m1"}, {mxdnn_u8, "u8"},
            {mxdnn_f8_e5m2, "f8_e5m2"}, {mxdnn_data_type_undef, "undef"},
            {bad<mxdnn_data_type_t>(0x1ff), "511"}};
    for (const auto &c : no_scales)
        EXPECT_REFUSED(mxdnn_invalid_data_type,
                mxdnn_primitive_attr_set_scales(a, MXDNN_ARG_SRC, 3, 2, g, c.type, 0, mode), c.value);
    for (mxdnn_data_type_t t : {mxdnn_s32, mxdnn_e8m0, mxdnn_u4, mxdnn_data_type_undef})
        EXPECT_REFUSED(mxdnn_invalid_data_type,
                mxdnn_primitive_attr_set_zero_points(a, MXDNN_ARG_SRC, 3, 2, g, t), "zero points");
}

TEST_F(Misuse, PostOps) {
    for (int alg :
            {0, 0x22, 0x1fff4, int(mxdnn_binary_add), int(mxdnn_gated_silu), int(mxdnn_route_sigmoid)}) {
        std::ostringstream hex;
        hex << std::hex << alg;
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_append_eltwise(po.get(), bad<mxdnn_alg_kind_t>(alg), 0, 0), hex.str(), "relu");
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_binary(po.get(), mxdnn_eltwise_relu, md.get()), "20", "add");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_eltwise_swish, 1, 0, mxdnn_gated_halves), "2c",
            "silu");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_silu, 1, 0, bad<mxdnn_gated_layout_t>(2)), "2");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_swiglu, NAN, 7, mxdnn_gated_halves), "nan");
    const memory::desc any({1, 64}, dt::f32, tag::any), ints({1, 64}, dt::s32, tag::ab);
    for (const memory::desc &d : {any, ints})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_append_binary(po.get(), mxdnn_binary_mul, d.get()), d.to_string());
    for (mxdnn_data_type_t t : {mxdnn_s8, mxdnn_s32, mxdnn_f4_e2m1})
        EXPECT_REFUSED(mxdnn_invalid_data_type, mxdnn_post_ops_append_sum(po.get(), 1, 0, t),
                t == mxdnn_s8    ? "s8"
                : t == mxdnn_s32 ? "s32"
                                 : "f4_e2m1");
    EXPECT_EQ(po.len(), 0) << "refused calls append nothing";

    po.append_sum();
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(po.get(), mxdnn_gated_silu, 1, 0, mxdnn_gated_halves), "sum");
    mxdnn::post_ops two;
    two.append_gated(mxdnn::algorithm::gated_silu, 1, 0, mxdnn::gated_layout::halves);
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_append_gated(two.get(), mxdnn_gated_silu, 1, 0, mxdnn_gated_halves), "one");

    float f = 99;
    mxdnn_alg_kind_t alg = mxdnn_alg_kind_undef;
    for (int index : {-1, 1, INT_MAX}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_sum(po.get(), index, &f, nullptr, nullptr), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_eltwise(po.get(), index, &alg, &f, &f), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_binary(po.get(), index, &alg, nullptr), std::to_string(index));
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_post_ops_get_params_gated(po.get(), index, &alg, &f, &f, nullptr),
                std::to_string(index));
    }
    // A sum is none of the others.
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_eltwise(po.get(), 0, &alg, &f, &f), "0");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_binary(po.get(), 0, &alg, nullptr), "0");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_post_ops_get_params_gated(po.get(), 0, &alg, &f, &f, nullptr), "0");
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_post_ops_get_params_sum(two.get(), 0, &f, nullptr, nullptr), "0");
    EXPECT_EQ(f, 99.f);

    // The list ends somewhere, with a sentence, and stays as it was.
    mxdnn_status_t st = mxdnn_success;
    int n = 0;
    while (n < 1000
            && (st = mxdnn_post_ops_append_eltwise(two.get(), mxdnn_eltwise_relu, 0, 0)) == mxdnn_success)
        n++;
    EXPECT_TRUE(refused(st, mxdnn_out_of_memory, {std::to_string(two.len())}));
    EXPECT_GE(two.len(), 31);
    EXPECT_EQ(two.len(), n + 1);
}

TEST_F(Misuse, PrimitiveDescQueries) {
    int64_t wide = 0x7777;
    for (int what : {0, 14, 128, 256, 999})
        EXPECT_REFUSED(mxdnn_invalid_arguments,
                mxdnn_primitive_desc_query(pd.get(), bad<mxdnn_query_t>(what), 0, &wide),
                std::to_string(what));
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(pd.get(), mxdnn_query_src_md, 5, &wide), "129", "5");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(pd.get(), mxdnn_query_weights_md, 0, &wide), "131", "reorder");
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_primitive_desc_query(
                    mxfp4_matmul(eng, 1, 32, 16).get(), mxdnn_query_reorder_src_engine, 0, &wide),
            "mx_matmul");
    EXPECT_EQ(wide, 0x7777);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_src_md, -1), nullptr);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_dims, 0), nullptr);
    EXPECT_EQ(mxdnn_primitive_desc_query_md(pd.get(), mxdnn_query_exec_arg_md, 12345), nullptr);
}

TEST_F(Misuse, Service) {
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_verbose("dispatch,typo"), "typo");
    for (int n : {-1, INT_MIN}) {
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_primitive_cache_capacity(n), std::to_string(n));
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_max_concurrency(n), std::to_string(n));
    }
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_set_max_concurrency(INT_MAX), std::to_string(INT_MAX));
    EXPECT_STREQ(mxdnn_status2str(bad<mxdnn_status_t>(55)), mxdnn_status2str(bad<mxdnn_status_t>(77)));
    // A primitive descriptor exists already.
    EXPECT_REFUSED(
            mxdnn_invalid_arguments, mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_default), "primitive descriptor");
}

// In a process of its own, where no primitive descriptor has been created yet.
TEST(MisuseDeathTest, CpuIsa) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto check = [] {
        plant_error();
        const mxdnn_status_t wrong = mxdnn_set_max_cpu_isa(bad<mxdnn_cpu_isa_t>(0x99));
        const testing::AssertionResult r = refused(wrong, mxdnn_invalid_arguments, {"99", "avx2"});
        if (!r) std::fprintf(stderr, "%s\n", r.message());
        if (mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_avx2) != mxdnn_success) std::exit(2);
        if (mxdnn_get_effective_cpu_isa() > mxdnn_cpu_isa_avx2) std::exit(3);
        mxfp4_matmul(mxdnn::engine(mxdnn::engine::kind::cpu, 0), 1, 32, 16);
        plant_error();
        const mxdnn_status_t late = mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_avx2);
        const testing::AssertionResult l = refused(late, mxdnn_invalid_arguments, {"primitive descriptor"});
        if (!l) std::fprintf(stderr, "%s\n", l.message());
        std::exit(r && l ? 0 : 1);
    };
    EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}
