// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

#include "common/engine.hpp"

using namespace mxdnn::impl;

namespace {

// Large buffers get large pages, if the system has them on request. Weights are read once, in order. With
// pages of 4 KB, address translation takes a good part of that time.
void *allocate_host(size_t bytes) {
#if defined(MADV_HUGEPAGE)
    constexpr size_t page = 2 << 20, many = 4;
    if (bytes >= page) {
        // A large page for the rest would waste too much if there are few others.
        const size_t pages = bytes >= many * page ? round_up(bytes, page) : bytes / page * page;
        void *p = nullptr;
        if (posix_memalign(&p, page, std::max(bytes, pages)) != 0) return nullptr;
        (void)madvise(p, pages, MADV_HUGEPAGE); // a hint: failure does not matter
        return p;
    }
#endif
    return std::aligned_alloc(64, bytes);
}

struct device_memory_t {
    const device_t &device;
    void *data;
    ~device_memory_t() {
        if (data) device.release(data);
    }
};

status_t allocate_on(const device_t &d, memory_t &m, size_t bytes) {
    std::unique_ptr<device_memory_t> owned(new device_memory_t{d, nullptr});
    MXDNN_CHECK(d.allocate(&owned->data, bytes, to_string(m.md).c_str()));
    m.handle = owned->data;
    m.owned = {owned.release(), [](void *p) { delete static_cast<device_memory_t *>(p); }};
    return mxdnn_success;
}

// Mapping device memory copies it to the host. Unmapping writes the copy back.
status_t map_device(const memory_t &m, void **mapped) {
    if (m.mapped) return fail(mxdnn_invalid_arguments, "map_data of a memory that is mapped; unmap it first");
    const int64_t size = size_of(m.md);
    if (size < 0)
        return fail(
                mxdnn_invalid_arguments, "map_data of %s, whose size is not known", to_string(m.md).c_str());
    const size_t bytes = size_t(round_up(size > 0 ? size : 1, 64));
    std::unique_ptr<void, void (*)(void *)> copy(std::aligned_alloc(64, bytes), std::free);
    if (!copy)
        return fail(mxdnn_out_of_memory, "no memory for %zu bytes of %s", bytes, to_string(m.md).c_str());
    MXDNN_CHECK(m.engine->device->copy_now("map_data", copy.get(), m.handle, m.handle ? size_t(size) : 0));
    m.mapped = std::move(copy);
    *mapped = m.mapped.get();
    return mxdnn_success;
}

status_t unmap_device(const memory_t &m, void *mapped) {
    if (!m.mapped || mapped != m.mapped.get())
        return fail(mxdnn_invalid_arguments, "unmap_data of %p; map_data gave %p", mapped, m.mapped.get());
    const size_t bytes = m.handle ? size_t(size_of(m.md)) : 0;
    MXDNN_CHECK(m.engine->device->copy_now("unmap_data", m.handle, m.mapped.get(), bytes));
    m.mapped.reset();
    return mxdnn_success;
}

} // namespace

mxdnn_status_t mxdnn_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *handle) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(md);
    MXDNN_CHECK_ARG(engine);
    return guarded(__func__, [&] {
        if (is_any(*md))
            return fail(mxdnn_invalid_arguments,
                    "memory of an `any` descriptor; take the one that the primitive descriptor chose, e.g. pd.weights_desc()");
        auto m = std::make_unique<memory_t>();
        m->md = *md;
        m->bytes = size_of(*md);
        m->engine = engine;
        m->handle = handle;
        if (handle == MXDNN_MEMORY_ALLOCATE) {
            if (has_runtime_dims(*md))
                return fail(mxdnn_invalid_arguments,
                        "memory of %s cannot be allocated: its size is not known; give a descriptor with the actual dims, or a buffer of your own",
                        to_string(*md).c_str());
            // At least one cache line, so that an empty tensor has an address.
            const size_t bytes = size_t(round_up(m->bytes > 0 ? m->bytes : 1, 64));
            if (engine->device) {
                MXDNN_CHECK(allocate_on(*engine->device, *m, bytes));
                *memory = m.release();
                return mxdnn_success;
            }
            m->handle = allocate_host(bytes);
            if (!m->handle)
                return fail(
                        mxdnn_out_of_memory, "no memory for %zu bytes of %s", bytes, to_string(*md).c_str());
            m->owned = {m->handle, std::free};
        }
        *memory = m.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_memory_get_memory_desc(const_mxdnn_memory_t memory, const_mxdnn_memory_desc_t *md) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(md);
    *md = &memory->md;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_get_engine(const_mxdnn_memory_t memory, mxdnn_engine_t *engine) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(engine);
    *engine = const_cast<engine_t *>(memory->engine);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_get_data_handle(const_mxdnn_memory_t memory, void **handle) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(handle);
    *handle = memory->handle;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_set_data_handle(mxdnn_memory_t memory, void *handle) {
    MXDNN_CHECK_ARG(memory);
    if (handle == MXDNN_MEMORY_ALLOCATE)
        return fail(mxdnn_invalid_arguments,
                "set_data_handle with MXDNN_MEMORY_ALLOCATE; create a memory for that");
    memory->owned = {nullptr, nullptr};
    memory->handle = handle;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_map_data(const_mxdnn_memory_t memory, void **mapped) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(mapped);
    if (memory->engine->device) return guarded(__func__, [&] { return map_device(*memory, mapped); });
    *mapped = memory->handle;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_unmap_data(const_mxdnn_memory_t memory, void *mapped) {
    MXDNN_CHECK_ARG(memory);
    if (memory->engine->device) return guarded(__func__, [&] { return unmap_device(*memory, mapped); });
    if (mapped != memory->handle)
        return fail(mxdnn_invalid_arguments, "unmap_data of %p; map_data gave %p", mapped, memory->handle);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_memory_destroy(mxdnn_memory_t memory) {
    delete memory;
    return mxdnn_success;
}
