// SPDX-License-Identifier: Apache-2.0
// int4 in I32 words of eight codes, as GPTQ and AWQ store it: [in, out] with scales [groups, out] and zero
// points in words along out.
#pragma once

#include <array>
#include <functional>

#include "importers.hpp"
#include "layer.hpp"

namespace mxdnn_pack {

// Where the code of column i of eight is in a word.
using nibbles_t = std::array<int, 8>;

struct words_of_eight_t {
    const checkpoint_t &input;
    std::string name, layout;
    size_t qweight, scales;
    std::optional<size_t> qzeros;
    dim in, out, group;
    nibbles_t zero_nibbles; // of zero points
    int zero_offset;        // is added to them
    // Codes of some columns, as rows of `in` / 2 bytes, each code as stored.
    std::function<void(dim first, dim columns, uint8_t *to)> codes;
};

// The source of such a layer. Where every zero point is 8, the codes become s4 without zero points, which is
// the same.
source_t int4_source(const layer_t &layer, const words_of_eight_t &words);

} // namespace mxdnn_pack
