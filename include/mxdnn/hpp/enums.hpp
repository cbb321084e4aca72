// SPDX-License-Identifier: Apache-2.0
/// @file
/// Enumerations. Each value equals the one of mxdnn_types.h that it names, and is explained there.
#ifndef MXDNN_HPP_ENUMS_HPP
#define MXDNN_HPP_ENUMS_HPP

#include "mxdnn/mxdnn.h"

namespace mxdnn {

/// The precision that f32 operands may be rounded to inside a primitive.
enum class fpmath_mode {
    strict = mxdnn_fpmath_mode_strict,
    bf16 = mxdnn_fpmath_mode_bf16,
    f16 = mxdnn_fpmath_mode_f16,
    any = mxdnn_fpmath_mode_any,
    tf32 = mxdnn_fpmath_mode_tf32,
};

/// The precision of sums.
enum class accumulation_mode {
    strict = mxdnn_accumulation_mode_strict,
    relaxed = mxdnn_accumulation_mode_relaxed,
    any = mxdnn_accumulation_mode_any,
    s32 = mxdnn_accumulation_mode_s32,
    f32 = mxdnn_accumulation_mode_f32,
    f16 = mxdnn_accumulation_mode_f16,
};

/// Whose memory a primitive works in.
enum class scratchpad_mode {
    library = mxdnn_scratchpad_mode_library,
    user = mxdnn_scratchpad_mode_user,
};

/// Who computes the scales of an argument.
enum class quantization_mode {
    undef = mxdnn_quantization_mode_undef,
    static_sazp = mxdnn_quantization_mode_static_sazp,
    dynamic_mx = mxdnn_quantization_mode_dynamic_mx,
    dynamic_fp = mxdnn_quantization_mode_dynamic_fp,
    dynamic_affine = mxdnn_quantization_mode_dynamic_affine,
};

/// How an e8m0 scale is computed from the largest magnitude of a block.
enum class scale_rounding {
    floor = mxdnn_scale_rounding_floor,
    ceil = mxdnn_scale_rounding_ceil,
    even = mxdnn_scale_rounding_even,
    rceil = mxdnn_scale_rounding_rceil,
};

/// What zero points mean: `standard` is (code - zp) * scale for u8, and (code - 8) * scale + zp for
/// floating-point types; `minimum` is code * scale + zp, for floating-point types.
enum class zero_points_kind {
    standard = mxdnn_zero_points_standard,
    minimum = mxdnn_zero_points_minimum,
};

/// Order of plain scales.
enum class scales_layout {
    linear = mxdnn_scales_linear,
    swizzle_128x4 = mxdnn_scales_swizzle_128x4,
};

/// How plain 6-bit elements are stored: one code per byte, or four codes in three bytes.
enum class element_packing {
    bytes = mxdnn_element_packing_bytes,
    dense = mxdnn_element_packing_dense,
};

/// Which arguments say where the rows of a group begin and end.
enum class row_grouping {
    ends = mxdnn_row_grouping_ends,
    starts = mxdnn_row_grouping_starts,
    padded = mxdnn_row_grouping_padded,
    row_ids = mxdnn_row_grouping_row_ids,
};

/// Where grouped_matmul applies the top-k weights.
enum class topk_weights_placement {
    on_output = mxdnn_topk_weights_on_output,
    on_input = mxdnn_topk_weights_on_input,
};

/// Which columns are gate and up of a gated activation.
enum class gated_layout {
    interleaved = mxdnn_gated_interleaved,
    halves = mxdnn_gated_halves,
};

/// What an engine can do with the weights that a blob describes.
enum class blob_verdict {
    native = mxdnn_blob_native,
    slower = mxdnn_blob_slower,
    needs_reorder = mxdnn_blob_needs_reorder,
    incompatible = mxdnn_blob_incompatible,
    corrupt = mxdnn_blob_corrupt,
};

/// The highest instruction set that CPU engines may use.
enum class cpu_isa {
    isa_default = mxdnn_cpu_isa_default,
    avx2 = mxdnn_cpu_isa_avx2,
    avx512_core = mxdnn_cpu_isa_avx512_core,
    avx512_core_bf16 = mxdnn_cpu_isa_avx512_core_bf16,
    avx512_core_amx = mxdnn_cpu_isa_avx512_core_amx,
};

/// Algorithms of post-ops, and scorings of moe_route.
enum class algorithm {
    undef = mxdnn_alg_kind_undef,
    eltwise_relu = mxdnn_eltwise_relu,
    eltwise_tanh = mxdnn_eltwise_tanh,
    eltwise_square = mxdnn_eltwise_square,
    eltwise_linear = mxdnn_eltwise_linear,
    eltwise_logistic = mxdnn_eltwise_logistic,
    eltwise_gelu_tanh = mxdnn_eltwise_gelu_tanh,
    eltwise_swish = mxdnn_eltwise_swish,
    eltwise_clip = mxdnn_eltwise_clip,
    eltwise_gelu_erf = mxdnn_eltwise_gelu_erf,
    eltwise_relu2 = mxdnn_eltwise_relu2,
    binary_add = mxdnn_binary_add,
    binary_mul = mxdnn_binary_mul,
    binary_max = mxdnn_binary_max,
    binary_min = mxdnn_binary_min,
    gated_silu = mxdnn_gated_silu,
    gated_swiglu_oai = mxdnn_gated_swiglu_oai,
    gated_gelu_erf = mxdnn_gated_gelu_erf,
    gated_gelu_tanh = mxdnn_gated_gelu_tanh,
    route_softmax_topk = mxdnn_route_softmax_topk,
    route_topk_softmax = mxdnn_route_topk_softmax,
    route_sigmoid = mxdnn_route_sigmoid,
};

/// Questions to descriptors; mxdnn_query_t has the type of each answer.
enum class query {
    undef = mxdnn_query_undef,
    engine = mxdnn_query_engine,
    primitive_kind = mxdnn_query_primitive_kind,
    num_of_inputs_s32 = mxdnn_query_num_of_inputs_s32,
    num_of_outputs_s32 = mxdnn_query_num_of_outputs_s32,
    memory_consumption_s64 = mxdnn_query_memory_consumption_s64,
    scratchpad_engine = mxdnn_query_scratchpad_engine,
    impl_info_str = mxdnn_query_impl_info_str,
    reorder_src_engine = mxdnn_query_reorder_src_engine,
    reorder_dst_engine = mxdnn_query_reorder_dst_engine,
    strides = mxdnn_query_strides,
    src_md = mxdnn_query_src_md,
    weights_md = mxdnn_query_weights_md,
    dst_md = mxdnn_query_dst_md,
    diff_weights_md = mxdnn_query_diff_weights_md,
    diff_dst_md = mxdnn_query_diff_dst_md,
    scratchpad_md = mxdnn_query_scratchpad_md,
    exec_arg_md = mxdnn_query_exec_arg_md,
    ndims_s32 = mxdnn_query_ndims_s32,
    dims = mxdnn_query_dims,
    data_type = mxdnn_query_data_type,
    format_kind = mxdnn_query_format_kind,
    expert_stride_s64 = mxdnn_query_expert_stride_s64,
    scale_data_type = mxdnn_query_scale_data_type,
    block_size_s64 = mxdnn_query_block_size_s64,
    layout_id_s32 = mxdnn_query_layout_id_s32,
    layout_version_s32 = mxdnn_query_layout_version_s32,
    alignment_s64 = mxdnn_query_alignment_s64,
    annotation_data_type = mxdnn_query_annotation_data_type,
    annotation_recipe_str = mxdnn_query_annotation_recipe_str,
    target_str = mxdnn_query_target_str,
};

} // namespace mxdnn

#endif
