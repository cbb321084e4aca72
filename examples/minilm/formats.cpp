// SPDX-License-Identifier: Apache-2.0
// A row per format; what differs between them is attributes only.
#include "formats.hpp"

#include <stdexcept>

namespace minilm {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr int per_group = (1 << 0) | (1 << 1); // a scale for every group along K, for every column

// Describes weights of the format as argument `arg` of mx_matmul or mx_reorder.
primitive_attr attributes(const format_t &f, int arg, quantization_mode mode) {
    primitive_attr attr;
    attr.set_scales(arg, per_group, {f.block, 1}, f.scale, false, mode);
    if (f.zero_points) attr.set_zero_points(arg, per_group, {f.block, 1}, dt::u8);
    if (f.global_scale) attr.set_global_scale(arg, mode);
    return attr;
}

} // namespace

const std::vector<format_t> &formats() {
    constexpr auto mx = quantization_mode::dynamic_mx;
    static const std::vector<format_t> all = {
            {"mxfp8", "mxfp8 e4m3", dt::f8_e4m3, 32, dt::e8m0, mx, false, false},
            {"mxfp8_e5m2", "mxfp8 e5m2", dt::f8_e5m2, 32, dt::e8m0, mx, false, false},
            {"mxfp6", "mxfp6 e2m3", dt::f6_e2m3, 32, dt::e8m0, mx, false, false},
            {"mxfp6_e3m2", "mxfp6 e3m2", dt::f6_e3m2, 32, dt::e8m0, mx, false, false},
            {"mxfp4", "mxfp4", dt::f4_e2m1, 32, dt::e8m0, mx, false, false},
            {"nvfp4", "nvfp4", dt::f4_e2m1, 16, dt::f8_e4m3, quantization_mode::dynamic_fp, false, true},
            {"mxint8", "mxint8", dt::s8, 32, dt::e8m0, mx, false, false},
            {"int4", "int4 group 32", dt::u4, 32, dt::f16, quantization_mode::dynamic_affine, true, false},
    };
    return all;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const auto &f : formats()) names.push_back(f.name);
    return names;
}

const format_t &find_format(const std::string &name) {
    std::string known;
    for (const auto &f : formats()) {
        if (name == f.name) return f;
        known += (known.empty() ? "" : ", ") + std::string(f.name);
    }
    throw std::runtime_error("there is no format '" + name + "'; known are " + known);
}

memory::desc packed_desc(const format_t &f, const engine &eng, memory::dim in, memory::dim out) {
    const mx_matmul::primitive_desc pd(eng, memory::desc({MXDNN_RUNTIME_DIM_VAL, in}, dt::f32, tag::ab),
            memory::desc({in, out}, f.element, tag::any), memory::desc({1, out}, dt::f32, tag::ab),
            memory::desc({MXDNN_RUNTIME_DIM_VAL, out}, dt::f32, tag::ab),
            attributes(f, MXDNN_ARG_WEIGHTS, quantization_mode::static_sazp));
    return pd.weights_desc();
}

memory pack(const format_t &f, const engine &eng, memory::dim in, memory::dim out, const float *weight) {
    primitive_attr attr = attributes(f, MXDNN_ARG_DST, f.mode);
    if (f.mode == quantization_mode::dynamic_mx)
        attr.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
    memory::desc desc = packed_desc(f, eng, in, out);
    desc.set_annotation(dt::f32);
    const memory from({{in, out}, dt::f32, tag::ba}, eng, const_cast<float *>(weight)), to(desc, eng);
    stream s(eng);
    mx_reorder(from, to, attr).execute(s, from, to);
    s.wait();
    return to;
}

std::vector<float> unpack(const memory::desc &packed, const engine &eng, const void *bytes) {
    const memory::dims dims = packed.get_dims();
    std::vector<float> values(size_t(dims[0] * dims[1]));
    const memory from(packed, eng, const_cast<void *>(bytes)),
            to({dims, dt::f32, tag::ba}, eng, values.data());
    stream s(eng);
    mx_reorder(from, to).execute(s, from, to);
    s.wait();
    return values;
}

} // namespace minilm
