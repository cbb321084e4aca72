// SPDX-License-Identifier: Apache-2.0
// torchao's safetensors form: the weights M.w are tensors M._w_qdata, M._w_scale and others; the metadata M.w
// of the file says as JSON which class they are and what its attributes were.
#include "importers.hpp"
#include "mx_codes.hpp"
#include "scaled_values.hpp"

#include <algorithm>
#include <cstring>

#include "../json_text.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using nlohmann::json;

namespace {

// A text in an object, or nothing.
std::string text_of(const json &j, const char *name) {
    const auto it = j.is_object() ? j.find(name) : j.end();
    return it != j.end() && it->is_string() ? it->get<std::string>() : "";
}

struct tensor_t {
    const import_context_t &context;
    layer_t layer;
    std::string name;
    json attributes;
    size_t qdata, scale;

    const entry_t &entry(size_t i) const { return context.input.entries[i]; }
    // An attribute that is a flag; false where it is not there.
    bool flag(const char *attribute) const {
        const auto it = attributes.find(attribute);
        return it != attributes.end() && it->is_boolean() && it->get<bool>();
    }
    // The last of the block's lengths, or the one that there is.
    dim block() const {
        const auto it = attributes.find("block_size");
        if (it != attributes.end() && it->is_number_integer()) return it->get<dim>();
        if (it != attributes.end() && it->is_array() && !it->empty() && it->back().is_number_integer()) {
            for (size_t i = 0; i + 1 < it->size(); i++)
                if ((*it)[i] != 1) layer.refuse("its blocks have more than one row");
            return it->back().get<dim>();
        }
        layer.refuse("its metadata has no block_size");
    }
    // [out, in] or [experts, out, in] of codes that are stored `per_byte` to a byte.
    shape_t shape(dim per_byte) const {
        const std::vector<int64_t> &d = entry(qdata).dims;
        dim in = 0;
        if ((d.size() != 2 && d.size() != 3) || __builtin_mul_overflow(d.back(), per_byte, &in))
            layer.refuse(described(entry(qdata)) + " must have the shape [out, in] or [experts, out, in]");
        return d.size() == 3 ? shape_t::batch(d[0], d[1], in) : shape_t::matrix(d[0], in);
    }
};

// Scales in the 128x4 order, in which all matrices are one above the other.
read_codes_t with_swizzled_scales(
        const checkpoint_t &input, const read_codes_t &rows, size_t scale, const shape_t &s, dim block) {
    return [=, &input](const piece_t &p, const codes_t &to) {
        rows(p, to);
        const dim columns = round_up(s.in, block), tile_row = round_up(columns, 4) * 512;
        const dim first = p.matrix * s.out + p.first, from = first / 128,
                  until = round_up(first + p.columns, 128);
        std::vector<uint8_t> tiles(size_t((until - from) * tile_row));
        input.read(scale, uint64_t(from * tile_row), tiles.size(), tiles.data());
        auto *t = static_cast<uint8_t *>(to.scales);
        for (dim r = first - from * 128; r < first - from * 128 + p.columns; r++)
            for (dim c = 0; c < columns; c++)
                *t++ = tiles[size_t(mxdnn::impl::swizzle_128x4::offset(r, c, columns))];
    };
}

// Whether the scales fill whole tiles, however the tensor is shaped; `input_rows` reads codes and no scales.
void swizzle(const tensor_t &t, source_t &source, const format_t &f) {
    const shape_t &s = source.shape;
    if (s.is_empty()) return; // and is not packed
    dim rows = 0;
    const dim tile = round_up(round_up(s.in, f.block), 4) * 512;
    if (__builtin_mul_overflow(s.matrices(), s.out, &rows)
            || dim(elements(t.entry(t.scale))) / std::max(tile, dim(1)) != round_up(rows, 128)
            || dim(elements(t.entry(t.scale))) % std::max(tile, dim(1)))
        t.layer.refuse(described(t.entry(t.scale)) + " is not the 128x4 order of a scale for every "
                       + std::to_string(f.block) + " codes of " + described(t.entry(t.qdata)));
    const read_t none = [](uint64_t, uint64_t, void *) {};
    const read_codes_t rows_only = in_rows(s, f, t.context.input.reader(t.qdata), none);
    source.codes = with_swizzled_scales(t.context.input, rows_only, t.scale, s, f.block);
}

source_t mx(const tensor_t &t) {
    const checkpoint_t &input = t.context.input;
    t.layer.check_type(t.scale, {"F8_E8M0", "U8"});
    if (t.block() != 32) t.layer.refuse("its blocks have " + std::to_string(t.block()) + " codes; MX has 32");
    // Which float the bytes are, by the class's own word.
    const auto elem = t.attributes.find("elem_dtype");
    const std::string word = elem == t.attributes.end() ? ""
                             : elem->is_string()        ? elem->get<std::string>()
                                                        : text_of(*elem, "_data");
    struct row_t {
        const char *word, *dtype, *format;
        dim per_byte;
    };
    static constexpr row_t rows[] = {{"float4_e2m1fn_x2", "U8", "mxfp4", 2},
            {"float8_e4m3fn", "F8_E4M3", "mxfp8", 1}, {"float8_e5m2", "F8_E5M2", "mxfp8_e5m2", 1},
            {"fp6_e2m3", "U8", "mxfp6", 1}, {"fp6_e3m2", "U8", "mxfp6_e3m2", 1}};
    for (const row_t &row : rows) {
        if (word != row.word) continue;
        t.layer.check_type(t.qdata, {row.dtype});
        const format_t &f = find_format(row.format);
        const shape_t s = t.shape(row.per_byte);
        source_t source{t.name, f.name + " codes", s, {t.qdata, t.scale}, f, {}, f.element, {}, {}};
        if (t.flag("is_swizzled_scales")) {
            swizzle(t, source, f);
            return source;
        }
        std::vector<int64_t> due = t.entry(t.qdata).dims;
        due.back() = round_up(s.in, f.block);
        t.layer.check(t.scale, {"F8_E8M0", "U8"}, due);
        source.codes = in_rows(s, f, input.reader(t.qdata), input.reader(t.scale));
        return source;
    }
    t.layer.refuse("its elem_dtype " + safetensors::shown(word) + " is no MX element");
}

source_t nvfp4(const tensor_t &t) {
    const checkpoint_t &input = t.context.input;
    if (t.block() != 16)
        t.layer.refuse("its blocks have " + std::to_string(t.block()) + " codes; NVFP4 has 16");
    const shape_t s = t.shape(2);
    const std::optional<size_t> global = t.layer.find("per_tensor_scale");
    const std::vector<float> global_scales =
            global ? t.layer.global_scales(*global, s.matrices()) : std::vector<float>();
    t.layer.check_type(t.qdata, {"U8"});
    t.layer.check_type(t.scale, {"F8_E4M3"});
    const format_t f = global ? find_format("nvfp4") : nvfp4_without_global_scale();
    source_t source{t.name, "nvfp4 codes", s, {t.qdata, t.scale}, f, {}, f.element, {}, {}};
    if (t.flag("is_swizzled_scales")) {
        swizzle(t, source, f);
    } else {
        std::vector<int64_t> due = t.entry(t.qdata).dims;
        due.back() = round_up(s.in, f.block);
        t.layer.check(t.scale, {"F8_E4M3"}, due);
        source.codes = in_rows(s, f, input.reader(t.qdata), input.reader(t.scale));
    }
    if (global) {
        source.entries.push_back(*global);
        source.codes = under(global_scales, source.codes);
    }
    return source;
}

// Int4Tensor: qdata [.., out, in / 2], signed, the even code in the low half; scale and zero_point [..,
// groups, out]. A value is code * scale + zero_point.
source_t int4(const tensor_t &t) {
    const checkpoint_t &input = t.context.input;
    t.layer.check_type(t.qdata, {"U8", "I8"});
    t.layer.check_type(t.scale, {"BF16", "F16", "F32"});
    const size_t zero = t.layer.get("zero_point");
    const shape_t s = t.shape(2);
    const dim group = t.block();
    if (group < 1 || s.in < 1) t.layer.refuse("it has no groups");
    const dim groups = round_up(s.in, group), block = int4_block(group, s.in);
    if (!block)
        t.layer.refuse(
                "groups of " + std::to_string(group) + " codes are not a multiple of 32, as int4 needs it");
    std::vector<int64_t> due = t.entry(t.qdata).dims;
    due[due.size() - 1] = s.out;
    due[due.size() - 2] = groups;
    t.layer.check(t.scale, {"BF16", "F16", "F32"}, due);
    t.layer.check(zero, {t.entry(t.scale).dtype.c_str()}, due);
    bool has_zeros = false;
    for (const float z : read_floats(input, zero)) has_zeros = has_zeros || z != 0;
    const dt scale_type = t.entry(t.scale).data_type;
    const format_t f =
            int4_format(has_zeros ? dt::u4 : dt::s4, block, scale_type, has_zeros ? scale_type : dt::undef);
    source_t source{t.name, "int4 codes of torchao", s, {t.qdata, t.scale, zero}, f, {}, f.element, {}, {}};
    source.codes = [=, &input, qdata = t.qdata, scale = t.scale](const piece_t &p, const codes_t &to) {
        const size_t row = size_t(s.in) / 2, size = scale_type == dt::f32 ? 4 : 2, rows = size_t(p.columns),
                     n = size_t(groups), blocks = size_t(round_up(s.in, block));
        input.read(qdata, uint64_t(p.matrix * s.out + p.first) * row, rows * row, to.codes);
        auto *c = static_cast<uint8_t *>(to.codes);
        if (has_zeros)
            for (size_t i = 0; i < rows * row; i++) c[i] ^= 0x88; // plus 8
        const auto transposed = [&](size_t entry, void *into) {
            std::vector<uint8_t> given(rows * n * size);
            read_transposed(input, entry, uint64_t(p.matrix) * n * uint64_t(s.out) * size, groups, s.out,
                    p.first, p.columns, size, given.data(), n * size);
            auto *b = static_cast<uint8_t *>(into);
            for (size_t r = 0; r < rows; r++)
                for (size_t i = 0; i < blocks; i++)
                    std::memcpy(b + (r * blocks + i) * size,
                            &given[(r * n + i * size_t(block) / size_t(group)) * size], size);
        };
        transposed(scale, to.scales);
        if (has_zeros) transposed(zero, to.zero_points);
    };
    return source;
}

source_t scaled(const tensor_t &t) {
    source_t source = scaled_values(t.context.input, t.layer, t.name, t.qdata, t.scale);
    const std::optional<size_t> zero = t.layer.find("zero_point");
    if (!zero) return source;
    for (const uint8_t byte : read_bytes(t.context.input, *zero))
        if (byte)
            t.layer.refuse(
                    "its codes have zero points (" + described(t.entry(*zero)) + "), which are not read");
    source.entries.push_back(*zero);
    return source;
}

struct class_t {
    const char *name;
    source_t (*find)(const tensor_t &);
};
constexpr class_t classes[] = {{"MXTensor", mx}, {"NVFP4Tensor", nvfp4}, {"Int4Tensor", int4},
        {"Float8Tensor", scaled}, {"Int8Tensor", scaled}};

} // namespace

std::optional<source_t> find_torchao(const import_context_t &context, size_t qdata) {
    const checkpoint_t &input = context.input;
    const entry_t &e = input.entries[qdata];
    // M._w_qdata
    const std::string before = safetensors::without(e.name, "_qdata");
    const size_t dot = before.rfind('.');
    if (dot == before.npos || dot + 2 > before.size() || before[dot + 1] != '_') return std::nullopt;
    const std::string name = before.substr(0, dot + 1) + before.substr(dot + 2);
    const layer_t layer(input, before + "_", "torchao");
    const std::string *text = nullptr;
    for (const auto &shard : input.shards)
        if (const auto it = shard.metadata.find(name); it != shard.metadata.end()) text = &it->second;
    if (!text)
        layer.refuse("the file has no metadata " + safetensors::shown(name) + ", which would say what it is");
    const json j = parse_json(*text, "the metadata " + safetensors::shown(name));
    const std::string type = text_of(j, "_type");
    json attributes =
            j.is_object() && j.contains("_data") && j["_data"].is_object() ? j["_data"] : json::object();
    const tensor_t t{context, layer, name, std::move(attributes), qdata, layer.get("scale")};
    for (const class_t &c : classes) {
        if (type != c.name) continue;
        if (layer.find("act_pre_scale"))
            layer.refuse("it has scales of its activations, which packed weights do not hold");
        return c.find(t);
    }
    std::string known;
    for (const class_t &c : classes) known += (known.empty() ? "" : ", ") + std::string(c.name);
    layer.refuse("its class is " + safetensors::shown(type) + "; read are " + known);
}

} // namespace mxdnn_pack
