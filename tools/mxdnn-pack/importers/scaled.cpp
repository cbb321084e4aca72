// SPDX-License-Identifier: Apache-2.0
// A tensor X of codes with a tensor X_scale, or X_scale_inv, beside it. The types of both say what it is:
//
// U8 with F8_E4M3: NVFP4, as ModelOpt stores it, the global scale is X_scale_2.
// U8 with U8, F8 with U8: MXFP4 and MXFP8. F8 with F8_E8M0 scales of blocks of 128 x 128 are MXFP8, too.
// F8 or I8 with floating-point scales: values only.
#include "importers.hpp"
#include "mx_codes.hpp"
#include "scaled_values.hpp"

#include <cstring>

namespace mxdnn_pack {

using namespace weight_formats;

namespace {

// Scales of a row or of 128 x 128 codes that are powers of two, repeated for every block of 32.
source_t repeated_mx(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales) {
    const entry_t &c = input.entries[codes], &s = input.entries[scales];
    const scale_blocks_t shared = scale_blocks(layer, c, s, 0);
    const size_t n = c.dims.size();
    const dim out = c.dims[n - 2], in = c.dims[n - 1];
    const shape_t shape = n == 3 ? shape_t::batch(c.dims[0], out, in) : shape_t::matrix(out, in);
    const format_t &f = find_format(c.dtype == "F8_E5M2" ? "mxfp8_e5m2" : "mxfp8");
    source_t source{name, f.name + " codes", shape, {codes, scales}, f, {}, f.element, {}, {}};
    source.codes = [=, &input](const piece_t &p, const codes_t &to) {
        input.read(codes, uint64_t((p.matrix * out + p.first) * in), uint64_t(p.columns * in), to.codes);
        const dim scale_rows = round_up(out, shared.rows), scale_columns = round_up(in, shared.columns),
                  blocks = round_up(in, f.block);
        std::vector<uint8_t> row(static_cast<size_t>(scale_columns));
        auto *t = static_cast<uint8_t *>(to.scales);
        for (dim r = 0; r < p.columns; r++) {
            const dim at = p.matrix * scale_rows + (p.first + r) / shared.rows;
            input.read(scales, uint64_t(at * scale_columns), row.size(), row.data());
            for (dim b = 0; b < blocks; b++) *t++ = row[size_t(b * f.block / shared.columns)];
        }
    };
    return source;
}

} // namespace

std::optional<source_t> find_scaled(const import_context_t &context, size_t codes) {
    const checkpoint_t &input = context.input;
    const entry_t &c = input.entries[codes];
    const bool is_f8 = c.dtype == "F8_E4M3" || c.dtype == "F8_E5M2";
    if ((!is_f8 && c.dtype != "U8" && c.dtype != "I8" && c.dtype != "F4") || c.dims.size() < 2)
        return std::nullopt;
    const layer_t layer(input, c.name, "codes with scales");
    std::optional<size_t> scales = layer.find("_scale");
    if (!scales) scales = layer.find("_scale_inv");
    if (!scales) return std::nullopt;
    const entry_t &s = input.entries[*scales];
    if (c.dtype == "U8" && s.dtype == "F8_E4M3") {
        const std::optional<size_t> global = layer.find("_scale_2");
        const std::vector<float> global_scales =
                global ? layer.global_scales(*global, s.dims.size() == 3 ? s.dims[0] : 1)
                       : std::vector<float>();
        source_t source =
                nvfp4_codes(input, layer, c.name, codes, *scales, global_scales, global.has_value());
        if (global) source.entries.push_back(*global);
        return source;
    }
    if (s.dtype == "U8" || s.dtype == "F8_E8M0") {
        const bool is_mx = s.dims.size() == c.dims.size() && s.dims.back() == round_up(c.dims.back(), 32)
                           && s.dims[s.dims.size() - 2] == c.dims[c.dims.size() - 2];
        if (is_f8 && s.dtype == "F8_E8M0" && !is_mx && (c.dims.size() == 2 || c.dims.size() == 3))
            return repeated_mx(input, layer, c.name, codes, *scales);
        return mx_codes(input, layer, c.name, codes, *scales);
    }
    if (!is_f8 && c.dtype != "I8") return std::nullopt;
    return scaled_values(input, layer, c.name, codes, *scales);
}

} // namespace mxdnn_pack
