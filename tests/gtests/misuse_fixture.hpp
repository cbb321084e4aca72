// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of misuse: valid objects for the other arguments of a wrong call, and results that must
// not change.
#pragma once

#include "test_api_util.hpp"

namespace api_test {

// Valid objects for the other arguments of a wrong call.
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

    // Buffers for results. Refused calls leave their poison unchanged.
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

} // namespace api_test
