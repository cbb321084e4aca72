// SPDX-License-Identifier: Apache-2.0
// Codes and e8m0 scales in rows, as every layout of MX weights has them.
#pragma once

#include "../sources.hpp"
#include "layer.hpp"

namespace mxdnn_pack {

// Throws where the scales do not fit the codes. The type of the codes says the format: U8 are two codes of
// MXFP4 (or, where there are 24 bytes for a scale, four codes of MXFP6 in three), F8_E4M3 and F8_E5M2 are
// MXFP8.
source_t mx_codes(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales);

// Of NVFP4: U8 codes [.., out, in / 2], F8_E4M3 scales [.., out, in / 16] in rows, and a global scale of each
// matrix, or none.
source_t nvfp4_codes(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales, const std::vector<float> &global_scales, bool has_global_scale);

// [out, in] or [experts, out, in] of codes: the last dim is `in`, whatever is stored.
weight_formats::shape_t shape_of_codes(const layer_t &layer, const entry_t &scales, dim in);

} // namespace mxdnn_pack
