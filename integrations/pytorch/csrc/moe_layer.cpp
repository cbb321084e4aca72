// SPDX-License-Identifier: Apache-2.0
// moe_layer: a whole expert layer. Routes tokens x [T, K], multiplies each by the gate_up weights [E, 2 I, K]
// of its experts, applies the activation, multiplies by the down weights [E, K, I], and sums the rows of a
// token.
#include "operators.hpp"

namespace mxdnn_torch {

Tensor moe_layer(const Tensor &x, const Tensor &logits, const Tensor &gate_up,
        const std::string &gate_up_blob, const Tensor &down, const std::string &down_blob, int64_t topk,
        const std::string &scoring, const std::string &activation, const std::optional<Tensor> &gate_up_bias,
        const std::optional<Tensor> &down_bias, bool renormalize, const std::optional<Tensor> &route_bias,
        int64_t expert_groups, int64_t topk_groups, bool group_max, double scale) {
    const view_t rows = view_of(x, "x"), scores = view_of(logits, "logits");
    if (rows.dims.size() != 2 || scores.dims.size() != 2 || rows.dims[0] != scores.dims[0])
        refuse("x has shape " + rows.shape() + " and logits have " + scores.shape()
                + "; both must have two dimensions, and a row for each token");
    expect_place(scores, "logits", rows.place);
    const auto [weights, ids, ends, tokens, order, row_weights, counts] = moe_route(
            logits, topk, scoring, renormalize, route_bias, expert_groups, topk_groups, group_max, scale);
    const Tensor hidden =
            grouped_linear_of_all_rows(x, gate_up, gate_up_blob, ends, gate_up_bias, activation, tokens);
    return grouped_linear(hidden, down, down_blob, ends, down_bias, "none", std::nullopt, tokens, row_weights,
            rows.dims[0]);
}

} // namespace mxdnn_torch
