// SPDX-License-Identifier: Apache-2.0
// Memory of an engine that is a device: what it maps is a copy, and wrong calls change nothing. The device
// here has its memory on the host.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/engine.hpp"
#include "common/memory_desc.hpp"

using namespace mxdnn::impl;

namespace {

class host_device_t : public device_t {
public:
    status_t allocate(void **data, size_t bytes, const char *) const override {
        *data = ::operator new(bytes);
        live++;
        return mxdnn_success;
    }
    void release(void *data) const override {
        ::operator delete(data);
        live--;
    }
    status_t copy_now(const char *, void *dst, const void *src, size_t bytes) const override {
        if (refuses) return fail(mxdnn_runtime_error, "the device refuses");
        if (bytes) std::memcpy(dst, src, bytes);
        return mxdnn_success;
    }
    status_t create_stream(std::unique_ptr<device_stream_t> &) const override { return mxdnn_unimplemented; }
    status_t reserve_scratchpad(int64_t) const override { return mxdnn_unimplemented; }

    mutable int live = 0;
    bool refuses = false;
};

class device_memory : public testing::Test {
protected:
    const target_t target{"cuda:sm_80", mxdnn_cuda, target_family_t::cuda};
    host_device_t device;
    engine_t engine{&target, 0, true, &device};

    memory_desc_t desc(dim_t rows) {
        memory_desc_t md;
        const dim_t dims[] = {rows, 16};
        EXPECT_EQ(init_with_tag(md, 2, dims, mxdnn_u8, mxdnn_ab), mxdnn_success);
        return md;
    }
    mxdnn_memory_t make(const memory_desc_t &md, void *handle) {
        mxdnn_memory_t m = nullptr;
        EXPECT_EQ(mxdnn_memory_create(&m, &md, &engine, handle), mxdnn_success) << last_error();
        return m;
    }
    static void expect_refused(status_t status, status_t wanted, const char *words) {
        EXPECT_EQ(status, wanted);
        EXPECT_NE(std::string(last_error()).find(words), std::string::npos) << last_error();
    }
};

} // namespace

TEST_F(device_memory, is_mapped_once_at_a_time) {
    mxdnn_memory_t m = make(desc(4), MXDNN_MEMORY_ALLOCATE);
    std::memset(m->handle, 1, 64);
    void *mapped = nullptr, *again = nullptr;
    expect_refused(mxdnn_memory_unmap_data(m, nullptr), mxdnn_invalid_arguments, "map_data gave (nil)");
    ASSERT_EQ(mxdnn_memory_map_data(m, &mapped), mxdnn_success);
    EXPECT_NE(mapped, m->handle);
    EXPECT_EQ(std::memcmp(mapped, m->handle, 64), 0);
    static_cast<char *>(mapped)[63] = 2;
    expect_refused(mxdnn_memory_map_data(m, &again), mxdnn_invalid_arguments, "unmap it first");
    EXPECT_EQ(again, nullptr);
    for (void *wrong :
            {static_cast<void *>(nullptr), m->handle, static_cast<void *>(static_cast<char *>(mapped) + 1)})
        expect_refused(mxdnn_memory_unmap_data(m, wrong), mxdnn_invalid_arguments, "map_data gave 0x");
    EXPECT_EQ(static_cast<char *>(m->handle)[63], 1);
    device.refuses = true; // the copy stays mapped
    expect_refused(mxdnn_memory_unmap_data(m, mapped), mxdnn_runtime_error, "the device refuses");
    device.refuses = false;
    EXPECT_EQ(mxdnn_memory_unmap_data(m, mapped), mxdnn_success);
    EXPECT_EQ(static_cast<char *>(m->handle)[63], 2);
    expect_refused(mxdnn_memory_unmap_data(m, mapped), mxdnn_invalid_arguments, "map_data gave (nil)");
    device.refuses = true;
    expect_refused(mxdnn_memory_map_data(m, &again), mxdnn_runtime_error, "the device refuses");
    EXPECT_EQ(again, nullptr);
    EXPECT_EQ(device.live, 1);
    EXPECT_EQ(mxdnn_memory_destroy(m), mxdnn_success);
    EXPECT_EQ(device.live, 0);
}

TEST_F(device_memory, of_unknown_or_immense_size_is_not_mapped) {
    char bytes[64];
    void *mapped = bytes;
    mxdnn_memory_t m = make(desc(runtime_dim), bytes);
    expect_refused(mxdnn_memory_map_data(m, &mapped), mxdnn_invalid_arguments, "whose size is not known");
    EXPECT_EQ(mxdnn_memory_destroy(m), mxdnn_success);
    // More than the address space has.
    memory_desc_t md;
    const dim_t dims[] = {max_dim, max_bytes / max_dim};
    ASSERT_EQ(init_with_tag(md, 2, dims, mxdnn_u8, mxdnn_ab), mxdnn_success);
    m = make(md, bytes);
    expect_refused(
            mxdnn_memory_map_data(m, &mapped), mxdnn_out_of_memory, "no memory for 1125899906842624 bytes");
    EXPECT_EQ(mapped, bytes);
    EXPECT_EQ(mxdnn_memory_destroy(m), mxdnn_success);
}

TEST_F(device_memory, without_a_buffer_or_elements_maps_to_an_address) {
    for (const memory_desc_t &md : {desc(4), desc(0)}) {
        mxdnn_memory_t m = make(md, nullptr);
        void *mapped = nullptr;
        ASSERT_EQ(mxdnn_memory_map_data(m, &mapped), mxdnn_success);
        EXPECT_NE(mapped, nullptr);
        EXPECT_EQ(mxdnn_memory_unmap_data(m, mapped), mxdnn_success);
        EXPECT_EQ(mxdnn_memory_destroy(m), mxdnn_success);
    }
}
