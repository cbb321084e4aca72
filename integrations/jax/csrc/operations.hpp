// SPDX-License-Identifier: Apache-2.0
// What the custom calls compute, wherever they run. Each one checks every buffer before it reads or writes,
// and throws mxdnn::error.
#pragma once

#include <cstdint>
#include <string_view>

#include "arguments.hpp"

namespace mxdnn_jax {

using blob_t = xla::ffi::Span<const uint8_t>;
using rest_t = xla::ffi::RemainingArgs; // nothing, or one buffer
using result_t = xla::ffi::Result<buffer_t>;

// y[.., columns] = activation(x[.., K] * weights[K, N] + bias[N])
void linear(place_t &place, buffer_t x, buffer_t packed, rest_t bias, result_t y, blob_t blob,
        std::string_view activation);

// The same of the rows of each group, whose expert is experts[g]: weights[E, K, N], bias[E, N]. Rows of group
// g are those up to ends[g]. Groups of expert -1, and rows behind the last end, are left alone.
void grouped_linear(place_t &place, buffer_t x, buffer_t packed, buffer_t ends, buffer_t experts, rest_t bias,
        result_t y, blob_t blob, std::string_view activation);

// Quantises weights[.., K, N] to the packed weights that the blob describes.
void pack(place_t &place, buffer_t weights, result_t packed, blob_t blob, std::string_view scale_rounding);

// The values of packed weights.
void unpack(place_t &place, buffer_t packed, result_t weights, blob_t blob);

} // namespace mxdnn_jax
