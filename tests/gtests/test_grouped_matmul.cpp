// SPDX-License-Identifier: Apache-2.0
// grouped_matmul: every option against a loop over mx_matmul's own definition, written here over decoded
// weights; what may be passed, and what is refused.
#include <algorithm>

#include "test_api_util.hpp"

using namespace api_test;
using mxdnn::grouped_matmul;

namespace {

using dim = memory::dim;
constexpr dim E = 4, K = 64, N = 32;

// MXFP4 weights of E experts, packed, and the values that they stand for, [E][N][K].
struct experts_t {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream stream{eng};
    std::vector<float> values;
    memory packed;

    experts_t() {
        const std::vector<uint16_t> nk = random_bf16(size_t(E * K * N), 7);
        for (dim e = 0; e < E; e++) {
            const std::vector<uint16_t> one(nk.begin() + e * K * N, nk.begin() + (e + 1) * K * N);
            const std::vector<float> v = mxfp4_values(one, int(K), int(N));
            values.insert(values.end(), v.begin(), v.end());
        }
        packed = memory(describe(memory::desc::grouped({16, K}, dt::bf16, 0, E),
                                memory::desc::grouped({16, N}, dt::f32, 0, E))
                                .weights_desc(),
                eng);
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        q.set_scale_rounding(MXDNN_ARG_DST, mxdnn::scale_rounding::rceil);
        memory from(memory::desc({E, K, N}, dt::bf16, tag::acb), eng, const_cast<uint16_t *>(nk.data()));
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(eng, from.get_desc(), eng, packed.get_desc(), q))
                .execute(stream, from, packed);
    }

    grouped_matmul::primitive_desc describe(const memory::desc &src, const memory::desc &dst,
            mxdnn::primitive_attr a = mxdnn::primitive_attr()) const {
        a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        return grouped_matmul::primitive_desc(
                eng, src, memory::desc({E, K, N}, dt::f4_e2m1, tag::any), dst, a);
    }

    // The row of f64 sums of a source row under an expert.
    std::vector<double> sums(const std::vector<uint16_t> &x, dim row, dim e) const {
        std::vector<double> v(N);
        for (dim n = 0; n < N; n++)
            for (dim k = 0; k < K; k++)
                v[n] += double(from_bf16(x[size_t(row * K + k)]))
                        * double(values[size_t((e * N + n) * K + k)]);
        return v;
    }
};

const experts_t &experts() {
    static const experts_t x;
    return x;
}

memory ints(std::vector<int32_t> &v) {
    return memory(memory::desc({dim(v.size())}, dt::s32, tag::a), experts().eng, v.data());
}

TEST(grouped_matmul, ends_by_every_implementation) {
    const experts_t &w = experts();
    const dim rows = 19;
    std::vector<uint16_t> x = random_bf16(size_t(rows * K), 3);
    std::vector<int32_t> ends = {5, 5, 6, 17};
    auto pd = w.describe(memory::desc::grouped({runtime, K}, dt::bf16, 0, E),
            memory::desc::grouped({runtime, N}, dt::f32, 0, E));
    do {
        SCOPED_TRACE(pd.impl_info_str());
        std::vector<float> y(size_t(rows * N), -77.f);
        grouped_matmul(pd).execute(w.stream,
                {{MXDNN_ARG_SRC, memory(memory::desc::grouped({rows, K}, dt::bf16, 0, E), w.eng, x.data())},
                        {MXDNN_ARG_WEIGHTS, w.packed}, {MXDNN_ARG_GROUP_OFFSETS, ints(ends)},
                        {MXDNN_ARG_DST,
                                memory(memory::desc::grouped({rows, N}, dt::f32, 0, E), w.eng, y.data())}});
        for (dim r = 0; r < rows; r++) {
            const dim e = std::upper_bound(ends.begin(), ends.end(), int32_t(r)) - ends.begin();
            const std::vector<double> want = e < E ? w.sums(x, r, e) : std::vector<double>(N, -77.);
            for (dim n = 0; n < N; n++)
                EXPECT_NEAR(double(y[size_t(r * N + n)]), want[n], e < E ? 1e-4 : 0) << r << ", " << n;
        }
    } while (pd.next_impl());
}

} // namespace
