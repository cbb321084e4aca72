// SPDX-License-Identifier: Apache-2.0
#include "activation.hpp"

#include <string>

#include "failure.hpp"

namespace mxdnn_jax {

using mxdnn::algorithm;

namespace {

// Alpha and limit of swiglu_oai are those of gpt-oss.
constexpr activation_t activations[] = {
        {"relu", algorithm::eltwise_relu, false, 0.f, 0.f},
        {"relu2", algorithm::eltwise_relu2, false, 0.f, 0.f},
        {"tanh", algorithm::eltwise_tanh, false, 0.f, 0.f},
        {"logistic", algorithm::eltwise_logistic, false, 0.f, 0.f},
        {"swish", algorithm::eltwise_swish, false, 1.f, 0.f},
        {"gelu_tanh", algorithm::eltwise_gelu_tanh, false, 0.f, 0.f},
        {"gelu_erf", algorithm::eltwise_gelu_erf, false, 0.f, 0.f},
        {"silu", algorithm::gated_silu, true, 0.f, 0.f},
        {"geglu_tanh", algorithm::gated_gelu_tanh, true, 0.f, 0.f},
        {"geglu_erf", algorithm::gated_gelu_erf, true, 0.f, 0.f},
        {"swiglu_oai", algorithm::gated_swiglu_oai, true, 1.702f, 7.f},
};

constexpr struct {
    const char *name;
    mxdnn::gated_layout layout;
} gated_layouts[] = {
        {"halves", mxdnn::gated_layout::halves},
        {"interleaved", mxdnn::gated_layout::interleaved},
};

} // namespace

chosen_activation_t find_activation(std::string_view text) {
    if (text.empty()) return {};
    const size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    std::string known;
    for (const activation_t &row : activations) {
        known += std::string(known.empty() ? "" : ", ") + row.name;
        if (name != row.name) continue;
        if (!row.is_gated && colon == text.npos) return {&row};
        for (const auto &l : gated_layouts)
            if (row.is_gated && colon != text.npos && text.substr(colon + 1) == l.name)
                return {&row, l.layout};
        fail("activation '" + std::string(text)
                + "': a gated one ends in ':halves' or ':interleaved', no other does");
    }
    fail("there is no activation '" + std::string(name) + "'; known are " + known);
}

mxdnn::post_ops chosen_activation_t::post_ops() const {
    mxdnn::post_ops ops;
    if (row && row->is_gated)
        ops.append_gated(row->algorithm, row->alpha, row->beta, layout);
    else if (row)
        ops.append_eltwise(row->algorithm, row->alpha, row->beta);
    return ops;
}

} // namespace mxdnn_jax
