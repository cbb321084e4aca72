// SPDX-License-Identifier: Apache-2.0
// Executions of every primitive, whose arguments are zeros, for tests of what each implementation does
// besides computing.
#pragma once

#include "test_api_util.hpp"

namespace api_test {

using dim = memory::dim;

template <typename prim_t>
struct primitive_kind_t {
    using type = prim_t;
};

// visitor(primitive_kind_t<prim_t>, primitive descriptor, arguments)
template <typename visitor_t>
class executed_problems_t {
public:
    executed_problems_t(const mxdnn::engine &engine, const visitor_t &visitor)
        : eng(engine), visitor_(visitor) {}

    void all() {
        mx_matmul();
        mx_matmul_with_attributes();
        mx_reorder();
        grouped_matmul();
        grouped_matmul_backward_weights();
        moe();
    }

private:
    void mx_matmul() {
        constexpr dim K = 320, N = 96;
        for (const dim M : {1, 3, 70}) {
            auto pd = mxfp4_matmul(eng, M, K, N);
            visit<mxdnn::mx_matmul>(pd,
                    {{MXDNN_ARG_SRC, zeros({M, K}, dt::bf16)}, {MXDNN_ARG_WEIGHTS, zeros(pd.weights_desc())},
                            {MXDNN_ARG_DST, zeros({M, N}, dt::bf16)}});
        }
    }

    // An epilogue with all its parts, and a quantised source.
    void mx_matmul_with_attributes() {
        constexpr dim M = 40, K = 320, N = 128;
        mxdnn::primitive_attr attr = mxfp4_weights_attr();
        attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
        attr.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        mxdnn::post_ops po;
        const memory::desc row({1, N}, dt::f32, tag::ab);
        po.append_binary(mxdnn::algorithm::binary_mul, row);
        po.append_gated(mxdnn::algorithm::gated_swiglu_oai, 1.702f, 7.f, mxdnn::gated_layout::interleaved);
        po.append_eltwise(mxdnn::algorithm::eltwise_gelu_erf, 0.f, 0.f);
        attr.set_post_ops(po);
        const memory::desc src({M, K}, dt::f8_e4m3, tag::ab), bias({1, N}, dt::f32, tag::ab),
                dst({M, N / 2}, dt::f8_e4m3, tag::ab);
        mxdnn::mx_matmul::primitive_desc pd(
                eng, src, memory::desc({K, N}, dt::f4_e2m1, tag::any), bias, dst, attr);
        visit<mxdnn::mx_matmul>(
                pd, {{MXDNN_ARG_SRC, zeros(src)},
                            {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, zeros({M, K / 32}, dt::e8m0)},
                            {MXDNN_ARG_WEIGHTS, zeros(pd.weights_desc())}, {MXDNN_ARG_BIAS, zeros(bias)},
                            {MXDNN_ARG_ATTR_MULTIPLE_POST_OP(0) | MXDNN_ARG_SRC_1, zeros(row)},
                            {MXDNN_ARG_DST, zeros(dst)},
                            {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, zeros({M, N / 64}, dt::e8m0)}});
    }

    void mx_reorder() {
        constexpr dim K = 320, N = 96;
        const memory::desc plain({K, N}, dt::bf16, tag::ba),
                packed = mxfp4_matmul(eng, 1, K, N).weights_desc();
        using pd_t = mxdnn::mx_reorder::primitive_desc;
        visit<mxdnn::mx_reorder>(pd_t(eng, plain, eng, packed, mxfp4_quantise_attr()),
                {{MXDNN_ARG_FROM, zeros(plain)}, {MXDNN_ARG_TO, zeros(packed)}});
        visit<mxdnn::mx_reorder>(pd_t(eng, packed, eng, plain),
                {{MXDNN_ARG_FROM, zeros(packed)}, {MXDNN_ARG_TO, zeros(plain)}});
        const memory::desc other({K, N}, dt::f16, tag::ab);
        visit<mxdnn::mx_reorder>(pd_t(eng, plain, eng, packed, other, mxfp4_quantise_attr()),
                {{MXDNN_ARG_FROM, zeros(plain)}, {MXDNN_ARG_TO, zeros(packed)},
                        {MXDNN_ARG_DST_1, zeros(other)}});
        requantise(dt::f4_e2m1, dt::f8_e4m3);
        requantise(dt::f8_e4m3, dt::f4_e2m1);
    }

    // From one packed format to another.
    void requantise(dt from, dt to) {
        constexpr dim K = 512, N = 128;
        const auto packed = [&](dt type) {
            mxdnn::primitive_attr attr;
            attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
            return memory::desc::packed(eng, {K, N}, type, attr);
        };
        mxdnn::primitive_attr attr;
        attr.set_scales(MXDNN_ARG_DST, 3, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        visit<mxdnn::mx_reorder>(mxdnn::mx_reorder::primitive_desc(eng, packed(from), eng, packed(to), attr),
                {{MXDNN_ARG_FROM, zeros(packed(from))}, {MXDNN_ARG_TO, zeros(packed(to))}});
    }

    void grouped_matmul_backward_weights() {
        const memory x = zeros({9, 40}, dt::bf16), dy = zeros({9, 50}, dt::bf16);
        const memory::desc to({3, 40, 50}, dt::f32, tag::abc);
        visit<mxdnn::grouped_matmul_backward_weights>(
                mxdnn::grouped_matmul_backward_weights::primitive_desc(eng, x.get_desc(), dy.get_desc(), to),
                {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_DIFF_DST, dy}, {MXDNN_ARG_DIFF_WEIGHTS, zeros(to)},
                        {MXDNN_ARG_GROUP_OFFSETS, zeros({3}, dt::s32)}});
    }

    void moe() {
        constexpr dim T = 5, E = 40, k = 3, D = 64;
        const memory ids = zeros({T, k}, dt::s32), weights = zeros({T, k}, dt::f32),
                     order = zeros({T * k}, dt::s32), rows = zeros({T * k, D}, dt::bf16),
                     tokens = zeros({T, D}, dt::bf16);
        visit<mxdnn::moe_route>(
                mxdnn::moe_route::primitive_desc(eng, memory::desc({T, E}, dt::bf16, tag::ab), k,
                        mxdnn::algorithm::route_topk_softmax, mxdnn::moe_route::none, 1, 1),
                {{MXDNN_ARG_SRC, zeros({T, E}, dt::bf16)}, {MXDNN_ARG_TOPK_IDS, ids},
                        {MXDNN_ARG_TOPK_WEIGHTS, weights}, {MXDNN_ARG_ROW_ORDER, order}});
        const memory placed = zeros({8 * 8, D}, dt::bf16);
        visit<mxdnn::moe_permute>(
                mxdnn::moe_permute::primitive_desc(eng, rows.get_desc(), placed.get_desc(), 1, 4, 8),
                {{MXDNN_ARG_SRC, rows}, {MXDNN_ARG_GROUP_COUNTS, zeros({1, 4}, dt::s32)},
                        {MXDNN_ARG_DST, placed}, {MXDNN_ARG_GROUP_OFFSETS, zeros({4}, dt::s32)},
                        {MXDNN_ARG_PERMUTED_IDX, zeros({8 * 8}, dt::s32)}});
        visit<mxdnn::moe_unpermute>(
                mxdnn::moe_unpermute::primitive_desc(eng, rows.get_desc(), tokens.get_desc()),
                {{MXDNN_ARG_SRC, rows}, {MXDNN_ARG_PERMUTED_IDX, order}, {MXDNN_ARG_TOPK_WEIGHTS, weights},
                        {MXDNN_ARG_DST, tokens}});
    }

    void grouped_matmul() {
        constexpr dim R = 24, K = 64, N = 48, E = 3;
        mxdnn::primitive_attr attr;
        attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        const mxdnn::grouped_matmul::primitive_desc pd(eng, memory::desc({R, K}, dt::bf16, tag::ab),
                memory::desc({E, K, N}, dt::f4_e2m1, tag::any), memory::desc({R, N}, dt::bf16, tag::ab),
                attr);
        visit<mxdnn::grouped_matmul>(
                pd, {{MXDNN_ARG_SRC, zeros({R, K}, dt::bf16)}, {MXDNN_ARG_WEIGHTS, zeros(pd.weights_desc())},
                            {MXDNN_ARG_GROUP_OFFSETS, zeros({E}, dt::s32)},
                            {MXDNN_ARG_DST, zeros({R, N}, dt::bf16)}});
    }

    template <typename prim_t, typename pd_t>
    void visit(const pd_t &pd, const std::vector<std::pair<int, memory>> &args) {
        visitor_(primitive_kind_t<prim_t>(), pd, args);
    }
    memory zeros(const memory::desc &md) const {
        memory m(md, eng);
        std::memset(m.get_data_handle(), 0, md.get_size());
        return m;
    }
    memory zeros(const memory::dims &dims, dt type) const {
        return zeros(memory::desc(dims, type,
                dims.size() == 1   ? tag::a
                : dims.size() == 2 ? tag::ab
                                   : tag::abc));
    }

    mxdnn::engine eng;
    const visitor_t &visitor_;
};

template <typename visitor_t>
void for_each_execution(const mxdnn::engine &eng, const visitor_t &visitor) {
    executed_problems_t<visitor_t>(eng, visitor).all();
}

inline std::vector<mxdnn_exec_arg_t> in_c(const std::vector<std::pair<int, memory>> &args) {
    std::vector<mxdnn_exec_arg_t> list;
    list.reserve(args.size());
    for (const auto &a : args) list.push_back({a.first, a.second.get()});
    return list;
}

} // namespace api_test
