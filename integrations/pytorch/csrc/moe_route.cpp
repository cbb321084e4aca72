// SPDX-License-Identifier: Apache-2.0
// moe_route: router logits [T, E] to the experts of each token, their weights, and the rows of each expert.
#include "call.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

using mxdnn::algorithm;
using tag = mxdnn::memory::format_tag;

namespace {

algorithm scoring_of_word(const std::string &word) {
    if (word == "softmax_topk") return algorithm::route_softmax_topk;
    if (word == "topk_softmax") return algorithm::route_topk_softmax;
    if (word == "sigmoid") return algorithm::route_sigmoid;
    refuse("scoring is '" + word + "'; it must be one of softmax_topk, topk_softmax, sigmoid");
}

} // namespace

route_t moe_route(const Tensor &logits, int64_t topk, const std::string &scoring, bool renormalize,
        const std::optional<Tensor> &bias, int64_t expert_groups, int64_t topk_groups, bool group_max,
        double scale) {
    const view_t src = view_of(logits, "logits");
    if (src.dims.size() != 2) refuse("logits have shape " + src.shape() + "; they must be [tokens, experts]");
    high_precision(src, "logits");
    const algorithm alg = scoring_of_word(scoring);
    const int64_t T = src.dims[0], E = src.dims[1];
    if (topk < 1 || topk > E)
        refuse("topk is " + std::to_string(topk) + "; it must be from 1 to " + std::to_string(E)
                + ", the number of experts");
    if (T * topk >= (int64_t(1) << 31)) refuse("tokens times topk are more than 2147483647 rows");
    const place_t &place = src.place;
    view_t addend;
    if (bias) {
        addend = view_of(*bias, "bias");
        expect_type(addend, "bias", ScalarType::Float);
        expect_dims(addend, "bias", {E});
        expect_place(addend, "bias", place);
        expect_contiguous(addend, "bias");
    }
    const int64_t R = T * topk;
    const Tensor ids = make_tensor({T, topk}, ScalarType::Int, place);
    const Tensor weights = make_tensor({T, topk}, ScalarType::Float, place);
    const Tensor counts = make_tensor({E}, ScalarType::Int, place),
                 ends = make_tensor({E}, ScalarType::Int, place);
    const Tensor gather = make_tensor({R}, ScalarType::Int, place),
                 order = make_tensor({R}, ScalarType::Int, place);
    const Tensor row_weights = make_tensor({R}, ScalarType::Float, place);
    if (T == 0) {
        for (const Tensor &t : {counts, ends}) STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(t.get()));
        return {weights, ids, ends, gather, order, row_weights, counts};
    }

    const mxdnn::engine &engine = engine_of(place);
    const float factor = static_cast<float>(scale);
    key_t key("moe_route");
    key.add(src).add(topk).add(static_cast<int64_t>(alg)).add(renormalize).add(bias.has_value());
    key.add(expert_groups).add(topk_groups).add(group_max).add(torch_threads());
    key.add_text(std::string(reinterpret_cast<const char *>(&factor), sizeof(factor)));
    call_t &call = find_call(key, [&] {
        const unsigned flags = (renormalize ? mxdnn::moe_route::renormalize : 0u)
                               | (bias ? mxdnn::moe_route::bias : 0u)
                               | (group_max ? mxdnn::moe_route::group_max : 0u);
        mxdnn::primitive_attr attr = attributes_for(place);
        if (factor != 1.f) {
            mxdnn::post_ops ops;
            ops.append_eltwise(algorithm::eltwise_linear, factor, 0.f);
            attr.set_post_ops(ops);
        }
        const mxdnn::memory::desc logits_desc({T, E}, high_precision(src, "logits"), src.strides);
        const thread_count_scope_t threads(torch_threads());
        const mxdnn::moe_route::primitive_desc pd(
                engine, logits_desc, topk, alg, flags, expert_groups, topk_groups, attr);
        const auto vector = [](int64_t n, dt type) { return mxdnn::memory::desc({n}, type, tag::a); };
        std::vector<call_t::argument_t> arguments = {{MXDNN_ARG_SRC, logits_desc},
                {MXDNN_ARG_TOPK_IDS, mxdnn::memory::desc({T, topk}, dt::s32, tag::ab)},
                {MXDNN_ARG_TOPK_WEIGHTS, mxdnn::memory::desc({T, topk}, dt::f32, tag::ab)},
                {MXDNN_ARG_GROUP_COUNTS, vector(E, dt::s32)}, {MXDNN_ARG_GROUP_OFFSETS, vector(E, dt::s32)},
                {MXDNN_ARG_GATHER_IDX, vector(R, dt::s32)}, {MXDNN_ARG_ROW_ORDER, vector(R, dt::s32)},
                {MXDNN_ARG_ROW_WEIGHTS, vector(R, dt::f32)}};
        if (bias) arguments.push_back({MXDNN_ARG_ROUTE_BIAS, vector(E, dt::f32)});
        return call_t(pd, arguments, engine);
    });
    void *const pointers[] = {src.data, ids.data_ptr(), weights.data_ptr(), counts.data_ptr(),
            ends.data_ptr(), gather.data_ptr(), order.data_ptr(), row_weights.data_ptr(), addend.data};
    call.run(stream_of(engine, place), place, pointers, bias ? 9 : 8);
    return {weights, ids, ends, gather, order, row_weights, counts};
}

} // namespace mxdnn_torch
