// SPDX-License-Identifier: Apache-2.0
// HQQ, as its layers save themselves: W_q, scale, zero, shape, nbits, group_size, axis, packing. Codes are in
// groups: the rows of a matrix (axis 1) or its columns (axis 0), of which the first half are the upper four
// bits of W_q's bytes and the second half the lower ones. A value is (code - zero) * scale, with a zero point
// that is no whole number.
#include "importers.hpp"
#include "layer.hpp"

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;

std::optional<source_t> find_hqq(const import_context_t &context, size_t w_q) {
    const checkpoint_t &input = context.input;
    const entry_t &w = input.entries[w_q];
    const std::string prefix = safetensors::without(w.name, ".W_q");
    const layer_t layer(input, prefix, "HQQ");
    const size_t scale = layer.get(".scale"), zero = layer.get(".zero"), shape_at = layer.get(".shape");
    const auto number = [&](const char *suffix) {
        const std::vector<int64_t> v = layer.integers(layer.get(suffix), 1);
        return v.empty() ? -1 : v[0];
    };
    layer.check_type(w_q, {"U8"});
    const std::vector<int64_t> dims = layer.integers(shape_at, 2);
    const int64_t axis = number(".axis"), bits = number(".nbits");
    if (bits != 4 && bits != 8)
        layer.refuse("its codes have " + std::to_string(bits) + " bits; 4 and 8 are read");
    if (axis != 0 && axis != 1)
        layer.refuse("its groups are along axis " + std::to_string(axis) + "; it must be 0 or 1");
    if (dims.size() != 2 || dims[0] < 1 || dims[1] < 1)
        layer.refuse(described(input.entries[shape_at]) + " must hold [out, in]");
    const dim out = dims[0], in = dims[1], per_byte = bits == 4 ? 2 : 1;
    dim count = 0;
    // W_q is [codes of groups, groups] or the other way round.
    if (__builtin_mul_overflow(out, in, &count) || w.dims.size() != 2 || count % per_byte
            || dim(elements(w)) != count / per_byte)
        layer.refuse(described(w) + " does not have the codes of the shape " + safetensors::to_string(dims));
    const dim rows = w.dims[0] * per_byte, columns = w.dims[1], groups = axis == 1 ? rows : columns;
    for (const size_t i : {scale, zero}) {
        layer.check_type(i, {"F16", "BF16", "F32"});
        if (dim(elements(input.entries[i])) != groups)
            layer.refuse(described(input.entries[i]) + " must have a number for each of "
                         + std::to_string(groups) + " groups");
    }
    source_t source{prefix + ".weight", "HQQ codes", shape_t::matrix(out, in), {w_q, scale, zero, shape_at},
            std::nullopt, {}, dt::f32, {}, {}};
    source.loss = "they are HQQ codes, whose zero points are no whole numbers";
    for (const char *suffix : {".nbits", ".axis", ".group_size", ".packing", ".unpack_view_dtype",
                 ".view_as_float", ".quant_scale", ".quant_zero", ".compute_dtype", ".offload_meta",
                 ".encoded_state_dict", ".stores_quant_config", ".channel_wise", ".optimize", ".round_zero"})
        if (const std::optional<size_t> i = layer.find(suffix)) source.entries.push_back(*i);
    source.values = [=, &input](const piece_t &p, void *to) {
        auto *v = static_cast<float *>(to);
        // Codes are numbered as the matrix is, row by row; of each byte the upper half comes first.
        const dim half = rows / per_byte;
        std::vector<float> scales, zeros;
        std::vector<uint8_t> bytes(static_cast<size_t>(in));
        if (axis == 0) {
            scales = read_floats(input, scale);
            zeros = read_floats(input, zero);
        }
        for (dim r = p.first; r < p.first + p.columns; r++)
            for (dim k = 0; k < in;) {
                // As many codes as lie in one row of W_q.
                const dim i = r * in + k, row = i / columns, column = i % columns,
                          n = std::min(in - k, columns - column);
                input.read(w_q, uint64_t(row % half * columns + column), uint64_t(n), bytes.data());
                float s = 0, z = 0;
                if (axis == 1) {
                    read_floats(input, scale, uint64_t(row), 1, &s);
                    read_floats(input, zero, uint64_t(row), 1, &z);
                }
                for (dim j = 0; j < n; j++) {
                    const uint8_t b = bytes[size_t(j)];
                    const auto code = float(bits == 8 ? b : row < half ? b >> 4 : b & 15);
                    if (axis == 0) {
                        s = scales[size_t(column + j)];
                        z = zeros[size_t(column + j)];
                    }
                    *v++ = (code - z) * s;
                }
                k += n;
            }
    };
    return source;
}

} // namespace mxdnn_pack
