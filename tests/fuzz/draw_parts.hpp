// SPDX-License-Identifier: Apache-2.0
// What problems of several primitives are made of: engines, dims, tensors, attributes.
#pragma once

#include <array>
#include <iterator>

#include "common/formats/format_list.hpp"
#include "fuzz/problem_draws.hpp"

namespace fuzz {

// ---- tables ----

inline constexpr dim_t huge[] = {1 << 16, 1 << 20, INT32_MAX - 127, INT32_MAX, dim_t(1) << 31, dim_t(1) << 33,
        (dim_t(1) << 38) + 17, dim_t(1) << 40, (dim_t(1) << 40) + 1, -1, INT64_MAX};

inline constexpr data_type_t high_precision[] = {mxdnn_f32, mxdnn_bf16, mxdnn_f16};

struct format_t {
    data_type_t dt, scale_dt;
    dim_t block; // 0: as long as a row
    mxdnn_quantization_mode_t mode;
};
// Those with a name, and more of what can have a global scale or other groups.
inline constexpr format_t more_formats[] = {
        {mxdnn_f4_e2m1, mxdnn_f8_e4m3, 16, mxdnn_quantization_mode_dynamic_fp},
        {mxdnn_s4, mxdnn_f32, 128, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_u4, mxdnn_bf16, 64, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_u4, mxdnn_f32, 256, mxdnn_quantization_mode_dynamic_affine},
};
inline constexpr auto formats = [] {
    std::array<format_t, std::size(named_formats) + std::size(more_formats)> all{};
    size_t n = 0;
    for (const named_format_t &f : named_formats)
        all[n++] = {f.elem, f.quant.scale_dt, f.quant.block, dynamic_mode_of(f.elem, f.quant)};
    for (const format_t &f : more_formats) all[n++] = f;
    return all;
}();
inline constexpr format_t row_formats[] = {
        {mxdnn_s8, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_f8_e4m3, mxdnn_bf16, 0, mxdnn_quantization_mode_dynamic_fp},
};

// ---- engines, dims, tensors ----

const engine_t *engine_of(const char *target);
const engine_t *draw_cpu(choices_t &c);

class dims_t {
public:
    dims_t(choices_t &c, drawn_t &d);
    // A length whose product with others stays small.
    dim_t length(int64_t budget);
    dim_t batch();

private:
    choices_t &c_;
    drawn_t &d_;
    bool huge_;
};

struct shape_t {
    int n = 0;
    mxdnn_dims_t at = {};
    void add(dim_t d) { at[n++] = d; }
};

bool draw_plain(choices_t &c, memory_desc_t &md, const shape_t &s, data_type_t dt);
// Packed in the family's own layout for the codes, or in another one of it.
bool draw_packed(choices_t &c, memory_desc_t &md, const shape_t &s, data_type_t dt, const quant_t &q,
        target_family_t family);
// A source or destination of a matmul: in high precision, quantised, or quantised in execute.
bool draw_side(choices_t &c, problem_t &p, int arg, memory_desc_t &md, const shape_t &s);
// Packed or plain, or left to the descriptor.
bool draw_weights(choices_t &c, problem_t &p, const shape_t &s);

// ---- attributes ----

// The scales of `arg` of that format, blocked along the axis from the end. `codes`: those of this argument
// are stored; else it is packed, or quantised in execute.
void set_format(
        choices_t &c, attr_t &a, int arg, const format_t &f, int ndims, int axis, bool dynamic, bool codes);
void draw_modes(choices_t &c, attr_t &a);
float draw_number(choices_t &c);
// `dst`: dims of the destination, the last one before a gate.
void draw_post_ops(choices_t &c, attr_t &a, const shape_t &dst, data_type_t dst_dt, bool binaries);

// ---- one for each primitive ----

bool draw_mx_matmul(choices_t &c, drawn_t &d);
bool draw_grouped_matmul(choices_t &c, drawn_t &d);
bool draw_backward_weights(choices_t &c, drawn_t &d);
bool draw_mx_reorder(choices_t &c, drawn_t &d);
bool draw_moe_route(choices_t &c, drawn_t &d);
bool draw_moe_permute(choices_t &c, drawn_t &d);
bool draw_moe_unpermute(choices_t &c, drawn_t &d);

} // namespace fuzz
