// SPDX-License-Identifier: Apache-2.0
// pack_codes and unpack_codes: between packed weights and codes and scales in tensors of their own, bit for
// bit. Codes are bytes [.., N, bytes of a row], scales and zero points [.., N, ceil(K / block)]. Types of a
// byte travel as uint8.
#include "call.hpp"
#include "formats.hpp"
#include "operators.hpp"
#include "reorder.hpp"

namespace mxdnn_torch {

using mxdnn::quantization_mode;

namespace {

// One plain tensor of a format: its argument, its shape in torch, its descriptor.
struct part_t {
    const char *name;
    int arg; // OR-ed with FROM or TO
    dims_t shape;
    mxdnn::memory::desc desc;
    ScalarType type;
};

dims_t torch_order(dims_t dims) {
    std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
    return dims;
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The tensors that a format has, in the order of the operators' arguments; absent ones have no name.
std::vector<part_t> parts_of(const packed_desc_t &desc, bool swizzled, bool dense) {
    using tag = mxdnn::memory::format_tag;
    dims_t code_shape = desc.weight_shape();
    code_shape.back() = row_bytes(desc.element, desc.K(), dense);
    const dims_t dims = scale_dims(desc);

    std::vector<part_t> parts(4);
    parts[0] = {"codes", 0, code_shape, plain_desc(desc.dims, desc.element), ScalarType::Byte};
    if (swizzled) {
        const int64_t blocks = dims[dims.size() - 2];
        const int64_t bytes = round_up(desc.N(), 128) * round_up(blocks, 4);
        dims_t shape(desc.dims.begin(), desc.dims.end() - 2);
        shape.push_back(bytes);
        dims_t flat = {desc.experts(), bytes};
        parts[1] = {"scales", MXDNN_ARG_ATTR_SCALES, shape, mxdnn::memory::desc(flat, desc.scale, tag::ab),
                scalar_type_of(desc.scale)};
    } else {
        parts[1] = {"scales", MXDNN_ARG_ATTR_SCALES, torch_order(dims), plain_desc(dims, desc.scale),
                scalar_type_of(desc.scale)};
    }
    if (desc.zero_point != dt::undef)
        parts[2] = {"zero_points", MXDNN_ARG_ATTR_ZERO_POINTS, torch_order(dims),
                plain_desc(dims, desc.zero_point), scalar_type_of(desc.zero_point)};
    if (desc.global_scale != packed_desc_t::no_global_scale) {
        const int64_t n = desc.global_scale == packed_desc_t::one_global_scale ? 1 : desc.experts();
        parts[3] = {"global_scale", MXDNN_ARG_ATTR_GLOBAL_SCALE, {n},
                mxdnn::memory::desc({n}, dt::f32, tag::a), ScalarType::Float};
    }
    return parts;
}

mxdnn::primitive_attr attributes(
        const packed_desc_t &desc, const place_t &place, int arg, bool swizzled, bool dense) {
    mxdnn::primitive_attr attr = attributes_for(place);
    const auto mode = arg == MXDNN_ARG_SRC ? quantization_mode::static_sazp : dynamic_mode(desc);
    set_format(attr, arg, desc, mode,
            arg == MXDNN_ARG_SRC ? quantization_mode::static_sazp : quantization_mode::dynamic_fp);
    if (swizzled) attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    if (dense) attr.set_element_packing(arg, mxdnn::element_packing::dense);
    return attr;
}

bool is_dense(const packed_desc_t &desc, bool dense) {
    return dense && (desc.element == dt::f6_e2m3 || desc.element == dt::f6_e3m2);
}

} // namespace

Tensor pack_codes(const Tensor &codes, const Tensor &scales, const std::optional<Tensor> &zero_points,
        const std::optional<Tensor> &global_scale, const std::string &blob, bool swizzled, bool dense) {
    const auto desc = parse_blob(blob);
    dense = is_dense(*desc, dense);
    const std::vector<part_t> parts = parts_of(*desc, swizzled, dense);
    const std::optional<Tensor> tensors[] = {codes, scales, zero_points, global_scale};
    const place_t place = view_of(codes, "codes").place;
    arguments_t arguments;
    std::vector<Tensor> rows; // keeps copies alive
    static const char *const names[] = {"codes", "scales", "zero_points", "global_scale"};
    for (size_t i = 0; i < parts.size(); i++) {
        const part_t &part = parts[i];
        if (part.name == nullptr) {
            if (tensors[i])
                refuse(std::string(names[i]) + " was passed, but the format of the blob has none");
            continue;
        }
        if (!tensors[i]) refuse(std::string(part.name) + " is missing; the format of the blob has it");
        rows.push_back(make_contiguous(*tensors[i]));
        const view_t view = view_of(rows.back(), part.name);
        expect_type(view, part.name, part.type);
        expect_place(view, part.name, place);
        expect_weights(view, part.name, part.shape);
        arguments.push_back({MXDNN_ARG_FROM | part.arg, {part.desc, view.data}});
    }
    const mxdnn::engine engine = reorder_engine(*desc, place);
    const mxdnn::mx_reorder::primitive_desc pd(engine, parts[0].desc, engine, desc->desc,
            attributes(*desc, place, MXDNN_ARG_SRC, swizzled, dense));
    const Tensor packed = make_tensor({static_cast<int64_t>(desc->size)}, ScalarType::Byte, place);
    arguments.push_back({MXDNN_ARG_TO, {desc->desc, packed.data_ptr()}});
    run_reorder(pd, engine, place, arguments);
    return packed;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> unpack_codes(
        const Tensor &packed, const std::string &blob, bool swizzled, bool dense) {
    const auto desc = parse_blob(blob);
    dense = is_dense(*desc, dense);
    const view_t src = view_of(packed, "packed");
    expect_packed(src, *desc);
    const std::vector<part_t> parts = parts_of(*desc, swizzled, dense);
    arguments_t arguments = {{MXDNN_ARG_FROM, {desc->desc, src.data}}};
    std::vector<Tensor> results;
    for (const part_t &part : parts) {
        results.push_back(part.name ? make_tensor(part.shape, part.type, src.place)
                                    : make_tensor({0}, ScalarType::Byte, src.place));
        if (part.name) arguments.push_back({MXDNN_ARG_TO | part.arg, {part.desc, results.back().data_ptr()}});
    }
    const mxdnn::engine engine = reorder_engine(*desc, src.place);
    const mxdnn::mx_reorder::primitive_desc pd(engine, desc->desc, engine, parts[0].desc,
            attributes(*desc, src.place, MXDNN_ARG_DST, swizzled, dense));
    run_reorder(pd, engine, src.place, arguments);
    return {results[0], results[1], results[2], results[3]};
}

} // namespace mxdnn_torch
