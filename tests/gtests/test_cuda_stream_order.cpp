// SPDX-License-Identifier: Apache-2.0
// Stream order of weights. They are read after earlier work of the stream has written them: a kernel of the
// caller that lets its dependents start before it writes, or a copy, both launched and captured. With
// constant weights the caller has to wait, except for weights that the library itself packs.
#include <iostream>

#include "cuda_call.hpp"
#include "late_writer.hpp"

using namespace cuda_test;

namespace {

#define CUDA_OK(call) ASSERT_EQ(call, cudaSuccess)

struct case_t {
    std::string name;
    memory::dim rows, K, N;
    dt src, wei, scale;
    memory::dim block;
    bool grouped = false, gated = false;
};

const case_t cases[] = {
        {"one row", 1, 4096, 4096, dt::bf16, dt::f4_e2m1, dt::e8m0, 32},
        {"few rows", 16, 4096, 4096, dt::bf16, dt::f4_e2m1, dt::e8m0, 32},
        {"few rows with a gate", 8, 4096, 4096, dt::bf16, dt::f4_e2m1, dt::e8m0, 32, false, true},
        {"many rows", 64, 4096, 4096, dt::bf16, dt::f4_e2m1, dt::e8m0, 32},
        {"many rows of 8 bits", 256, 2880, 5760, dt::bf16, dt::f8_e4m3, dt::e8m0, 32},
        {"many rows of one CTA", 48, 256, 128, dt::bf16, dt::f4_e2m1, dt::e8m0, 32},
        {"a source that is made", 16, 4096, 4096, dt::f32, dt::f4_e2m1, dt::e8m0, 32},
        {"int4", 16, 4096, 4096, dt::f16, dt::s4, dt::f16, 128},
        {"cuBLASLt", 2048, 2880, 2880, dt::bf16, dt::f4_e2m1, dt::e8m0, 32},
        {"experts", 24, 2880, 2880, dt::bf16, dt::f4_e2m1, dt::e8m0, 32, true},
        {"experts, many rows", 300, 2880, 2880, dt::bf16, dt::f4_e2m1, dt::e8m0, 32, true},
};
constexpr memory::dim experts = 4;

struct problem_t {
    mxdnn::primitive_desc_base pd;
    mxdnn::primitive p;
    memory::desc packed;
    memory src, dst, offsets;
    std::vector<memory> weights; // two sets of them
    memory used;                 // what executions read

    problem_t(const case_t &c, bool constant) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_WEIGHTS, c.grouped ? 7 : 3, {c.block, 1}, c.scale);
        a.set_constant_weights(constant);
        if (c.gated) {
            mxdnn::post_ops ops;
            ops.append_gated(mxdnn::algorithm::gated_silu, 1.f, 0.f, mxdnn::gated_layout::halves);
            a.set_post_ops(ops);
        }
        const dt to = c.src == dt::f32 ? dt::f32 : c.src;
        const memory::desc dst({c.rows, c.gated ? c.N / 2 : c.N}, to, tag::ab);
        const mxdnn::engine e = gpu();
        if (c.grouped) {
            const auto of = [&](memory::dim columns) {
                return memory::desc::grouped({c.rows, columns}, c.src, 0, experts);
            };
            const mxdnn::grouped_matmul::primitive_desc made(
                    e, of(c.K), memory::desc({experts, c.K, c.N}, c.wei, tag::any), of(c.N), a);
            packed = made.weights_desc();
            src = random_memory(made.src_desc(), 1);
            this->dst = memory(made.dst_desc(), e);
            p = mxdnn::grouped_matmul(made);
            pd = made;
            std::vector<int32_t> ends;
            for (memory::dim i = 1; i <= experts; i++) ends.push_back(int32_t(c.rows * i / experts));
            bytes_t bytes(ends.size() * 4);
            std::memcpy(bytes.data(), ends.data(), bytes.size());
            offsets = make_memory(memory::desc({experts}, dt::s32, tag::a), e, bytes);
        } else {
            const mxdnn::mx_matmul::primitive_desc made(e, memory::desc({c.rows, c.K}, c.src, tag::ab),
                    memory::desc({c.K, c.N}, c.wei, tag::any), dst, a);
            packed = made.weights_desc();
            src = random_memory(made.src_desc(), 1);
            this->dst = memory(dst, e);
            p = mxdnn::mx_matmul(made);
            pd = made;
        }
        for (unsigned seed : {2, 3}) weights.push_back(pack(c, random_memory(plain(c), seed)));
        used = memory(packed, e);
    }

    static memory::desc plain(const case_t &c) {
        return c.grouped ? memory::desc({experts, c.K, c.N}, dt::bf16, tag::abc)
                         : memory::desc({c.K, c.N}, dt::bf16, tag::ab);
    }
    static memory random_memory(const memory::desc &md, unsigned seed) {
        std::mt19937 rng(seed);
        return make_memory(md, gpu(), random_bytes(md.get()->dt, md.get_size(), rng));
    }
    static mxdnn::primitive_attr quantising(const case_t &c) {
        mxdnn::primitive_attr a;
        a.set_scales(MXDNN_ARG_DST, c.grouped ? 7 : 3, {c.block, 1}, c.scale, false,
                c.scale == dt::e8m0 ? mxdnn::quantization_mode::dynamic_mx
                                    : mxdnn::quantization_mode::dynamic_affine);
        return a;
    }
    mxdnn::mx_reorder packer(const case_t &c) const {
        return mxdnn::mx_reorder(
                mxdnn::mx_reorder::primitive_desc(gpu(), plain(c), gpu(), packed, quantising(c)));
    }
    memory pack(const case_t &c, const memory &from) const {
        memory to(packed, gpu());
        mxdnn::stream s(gpu());
        packer(c).execute(s, {{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, to}});
        s.wait();
        return to;
    }
    void execute(mxdnn::stream &s) const { execute(s, used); }
    void execute(mxdnn::stream &s, const memory &w) const {
        std::unordered_map<int, memory> args = {
                {MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_DST, dst}};
        if (offsets) args[MXDNN_ARG_GROUP_OFFSETS] = offsets;
        p.execute(s, args);
    }
    // The weights were written long before.
    bytes_t result_of(int set) const {
        mxdnn::stream s(gpu());
        execute(s, weights[set]);
        s.wait();
        return read_memory(dst);
    }
    // What executions read, on the device.
    size_t bytes() const { return packed.get_size(); }
    void use(int set) const {
        ASSERT_EQ(cudaMemcpy(used.get_data_handle(), weights[set].get_data_handle(), bytes(),
                          cudaMemcpyDeviceToDevice),
                cudaSuccess);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
};

// What writes the second set of weights into the stream.
using writer_t = cudaError_t (*)(cudaStream_t, const problem_t &);
cudaError_t late_kernel(cudaStream_t s, const problem_t &p) {
    return write_late(s, p.used.get_data_handle(), p.weights[1].get_data_handle(), p.bytes(), 100);
}
cudaError_t copy(cudaStream_t s, const problem_t &p) {
    return cudaMemcpyAsync(
            p.used.get_data_handle(), p.weights[1].get_data_handle(), p.bytes(), cudaMemcpyDeviceToDevice, s);
}

void expect_order(const case_t &c, bool captured, writer_t write) {
    const problem_t p(c, false);
    SCOPED_TRACE(c.name + " " + p.pd.impl_info_str());
    std::cout << c.name << " " << p.pd.impl_info_str() << std::endl;
    const bytes_t old = p.result_of(0), want = p.result_of(1);
    ASSERT_NE(old, want);
    mxdnn::stream s(gpu());
    cudaStream_t cs = mxdnn::cuda_interop::get_stream(s);
    const auto put = [&] {
        p.execute(s); // the library's kernel that comes before
        CUDA_OK(write(cs, p));
        p.execute(s);
    };
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (captured) {
        CUDA_OK(cudaStreamBeginCapture(cs, cudaStreamCaptureModeGlobal));
        put();
        CUDA_OK(cudaStreamEndCapture(cs, &graph));
        CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    }
    for (int i = 0; i < 5; i++) {
        p.use(0);
        if (captured)
            CUDA_OK(cudaGraphLaunch(exec, cs));
        else
            put();
        s.wait();
        EXPECT_EQ(read_memory(p.dst), want) << "run " << i;
    }
    if (!captured) return;
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
}

TEST(cuda_stream_order, weights_of_a_kernel_that_lets_dependents_start_early) {
    for (const case_t &c : cases) expect_order(c, false, late_kernel);
}
TEST(cuda_stream_order, weights_of_such_a_kernel_in_a_graph) {
    for (const case_t &c : cases) expect_order(c, true, late_kernel);
}
TEST(cuda_stream_order, weights_of_a_copy) {
    for (const case_t &c : cases) expect_order(c, false, copy);
}
TEST(cuda_stream_order, weights_of_a_copy_in_a_graph) {
    for (const case_t &c : cases) expect_order(c, true, copy);
}

// The same bits, and in the order of the stream after the library's own kernels.
TEST(cuda_stream_order, constant_weights_that_are_packed_right_before) {
    for (const case_t &c : cases) {
        const problem_t p(c, true);
        SCOPED_TRACE(c.name + " " + p.pd.impl_info_str());
        const bytes_t want = problem_t(c, false).result_of(1);
        EXPECT_EQ(p.result_of(1), want);
        mxdnn::stream s(gpu());
        const mxdnn::mx_reorder pack = p.packer(c);
        const memory plain = problem_t::random_memory(problem_t::plain(c), 3);
        for (int i = 0; i < 5; i++) {
            p.use(0);
            p.execute(s);
            pack.execute(s, {{MXDNN_ARG_FROM, plain}, {MXDNN_ARG_TO, p.used}});
            p.execute(s);
            s.wait();
            EXPECT_EQ(read_memory(p.dst), want) << "run " << i;
        }
    }
}

} // namespace
