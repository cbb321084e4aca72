// SPDX-License-Identifier: Apache-2.0
#include "weights.hpp"

#include <string>

#include "failure.hpp"

namespace mxdnn_jax {

using namespace mxdnn;
using dt = memory::data_type;

namespace {

// The named formats of doc/reference/formats.md.
constexpr struct format_t {
    const char *name;
    dt element, scale;
    memory::dim block;
    dt zero_point; // undef: none
    zero_points_kind kind = zero_points_kind::standard;
} formats[] = {
        {"mxfp8", dt::f8_e4m3, dt::e8m0, 32, dt::undef},
        {"mxfp8_e5m2", dt::f8_e5m2, dt::e8m0, 32, dt::undef},
        {"mxfp6", dt::f6_e2m3, dt::e8m0, 32, dt::undef},
        {"mxfp6_e3m2", dt::f6_e3m2, dt::e8m0, 32, dt::undef},
        {"mxfp4", dt::f4_e2m1, dt::e8m0, 32, dt::undef},
        {"mxint8", dt::s8, dt::e8m0, 32, dt::undef},
        {"nvfp4", dt::f4_e2m1, dt::f8_e4m3, 16, dt::undef},
        {"int4", dt::s4, dt::bf16, 32, dt::undef},
        {"int4_zp", dt::u4, dt::f16, 32, dt::u8},
        {"int4_min", dt::u4, dt::f16, 32, dt::f16, zero_points_kind::minimum},
        {"int8", dt::s8, dt::f16, 32, dt::undef},
};

const format_t &find_format(std::string_view name) {
    std::string known;
    for (const format_t &f : formats) {
        if (name == f.name) return f;
        known += std::string(known.empty() ? "" : ", ") + f.name;
    }
    fail("there is no format '" + std::string(name) + "'; known are " + known);
}

} // namespace

memory::desc weights_of_blob(const uint8_t *blob, size_t size) {
    memory::desc md(blob, size);
    if (md.get_format_kind() != memory::format_kind::opaque)
        fail("the blob describes " + md.to_string() + "; it has to describe packed weights");
    return md;
}

memory::desc weights_for(const engine &eng, const uint8_t *blob, size_t size) {
    const blob_verdict verdict = check_blob(eng, blob, size);
    if (verdict != blob_verdict::native && verdict != blob_verdict::slower)
        fail("the blob is refused: " + get_last_error());
    return weights_of_blob(blob, size);
}

memory::desc packed_weights(const engine &eng, std::string_view name, bool global_scale, memory::dim block,
        const memory::dims &dims) {
    const format_t &f = find_format(name);
    const int every_dim = (1 << dims.size()) - 1;
    const memory::dims groups{block ? block : f.block, 1};
    primitive_attr attr;
    attr.set_scales(MXDNN_ARG_WEIGHTS, every_dim, groups, f.scale);
    if (f.zero_point != dt::undef) attr.set_zero_points(MXDNN_ARG_WEIGHTS, every_dim, groups, f.zero_point);
    attr.set_zero_points_kind(MXDNN_ARG_WEIGHTS, f.kind);
    if (global_scale) attr.set_global_scale(MXDNN_ARG_WEIGHTS, quantization_mode::static_sazp);
    return memory::desc::packed(eng, dims, f.element, attr);
}

} // namespace mxdnn_jax
