// SPDX-License-Identifier: Apache-2.0
// Creating primitives (through the cache) and executing them (arguments checked, nothing allocated).
#pragma once

#include <string>

#include "common/primitive_desc.hpp"

namespace mxdnn {
namespace impl {

// What ran, for verbose lines. The executing thread writes it, outside parallel work.
struct exec_record_t {
    std::string kernels;  // joined by '+', each once; empty: one kernel with the name of the implementation
    std::string division; // how the work is divided, in words of the implementation
    int threads = 1;      // the largest number in any part of the work

    void add_kernel(const std::string &name);
};

// The arguments of an execution, checked against the descriptor.
struct exec_ctx_t {
    const pd_t &pd;
    const stream_t &stream;
    const mxdnn_exec_arg_t *args;
    int nargs;
    char *scratchpad;                // 64-byte aligned, pd.scratch.size(); null when that is 0
    exec_record_t *record = nullptr; // null unless verbose lines are wanted

    // The memory of an argument; null if it was not passed.
    const memory_t *memory(int arg) const {
        for (int i = 0; i < nargs; i++)
            if (args[i].arg == arg) return args[i].memory;
        return nullptr;
    }
    template <typename T = void>
    T *data(int arg) const {
        const memory_t *m = memory(arg);
        return m ? static_cast<T *>(m->handle) : nullptr;
    }
    // A part of the scratchpad that the descriptor has booked.
    template <typename T>
    T *scratch(scratch_t part, int64_t copy = 0) const {
        return reinterpret_cast<T *>(scratchpad + pd.scratch.offset(part, copy));
    }
    // The context for an execution of `other`, which is a part of this one and has the same arguments.
    exec_ctx_t nested(const pd_t &other) const {
        return {other, stream, args, nargs, other.scratch.size() ? scratch<char>(scratch_t::nested) : nullptr,
                record};
    }
};

} // namespace impl
} // namespace mxdnn

struct mxdnn_primitive {
    mxdnn_primitive_desc desc;
    std::shared_ptr<const mxdnn::impl::primitive_impl_t> impl;
};

namespace mxdnn {
namespace impl {

using primitive_t = mxdnn_primitive;

status_t create_primitive(std::unique_ptr<primitive_t> &primitive, const primitive_desc_t &pd);
status_t execute(
        const primitive_t &primitive, const stream_t &stream, int nargs, const mxdnn_exec_arg_t *args);

// A bounded cache that drops the least recently used entry. All threads may use it.
int primitive_cache_capacity();
void set_primitive_cache_capacity(int capacity);

} // namespace impl
} // namespace mxdnn
