// SPDX-License-Identifier: Apache-2.0
// Primitive attributes and post-ops, as data.
#pragma once

#include <string>
#include <vector>

#include "common/memory_desc.hpp"

namespace mxdnn {
namespace impl {

// Scales, zero points and storage of one quantised argument.
struct arg_attr_t {
    struct grouping_t {
        bool set = false;
        int mask = 0;
        dim_t groups[2] = {1, 1}; // of the last two dims
        data_type_t dt = mxdnn_data_type_undef;

        bool same_groups(const grouping_t &o) const {
            return mask == o.mask && groups[0] == o.groups[0] && groups[1] == o.groups[1];
        }
    };
    grouping_t scales, zero_points;
    mxdnn_zero_points_kind_t zero_points_kind = mxdnn_zero_points_standard;
    mxdnn_quantization_mode_t mode = mxdnn_quantization_mode_undef;
    mxdnn_quantization_mode_t global = mxdnn_quantization_mode_undef; // undef: no global scale
    mxdnn_scale_rounding_t rounding = mxdnn_scale_rounding_floor;
    mxdnn_scales_layout_t layout = mxdnn_scales_linear;
    mxdnn_element_packing_t packing = mxdnn_element_packing_bytes;

    bool is_default() const {
        return !scales.set && !zero_points.set && zero_points_kind == mxdnn_zero_points_standard
               && global == mxdnn_quantization_mode_undef && rounding == mxdnn_scale_rounding_floor
               && layout == mxdnn_scales_linear && packing == mxdnn_element_packing_bytes;
    }
    bool is_dynamic() const { return mode > mxdnn_quantization_mode_static_sazp; }
};

struct post_op_t {
    mxdnn_primitive_kind_t kind = mxdnn_undefined_primitive;
    mxdnn_alg_kind_t alg = mxdnn_alg_kind_undef;
    float alpha = 0.f;                      // eltwise, gated
    float beta = 0.f;                       // eltwise; gated: the limit
    float scale = 1.f;                      // sum
    int32_t zero_point = 0;                 // sum
    data_type_t dt = mxdnn_data_type_undef; // sum
    mxdnn_gated_layout_t gated_layout = mxdnn_gated_interleaved;
    memory_desc_t src1; // binary
};

} // namespace impl
} // namespace mxdnn

struct mxdnn_post_ops {
    std::vector<mxdnn::impl::post_op_t> ops;
};

struct mxdnn_primitive_attr {
    mxdnn::impl::arg_attr_t src, weights, dst, dst_1, diff_dst;
    mxdnn_post_ops post_ops;
    mxdnn_fpmath_mode_t fpmath = mxdnn_fpmath_mode_strict;
    bool fpmath_apply_to_int = false;
    mxdnn_accumulation_mode_t accumulation = mxdnn_accumulation_mode_strict;
    bool deterministic = false;
    mxdnn_scratchpad_mode_t scratchpad = mxdnn_scratchpad_mode_library;
    mxdnn_row_grouping_t row_grouping = mxdnn_row_grouping_ends;
    mxdnn_topk_weights_placement_t topk_weights_placement = mxdnn_topk_weights_on_output;
    mxdnn_dim_t first_expert = 0, global_experts = 0; // global_experts 0: ids are positions in the weights
    mxdnn_dim_t max_rows_hint = 0;
    bool constant_weights = false;

    // Attributes of SRC, WEIGHTS, DST, DST_1 or DIFF_DST; null for other arguments.
    const mxdnn::impl::arg_attr_t *arg(int a) const;
    mxdnn::impl::arg_attr_t *arg(int a) {
        return const_cast<mxdnn::impl::arg_attr_t *>(const_cast<const mxdnn_primitive_attr *>(this)->arg(a));
    }
    const mxdnn::impl::post_op_t *gated() const {
        for (const auto &p : post_ops.ops)
            if (p.kind == mxdnn_gated) return &p;
        return nullptr;
    }
};

namespace mxdnn {
namespace impl {

using attr_t = mxdnn_primitive_attr;

// The public setters, with their checks.
status_t set_scales(attr_t &attr, int arg, int mask, int ndims, const dim_t *groups, data_type_t dt,
        mxdnn_quantization_mode_t mode);
status_t set_zero_points(attr_t &attr, int arg, int mask, int ndims, const dim_t *groups, data_type_t dt);
status_t append_sum(mxdnn_post_ops &po, float scale, int32_t zero_point, data_type_t dt);
status_t append_eltwise(mxdnn_post_ops &po, mxdnn_alg_kind_t alg, float alpha, float beta);
status_t append_binary(mxdnn_post_ops &po, mxdnn_alg_kind_t alg, const memory_desc_t &src1);
status_t append_gated(
        mxdnn_post_ops &po, mxdnn_alg_kind_t alg, float alpha, float limit, mxdnn_gated_layout_t layout);

const char *arg_name(int arg); // "src", "weights", ...
const char *alg_name(mxdnn_alg_kind_t alg);

// The attributes in the words of verbose lines, for example "attr-scales:wei:3:e8m0:32x1:static_sazp
// attr-post-ops:relu:0:0".
std::string to_string(const attr_t &attr);

} // namespace impl
} // namespace mxdnn
