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
    double alpha = 0, beta = 0; // gated: beta is the limit; sum: scale and zero point
    bool halves = false;
    mxdnn::impl::data_type_t dt = mxdnn_data_type_undef; // binary; sum: what dst is read as, undef: its own
    std::string policy;                                  // binary: per_tensor, per_oc, per_row, common
};

std::string post_op_names();
// "relu:0.1", "add:f32:per_oc", "sum:0.5:3:f16", "swiglu_oai:1.702:7:interleaved", several joined by +.
std::vector<post_op_knob_t> parse_post_ops(const std::string &text);

// A tensor that words name, and the number of its matrices.
struct named_type_t {
    const char *name; // "src", "wei", "dst"
    tensor_type_t *type;
    int64_t batch;
};

// Sets scales in the types that the words name, several joined by +: "wei:per_ocic:e8m0:32x1" (groups along
// K; src, dst: 1xG), "wei:per_ocic:u8", "wei".
void apply_scales(const std::string &text, const std::vector<named_type_t> &types);
void apply_zero_points(const std::string &text, const std::vector<named_type_t> &types);
void apply_global(const std::string &text, const std::vector<named_type_t> &types);
// Which tensors have scales in the 128x4 order, and which have dense codes.
void apply_scales_layouts(const std::string &text, const std::vector<named_type_t> &types);
void apply_element_packings(const std::string &text, const std::vector<named_type_t> &types);
mxdnn_scale_rounding_t to_rounding(const words_t &words); // of the knob "rounding"
// Which tensors have scales, zero points and global scales of the caller ("dst"), or only global scales
// ("dst:global").
void apply_given(const std::string &text, const std::vector<named_type_t> &types);

// Describes scales, zero points and global scale of a quantised argument of `nd` dims with blocks along
// `axis`. `dynamic`: the library computes what is not given.
void set_quant(
        mxdnn::primitive_attr &attr, int arg, const tensor_type_t &t, size_t nd, int axis, bool dynamic);

// ---- random words, from the tables that the words above are looked up in ----

// The name of a type that has one of the roles.
std::string draw_type(draws_t &any, unsigned roles);
bool is_high_precision(const std::string &type);
std::string draw_format(draws_t &any);
// A high-precision type as often as a quantised one. A quantised one is a named format, or int4 whose scales
// are given beside it; a source may also be codes with one scale per row.
std::string draw_tensor_type(draws_t &any, bool source = false);
std::string draw_quantised_type(draws_t &any);

// A tensor, the word for its type, and how long its rows are.
struct typed_side_t {
    const char *name;
    std::string type;
    int64_t columns;
};
// For apply_scales(), apply_zero_points() and apply_global(): for sides whose types do not say these.
std::string draw_scales(draws_t &any, const std::vector<typed_side_t> &sides);
std::string draw_zero_points(draws_t &any, const std::vector<typed_side_t> &sides);
std::string draw_global(draws_t &any, const std::vector<typed_side_t> &sides);
// Of sides that are plain.
std::string draw_scales_layouts(draws_t &any, const std::vector<typed_side_t> &sides);
std::string draw_element_packings(draws_t &any, const std::vector<typed_side_t> &sides);
// Of destinations.
std::string draw_given(
        draws_t &any, const std::vector<typed_side_t> &sides, const std::string &sides_with_global);

// Up to three of the possible post-ops, with at most one gated one.
struct post_op_kinds_t {
    bool binary, sum, gated;
};
std::string draw_post_ops(draws_t &any, const post_op_kinds_t &possible);

inline mxdnn::memory::data_type cpp(mxdnn::impl::data_type_t dt) {
    return static_cast<mxdnn::memory::data_type>(dt);
}

} // namespace bench
