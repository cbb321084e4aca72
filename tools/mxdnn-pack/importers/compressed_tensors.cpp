// SPDX-License-Identifier: Apache-2.0
// compressed-tensors: X_packed with X_scale.
//
// nvfp4-pack-quantized: U8 codes, F8_E4M3 scales of 16, and X_global_scale, by which the scales are divided.
// mxfp4- and mxfp6-pack-quantized: U8 codes, e8m0 scales of 32.
// pack-quantized: I32 words of eight codes, the first in the lowest bits, each code plus 8; X_shape; scales
// [out, groups]; zero points, also plus 8, in words along the first dimension.
#include "importers.hpp"
#include "layer.hpp"
#include "mx_codes.hpp"

#include <algorithm>
#include <cstring>

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::without;

namespace {

constexpr dim per_word = 8;

source_t int4(const import_context_t &context, const layer_t &layer, const std::string &name, size_t packed,
        size_t scales) {
    const checkpoint_t &input = context.input;
    const entry_t &w = input.entries[packed], &s = input.entries[scales];
    layer.check_type(scales, {"BF16", "F16", "F32"});
    const size_t shape_at = layer.get("_shape");
    const std::vector<int64_t> dims = layer.integers(shape_at, 3);
    if (dims.size() != 2 && dims.size() != 3)
        layer.refuse(described(input.entries[shape_at]) + " must hold [out, in] or [experts, out, in]");
    const size_t n = dims.size();
    const dim out = dims[n - 2], in = dims[n - 1], words = in / per_word + (in % per_word != 0);
    std::vector<int64_t> due = dims;
    due[n - 1] = words;
    if (out < 0 || in < 0 || w.dims != due)
        layer.refuse(described(w) + " is not [out, in / 8] of the shape " + safetensors::to_string(dims)
                     + " that it says; only codes of four bits are imported");
    const shape_t shape = n == 3 ? shape_t::batch(dims[0], out, in) : shape_t::matrix(out, in);
    due[n - 1] = s.dims.empty() ? 0 : s.dims.back();
    if (s.dims != due) layer.refuse(described(s) + " must have the shape [.., out, groups]");
    const dim groups = due[n - 1], group = groups ? round_up(in, groups) : 0;
    if (in > 0 && (groups < 1 || round_up(in, group) != groups))
        layer.refuse(
                described(s) + " does not have a scale for equal groups of " + std::to_string(in) + " codes");

    source_t source{name, "int4 codes of pack-quantized", shape, {packed, scales, shape_at}, std::nullopt, {},
            {}, {}, {}};
    const std::optional<size_t> zero_points = layer.find("_zero_point");
    if (zero_points) {
        due[n - 2] = out / per_word + (out % per_word != 0);
        layer.check(*zero_points, {"I32"}, due);
        source.entries.push_back(*zero_points);
    }
    // Columns in an order of activations: their groups are not consecutive.
    if (const std::string prefix = "_g_idx"; const std::optional<size_t> g_idx = layer.find(prefix)) {
        layer.check(*g_idx, {"I32", "I64"}, {in});
        const std::vector<int64_t> index = layer.integers(*g_idx, size_t(in));
        for (dim k = 0; k < in; k++)
            if (index[size_t(k)] != -1 && index[size_t(k)] != k / group)
                layer.refuse("its groups are not consecutive columns (" + described(input.entries[*g_idx])
                             + "), which no format of mxdnn has");
        source.entries.push_back(*g_idx);
    }
    const dim block = in > 0 ? int4_block(group, in) : 32;
    if (!block)
        layer.refuse(
                "groups of " + std::to_string(group) + " codes are not a multiple of 32, as int4 needs it");
    const format_t f =
            int4_format(zero_points ? dt::u4 : dt::s4, block, s.data_type, zero_points ? dt::u8 : dt::undef);
    source.format = f;
    source.type = f.element;
    source.codes = [=, &input](const piece_t &p, const codes_t &to) {
        const size_t row = size_t(in + 1) / 2, stored = size_t(words) * 4, rows = size_t(p.columns);
        const auto first = uint64_t(p.matrix * out + p.first);
        std::vector<uint8_t> bytes(rows * stored);
        input.read(packed, first * stored, bytes.size(), bytes.data());
        auto *c = static_cast<uint8_t *>(to.codes);
        for (size_t r = 0; r < rows; r++) std::memcpy(c + r * row, &bytes[r * stored], row);
        if (!zero_points)
            for (size_t i = 0; i < rows * row; i++) c[i] ^= 0x88; // minus 8
        // Scales and zero points, as often as the block is in the group.
        const size_t size = s.data_type == dt::f32 ? 4 : 2, blocks = size_t(round_up(in, block));
        std::vector<uint8_t> given(rows * size_t(groups) * size);
        input.read(scales, first * uint64_t(groups) * size, given.size(), given.data());
        auto *sc = static_cast<uint8_t *>(to.scales);
        for (size_t r = 0; r < rows; r++)
            for (size_t b = 0; b < blocks; b++)
                std::memcpy(sc + (r * blocks + b) * size,
                        &given[(r * size_t(groups) + b * size_t(block) / size_t(group)) * size], size);
        if (!zero_points) return;
        // Pieces begin at a multiple of 64 columns.
        const size_t word_rows = size_t(round_up(p.columns, per_word)), word_row = size_t(groups) * 4;
        std::vector<uint8_t> zeros(word_rows * word_row);
        input.read(*zero_points,
                (uint64_t(p.matrix) * uint64_t(round_up(out, per_word)) + uint64_t(p.first / per_word))
                        * word_row,
                zeros.size(), zeros.data());
        auto *z = static_cast<uint8_t *>(to.zero_points);
        for (size_t r = 0; r < rows; r++)
            for (size_t b = 0; b < blocks; b++) {
                const size_t g = b * size_t(block) / size_t(group);
                z[r * blocks + b] = zeros[r / 8 * word_row + g * 4 + r % 8 / 2] >> r % 2 * 4 & 15;
            }
    };
    return source;
}

} // namespace

std::optional<source_t> find_compressed_tensors(const import_context_t &context, size_t packed) {
    const checkpoint_t &input = context.input;
    const entry_t &w = input.entries[packed];
    const std::string name = without(w.name, "_packed");
    const layer_t layer(input, name, "compressed-tensors");
    const std::optional<size_t> scales = layer.find("_scale");
    if (!scales) return std::nullopt;
    if (w.dtype == "I32") return int4(context, layer, name, packed, *scales);
    if (input.entries[*scales].dtype != "F8_E4M3") return mx_codes(input, layer, name, packed, *scales);
    const std::optional<size_t> global = layer.find("_global_scale");
    const entry_t &s = input.entries[*scales];
    std::vector<float> global_scales;
    if (global) global_scales = layer.global_scales(*global, s.dims.size() == 3 ? s.dims[0] : 1, true);
    source_t source = nvfp4_codes(input, layer, name, packed, *scales, global_scales, global.has_value());
    if (global) source.entries.push_back(*global);
    return source;
}

} // namespace mxdnn_pack
