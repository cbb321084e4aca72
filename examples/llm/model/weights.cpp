// SPDX-License-Identifier: Apache-2.0
#include "weights.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/in_order.hpp"

namespace llm {

using namespace weight_formats;

encoding_t encoding_t::find(const std::string &name) {
    if (name == "stored") return {kind_t::stored, {}};
    if (name == "f32") return {kind_t::f32, {}};
    if (name == "bf16") return {kind_t::bf16, {}};
    std::string known = "stored, f32, bf16";
    for (const std::string &f : format_names()) {
        if (name == f) return {kind_t::format, name};
        known += ", " + f;
    }
    throw std::runtime_error("there is no encoding '" + name + "'; known are " + known);
}

std::optional<format_t> packed_format(const source_t &source, const encoding_t &encoding) {
    switch (encoding.kind) {
    case encoding_t::kind_t::stored: return source.format;
    case encoding_t::kind_t::format: return find_format(encoding.format);
    default: return std::nullopt;
    }
}

data_type_t plain_type(const source_t &source, const encoding_t &encoding) {
    if (encoding.kind == encoding_t::kind_t::bf16) return data_type_t::bf16;
    return encoding.kind == encoding_t::kind_t::stored && source.type == data_type_t::bf16 ? data_type_t::bf16
                                                                                           : data_type_t::f32;
}

namespace {

packing_t packing(const source_t &source, const format_t &format, const mxdnn::engine &target) {
    if (source.format && source.format->name == format.name)
        return packing_t(default_part_bytes, format, target, source.shape, source.codes);
    const auto values = [source](const piece_t &p, void *to) {
        std::vector<float> room;
        read_f32(source, p, room);
        std::copy(room.begin(), room.end(), static_cast<float *>(to));
    };
    return packing_t(default_part_bytes, format, target, source.shape, data_type_t::f32, values);
}

} // namespace

packed_t pack(engine_t &engine, const source_t &source, const format_t &format, bool has_equal_matrices) {
    // Packs in memory of the host, for any target.
    const auto target = mxdnn::engine::for_target(engine.engine().get_target());
    packed_t p{packed_desc(format, target, source.shape), {}};
    p.bytes = engine.allocate(p.desc.get_size());
    source_t packed = source;
    if (has_equal_matrices && source.shape.experts) packed.shape.experts = 1;
    const packing_t parts = packing(packed, format, target);
    uint64_t done = 0;
    in_order::run(parts.parts(), unsigned(mxdnn::get_max_concurrency()),
            [&](size_t part, const in_order::turn_t &wait_for_turn) {
                std::vector<uint8_t> bytes;
                parts.make(part, [&](const void *piece, uint64_t size) {
                    const auto *b = static_cast<const uint8_t *>(piece);
                    bytes.insert(bytes.end(), b, b + size);
                });
                wait_for_turn();
                engine.write(p.bytes.as<uint8_t>() + done, bytes.data(), bytes.size());
                done += bytes.size();
            });
    for (; done < p.bytes.size; done += uint64_t(p.desc.get_expert_stride()))
        engine.copy(p.bytes.as<uint8_t>() + done, p.bytes.as<void>(), size_t(p.desc.get_expert_stride()));
    return p;
}

} // namespace llm
