/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Working with CUDA: streams and device memory of the caller. The header needs no CUDA header:
 * cudaStream_t and CUstream are pointers to struct CUstream_st.
 *
 * Executions on a CUDA engine are put into the stream, and the call returns. They wait for nothing, allocate
 * nothing and read nothing back. So they can be captured into a CUDA graph. A graph uses the scratchpad of
 * the stream that it was captured from. If it is replayed at the same time as other work of that stream, give
 * its primitives their own scratchpads (mxdnn_scratchpad_mode_user).
 *
 * The caller waits for its streams before it destroys what they use. In all functions an engine or stream
 * that is not of a CUDA device is mxdnn_invalid_arguments. An error of CUDA is mxdnn_runtime_error. */
#ifndef MXDNN_CUDA_H
#define MXDNN_CUDA_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/** Creates a stream over the caller's CUDA stream. The caller keeps the CUDA stream, and destroys it after
 * this one. NULL is the legacy default stream of the device. mxdnn_invalid_arguments: a stream of another
 * device, or cudaStreamPerThread, which is a different stream in every thread.
 *
 * Arguments are read and written in the order of the stream. mxdnn_primitive_attr_set_constant_weights() is
 * the only exception. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, struct CUstream_st *cuda_stream);
/** Writes the CUDA stream of `stream`: the caller's, or the one that the library created. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_stream_get_stream(
        mxdnn_stream_t stream, struct CUstream_st **cuda_stream);

/** Creates a memory over device memory of the caller. It is checked that the pointer belongs to the engine's
 * device; if not, the status is mxdnn_invalid_arguments. mxdnn_memory_create() takes such pointers without
 * this check. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *device_pointer);

/** Copies bytes between the host and a CUDA device, or within a device, in the order of the stream. If host
 * memory is not page-locked, the call may wait. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_copy(
        mxdnn_stream_t stream, void *dst, const void *src, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
