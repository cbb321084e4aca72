// SPDX-License-Identifier: Apache-2.0
#include "routing.hpp"

namespace llm {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

routing_t::routing_t(engine_t &engine, int64_t experts, int64_t topk, int64_t intermediate, int64_t max_rows)
    : engine_(engine), experts_(experts), topk_(topk), max_rows_(max_rows * topk) {
    const size_t rows = size_t(max_rows_);
    ends_bytes_ = engine.allocate(size_t(experts) * 4);
    token_bytes_ = engine.allocate(rows * 4);
    weight_bytes_ = engine.allocate(rows * 4);
    ids_bytes_ = engine.allocate(rows * 4);
    weights_bytes_ = engine.allocate(rows * 4);
    hidden_ = engine.allocate(rows * size_t(intermediate) * engine.activation_size());
    ends = memory({{experts}, dt::s32, tag::a}, engine.engine(), ends_bytes_.as<void>());
    route_ = moe_route(moe_route::primitive_desc(engine.engine(),
            memory::desc({MXDNN_RUNTIME_DIM_VAL, experts}, dt::f32, tag::ab), topk,
            algorithm::route_topk_softmax, moe_route::none, 1, 1));
}

void routing_t::run(int64_t rows, const float *logits) {
    if (rows != rows_) {
        const engine &e = engine_.engine();
        logits_ = memory({{rows, experts_}, dt::f32, tag::ab}, e, MXDNN_MEMORY_NONE);
        ids_ = memory({{rows, topk_}, dt::s32, tag::ab}, e, ids_bytes_.as<void>());
        weights_ = memory({{rows, topk_}, dt::f32, tag::ab}, e, weights_bytes_.as<void>());
        token_of_row = memory({{rows * topk_}, dt::s32, tag::a}, e, token_bytes_.as<void>());
        weight_of_row = memory({{rows * topk_}, dt::f32, tag::a}, e, weight_bytes_.as<void>());
        rows_ = rows;
    }
    logits_.set_data_handle(const_cast<float *>(logits));
    route_.execute(engine_.stream(),
            {{MXDNN_ARG_SRC, logits_}, {MXDNN_ARG_TOPK_IDS, ids_}, {MXDNN_ARG_TOPK_WEIGHTS, weights_},
                    {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_GATHER_IDX, token_of_row},
                    {MXDNN_ARG_ROW_WEIGHTS, weight_of_row}});
}

int64_t routing_t::chosen() const {
    std::vector<int32_t> all(static_cast<size_t>(experts_));
    engine_.read(all.data(), ends.get_data_handle(), all.size() * 4);
    int64_t count = 0;
    int32_t last = 0;
    for (const int32_t end : all) count += end > last, last = end;
    return count;
}

} // namespace llm
