// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/peer.hpp"

#if MXDNN_HAVE_ONEDNN
#include <cstring>
#include <memory>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <vector>
#endif

namespace bench {

#if MXDNN_HAVE_ONEDNN

namespace {

struct onednn_matmul_t {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    dnnl::matmul primitive;
    dnnl::memory src, bias, dst;
    std::vector<dnnl::memory> weights;
    size_t next = 0;
    int threads = 1;

    void run() {
        omp_set_num_threads(threads);
        std::unordered_map<int, dnnl::memory> args = {
                {DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights[next]}, {DNNL_ARG_DST, dst}};
        if (bias) args[DNNL_ARG_BIAS] = bias;
        primitive.execute(stream, args);
        stream.wait();
        next = (next + 1) % weights.size();
    }
};

// Random values: multiplying zeros is faster than multiplying data on some machines.
void fill(dnnl::memory &m, bool bf16) {
    std::mt19937 rng(7);
    std::uniform_real_distribution<float> value(-1, 1);
    const size_t n = m.get_desc().get_size() / (bf16 ? 2 : 4);
    if (bf16) {
        uint16_t *p = static_cast<uint16_t *>(m.get_data_handle());
        for (size_t i = 0; i < n; i++) {
            const float f = value(rng);
            uint32_t u;
            __builtin_memcpy(&u, &f, 4);
            p[i] = uint16_t(u >> 16);
        }
    } else {
        float *p = static_cast<float *>(m.get_data_handle());
        for (size_t i = 0; i < n; i++) p[i] = value(rng);
    }
}

} // namespace

peer_t make_onednn_matmul(
        int64_t batch, int64_t M, int64_t K, int64_t N, bool bias, int threads, int copies) {
    using dt = dnnl::memory::data_type;
    using tag = dnnl::memory::format_tag;
    for (const dt type : {dt::bf16, dt::f32}) {
        try {
            omp_set_num_threads(threads);
            auto m = std::make_shared<onednn_matmul_t>();
            m->threads = threads;
            const bool flat = batch == 1;
            const auto desc = [&](int64_t rows, int64_t cols, dt t, bool any) {
                const dnnl::memory::dims d =
                        flat ? dnnl::memory::dims{rows, cols} : dnnl::memory::dims{batch, rows, cols};
                return dnnl::memory::desc(d, t, any ? tag::any : flat ? tag::ab : tag::abc);
            };
            dnnl::memory::desc b = flat ? dnnl::memory::desc({1, N}, dt::f32, tag::ab)
                                        : dnnl::memory::desc({1, 1, N}, dt::f32, tag::abc);
            const auto src = desc(M, K, type, false), wei = desc(K, N, type, true),
                       dst = desc(M, N, type, false);
            const auto pd = bias ? dnnl::matmul::primitive_desc(m->engine, src, wei, b, dst)
                                 : dnnl::matmul::primitive_desc(m->engine, src, wei, dst);
            // Its own reference loops are no peer.
            if (std::string(pd.impl_info_str()).find("ref") != std::string::npos) continue;
            m->primitive = dnnl::matmul(pd);
            m->src = dnnl::memory(pd.src_desc(), m->engine);
            m->dst = dnnl::memory(pd.dst_desc(), m->engine);
            fill(m->src, type == dt::bf16);
            if (bias) {
                m->bias = dnnl::memory(b, m->engine);
                fill(m->bias, false);
            }
            for (int i = 0; i < copies; i++) {
                m->weights.emplace_back(pd.weights_desc(), m->engine);
                dnnl::memory &last = m->weights.back(), &first = m->weights.front();
                if (i == 0)
                    fill(first, type == dt::bf16);
                else
                    std::memcpy(last.get_data_handle(), first.get_data_handle(), last.get_desc().get_size());
            }
            return {[m] { m->run(); }, type == dt::bf16 ? "onednn:bf16" : "onednn:f32"};
        } catch (const dnnl::error &) {
            continue; // this machine's oneDNN lacks the type
        }
    }
    return {nullptr, "onednn:none"};
}

#else

peer_t make_onednn_matmul(int64_t, int64_t, int64_t, int64_t, bool, int, int) {
    return {nullptr, "onednn:not-built"};
}

#endif

} // namespace bench
