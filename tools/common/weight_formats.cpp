// SPDX-License-Identifier: Apache-2.0
// A row per format; what differs between them is attributes only.
#include "weight_formats.hpp"

#include <stdexcept>

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

memory::desc as_stored(const shape_t &s, memory::data_type type) {
    if (!s.experts) return memory::desc({s.in, s.out}, type, tag::ba);
    return memory::desc({s.experts, s.in, s.out}, type, tag::acb);
}

memory::desc packed_desc(const format_t &f, const engine &eng, const shape_t &s) {
    const memory::dim M = MXDNN_RUNTIME_DIM_VAL;
    const primitive_attr attr = attributes(f, s, MXDNN_ARG_WEIGHTS, quantization_mode::static_sazp);
    if (!s.experts)
        return mx_matmul::primitive_desc(eng, memory::desc({M, s.in}, dt::f32, tag::ab),
                memory::desc({s.in, s.out}, f.element, tag::any), memory::desc({M, s.out}, dt::f32, tag::ab),
                attr)
                .weights_desc();
    return mx_matmul::primitive_desc(eng, memory::desc({s.experts, M, s.in}, dt::f32, tag::abc),
            memory::desc({s.experts, s.in, s.out}, f.element, tag::any),
            memory::desc({s.experts, M, s.out}, dt::f32, tag::abc), attr)
            .weights_desc();
}

memory pack(const format_t &f, const engine &eng, const shape_t &s, memory::data_type type,
        const void *weights, scale_rounding rounding) {
    primitive_attr attr = attributes(f, s, MXDNN_ARG_DST, f.mode);
    if (f.mode == quantization_mode::dynamic_mx) attr.set_scale_rounding(MXDNN_ARG_DST, rounding);
    memory::desc desc = packed_desc(f, eng, s);
    desc.set_annotation(type);
    const engine host(engine::kind::cpu, 0);
    const memory from(as_stored(s, type), host, const_cast<void *>(weights)), to(desc, eng);
    stream st(eng);
    mx_reorder(from, to, attr).execute(st, from, to);
    st.wait();
    return to;
}

memory pack_codes(
        const format_t &f, const engine &eng, const shape_t &s, const void *codes, const void *scales) {
    if (f.zero_points || f.global_scale)
        throw std::runtime_error(std::string(f.name)
                                 + " has more than codes and scales; only formats without zero "
                                   "points and global scale can be packed from codes");
    const memory::desc desc = packed_desc(f, eng, s);
    const engine host(engine::kind::cpu, 0);
    const memory from(as_stored(s, f.element), host, const_cast<void *>(codes)), to(desc, eng),
            from_scales(as_stored({s.experts, (s.in + f.block - 1) / f.block, s.out}, f.scale), host,
                    const_cast<void *>(scales));
    const mx_reorder::primitive_desc pd(host, from.get_desc(), eng, desc,
            attributes(f, s, MXDNN_ARG_FROM, quantization_mode::static_sazp));
    stream st(eng);
    mx_reorder(pd).execute(st, {{MXDNN_ARG_FROM, from}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_FROM, from_scales},
                                       {MXDNN_ARG_TO, to}});
    st.wait();
    return to;
}

void unpack(const memory::desc &packed, const engine &eng, const void *bytes, memory::data_type type,
        void *values) {
    const memory::dims dims = packed.get_dims();
    const size_t n = dims.size();
    const shape_t s{n > 2 ? dims[0] : 0, dims[n - 2], dims[n - 1]};
    const engine host(engine::kind::cpu, 0);
    const memory from(packed, eng, const_cast<void *>(bytes)), to(as_stored(s, type), host, values);
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
