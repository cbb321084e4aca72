// SPDX-License-Identifier: Apache-2.0
// FP8 and int8 codes under floating-point scales: no format of mxdnn holds them, but their values can be
// computed.
#pragma once

#include "../sources.hpp"
#include "layer.hpp"

namespace mxdnn_pack {

// Codes F8_E4M3, F8_E5M2 or I8 [out, in] or [experts, out, in]. Scales: one, one per row, or one per block of
// `block` x `block` codes (128 where it is 0); of experts, the same for each.
source_t scaled_values(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales, dim block = 0);

// Rows and columns that share a scale.
struct scale_blocks_t {
    dim rows, columns;
};
scale_blocks_t scale_blocks(const layer_t &layer, const entry_t &codes, const entry_t &scales, dim block);

} // namespace mxdnn_pack
