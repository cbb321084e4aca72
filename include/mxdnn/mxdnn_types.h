/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Types, enumerations and argument indices of the C API.
 *
 * Every value that oneDNN's v3 API has too is equal to oneDNN's. Values of mxdnn's own start
 * at 100 (status), 0x100 (data types, algorithms, modes, kinds), 0x1000 (queries) and 1 << 21
 * (execution arguments). A value, once released, never changes. */
#ifndef MXDNN_TYPES_H
#define MXDNN_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Outcome of every call of the C API. mxdnn_get_last_error() has the sentence that goes with a failure. */
typedef enum {
    mxdnn_success = 0,                /**< the call did what it says */
    mxdnn_out_of_memory = 1,          /**< memory could not be allocated */
    mxdnn_invalid_arguments = 2,      /**< an argument has a value that is never allowed */
    mxdnn_unimplemented = 3,          /**< a valid problem that no implementation takes */
    mxdnn_last_impl_reached = 4,      /**< there is no further implementation */
    mxdnn_runtime_error = 5,          /**< the system, a device or a callback failed */
    mxdnn_not_required = 6,           /**< never returned; there because oneDNN has it */
    mxdnn_invalid_shape = 9,          /**< dimensions that do not match each other */
    mxdnn_invalid_data_type = 10,     /**< data types that do not match each other */
    mxdnn_corrupt_blob = 100,         /**< bytes that no release of mxdnn wrote, or that were altered since */
    mxdnn_incompatible_version = 101, /**< a blob of a newer format than this library reads */
    mxdnn_incompatible_target = 102,  /**< packed for a target family whose bytes this engine cannot use */
    mxdnn_device_unavailable = 103    /**< the engine's target is described here but cannot run here */
} mxdnn_status_t;

/** Element and scale types; see doc/reference/formats.md for their exact values. */
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
    mxdnn_u64 = 0x110      /**< only in tables of pointers */
} mxdnn_data_type_t;

/** The most dimensions that a tensor has. */
#define MXDNN_MAX_NDIMS 12
/** A dimension, a stride or a number of rows, in elements. */
typedef int64_t mxdnn_dim_t;
/** Dimensions or strides, outermost first; what lies beyond the tensor's last one is not read. */
typedef mxdnn_dim_t mxdnn_dims_t[MXDNN_MAX_NDIMS];

/** A dimension whose value is known only when the primitive is executed. */
#define MXDNN_RUNTIME_DIM_VAL INT64_MIN

/** How a memory descriptor arranges its elements. */
typedef enum {
    mxdnn_format_kind_undef = 0,      /**< no descriptor */
    mxdnn_format_kind_any = 1,        /**< left to the primitive descriptor */
    mxdnn_blocked = 2,                /**< strided */
    mxdnn_format_kind_opaque = 3,     /**< packed weights */
    mxdnn_format_kind_grouped = 0x100 /**< rows of several groups, one after the other */
} mxdnn_format_kind_t;

/** Orders of dimensions; `ba` is the transpose of `ab`. */
typedef enum {
    mxdnn_format_tag_undef = 0, /**< no tag */
    mxdnn_format_tag_any = 1,   /**< left to the primitive descriptor */
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
    mxdnn_any_engine = 0, /**< no kind */
    mxdnn_cpu = 1,        /**< x86-64 processors */
    mxdnn_cuda = 2        /**< oneDNN's `gpu` */
} mxdnn_engine_kind_t;

/** Flags of mxdnn_stream_create(): executions of a stream follow one another. */
typedef enum {
    mxdnn_stream_in_order = 0x1,     /**< executions follow one another */
    mxdnn_stream_default_flags = 0x1 /**< in order */
} mxdnn_stream_flags_t;

/** Kinds of primitives and, below 0x100 as in oneDNN and from 0x110 on, of post-ops. */
typedef enum {
    mxdnn_undefined_primitive = 0,               /**< no primitive */
    mxdnn_primitive_kind_mx_reorder = 0x100,     /**< mx_reorder */
    mxdnn_primitive_kind_mx_matmul = 0x101,      /**< mx_matmul */
    mxdnn_primitive_kind_grouped_matmul = 0x102, /**< grouped_matmul */
    mxdnn_primitive_kind_moe_route = 0x103,      /**< moe_route */
    mxdnn_primitive_kind_moe_permute = 0x104,    /**< moe_permute */
    mxdnn_primitive_kind_moe_unpermute = 0x105,  /**< moe_unpermute */
    /* kinds of post-ops */
    mxdnn_sum = 4,      /**< post-op: adds what dst held before */
    mxdnn_eltwise = 7,  /**< post-op: a function of each value */
    mxdnn_binary = 13,  /**< post-op: a function of each value and a tensor */
    mxdnn_gated = 0x110 /**< post-op: a gated activation */
} mxdnn_primitive_kind_t;

/** Algorithms of post-ops, of alpha and beta and a value x, and scorings of moe_route. */
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
    /* gated activations: of gate g and up u; see mxdnn_post_ops_append_gated() */
    mxdnn_gated_silu = 0x100, /**< g * sigmoid(g) * u */
    mxdnn_gated_swiglu_oai =
            0x101, /**< gpt-oss: min(g, limit) * sigmoid(alpha * g) * (clamp(u, +-limit) + 1) */
    mxdnn_gated_gelu_erf = 0x102,  /**< gelu(g) * u */
    mxdnn_gated_gelu_tanh = 0x103, /**< the same with gelu_tanh */
    /* not gated, of one column each, for expert layers */
    mxdnn_eltwise_relu2 = 0x110, /**< max(x, 0)^2 */
    /* scoring of moe_route */
    mxdnn_route_softmax_topk = 0x120, /**< softmax over all experts, then top-k */
    mxdnn_route_topk_softmax = 0x121, /**< top-k, then softmax over the chosen */
    mxdnn_route_sigmoid = 0x122       /**< a sigmoid of each logit, then top-k */
} mxdnn_alg_kind_t;

/** Flags of moe_route; doc/reference/moe_route.md. */
typedef enum {
    mxdnn_route_flags_none = 0,       /**< no flag */
    mxdnn_route_renormalize = 1 << 0, /**< the chosen weights are divided by their sum */
    mxdnn_route_bias = 1 << 1,     /**< ROUTE_BIAS is added to the scores that choose, not to the weights */
    mxdnn_route_group_max = 1 << 2 /**< a group scores by its best expert, not by the sum of its best two */
} mxdnn_route_flags_t;

/** Which precision f32 operands may be rounded to inside a primitive; strict: none. */
typedef enum {
    mxdnn_fpmath_mode_strict = 0, /**< none */
    mxdnn_fpmath_mode_bf16 = 1,   /**< bf16 */
    mxdnn_fpmath_mode_f16 = 2,    /**< f16 */
    mxdnn_fpmath_mode_any = 3,    /**< any that is listed here */
    mxdnn_fpmath_mode_tf32 = 4    /**< tf32: the exponent of f32, 10 mantissa bits */
} mxdnn_fpmath_mode_t;

/** Which precision sums may have; strict: that of f32; doc/reference/mx_matmul.md. */
typedef enum {
    mxdnn_accumulation_mode_strict = 0,  /**< that of f32 */
    mxdnn_accumulation_mode_relaxed = 1, /**< kernels may use shorter sums where they are faster */
    mxdnn_accumulation_mode_any = 2,     /**< as relaxed */
    mxdnn_accumulation_mode_s32 = 3,     /**< there because oneDNN has it; no kernel takes it */
    mxdnn_accumulation_mode_f32 = 4,     /**< as strict */
    mxdnn_accumulation_mode_f16 = 5      /**< there because oneDNN has it; no kernel takes it */
} mxdnn_accumulation_mode_t;

/** Whose memory a primitive works in: the library's, or what the caller passes as MXDNN_ARG_SCRATCHPAD. */
typedef enum {
    mxdnn_scratchpad_mode_library = 0, /**< the library's */
    mxdnn_scratchpad_mode_user = 1     /**< the caller's */
} mxdnn_scratchpad_mode_t;

/** Who computes the scales of an argument. */
typedef enum {
    mxdnn_quantization_mode_undef = 0,       /**< no scales */
    mxdnn_quantization_mode_static_sazp = 1, /**< the caller passes scales and zero points */
    mxdnn_quantization_mode_dynamic_mx = 2,  /**< computed by the MX rules, written out */
    mxdnn_quantization_mode_dynamic_fp = 3,  /**< computed by the NVFP4 rules, written out */
    mxdnn_quantization_mode_dynamic_affine =
            0x100 /**< computed by the group-affine int4 rules, written out */
} mxdnn_quantization_mode_t;

/** How an e8m0 scale byte follows from a block's largest magnitude; doc/reference/formats.md. */
typedef enum {
    mxdnn_scale_rounding_floor = 0, /**< exponent of the magnitude less that of the largest element */
    mxdnn_scale_rounding_ceil = 1,  /**< the same plus 1 where the mantissa of the magnitude is not 0 */
    mxdnn_scale_rounding_even = 2,  /**< floor, of the magnitude rounded to the mantissa bits of an element */
    mxdnn_scale_rounding_rceil = 3  /**< the smallest power of two so that no element saturates */
} mxdnn_scale_rounding_t;

/** Order of plain scales: as the elements', or padded to tiles of 128 rows and 4 scales each;
 * doc/reference/formats.md.
 */
typedef enum {
    mxdnn_scales_linear = 0,       /**< the order of the elements */
    mxdnn_scales_swizzle_128x4 = 1 /**< tiles of 128 rows and 4 scales */
} mxdnn_scales_layout_t;

/** Plain 6-bit elements: one code per byte, or four codes in three bytes. */
typedef enum {
    mxdnn_element_packing_bytes = 0, /**< one code per byte */
    mxdnn_element_packing_dense = 1  /**< four codes in three bytes */
} mxdnn_element_packing_t;

/** How grouped_matmul learns which rows belong to which group. */
typedef enum {
    mxdnn_row_grouping_ends = 0,   /**< GROUP_OFFSETS [G]: the row behind each group's last */
    mxdnn_row_grouping_starts = 1, /**< GROUP_OFFSETS [G + 1]: each group's first row, then the end */
    mxdnn_row_grouping_padded = 2, /**< GROUP_COUNTS [G]: rows of each group, which all have the same room */
    mxdnn_row_grouping_row_ids = 3 /**< ROW_EXPERT_IDS [rows]: an expert for each row, in any order */
} mxdnn_row_grouping_t;

/** Where grouped_matmul applies MXDNN_ARG_TOPK_WEIGHTS. */
typedef enum {
    mxdnn_topk_weights_on_output = 0, /**< to a row's results, after the post-ops */
    mxdnn_topk_weights_on_input = 1   /**< to the rows of the source: to a row's sums, before the bias */
} mxdnn_topk_weights_placement_t;

/** Where a gated post-op finds gate and up: column pairs (2j, 2j+1), or (j, j + N/2). */
typedef enum {
    mxdnn_gated_interleaved = 0, /**< gate in column 2j, up in column 2j + 1 */
    mxdnn_gated_halves = 1       /**< gate in column j, up in column j + N/2 */
} mxdnn_gated_layout_t;

/** What an engine can do with the weights that a blob describes. */
typedef enum {
    mxdnn_blob_native = 0, /**< the engine's best ISA has an optimised kernel for them */
    mxdnn_blob_slower = 1, /**< a lower entry of the implementation list, or the reference, takes them */
    mxdnn_blob_needs_reorder = 2, /**< the layout is known but nothing here runs on it: mx_reorder first */
    mxdnn_blob_incompatible = 3,  /**< a layout or a version that this library does not know */
    mxdnn_blob_corrupt = 4        /**< bytes that no release of mxdnn wrote, or that were altered since */
} mxdnn_blob_verdict_t;

/** Ceilings for the CPU code that may be used; see mxdnn_set_max_cpu_isa(). */
typedef enum {
    mxdnn_cpu_isa_default = 0x0,           /**< no ceiling */
    mxdnn_cpu_isa_avx2 = 0x7,              /**< AVX2, FMA and F16C */
    mxdnn_cpu_isa_avx512_core = 0x27,      /**< AVX-512 F, BW, DQ and VL */
    mxdnn_cpu_isa_avx512_core_bf16 = 0xe7, /**< the same with BF16 and VBMI */
    mxdnn_cpu_isa_avx512_core_amx = 0xfef  /**< the same with AMX tiles of bf16 and int8 */
} mxdnn_cpu_isa_t;

/** Questions to descriptors, and the type of each answer. */
typedef enum {
    mxdnn_query_undef = 0,              /**< no question */
    mxdnn_query_engine = 1,             /**< mxdnn_engine_t */
    mxdnn_query_primitive_kind = 2,     /**< mxdnn_primitive_kind_t */
    mxdnn_query_num_of_inputs_s32 = 3,  /**< int: arguments that are read */
    mxdnn_query_num_of_outputs_s32 = 4, /**< int: arguments that are written */
    mxdnn_query_memory_consumption_s64 =
            6, /**< int64_t: scratchpad bytes that the library allocates; 0 when the user does */
    mxdnn_query_scratchpad_engine = 7,   /**< mxdnn_engine_t */
    mxdnn_query_impl_info_str = 8,       /**< const char *: the implementation's name */
    mxdnn_query_reorder_src_engine = 9,  /**< mxdnn_engine_t */
    mxdnn_query_reorder_dst_engine = 10, /**< mxdnn_engine_t */
    mxdnn_query_strides = 14,            /**< const mxdnn_dims_t * */
    mxdnn_query_src_md = 129,            /**< const_mxdnn_memory_desc_t */
    mxdnn_query_weights_md = 131,        /**< index 0: weights; index 1: bias */
    mxdnn_query_dst_md = 133,            /**< index 1: the second destination of an mx_reorder */
    mxdnn_query_scratchpad_md = 136,     /**< const_mxdnn_memory_desc_t of plain bytes */
    mxdnn_query_exec_arg_md = 255,       /**< index is the execution argument */
    mxdnn_query_ndims_s32 = 256,         /**< int */
    mxdnn_query_dims = 257,              /**< const mxdnn_dims_t * */
    mxdnn_query_data_type = 258,         /**< mxdnn_data_type_t */
    mxdnn_query_format_kind = 262,       /**< mxdnn_format_kind_t */
    mxdnn_query_expert_stride_s64 =
            0x1000, /**< packed, int64_t: bytes from one batch entry (expert) to the next */
    mxdnn_query_scale_data_type = 0x1001,    /**< packed: mxdnn_data_type_t */
    mxdnn_query_block_size_s64 = 0x1002,     /**< packed, int64_t: elements along K that share a scale */
    mxdnn_query_layout_id_s32 = 0x1003,      /**< packed, int; doc/reference/layouts.md */
    mxdnn_query_layout_version_s32 = 0x1004, /**< packed, int */
    mxdnn_query_alignment_s64 = 0x1005,      /**< packed, int64_t: preferred alignment of the bytes */
    mxdnn_query_annotation_data_type =
            0x1006, /**< mxdnn_data_type_t: type before quantisation, undef if not set */
    mxdnn_query_annotation_recipe_str = 0x1007, /**< const char *: activation recipe, "" if not set */
    mxdnn_query_target_str = 0x1008             /**< packed, const char *: target family, e.g. "cpu:x64" */
} mxdnn_query_t;

/* Handles. A const_ handle is only read. */
/** An engine: where primitives run, or what weights are packed for. */
typedef struct mxdnn_engine *mxdnn_engine_t;
/** A stream: executions in their order. */
typedef struct mxdnn_stream *mxdnn_stream_t;
/** A memory descriptor: shape, type and arrangement of a tensor. */
typedef struct mxdnn_memory_desc *mxdnn_memory_desc_t;
/** One that is only read. */
typedef const struct mxdnn_memory_desc *const_mxdnn_memory_desc_t;
/** A checksum of packed bytes that come in parts. */
typedef struct mxdnn_checksum *mxdnn_checksum_t;
/** One that is only read. */
typedef const struct mxdnn_checksum *const_mxdnn_checksum_t;
/** A memory: a descriptor and its bytes. */
typedef struct mxdnn_memory *mxdnn_memory_t;
/** One that is only read. */
typedef const struct mxdnn_memory *const_mxdnn_memory_t;
/** Attributes of a primitive: scales, post-ops, modes. */
typedef struct mxdnn_primitive_attr *mxdnn_primitive_attr_t;
/** One that is only read. */
typedef const struct mxdnn_primitive_attr *const_mxdnn_primitive_attr_t;
/** Post-ops: what is applied to the result of a matmul. */
typedef struct mxdnn_post_ops *mxdnn_post_ops_t;
/** One that is only read. */
typedef const struct mxdnn_post_ops *const_mxdnn_post_ops_t;
/** A primitive descriptor: a problem and the implementation chosen for it. */
typedef struct mxdnn_primitive_desc *mxdnn_primitive_desc_t;
/** One that is only read. */
typedef const struct mxdnn_primitive_desc *const_mxdnn_primitive_desc_t;
/** A primitive: a compiled implementation of one problem. */
typedef struct mxdnn_primitive *mxdnn_primitive_t;
/** One that is only read. */
typedef const struct mxdnn_primitive *const_mxdnn_primitive_t;

/** One argument of an execution. */
typedef struct {
    int arg;               /**< MXDNN_ARG_* */
    mxdnn_memory_t memory; /**< its descriptor fits what the primitive descriptor answers for `arg` */
} mxdnn_exec_arg_t;

/* mxdnn_version_t::cpu_runtime: what the CMake option MXDNN_CPU_RUNTIME was. */
#define MXDNN_RUNTIME_NONE 0u       /**< never; there because oneDNN has it */
#define MXDNN_RUNTIME_SEQ 1u        /**< the calling thread alone */
#define MXDNN_RUNTIME_TBB 4u        /**< oneTBB's threads, or the caller's pool */
#define MXDNN_RUNTIME_THREADPOOL 8u /**< the caller's pool; without one the calling thread alone */

/** The version of the library that is loaded. */
typedef struct {
    int major;            /**< changes where programs have to change */
    int minor;            /**< changes where something is added */
    int patch;            /**< changes with every other release */
    const char *hash;     /**< commit that the library was built from, 40 hex digits; "N/A" if not known */
    unsigned cpu_runtime; /**< MXDNN_RUNTIME_* */
} mxdnn_version_t;

/** In place of a data pointer: no buffer. */
#define MXDNN_MEMORY_NONE (NULL)
/** In place of a data pointer: a buffer that the library allocates and owns. */
#define MXDNN_MEMORY_ALLOCATE ((void *)(size_t)-1)

/* Arguments of executions. Shapes: T tokens, k choices of each, E experts of the weights, G groups of rows,
 * R rows. Where a primitive writes an argument that another one reads, both have the same shape. */

/** The source. */
#define MXDNN_ARG_SRC_0 1
/** The source. */
#define MXDNN_ARG_SRC MXDNN_ARG_SRC_0
/** The source of an mx_reorder. */
#define MXDNN_ARG_FROM MXDNN_ARG_SRC_0
/** The operand of a binary post-op; see MXDNN_ARG_ATTR_MULTIPLE_POST_OP(). */
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
/** In user scratchpad mode: the bytes of the scratchpad descriptor, at a multiple of 64. */
#define MXDNN_ARG_SCRATCHPAD 80
/** OR-ed with SRC, WEIGHTS, DST or DST_1: its scales, its dims divided by the groups. */
#define MXDNN_ARG_ATTR_SCALES 4096
/** Likewise: its zero points, of the same dims. */
#define MXDNN_ARG_ATTR_ZERO_POINTS 8192
/** The first bit of MXDNN_ARG_ATTR_MULTIPLE_POST_OP(). */
#define MXDNN_ARG_ATTR_MULTIPLE_POST_OP_BASE 32768
/** OR-ed with SRC_1: the operand of the binary post-op at position `idx`. */
#define MXDNN_ARG_ATTR_MULTIPLE_POST_OP(idx) (MXDNN_ARG_ATTR_MULTIPLE_POST_OP_BASE * ((idx) + 1))

/** OR-ed with SRC, WEIGHTS, DST or DST_1: the f32 global scale {1} or {E} of NVFP4. */
#define MXDNN_ARG_ATTR_GLOBAL_SCALE (1 << 21)

/** s32 {G} or {G + 1}: ends or starts of the groups, by the row grouping. */
#define MXDNN_ARG_GROUP_OFFSETS ((1 << 22) + 0)
/** s32 {G}: rows of each padded group; moe_route: {E}; moe_permute: {source ranks, local experts}. */
#define MXDNN_ARG_GROUP_COUNTS ((1 << 22) + 1)
/** s32 {R}: the expert of each row, -1 for none. */
#define MXDNN_ARG_ROW_EXPERT_IDS ((1 << 22) + 2)
/** s32 {G}: the expert of each group, -1 for none. */
#define MXDNN_ARG_GROUP_EXPERT_IDS ((1 << 22) + 3)
/** s32 {global experts}: the expert of the weights that an id stands for, -1 for one that is not here. */
#define MXDNN_ARG_EXPERT_MAP ((1 << 22) + 4)
/** u64 {E}: addresses of each expert's packed bytes, in place of WEIGHTS. */
#define MXDNN_ARG_WEIGHTS_PTRS ((1 << 22) + 5)
/** s32 {R}: the row of the source that a row reads, -1 for zeros. */
#define MXDNN_ARG_GATHER_IDX ((1 << 22) + 6)
/** s32 {R}: the row of the destination that a row is added to, -1 for none. */
#define MXDNN_ARG_SCATTER_IDX ((1 << 22) + 7)
/** f32 or bf16: {R} of grouped_matmul, {T, k} of moe_route and moe_unpermute. */
#define MXDNN_ARG_TOPK_WEIGHTS ((1 << 22) + 8)
/** f32 {E}: a factor of each expert's results. */
#define MXDNN_ARG_EXPERT_ALPHA ((1 << 22) + 9)
/** f32 {3} or {E, 3}: alpha, beta and limit of the gated post-op. */
#define MXDNN_ARG_ACTIVATION_PARAMS ((1 << 22) + 10)
/** s32 {T, k}: the experts of each token, best first. */
#define MXDNN_ARG_TOPK_IDS ((1 << 22) + 11)
/** s32 {T * k}: of each row in the order of experts, the entry t * k + j that it is. */
#define MXDNN_ARG_ROW_ORDER ((1 << 22) + 12)
/** s32 {R}: of each row of a permuted tensor, the row that it comes from, -1 for padding. */
#define MXDNN_ARG_PERMUTED_IDX ((1 << 22) + 13)
/** f32 {E}: added to the scores that choose. */
#define MXDNN_ARG_ROUTE_BIAS ((1 << 22) + 14)
/** f32 {T * k}: TOPK_WEIGHTS in the order of the rows. */
#define MXDNN_ARG_ROW_WEIGHTS ((1 << 22) + 15)

#ifdef __cplusplus
}
#endif

#endif
