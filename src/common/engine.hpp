// SPDX-License-Identifier: Apache-2.0
// Engines, streams and memory: three small handles.
#pragma once

#include <memory>
#include <string>

#include "common/device.hpp"
#include "common/memory_desc.hpp"
#include "mxdnn/mxdnn_threadpool.h"

namespace mxdnn {
namespace impl {

// A target that an engine can be created for. Backends derive from it and add what they need.
struct target_t {
    const char *name; // "cpu:x64:avx2"
    mxdnn_engine_kind_t kind;
    target_family_t family;
};

const target_t *target(size_t index); // of all backends; null beyond the last
std::string target_names();           // all, separated by blanks

} // namespace impl
} // namespace mxdnn

struct mxdnn_engine {
    const mxdnn::impl::target_t *target = nullptr;
    size_t index = 0;
    bool executes = false; // whether all primitives run here; otherwise only mx_reorder does
    const mxdnn::impl::device_t *device =
            nullptr; // the device that executes and owns the memory; null: the host

    mxdnn_engine_kind_t kind() const { return target->kind; }
    bool operator==(const mxdnn_engine &o) const {
        return target == o.target && index == o.index && executes == o.executes && device == o.device;
    }
};

struct mxdnn_stream {
    const mxdnn_engine *engine = nullptr;
    mxdnn_threadpool_t threadpool = {}; // the caller's threads; struct_size 0: the library's
    std::unique_ptr<mxdnn::impl::device_stream_t> device; // only for engines that are devices

    bool has_threadpool() const { return threadpool.struct_size != 0; }
};

struct mxdnn_memory {
    mxdnn_memory_desc md;
    int64_t bytes = -1; // size_of(md); -1: nobody has computed it
    const mxdnn_engine *engine = nullptr;
    void *handle = nullptr;
    std::unique_ptr<void, void (*)(void *)> owned{nullptr, nullptr};
    // The host's copy of device memory, while it is mapped.
    mutable std::unique_ptr<void, void (*)(void *)> mapped{nullptr, nullptr};
};

namespace mxdnn {
namespace impl {

using engine_t = mxdnn_engine;
using stream_t = mxdnn_stream;
using memory_t = mxdnn_memory;

// The object of an engine. It is never destroyed.
status_t create_engine(const engine_t **engine, mxdnn_engine_kind_t kind, size_t index);
status_t create_engine_for_target(const engine_t **engine, const char *target);
size_t engine_count(mxdnn_engine_kind_t kind);

} // namespace impl
} // namespace mxdnn
