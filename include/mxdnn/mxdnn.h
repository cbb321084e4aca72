/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * C API: microscaling (MX), NVFP4 and int4 matrix primitives with packed weights.
 *
 * Call sequence and words are oneDNN's: an engine, a stream, memory descriptors and memory, a
 * primitive descriptor (the implementation is chosen there), a primitive, an execution.
 *
 * Every function returns a status; after a failure mxdnn_get_last_error() says in one sentence
 * what was wrong and what would be right. Out-parameters are written only on success. Handles are
 * opaque; each create has its destroy, which takes NULL. Unless said otherwise a handle may be
 * used by many threads as long as none of them modifies or destroys it.
 *
 * Statuses that any function may return are not repeated below: mxdnn_invalid_arguments for a null
 * pointer or a value outside its enumeration, mxdnn_out_of_memory. Sizes are bytes, dimensions and
 * strides are elements. */
#ifndef MXDNN_H
#define MXDNN_H

#include "mxdnn/mxdnn_types.h"

/** Marks the functions that the library exports. */
#if defined(_WIN32)
#define MXDNN_API
#elif defined(__GNUC__)
#define MXDNN_API __attribute__((visibility("default")))
#else
#define MXDNN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engine: where primitives run, or what weights are packed for ---- */

/** Number of engines of a kind that this machine can execute on (a CPU engine always exists); 0 for
 * mxdnn_any_engine. */
size_t MXDNN_API mxdnn_engine_get_count(mxdnn_engine_kind_t kind);
/** An engine that executes on device `index` of a kind, below mxdnn_engine_get_count(). For an index beyond:
 * mxdnn_invalid_arguments of the CPU, which has index 0, mxdnn_device_unavailable of devices. */
mxdnn_status_t MXDNN_API mxdnn_engine_create(mxdnn_engine_t *engine, mxdnn_engine_kind_t kind, size_t index);
/** An engine for a named target, present or not:
 * `cpu:x64:{avx2,avx512_core,avx512_core_bf16,avx512_core_amx}` or `cuda:sm_{80,90,100,120}`, or another name
 * of one: sm_86 and sm_89 of sm_80, sm_103 of sm_100, sm_121 of sm_120. A family, `cpu:x64` or `cuda`, which
 * is what mxdnn_query_target_str answers, stands for its first target. A CPU target that the machine has
 * executes fully, capped at that ISA; any other packs, describes and serialises, and creating a primitive
 * other than mx_reorder on it is mxdnn_device_unavailable. mxdnn_invalid_arguments for an unknown name. */
mxdnn_status_t MXDNN_API mxdnn_engine_create_for_target(mxdnn_engine_t *engine, const char *target);
/** Number of targets that this release knows, present or not. */
size_t MXDNN_API mxdnn_engine_get_target_count(void);
/** The name of target `index`, below mxdnn_engine_get_target_count(), which
 * mxdnn_engine_create_for_target() takes. The string lives as long as the process. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_target_name(size_t index, const char **target);
/** The kind of an engine: mxdnn_cpu or mxdnn_cuda. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_kind(mxdnn_engine_t engine, mxdnn_engine_kind_t *kind);
/** The target's name; the string lives as long as the engine. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_target(mxdnn_engine_t engine, const char **target);
/** Engines are values that are never freed: what was made on one stays valid. */
mxdnn_status_t MXDNN_API mxdnn_engine_destroy(mxdnn_engine_t engine);

/* ---- Stream: order of executions. CPU streams execute in the calling thread, which returns
 * when the work is done; mxdnn_threadpool.h makes one over the caller's threads. ---- */

/** `flags`: mxdnn_stream_in_order. */
mxdnn_status_t MXDNN_API mxdnn_stream_create(mxdnn_stream_t *stream, mxdnn_engine_t engine, unsigned flags);
/** The stream's engine. */
mxdnn_status_t MXDNN_API mxdnn_stream_get_engine(mxdnn_stream_t stream, mxdnn_engine_t *engine);
/** Returns when all that was put into the stream is done. */
mxdnn_status_t MXDNN_API mxdnn_stream_wait(mxdnn_stream_t stream);
/** Destroys a stream. The caller has waited for it, or its engine is a CPU. */
mxdnn_status_t MXDNN_API mxdnn_stream_destroy(mxdnn_stream_t stream);

/* ---- Memory descriptors ---- */

/** Plain tensor of 1 to MXDNN_MAX_NDIMS dims; strides in elements, NULL for the natural (row-major) order.
 * Dims may be MXDNN_RUNTIME_DIM_VAL, zero (an empty tensor) or positive. Rows of 4-bit types start on a byte,
 * and their codes stand side by side along a dimension of stride 1. A stride of 0 repeats what is read;
 * what is written needs a place for each element. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_strides(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const mxdnn_dims_t strides);
/** Plain tensor by tag, which has as many letters as there are dims; mxdnn_format_tag_any leaves the layout
 * to the primitive descriptor. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_tag(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, mxdnn_format_tag_t tag);
/** The descriptor of weights [.., K, N] packed for `engine`'s target: what a matmul on that engine gives for
 * weights of these dims and this type with tag `any`. Of `attr` those attributes count that are of
 * MXDNN_ARG_WEIGHTS: scales in groups {block, 1} along K, zero points, global scale; the attributes of the
 * matmul will do. 2 to MXDNN_MAX_NDIMS dims, all known. mxdnn_unimplemented where the target has no layout
 * for the type. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_packed(mxdnn_memory_desc_t *md, mxdnn_engine_t engine,
        int ndims, const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const_mxdnn_primitive_attr_t attr);
/** Rows of `group_count` groups, one group after the other: dims {rows, K}, variable_dim 0. `offsets_dt`:
 * mxdnn_s32, the type of MXDNN_ARG_GROUP_OFFSETS. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_grouped_encoding(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, int variable_dim, mxdnn_dim_t group_count,
        mxdnn_data_type_t offsets_dt);
/** Serialises a descriptor (doc/reference/blob.md). With blob NULL only *size is written; in the second
 * call *size is the capacity, and on success the bytes written. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_get_blob(
        uint8_t *blob, size_t *size, const_mxdnn_memory_desc_t md);
/** A descriptor from a blob whose length is taken from its own header (at most 4 KiB are read).
 * For bytes that may be truncated use the sized form. mxdnn_corrupt_blob, mxdnn_incompatible_version or
 * mxdnn_incompatible_target say what is wrong with the bytes. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_blob(mxdnn_memory_desc_t *md, const uint8_t *blob);
/** The same from `size` bytes; missing and further bytes are mxdnn_corrupt_blob. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_sized_blob(
        mxdnn_memory_desc_t *md, const uint8_t *blob, size_t size);
/** What `engine` can do with weights that a blob describes. Bad bytes are a verdict, not a failure: the call
 * succeeds, and mxdnn_get_last_error() has the reason for the verdict ("" for mxdnn_blob_native). */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_check_blob(
        mxdnn_engine_t engine, const uint8_t *blob, size_t size, mxdnn_blob_verdict_t *verdict);
/** Notes for others: the type before quantisation and the activation recipe (at most 1024 bytes
 * of UTF-8; NULL for none). Serialised, not part of equality. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_set_annotation(
        mxdnn_memory_desc_t md, mxdnn_data_type_t original_type, const char *recipe);
/** Bytes that the tensor occupies; 0 for `any` and where a dimension is a runtime value. */
size_t MXDNN_API mxdnn_memory_desc_get_size(const_mxdnn_memory_desc_t md);
/** 1 when both describe the same tensor in the same bytes (annotations apart), else 0. */
int MXDNN_API mxdnn_memory_desc_equal(const_mxdnn_memory_desc_t lhs, const_mxdnn_memory_desc_t rhs);
/** Writes the answer through `result`, whose type mxdnn_query_t gives beside each question. Pointers in
 * answers live as long as the descriptor. mxdnn_invalid_arguments for what such a descriptor does not have.
 */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_query(
        const_mxdnn_memory_desc_t md, mxdnn_query_t what, void *result);
/** In the words of verbose lines, which scripts/verbose-to-bench turns into mxdnn-bench's. With text
 * NULL only *size is written (terminator included); else *size is the capacity. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_to_string(char *text, size_t *size, const_mxdnn_memory_desc_t md);
/** A descriptor of its own; the same for all clones below. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_clone(mxdnn_memory_desc_t *md, const_mxdnn_memory_desc_t existing);
/** Destroys a descriptor; what was created from it stays valid. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_destroy(mxdnn_memory_desc_t md);

/** Checksum of the mxdnn_memory_desc_get_size() packed bytes together with the descriptor they belong to;
 * what a container stores beside them (algorithm: doc/reference/blob.md). mxdnn_invalid_arguments where `md`
 * is not packed. */
mxdnn_status_t MXDNN_API mxdnn_packed_checksum(
        const_mxdnn_memory_desc_t md, const void *packed, uint64_t *checksum);
/** The same checksum of bytes that come in parts, in their order, so that a tensor need not be in memory
 * as a whole. */
mxdnn_status_t MXDNN_API mxdnn_checksum_create(mxdnn_checksum_t *checksum, const_mxdnn_memory_desc_t md);
/** Adds the next `size` bytes, of any number; more than are missing are refused. */
mxdnn_status_t MXDNN_API mxdnn_checksum_add(mxdnn_checksum_t checksum, const void *bytes, size_t size);
/** Refused until every byte of the descriptor has been added. */
mxdnn_status_t MXDNN_API mxdnn_checksum_get(const_mxdnn_checksum_t checksum, uint64_t *value);
/** Destroys a checksum. */
mxdnn_status_t MXDNN_API mxdnn_checksum_destroy(mxdnn_checksum_t checksum);

/* ---- Memory ---- */

/** `handle`: a buffer of at least mxdnn_memory_desc_get_size() bytes that the caller keeps alive,
 * MXDNN_MEMORY_ALLOCATE (at a multiple of 64), or MXDNN_MEMORY_NONE. With runtime dims only a caller's buffer
 * or none. Packed bytes start at a multiple of 16. `any` has no memory. The descriptor is copied. */
mxdnn_status_t MXDNN_API mxdnn_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *handle);
/** The memory's own descriptor; it lives as long as the memory. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_memory_desc(
        const_mxdnn_memory_t memory, const_mxdnn_memory_desc_t *md);
/** The memory's engine. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_engine(const_mxdnn_memory_t memory, mxdnn_engine_t *engine);
/** The buffer; NULL for MXDNN_MEMORY_NONE. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_data_handle(const_mxdnn_memory_t memory, void **handle);
/** Another buffer of the caller's, of at least as many bytes, or MXDNN_MEMORY_NONE. */
mxdnn_status_t MXDNN_API mxdnn_memory_set_data_handle(mxdnn_memory_t memory, void *handle);
/** A host pointer to the bytes until mxdnn_memory_unmap_data(), which a device's memory needs to take over
 * what was written. */
mxdnn_status_t MXDNN_API mxdnn_memory_map_data(const_mxdnn_memory_t memory, void **mapped);
/** Ends what mxdnn_memory_map_data() began; `mapped` is its pointer. */
mxdnn_status_t MXDNN_API mxdnn_memory_unmap_data(const_mxdnn_memory_t memory, void *mapped);
/** Destroys a memory, with its buffer where the library allocated it. */
mxdnn_status_t MXDNN_API mxdnn_memory_destroy(mxdnn_memory_t memory);

/* ---- Attributes ---- */

/* Setters check what can be checked without a problem; creating a primitive descriptor checks the rest. A
 * getter writes through each pointer that is not NULL, and tells the default where nothing was set. */

/** Attributes with every default. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_create(mxdnn_primitive_attr_t *attr);
/** Attributes of their own, with the same values. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_clone(
        mxdnn_primitive_attr_t *attr, const_mxdnn_primitive_attr_t existing);
/** Destroys attributes. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_destroy(mxdnn_primitive_attr_t attr);

/** Which precision f32 operands may be rounded to inside a primitive (default strict: none). With
 * `apply_to_int` quantised weights, too, may be multiplied in that precision. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_fpmath_mode(
        mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t mode, int apply_to_int);
/** What mxdnn_primitive_attr_set_fpmath_mode() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_fpmath_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t *mode, int *apply_to_int);
/** Which precision sums may have (default strict: that of f32). */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_accumulation_mode(
        mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t mode);
/** What mxdnn_primitive_attr_set_accumulation_mode() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_accumulation_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t *mode);
/** Non-zero: the same bits on every execution and for any number of threads. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_deterministic(mxdnn_primitive_attr_t attr, int value);
/** What mxdnn_primitive_attr_set_deterministic() set: 0 or 1. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_deterministic(
        const_mxdnn_primitive_attr_t attr, int *value);
/** With mxdnn_scratchpad_mode_user every execution passes MXDNN_ARG_SCRATCHPAD, memory of the descriptor's
 * scratchpad descriptor. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scratchpad_mode(
        mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t mode);
/** What mxdnn_primitive_attr_set_scratchpad_mode() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scratchpad_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t *mode);

/** Scales of argument `arg`. Bit i of `mask`: one scale (or one per group) along dimension i.
 * `group_dims` gives the group lengths of the last `ndims` dimensions (0 and NULL: no groups;
 * leading ones are accepted). `mode` says who computes them; static ones, and results of dynamic
 * ones, travel as MXDNN_ARG_ATTR_SCALES | arg in the order of the elements. Dynamic ones of a
 * matmul's source of f32, bf16 or f16 quantise it in execute and do not travel: dynamic_affine with
 * one f32 scale per row to s8, dynamic_fp with one to f8_e4m3, dynamic_mx with e8m0 scales in groups
 * of 1x32 to MXINT8. `is_on_host` is 0: scales are memory of the primitive's engine, and mxdnn_unimplemented
 * answers those of oneDNN that are one number on the host. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scales(mxdnn_primitive_attr_t attr, int arg, int mask,
        int ndims, const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type, int is_on_host,
        mxdnn_quantization_mode_t mode);
/** The same as they are kept: `group_dims` has two lengths, of the last two dimensions (1: none), *ndims
 * is 2. Where there are no scales *data_type is undef, and *mask, *ndims and *mode are 0. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scales(const_mxdnn_primitive_attr_t attr, int arg,
        int *mask, int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type,
        mxdnn_quantization_mode_t *mode);
/** Zero points of argument `arg`, u8 or (int4's float-zero form) a floating type; the mask and
 * groups must be those of the scales. Travel as MXDNN_ARG_ATTR_ZERO_POINTS | arg. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_zero_points(mxdnn_primitive_attr_t attr, int arg, int mask,
        int ndims, const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type);
/** As mxdnn_primitive_attr_get_scales(). */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_zero_points(const_mxdnn_primitive_attr_t attr, int arg,
        int *mask, int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type);
/** Rule for e8m0 scales that are computed for `arg`; the default is floor. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scale_rounding(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t rounding);
/** What mxdnn_primitive_attr_set_scale_rounding() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scale_rounding(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t *rounding);
/** Order of the plain scales of `arg`: linear, or padded and swizzled 128x4. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scales_layout(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t layout);
/** What mxdnn_primitive_attr_set_scales_layout() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scales_layout(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t *layout);
/** NVFP4's f32 global scale of `arg`, shape {1} or {E}: static_sazp = the caller passes it,
 * dynamic_fp = computed and written, undef (default) = none. Travels as MXDNN_ARG_ATTR_GLOBAL_SCALE | arg. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_global_scale(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t mode);
/** What mxdnn_primitive_attr_set_global_scale() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_global_scale(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t *mode);
/** How plain 6-bit elements of `arg` are stored; the default is one per byte. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_element_packing(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t packing);
/** What mxdnn_primitive_attr_set_element_packing() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_element_packing(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t *packing);
/** grouped_matmul, moe_route, moe_permute: what the group arguments are; the default is ends. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_row_grouping(
        mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t grouping);
/** What mxdnn_primitive_attr_set_row_grouping() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_row_grouping(
        const_mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t *grouping);
/** grouped_matmul: where MXDNN_ARG_TOPK_WEIGHTS apply; the default is the output. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_topk_weights_placement(
        mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t where);
/** What mxdnn_primitive_attr_set_topk_weights_placement() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_topk_weights_placement(
        const_mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t *where);
/** grouped_matmul: expert ids count `global_experts` experts, of which the weights hold those from
 * `first` on; other ids are skipped. global_experts 0: ids are the weights' own. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_expert_range(
        mxdnn_primitive_attr_t attr, mxdnn_dim_t first, mxdnn_dim_t global_experts);
/** What mxdnn_primitive_attr_set_expert_range() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_expert_range(
        const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *first, mxdnn_dim_t *global_experts);
/** Rows expected at most when M is a runtime value: sizes the scratchpad for speed. More rows are
 * correct all the same. 0: no hint. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_max_rows_hint(
        mxdnn_primitive_attr_t attr, mxdnn_dim_t rows);
/** What mxdnn_primitive_attr_set_max_rows_hint() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_max_rows_hint(
        const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *rows);
/** A promise, 0 by default: whenever the primitive is executed, every write of its weights has ended before
 * the call, not only before the work that it puts into the stream; and no write begins before that work has
 * ended. With it a CUDA kernel reads weights while earlier work of its stream still runs, which saves about a
 * microsecond an execution where there are few rows. Without it all arguments are read in the order of the
 * stream. Weights that mx_reorder packs on the same stream right before are safe either way; those that a
 * kernel or a copy of the caller writes are so only after that has been waited for. CPU engines: no effect.
 */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_constant_weights(mxdnn_primitive_attr_t attr, int value);
/** What mxdnn_primitive_attr_set_constant_weights() set: 0 or 1. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_constant_weights(
        const_mxdnn_primitive_attr_t attr, int *value);
/** Copies the post-ops; NULL for none. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_post_ops(
        mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t post_ops);
/** The attribute's own post-ops; they live as long as the attribute. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_post_ops(
        const_mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t *post_ops);

/* ---- Post-ops: applied in order to the f32 result, after the bias; 31 at most. A getter answers
 * mxdnn_invalid_arguments for an index beyond the last or a post-op of another kind. ---- */

/** Post-ops without any entry. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_create(mxdnn_post_ops_t *post_ops);
/** Post-ops of their own, with the same entries. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_clone(mxdnn_post_ops_t *post_ops, const_mxdnn_post_ops_t existing);
/** Destroys post-ops. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_destroy(mxdnn_post_ops_t post_ops);
/** Number of post-ops; 0 for NULL. */
int MXDNN_API mxdnn_post_ops_len(const_mxdnn_post_ops_t post_ops);
/** mxdnn_undefined_primitive for an index beyond the last. */
mxdnn_primitive_kind_t MXDNN_API mxdnn_post_ops_get_kind(const_mxdnn_post_ops_t post_ops, int index);
/** x += scale * (dst as it was before the execution - zero_point); data_type undef: the dst's. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_sum(
        mxdnn_post_ops_t post_ops, float scale, int32_t zero_point, mxdnn_data_type_t data_type);
/** x = alg(x) with alpha and beta as mxdnn_alg_kind_t has them; both are 0 where it has none. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_eltwise(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, float alpha, float beta);
/** x = x (alg) src1, src1 broadcast along its dims of 1; plain f32, bf16 or f16. Its memory travels as
 * MXDNN_ARG_ATTR_MULTIPLE_POST_OP(index) | MXDNN_ARG_SRC_1. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_binary(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, const_mxdnn_memory_desc_t src1_desc);
/** Gated activation: N columns, which is even, become N/2. At most one, before any post-op whose operand has
 * the destination's shape. `alpha` is that of mxdnn_gated_swiglu_oai; `limit` clamps gate and up of each of
 * them where it is positive and finite. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_gated(mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg,
        float alpha, float limit, mxdnn_gated_layout_t layout);
/** The parameters of the sum at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_sum(const_mxdnn_post_ops_t post_ops, int index,
        float *scale, int32_t *zero_point, mxdnn_data_type_t *data_type);
/** The parameters of the eltwise at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_eltwise(
        const_mxdnn_post_ops_t post_ops, int index, mxdnn_alg_kind_t *alg, float *alpha, float *beta);
/** The parameters of the binary at `index`; the descriptor lives as long as the post-ops. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_binary(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, const_mxdnn_memory_desc_t *src1_desc);
/** The parameters of the gated activation at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_gated(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, float *alpha, float *limit, mxdnn_gated_layout_t *layout);

/* ---- Primitive descriptors: attr may be NULL (defaults). The descriptors and attributes are copied.
 * mxdnn_invalid_arguments, _invalid_shape or _invalid_data_type: the problem is none; mxdnn_unimplemented: it
 * is one, but nothing here takes it. ---- */

/** Anything to anything among plain high precision, plain quantised (elements + scales) and
 * packed, of equal dims; doc/reference/mx_reorder.md. A destination with tag `any` is packed for dst_engine
 * in the format that the type and the attributes of MXDNN_ARG_DST say (without those, that of the source);
 * mxdnn_query_dst_md gives its descriptor. */
mxdnn_status_t MXDNN_API mxdnn_mx_reorder_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr);
/** The same to two destinations at once, MXDNN_ARG_DST and MXDNN_ARG_DST_1, each with attributes of its own:
 * a matrix quantised along both of its dims, as training needs it, is read once. Each may have tag `any`. */
mxdnn_status_t MXDNN_API mxdnn_mx_reorder_primitive_desc_create_with_dst_1(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_memory_desc_t dst_1_md, mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr);
/** dst[.., M, N] = post_ops(src[.., M, K] * weights[.., K, N] + bias), f32 accumulation;
 * bias_md NULL for none, else it broadcasts to dst's dims. M and batch dims may be MXDNN_RUNTIME_DIM_VAL;
 * weights may have tag `any`, which mxdnn_query_weights_md resolves; doc/reference/mx_matmul.md. */
mxdnn_status_t MXDNN_API mxdnn_mx_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);
/** The expert matmul: src [R, K] and dst [R, N] in G groups of rows, those of group g times weights [E, K, N]
 * of its expert; bias_md [E, N], NULL for none. R may be MXDNN_RUNTIME_DIM_VAL; weights may have tag `any`;
 * doc/reference/grouped_matmul.md. */
mxdnn_status_t MXDNN_API mxdnn_grouped_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);
/** Router logits [T, E] to the top-k experts of each token and their weights, and to the rows in
 * expert order that grouped_matmul takes. `flags`: mxdnn_route_flags_t. `expert_groups` divides E (1: no
 * groups), experts are chosen from the best `topk_groups` of them; doc/reference/moe_route.md. */
mxdnn_status_t MXDNN_API mxdnn_moe_route_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t logits_md, mxdnn_dim_t topk,
        mxdnn_alg_kind_t scoring, unsigned flags, mxdnn_dim_t expert_groups, mxdnn_dim_t topk_groups,
        const_mxdnn_primitive_attr_t attr);
/** Rows [R, D] from [source rank][local expert] order to expert order, each expert's padded to a multiple of
 * `alignment` rows; doc/reference/moe_permute.md. */
mxdnn_status_t MXDNN_API mxdnn_moe_permute_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md,
        mxdnn_dim_t source_ranks, mxdnn_dim_t local_experts, mxdnn_dim_t alignment,
        const_mxdnn_primitive_attr_t attr);
/** Rows [R, D] back to where they came from, [T, D], padding dropped, top-k rows of a token summed by their
 * weights; doc/reference/moe_unpermute.md. */
mxdnn_status_t MXDNN_API mxdnn_moe_unpermute_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);

/** Moves to the next implementation of the list that takes the problem; mxdnn_last_impl_reached
 * when there is none, and the descriptor stays what it is. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_next_impl(mxdnn_primitive_desc_t pd);
/** A descriptor of its own, with the same implementation. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_clone(
        mxdnn_primitive_desc_t *pd, const_mxdnn_primitive_desc_t existing);
/** The descriptor's own attributes, with what descriptors imply; they live as long as the descriptor. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_get_attr(
        const_mxdnn_primitive_desc_t pd, const_mxdnn_primitive_attr_t *attr);
/** Writes the answer through `result`, whose type mxdnn_query_t gives; `index` is 0 where it says nothing. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_query(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index, void *result);
/** The memory descriptor queries; NULL where there is none. Valid until the pd moves on or is destroyed. */
const_mxdnn_memory_desc_t MXDNN_API mxdnn_primitive_desc_query_md(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index);
/** Destroys a primitive descriptor; primitives created from it stay valid. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_destroy(mxdnn_primitive_desc_t pd);

/* ---- Primitives ---- */

/** Compiles or fetches from the cache. mxdnn_device_unavailable where the engine's target cannot execute
 * here. */
mxdnn_status_t MXDNN_API mxdnn_primitive_create(
        mxdnn_primitive_t *primitive, const_mxdnn_primitive_desc_t pd);
/** Safe from many threads at once on one primitive (in user scratchpad mode: with a scratchpad
 * each). Allocates nothing. Arguments that are missing, do not fit the descriptor, overlap what is written,
 * or that the primitive does not know are mxdnn_invalid_arguments, and nothing is written. */
mxdnn_status_t MXDNN_API mxdnn_primitive_execute(
        const_mxdnn_primitive_t primitive, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args);
/** The primitive's own descriptor; it lives as long as the primitive. */
mxdnn_status_t MXDNN_API mxdnn_primitive_get_primitive_desc(
        const_mxdnn_primitive_t primitive, const_mxdnn_primitive_desc_t *pd);
/** Destroys a primitive; the cache may keep its code. */
mxdnn_status_t MXDNN_API mxdnn_primitive_destroy(mxdnn_primitive_t primitive);

/* ---- Service ---- */

/** Version and commit of the library; the answer lives forever. */
const mxdnn_version_t MXDNN_API *mxdnn_version(void);
/** "success", "invalid_arguments", ... */
const char MXDNN_API *mxdnn_status2str(mxdnn_status_t status);
/** This thread's last failure in one sentence, or the reason for the last verdict of
 * mxdnn_memory_desc_check_blob(), whichever came later; "" when none. Valid until the thread's next call. */
const char MXDNN_API *mxdnn_get_last_error(void);
/** Words of MXDNN_VERBOSE, e.g. "dispatch,profile_exec"; overrides the environment. */
mxdnn_status_t MXDNN_API mxdnn_set_verbose(const char *words);
/** The number of primitives that the cache keeps. */
mxdnn_status_t MXDNN_API mxdnn_get_primitive_cache_capacity(int *capacity);
/** Primitives kept for reuse (default 1024); 0 empties and disables the cache. */
mxdnn_status_t MXDNN_API mxdnn_set_primitive_cache_capacity(int capacity);
/** Caps the CPU ISA; possible until the first primitive descriptor is created, as in oneDNN:
 * afterwards invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_t isa);
/** The best ISA that the machine has and the cap allows. */
mxdnn_cpu_isa_t MXDNN_API mxdnn_get_effective_cpu_isa(void);
/** Threads that an execution may use: 1 to 4096, or 0, the default, for as many as the machine has. For the
 * whole process. Counts twice: when a primitive descriptor is created, whose scratchpad is sized by it, and
 * when its primitive is executed. An execution uses at most the smaller of both values, and no more than the
 * caller's pool has, if the stream has one. So a smaller value holds for executions that begin after the
 * call; a larger one for those whose descriptor, too, was created after it. Always 1 with
 * MXDNN_CPU_RUNTIME=SEQ. */
mxdnn_status_t MXDNN_API mxdnn_set_max_concurrency(int threads);
/** What was set, or how many the machine has. */
int MXDNN_API mxdnn_get_max_concurrency(void);
/** Non-zero: generated code is written to mxdnn_dump_KERNEL.N.bin in the current folder. */
mxdnn_status_t MXDNN_API mxdnn_set_jit_dump(int enable);

#ifdef __cplusplus
}
#endif

#endif
