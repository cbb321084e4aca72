// SPDX-License-Identifier: Apache-2.0
// The quantised formats that device tests go through, as attributes and as packed weights.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/formats/format_list.hpp"
#include "cuda_call.hpp"

namespace cuda_test {

using quant_mode_t = mxdnn::quantization_mode;

struct format_t {
    dt elem, scale;
    memory::dim block;
    quant_mode_t mode; // mode that computes the format; undef: it cannot be computed
    dt zp = dt::undef;
    bool global = false;
    bool minima = false; // zero points are the values of code 0
};
// New named formats come after these.
inline const format_t first_formats[] = {
        {dt::f8_e4m3, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::f8_e5m2, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::f6_e2m3, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::f6_e3m2, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::f4_e2m1, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::s8, dt::e8m0, 32, quant_mode_t::dynamic_mx},
        {dt::f4_e2m1, dt::f8_e4m3, 16, quant_mode_t::dynamic_fp},
        {dt::f4_e2m1, dt::f8_e4m3, 16, quant_mode_t::dynamic_fp, dt::undef, true},
        {dt::s4, dt::bf16, 32, quant_mode_t::dynamic_affine},
        {dt::s4, dt::f32, 128, quant_mode_t::dynamic_affine},
        {dt::u4, dt::f16, 64, quant_mode_t::dynamic_affine, dt::u8},
        {dt::u4, dt::bf16, 32, quant_mode_t::undef, dt::bf16},
        {dt::u4, dt::f32, 256, quant_mode_t::undef, dt::f32},
};
inline const std::vector<format_t> formats = [] {
    using namespace mxdnn::impl;
    std::vector<format_t> all(std::begin(first_formats), std::end(first_formats));
    for (const named_format_t &f : named_formats) {
        const auto is_it = [&](const format_t &g) {
            return data_type_t(g.elem) == f.elem && data_type_t(g.scale) == f.quant.scale_dt;
        };
        if (f.decoder == decoder_t::int4 || std::any_of(all.begin(), all.end(), is_it)) continue;
        all.push_back({dt(f.elem), dt(f.quant.scale_dt), f.quant.block,
                quant_mode_t(dynamic_mode_of(f.elem, f.quant))});
    }
    all.push_back({dt::u4, dt::f16, 32, quant_mode_t::dynamic_affine, dt::f16, false, true});
    all.push_back({dt::u4, dt::f32, 128, quant_mode_t::dynamic_affine, dt::bf16, false, true});
    all.push_back({dt::s8, dt::f32, 256, quant_mode_t::dynamic_affine});
    return all;
}();
inline const dt high[] = {dt::f32, dt::bf16, dt::f16};

// Scales, zero points and global scale of `arg`, blocks along the dim before the last or the last.
inline void set_format(
        mxdnn::primitive_attr &a, int arg, const format_t &f, bool along_rows, int nd, bool dynamic) {
    const quant_mode_t mode = dynamic ? f.mode : quant_mode_t::static_sazp;
    const memory::dims groups = along_rows ? memory::dims{f.block, 1} : memory::dims{1, f.block};
    a.set_scales(arg, (1 << nd) - 1, groups, f.scale, false, mode);
    if (f.zp != dt::undef) a.set_zero_points(arg, (1 << nd) - 1, groups, f.zp);
    if (f.minima) a.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
    if (f.global) a.set_global_scale(arg, dynamic ? quant_mode_t::dynamic_fp : quant_mode_t::static_sazp);
}

// The layout that the device's matmul asks for, of weights [.., K, N] of a format.
inline memory::desc packed_desc(const memory::dims &dims, const format_t &f) {
    const int nd = int(dims.size());
    mxdnn::primitive_attr attr;
    set_format(attr, MXDNN_ARG_WEIGHTS, f, true, nd, false);
    memory::dims src = dims, dst = dims;
    src[nd - 2] = dst[nd - 2] = 1;
    src[nd - 1] = dims[nd - 2];
    const tag ab = nd == 2 ? tag::ab : tag::abc;
    return mxdnn::mx_matmul::primitive_desc(gpu(), memory::desc(src, dt::bf16, ab),
            memory::desc(dims, f.elem, tag::any), memory::desc(dst, dt::f32, ab), attr)
            .weights_desc();
}

} // namespace cuda_test
