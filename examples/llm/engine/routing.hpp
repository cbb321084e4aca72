// SPDX-License-Identifier: Apache-2.0
// From router logits to the rows of each expert, by mxdnn's moe_route; and the memory that expert layers work
// in, which all layers share.
#pragma once

#include "engine.hpp"

namespace llm {

class routing_t {
public:
    routing_t(engine_t &engine, int64_t experts, int64_t topk, int64_t intermediate, int64_t max_rows);

    // Routes `rows` tokens. What follows belongs to the last call.
    void run(int64_t rows, const float *logits);

    // Experts that have rows.
    int64_t chosen() const;

    // Of tokens and their experts, in a call.
    int64_t max_rows() const { return max_rows_; }
    mxdnn::memory ends, token_of_row, weight_of_row;    // for each row of a token and one of its experts
    void *hidden() const { return hidden_.as<void>(); } // [rows * topk, intermediate], activation type

private:
    engine_t &engine_;
    const int64_t experts_, topk_, max_rows_;
    mxdnn::moe_route route_;
    buffer_t ends_bytes_, token_bytes_, weight_bytes_, ids_bytes_, weights_bytes_, hidden_;
    mxdnn::memory logits_, ids_, weights_;
    int64_t rows_ = -1;
};

} // namespace llm
