// SPDX-License-Identifier: Apache-2.0
// Tensors as kernel arguments: what a memory and its descriptor say, in plain numbers that travel to a
// device.
#pragma once

#include "common/formats/source_recipe.hpp"
#include "common/layouts/packed_shape.hpp"
#include "common/quant.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// A strided tensor. Dims of one element have a step of 0, so that operands broadcast by themselves.
struct plain_args_t {
    uint8_t *data;
    int64_t step[max_ndims]; // bytes from one index to the next; not for `inner`
    int ndims;
    int inner; // the dim of neighbouring codes below a byte, or -1
    int bits;  // of a code
    data_type_t dt;
    mxdnn_element_packing_t packing;
};

// The matrices of a tensor in any form.
struct matrix_args_t {
    data_type_t dt;
    int ndims;
    bool quantised, packed, swizzled;
    int axis_from_end; // of the blocks: 2 rows, 1 columns
    quant_t quant;
    plain_args_t elements, scales, zero_points; // data is null if there are none
    float *global;
    bool one_global;               // one for all batch entries
    int64_t swizzle_cols;          // blocks along the blocked axis
    int64_t batch_step[max_ndims]; // steps of the entry's number, in the tensor's own dims
    uint32_t layout_id;
    packed_shape_t shape;
    uint8_t *packed_data;
    int64_t packed_stride;
};

struct post_op_args_t {
    mxdnn_primitive_kind_t kind;
    mxdnn_alg_kind_t alg;
    float alpha, beta, scale;
    int32_t zero_point;
    data_type_t dt; // sum: the type that dst is read as
    bool halves;
    plain_args_t src1;
};

constexpr int max_post_ops = 32;

struct matmul_args_t {
    matrix_args_t src, wei, dst;
    plain_args_t bias;
    int64_t dims[max_ndims]; // of dst, gated columns halved
    int64_t M, K, N;         // N before gating
    int64_t rows;            // of all matrices
    int64_t columns;         // of dst
    source_recipe_t recipe;
    bool dynamic, dynamic_global;
    mxdnn_scale_rounding_t rounding;
    int64_t globals; // number of computed global scales
    int post_ops;
    post_op_args_t ops[max_post_ops];
};

// A grouped_matmul. `m` has its tensors (without dims, M and rows). The rest is that of
// common/grouped_exec.hpp.
struct grouped_args_t {
    matmul_args_t m;
    row_groups_t groups;
    int64_t src_rows, dst_rows;             // indices of rows are below these; others are rows of zeros
    int64_t src_group_rows, dst_group_rows; // for padded tensors of 3 dims; 0: there are 2 dims
    const int32_t *gather, *scatter;
    const void *topk;
    data_type_t topk_dt;
    bool topk_on_input;
    const float *expert_alpha, *activation_params;
    int64_t activation_stride;
    const uint64_t *weights_ptrs;
    bool src_swizzled_by_group, dst_swizzled_by_group;
    float old_scale; // factor of the previous destination; has_old says whether it is added
    int32_t old_zero_point;
    data_type_t old_dt;
    bool has_old;
};

struct route_args_t {
    plain_args_t logits;
    int64_t T, E, topk, expert_groups, topk_groups;
    mxdnn_alg_kind_t scoring;
    bool renormalizes, group_max, starts;
    const float *bias; // null for none
    float factor;
    int32_t *ids; // null, as all that follow: not wanted
    float *weights;
    int32_t *counts, *offsets, *order, *tokens;
    float *row_weights;
    // In the scratchpad: scores and keys of the current tokens, and a position for each expert.
    int64_t slices; // tokens that are processed at a time
    float *score;
    int32_t *key, *position;
    // For the reference: choices of `part` tokens at a time, from `first` on, if the caller does not store
    // those of all tokens.
    int64_t part, first;
    int32_t *part_ids;
    float *part_weights;

    MXDNN_HD bool asks_for_rows() const { return order || tokens || row_weights; }
};

// moe_permute and moe_unpermute: whole rows of codes and scales.
struct permute_args_t {
    matrix_args_t src, dst;
    int64_t src_rows, dst_rows, columns;
    int32_t *idx; // PERMUTED_IDX; permute: null if not wanted
    // permute
    int64_t ranks, experts, alignment;
    const int32_t *counts; // [ranks][experts]
    int32_t *offsets;      // null: not wanted
    bool starts;
    int32_t *from,
            *start; // scratchpad: [ranks][experts] first source rows, [experts + 1] first destination rows
    // unpermute
    int64_t k;
    const void *weights; // [dst_rows][k], f32 or bf16; null: k is 1
    data_type_t weights_dt;
    int32_t *inverse; // scratchpad: source rows of the current entries
    int64_t part_tokens;
};

struct reorder_args_t {
    matrix_args_t src, dst;
    int64_t dims[max_ndims];
    int64_t batch, rows, cols;
    bool moves, dynamic;
    mxdnn_scale_rounding_t rounding;
    const float *given; // global scale from the caller, or null
    bool one_given;
    uint8_t *clear[2]; // bytes of padding, which become zero
    int64_t clear_bytes[2];
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
