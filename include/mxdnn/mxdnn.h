/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * C API: matrix primitives for MX, NVFP4 and int4 with packed weights.
 *
 * The order of calls and the names are oneDNN's. A program creates an engine, a stream, memory descriptors
 * and memory. It then creates a primitive descriptor, where the implementation is chosen, and from it a
 * primitive. It executes the primitive as often as it likes.
 *
 * **Status.** Every function returns a status unless its comment says otherwise. After a failure
 * mxdnn_get_last_error() gives one sentence: what was wrong, and what would be right. Out-parameters are
 * written only on success. Two statuses are possible everywhere and are not repeated below:
 * mxdnn_invalid_arguments for a null pointer or a value outside its enumeration, and mxdnn_out_of_memory.
 *
 * **Ownership.** Handles are opaque. The caller owns what a create or clone function returns, and calls the
 * destroy function once for each handle. Destroy functions accept NULL. Pointers returned by getters belong
 * to the object that was asked.
 *
 * **Threads.** Several threads may use one handle at the same time, as long as none of them modifies or
 * destroys it.
 *
 * **Units.** Sizes are bytes. Dimensions, strides and block lengths are elements. Dimensions are listed from
 * the outermost to the innermost one. */
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

/** The number of engines of a kind that can execute on this machine. It is the return value. It is 1 for
 * mxdnn_cpu, and 0 for mxdnn_any_engine and where no such device is found. */
size_t MXDNN_API mxdnn_engine_get_count(mxdnn_engine_kind_t kind);
/** An engine that executes on device `index` of a kind, from 0 to mxdnn_engine_get_count() - 1. A larger
 * index is mxdnn_invalid_arguments for mxdnn_cpu and mxdnn_device_unavailable for devices. */
mxdnn_status_t MXDNN_API mxdnn_engine_create(mxdnn_engine_t *engine, mxdnn_engine_kind_t kind, size_t index);
/** An engine for a named target. The machine need not have the target. Names are
 * `cpu:x64:{avx2,avx512_core,avx512_core_bf16,avx512_core_amx}` and `cuda:sm_{80,90,100,120}`. Other names
 * for these are sm_86 and sm_89 (sm_80), sm_103 (sm_100) and sm_121 (sm_120). A family, `cpu:x64` or `cuda`,
 * stands for its first target; mxdnn_query_target_str answers with a family.
 *
 * If this machine has the CPU target, the engine executes everything and uses no instruction set above the
 * target's. Any other engine packs, describes and serialises weights. Creating a primitive other than
 * mx_reorder on it is mxdnn_device_unavailable. An unknown name is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_engine_create_for_target(mxdnn_engine_t *engine, const char *target);
/** The number of targets that this release knows. The machine need not have them. This is the return value.
 */
size_t MXDNN_API mxdnn_engine_get_target_count(void);
/** Writes the name of target `index`, from 0 to mxdnn_engine_get_target_count() - 1, as
 * mxdnn_engine_create_for_target() takes it. The string lives as long as the process. A larger index is
 * mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_target_name(size_t index, const char **target);
/** Writes the kind of an engine: mxdnn_cpu or mxdnn_cuda. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_kind(mxdnn_engine_t engine, mxdnn_engine_kind_t *kind);
/** Writes the name of the target. The string lives as long as the process. */
mxdnn_status_t MXDNN_API mxdnn_engine_get_target(mxdnn_engine_t engine, const char **target);
/** Does nothing, since engines are never freed. What was created on the engine stays valid. */
mxdnn_status_t MXDNN_API mxdnn_engine_destroy(mxdnn_engine_t engine);

/* ---- Stream: the order of executions. On CPU engines an execution runs in the calling thread and its helper
 * threads, and returns when it is done. mxdnn_threadpool.h creates streams over the caller's threads,
 * mxdnn_cuda.h over the caller's CUDA stream. ---- */

/** Creates a stream. `flags` is mxdnn_stream_in_order. Executions on a CUDA engine use a CUDA stream that the
 * library owns. */
mxdnn_status_t MXDNN_API mxdnn_stream_create(mxdnn_stream_t *stream, mxdnn_engine_t engine, unsigned flags);
/** Writes the engine of the stream. */
mxdnn_status_t MXDNN_API mxdnn_stream_get_engine(mxdnn_stream_t stream, mxdnn_engine_t *engine);
/** Returns when all work that was put into the stream has ended. A failure of that work is
 * mxdnn_runtime_error. */
mxdnn_status_t MXDNN_API mxdnn_stream_wait(mxdnn_stream_t stream);
/** Destroys a stream. On a CUDA engine the caller first waits for it. */
mxdnn_status_t MXDNN_API mxdnn_stream_destroy(mxdnn_stream_t stream);

/* ---- Memory descriptors ---- */

/** A plain tensor of 1 to MXDNN_MAX_NDIMS dimensions. `strides` are in elements; NULL stands for row-major
 * order. A dimension is positive, 0 (an empty tensor) or MXDNN_RUNTIME_DIM_VAL.
 *
 * Two codes of a 4-bit type share a byte along a dimension of stride 1, and rows start on a byte. A stride of
 * 0 repeats a value that is read. A tensor that is written needs a place for each element.
 *
 * Both arrays are copied. Dimensions that are too large and strides that are not possible are
 * mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_strides(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const mxdnn_dims_t strides);
/** A plain tensor by tag. The tag has as many letters as there are dimensions. mxdnn_format_tag_any leaves
 * the layout to the primitive descriptor. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_tag(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, mxdnn_format_tag_t tag);
/** Weights [.., K, N] in the packed layout of the engine's target. A matmul on that engine chooses the same
 * descriptor for weights of these dimensions and this type with tag `any`.
 *
 * There are 2 to MXDNN_MAX_NDIMS dimensions, and all are known. Only the attributes of MXDNN_ARG_WEIGHTS
 * count: scales in groups {block, 1} along K, zero points, global scale. So the attributes of the matmul can
 * be passed. mxdnn_unimplemented: the target has no packed layout for the format. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_packed(mxdnn_memory_desc_t *md, mxdnn_engine_t engine,
        int ndims, const mxdnn_dims_t dims, mxdnn_data_type_t data_type, const_mxdnn_primitive_attr_t attr);
/** Rows of `group_count` groups, one group after the other: `dims` are {rows, K}, `variable_dim` is 0.
 * `offsets_dt` is the type of MXDNN_ARG_GROUP_OFFSETS, mxdnn_s32. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_grouped_encoding(mxdnn_memory_desc_t *md, int ndims,
        const mxdnn_dims_t dims, mxdnn_data_type_t data_type, int variable_dim, mxdnn_dim_t group_count,
        mxdnn_data_type_t offsets_dt);
/** Serialises a descriptor as a blob (doc/reference/blob.md). With `blob` NULL only *size is written: the
 * bytes that the blob needs. Otherwise *size is the capacity of `blob`, and on success becomes the number of
 * bytes written. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_get_blob(
        uint8_t *blob, size_t *size, const_mxdnn_memory_desc_t md);
/** A descriptor from a blob. The blob's own header says how long it is; at most 4 KiB are read. Use the sized
 * form for bytes that may be truncated. Wrong bytes are mxdnn_corrupt_blob, mxdnn_incompatible_version or
 * mxdnn_incompatible_target. mxdnn_status_t explains them. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_blob(mxdnn_memory_desc_t *md, const uint8_t *blob);
/** A descriptor from a blob of exactly `size` bytes. Missing bytes and further bytes are mxdnn_corrupt_blob.
 * Other statuses are those of mxdnn_memory_desc_create_with_blob(). */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_create_with_sized_blob(
        mxdnn_memory_desc_t *md, const uint8_t *blob, size_t size);
/** Tells what `engine` can do with the weights that a blob describes. Wrong bytes are a verdict, not a
 * failure: the call succeeds. mxdnn_get_last_error() then has the reason for the verdict. It is "" for
 * mxdnn_blob_native. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_check_blob(
        mxdnn_engine_t engine, const uint8_t *blob, size_t size, mxdnn_blob_verdict_t *verdict);
/** Sets notes for other programs: the type before quantisation (mxdnn_data_type_undef for none), and the
 * activation recipe (at most 1024 bytes of UTF-8, copied; NULL for none). A blob contains them. They do not
 * count when descriptors are compared. A type that does not exist is mxdnn_invalid_data_type. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_set_annotation(
        mxdnn_memory_desc_t md, mxdnn_data_type_t original_type, const char *recipe);
/** The bytes that the tensor occupies. This is the return value. It is 0 for `any`, and where a dimension is
 * a runtime value. */
size_t MXDNN_API mxdnn_memory_desc_get_size(const_mxdnn_memory_desc_t md);
/** Returns 1 if both describe the same tensor in the same bytes, else 0. Annotations are not compared. */
int MXDNN_API mxdnn_memory_desc_equal(const_mxdnn_memory_desc_t lhs, const_mxdnn_memory_desc_t rhs);
/** Writes the answer through `result`. mxdnn_query_t has the type of each answer. Pointers in answers live as
 * long as the descriptor. A question that does not apply to this descriptor is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_query(
        const_mxdnn_memory_desc_t md, mxdnn_query_t what, void *result);
/** Writes the descriptor in the words of verbose lines. scripts/verbose-to-bench turns these into the words
 * of mxdnn-bench. With `text` NULL only *size is written: the bytes that the text needs, with the terminating
 * zero. Otherwise *size is the capacity of `text`, and on success becomes the number of bytes written. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_to_string(char *text, size_t *size, const_mxdnn_memory_desc_t md);
/** Creates a copy that does not depend on the original. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_clone(mxdnn_memory_desc_t *md, const_mxdnn_memory_desc_t existing);
/** Destroys a descriptor. What was created from it stays valid. */
mxdnn_status_t MXDNN_API mxdnn_memory_desc_destroy(mxdnn_memory_desc_t md);

/** Computes the checksum of packed weights, as a container stores it beside them. It covers the
 * mxdnn_memory_desc_get_size() bytes at `packed`, and the descriptor. doc/reference/blob.md has the
 * algorithm. A descriptor that is not packed is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_packed_checksum(
        const_mxdnn_memory_desc_t md, const void *packed, uint64_t *checksum);
/** Begins the same checksum for bytes that come in parts. So the whole tensor need not be in memory. The
 * descriptor is not kept. */
mxdnn_status_t MXDNN_API mxdnn_checksum_create(mxdnn_checksum_t *checksum, const_mxdnn_memory_desc_t md);
/** Adds the next `size` bytes. Parts may have any size. More bytes than the descriptor has are
 * mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_checksum_add(mxdnn_checksum_t checksum, const void *bytes, size_t size);
/** Writes the checksum. It is mxdnn_invalid_arguments as long as bytes are missing. */
mxdnn_status_t MXDNN_API mxdnn_checksum_get(const_mxdnn_checksum_t checksum, uint64_t *value);
/** Destroys a checksum. */
mxdnn_status_t MXDNN_API mxdnn_checksum_destroy(mxdnn_checksum_t checksum);

/* ---- Memory ---- */

/** Creates a memory: a descriptor, which is copied, and a buffer. `handle` is one of these:
 *
 * - a buffer of the caller of at least mxdnn_memory_desc_get_size() bytes, which the caller keeps alive;
 * - MXDNN_MEMORY_ALLOCATE: the library allocates and owns a buffer, at a multiple of 64 bytes;
 * - MXDNN_MEMORY_NONE: no buffer yet.
 *
 * Packed bytes start at a multiple of 16. Values of 2, 4 and 8 bytes start at a multiple of their size.
 * Buffers of a CUDA engine are device memory. mxdnn_invalid_arguments: a descriptor with tag `any`, or an
 * allocation for runtime dimensions. */
mxdnn_status_t MXDNN_API mxdnn_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *handle);
/** Writes the descriptor. It lives as long as the memory. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_memory_desc(
        const_mxdnn_memory_t memory, const_mxdnn_memory_desc_t *md);
/** Writes the engine of the memory. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_engine(const_mxdnn_memory_t memory, mxdnn_engine_t *engine);
/** Writes the buffer; NULL for MXDNN_MEMORY_NONE. */
mxdnn_status_t MXDNN_API mxdnn_memory_get_data_handle(const_mxdnn_memory_t memory, void **handle);
/** Replaces the buffer by one of the caller, of at least mxdnn_memory_desc_get_size() bytes, or by
 * MXDNN_MEMORY_NONE. A buffer that the library had allocated is freed. MXDNN_MEMORY_ALLOCATE is
 * mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_memory_set_data_handle(mxdnn_memory_t memory, void *handle);
/** Writes a pointer through which the host reads and writes the bytes, until mxdnn_memory_unmap_data(). On a
 * CPU engine this is the buffer. On a device it is a copy, and the call waits for all work of the device.
 * mxdnn_invalid_arguments on a device: the memory is mapped already, or its size is not known. */
mxdnn_status_t MXDNN_API mxdnn_memory_map_data(const_mxdnn_memory_t memory, void **mapped);
/** Ends a mapping. `mapped` is the pointer that mxdnn_memory_map_data() wrote; any other is
 * mxdnn_invalid_arguments. A device's memory receives what was written through the pointer. */
mxdnn_status_t MXDNN_API mxdnn_memory_unmap_data(const_mxdnn_memory_t memory, void *mapped);
/** Destroys a memory. A buffer that the library allocated is freed. */
mxdnn_status_t MXDNN_API mxdnn_memory_destroy(mxdnn_memory_t memory);

/* ---- Attributes ---- */

/* A setter checks what it can check without a problem. Creating a primitive descriptor checks the rest. A
 * getter writes the default where nothing was set. A getter of several values skips those whose pointer is
 * NULL. `arg` is MXDNN_ARG_SRC, _WEIGHTS, _DST, _DST_1 or _DIFF_DST; any other is mxdnn_invalid_arguments. */

/** Creates attributes with default values. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_create(mxdnn_primitive_attr_t *attr);
/** Creates a copy that does not depend on the original. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_clone(
        mxdnn_primitive_attr_t *attr, const_mxdnn_primitive_attr_t existing);
/** Destroys attributes. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_destroy(mxdnn_primitive_attr_t attr);

/** Sets the precision that f32 operands may be rounded to inside a primitive. The default is strict: no
 * rounding. With a non-zero `apply_to_int`, quantised weights may be multiplied in that precision, too. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_fpmath_mode(
        mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t mode, int apply_to_int);
/** Writes the values of mxdnn_primitive_attr_set_fpmath_mode(). `mode` must not be NULL. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_fpmath_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_fpmath_mode_t *mode, int *apply_to_int);
/** Sets the precision of sums. The default is strict: that of f32. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_accumulation_mode(
        mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t mode);
/** What mxdnn_primitive_attr_set_accumulation_mode() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_accumulation_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_accumulation_mode_t *mode);
/** Non-zero asks for the same bits on every execution and for any number of threads. The default is 0. All
 * implementations do this in any case. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_deterministic(mxdnn_primitive_attr_t attr, int value);
/** What mxdnn_primitive_attr_set_deterministic() set: 0 or 1. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_deterministic(
        const_mxdnn_primitive_attr_t attr, int *value);
/** Sets whose memory a primitive works in. The default is the library's. With mxdnn_scratchpad_mode_user the
 * caller passes MXDNN_ARG_SCRATCHPAD to every execution: memory of the descriptor that
 * mxdnn_query_scratchpad_md returns. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scratchpad_mode(
        mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t mode);
/** What mxdnn_primitive_attr_set_scratchpad_mode() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scratchpad_mode(
        const_mxdnn_primitive_attr_t attr, mxdnn_scratchpad_mode_t *mode);

/** Describes the scales of argument `arg`. If bit i of `mask` is set, there is one scale along dimension i
 * for each element, or for each group of elements. `group_dims` has the lengths of the groups in the last
 * `ndims` dimensions; with `ndims` 0 it is NULL, and there are no groups. Groups in dimensions before the
 * last two have length 1.
 *
 * `mode` says who computes the scales. With mxdnn_quantization_mode_static_sazp the caller passes them to
 * each execution. With a dynamic mode the primitive computes them. It writes those of a destination. The
 * execution argument is MXDNN_ARG_ATTR_SCALES | arg in both cases.
 *
 * A matmul can quantise a source of f32, bf16 or f16 while it executes. Its scales are then no argument. The
 * modes are dynamic_affine with one f32 scale per row (to s8), dynamic_fp with one f32 scale per row (to
 * f8_e4m3), and dynamic_mx with e8m0 scales in groups of 1x32 (to MXINT8).
 *
 * `is_on_host` is 0: scales are memory of the primitive's engine. Other values are mxdnn_unimplemented. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scales(mxdnn_primitive_attr_t attr, int arg, int mask,
        int ndims, const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type, int is_on_host,
        mxdnn_quantization_mode_t mode);
/** Writes the values of mxdnn_primitive_attr_set_scales(). `group_dims` gets two lengths, of the last two
 * dimensions (1: no groups), and *ndims becomes 2. Where there are no scales, *data_type is
 * mxdnn_data_type_undef, and *mask, *ndims and *mode are 0. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scales(const_mxdnn_primitive_attr_t attr, int arg,
        int *mask, int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type,
        mxdnn_quantization_mode_t *mode);
/** Describes the zero points of argument `arg`. Their type is u8, or a floating type for zeros or minima that
 * are added (mxdnn_primitive_attr_set_zero_points_kind). Mask and groups must be those of the scales. The
 * execution argument is MXDNN_ARG_ATTR_ZERO_POINTS | arg. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_zero_points(mxdnn_primitive_attr_t attr, int arg, int mask,
        int ndims, const mxdnn_dims_t group_dims, mxdnn_data_type_t data_type);
/** Writes the values of mxdnn_primitive_attr_set_zero_points(), in the form of
 * mxdnn_primitive_attr_get_scales(). */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_zero_points(const_mxdnn_primitive_attr_t attr, int arg,
        int *mask, int *ndims, mxdnn_dims_t group_dims, mxdnn_data_type_t *data_type);
/** Sets what the zero points of `arg` mean. The default is standard. Minima have a floating-point type. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_zero_points_kind(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_zero_points_kind_t kind);
/** What mxdnn_primitive_attr_set_zero_points_kind() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_zero_points_kind(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_zero_points_kind_t *kind);
/** Sets the rule for e8m0 scales that are computed for `arg`. The default is floor. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scale_rounding(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t rounding);
/** What mxdnn_primitive_attr_set_scale_rounding() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scale_rounding(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scale_rounding_t *rounding);
/** Sets the order of the plain scales of `arg`: linear (the default), or padded tiles of 128x4. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_scales_layout(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t layout);
/** What mxdnn_primitive_attr_set_scales_layout() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_scales_layout(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_scales_layout_t *layout);
/** Describes the f32 global scale of `arg` for NVFP4, of shape {1} or {E}. With static_sazp the caller passes
 * it. With dynamic_fp it is computed and written. With undef, the default, there is none. The execution
 * argument is MXDNN_ARG_ATTR_GLOBAL_SCALE | arg. Other modes are mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_global_scale(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t mode);
/** What mxdnn_primitive_attr_set_global_scale() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_global_scale(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_quantization_mode_t *mode);
/** Sets how plain 6-bit elements of `arg` are stored. The default is one code per byte. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_element_packing(
        mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t packing);
/** What mxdnn_primitive_attr_set_element_packing() set for `arg`. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_element_packing(
        const_mxdnn_primitive_attr_t attr, int arg, mxdnn_element_packing_t *packing);
/** For grouped_matmul, moe_route and moe_permute: sets which arguments say where groups begin and end, and in
 * which form. The default is ends. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_row_grouping(
        mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t grouping);
/** What mxdnn_primitive_attr_set_row_grouping() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_row_grouping(
        const_mxdnn_primitive_attr_t attr, mxdnn_row_grouping_t *grouping);
/** For grouped_matmul: sets where MXDNN_ARG_TOPK_WEIGHTS are multiplied. The default is the output. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_topk_weights_placement(
        mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t where);
/** What mxdnn_primitive_attr_set_topk_weights_placement() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_topk_weights_placement(
        const_mxdnn_primitive_attr_t attr, mxdnn_topk_weights_placement_t *where);
/** For grouped_matmul: says that expert ids count `global_experts` experts, and that the weights hold those
 * from `first` on. Rows and groups with other ids are skipped. With `global_experts` 0, the default, ids are
 * positions in the weights. mxdnn_invalid_arguments: `first` is not from 0 to `global_experts`, or there are
 * more than 2^31 - 1 experts. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_expert_range(
        mxdnn_primitive_attr_t attr, mxdnn_dim_t first, mxdnn_dim_t global_experts);
/** What mxdnn_primitive_attr_set_expert_range() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_expert_range(
        const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *first, mxdnn_dim_t *global_experts);
/** Sets how many rows are expected at most where M is a runtime value; 0, the default, for no hint. The hint
 * sizes the scratchpad for speed. More rows are correct, too. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_max_rows_hint(
        mxdnn_primitive_attr_t attr, mxdnn_dim_t rows);
/** What mxdnn_primitive_attr_set_max_rows_hint() set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_max_rows_hint(
        const_mxdnn_primitive_attr_t attr, mxdnn_dim_t *rows);
/** Non-zero is a promise of the caller that the weights do not change while they are used. The default is 0:
 * all arguments are read in the order of the stream.
 *
 * The promise has two parts. Every write of the weights has ended before the program calls
 * mxdnn_primitive_execute(); it is not enough that it has been put into the same stream. And no write begins
 * before the work of that execution has ended. A CUDA kernel then reads weights while earlier work of its
 * stream still runs. That saves about a microsecond per execution with few rows.
 *
 * Weights that mx_reorder packs on the same stream are safe in any case. If another kernel or a copy writes
 * them, the program waits for it before the first execution. CPU engines ignore the attribute. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_constant_weights(mxdnn_primitive_attr_t attr, int value);
/** What mxdnn_primitive_attr_set_constant_weights() set: 0 or 1. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_constant_weights(
        const_mxdnn_primitive_attr_t attr, int *value);
/** Sets the post-ops, which are copied. NULL: none. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_set_post_ops(
        mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t post_ops);
/** Writes the post-ops. They live as long as the attributes, or until other post-ops are set. */
mxdnn_status_t MXDNN_API mxdnn_primitive_attr_get_post_ops(
        const_mxdnn_primitive_attr_t attr, const_mxdnn_post_ops_t *post_ops);

/* ---- Post-ops: applied in order to the f32 result, after the bias. There are at most 31. An append function
 * checks its parameters: what is never possible is mxdnn_invalid_arguments. A getter writes through each
 * pointer that is not NULL. It answers mxdnn_invalid_arguments for an index beyond the last and for a post-op
 * of another kind. ---- */

/** Creates an empty list of post-ops. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_create(mxdnn_post_ops_t *post_ops);
/** Creates a copy that does not depend on the original. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_clone(mxdnn_post_ops_t *post_ops, const_mxdnn_post_ops_t existing);
/** Destroys post-ops. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_destroy(mxdnn_post_ops_t post_ops);
/** The number of post-ops. This is the return value; 0 for NULL. */
int MXDNN_API mxdnn_post_ops_len(const_mxdnn_post_ops_t post_ops);
/** The kind of the post-op at `index`. This is the return value; mxdnn_undefined_primitive for an index
 * beyond the last. */
mxdnn_primitive_kind_t MXDNN_API mxdnn_post_ops_get_kind(const_mxdnn_post_ops_t post_ops, int index);
/** Appends x += scale * (dst - zero_point), with dst as it was before the execution. dst is read as
 * `data_type`; mxdnn_data_type_undef stands for its own type. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_sum(
        mxdnn_post_ops_t post_ops, float scale, int32_t zero_point, mxdnn_data_type_t data_type);
/** Appends x = alg(x). mxdnn_alg_kind_t says what alpha and beta mean. They are 0 where an algorithm has
 * none. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_eltwise(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, float alpha, float beta);
/** Appends x = alg(x, src1). src1 is plain f32, bf16 or f16, and is repeated along its dimensions of 1. The
 * descriptor is copied. The execution argument is MXDNN_ARG_ATTR_MULTIPLE_POST_OP(index) | MXDNN_ARG_SRC_1.
 */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_binary(
        mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg, const_mxdnn_memory_desc_t src1_desc);
/** Appends a gated activation. It turns N columns, an even number, into N/2. There is at most one. It
 * precedes every post-op whose operand has the shape of the destination. `alpha` is used by
 * mxdnn_gated_swiglu_oai. A `limit` that is positive and finite clamps the gate from above, and up from both
 * sides. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_append_gated(mxdnn_post_ops_t post_ops, mxdnn_alg_kind_t alg,
        float alpha, float limit, mxdnn_gated_layout_t layout);
/** Writes the parameters of the sum at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_sum(const_mxdnn_post_ops_t post_ops, int index,
        float *scale, int32_t *zero_point, mxdnn_data_type_t *data_type);
/** Writes the parameters of the eltwise at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_eltwise(
        const_mxdnn_post_ops_t post_ops, int index, mxdnn_alg_kind_t *alg, float *alpha, float *beta);
/** Writes the parameters of the binary at `index`. The descriptor lives as long as the post-ops. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_binary(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, const_mxdnn_memory_desc_t *src1_desc);
/** Writes the parameters of the gated activation at `index`. */
mxdnn_status_t MXDNN_API mxdnn_post_ops_get_params_gated(const_mxdnn_post_ops_t post_ops, int index,
        mxdnn_alg_kind_t *alg, float *alpha, float *limit, mxdnn_gated_layout_t *layout);

/* ---- Primitive descriptors: a problem, and the implementation chosen for it. Descriptors and attributes are
 * copied. `attr` may be NULL (defaults). mxdnn_invalid_arguments, mxdnn_invalid_shape and
 * mxdnn_invalid_data_type: the problem is not possible. mxdnn_unimplemented: it is possible, but no
 * implementation takes it. Reference pages with all shapes, types and attributes are in doc/reference. ----
 */

/** mx_reorder: moves a tensor from one form to another of equal dimensions. A form is plain high precision,
 * plain quantised (elements and scales), or packed. doc/reference/mx_reorder.md has the details.
 *
 * A destination with tag `any` gets the packed layout of `dst_engine`. Type and attributes of MXDNN_ARG_DST
 * say the format; without such attributes it is the format of the source. mxdnn_query_dst_md returns the
 * descriptor. The stream of an execution belongs to the engine of the destination.
 *
 * If all sides are grouped descriptors, each group of rows is a matrix of its own, which
 * MXDNN_ARG_GROUP_OFFSETS delimit. */
mxdnn_status_t MXDNN_API mxdnn_mx_reorder_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr);
/** mx_reorder with two destinations, MXDNN_ARG_DST and MXDNN_ARG_DST_1. Each has its own attributes, and
 * either may have tag `any`. The source is read once, for example to quantise a matrix along both of its
 * dimensions for training. A packed destination whose groups are {1, block} gets the transposed matrix. */
mxdnn_status_t MXDNN_API mxdnn_mx_reorder_primitive_desc_create_with_dst_1(mxdnn_primitive_desc_t *pd,
        const_mxdnn_memory_desc_t src_md, mxdnn_engine_t src_engine, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_memory_desc_t dst_1_md, mxdnn_engine_t dst_engine, const_mxdnn_primitive_attr_t attr);
/** mx_matmul: dst[.., M, N] = post_ops(src[.., M, K] * weights[.., K, N] + bias), with sums in f32. With a
 * gated post-op dst has N/2 columns. doc/reference/mx_matmul.md has the details.
 *
 * `bias_md` has dimensions that broadcast to those of dst; NULL for none. M and the batch dimensions may be
 * MXDNN_RUNTIME_DIM_VAL. Weights may have tag `any`; mxdnn_query_weights_md returns the layout that was
 * chosen. */
mxdnn_status_t MXDNN_API mxdnn_mx_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);
/** grouped_matmul: the matmul of an expert layer. src is [R, K] and dst [R, N]. The rows form G groups. The
 * rows of a group are multiplied by the weights of its expert, a matrix of `weights_md` [E, K, N].
 * doc/reference/grouped_matmul.md has the details.
 *
 * `bias_md` is [E, N]; NULL for none. R may be MXDNN_RUNTIME_DIM_VAL. Weights may have tag `any`. Arguments
 * of the execution say which rows belong to which group; mxdnn_primitive_attr_set_row_grouping() says which
 * arguments these are. */
mxdnn_status_t MXDNN_API mxdnn_grouped_matmul_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t weights_md,
        const_mxdnn_memory_desc_t bias_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);
/** grouped_matmul_backward_weights: the gradient of the weights of grouped_matmul. For each group g,
 * diff_weights[g] = src[g]^T * diff_dst[g], with sums in f32 over the rows of the group. src is [R, K],
 * diff_dst [R, N] and diff_weights [G, K, N]. doc/reference/grouped_matmul_backward_weights.md has the
 * details.
 *
 * Group g is expert g. R may be MXDNN_RUNTIME_DIM_VAL. Both operands are f32, bf16 or f16, or both are MXFP8
 * with blocks of 32 rows. mxdnn_primitive_attr_set_row_grouping() says which argument has the groups. A sum
 * post-op adds to an existing gradient. */
mxdnn_status_t MXDNN_API mxdnn_grouped_matmul_backward_weights_primitive_desc_create(
        mxdnn_primitive_desc_t *pd, mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md,
        const_mxdnn_memory_desc_t diff_dst_md, const_mxdnn_memory_desc_t diff_weights_md,
        const_mxdnn_primitive_attr_t attr);
/** moe_route: router logits [T, E] to the `topk` experts of each token and their weights. It also writes what
 * grouped_matmul needs to know about the rows of each expert. doc/reference/moe_route.md has the details.
 *
 * `flags` are mxdnn_route_flags_t. `expert_groups` divides E into groups of equal size (1: no groups).
 * Experts are chosen from the best `topk_groups` of these. */
mxdnn_status_t MXDNN_API mxdnn_moe_route_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t logits_md, mxdnn_dim_t topk,
        mxdnn_alg_kind_t scoring, unsigned flags, mxdnn_dim_t expert_groups, mxdnn_dim_t topk_groups,
        const_mxdnn_primitive_attr_t attr);
/** moe_permute: rows [R, D] that are sorted by source rank and then by local expert become sorted by expert.
 * The rows of each expert are padded to a multiple of `alignment`. doc/reference/moe_permute.md has the
 * details. */
mxdnn_status_t MXDNN_API mxdnn_moe_permute_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md,
        mxdnn_dim_t source_ranks, mxdnn_dim_t local_experts, mxdnn_dim_t alignment,
        const_mxdnn_primitive_attr_t attr);
/** moe_unpermute: rows [R, D] in the order of experts back to the rows [T, D] that they came from. Padding is
 * dropped. The top-k rows of a token are summed by their weights. doc/reference/moe_unpermute.md has the
 * details. */
mxdnn_status_t MXDNN_API mxdnn_moe_unpermute_primitive_desc_create(mxdnn_primitive_desc_t *pd,
        mxdnn_engine_t engine, const_mxdnn_memory_desc_t src_md, const_mxdnn_memory_desc_t dst_md,
        const_mxdnn_primitive_attr_t attr);

/** Moves on to the next implementation that takes the problem. If there is none, the status is
 * mxdnn_last_impl_reached and the descriptor does not change. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_next_impl(mxdnn_primitive_desc_t pd);
/** Creates a copy with the same implementation. It does not depend on the original. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_clone(
        mxdnn_primitive_desc_t *pd, const_mxdnn_primitive_desc_t existing);
/** Writes the attributes, completed by what the descriptors say (such as the scales of packed weights). They
 * live as long as the primitive descriptor. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_get_attr(
        const_mxdnn_primitive_desc_t pd, const_mxdnn_primitive_attr_t *attr);
/** Writes the answer through `result`. mxdnn_query_t has the type of each answer. `index` is 0 where
 * mxdnn_query_t does not mention it. Pointers in answers live until the primitive descriptor moves on to
 * another implementation or is destroyed. A question that does not apply is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_query(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index, void *result);
/** Returns the answer to a query for a memory descriptor; NULL where there is none. It lives until the
 * primitive descriptor moves on to another implementation or is destroyed. */
const_mxdnn_memory_desc_t MXDNN_API mxdnn_primitive_desc_query_md(
        const_mxdnn_primitive_desc_t pd, mxdnn_query_t what, int index);
/** Destroys a primitive descriptor. Primitives created from it stay valid. */
mxdnn_status_t MXDNN_API mxdnn_primitive_desc_destroy(mxdnn_primitive_desc_t pd);

/* ---- Primitives ---- */

/** Creates a primitive: generates the code, or takes it from the cache. mxdnn_device_unavailable: the target
 * of the engine cannot execute here. */
mxdnn_status_t MXDNN_API mxdnn_primitive_create(
        mxdnn_primitive_t *primitive, const_mxdnn_primitive_desc_t pd);
/** Executes. `args` has `nargs` entries; a memory fits the descriptor that mxdnn_query_exec_arg_md returns
 * for its argument. The stream belongs to the engine of the primitive. On a CPU engine the call returns when
 * the work is done. On CUDA it returns when the work is in the stream.
 *
 * Several threads may execute one primitive at the same time. In user scratchpad mode each of them passes its
 * own scratchpad. An execution in the thread that created the primitive allocates nothing. Another thread may
 * allocate a scratchpad in its first execution.
 *
 * mxdnn_invalid_arguments: an argument is missing, unknown, passed twice, does not fit, or shares bytes with
 * one that is written. Nothing is written then. */
mxdnn_status_t MXDNN_API mxdnn_primitive_execute(
        const_mxdnn_primitive_t primitive, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args);
/** Writes the primitive descriptor. It lives as long as the primitive. */
mxdnn_status_t MXDNN_API mxdnn_primitive_get_primitive_desc(
        const_mxdnn_primitive_t primitive, const_mxdnn_primitive_desc_t *pd);
/** Destroys a primitive. The cache may keep its code. */
mxdnn_status_t MXDNN_API mxdnn_primitive_destroy(mxdnn_primitive_t primitive);

/* ---- Service ---- */

/** The version of the library that is loaded. The returned pointer stays valid. */
const mxdnn_version_t MXDNN_API *mxdnn_version(void);
/** The name of a status, such as "success" or "invalid_arguments". The string lives as long as the process.
 */
const char MXDNN_API *mxdnn_status2str(mxdnn_status_t status);
/** The last failure of this thread in one sentence, or the reason for the last verdict of
 * mxdnn_memory_desc_check_blob(), whichever came later. It is "" if there was none. The string is valid until
 * the thread's next call of the library. */
const char MXDNN_API *mxdnn_get_last_error(void);
/** Sets what is printed, in the words of MXDNN_VERBOSE, for example "dispatch,profile_exec". It replaces the
 * value of the environment variable. An unknown word is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_set_verbose(const char *words);
/** Writes the number of primitives that the cache keeps. */
mxdnn_status_t MXDNN_API mxdnn_get_primitive_cache_capacity(int *capacity);
/** Sets how many primitives the cache keeps for reuse. The default is 1024. 0 empties the cache and turns it
 * off. A negative number is mxdnn_invalid_arguments. */
mxdnn_status_t MXDNN_API mxdnn_set_primitive_cache_capacity(int capacity);
/** Sets the highest instruction set that CPU engines use. As in oneDNN, this is possible until the first
 * primitive descriptor is created, and mxdnn_invalid_arguments afterwards. */
mxdnn_status_t MXDNN_API mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_t isa);
/** The best instruction set that the machine has and mxdnn_set_max_cpu_isa() allows. This is the return
 * value. */
mxdnn_cpu_isa_t MXDNN_API mxdnn_get_effective_cpu_isa(void);
/** Sets how many threads an execution may use, for the whole process: 1 to 4096, or 0 for as many as the
 * machine has. The default is 0. Other values are mxdnn_invalid_arguments.
 *
 * The value counts twice: when a primitive descriptor is created, since it sizes the scratchpad, and when the
 * primitive is executed. An execution uses at most the smaller of both. So a smaller value takes effect with
 * the next execution. A larger value takes effect for primitive descriptors that are created after the call.
 * A stream over a thread pool never uses more threads than the pool has. With MXDNN_CPU_RUNTIME=SEQ there is
 * always one thread. */
mxdnn_status_t MXDNN_API mxdnn_set_max_concurrency(int threads);
/** The number of threads that an execution may use: what was set, or how many the machine has. This is the
 * return value. */
int MXDNN_API mxdnn_get_max_concurrency(void);
/** Non-zero: every generated kernel is written to a file mxdnn_dump_KERNEL.N.bin in the current folder. */
mxdnn_status_t MXDNN_API mxdnn_set_jit_dump(int enable);

#ifdef __cplusplus
}
#endif

#endif
