// SPDX-License-Identifier: Apache-2.0
#include "scaled_values.hpp"

#include <algorithm>
#include <array>

#include "common/formats/format_list.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;

namespace {

// What the 256 codes are worth; int8 ones here are whole numbers.
std::array<float, 256> table_of(const entry_t &codes) {
    using namespace mxdnn::impl;
    std::array<float, 256> t{};
    for (uint32_t c = 0; c < 256; c++)
        t[c] = codes.dtype == "I8"        ? float(int8_t(uint8_t(c)))
               : codes.dtype == "F8_E5M2" ? f8_e5m2_t::decode(c)
                                          : f8_e4m3_t::decode(c);
    return t;
}

} // namespace

scale_blocks_t scale_blocks(const layer_t &layer, const entry_t &codes, const entry_t &scales, dim block) {
    const size_t n = codes.dims.size();
    const dim out = codes.dims[n - 2], in = codes.dims[n - 1], edge = block ? block : 128;
    const bool has_experts = n == 3;
    std::vector<int64_t> d = scales.dims;
    if (elements(scales) == 1 && !has_experts) return {out, in};
    if (has_experts) {
        if (d.empty() || d[0] != codes.dims[0]) d = {-1, -1, -1};
        d.erase(d.begin());
        if (d.empty() || d == std::vector<int64_t>{1} || d == std::vector<int64_t>{1, 1}) return {out, in};
    }
    if (d == std::vector<int64_t>{out} || d == std::vector<int64_t>{out, 1}) return {1, in};
    if (d == std::vector<int64_t>{round_up(out, edge), round_up(in, edge)}) return {edge, edge};
    layer.refuse(described(scales) + " has neither one scale of " + described(codes)
                 + ", nor one per row, nor one per " + std::to_string(edge) + " x " + std::to_string(edge)
                 + " block");
}

source_t scaled_values(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales, dim block) {
    const entry_t &c = input.entries[codes], &s = input.entries[scales];
    layer.check_type(codes, {"F8_E4M3", "F8_E5M2", "I8"});
    layer.check_type(scales, {"F32", "BF16", "F16"});
    const size_t n = c.dims.size();
    if (n != 2 && n != 3) layer.refuse(described(c) + " must have the shape [out, in] or [experts, out, in]");
    const scale_blocks_t shared = scale_blocks(layer, c, s, block);
    const dim out = c.dims[n - 2], in = c.dims[n - 1];
    const shape_t shape = n == 3 ? shape_t::batch(c.dims[0], out, in) : shape_t::matrix(out, in);
    const std::string per = shared.rows == 1       ? "row"
                            : shared.columns == in ? "matrix"
                                                   : "block of rows and columns";
    source_t source{name, c.dtype + " codes", shape, {codes, scales}, std::nullopt, {}, dt::f32, {}, {}};
    source.loss = "they are " + c.dtype + " codes with a floating-point scale per " + per;
    source.values = [=, &input, table = table_of(c)](const piece_t &p, void *to) {
        // Scales [out / rows, in / columns] of each matrix.
        const dim scale_rows = round_up(out, shared.rows), scale_columns = round_up(in, shared.columns),
                  from = p.first / shared.rows, until = round_up(p.first + p.columns, shared.rows);
        std::vector<float> given(size_t((until - from) * scale_columns));
        read_floats(input, scales, uint64_t((p.matrix * scale_rows + from) * scale_columns), given.size(),
                given.data());
        auto *v = static_cast<float *>(to);
        std::vector<uint8_t> row(static_cast<size_t>(in));
        for (dim r = 0; r < p.columns; r++) {
            input.read(codes, uint64_t((p.matrix * out + p.first + r) * in), row.size(), row.data());
            const float *scale = &given[size_t(((p.first + r) / shared.rows - from) * scale_columns)];
            for (dim b = 0; b < scale_columns; b++)
                for (dim k = b * shared.columns; k < std::min(in, (b + 1) * shared.columns); k++)
                    *v++ = table[row[size_t(k)]] * scale[b];
        }
    };
    return source;
}

} // namespace mxdnn_pack
