// SPDX-License-Identifier: Apache-2.0
// Mistakes of callers outside execution. Each is refused with its status and a sentence that names the
// wrong value, and nothing is written. Here: wrong values for
// engines, streams, memory and its descriptors.
#include <climits>

#include "misuse_fixture.hpp"
#include "mxdnn/mxdnn_threadpool.hpp"

using namespace api_test;

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
    for (const char *target :
            {"", "cpu", "cpu:x64:avx3", "CPU:X64:AVX2", "cpu:x64:avx2 ", "cuda:sm_75", "cuda:sm_", "%s%n"})
        EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out_engine, target),
                std::string("'") + target + "'", "cpu:x64:avx2", "cuda:sm_90");
    const std::string longer(100000, 'x');
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out_engine, longer.c_str()),
            "xxxxxxxx…' (100000 bytes)", "cuda:sm_90");
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_engine_create_for_target(&out_engine, "\x1b[2J"),
            "'\\x1b[2J'"); // a terminal would obey it
}

TEST_F(Misuse, Streams) {
    for (unsigned flags : {0u, 2u, 3u, 0x80000001u}) {
        std::ostringstream hex;
        hex << std::hex << flags;
        EXPECT_REFUSED(
                mxdnn_invalid_arguments, mxdnn_stream_create(&out_stream, eng.get(), flags), hex.str());
    }
    const mxdnn::engine cuda = mxdnn::engine::for_target("cuda:sm_90");
    const mxdnn_threadpool_t not_a_pool = {};
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
    // Each dimension is legal. Their product is not.
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
    mxdnn_checksum_t parts = nullptr;
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_checksum_create(&parts, md.get()), "4x64");
    EXPECT_EQ(parts, nullptr);
    EXPECT_OK(mxdnn_checksum_create(&parts, packed.get()));
    const std::vector<uint8_t> bytes(packed.get_size() + 1);
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_checksum_add(parts, bytes.data(), bytes.size()),
            std::to_string(packed.get_size()));
    EXPECT_OK(mxdnn_checksum_add(parts, bytes.data(), 5));
    EXPECT_OK(mxdnn_checksum_add(parts, nullptr, 0));
    EXPECT_REFUSED(mxdnn_invalid_arguments, mxdnn_checksum_get(parts, &sum), "5 of 576 bytes");
    EXPECT_OK(mxdnn_checksum_destroy(parts));
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
