// SPDX-License-Identifier: Apache-2.0
// What the operators that move weights have in common.
#pragma once

#include <mxdnn/mxdnn.hpp>

#include "blob_cache.hpp"
#include "device.hpp"
#include "tensor.hpp"

namespace mxdnn_torch {

// The engine that packs or unpacks weights of this descriptor where the tensors are.
mxdnn::engine reorder_engine(const packed_desc_t &desc, const place_t &place);

// The descriptor of a plain tensor [.., N, K] in torch's order, as the library's [.., K, N].
mxdnn::memory::desc plain_desc(const dims_t &dims, dt type);

// Executes in torch's order; `pointers` may be null only where the descriptor has no bytes.
using arguments_t = std::vector<std::pair<int, std::pair<mxdnn::memory::desc, void *>>>;
void run_reorder(const mxdnn::mx_reorder::primitive_desc &pd, const mxdnn::engine &engine,
        const place_t &place, const arguments_t &arguments);

// Refuses a tensor whose shape is not that of the weights, or with elements that are not side by side.
void expect_weights(const view_t &view, const char *name, const dims_t &shape);

// {.., ceil(K / block), N}: the library's dims of scales and zero points.
dims_t scale_dims(const packed_desc_t &desc);

} // namespace mxdnn_torch
