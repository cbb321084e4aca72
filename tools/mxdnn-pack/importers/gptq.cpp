// SPDX-License-Identifier: Apache-2.0
// GPTQ: qweight I32 [in / 8, out], eight rows of a column to a word from its lowest bits on; qzeros I32
// [groups, out / 8]; scales [groups, out]; g_idx [in], the group of each row. A value is (code - zero point)
// * scale. Zero points are stored less one ("gptq"), or as they are ("gptq_v2").
#include "words_of_eight.hpp"

#include "common/safetensors.hpp"

namespace mxdnn_pack {

namespace {

constexpr nibbles_t gptq_order = {0, 1, 2, 3, 4, 5, 6, 7};

// What is added to stored zero points.
int zero_offset(const import_context_t &context, const layer_t &layer, size_t qzeros) {
    const std::string &asked = context.options.gptq_zeros;
    if (asked == "plain") return 0;
    if (asked == "less-one") return 1;
    if (context.is_gptq_v2) return 0;
    // Some writers say "gptq", or nothing, and store them as they are. A symmetric quantiser has 8
    // everywhere.
    bool all_eight = true;
    for (const uint8_t b : read_bytes(context.input, qzeros)) all_eight = all_eight && b == 0x88;
    if (all_eight && context.input.entries[qzeros].size > 0)
        layer.refuse(
                "every stored zero point is 8, which is 9 where they are stored less one, as the checkpoint says "
                "or leaves open; --gptq-zeros plain takes them as 8, --gptq-zeros less-one as 9");
    return 1;
}

} // namespace

std::optional<source_t> find_gptq(const import_context_t &context, size_t qweight) {
    const checkpoint_t &input = context.input;
    const entry_t &w = input.entries[qweight];
    const std::string prefix = safetensors::without(w.name, ".qweight");
    const layer_t layer(input, prefix, "GPTQ");
    const size_t scales = layer.get(".scales"), qzeros = layer.get(".qzeros");
    const entry_t &s = input.entries[scales], &z = input.entries[qzeros];
    layer.check_type(qweight, {"I32"});
    layer.check_type(qzeros, {"I32"});
    layer.check_type(scales, {"F16", "BF16", "F32"});
    if (w.dims.size() != 2 || s.dims.size() != 2 || z.dims.size() != 2 || w.dims[1] != s.dims[1]
            || z.dims[0] != s.dims[0])
        layer.refuse(
                described(w) + ", " + described(z) + " and " + described(s)
                + " do not belong together: they must be [in / 8, out], [groups, out / 8] and [groups, out]");
    dim in = 0;
    const dim out = w.dims[1], groups = s.dims[0];
    if (out % 8 || z.dims[1] != out / 8 || __builtin_mul_overflow(w.dims[0], dim(8), &in))
        layer.refuse(described(z) + " is not [groups, out / 8] of " + std::to_string(out)
                     + " columns; only codes of four bits are imported");
    if (in == 0 || groups < 1) layer.refuse(described(w) + " has no codes");
    const dim group = round_up(in, groups);
    std::vector<size_t> also;
    if (const std::optional<size_t> g_idx = layer.find(".g_idx")) {
        layer.check(*g_idx, {"I32", "I64"}, {in});
        const std::vector<int64_t> index = layer.integers(*g_idx, size_t(in));
        for (dim k = 0; k < in; k++)
            if (index[size_t(k)] != k / group)
                layer.refuse("its groups are not consecutive rows (" + described(input.entries[*g_idx])
                             + ", made with desc_act), which no format of mxdnn has");
        also.push_back(*g_idx);
    }
    if (round_up(in, group) != groups)
        layer.refuse(
                described(s) + " does not have a scale for equal groups of " + std::to_string(in) + " rows");
    const auto codes = [&input, qweight, in, out](dim first, dim columns, uint8_t *to) {
        // A word in memory is four bytes of two codes, as a row has them.
        read_transposed(input, qweight, 0, in / 8, out, first, columns, 4, to, size_t(in) / 2);
    };
    source_t source =
            int4_source(layer, {input, prefix + ".weight", "GPTQ", qweight, scales, qzeros, in, out, group,
                                       gptq_order, zero_offset(context, layer, qzeros), codes});
    source.entries.insert(source.entries.end(), also.begin(), also.end());
    return source;
}

} // namespace mxdnn_pack
