// SPDX-License-Identifier: Apache-2.0
// A row per format; what differs between them is attributes only.
#include "weight_formats.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "common/formats/named_formats.hpp"
#include "safetensors.hpp"

namespace weight_formats {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

// Describes weights of the format as argument `arg` of mx_matmul or mx_reorder: a scale for every group along
// K, for every column of every expert.
primitive_attr attributes(const format_t &f, const shape_t &s, int arg, quantization_mode mode) {
    const int per_group = s.experts ? 7 : 3;
    primitive_attr attr;
    attr.set_scales(arg, per_group, {f.block, 1}, f.scale, false, mode);
    if (f.has_zero_points()) attr.set_zero_points(arg, per_group, {f.block, 1}, f.zero_point);
    attr.set_zero_points_kind(arg, f.zero_points_kind);
    if (f.global_scale) attr.set_global_scale(arg, mode);
    return attr;
}

memory::desc global_scales(const shape_t &s) { return memory::desc({s.matrices()}, dt::f32, tag::a); }

// Scales, or zero points.
memory::desc per_block(const format_t &f, const shape_t &s, memory::data_type type) {
    shape_t scales = s;
    scales.in = (s.in + f.block - 1) / f.block;
    return as_stored(scales, type);
}

// The arguments of an mx_reorder from codes.
std::unordered_map<int, memory> arguments(const format_t &f, const shape_t &s, const codes_t &c) {
    const engine host(engine::kind::cpu, 0);
    std::unordered_map<int, memory> args{{MXDNN_ARG_FROM, memory(as_stored(s, f.element), host, c.codes)},
            {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_FROM, memory(per_block(f, s, f.scale), host, c.scales)}};
    if (f.has_zero_points())
        args[MXDNN_ARG_ATTR_ZERO_POINTS | MXDNN_ARG_FROM] =
                memory(per_block(f, s, f.zero_point), host, c.zero_points);
    if (f.global_scale)
        args[MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_FROM] = memory(global_scales(s), host, c.global_scales);
    return args;
}

memory memory_at(const memory::desc &desc, const engine &eng, void *bytes) {
    return bytes ? memory(desc, eng, bytes) : memory(desc, eng);
}

memory quantise(const format_t &f, const engine &eng, const shape_t &s, memory::data_type type,
        const void *weights, const primitive_attr &attr, std::unordered_map<int, memory> args, void *bytes) {
    memory::desc desc = packed_desc(f, eng, s);
    desc.set_annotation(type);
    const memory from(as_stored(s, type), engine(engine::kind::cpu, 0), const_cast<void *>(weights)),
            to = memory_at(desc, eng, bytes);
    args[MXDNN_ARG_FROM] = from;
    args[MXDNN_ARG_TO] = to;
    stream st(eng);
    mx_reorder(mx_reorder::primitive_desc(from.get_engine(), from.get_desc(), eng, desc, attr))
            .execute(st, args);
    st.wait();
    return to;
}

} // namespace

const std::vector<format_t> &formats() {
    using namespace mxdnn::impl;
    static const std::vector<format_t> all = [] {
        std::vector<format_t> v;
        for (const named_format_t &f : named_formats)
            v.push_back({f.name, dt(f.elem), f.quant.block, dt(f.quant.scale_dt),
                    quantization_mode(dynamic_mode_of(f.elem, f.quant)),
                    f.quant.zp == zero_point_kind_t::none ? dt::undef : dt(f.quant.zp_dt),
                    takes_global_scale(f.elem, f.quant),
                    f.quant.zp == zero_point_kind_t::minimum ? zero_points_kind::minimum
                                                             : zero_points_kind::standard});
        return v;
    }();
    return all;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const auto &f : formats()) names.push_back(f.name);
    return names;
}

const format_t &find_format(std::string_view name) {
    std::string known;
    for (const auto &f : formats()) {
        if (name == f.name) return f;
        known += (known.empty() ? "" : ", ") + std::string(f.name);
    }
    throw std::runtime_error(
            "there is no format " + safetensors::shown(std::string(name)) + "; known are " + known);
}

namespace {

format_t affine_format(memory::data_type element, memory::dim group, memory::data_type scale,
        memory::data_type zero_point, zero_points_kind kind) {
    for (const auto &f : formats())
        if (f.element == element && f.block == group && f.scale == scale && f.zero_point == zero_point
                && f.zero_points_kind == kind)
            return f;
    const auto name = [](memory::data_type t) {
        return std::string(t == dt::bf16 ? "bf16" : t == dt::f16 ? "f16" : t == dt::f32 ? "f32" : "u8");
    };
    std::string words = element == dt::s8 ? "s8 " : element == dt::s4 ? "s4 " : "u4 ";
    words += name(scale) + ":" + std::to_string(group);
    if (zero_point != dt::undef) words += " " + name(zero_point);
    if (kind == zero_points_kind::minimum) words += " minimum";
    return {words, element, group, scale, quantization_mode::dynamic_affine, zero_point, false, kind};
}

} // namespace

format_t int4_format(memory::data_type element, memory::dim group, memory::data_type scale,
        memory::data_type zero_point, zero_points_kind kind) {
    return affine_format(element, group, scale, zero_point, kind);
}

format_t int8_format(memory::dim group, memory::data_type scale) {
    return affine_format(dt::s8, group, scale, dt::undef, zero_points_kind::standard);
}

format_t nvfp4_without_global_scale() {
    format_t f = find_format("nvfp4");
    f.name = "nvfp4 without global scale";
    f.global_scale = false;
    return f;
}

std::optional<format_t> format_of(const memory::desc &packed, const engine &eng) {
    const std::optional<shape_t> shape = shape_of(packed);
    if (!shape) return std::nullopt;
    const auto is = [&](const format_t &f) { return packed_desc(f, eng, *shape) == packed; };
    for (const format_t &f : formats())
        if (f.element == packed.get_data_type() && is(f)) return f;
    const auto element = packed.get_data_type();
    if (element == dt::f4_e2m1)
        if (const format_t f = nvfp4_without_global_scale(); is(f)) return f;
    const auto block = packed.get_block_size();
    const auto scale = packed.get_scale_data_type();
    if (element == dt::s8)
        if (const format_t f = int8_format(block, scale); is(f)) return f;
    if (element != dt::s4 && element != dt::u4) return std::nullopt;
    for (const auto zero_point : {dt::undef, dt::u8, dt::bf16, dt::f16, dt::f32})
        for (const auto kind : {zero_points_kind::standard, zero_points_kind::minimum}) {
            if (element == dt::s4 && zero_point != dt::undef) break;
            if (kind == zero_points_kind::minimum && (zero_point == dt::undef || zero_point == dt::u8)) break;
            const format_t f = int4_format(element, block, scale, zero_point, kind);
            if (is(f)) return f;
        }
    return std::nullopt;
}

memory::desc as_stored(const shape_t &s, memory::data_type type) {
    if (!s.experts) return memory::desc({s.in, s.out}, type, tag::ba);
    return memory::desc({*s.experts, s.in, s.out}, type, tag::acb);
}

memory::desc packed_desc(const format_t &f, const engine &eng, const shape_t &s) {
    const memory::dims dims = s.experts ? memory::dims{*s.experts, s.in, s.out} : memory::dims{s.in, s.out};
    return memory::desc::packed(
            eng, dims, f.element, attributes(f, s, MXDNN_ARG_WEIGHTS, quantization_mode::static_sazp));
}

memory pack(const format_t &f, const engine &eng, const shape_t &s, memory::data_type type,
        const void *weights, scale_rounding rounding, void *bytes) {
    primitive_attr attr = attributes(f, s, MXDNN_ARG_DST, f.mode);
    if (f.mode == quantization_mode::dynamic_mx) attr.set_scale_rounding(MXDNN_ARG_DST, rounding);
    return quantise(f, eng, s, type, weights, attr, {}, bytes);
}

memory pack_under(float global_scale, const format_t &f, const engine &eng, const shape_t &s,
        memory::data_type type, const void *weights, void *bytes) {
    primitive_attr attr = attributes(f, s, MXDNN_ARG_DST, f.mode);
    attr.set_global_scale(MXDNN_ARG_DST, quantization_mode::static_sazp);
    const memory global(global_scales(s), engine(engine::kind::cpu, 0), &global_scale);
    return quantise(
            f, eng, s, type, weights, attr, {{MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST, global}}, bytes);
}

float global_scale_of(const format_t &f, const shape_t &s, memory::data_type type, const void *weights) {
    const engine host(engine::kind::cpu, 0);
    float global_scale = 0;
    const memory::desc code_desc = as_stored(s, f.element), scale_desc = per_block(f, s, f.scale);
    std::vector<uint8_t> code_bytes(code_desc.get_size()), scale_bytes(scale_desc.get_size());
    const memory from(as_stored(s, type), host, const_cast<void *>(weights)),
            codes(code_desc, host, code_bytes.data()), scales(scale_desc, host, scale_bytes.data()),
            global(global_scales(s), host, &global_scale);
    const mx_reorder::primitive_desc pd(
            host, from.get_desc(), host, codes.get_desc(), attributes(f, s, MXDNN_ARG_DST, f.mode));
    stream st(host);
    mx_reorder(pd).execute(st,
            {{MXDNN_ARG_FROM, from}, {MXDNN_ARG_TO, codes}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, scales},
                    {MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST, global}});
    st.wait();
    return global_scale;
}

codes_t code_room_t::of(const format_t &f, const shape_t &s) {
    const auto room = [](std::vector<uint8_t> &bytes, const memory::desc &desc) {
        if (bytes.size() < desc.get_size()) bytes.resize(desc.get_size());
        return bytes.data();
    };
    codes_t c;
    c.codes = room(codes_, as_stored(s, f.element));
    c.scales = room(scales_, per_block(f, s, f.scale));
    if (f.has_zero_points()) c.zero_points = room(zero_points_, per_block(f, s, f.zero_point));
    if (f.global_scale) {
        global_scales_.assign(size_t(s.matrices()), 0);
        c.global_scales = global_scales_.data();
    }
    return c;
}

memory pack_codes(const format_t &f, const engine &eng, const shape_t &s, const codes_t &codes, void *bytes) {
    const memory to = memory_at(packed_desc(f, eng, s), eng, bytes);
    auto args = arguments(f, s, codes);
    args[MXDNN_ARG_TO] = to;
    stream st(eng);
    mx_reorder(mx_reorder::primitive_desc(engine(engine::kind::cpu, 0), as_stored(s, f.element), eng,
                       to.get_desc(), attributes(f, s, MXDNN_ARG_FROM, quantization_mode::static_sazp)))
            .execute(st, args);
    st.wait();
    return to;
}

void decode(const format_t &f, const shape_t &s, const codes_t &codes, float *values) {
    const engine host(engine::kind::cpu, 0);
    const memory to(as_stored(s, dt::f32), host, values);
    auto args = arguments(f, s, codes);
    args[MXDNN_ARG_TO] = to;
    stream st(host);
    mx_reorder(mx_reorder::primitive_desc(host, as_stored(s, f.element), host, to.get_desc(),
                       attributes(f, s, MXDNN_ARG_FROM, quantization_mode::static_sazp)))
            .execute(st, args);
    st.wait();
}

std::optional<shape_t> shape_of(const memory::desc &packed) {
    const memory::dims d = packed.get_dims();
    if (d.size() == 2) return shape_t::matrix(d[1], d[0]);
    if (d.size() == 3) return shape_t::batch(d[0], d[2], d[1]);
    return std::nullopt;
}

void unpack(const memory::desc &packed, const engine &eng, const void *bytes, memory::data_type type,
        void *values) {
    // Row-major but for the last two dimensions, [.., out, in].
    const memory::dims dims = packed.get_dims();
    const size_t n = dims.size();
    memory::dims strides(n);
    strides[n - 2] = 1;
    strides[n - 1] = dims[n - 2];
    memory::dim matrix = dims[n - 2] * dims[n - 1];
    for (size_t i = n - 2; i-- > 0; matrix *= dims[i]) strides[i] = matrix;
    const engine host(engine::kind::cpu, 0);
    const memory from(packed, eng, const_cast<void *>(bytes)),
            to(memory::desc(dims, type, strides), host, values);
    stream st(host);
    mx_reorder(from, to).execute(st, from, to);
    st.wait();
}

std::vector<float> unpack(const memory::desc &packed, const engine &eng, const void *bytes) {
    size_t n = 1;
    for (const memory::dim d : packed.get_dims()) n *= size_t(d);
    std::vector<float> values(n);
    unpack(packed, eng, bytes, dt::f32, values.data());
    return values;
}

} // namespace weight_formats
