// SPDX-License-Identifier: Apache-2.0
// AutoAWQ's "gemm" layout: qweight I32 [in, out / 8], qzeros I32 [groups, out / 8], scales [groups, out]. The
// columns 0 2 4 6 1 3 5 7 of eight are in a word from its lowest bits on. A value is (code - zero point) *
// scale.
#include "words_of_eight.hpp"

#include <cstring>

#include "common/safetensors.hpp"

namespace mxdnn_pack {

namespace {

constexpr nibbles_t awq_order = {0, 4, 1, 5, 2, 6, 3, 7};

} // namespace

std::optional<source_t> find_awq(const import_context_t &context, size_t qweight) {
    const checkpoint_t &input = context.input;
    const entry_t &w = input.entries[qweight];
    const std::string prefix = safetensors::without(w.name, ".qweight");
    const layer_t layer(input, prefix, "AWQ");
    const std::optional<size_t> scales = layer.find(".scales"), qzeros = layer.find(".qzeros");
    if (!scales || !qzeros || w.dims.size() != 2) return std::nullopt;
    const entry_t &s = input.entries[*scales];
    // GPTQ's words are [in / 8, out].
    if (s.dims.size() != 2 || w.dims[1] == s.dims[1] || w.dims[1] != s.dims[1] / 8) return std::nullopt;
    const dim in = w.dims[0], out = s.dims[1], groups = s.dims[0];
    layer.check_type(qweight, {"I32"});
    layer.check_type(*scales, {"F16", "BF16", "F32"});
    if (out % 8 || in % 8 || in == 0 || groups < 1 || in % groups)
        layer.refuse(
                described(w) + " and " + described(s)
                + " do not belong together: they must be [in, out / 8] and [groups, out] with equal groups");
    layer.check(*qzeros, {"I32"}, {groups, out / 8});
    const auto codes = [&input, qweight, in, out](dim first, dim columns, uint8_t *to) {
        // Words of eight rows of the matrix become words of eight columns.
        const dim words = round_up(columns, 8);
        const size_t row = size_t(in) / 2;
        std::vector<uint32_t> from(size_t(8 * words));
        for (dim k = 0; k < in; k += 8) {
            for (dim i = 0; i < 8; i++)
                input.read(qweight, (uint64_t(k + i) * uint64_t(out / 8) + uint64_t(first / 8)) * 4,
                        uint64_t(words) * 4, &from[size_t(i * words)]);
            for (dim c = 0; c < columns; c++) {
                uint32_t word = 0;
                for (dim i = 0; i < 8; i++)
                    word |= (from[size_t(i * words + c / 8)] >> 4 * awq_order[size_t(c % 8)] & 15) << 4 * i;
                std::memcpy(to + size_t(c) * row + size_t(k) / 2, &word, sizeof(word));
            }
        }
    };
    return int4_source(layer, {input, prefix + ".weight", "AWQ", qweight, *scales, qzeros, in, out,
                                      in / groups, awq_order, 0, codes});
}

} // namespace mxdnn_pack
