// SPDX-License-Identifier: Apache-2.0
// The operators; library.cpp has their schemas.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tensor.hpp"

namespace mxdnn_torch {

// packed_blob.cpp
std::string packed_blob(std::vector<int64_t> shape, std::string element, std::string scale, int64_t block,
        std::string zero_point, std::string global_scale, std::string target, std::string original_type,
        std::string recipe);

// quantize_pack.cpp
Tensor quantize_pack(
        const Tensor &weight, std::string blob, std::string rounding, std::optional<Tensor> global_scale);

// codes.cpp
Tensor pack_codes(const Tensor &codes, const Tensor &scales, std::optional<Tensor> zero_points,
        std::optional<Tensor> global_scale, std::string blob, bool swizzled, bool dense);
std::tuple<Tensor, Tensor, Tensor, Tensor> unpack_codes(
        const Tensor &packed, std::string blob, bool swizzled, bool dense);

// unpack.cpp
Tensor unpack(const Tensor &packed, std::string blob, ScalarType type);

// linear.cpp
Tensor linear(const Tensor &x, const Tensor &packed, std::string blob, std::optional<Tensor> bias,
        std::string activation);

} // namespace mxdnn_torch
