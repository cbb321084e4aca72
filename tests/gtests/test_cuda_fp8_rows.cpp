// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 that are quantised to f8_e4m3 while a grouped_matmul of many rows runs: the results are those
// of rows that were quantised before, bit by bit.
#include <algorithm>
#include <cmath>
#include <set>

#include "common/layouts/n64_f4.hpp"
#include "common/packed_desc.hpp"
#include "cuda_call.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"

using namespace cuda_test;
using namespace mxdnn::impl;
namespace plans = mxdnn::impl::cuda::packed;

namespace {

using sums = mxdnn::accumulation_mode;

constexpr memory::dim E = 128, K = 2720, N = 832;

mxdnn::grouped_matmul::primitive_desc make_pd(sums mode, dt src, memory::dim rows) {
    mxdnn::primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    attr.set_scales(MXDNN_ARG_SRC, 1, {}, dt::f32, false,
            src == dt::f8_e4m3 ? mxdnn::quantization_mode::static_sazp
                               : mxdnn::quantization_mode::dynamic_fp);
    attr.set_accumulation_mode(mode);
    return mxdnn::grouped_matmul::primitive_desc(gpu(), memory::desc({rows, K}, src, tag::ab),
            memory::desc({E, K, N}, dt::f4_e2m1, tag::any), memory::desc(),
            memory::desc({rows, N}, dt::bf16, tag::ab), attr);
}

// Any codes, and scales around 1.
bytes_t make_weights(const memory_desc_t &md) {
    bytes_t w(size_t(size_of(md)));
    std::mt19937 rng{5};
    for (uint8_t &byte : w) byte = uint8_t(rng());
    for (int64_t e = 0; e < E; e++) {
        const packed_view_t view{layout_of(md), shape_of(md), w.data() + e * md.packed.stride};
        for (int64_t n = 0; n < N; n++)
            for (int64_t k = 0; k < K; k += 32) view.set_scale(k, n, 118 + rng() % 6);
    }
    return w;
}

// Rows of bf16, the last of them of zeros, with NaN, of the smallest and of the largest numbers; and as
// f8_e4m3.
struct rows_t {
    bytes_t bf16, codes, scales;
    explicit rows_t(int64_t M) : bf16(size_t(M * K * 2)), codes(size_t(M * K)), scales(size_t(M * 4)) {
        std::mt19937 rng{7};
        std::vector<float> x(K);
        for (int64_t m = 0; m < M; m++) {
            const int64_t left = M - 1 - m;
            const uint32_t top = left == 0   ? 0
                                 : left == 2 ? 0x40
                                 : left == 3 ? 0x7F7F
                                             : 0x3F00 + rng() % 0x100;
            float most = 0;
            for (int64_t k = 0; k < K; k++) {
                uint32_t code = top ? top - rng() % std::min<uint32_t>(top, 0x500) : 0;
                if (left == 1 && k == 99) code = 0x7FC0;
                code |= rng() & 0x8000;
                std::memcpy(&bf16[size_t(m * K + k) * 2], &code, 2);
                x[size_t(k)] = float_of(code << 16);
                most = is_nan(most) || is_nan(x[size_t(k)]) ? float_of(f32_nan_bits)
                                                            : std::max(most, std::abs(x[size_t(k)]));
            }
            uint32_t bits;
            std::memcpy(&bits, &most, 4);
            const float scale = row_fp8_scale(bits);
            std::memcpy(&scales[size_t(m) * 4], &scale, 4);
            for (int64_t k = 0; k < K; k++)
                codes[size_t(m * K + k)] = uint8_t(row_fp8_quantize(x[size_t(k)], scale));
        }
    }
};

TEST(cuda_fp8_rows, rows_that_come_meanwhile) {
    const auto first = make_pd(sums::relaxed, dt::bf16, E);
    if (first.weights_desc().get()->packed.layout_id != n64_f4_t::id) GTEST_SKIP() << "not Hopper";
    const memory weights =
            make_memory(first.weights_desc(), gpu(), make_weights(*first.weights_desc().get()));
    std::set<int> variants;
    for (const int64_t rows_each : {72, 97, 128, 144, 210}) {
        const int64_t M = rows_each * E;
        const rows_t rows(M);
        std::vector<int32_t> ends(E);
        std::mt19937 rng{3};
        for (int64_t e = 0, end = 0; e < E; e++) {
            end = e == E - 1 ? M : std::min<int64_t>(M, end + rows_each + int(rng() % 17) - 8);
            ends[size_t(e)] = int32_t(end);
        }
        bytes_t bounds(E * 4);
        std::memcpy(bounds.data(), ends.data(), bounds.size());
        for (const sums mode : {sums::relaxed, sums::any}) {
            const auto plan = plans::plan_f4_matmul(M, N, E, 132, mode == sums::any);
            if (plans::plan_makers(plan, M, N, K, E, 132).ctas == 0) continue;
            if (!variants.insert(plan.shape).second) continue;
            SCOPED_TRACE(
                    std::to_string(M) + " rows, blocks of " + std::to_string(plans::f4_width(plan.shape)));
            const auto multiply = [&](dt src) {
                const auto pd = make_pd(mode, src, M);
                const memory out = make_memory(pd.dst_desc(), gpu(), bytes_t(pd.dst_desc().get_size(), 0xff));
                std::unordered_map<int, memory> args = {
                        {MXDNN_ARG_SRC,
                                make_memory(pd.src_desc(), gpu(), src == dt::bf16 ? rows.bf16 : rows.codes)},
                        {MXDNN_ARG_WEIGHTS, weights}, {MXDNN_ARG_DST, out},
                        {MXDNN_ARG_GROUP_OFFSETS,
                                make_memory(memory::desc({E}, dt::s32, tag::a), gpu(), bounds)}};
                if (src == dt::f8_e4m3)
                    args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                            make_memory(memory::desc({M, 1}, dt::f32, tag::ab), gpu(), rows.scales);
                mxdnn::stream stream(gpu());
                const mxdnn::grouped_matmul matmul(pd);
                for (int i = 0; i < 3; i++) matmul.execute(stream, args); // which must not meet each other
                stream.wait();
                return read_memory(out);
            };
            EXPECT_TRUE(multiply(dt::bf16) == multiply(dt::f8_e4m3));
        }
    }
    EXPECT_EQ(variants.size(), 6u); // all kernels that take such rows
}

} // namespace
