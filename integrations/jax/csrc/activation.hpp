// SPDX-License-Identifier: Apache-2.0
// What follows a product, by its name.
#pragma once

#include <string_view>

#include <mxdnn/mxdnn.hpp>

namespace mxdnn_jax {

struct activation_t {
    const char *name;
    mxdnn::algorithm algorithm;
    bool is_gated;     // columns become half as many
    float alpha, beta; // of a gated one: alpha, limit
};

// The row of a name, and where a gated one finds gate and up.
struct chosen_activation_t {
    const activation_t *row = nullptr; // null: none
    mxdnn::gated_layout layout = mxdnn::gated_layout::halves;

    mxdnn::post_ops post_ops() const;
    mxdnn::memory::dim columns(mxdnn::memory::dim N) const { return row && row->is_gated ? N / 2 : N; }
};

// "" is none; "NAME", or "NAME:halves" and "NAME:interleaved" of gated ones. Throws where there is no such
// name.
chosen_activation_t find_activation(std::string_view text);

} // namespace mxdnn_jax
