/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Working with CUDA: streams and device memory of the caller's. Needs no CUDA header; cudaStream_t and
 * CUstream are pointers to struct CUstream_st.
 *
 * Executions on a CUDA engine are put into the stream and return at once: they wait for nothing, allocate
 * nothing and read nothing back, so that they can be captured into a CUDA graph. A graph uses the scratchpad
 * of the stream that it was captured from; where it is replayed beside other work of that stream, give the
 * primitives scratchpads of their own (mxdnn_scratchpad_mode_user). The caller waits for its streams before
 * it destroys what they use. */
#ifndef MXDNN_CUDA_H
#define MXDNN_CUDA_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/** A stream over the caller's, which stays the caller's and outlives it. NULL is the device's legacy default
 * stream; cudaStreamPerThread, which is another one in every thread, is refused. Arguments are read and
 * written in the order of the stream; mxdnn_primitive_attr_set_constant_weights() is the exception. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, struct CUstream_st *cuda_stream);
/** The caller's stream that `stream` was made over; of others the one that the library created. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_stream_get_stream(
        mxdnn_stream_t stream, struct CUstream_st **cuda_stream);

/** Memory over a pointer of the engine's device, which is checked to be one. mxdnn_memory_create() takes such
 * pointers too, unchecked. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *device_pointer);

/** Copies bytes between the host and memory of a CUDA engine (or between two) in the order of the stream.
 * Host memory that is not page-locked may make the call wait. */
mxdnn_status_t MXDNN_API mxdnn_cuda_interop_copy(
        mxdnn_stream_t stream, void *dst, const void *src, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
