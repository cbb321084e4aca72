// SPDX-License-Identifier: Apache-2.0
// Engines, streams and memory of CUDA devices, and how primitives execute there: nothing is read back or
// waited for, so that everything can be captured; many streams and threads share one primitive; graphs give
// the bytes of direct calls.
#include <thread>

#include <cuda_runtime.h>

#include "cuda_call.hpp"

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
    // Anything else has to be done on one side.
    mxdnn_primitive_desc_t pd = nullptr;
    EXPECT_EQ(mxdnn_mx_reorder_primitive_desc_create(&pd, hp.get(), cpu().get(),
                      memory::desc({5, 77}, dt::f32, tag::ab).get(), gpu().get(), nullptr),
            mxdnn_unimplemented);
    EXPECT_NE(std::string(mxdnn_get_last_error()).find("copy first"), std::string::npos)
            << mxdnn_get_last_error();
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
        float on_host[64];
        EXPECT_THROW(mxdnn::cuda_interop::make_memory(md, gpu(), on_host), mxdnn::error);
        EXPECT_THROW(mxdnn::cuda_interop::make_stream(cpu(), mine), mxdnn::error);
    }
    CUDA_OK(cudaFree(p));
    CUDA_OK(cudaStreamDestroy(mine));
}

// ---- every primitive: captured, replayed, on many streams and threads ----

struct sample_t {
    std::string name;
    std::shared_ptr<mxdnn::primitive_desc_base> pd;
    values_t indices; // inputs that are not to be random
    shapes_t shapes;  // of inputs whose dims are open

    values_t inputs(unsigned seed) const {
        std::mt19937 rng(seed);
        values_t in = random_inputs(*pd, rng);
        for (const auto &i : indices) in[i.first] = i.second;
        return in;
    }
};

bytes_t s32(const std::vector<int32_t> &v) {
    bytes_t b(v.size() * 4);
    std::memcpy(b.data(), v.data(), b.size());
    return b;
}

template <typename pd_t, typename... args_t>
sample_t sample(const std::string &name, args_t &&...args) {
    return {name, std::make_shared<pd_t>(std::forward<args_t>(args)...), {}, {}};
}

std::vector<sample_t> samples() {
    const mxdnn::engine e = gpu();
    std::vector<sample_t> list;
    mxdnn::primitive_attr q;
    q.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
    list.push_back(sample<mxdnn::mx_reorder::primitive_desc>("quantise", e,
            memory::desc({33, 100}, dt::bf16, tag::ab), e, memory::desc({33, 100}, dt::f8_e4m3, tag::ab), q));
    mxdnn::primitive_attr nv;
    nv.set_scales(MXDNN_ARG_DST, 3, {1, 16}, dt::f8_e4m3, false, mxdnn::quantization_mode::dynamic_fp);
    nv.set_global_scale(MXDNN_ARG_DST, mxdnn::quantization_mode::dynamic_fp);
    list.push_back(sample<mxdnn::mx_reorder::primitive_desc>("two levels", e,
            memory::desc({33, 100}, dt::f32, tag::ab), e, memory::desc({33, 100}, dt::f4_e2m1, tag::ab), nv));
    list.push_back(sample<mxdnn::mx_reorder::primitive_desc>("copy", e,
            memory::desc({33, 100}, dt::bf16, tag::ab), e, memory::desc({33, 100}, dt::bf16, tag::ab)));
    mxdnn::primitive_attr w;
    w.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    list.push_back(sample<mxdnn::mx_matmul::primitive_desc>("plain weights", e,
            memory::desc({9, 70}, dt::bf16, tag::ab), memory::desc({70, 40}, dt::f4_e2m1, tag::ab),
            memory::desc({9, 40}, dt::f32, tag::ab), w));
    // An expert layer's: four experts, one of them without rows.
    mxdnn::primitive_attr experts;
    experts.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    list.push_back(sample<mxdnn::grouped_matmul::primitive_desc>("experts", e,
            memory::desc::grouped({9, 64}, dt::bf16, 0, 4), memory::desc({4, 64, 32}, dt::f4_e2m1, tag::abc),
            memory::desc::grouped({9, 32}, dt::f32, 0, 4), experts));
    list.back().indices = {
            {MXDNN_ARG_GROUP_OFFSETS, s32({3, 3, 5, 9})}, {MXDNN_ARG_GROUP_EXPERT_IDS, s32({2, 0, 1, 3})}};
    list.push_back(
            sample<mxdnn::moe_route::primitive_desc>("route", e, memory::desc({33, 16}, dt::bf16, tag::ab), 4,
                    mxdnn::algorithm::route_softmax_topk, unsigned(mxdnn_route_renormalize), 1, 1));
    list.push_back(sample<mxdnn::moe_permute::primitive_desc>("permute", e,
            memory::desc({12, 40}, dt::bf16, tag::ab), memory::desc({32, 40}, dt::bf16, tag::ab), 2, 3, 8));
    list.back().indices = {{MXDNN_ARG_GROUP_COUNTS, s32({1, 2, 0, 3, 4, 2})}};
    list.push_back(sample<mxdnn::moe_unpermute::primitive_desc>("unpermute", e,
            memory::desc({8, 40}, dt::bf16, tag::ab), memory::desc({4, 40}, dt::f32, tag::ab)));
    list.back().indices = {{MXDNN_ARG_PERMUTED_IDX, s32({3, -1, 0, 7, 1, 5, -1, 6})},
            {MXDNN_ARG_TOPK_WEIGHTS, bytes_t(4 * 2 * 4, 0x3e)}};
    list.back().shapes = {{MXDNN_ARG_TOPK_WEIGHTS, memory::desc({4, 2}, dt::f32, tag::ab)}};
    // Packed weights, by every implementation that takes them.
    for (int impl = 0;; impl++) {
        sample_t s = sample<mxdnn::mx_matmul::primitive_desc>("packed weights", e,
                memory::desc({9, 70}, dt::bf16, tag::ab), memory::desc({70, 40}, dt::f4_e2m1, tag::any),
                memory::desc({1, 40}, dt::f32, tag::ab), memory::desc({9, 40}, dt::f32, tag::ab), w);
        bool found = true;
        for (int i = 0; i < impl && found; i++) found = s.pd->next_impl();
        if (!found) return list;
        list.push_back(s);
    }
}

TEST(cuda_execution, can_be_captured_and_replayed) {
    for (const sample_t &c : samples()) {
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
        for (int i = 0; i < 3; i++) CUDA_OK(cudaGraphLaunch(exec, cs));
        s.wait();
        EXPECT_EQ(call.results(), want);
        CUDA_OK(cudaGraphExecDestroy(exec));
        CUDA_OK(cudaGraphDestroy(graph));
    }
}

TEST(cuda_execution, streams_and_threads_share_a_primitive) {
    for (const sample_t &c : samples()) {
        SCOPED_TRACE(c.name + " " + c.pd->impl_info_str());
        const values_t in = c.inputs(8), want = run(*c.pd, gpu(), in, c.shapes);
        const mxdnn::primitive p(*c.pd);
        std::vector<std::thread> threads;
        std::vector<values_t> got(4);
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

TEST(cuda_execution, works_on_every_device) {
    const size_t devices = mxdnn::engine::get_count(mxdnn::engine::kind::cuda);
    const memory::desc from({33, 100}, dt::bf16, tag::ab), to({33, 100}, dt::f32, tag::ab);
    values_t want;
    for (size_t i = 0; i < devices; i++) {
        const mxdnn::engine e = gpu(i);
        const mxdnn::mx_reorder::primitive_desc pd(e, from, e, to);
        std::mt19937 rng(9);
        const values_t got = run(pd, e, random_inputs(pd, rng));
        if (i == 0) want = got;
        EXPECT_EQ(got, want) << "device " << i;
        int current = -1;
        CUDA_OK(cudaGetDevice(&current));
        EXPECT_EQ(current, 0) << "the caller's device changed";
    }
}

} // namespace
