// SPDX-License-Identifier: Apache-2.0
// MX codes and their e8m0 scales side by side: X_blocks and X_scales of gpt-oss, and others. Codes of four
// bits are stored two to a byte, the even one in the low half; they are [.., out, in / 2], or split by block:
// [.., out, in / 32, 16].
#include "importers.hpp"
#include "layer.hpp"
#include "mx_codes.hpp"

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using safetensors::ends_with;
using safetensors::without;

namespace {

struct naming_t {
    const char *codes, *scales;
};
constexpr naming_t namings[] = {{"_blocks", "_scales"}, {".blocks", ".scales"}, {".qdata", ".scale"}};

} // namespace

std::optional<source_t> find_mx_pair(const import_context_t &context, size_t codes) {
    const checkpoint_t &input = context.input;
    const std::string &name = input.entries[codes].name;
    for (const naming_t &n : namings) {
        if (!ends_with(name, n.codes)) continue;
        const std::string prefix = without(name, n.codes);
        const layer_t layer(input, prefix, "MX codes and scales");
        const std::optional<size_t> scales = layer.find(n.scales);
        if (scales) return mx_codes(input, layer, prefix, codes, *scales);
    }
    return std::nullopt;
}

} // namespace mxdnn_pack
