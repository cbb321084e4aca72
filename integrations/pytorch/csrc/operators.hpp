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
std::string packed_blob(std::vector<int64_t> shape, const std::string &element, const std::string &scale,
        int64_t block, const std::string &zero_point, const std::string &global_scale,
        const std::string &target, const std::string &original_type, const std::string &recipe);

// describe_blob.cpp
std::string describe_blob(const std::string &blob);

// cpu_target.cpp
std::string cpu_target();

// packed_checksum.cpp
std::string packed_checksum(const Tensor &packed, const std::string &blob);

// quantize_pack.cpp
Tensor quantize_pack(const Tensor &weight, const std::string &blob, const std::string &rounding,
        const std::optional<Tensor> &global_scale);

// codes.cpp
Tensor pack_codes(const Tensor &codes, const Tensor &scales, const std::optional<Tensor> &zero_points,
        const std::optional<Tensor> &global_scale, const std::string &blob, bool swizzled, bool dense);
std::tuple<Tensor, Tensor, Tensor, Tensor> unpack_codes(
        const Tensor &packed, const std::string &blob, bool swizzled, bool dense);

// unpack.cpp
Tensor unpack(const Tensor &packed, const std::string &blob, ScalarType type);

// linear.cpp
Tensor linear(const Tensor &x, const Tensor &packed, const std::string &blob,
        const std::optional<Tensor> &bias, const std::string &activation);

// The same for whoever has handles, which stay the caller's; `bias` may be null. For python/direct.cpp, in a
// library of its own.
__attribute__((visibility("default"))) Tensor linear_of_handles(AtenTensorHandle x, AtenTensorHandle packed,
        const std::string &blob, AtenTensorHandle bias, const std::string &activation);

// grouped_linear.cpp
Tensor grouped_linear(const Tensor &x, const Tensor &packed, const std::string &blob,
        const Tensor &group_ends, const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx, const std::optional<Tensor> &scatter_idx,
        const std::optional<Tensor> &topk_weights, std::optional<int64_t> dst_rows);

// The same where every row is known to have an expert.
Tensor grouped_linear_of_all_rows(const Tensor &x, const Tensor &packed, const std::string &blob,
        const Tensor &group_ends, const std::optional<Tensor> &bias, const std::string &activation,
        const std::optional<Tensor> &gather_idx);

// grouped_weights_gradient.cpp
Tensor grouped_weights_gradient(const Tensor &x, const Tensor &grad, const Tensor &group_ends);

// moe_route.cpp: topk_weights, topk_ids, group_ends, gather_idx, row_order, row_weights, counts
using route_t = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
route_t moe_route(const Tensor &logits, int64_t topk, const std::string &scoring, bool renormalize,
        const std::optional<Tensor> &bias, int64_t expert_groups, int64_t topk_groups, bool group_max,
        double scale);

// moe_layer.cpp
Tensor moe_layer(const Tensor &x, const Tensor &logits, const Tensor &gate_up,
        const std::string &gate_up_blob, const Tensor &down, const std::string &down_blob, int64_t topk,
        const std::string &scoring, const std::string &activation, const std::optional<Tensor> &gate_up_bias,
        const std::optional<Tensor> &down_bias, bool renormalize, const std::optional<Tensor> &route_bias,
        int64_t expert_groups, int64_t topk_groups, bool group_max, double scale);

// moe_permute.cpp
std::tuple<Tensor, Tensor, Tensor> moe_permute(
        const Tensor &x, const Tensor &counts, int64_t alignment, int64_t dst_rows);

// moe_unpermute.cpp
Tensor moe_unpermute(const Tensor &x, const Tensor &permuted_idx, int64_t dst_rows,
        const std::optional<Tensor> &topk_weights);

} // namespace mxdnn_torch
