// SPDX-License-Identifier: Apache-2.0
#include "mx_codes.hpp"

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;

namespace {

// What a stored type can be the codes of.
struct stored_t {
    const char *dtype, *format;
    int codes, bytes; // that hold them
};
constexpr stored_t stored[] = {
        {"U8", "mxfp4", 2, 1},
        {"F4", "mxfp4", 1, 1},
        {"F8_E4M3", "mxfp8", 1, 1},
        {"F8_E5M2", "mxfp8_e5m2", 1, 1},
        {"I8", "mxint8", 1, 1},
};

// Four codes of six bits in three bytes, to a byte each.
void unpack_dense(const uint8_t *from, size_t codes, uint8_t *to) {
    for (size_t i = 0; i + 4 <= codes; i += 4, from += 3) {
        const uint32_t word = from[0] | uint32_t(from[1]) << 8 | uint32_t(from[2]) << 16;
        for (size_t j = 0; j < 4; j++) to[i + j] = word >> 6 * j & 63;
    }
}

// Codes of a row, however many dims they are split into; -1 where they are none.
dim codes_of_row(const entry_t &codes, size_t dims_before) {
    dim n = 1;
    for (size_t i = dims_before; i < codes.dims.size(); i++)
        if (__builtin_mul_overflow(n, codes.dims[i], &n)) return -1;
    return n;
}

[[noreturn]] void do_not_fit(const layer_t &layer, const entry_t &codes, const entry_t &scales, dim block) {
    layer.refuse("codes " + described(codes) + " and scales " + described(scales)
                 + " do not belong together: there must be one scale for every " + std::to_string(block)
                 + " codes of a row");
}

// The shape, where the scales are [.., out, in / block] and the codes [.., out, ...] of `in` codes.
shape_t checked_shape(const layer_t &layer, const entry_t &codes, const entry_t &scales, dim in, dim block) {
    const size_t n = scales.dims.size();
    if (in < 0 || codes.dims.size() < n || codes.dims.size() > n + 1
            || scales.dims[n - 1] != round_up(in, block))
        do_not_fit(layer, codes, scales, block);
    for (size_t i = 0; i + 1 < n; i++)
        if (codes.dims[i] != scales.dims[i]) do_not_fit(layer, codes, scales, block);
    return shape_of_codes(layer, scales, in);
}

} // namespace

shape_t shape_of_codes(const layer_t &layer, const entry_t &scales, dim in) {
    const size_t n = scales.dims.size();
    if (n != 2 && n != 3)
        layer.refuse("scales " + described(scales)
                     + " must have the shape [out, in / block] or [experts, out, in / block]");
    const dim out = scales.dims[n - 2];
    return n == 3 ? shape_t::batch(scales.dims[0], out, in) : shape_t::matrix(out, in);
}

source_t mx_codes(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales) {
    const entry_t &c = input.entries[codes], &s = input.entries[scales];
    layer.check_type(codes, {"U8", "F4", "F8_E4M3", "F8_E5M2", "I8"});
    layer.check_type(scales, {"U8", "F8_E8M0"});
    (void)shape_of_codes(layer, s, 1);
    const size_t n = s.dims.size();
    const dim row = codes_of_row(c, n - 1), blocks = s.dims[n - 1];
    source_t source{name, "MX", shape_t::matrix(0, 0), {codes, scales}, std::nullopt, {}, {}, {}, {}};
    if (c.dtype == "U8" && blocks > 0 && row % 24 == 0 && row / 24 == blocks
            && c.dims.size() == n) { // MXFP6 in dense rows
        const format_t &f = find_format("mxfp6");
        source.shape = checked_shape(layer, c, s, row / 3 * 4, f.block);
        source.format = f;
        const shape_t shape = source.shape;
        source.codes = [&input, codes, scales, shape, row, blocks](const piece_t &p, const codes_t &to) {
            const auto first = uint64_t(p.matrix * shape.out + p.first), count = uint64_t(p.columns);
            std::vector<uint8_t> dense(size_t(count) * size_t(row));
            input.read(codes, first * uint64_t(row), dense.size(), dense.data());
            unpack_dense(dense.data(), size_t(count) * size_t(shape.in), static_cast<uint8_t *>(to.codes));
            input.read(scales, first * uint64_t(blocks), count * uint64_t(blocks), to.scales);
        };
    } else {
        const stored_t *how = nullptr;
        for (const stored_t &st : stored)
            if (c.dtype == st.dtype) how = &st;
        const format_t &f = find_format(how->format);
        dim in = -1;
        if (row >= 0 && __builtin_mul_overflow(row, dim(how->codes), &in)) in = -1;
        source.shape = checked_shape(layer, c, s, in, f.block);
        source.format = f;
        source.codes = in_rows(source.shape, f, input.reader(codes), input.reader(scales));
    }
    source.layout = source.format->name + " codes";
    source.type = source.format->element;
    return source;
}

source_t nvfp4_codes(const checkpoint_t &input, const layer_t &layer, const std::string &name, size_t codes,
        size_t scales, const std::vector<float> &global_scales, bool has_global_scale) {
    const entry_t &c = input.entries[codes], &s = input.entries[scales];
    layer.check_type(codes, {"U8"});
    layer.check_type(scales, {"F8_E4M3"});
    (void)shape_of_codes(layer, s, 1);
    const format_t f = has_global_scale ? find_format("nvfp4") : nvfp4_without_global_scale();
    dim in = -1;
    if (const dim row = codes_of_row(c, s.dims.size() - 1);
            row >= 0 && __builtin_mul_overflow(row, dim(2), &in))
        in = -1;
    const shape_t shape = checked_shape(layer, c, s, in, f.block);
    const read_codes_t rows = in_rows(shape, f, input.reader(codes), input.reader(scales));
    source_t source{name, "nvfp4 codes", shape, {codes, scales}, f, {}, f.element, {}, {}};
    source.codes = has_global_scale ? under(global_scales, rows) : rows;
    return source;
}

} // namespace mxdnn_pack
