// SPDX-License-Identifier: Apache-2.0
// From a primitive to a kernel: loading it when the primitive is created, launching it when that is executed.
#pragma once

#include "common/primitive.hpp"
#include "gpu/cuda/cuda_backend.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"
#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// The device that executes the primitive of a problem. Only for primitives that can be created.
inline const device_t &exec_device(const problem_t &p) { return *device_of(exec_engine(p)); }

// Also for the engine of a target, which is only a description.
inline int sm_count_of(const problem_t &p) {
    const device_t *d = device_of(exec_engine(p));
    return d ? d->info.sm_count : arch_of(exec_engine(p)).sm_count;
}

// Every variant of a kernel.
inline status_t prepare_kernel(const problem_t &p, kernel_id_t id) {
    const device_t &d = exec_device(p);
    return check(d.table->prepare(d.index, id, nullptr, 0), "loading a kernel");
}

// The variants that launches with such args take. Only types and formats in args have to be set.
template <typename args_t>
status_t prepare_kernel(const problem_t &p, kernel_id_t id, const args_t &args) {
    const device_t &d = exec_device(p);
    return check(d.table->prepare(d.index, id, &args, sizeof(args)), "loading a kernel");
}

template <typename args_t>
status_t launch_kernel(const exec_ctx_t &ctx, kernel_id_t id, const args_t &args) {
    const cuda_stream_t &s = cuda_stream_of(ctx.stream);
    if (ctx.record) ctx.record->add_kernel(kernel_name(id));
    s.note_kernel(id);
    return check(s.device().table->launch(s.launch(), id, &args, sizeof(args)), "launching a kernel");
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
