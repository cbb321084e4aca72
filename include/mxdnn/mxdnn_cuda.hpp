// SPDX-License-Identifier: Apache-2.0
/// @file
/// Working with CUDA from C++: the functions of mxdnn_cuda.h with objects.
#ifndef MXDNN_CUDA_HPP
#define MXDNN_CUDA_HPP

#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_cuda.h"

namespace mxdnn {
/// Streams and device memory of the caller.
namespace cuda_interop {

/// A stream over the caller's cudaStream_t, which has to outlive it.
inline stream make_stream(const engine &aengine, CUstream_st *cuda_stream) {
    mxdnn_stream_t s = nullptr;
    error::wrap_c_api(mxdnn_cuda_interop_stream_create(&s, aengine.get(), cuda_stream),
            "could not create a stream over a CUDA stream");
    return stream(s);
}

/// The CUDA stream that a stream uses.
inline CUstream_st *get_stream(const stream &astream) {
    CUstream_st *s = nullptr;
    error::wrap_c_api(mxdnn_cuda_interop_stream_get_stream(astream.get(), &s),
            "could not get the CUDA stream of a stream");
    return s;
}

/// A memory over device memory of the caller. It is checked that the pointer belongs to the engine's device.
inline memory make_memory(const memory::desc &md, const engine &aengine, void *device_pointer) {
    mxdnn_memory_t m = nullptr;
    error::wrap_c_api(mxdnn_cuda_interop_memory_create(&m, md.get(), aengine.get(), device_pointer),
            "could not create a memory over a device pointer");
    return memory(m);
}

/// Copies bytes between the host and a device, or within a device, in the order of the stream.
inline void copy(const stream &astream, void *dst, const void *src, size_t bytes) {
    error::wrap_c_api(mxdnn_cuda_interop_copy(astream.get(), dst, src, bytes), "could not copy");
}

} // namespace cuda_interop
} // namespace mxdnn

#endif
