// SPDX-License-Identifier: Apache-2.0
// Arguments of the tile kernels that do not come from an execution's memories.
#pragma once

#include "common/memory_desc.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Packed matrices from `data` on.
tile_side_t packed_tile_side(const memory_desc_t &packed, void *data);

// The sizes, and the form of codes of type `codes`.
void set_tile_problem(
        tile_args_t &a, int64_t K, int64_t N, int64_t batch, data_type_t codes, const quant_t &q);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
