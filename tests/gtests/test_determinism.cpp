// SPDX-License-Identifier: Apache-2.0
// The same problem gives the same bits on every execution and for any number of threads, with and without the
// attribute. The same holds for packing.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "test_api_util.hpp"

using namespace api_test;

namespace {

using dim = memory::dim;
using mxdnn::quantization_mode;

struct format_t {
    const char *name;
    dt elem, scale;
    dim block;
    quantization_mode mode;
    bool zeros;
};
const format_t formats[] = {
        {"mxfp4", dt::f4_e2m1, dt::e8m0, 32, quantization_mode::dynamic_mx, false},
        {"nvfp4", dt::f4_e2m1, dt::f8_e4m3, 16, quantization_mode::dynamic_fp, false},
        {"int4", dt::s4, dt::bf16, 32, quantization_mode::dynamic_affine, false},
        {"u4 with zero points", dt::u4, dt::bf16, 64, quantization_mode::dynamic_affine, true},
        {"mxfp8", dt::f8_e4m3, dt::e8m0, 32, quantization_mode::dynamic_mx, false},
};
const dim Ms[] = {1, 3, 17, 70};
// Few and many columns, and K with and without a tail; the last ones are large enough to be divided among
// threads.
const struct { dim K, N; } weights_shapes[] = {{64, 16}, {97, 50}, {200, 130}, {517, 400}, {1056, 262}};
const int threads[] = {1, 2, 3, 7};

std::vector<uint8_t> bytes_of(const memory &m) {
    const auto *p = static_cast<const uint8_t *>(m.get_data_handle());
    return {p, p + m.get_desc().get_size()};
}

struct problem_t {
    const format_t &f;
    dim M, K, N;
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream stream{eng};

    std::string text() const {
        return std::string(f.name) + " " + std::to_string(M) + "x" + std::to_string(K) + ":"
               + std::to_string(K) + "x" + std::to_string(N);
    }

    void describe(mxdnn::primitive_attr &a, int arg, quantization_mode mode) const {
        a.set_scales(arg, 3, {f.block, 1}, f.scale, false, mode);
        if (f.zeros) a.set_zero_points(arg, 3, {f.block, 1});
    }

    memory pack(const std::vector<uint16_t> &nk) const {
        mxdnn::primitive_attr wei, a;
        describe(wei, MXDNN_ARG_WEIGHTS, quantization_mode::static_sazp);
        describe(a, MXDNN_ARG_DST, f.mode);
        const memory::desc md = mxdnn::mx_matmul::primitive_desc(eng,
                memory::desc({runtime, K}, dt::f32, tag::ab), memory::desc({K, N}, f.elem, tag::any),
                memory::desc({runtime, N}, dt::f32, tag::ab), wei)
                                        .weights_desc();
        memory from(memory::desc({K, N}, dt::bf16, tag::ba), eng, const_cast<uint16_t *>(nk.data())),
                to(md, eng);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, from.get_desc(), eng, md, a))
                .execute(stream, from, to);
        return to;
    }

    // Results of every implementation, by its name, each run twice.
    void run(const memory &packed, const std::vector<uint16_t> &x, dt src, bool gated, bool asked,
            std::map<std::string, std::vector<uint8_t>> &first, const std::string &how) const {
        const memory::desc src_md({M, K}, src, tag::ab), dst_md({M, gated ? N / 2 : N}, src, tag::ab);
        std::vector<float> wide(x.size()), bias(size_t(N), 0.f);
        for (size_t i = 0; i < x.size(); i++) wide[i] = from_bf16(x[i]);
        for (size_t i = 0; i < bias.size(); i++) bias[i] = float(i % 11) / 7 - 0.5f;
        mxdnn::primitive_attr a;
        a.set_deterministic(asked);
        if (gated) {
            mxdnn::post_ops ops;
            ops.append_gated(
                    mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
            a.set_post_ops(ops);
        }
        const memory::desc bias_md({1, N}, dt::f32, tag::ab);
        mxdnn::mx_matmul::primitive_desc pd(eng, src_md, packed.get_desc(), bias_md, dst_md, a);
        do {
            const std::string impl = pd.impl_info_str();
            if (impl == "ref:any" && M * K * N > 500000) continue; // it is slow
            const mxdnn::mx_matmul prim(pd);
            for (int repeat = 0; repeat < 2; repeat++) {
                std::vector<uint8_t> dst(dst_md.get_size(), 0xff);
                prim.execute(
                        stream, {{MXDNN_ARG_SRC, memory(src_md, eng,
                                                         src == dt::f32 ? static_cast<void *>(wide.data())
                                                                        : const_cast<uint16_t *>(x.data()))},
                                        {MXDNN_ARG_WEIGHTS, packed},
                                        {MXDNN_ARG_BIAS, memory(bias_md, eng, bias.data())},
                                        {MXDNN_ARG_DST, memory(dst_md, eng, dst.data())}});
                const auto known = first.emplace(impl, dst).first;
                if (known->second == dst) continue;
                size_t i = 0;
                while (known->second[i] == dst[i]) i++;
                ADD_FAILURE() << impl << ", " << text() << (gated ? ", gated" : "") << ", " << how
                              << ", execution " << repeat << ": byte " << i
                              << " of the result differs from that of one thread";
            }
        } while (pd.next_impl());
    }
};

// `few`: only the larger weights, and bf16.
void check(const format_t &f, bool gated, bool asked, bool few = false) {
    const restore_threads_t restore;
    for (const auto &s : weights_shapes) {
        if (few && s.N < 100) continue;
        const std::vector<uint16_t> nk = random_bf16(size_t(s.K * s.N), unsigned(s.K * 1000 + s.N));
        std::vector<uint8_t> packed_first;
        // [M][f32, bf16]: what each implementation gave with one thread.
        std::map<std::pair<dim, dt>, std::map<std::string, std::vector<uint8_t>>> first;
        for (int n : threads) {
            ASSERT_EQ(mxdnn::set_max_concurrency(n), mxdnn::status::success);
            const memory packed = problem_t{f, 1, s.K, s.N}.pack(nk);
            if (packed_first.empty()) packed_first = bytes_of(packed);
            EXPECT_TRUE(bytes_of(packed) == packed_first) << f.name << " packed by " << n << " threads";
            for (dim M : Ms) {
                const std::vector<uint16_t> x = random_bf16(size_t(M * s.K), unsigned(M));
                for (dt src : {dt::f32, dt::bf16}) {
                    if (src == dt::bf16 ? M == 1 || M == 17 : few) continue;
                    problem_t{f, M, s.K, s.N}.run(
                            packed, x, src, gated, asked, first[{M, src}], std::to_string(n) + " threads");
                }
            }
        }
    }
}

TEST(determinism, any_number_of_threads) {
    for (const format_t &f : formats) check(f, false, false);
}

TEST(determinism, gated_and_asked_for) {
    for (const format_t &f : {formats[0], formats[3]}) check(f, true, true, true);
}

// A batch gives the bits of its matrices one by one, for any number of threads.
void check_batch(const format_t &f, dim batch, dim M, dim K, dim N, bool shared) {
    SCOPED_TRACE(std::string(f.name) + " " + std::to_string(batch) + "x" + std::to_string(M) + "x"
                 + std::to_string(K) + "x" + std::to_string(N) + (shared ? ", one matrix of weights" : ""));
    const restore_threads_t restore;
    const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
    mxdnn::stream s(eng);
    const dim wei_batch = shared ? 1 : batch;
    mxdnn::primitive_attr wei, q;
    for (auto *a : {&wei, &q}) {
        const int arg = a == &wei ? MXDNN_ARG_WEIGHTS : MXDNN_ARG_DST;
        a->set_scales(
                arg, 7, {f.block, 1}, f.scale, false, a == &wei ? quantization_mode::static_sazp : f.mode);
        if (f.zeros) a->set_zero_points(arg, 7, {f.block, 1});
    }
    const memory::desc src_md({batch, M, K}, dt::bf16, tag::abc), dst_md({batch, M, N}, dt::f32, tag::abc);
    std::vector<uint16_t> x = random_bf16(size_t(batch * M * K), 3),
                          nk = random_bf16(size_t(wei_batch * N * K), 4);
    std::map<std::string, std::vector<uint8_t>> first;
    for (int n : {1, 2, 3, 7}) {
        ASSERT_EQ(mxdnn::set_max_concurrency(n), mxdnn::status::success);
        mxdnn::mx_matmul::primitive_desc pd(
                eng, src_md, memory::desc({wei_batch, K, N}, f.elem, tag::any), dst_md, wei);
        const memory from(memory::desc({wei_batch, K, N}, dt::bf16, tag::acb), eng, nk.data());
        const memory to(pd.weights_desc(), eng);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, from.get_desc(), eng, to.get_desc(), q))
                .execute(s, from, to);
        do {
            const std::string impl = pd.impl_info_str();
            std::vector<uint8_t> dst(dst_md.get_size(), 0xff);
            mxdnn::mx_matmul(pd).execute(
                    s, {{MXDNN_ARG_SRC, memory(src_md, eng, x.data())}, {MXDNN_ARG_WEIGHTS, to},
                               {MXDNN_ARG_DST, memory(dst_md, eng, dst.data())}});
            if (impl != "ref:any" || n == 1) {
                EXPECT_TRUE(first.emplace(impl, dst).first->second == dst) << impl << ", " << n << " threads";
            }
        } while (pd.next_impl());
        if (n > 1) continue;
        // One by one.
        const auto stride = size_t(to.get_desc().get_size() / size_t(wei_batch));
        for (dim b = 0; b < batch; b++) {
            const memory::desc one_src({1, M, K}, dt::bf16, tag::abc), one_dst({1, M, N}, dt::f32, tag::abc);
            mxdnn::mx_matmul::primitive_desc one(
                    eng, one_src, memory::desc({1, K, N}, f.elem, tag::any), one_dst, wei);
            const memory::desc one_wei = one.weights_desc();
            ASSERT_EQ(one_wei.get_size(), stride);
            auto *packed = static_cast<uint8_t *>(to.get_data_handle()) + (shared ? 0 : size_t(b) * stride);
            std::vector<uint8_t> dst(one_dst.get_size(), 0xff);
            const std::string impl = one.impl_info_str();
            mxdnn::mx_matmul(one).execute(s, {{MXDNN_ARG_SRC, memory(one_src, eng, x.data() + b * M * K)},
                                                     {MXDNN_ARG_WEIGHTS, memory(one_wei, eng, packed)},
                                                     {MXDNN_ARG_DST, memory(one_dst, eng, dst.data())}});
            const std::vector<uint8_t> &all = first.at(impl);
            EXPECT_TRUE(std::equal(dst.begin(), dst.end(), all.begin() + b * dim(dst.size())))
                    << impl << ", matrix " << b;
        }
    }
}

TEST(determinism, batches_are_shared_by_threads) {
    for (const format_t &f : {formats[0], formats[3]})
        for (bool shared : {false, true})
            for (dim M : {1, 5, 70}) {
                check_batch(f, 9, M, 64, 50, shared);
                check_batch(f, 2, M, 200, 130, shared);
                check_batch(f, 5, M, 1056, 98, shared);
            }
}

} // namespace
