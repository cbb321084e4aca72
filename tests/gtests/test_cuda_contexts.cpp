// SPDX-License-Identifier: Apache-2.0
// Calls do not change the caller's CUDA contexts. A thread without a context has none afterwards, a thread
// with one keeps it, and no context is created on another device. The test is a separate process that uses
// only the library and the driver.
#include <functional>
#include <thread>

#include <cuda.h>
#include <dlfcn.h>

#include "cuda_samples.hpp"

using namespace cuda_test;

namespace {

template <typename F>
F *driver_function(const char *name) {
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<F *>(driver ? dlsym(driver, name) : nullptr);
}
#define DRIVER(name) driver_function<decltype(name)>(#name)
#define DRIVER_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

CUcontext current_context() {
    CUcontext c = nullptr;
    EXPECT_EQ(DRIVER(cuCtxGetCurrent)(&c), CUDA_SUCCESS);
    return c;
}

bool has_context(int device) {
    unsigned flags = 0;
    int active = 0;
    EXPECT_EQ(DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active), CUDA_SUCCESS);
    return active != 0;
}

int devices() { return int(mxdnn::engine::get_count(mxdnn::engine::kind::cuda)); }

// In a thread that has done nothing yet.
void in_new_thread(const std::function<void()> &f) { std::thread(f).join(); }

// Runs the samples and further calls, and checks the thread's context after every call.
void use_everything(const mxdnn::engine &e) {
    const CUcontext mine = current_context();
    const auto expect_mine = [&](const std::string &after) { EXPECT_EQ(current_context(), mine) << after; };
    const memory::desc md({33, 100}, dt::bf16, tag::ab), to({33, 100}, dt::f32, tag::ab);
    {
        const memory m(md, e), dst(to, e);
        expect_mine("memory");
        m.unmap_data(m.map_data());
        expect_mine("map_data");
        mxdnn::stream s(e);
        expect_mine("a stream");
        const bytes_t bytes(md.get_size(), 1);
        mxdnn::cuda_interop::copy(s, m.get_data_handle(), bytes.data(), bytes.size());
        expect_mine("copy");
        mxdnn::stream over = mxdnn::cuda_interop::make_stream(e, mxdnn::cuda_interop::get_stream(s));
        expect_mine("a stream over a stream");
        mxdnn::stream legacy = mxdnn::cuda_interop::make_stream(e, nullptr);
        expect_mine("a stream over the legacy one");
        const memory same = mxdnn::cuda_interop::make_memory(md, e, m.get_data_handle());
        expect_mine("memory over a pointer");
        EXPECT_THROW(
                mxdnn::cuda_interop::make_memory(md, e, const_cast<uint8_t *>(bytes.data())), mxdnn::error);
        expect_mine("memory over a pointer of the host");
        const mxdnn::mx_reorder::primitive_desc pd(e, md, e, to);
        expect_mine("a descriptor");
        const mxdnn::mx_reorder p(pd);
        expect_mine("a primitive");
        for (mxdnn::stream *on : {&s, &over, &legacy}) {
            p.execute(*on, {{MXDNN_ARG_FROM, same}, {MXDNN_ARG_TO, dst}});
            expect_mine("execute");
            on->wait();
            expect_mine("wait");
        }
    }
    expect_mine("releasing");
    for (const sample_t &c : samples(e)) {
        run(*c.pd, e, c.inputs(3), c.shapes);
        expect_mine(c.name + " " + c.pd->impl_info_str());
    }
}

TEST(cuda_contexts, counting_devices_makes_none) {
    for (int i = 0; i < devices(); i++) {
        EXPECT_FALSE(gpu(size_t(i)).get_target().empty());
        EXPECT_FALSE(has_context(i)) << "device " << i;
    }
    EXPECT_EQ(current_context(), nullptr);
}

// The last of several devices is used, so that a context on another one is noticed.
TEST(cuda_contexts, threads_without_one_stay_without) {
    const int used = devices() - 1;
    in_new_thread([&] {
        use_everything(gpu(size_t(used)));
        EXPECT_EQ(current_context(), nullptr);
    });
    EXPECT_TRUE(has_context(used));
    for (int i = 0; i < used; i++) EXPECT_FALSE(has_context(i)) << "device " << i;
}

TEST(cuda_contexts, threads_without_one_capture) {
    in_new_thread([] {
        const memory::desc from({33, 100}, dt::bf16, tag::ab), to({33, 100}, dt::f32, tag::ab);
        std::mt19937 rng(5);
        const bytes_t values = random_bytes(mxdnn_bf16, from.get_size(), rng);
        const memory src = make_memory(from, gpu(), values), dst(to, gpu()), want(to, gpu());
        const mxdnn::mx_reorder p(mxdnn::mx_reorder::primitive_desc(gpu(), from, gpu(), to));
        mxdnn::stream s(gpu());
        p.execute(s, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, want}});
        const auto cs = mxdnn::cuda_interop::get_stream(s);
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        DRIVER_OK(driver_function<decltype(cuStreamBeginCapture)>("cuStreamBeginCapture_v2")(
                cs, CU_STREAM_CAPTURE_MODE_GLOBAL));
        p.execute(s, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst}});
        DRIVER_OK(DRIVER(cuStreamEndCapture)(cs, &graph));
        EXPECT_EQ(current_context(), nullptr);
        // The driver replays nothing without one.
        CUcontext of_device = nullptr;
        DRIVER_OK(DRIVER(cuDevicePrimaryCtxRetain)(&of_device, 0));
        DRIVER_OK(DRIVER(cuCtxSetCurrent)(of_device));
        DRIVER_OK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
        DRIVER_OK(DRIVER(cuGraphLaunch)(exec, cs));
        s.wait();
        DRIVER_OK(DRIVER(cuGraphExecDestroy)(exec));
        DRIVER_OK(DRIVER(cuGraphDestroy)(graph));
        EXPECT_EQ(read_memory(dst), read_memory(want));
    });
}

// Another device's, with which the caller goes on afterwards.
TEST(cuda_contexts, threads_keep_another_devices) {
    if (devices() < 2) GTEST_SKIP() << "one device";
    in_new_thread([] {
        CUcontext other = nullptr;
        DRIVER_OK(DRIVER(cuDevicePrimaryCtxRetain)(&other, 0));
        DRIVER_OK(DRIVER(cuCtxSetCurrent)(other));
        use_everything(gpu(1));
        EXPECT_EQ(current_context(), other);
    });
}

// A context of the device that the caller made is used as it is. Memory belongs to one context.
TEST(cuda_contexts, threads_keep_their_own_of_the_device) {
    in_new_thread([] {
        using create_t = CUresult(CUcontext *, unsigned, CUdevice);
        CUcontext own = nullptr;
        DRIVER_OK(driver_function<create_t>("cuCtxCreate_v2")(&own, 0, 0));
        {
            const memory::desc from({35, 100}, dt::bf16, tag::ab), to({35, 100}, dt::f32, tag::ab);
            std::mt19937 rng(6);
            const bytes_t values = random_bytes(mxdnn_bf16, from.get_size(), rng);
            const memory src = make_memory(from, gpu(), values), dst(to, gpu());
            const mxdnn::mx_reorder p(mxdnn::mx_reorder::primitive_desc(gpu(), from, gpu(), to));
            mxdnn::stream s(gpu());
            p.execute(s, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst}});
            s.wait();
            const bytes_t got = read_memory(dst);
            for (size_t i = 0; i < values.size() / 2; i++) {
                // bf16 is the upper half of f32.
                ASSERT_EQ(got[4 * i + 3], values[2 * i + 1]) << i;
                ASSERT_EQ(got[4 * i + 2], values[2 * i]) << i;
            }
            EXPECT_EQ(current_context(), own);
        }
        EXPECT_EQ(current_context(), own);
        DRIVER_OK(driver_function<CUresult(CUcontext)>("cuCtxDestroy_v2")(own));
    });
}

} // namespace
