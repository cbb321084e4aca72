/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Types, enumerations and argument numbers of the C API.
 *
 * A value that oneDNN's v3 API also has is equal to oneDNN's. Other values start at 100 (status), 0x100 (data
 * types, algorithms, modes, kinds), 0x1000 (queries) and 1 << 21 (execution arguments). A value never changes
 * once it has been released. */
#ifndef MXDNN_TYPES_H
#define MXDNN_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The outcome of a call. mxdnn_get_last_error() explains a failure in one sentence. */
typedef enum {
    mxdnn_success = 0,            /**< the call succeeded */
    mxdnn_out_of_memory = 1,      /**< memory could not be allocated */
    mxdnn_invalid_arguments = 2,  /**< an argument has a value that is never allowed */
    mxdnn_unimplemented = 3,      /**< a valid problem that no implementation takes */
    mxdnn_last_impl_reached = 4,  /**< there is no further implementation */
    mxdnn_runtime_error = 5,      /**< the system, a device or a callback failed */
    mxdnn_not_required = 6,       /**< never returned; there because oneDNN has it */
    mxdnn_invalid_shape = 9,      /**< dimensions that do not match each other */
    mxdnn_invalid_data_type = 10, /**< data types that do not match each other */
    mxdnn_corrupt_blob = 100, /**< bytes that no release of mxdnn wrote, or that were changed afterwards */
    mxdnn_incompatible_version = 101, /**< a blob of a newer format than this library can read */
    mxdnn_incompatible_target = 102,  /**< packed for a target family whose layout this engine cannot use */
    mxdnn_device_unavailable = 103    /**< the engine describes a target that cannot run on this machine */
} mxdnn_status_t;

/** Types of elements and scales. doc/reference/formats.md has their exact values. */
typedef enum {
    mxdnn_data_type_undef = 0, /**< no type */
    mxdnn_f16 = 1,             /**< IEEE 754 binary16 */
    mxdnn_bf16 = 2,            /**< bfloat16: the upper half of an f32 */
    mxdnn_f32 = 3,             /**< IEEE 754 binary32 */
    mxdnn_s32 = 4,             /**< 32-bit signed integer */
    mxdnn_s8 = 5,              /**< 8-bit signed integer; the element of MXINT8 */
    mxdnn_u8 = 6,              /**< 8-bit unsigned integer */
    mxdnn_f8_e5m2 = 9,         /**< 8-bit float, 5 exponent and 2 mantissa bits; an element of MXFP8 */
    mxdnn_f8_e4m3 =
            10, /**< 8-bit float, 4 exponent and 3 mantissa bits; an element of MXFP8, the scale of NVFP4 */
    mxdnn_s4 = 11,   /**< 4-bit signed integer */
    mxdnn_u4 = 12,   /**< 4-bit unsigned integer */
    mxdnn_e8m0 = 13, /**< 8-bit power of two; the scale of MX formats */
    mxdnn_f4_e2m1 =
            14, /**< 4-bit float, 2 exponent bits and 1 mantissa bit; the element of MXFP4 and NVFP4 */
    mxdnn_f6_e2m3 = 0x100, /**< 6-bit float, 2 exponent and 3 mantissa bits; an element of MXFP6 */
    mxdnn_f6_e3m2 = 0x101, /**< 6-bit float, 3 exponent and 2 mantissa bits; an element of MXFP6 */
    mxdnn_u64 = 0x110      /**< for tables of pointers only */
} mxdnn_data_type_t;

/** The most dimensions that a tensor has. */
#define MXDNN_MAX_NDIMS 12
/** A dimension, a stride or a number of rows, in elements. */
typedef int64_t mxdnn_dim_t;
/** Dimensions or strides, outermost first. Entries beyond the last dimension of the tensor are not read. */
typedef mxdnn_dim_t mxdnn_dims_t[MXDNN_MAX_NDIMS];

/** A dimension whose value is not known before execution. */
#define MXDNN_RUNTIME_DIM_VAL INT64_MIN

/** How a memory descriptor arranges its elements. */
typedef enum {
    mxdnn_format_kind_undef = 0,      /**< no descriptor */
    mxdnn_format_kind_any = 1,        /**< the primitive descriptor chooses */
    mxdnn_blocked = 2,                /**< strided */
    mxdnn_format_kind_opaque = 3,     /**< packed weights */
    mxdnn_format_kind_grouped = 0x100 /**< rows of several groups, one after the other */
} mxdnn_format_kind_t;

/** Orders of dimensions; `ba` is the transpose of `ab`. */
typedef enum {
    mxdnn_format_tag_undef = 0, /**< no tag */
    mxdnn_format_tag_any = 1,   /**< the primitive descriptor chooses the layout */
    mxdnn_a = 2,                /**< one dimension */
    mxdnn_ab = 3,               /**< row-major matrix */
    mxdnn_abc = 4,              /**< row-major, 3 dimensions */
    mxdnn_abcd = 5,             /**< row-major, 4 dimensions */
    mxdnn_ba = 14,              /**< column-major matrix */
    mxdnn_acb = 15,             /**< a batch of column-major matrices */
    mxdnn_abdc = 20             /**< the same with two batch dimensions */
} mxdnn_format_tag_t;

/** Kinds of engines. */
typedef enum {
    mxdnn_any_engine = 0, /**< no particular kind */
    mxdnn_cpu = 1,        /**< x86-64 processors */
    mxdnn_cuda = 2        /**< CUDA devices; the value of oneDNN's `gpu` */
} mxdnn_engine_kind_t;

/** Flags of mxdnn_stream_create(). */
typedef enum {
    mxdnn_stream_in_order = 0x1,     /**< each execution begins after the one before it has ended */
    mxdnn_stream_default_flags = 0x1 /**< in order */
} mxdnn_stream_flags_t;

/** Kinds of primitives and of post-ops. Post-ops have values below 0x100, as in oneDNN, and from 0x110 on. */
typedef enum {
    mxdnn_undefined_primitive = 0,                                /**< no primitive */
    mxdnn_primitive_kind_mx_reorder = 0x100,                      /**< mx_reorder */
    mxdnn_primitive_kind_mx_matmul = 0x101,                       /**< mx_matmul */
    mxdnn_primitive_kind_grouped_matmul = 0x102,                  /**< grouped_matmul */
    mxdnn_primitive_kind_moe_route = 0x103,                       /**< moe_route */
    mxdnn_primitive_kind_moe_permute = 0x104,                     /**< moe_permute */
    mxdnn_primitive_kind_moe_unpermute = 0x105,                   /**< moe_unpermute */
    mxdnn_primitive_kind_grouped_matmul_backward_weights = 0x106, /**< grouped_matmul_backward_weights */
    /* kinds of post-ops */
    mxdnn_sum = 4,      /**< post-op: adds the previous value of dst */
    mxdnn_eltwise = 7,  /**< post-op: a function of each value */
    mxdnn_binary = 13,  /**< post-op: a function of each value and an element of a tensor */
    mxdnn_gated = 0x110 /**< post-op: a gated activation */
} mxdnn_primitive_kind_t;

/** Algorithms of post-ops, as functions of a value x and parameters alpha and beta; and scorings of
 * moe_route. */
typedef enum {
    mxdnn_alg_kind_undef = 0,       /**< no algorithm */
    mxdnn_eltwise_relu = 0x20,      /**< x > 0 ? x : alpha * x */
    mxdnn_eltwise_tanh = 0x21,      /**< tanh(x) */
    mxdnn_eltwise_square = 0x23,    /**< x * x */
    mxdnn_eltwise_linear = 0x26,    /**< alpha * x + beta */
    mxdnn_eltwise_logistic = 0x29,  /**< sigmoid */
    mxdnn_eltwise_gelu_tanh = 0x2b, /**< x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
    mxdnn_eltwise_swish = 0x2c,     /**< x * sigmoid(alpha * x) */
    mxdnn_eltwise_clip = 0x2e,      /**< min(max(x, alpha), beta) */
    mxdnn_eltwise_gelu_erf = 0x31,  /**< x / 2 * (1 + erf(x / sqrt(2))) */
    mxdnn_binary_add = 0x1fff0,     /**< x + src1 */
    mxdnn_binary_mul = 0x1fff1,     /**< x * src1 */
    mxdnn_binary_max = 0x1fff2,     /**< max(x, src1) */
    mxdnn_binary_min = 0x1fff3,     /**< min(x, src1) */
    /* gated activations of gate g and up u; see mxdnn_post_ops_append_gated() */
    mxdnn_gated_silu = 0x100, /**< g * sigmoid(g) * u */
    mxdnn_gated_swiglu_oai =
            0x101, /**< gpt-oss: min(g, limit) * sigmoid(alpha * g) * (clamp(u, +-limit) + 1) */
    mxdnn_gated_gelu_erf = 0x102,  /**< gelu_erf(g) * u */
    mxdnn_gated_gelu_tanh = 0x103, /**< gelu_tanh(g) * u */
    /* not gated: one column gives one column */
    mxdnn_eltwise_relu2 = 0x110, /**< max(x, 0)^2 */
    /* scoring of moe_route */
    mxdnn_route_softmax_topk = 0x120, /**< softmax over all experts, then top-k */
    mxdnn_route_topk_softmax = 0x121, /**< top-k, then softmax over the chosen experts */
    mxdnn_route_sigmoid = 0x122       /**< a sigmoid of each logit, then top-k */
} mxdnn_alg_kind_t;

/** Flags of moe_route; doc/reference/moe_route.md. */
typedef enum {
    mxdnn_route_flags_none = 0,       /**< no flag */
    mxdnn_route_renormalize = 1 << 0, /**< the weights of the chosen experts are divided by their sum */
    mxdnn_route_bias = 1 << 1, /**< MXDNN_ARG_ROUTE_BIAS is added to the scores when experts are chosen, not
                                  to their weights */
    mxdnn_route_group_max =
            1 << 2 /**< the score of an expert group is its best score, not the sum of its two best */
} mxdnn_route_flags_t;

/** The precision that f32 operands may be rounded to inside a primitive. */
typedef enum {
    mxdnn_fpmath_mode_strict = 0, /**< f32: they are not rounded */
    mxdnn_fpmath_mode_bf16 = 1,   /**< bf16 */
    mxdnn_fpmath_mode_f16 = 2,    /**< f16 */
    mxdnn_fpmath_mode_any = 3,    /**< any of these */
    mxdnn_fpmath_mode_tf32 = 4    /**< tf32: 8 exponent and 10 mantissa bits */
} mxdnn_fpmath_mode_t;

/** The precision of sums; doc/reference/mx_matmul.md. */
typedef enum {
    mxdnn_accumulation_mode_strict = 0,  /**< f32 */
    mxdnn_accumulation_mode_relaxed = 1, /**< less than f32, where such kernels are faster */
    mxdnn_accumulation_mode_any = 2,     /**< less than relaxed, where such kernels are faster */
    mxdnn_accumulation_mode_s32 = 3,     /**< only for oneDNN's sake; no kernel takes it */
    mxdnn_accumulation_mode_f32 = 4,     /**< as strict */
    mxdnn_accumulation_mode_f16 = 5      /**< only for oneDNN's sake; no kernel takes it */
} mxdnn_accumulation_mode_t;

/** Whose memory a primitive works in. */
typedef enum {
    mxdnn_scratchpad_mode_library = 0, /**< the library's; it sizes and allocates it */
    mxdnn_scratchpad_mode_user = 1     /**< the caller's, passed as MXDNN_ARG_SCRATCHPAD */
} mxdnn_scratchpad_mode_t;

/** Who computes the scales of an argument. */
typedef enum {
    mxdnn_quantization_mode_undef = 0,             /**< no scales */
    mxdnn_quantization_mode_static_sazp = 1,       /**< the caller passes scales and zero points */
    mxdnn_quantization_mode_dynamic_mx = 2,        /**< the primitive computes them by the MX rules */
    mxdnn_quantization_mode_dynamic_fp = 3,        /**< the primitive computes them by the NVFP4 rules */
    mxdnn_quantization_mode_dynamic_affine = 0x100 /**< the primitive computes them by the rules for int4 */
} mxdnn_quantization_mode_t;

/** How an e8m0 scale is computed from the largest magnitude of a block; doc/reference/formats.md. */
typedef enum {
    mxdnn_scale_rounding_floor =
            0, /**< exponent of the magnitude minus that of the format's largest element */
    mxdnn_scale_rounding_ceil = 1, /**< the same, plus 1 if the mantissa of the magnitude is not 0 */
    mxdnn_scale_rounding_even =
            2, /**< as floor, after the magnitude was rounded to the mantissa bits of an element */
    mxdnn_scale_rounding_rceil = 3 /**< the smallest power of two under which no element saturates */
} mxdnn_scale_rounding_t;

/** What zero points mean; doc/reference/formats.md. */
typedef enum {
    mxdnn_zero_points_standard =
            0, /**< u8: value = (code - zp) * scale; floating-point: value = (code - 8) * scale + zp */
    mxdnn_zero_points_minimum = 1 /**< floating-point, the value of code 0: value = code * scale + zp */
} mxdnn_zero_points_kind_t;

/** Order of plain scales; doc/reference/formats.md. */
typedef enum {
    mxdnn_scales_linear = 0,       /**< the order of the elements */
    mxdnn_scales_swizzle_128x4 = 1 /**< tiles of 128 rows and 4 scales, padded */
} mxdnn_scales_layout_t;

/** How plain 6-bit elements are stored. */
typedef enum {
    mxdnn_element_packing_bytes = 0, /**< one code per byte */
    mxdnn_element_packing_dense = 1  /**< four codes in three bytes */
} mxdnn_element_packing_t;

/** Which arguments say where the rows of a group begin and end. G is the number of groups. */
typedef enum {
    mxdnn_row_grouping_ends = 0, /**< GROUP_OFFSETS [G]: for each group, the position after its last row */
    mxdnn_row_grouping_starts =
            1, /**< GROUP_OFFSETS [G + 1]: the first row of each group, then the end of the last */
    mxdnn_row_grouping_padded =
            2, /**< GROUP_COUNTS [G]: rows of each group; all groups have the same number of places */
    mxdnn_row_grouping_row_ids = 3 /**< ROW_EXPERT_IDS [rows]: the expert of each row, in any order */
} mxdnn_row_grouping_t;

/** Where grouped_matmul applies MXDNN_ARG_TOPK_WEIGHTS. */
typedef enum {
    mxdnn_topk_weights_on_output = 0, /**< to the results of a row, after the post-ops */
    mxdnn_topk_weights_on_input =
            1 /**< to the source rows: in effect to the sums of a row, before the bias */
} mxdnn_topk_weights_placement_t;

/** Which columns are gate and up of a gated post-op. */
typedef enum {
    mxdnn_gated_interleaved = 0, /**< gate in column 2j, up in column 2j + 1 */
    mxdnn_gated_halves = 1       /**< gate in column j, up in column j + N/2 */
} mxdnn_gated_layout_t;

/** What an engine can do with the weights that a blob describes. */
typedef enum {
    mxdnn_blob_native = 0, /**< a kernel for the engine's best instruction set or architecture takes them */
    mxdnn_blob_slower = 1, /**< a slower implementation takes them */
    mxdnn_blob_needs_reorder =
            2, /**< the layout is known, but no kernel of this engine takes it: use mx_reorder first */
    mxdnn_blob_incompatible = 3, /**< this library does not know the layout or its version */
    mxdnn_blob_corrupt = 4       /**< bytes that no release of mxdnn wrote, or that were changed afterwards */
} mxdnn_blob_verdict_t;

/** The highest instruction set that CPU engines may use; see mxdnn_set_max_cpu_isa(). */
typedef enum {
    mxdnn_cpu_isa_default = 0x0,           /**< the best that the machine has */
    mxdnn_cpu_isa_avx2 = 0x7,              /**< AVX2, FMA and F16C */
    mxdnn_cpu_isa_avx512_core = 0x27,      /**< AVX-512 F, BW, DQ and VL */
    mxdnn_cpu_isa_avx512_core_bf16 = 0xe7, /**< avx512_core with BF16 and VBMI */
    mxdnn_cpu_isa_avx512_core_amx = 0xfef  /**< avx512_core_bf16 with AMX tiles of bf16 and int8 */
} mxdnn_cpu_isa_t;

/** Questions to memory descriptors and primitive descriptors. The comment of each says the type of its
 * answer. */
typedef enum {
    mxdnn_query_undef = 0,              /**< no question */
    mxdnn_query_engine = 1,             /**< mxdnn_engine_t */
    mxdnn_query_primitive_kind = 2,     /**< mxdnn_primitive_kind_t */
    mxdnn_query_num_of_inputs_s32 = 3,  /**< int: number of arguments that are read */
    mxdnn_query_num_of_outputs_s32 = 4, /**< int: number of arguments that are written */
    mxdnn_query_memory_consumption_s64 =
            6, /**< int64_t: bytes of scratchpad that the library allocates; 0 if the caller passes it */
    mxdnn_query_scratchpad_engine = 7,   /**< mxdnn_engine_t */
    mxdnn_query_impl_info_str = 8,       /**< const char *: the implementation's name */
    mxdnn_query_reorder_src_engine = 9,  /**< mxdnn_engine_t */
    mxdnn_query_reorder_dst_engine = 10, /**< mxdnn_engine_t */
    mxdnn_query_strides = 14,            /**< const mxdnn_dims_t * */
    mxdnn_query_src_md = 129,            /**< const_mxdnn_memory_desc_t: the source */
    mxdnn_query_weights_md = 131,        /**< const_mxdnn_memory_desc_t; index 0: weights, index 1: bias */
    mxdnn_query_diff_weights_md = 132,   /**< const_mxdnn_memory_desc_t: the gradient of the weights */
    mxdnn_query_dst_md = 133, /**< const_mxdnn_memory_desc_t; index 0: the destination, index 1: the second
                                 one of an mx_reorder */
    mxdnn_query_diff_dst_md = 134,   /**< const_mxdnn_memory_desc_t: the gradient of the destination */
    mxdnn_query_scratchpad_md = 136, /**< const_mxdnn_memory_desc_t: plain bytes */
    mxdnn_query_exec_arg_md = 255,   /**< const_mxdnn_memory_desc_t; index: an execution argument */
    mxdnn_query_ndims_s32 = 256,     /**< int */
    mxdnn_query_dims = 257,          /**< const mxdnn_dims_t * */
    mxdnn_query_data_type = 258,     /**< mxdnn_data_type_t */
    mxdnn_query_format_kind = 262,   /**< mxdnn_format_kind_t */
    mxdnn_query_expert_stride_s64 =
            0x1000, /**< packed, int64_t: bytes from one batch entry (expert) to the next */
    mxdnn_query_scale_data_type = 0x1001,    /**< packed: mxdnn_data_type_t */
    mxdnn_query_block_size_s64 = 0x1002,     /**< packed, int64_t: elements along K that share a scale */
    mxdnn_query_layout_id_s32 = 0x1003,      /**< packed, int; doc/reference/layouts.md */
    mxdnn_query_layout_version_s32 = 0x1004, /**< packed, int */
    mxdnn_query_alignment_s64 = 0x1005,      /**< packed, int64_t: preferred alignment of the bytes */
    mxdnn_query_annotation_data_type =
            0x1006, /**< mxdnn_data_type_t: the type before quantisation, undef if not set */
    mxdnn_query_annotation_recipe_str = 0x1007, /**< const char *: the activation recipe, "" if not set */
    mxdnn_query_target_str = 0x1008 /**< packed, const char *: the target family, for example "cpu:x64" */
} mxdnn_query_t;

/* Handles. An object behind a const_ handle is only read. */
/** An engine: where primitives run, or what weights are packed for. */
typedef struct mxdnn_engine *mxdnn_engine_t;
/** A stream: the order of executions. */
typedef struct mxdnn_stream *mxdnn_stream_t;
/** A memory descriptor: shape, type and arrangement of a tensor. */
typedef struct mxdnn_memory_desc *mxdnn_memory_desc_t;
/** The same, only read. */
typedef const struct mxdnn_memory_desc *const_mxdnn_memory_desc_t;
/** A checksum of bytes that come in parts. */
typedef struct mxdnn_checksum *mxdnn_checksum_t;
/** The same, only read. */
typedef const struct mxdnn_checksum *const_mxdnn_checksum_t;
/** A memory: a descriptor and its bytes. */
typedef struct mxdnn_memory *mxdnn_memory_t;
/** The same, only read. */
typedef const struct mxdnn_memory *const_mxdnn_memory_t;
/** Attributes of a primitive: scales, post-ops, modes. */
typedef struct mxdnn_primitive_attr *mxdnn_primitive_attr_t;
/** The same, only read. */
typedef const struct mxdnn_primitive_attr *const_mxdnn_primitive_attr_t;
/** Post-ops: functions that are applied to the result of a matmul. */
typedef struct mxdnn_post_ops *mxdnn_post_ops_t;
/** The same, only read. */
typedef const struct mxdnn_post_ops *const_mxdnn_post_ops_t;
/** A primitive descriptor: a problem and the implementation chosen for it. */
typedef struct mxdnn_primitive_desc *mxdnn_primitive_desc_t;
/** The same, only read. */
typedef const struct mxdnn_primitive_desc *const_mxdnn_primitive_desc_t;
/** A primitive: a compiled implementation of one problem. */
typedef struct mxdnn_primitive *mxdnn_primitive_t;
/** The same, only read. */
typedef const struct mxdnn_primitive *const_mxdnn_primitive_t;

/** One argument of an execution. */
typedef struct {
    int arg;               /**< MXDNN_ARG_* */
    mxdnn_memory_t memory; /**< its descriptor fits the one of mxdnn_query_exec_arg_md for `arg` */
} mxdnn_exec_arg_t;

/* Values of mxdnn_version_t::cpu_runtime: the value of the CMake option MXDNN_CPU_RUNTIME. */
#define MXDNN_RUNTIME_NONE 0u       /**< never used; only for oneDNN's sake */
#define MXDNN_RUNTIME_SEQ 1u        /**< the calling thread only */
#define MXDNN_RUNTIME_TBB 4u        /**< oneTBB's threads, or a thread pool of the caller */
#define MXDNN_RUNTIME_THREADPOOL 8u /**< a thread pool of the caller; without one the calling thread only */

/** The version of the library that is loaded. */
typedef struct {
    int major;            /**< larger if programs have to change */
    int minor;            /**< larger if something was added */
    int patch;            /**< larger in every other release */
    const char *hash;     /**< the commit that the library was built from, 40 hexadecimal digits; "N/A" if not
                             known */
    unsigned cpu_runtime; /**< MXDNN_RUNTIME_* */
} mxdnn_version_t;

/** In place of a data pointer: no buffer. */
#define MXDNN_MEMORY_NONE (NULL)
/** In place of a data pointer: a buffer that the library allocates and owns. */
#define MXDNN_MEMORY_ALLOCATE ((void *)(size_t)-1)

/* Arguments of executions. In shapes, T is the number of tokens, k the number of choices of each token, E the
 * number of experts of the weights, G the number of groups and R the number of rows. An argument has the same
 * shape in the primitive that writes it and in the one that reads it. */

/** The source. */
#define MXDNN_ARG_SRC_0 1
/** The source. */
#define MXDNN_ARG_SRC MXDNN_ARG_SRC_0
/** The source of an mx_reorder. */
#define MXDNN_ARG_FROM MXDNN_ARG_SRC_0
/** The operand of a binary post-op. It is OR-ed with MXDNN_ARG_ATTR_MULTIPLE_POST_OP(). */
#define MXDNN_ARG_SRC_1 2
/** The destination. */
#define MXDNN_ARG_DST_0 17
/** The destination. */
#define MXDNN_ARG_DST MXDNN_ARG_DST_0
/** The destination of an mx_reorder. */
#define MXDNN_ARG_TO MXDNN_ARG_DST_0
/** The second destination of an mx_reorder that has two. */
#define MXDNN_ARG_DST_1 18
/** The weights. */
#define MXDNN_ARG_WEIGHTS_0 33
/** The weights. */
#define MXDNN_ARG_WEIGHTS MXDNN_ARG_WEIGHTS_0
/** The bias. */
#define MXDNN_ARG_BIAS 41
/** The scratchpad, in user scratchpad mode: memory of the scratchpad descriptor, at a multiple of 64 bytes.
 */
#define MXDNN_ARG_SCRATCHPAD 80
/** The gradient of the destination. */
#define MXDNN_ARG_DIFF_DST_0 145
/** The gradient of the destination. */
#define MXDNN_ARG_DIFF_DST MXDNN_ARG_DIFF_DST_0
/** The gradient of the weights. */
#define MXDNN_ARG_DIFF_WEIGHTS_0 161
/** The gradient of the weights. */
#define MXDNN_ARG_DIFF_WEIGHTS MXDNN_ARG_DIFF_WEIGHTS_0
/** OR-ed with SRC, WEIGHTS, DST, DST_1 or DIFF_DST: the scales of that argument. Dimensions are those of the
 * argument, divided by the groups and rounded up. */
#define MXDNN_ARG_ATTR_SCALES 4096
/** OR-ed with SRC, WEIGHTS, DST or DST_1: the zero points of that argument. Dimensions are those of the
 * scales. */
#define MXDNN_ARG_ATTR_ZERO_POINTS 8192
/** The first bit of MXDNN_ARG_ATTR_MULTIPLE_POST_OP(). */
#define MXDNN_ARG_ATTR_MULTIPLE_POST_OP_BASE 32768
/** OR-ed with SRC_1: the operand of the binary post-op at position `idx`. */
#define MXDNN_ARG_ATTR_MULTIPLE_POST_OP(idx) (MXDNN_ARG_ATTR_MULTIPLE_POST_OP_BASE * ((idx) + 1))

/** OR-ed with SRC, WEIGHTS, DST or DST_1: the global scale of NVFP4, f32 {1} or {E}. */
#define MXDNN_ARG_ATTR_GLOBAL_SCALE (1 << 21)

/** s32 {G} or {G + 1}: ends or starts of the groups; see mxdnn_row_grouping_t. */
#define MXDNN_ARG_GROUP_OFFSETS ((1 << 22) + 0)
/** Numbers of rows, s32. grouped_matmul: {G}, of each padded group. moe_route: {E}, of each expert.
 * moe_permute: {source ranks, local experts}. grouped_matmul_backward_weights: {G} or {source ranks, G}. */
#define MXDNN_ARG_GROUP_COUNTS ((1 << 22) + 1)
/** s32 {R}: the expert of each row, -1 for none. */
#define MXDNN_ARG_ROW_EXPERT_IDS ((1 << 22) + 2)
/** s32 {G}: the expert of each group, -1 for none. */
#define MXDNN_ARG_GROUP_EXPERT_IDS ((1 << 22) + 3)
/** s32 {global experts}: for each expert id, the expert of the weights; -1 for an expert that is not here. */
#define MXDNN_ARG_EXPERT_MAP ((1 << 22) + 4)
/** u64 {E}: the address of the packed bytes of each expert. Passed instead of WEIGHTS. */
#define MXDNN_ARG_WEIGHTS_PTRS ((1 << 22) + 5)
/** s32 {R}: for each row, the row of the source that it reads; -1 for a row of zeros. */
#define MXDNN_ARG_GATHER_IDX ((1 << 22) + 6)
/** s32 {R}: for each row, the row of the destination that it is added to; -1 for none. */
#define MXDNN_ARG_SCATTER_IDX ((1 << 22) + 7)
/** f32 or bf16: {R} for grouped_matmul, {T, k} for moe_route (f32 only) and moe_unpermute. */
#define MXDNN_ARG_TOPK_WEIGHTS ((1 << 22) + 8)
/** f32 {E}: a factor for the sums of each expert. */
#define MXDNN_ARG_EXPERT_ALPHA ((1 << 22) + 9)
/** f32 {3} or {E, 3}: alpha, beta and limit of the gated post-op. */
#define MXDNN_ARG_ACTIVATION_PARAMS ((1 << 22) + 10)
/** s32 {T, k}: the experts of each token, best first. */
#define MXDNN_ARG_TOPK_IDS ((1 << 22) + 11)
/** s32 {T * k}: for each row in the order of experts, its entry t * k + j of TOPK_IDS. */
#define MXDNN_ARG_ROW_ORDER ((1 << 22) + 12)
/** s32 {R}: for each row in the order of experts, the row that it comes from; -1 for padding. */
#define MXDNN_ARG_PERMUTED_IDX ((1 << 22) + 13)
/** f32 {E}: added to the scores when experts are chosen. */
#define MXDNN_ARG_ROUTE_BIAS ((1 << 22) + 14)
/** f32 {T * k}: TOPK_WEIGHTS in the order of the rows. */
#define MXDNN_ARG_ROW_WEIGHTS ((1 << 22) + 15)

#ifdef __cplusplus
}
#endif

#endif
