// SPDX-License-Identifier: Apache-2.0
// Mistakes of callers outside execution. Each is refused with its status and a sentence that names the
// wrong value, and nothing is written. Here: null pointers, function by function.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "misuse_fixture.hpp"
#include "mxdnn/mxdnn_threadpool.hpp"

using namespace api_test;

TEST_F(Misuse, NullEngineAndStream) {
    mxdnn_engine_kind_t kind;
    const char *target;
    EXPECT_NULL_REFUSED(mxdnn_engine_create(nullptr, mxdnn_cpu, 0), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_create_for_target(nullptr, "cpu:x64:avx2"), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_create_for_target(&out_engine, nullptr), "target");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_target_name(0, nullptr), "target");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_kind(nullptr, &kind), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_kind(eng.get(), nullptr), "kind");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_target(nullptr, &target), "engine");
    EXPECT_NULL_REFUSED(mxdnn_engine_get_target(eng.get(), nullptr), "target");
    EXPECT_NULL_REFUSED(mxdnn_stream_create(nullptr, eng.get(), mxdnn_stream_default_flags), "stream");
    EXPECT_NULL_REFUSED(mxdnn_stream_create(&out_stream, nullptr, mxdnn_stream_default_flags), "engine");
    EXPECT_NULL_REFUSED(mxdnn_stream_get_engine(nullptr, &out_engine), "stream");
    EXPECT_NULL_REFUSED(mxdnn_stream_get_engine(str.get(), nullptr), "engine");
    EXPECT_NULL_REFUSED(mxdnn_stream_wait(nullptr), "stream");
    const mxdnn_threadpool_t not_a_pool = {};
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
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_packed(nullptr, eng.get(), 2, dims, mxdnn_f4_e2m1, attr.get()), "md");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_packed(&out_md, nullptr, 2, dims, mxdnn_f4_e2m1, attr.get()), "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_packed(&out_md, eng.get(), 2, nullptr, mxdnn_f4_e2m1, attr.get()),
            "dims");
    EXPECT_NULL_REFUSED(
            mxdnn_memory_desc_create_packed(&out_md, eng.get(), 2, dims, mxdnn_f4_e2m1, nullptr), "attr");
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
    mxdnn_blob_verdict_t verdict;
    // No bytes at all are a truncated blob, not a mistake of the caller.
    EXPECT_REFUSED(
            mxdnn_corrupt_blob, mxdnn_memory_desc_create_with_sized_blob(&out_md, nullptr, 0), "0 bytes");
    EXPECT_EQ(mxdnn_memory_desc_check_blob(eng.get(), nullptr, 0, &verdict), mxdnn_success);
    EXPECT_EQ(verdict, mxdnn_blob_corrupt);
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
    EXPECT_NULL_REFUSED(mxdnn_checksum_create(nullptr, packed.get()), "checksum");
    mxdnn_checksum_t parts = nullptr;
    EXPECT_NULL_REFUSED(mxdnn_checksum_create(&parts, nullptr), "md");
    EXPECT_OK(mxdnn_checksum_create(&parts, packed.get()));
    EXPECT_NULL_REFUSED(mxdnn_checksum_add(nullptr, &sum, 1), "checksum");
    EXPECT_NULL_REFUSED(mxdnn_checksum_add(parts, nullptr, 1), "bytes");
    EXPECT_NULL_REFUSED(mxdnn_checksum_get(nullptr, &sum), "checksum");
    EXPECT_NULL_REFUSED(mxdnn_checksum_get(parts, nullptr), "value");
    EXPECT_OK(mxdnn_checksum_destroy(parts));
    EXPECT_OK(mxdnn_checksum_destroy(nullptr));
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
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_constant_weights(nullptr, 1), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_constant_weights(nullptr, &n), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_constant_weights(attr.get(), nullptr), "value");
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
            mxdnn_primitive_attr_set_zero_points_kind(nullptr, MXDNN_ARG_WEIGHTS, mxdnn_zero_points_minimum),
            "attr");
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
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_set_topk_weights_placement(nullptr, mxdnn_topk_weights_on_output), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_expert_range(nullptr, 0, 0), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_set_max_rows_hint(nullptr, 1), "attr");
    mxdnn_zero_points_kind_t kind;
    mxdnn_scale_rounding_t rounding;
    mxdnn_scales_layout_t layout;
    mxdnn_quantization_mode_t mode;
    mxdnn_element_packing_t packing;
    mxdnn_row_grouping_t grouping;
    mxdnn_topk_weights_placement_t where;
    mxdnn_dim_t rows;
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scales(
                                nullptr, MXDNN_ARG_SRC, nullptr, nullptr, nullptr, nullptr, nullptr),
            "attr");
    EXPECT_OK(mxdnn_primitive_attr_get_scales(
            attr.get(), MXDNN_ARG_SRC, nullptr, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_get_zero_points(nullptr, MXDNN_ARG_SRC, nullptr, nullptr, nullptr, nullptr),
            "attr");
    EXPECT_OK(mxdnn_primitive_attr_get_zero_points(
            attr.get(), MXDNN_ARG_SRC, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_zero_points_kind(nullptr, MXDNN_ARG_WEIGHTS, &kind), "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_get_zero_points_kind(attr.get(), MXDNN_ARG_WEIGHTS, nullptr), "kind");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scale_rounding(nullptr, MXDNN_ARG_DST, &rounding), "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_get_scale_rounding(attr.get(), MXDNN_ARG_DST, nullptr), "rounding");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scales_layout(nullptr, MXDNN_ARG_DST, &layout), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_scales_layout(attr.get(), MXDNN_ARG_DST, nullptr), "layout");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_global_scale(nullptr, MXDNN_ARG_DST, &mode), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_global_scale(attr.get(), MXDNN_ARG_DST, nullptr), "mode");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_element_packing(nullptr, MXDNN_ARG_DST, &packing), "attr");
    EXPECT_NULL_REFUSED(
            mxdnn_primitive_attr_get_element_packing(attr.get(), MXDNN_ARG_DST, nullptr), "packing");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_row_grouping(nullptr, &grouping), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_row_grouping(attr.get(), nullptr), "grouping");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_topk_weights_placement(nullptr, &where), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_topk_weights_placement(attr.get(), nullptr), "where");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_expert_range(nullptr, &rows, &rows), "attr");
    EXPECT_OK(mxdnn_primitive_attr_get_expert_range(attr.get(), nullptr, nullptr));
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_max_rows_hint(nullptr, &rows), "attr");
    EXPECT_NULL_REFUSED(mxdnn_primitive_attr_get_max_rows_hint(attr.get(), nullptr), "rows");
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
    const auto two = [](auto... args) { return mxdnn_mx_reorder_primitive_desc_create_with_dst_1(args...); };
    EXPECT_NULL_REFUSED(two(nullptr, d, e, d, d, e, nullptr), "pd");
    EXPECT_NULL_REFUSED(two(&out_pd, nullptr, e, d, d, e, nullptr), "src_md");
    EXPECT_NULL_REFUSED(two(&out_pd, d, nullptr, d, d, e, nullptr), "src_engine");
    EXPECT_NULL_REFUSED(two(&out_pd, d, e, nullptr, d, e, nullptr), "dst_md");
    EXPECT_NULL_REFUSED(two(&out_pd, d, e, d, nullptr, e, nullptr), "dst_1_md");
    EXPECT_NULL_REFUSED(two(&out_pd, d, e, d, d, nullptr, nullptr), "dst_engine");
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

    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_backward_weights_primitive_desc_create(nullptr, e, d, d, d, nullptr), "pd");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_backward_weights_primitive_desc_create(&out_pd, nullptr, d, d, d, nullptr),
            "engine");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_backward_weights_primitive_desc_create(&out_pd, e, nullptr, d, d, nullptr),
            "src_md");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_backward_weights_primitive_desc_create(&out_pd, e, d, nullptr, d, nullptr),
            "diff_dst_md");
    EXPECT_NULL_REFUSED(
            mxdnn_grouped_matmul_backward_weights_primitive_desc_create(&out_pd, e, d, d, nullptr, nullptr),
            "diff_weights_md");

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

// This fails if a function of the header has no misuse in these files.
TEST_F(Misuse, EveryFunctionIsHere) {
    const auto read = [](const std::string &path) {
        std::ifstream f(path);
        std::stringstream s;
        s << f.rdbuf();
        EXPECT_GT(s.str().size(), 1000u) << path;
        return s.str();
    };
    const std::string dir = MXDNN_TEST_DATA, header = read(dir + "/../../include/mxdnn/mxdnn.h");
    std::string here;
    for (const auto &file : std::filesystem::directory_iterator(dir))
        if (file.path().filename().string().rfind("test_api_misuse_", 0) == 0) here += read(file.path());
    // These cannot be misused.
    const std::set<std::string> harmless = {"mxdnn_version", "mxdnn_status2str", "mxdnn_get_last_error",
            "mxdnn_get_effective_cpu_isa", "mxdnn_get_max_concurrency", "mxdnn_set_jit_dump",
            "mxdnn_engine_get_target_count"};
    size_t n = 0;
    for (const char *type : {"MXDNN_API ", "MXDNN_API *"}) {
        const auto functions = names_between(header, type, "(");
        for (const std::string &name : functions)
            EXPECT_TRUE(harmless.count(name) || here.find(name + "(") != std::string::npos) << name;
        n += functions.size();
    }
    EXPECT_GT(n, 70u);
}
