// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of grouped_matmul: experts with known values, and executions by every implementation.
#pragma once

#include <functional>
#include <unordered_map>

#include "test_api_util.hpp"

namespace api_test {

using mxdnn::grouped_matmul;
using dim = memory::dim;
using args_t = std::unordered_map<int, memory>;

inline const mxdnn::engine &cpu() {
    static const mxdnn::engine e(mxdnn::engine::kind::cpu, 0);
    return e;
}

inline memory ints(std::vector<int32_t> &v) {
    return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), cpu(), v.data());
}
inline memory floats(std::vector<float> &v) {
    return memory(memory::desc({dim(v.size())}, dt::f32, tag::a), cpu(), v.data());
}
inline memory::desc rows_of(dim rows, dim width, dt type) {
    return memory::desc({rows, width}, type, tag::ab);
}

// MXFP4 weights of E experts, packed, and the values that they stand for, [E][N][K].
struct experts_t {
    dim E, K, N;
    mxdnn::stream stream{cpu()};
    std::vector<float> values;
    memory packed;

    experts_t(dim e, dim k, dim n, int nan_expert = -1) : E(e), K(k), N(n) {
        const std::vector<uint16_t> nk = random_bf16(size_t(E * K * N), 7);
        for (dim i = 0; i < E; i++) {
            const std::vector<uint16_t> one(nk.begin() + i * K * N, nk.begin() + (i + 1) * K * N);
            const std::vector<float> v = mxfp4_values(one, int(K), int(N));
            values.insert(values.end(), v.begin(), v.end());
        }
        std::vector<uint16_t> from = nk;
        if (nan_expert >= 0) from[size_t(nan_expert * K * N + 3 * K + 1)] = 0x7fc0; // column 3
        packed = memory(describe().weights_desc(), cpu());
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        q.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
        memory plain(memory::desc({E, K, N}, dt::bf16, tag::acb), cpu(), from.data());
        mxdnn::mx_reorder(
                mxdnn::mx_reorder::primitive_desc(cpu(), plain.get_desc(), cpu(), packed.get_desc(), q))
                .execute(stream, plain, packed);
    }

    // f32 results of a bf16 source.
    grouped_matmul::primitive_desc describe(mxdnn::primitive_attr a = {}, dim dst_columns = 0,
            dim rows = runtime, dt src = dt::bf16, const memory::desc &bias = {}) const {
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        return grouped_matmul::primitive_desc(cpu(), rows_of(rows, K, src),
                memory::desc({E, K, N}, dt::f4_e2m1, tag::any), bias,
                rows_of(rows, dst_columns ? dst_columns : N, dt::f32), a);
    }

    double exact(const std::vector<uint16_t> &x, dim row, dim e, dim n) const {
        double v = 0;
        for (dim k = 0; k < K; k++)
            v += double(from_bf16(x[size_t(row * K + k)])) * double(values[size_t((e * N + n) * K + k)]);
        return v;
    }
    // Bound of a sum: (K + 16) roundings of terms of these sizes, and the storing.
    double bound(const std::vector<uint16_t> &x, dim row, dim e, dim n) const {
        double size = 0;
        for (dim k = 0; k < K; k++)
            size += std::fabs(
                    double(from_bf16(x[size_t(row * K + k)])) * double(values[size_t((e * N + n) * K + k)]));
        return double(K + 18) * 0x1p-24 * size + 0x1p-120;
    }
};

inline const experts_t &four() {
    static const experts_t x(4, 64, 48);
    return x;
}

constexpr float unwritten = -77.25f;

// Executes with a poisoned destination and returns it.
inline std::vector<float> run(const experts_t &w, const grouped_matmul::primitive_desc &pd, args_t args,
        const std::vector<uint16_t> &x, dim dst_rows, dim columns = 0) {
    columns = columns ? columns : w.N;
    std::vector<float> y(size_t(dst_rows * columns), unwritten);
    if (!args.count(MXDNN_ARG_WEIGHTS) && !args.count(MXDNN_ARG_WEIGHTS_PTRS))
        args[MXDNN_ARG_WEIGHTS] = w.packed;
    args[MXDNN_ARG_SRC] =
            memory(rows_of(dim(x.size()) / w.K, w.K, dt::bf16), cpu(), const_cast<uint16_t *>(x.data()));
    args[MXDNN_ARG_DST] = memory(rows_of(dst_rows, columns, dt::f32), cpu(), y.data());
    grouped_matmul(pd).execute(w.stream, args);
    return y;
}

inline void by_every_implementation(grouped_matmul::primitive_desc pd,
        const std::function<void(const grouped_matmul::primitive_desc &)> &body) {
    std::string impl;
    do {
        impl = pd.impl_info_str();
        SCOPED_TRACE(impl);
        body(pd);
    } while (pd.next_impl());
    EXPECT_EQ(impl, "ref:any");
}

inline bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline mxdnn::primitive_attr grouped_by(mxdnn::row_grouping grouping) {
    mxdnn::primitive_attr a;
    a.set_row_grouping(grouping);
    return a;
}

} // namespace api_test
