// SPDX-License-Identifier: Apache-2.0
// Engines, streams and memory of CUDA devices, and how primitives execute there. Nothing is read back or
// waited for, so every execution can be captured. Many streams and threads share one primitive. Graphs give
// the bytes of direct calls.
#include <iostream>
#include <thread>

#include <cuda_runtime.h>

#include <mxdnn/mxdnn_container.hpp>

#include "cuda_samples.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"

using namespace cuda_test;

namespace {

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess)

bytes_t counting(size_t n) {
    bytes_t b(n);
    for (size_t i = 0; i < n; i++) b[i] = uint8_t(i * 7 + i / 251);
    return b;
}

TEST(cuda_engine, has_a_target_and_is_one_object) {
    const mxdnn::engine a = gpu(), b = gpu();
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.get_kind(), mxdnn::engine::kind::cuda);
    EXPECT_EQ(a.get_target().rfind("cuda:sm_", 0), 0u) << a.get_target();
    EXPECT_NE(a, mxdnn::engine::for_target(a.get_target())); // that one packs on the host
    mxdnn_engine_t e = nullptr;
    EXPECT_EQ(mxdnn_engine_create(&e, mxdnn_cuda, mxdnn_engine_get_count(mxdnn_cuda)),
            mxdnn_device_unavailable);
}

TEST(cuda_memory, maps_and_copies) {
    const memory::desc md({5, 77}, dt::f8_e4m3, tag::ab);
    const bytes_t bytes = counting(md.get_size());
    const memory m = make_memory(md, gpu(), bytes);
    EXPECT_EQ(read_memory(m), bytes);
    auto *p = m.map_data<uint8_t>();
    void *again = nullptr;
    EXPECT_EQ(mxdnn_memory_map_data(m.get(), &again), mxdnn_invalid_arguments);
    EXPECT_EQ(mxdnn_memory_unmap_data(m.get(), p + 1), mxdnn_invalid_arguments);
    p[3] = 99;
    m.unmap_data(p);
    EXPECT_EQ(read_memory(m)[3], 99);

    // Across engines a reorder between equal descriptors is a copy.
    const memory::desc hp({5, 77}, dt::bf16, tag::ab);
    const bytes_t values = counting(hp.get_size());
    memory host = make_memory(hp, cpu(), values), device(hp, gpu()),
           back = make_memory(hp, cpu(), bytes_t(values.size()));
    mxdnn::stream s(gpu());
    mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(host, device)).execute(s, host, device);
    const mxdnn::mx_reorder::primitive_desc to_host(device, back);
    EXPECT_EQ(to_host.impl_info_str(), "copy:cuda");
    mxdnn::mx_reorder(to_host).execute(s, device, back);
    s.wait();
    EXPECT_EQ(read_memory(back), values);
    // Any other reorder needs both sides on one engine.
    mxdnn_primitive_desc_t pd = nullptr;
    EXPECT_EQ(mxdnn_mx_reorder_primitive_desc_create(&pd, hp.get(), cpu().get(),
                      memory::desc({5, 77}, dt::f32, tag::ab).get(), gpu().get(), nullptr),
            mxdnn_unimplemented);
    EXPECT_NE(std::string(mxdnn_get_last_error()).find("copy first"), std::string::npos)
            << mxdnn_get_last_error();
}

TEST(cuda_memory, is_loaded_from_a_container) {
    const bytes_t bytes = counting(385);
    std::string header = R"({"w":{"dtype":"F8_E4M3","shape":[5,77],"data_offsets":[0,385]},)"
                         R"("none":{"dtype":"F32","shape":[0,4],"data_offsets":[385,385]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    bytes_t file(8);
    file[0] = uint8_t(header.size());
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), bytes.begin(), bytes.end());
    const mxdnn::container c(file.data(), file.size());
    const memory m = c.load(c.find("w"), gpu());
    EXPECT_EQ(m.get_engine(), gpu());
    EXPECT_EQ(m.get_desc(), memory::desc({5, 77}, dt::f8_e4m3, tag::ab));
    EXPECT_EQ(read_memory(m), bytes);
    EXPECT_EQ(c.load(c.find("none"), gpu()).get_desc().get_size(), 0u);
}

TEST(cuda_memory, of_the_wrong_place_is_refused) {
    const memory::desc md({4, 4}, dt::f32, tag::ab), to({4, 4}, dt::bf16, tag::ab);
    const mxdnn::mx_reorder r(mxdnn::mx_reorder::primitive_desc(gpu(), md, gpu(), to));
    memory host = make_memory(md, cpu(), bytes_t(64)), device(md, gpu()), out(to, gpu());
    mxdnn::stream s(gpu()), host_stream(cpu());
    EXPECT_THROW(r.execute(s, {{MXDNN_ARG_FROM, host}, {MXDNN_ARG_TO, out}}), mxdnn::error);
    EXPECT_THROW(r.execute(host_stream, {{MXDNN_ARG_FROM, device}, {MXDNN_ARG_TO, out}}), mxdnn::error);
    r.execute(s, {{MXDNN_ARG_FROM, device}, {MXDNN_ARG_TO, out}});
    s.wait();
}

TEST(cuda_interop, takes_streams_and_pointers) {
    cudaStream_t mine = nullptr;
    CUDA_OK(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
    void *p = nullptr;
    CUDA_OK(cudaMalloc(&p, 256));
    {
        const memory::desc md({4, 16}, dt::f32, tag::ab);
        mxdnn::stream s = mxdnn::cuda_interop::make_stream(gpu(), mine);
        EXPECT_EQ(mxdnn::cuda_interop::get_stream(s), mine);
        const memory m = mxdnn::cuda_interop::make_memory(md, gpu(), p);
        const bytes_t bytes = counting(256);
        mxdnn::cuda_interop::copy(s, p, bytes.data(), 256);
        s.wait();
        EXPECT_EQ(read_memory(m), bytes);
        // A stream can be taken while it is being captured.
        cudaGraph_t graph = nullptr;
        CUDA_OK(cudaStreamBeginCapture(mine, cudaStreamCaptureModeGlobal));
        EXPECT_NO_THROW(mxdnn::cuda_interop::make_stream(gpu(), mine));
        CUDA_OK(cudaStreamEndCapture(mine, &graph));
        CUDA_OK(cudaGraphDestroy(graph));
        float on_host[64];
        EXPECT_THROW(mxdnn::cuda_interop::make_memory(md, gpu(), on_host), mxdnn::error);
        EXPECT_THROW(mxdnn::cuda_interop::make_stream(cpu(), mine), mxdnn::error);
        EXPECT_THROW(mxdnn::cuda_interop::make_stream(gpu(), cudaStreamPerThread), mxdnn::error);
    }
    CUDA_OK(cudaFree(p));
    CUDA_OK(cudaStreamDestroy(mine));
}

// ---- every primitive by every implementation: captured, replayed, on many streams and threads ----

TEST(cuda_execution, can_be_captured_and_replayed) {
    for (const sample_t &c : samples(gpu())) {
        // Prints its progress, since it takes minutes under racecheck.
        std::cout << c.name << " " << c.pd->impl_info_str() << std::endl;
        SCOPED_TRACE(c.name + " " + c.pd->impl_info_str());
        const values_t in = c.inputs(7), want = run(*c.pd, gpu(), in, c.shapes);
        call_t call(*c.pd, gpu(), in, c.shapes);
        mxdnn::stream s(gpu());
        cudaStream_t cs = mxdnn::cuda_interop::get_stream(s);
        const mxdnn::primitive p(*c.pd);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        // Global mode: any call that waits or allocates, in any thread, breaks the capture.
        CUDA_OK(cudaStreamBeginCapture(cs, cudaStreamCaptureModeGlobal));
        p.execute(s, call.args);
        CUDA_OK(cudaStreamEndCapture(cs, &graph));
        CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
        for (int i = 0; i < 2; i++) CUDA_OK(cudaGraphLaunch(exec, cs));
        s.wait();
        EXPECT_EQ(call.results(), want);
        CUDA_OK(cudaGraphExecDestroy(exec));
        CUDA_OK(cudaGraphDestroy(graph));
    }
}

// Calls that wait for the device would break a capture, so they are refused. All other calls stay possible.
// Creating a primitive loads the variants of its kernels for its own formats and types: what formats there
// are besides makes no difference.
TEST(cuda_execution, primitives_load_what_they_may_launch) {
    const mxdnn::impl::cuda::table_t &table = *mxdnn::impl::cuda::find_device(0)->table;
    const auto loads = [&](auto &&create) {
        const int64_t before = table.loaded_kernels();
        create();
        return table.loaded_kernels() - before;
    };
    const auto matmul = [&](dt type, dt scale, mxdnn_dim_t block) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, 3, {block, 1}, scale);
        const memory::desc src({5, 192}, dt::bf16, tag::ab), dst({5, 200}, dt::bf16, tag::ab);
        mxdnn::mx_matmul(mxdnn::mx_matmul::primitive_desc(
                gpu(), src, memory::desc({192, 200}, type, tag::any), dst, a));
    };
    const auto reorder = [&](dt type, dt scale, mxdnn_dim_t block) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_DST, 3, {block, 1}, scale, false, mxdnn::quantization_mode::dynamic_mx);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(gpu(), memory::desc({192, 200}, dt::f16, tag::ab),
                gpu(), memory::desc({192, 200}, type, tag::any), a));
    };
    // Three of gemv, two of grouped_gemv, eight of gemm (42 for MXFP4), three of sum_parts, and the
    // reference.
    const int64_t mxfp4 = loads([&] { matmul(dt::f4_e2m1, dt::e8m0, 32); });
    EXPECT_GT(mxfp4, 0);
    EXPECT_LE(mxfp4, 58);
    for (const int64_t n : {loads([&] { matmul(dt::f8_e5m2, dt::e8m0, 32); }),
                 loads([&] { matmul(dt::s4, dt::bf16, 64); })}) {
        EXPECT_GT(n, 0);
        EXPECT_LE(n, 24);
    }
    for (const int64_t n : {loads([&] { reorder(dt::f4_e2m1, dt::e8m0, 32); }),
                 loads([&] { reorder(dt::f6_e3m2, dt::e8m0, 32); })}) {
        EXPECT_GT(n, 0);
        EXPECT_LE(n, 8);
    }
}

TEST(cuda_execution, captures_are_left_alone) {
    const memory::desc from({33, 100}, dt::bf16, tag::ab), to({33, 100}, dt::f32, tag::ab);
    mxdnn::stream s(gpu());
    const memory src(from, gpu()), dst(to, gpu());
    const memory mapped(to, gpu());
    void *const bytes = mapped.map_data();
    const mxdnn::mx_reorder p(mxdnn::mx_reorder::primitive_desc(gpu(), from, gpu(), to));
    const cudaStream_t cs = mxdnn::cuda_interop::get_stream(s);
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamBeginCapture(cs, cudaStreamCaptureModeGlobal));
    p.execute(s, {{MXDNN_ARG_FROM, src}, {MXDNN_ARG_TO, dst}});
    EXPECT_THROW(dst.map_data(), mxdnn::error);
    EXPECT_THROW(mapped.unmap_data(bytes), mxdnn::error);
    {
        const memory more(to, gpu());
        const mxdnn::stream other(gpu());
        const memory::desc big({37, 104}, dt::bf16, tag::ab), turned({37, 104}, dt::f32, tag::ba);
        const mxdnn::mx_reorder made(mxdnn::mx_reorder::primitive_desc(gpu(), big, gpu(), turned));
    }
    CUDA_OK(cudaStreamEndCapture(cs, &graph));
    CUDA_OK(cudaGraphDestroy(graph));
    mapped.unmap_data(bytes);
    dst.unmap_data(dst.map_data());
}

// The library sees unknown streams only if the legacy stream waits for them.
TEST(cuda_execution, captures_of_unknown_blocking_streams_are_left_alone) {
    const memory m(memory::desc({33, 100}, dt::f32, tag::ab), gpu());
    cudaStream_t blocking = nullptr;
    cudaGraph_t graph = nullptr;
    CUDA_OK(cudaStreamCreate(&blocking));
    CUDA_OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    EXPECT_THROW(m.map_data(), mxdnn::error);
    CUDA_OK(cudaStreamEndCapture(blocking, &graph));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(blocking));
    m.unmap_data(m.map_data());
}

TEST(cuda_execution, streams_and_threads_share_a_primitive) {
    for (const sample_t &c : samples(gpu())) {
        SCOPED_TRACE(c.name + " " + c.pd->impl_info_str());
        const values_t in = c.inputs(8), want = run(*c.pd, gpu(), in, c.shapes);
        const mxdnn::primitive p(*c.pd);
        std::vector<std::thread> threads;
        std::vector<values_t> got(4);
        threads.reserve(got.size());
        for (auto &g : got)
            threads.emplace_back([&] {
                call_t call(*c.pd, gpu(), in, c.shapes);
                mxdnn::stream s(gpu());
                for (int i = 0; i < 20; i++) p.execute(s, call.args);
                s.wait();
                g = call.results();
            });
        for (auto &t : threads) t.join();
        for (const auto &g : got) EXPECT_EQ(g, want);
    }
}

// Graphs that run beside each other, each on a scratchpad of its own that the caller gave it.
TEST(cuda_execution, graphs_with_scratchpads_of_their_own_run_side_by_side) {
    int with_scratchpad = 0;
    for (const sample_t &c : samples(gpu(), mxdnn::scratchpad_mode::user)) {
        if (c.pd->scratchpad_desc().get_size() == 0) continue;
        SCOPED_TRACE(c.name + " " + c.pd->impl_info_str());
        with_scratchpad++;
        constexpr int graphs = 3;
        const mxdnn::primitive p(*c.pd);
        std::vector<call_t> calls;
        std::vector<values_t> want;
        std::vector<mxdnn::stream> streams;
        std::vector<cudaGraphExec_t> execs(graphs);
        for (int i = 0; i < graphs; i++) {
            const values_t in = c.inputs(unsigned(20 + i));
            want.push_back(run(*c.pd, gpu(), in, c.shapes));
            calls.emplace_back(*c.pd, gpu(), in, c.shapes);
            streams.emplace_back(gpu());
        }
        // All are captured from one stream, and replayed on several.
        const cudaStream_t from = mxdnn::cuda_interop::get_stream(streams[0]);
        for (int i = 0; i < graphs; i++) {
            cudaGraph_t graph = nullptr;
            CUDA_OK(cudaStreamBeginCapture(from, cudaStreamCaptureModeGlobal));
            p.execute(streams[0], calls[size_t(i)].args);
            CUDA_OK(cudaStreamEndCapture(from, &graph));
            CUDA_OK(cudaGraphInstantiate(&execs[size_t(i)], graph, 0));
            CUDA_OK(cudaGraphDestroy(graph));
        }
        for (int round = 0; round < 10; round++)
            for (int i = 0; i < graphs; i++)
                CUDA_OK(cudaGraphLaunch(
                        execs[size_t(i)], mxdnn::cuda_interop::get_stream(streams[size_t(i)])));
        for (int i = 0; i < graphs; i++) {
            streams[size_t(i)].wait();
            EXPECT_EQ(calls[size_t(i)].results(), want[size_t(i)]) << "graph " << i;
            CUDA_OK(cudaGraphExecDestroy(execs[size_t(i)]));
        }
    }
    EXPECT_GE(with_scratchpad, 3);
}

// ---- several devices ----

TEST(cuda_devices, give_the_same_bits_side_by_side) {
    const size_t devices = mxdnn::engine::get_count(mxdnn::engine::kind::cuda);
    if (devices < 2) GTEST_SKIP() << "one device";
    std::vector<std::vector<sample_t>> lists;
    for (size_t i = 0; i < devices; i++) lists.push_back(samples(gpu(i)));
    for (size_t j = 0; j < lists[0].size(); j++) {
        SCOPED_TRACE(lists[0][j].name + " " + lists[0][j].pd->impl_info_str());
        const values_t in = lists[0][j].inputs(9);
        std::vector<values_t> got(devices);
        std::vector<std::thread> threads;
        for (size_t i = 0; i < devices; i++)
            threads.emplace_back([&, i] {
                const sample_t &c = lists[i][j];
                const mxdnn::primitive p(*c.pd);
                call_t call(*c.pd, gpu(i), in, c.shapes);
                mxdnn::stream s(gpu(i));
                for (int n = 0; n < 5; n++) p.execute(s, call.args);
                s.wait();
                got[i] = call.results();
            });
        for (auto &t : threads) t.join();
        for (size_t i = 1; i < devices; i++)
            if (gpu(i).get_target() == gpu(0).get_target()) {
                EXPECT_EQ(got[i], got[0]) << "device " << i;
            }
        int current = -1;
        CUDA_OK(cudaGetDevice(&current));
        EXPECT_EQ(current, 0) << "the caller's device changed";
    }
}

// Memory, pointers and streams of one device are refused by objects of another device.
TEST(cuda_devices, refuse_what_is_another_ones) {
    if (mxdnn::engine::get_count(mxdnn::engine::kind::cuda) < 2) GTEST_SKIP() << "one device";
    const memory::desc from({33, 100}, dt::bf16, tag::ab), to({33, 100}, dt::f32, tag::ab);
    const mxdnn::engine a = gpu(0), b = gpu(1);
    EXPECT_NE(a, b);
    const mxdnn::mx_reorder r(mxdnn::mx_reorder::primitive_desc(b, from, b, to));
    const memory src_a(from, a), src_b(from, b), dst_a(to, a), dst_b(to, b);
    mxdnn::stream on_a(a), on_b(b);
    EXPECT_THROW(r.execute(on_b, {{MXDNN_ARG_FROM, src_a}, {MXDNN_ARG_TO, dst_b}}), mxdnn::error);
    EXPECT_THROW(r.execute(on_b, {{MXDNN_ARG_FROM, src_b}, {MXDNN_ARG_TO, dst_a}}), mxdnn::error);
    EXPECT_THROW(r.execute(on_a, {{MXDNN_ARG_FROM, src_b}, {MXDNN_ARG_TO, dst_b}}), mxdnn::error);
    EXPECT_THROW(mxdnn::cuda_interop::make_memory(from, b, src_a.get_data_handle()), mxdnn::error);
    EXPECT_THROW(mxdnn::cuda_interop::make_stream(b, mxdnn::cuda_interop::get_stream(on_a)), mxdnn::error);
    r.execute(on_b, {{MXDNN_ARG_FROM, src_b}, {MXDNN_ARG_TO, dst_b}});
    on_b.wait();
    // Bytes go from one to the other by a copy.
    const bytes_t bytes = counting(from.get_size());
    const memory there = make_memory(from, a, bytes);
    mxdnn::cuda_interop::copy(on_b, src_b.get_data_handle(), there.get_data_handle(), bytes.size());
    on_b.wait();
    EXPECT_EQ(read_memory(src_b), bytes);
}

} // namespace
