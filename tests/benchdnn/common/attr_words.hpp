// SPDX-License-Identifier: Apache-2.0
// Words for types with scales and for post-ops, and the attributes that they become.
#pragma once

#include "benchdnn/common/knobs.hpp"
#include "mxdnn/mxdnn.hpp"

namespace bench {

struct post_op_knob_t {
    std::string text;
    mxdnn_primitive_kind_t kind = mxdnn_undefined_primitive;
    mxdnn_alg_kind_t alg = mxdnn_alg_kind_undef;
    double alpha = 0, beta = 0; // gated: beta is the limit; sum: alpha is the scale
    bool halves = false;
    mxdnn::impl::data_type_t dt = mxdnn_f32; // binary
    std::string policy;                      // binary: per_tensor, per_oc, per_row, common
};

// "relu:0.1", "add:f32:per_oc", "sum:0.5", "swiglu:1.702:7:interleaved", several joined by +.
std::vector<post_op_knob_t> parse_post_ops(const std::string &text);

// A tensor that words name, and of how many matrices it is.
struct named_type_t {
    const char *name; // "src", "wei", "dst"
    tensor_type_t *type;
    int64_t batch;
};

// Into the types that the words name, several joined by +: "wei:per_ocic:e8m0:32x1" (the group runs along K;
// src, dst: 1xG), "wei:per_ocic:u8", "wei".
void apply_scales(const std::string &text, const std::vector<named_type_t> &types);
void apply_zero_points(const std::string &text, const std::vector<named_type_t> &types);
void apply_global(const std::string &text, const std::vector<named_type_t> &types);

// Scales, zero points and global scale of a quantised argument of `nd` dims, whose blocks run along `axis`.
// `dynamic`: the library finds them.
void set_quant(
        mxdnn::primitive_attr &attr, int arg, const tensor_type_t &t, size_t nd, int axis, bool dynamic);

inline mxdnn::memory::data_type cpp(mxdnn::impl::data_type_t dt) {
    return static_cast<mxdnn::memory::data_type>(dt);
}

} // namespace bench
