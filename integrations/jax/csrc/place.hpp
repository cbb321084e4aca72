// SPDX-License-Identifier: Apache-2.0
// Where a call of XLA runs: an engine, a stream, and whose scratch memory.
#pragma once

#include <functional>

#include <mxdnn/mxdnn.hpp>

#include "xla/ffi/api/ffi.h"

struct CUstream_st;

namespace mxdnn_jax {

class place_t {
public:
    virtual ~place_t() = default;

    // The same for all calls that may share a primitive.
    virtual int id() const = 0;
    virtual const mxdnn::engine &engine() const = 0;
    // What a descriptor says of rows that a call knows. A device's scratch memory is as large as the rows
    // want it; a CPU's does not depend on them, and one primitive takes any number.
    virtual mxdnn::memory::dim rows_of_problem(mxdnn::memory::dim) const { return MXDNN_RUNTIME_DIM_VAL; }
    // A stream of an engine: the own one, or one that packs for a target that is not here.
    virtual mxdnn::stream stream_of(const mxdnn::engine &engine) const = 0;
    // Whether scratch() is used; otherwise the library allocates.
    virtual bool has_scratch() const { return false; }
    virtual void *scratch(size_t) { return nullptr; }
};

// Calls fn with the CPU, whose streams run on XLA's threads.
void on_cpu(const xla::ffi::ThreadPool &pool, const std::function<void(place_t &)> &fn);

// Calls fn with a device. Work is put into XLA's stream; scratch memory is XLA's.
void on_cuda(CUstream_st *stream, int ordinal, xla::ffi::ScratchAllocator &scratch,
        const std::function<void(place_t &)> &fn);

} // namespace mxdnn_jax
