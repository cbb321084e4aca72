// SPDX-License-Identifier: Apache-2.0
// What linear and grouped_linear share: the primitive that is kept, and its key.
#pragma once

#include <optional>
#include <string>

#include "activation.hpp"
#include "failure.hpp"
#include "lru_cache.hpp"
#include "operations.hpp"
#include "weights.hpp"

namespace mxdnn_jax {

// A primitive, and what a call compares its buffers with.
struct matmul_t {
    mxdnn::memory::desc weights;
    mxdnn::memory::dim columns = 0; // of the result
    mxdnn::memory::desc scratchpad;
    mxdnn::primitive primitive;
};

// linear and grouped_linear keep so many each, of all devices. A model has as many as it has different
// layers.
constexpr size_t max_matmuls = 256;

inline std::optional<buffer_t> buffer_of(const rest_t &bias) {
    if (bias.size() == 0) return std::nullopt;
    if (bias.size() > 1)
        fail("behind the other arguments there are " + std::to_string(bias.size())
                + " more; there may be one, the bias");
    const auto buffer = bias.get<buffer_t>(0);
    if (!buffer) fail(buffer.error().message());
    return *buffer;
}

// All that a primitive depends on.
inline std::string key_of(const place_t &place, mxdnn::memory::dim rows, const buffer_t &x,
        const std::optional<buffer_t> &bias, const buffer_t &y, blob_t blob, std::string_view activation) {
    std::string key = std::to_string(place.id()) + " " + std::to_string(rows);
    for (const int type : {int(x.element_type()), bias ? int(bias->element_type()) : -1,
                 int(y.element_type()), int(activation.size())})
        key += " " + std::to_string(type);
    key.append(" ").append(activation);
    return key.append(reinterpret_cast<const char *>(blob.begin()), blob.size());
}

inline mxdnn::primitive_attr attributes_of(const place_t &place, const chosen_activation_t &activation) {
    mxdnn::primitive_attr attr;
    attr.set_post_ops(activation.post_ops());
    if (place.has_scratch()) attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
    return attr;
}

} // namespace mxdnn_jax
