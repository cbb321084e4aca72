// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "common/api/api.hpp"
#include "common/api/checksum.hpp"
#include "common/container/container.hpp"
#include "common/device.hpp"
#include "common/engine.hpp"

using namespace mxdnn::impl;

namespace {

template <typename F>
mxdnn_status_t create(const char *function, mxdnn_container_t *container, F &&open) {
    return guarded(function, [&] {
        auto c = std::make_unique<mxdnn_container>();
        MXDNN_CHECK(open(c->container));
        *container = c.release();
        return mxdnn_success;
    });
}

// Calls fn(entry). Refuses an index beyond the last entry.
template <typename F>
mxdnn_status_t with_entry(const char *function, const_mxdnn_container_t c, size_t index, F &&fn) {
    MXDNN_CHECK(check_not_null(c, function, "container"));
    const auto &entries = c->container.entries();
    if (index >= entries.size())
        return fail(mxdnn_invalid_arguments, "%s: index is %zu; the container has %zu entries", function,
                index, entries.size());
    return guarded(function, [&] { return fn(entries[index]); });
}

} // namespace

mxdnn_status_t mxdnn_container_create(mxdnn_container_t *container, const char *path) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(path);
    return create(__func__, container, [&](container_t &c) { return c.open(path); });
}

mxdnn_status_t mxdnn_container_create_from_bytes(
        mxdnn_container_t *container, const void *bytes, size_t size) {
    MXDNN_CHECK_ARG(container);
    if (size > 0) MXDNN_CHECK_ARG(bytes);
    return create(__func__, container, [&](container_t &c) { return c.open_bytes(bytes, size); });
}

mxdnn_status_t mxdnn_container_destroy(mxdnn_container_t container) {
    delete container;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_container_get_count(const_mxdnn_container_t container, size_t *count) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(count);
    *count = container->container.entries().size();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_container_get_entry(
        const_mxdnn_container_t container, size_t index, mxdnn_container_entry_t *entry) {
    MXDNN_CHECK_ARG(entry);
    return with_entry(__func__, container, index, [&](const container_t::entry_t &e) {
        const data_type_info_t *type = data_type_of(*e.tensor->dtype);
        mxdnn_container_entry_t r;
        r.name = e.name.c_str();
        r.dtype = e.tensor->dtype->name;
        r.data_type = type ? type->id : mxdnn_data_type_undef;
        r.is_packed = e.is_packed;
        r.has_checksum = e.checksum != nullptr;
        r.ndims = int(e.tensor->shape.size());
        r.dims = e.tensor->shape.data();
        r.offset = container->container.offset_of(e);
        r.size = e.tensor->size();
        *entry = r;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_container_find(const_mxdnn_container_t container, const char *name, size_t *index) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(name);
    MXDNN_CHECK_ARG(index);
    return guarded(__func__, [&] {
        const container_t &c = container->container;
        const container_t::entry_t *e = c.find(name);
        if (!e)
            return fail(mxdnn_invalid_arguments, "%s has no tensor %s", c.file_name().c_str(),
                    safetensors::shown(name).c_str());
        *index = size_t(e - c.entries().data());
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_container_get_memory_desc(
        const_mxdnn_container_t container, size_t index, mxdnn_memory_desc_t *md) {
    MXDNN_CHECK_ARG(md);
    return with_entry(__func__, container, index, [&](const container_t::entry_t &e) {
        auto d = std::make_unique<memory_desc_t>();
        MXDNN_CHECK(container->container.desc(e, *d));
        *md = d.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_container_verify(const_mxdnn_container_t container, size_t index) {
    return with_entry(__func__, container, index,
            [&](const container_t::entry_t &e) { return container->container.verify(e); });
}

mxdnn_status_t mxdnn_container_read(
        const_mxdnn_container_t container, size_t index, uint64_t offset, size_t size, void *buffer) {
    if (size > 0) MXDNN_CHECK_ARG(buffer);
    return with_entry(__func__, container, index, [&](const container_t::entry_t &e) {
        return container->container.read(e, offset, buffer, size);
    });
}

mxdnn_status_t mxdnn_container_get_data(const_mxdnn_container_t container, size_t index, const void **data) {
    MXDNN_CHECK_ARG(data);
    return with_entry(__func__, container, index, [&](const container_t::entry_t &e) {
        const uint8_t *bytes = nullptr;
        MXDNN_CHECK(container->container.data(e, bytes));
        *data = bytes;
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_container_load(
        const_mxdnn_container_t container, size_t index, mxdnn_engine_t engine, mxdnn_memory_t *memory) {
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(memory);
    const char *const function = __func__; // another name inside the lambda
    return with_entry(function, container, index, [&](const container_t::entry_t &e) {
        memory_desc_t md;
        MXDNN_CHECK(container->container.desc(e, md));
        mxdnn_memory_t m = nullptr;
        MXDNN_CHECK(mxdnn_memory_create(&m, &md, engine, MXDNN_MEMORY_ALLOCATE));
        std::unique_ptr<memory_t> owned(m);
        if (engine->device) { // through the host; nothing of the new memory has to be read
            const size_t size = size_t(size_of(md));
            const std::unique_ptr<uint8_t[]> bytes(new uint8_t[size]);
            MXDNN_CHECK(container->container.load(e, md, bytes.get()));
            MXDNN_CHECK(engine->device->copy_now(function, m->handle, bytes.get(), m->handle ? size : 0));
        } else {
            MXDNN_CHECK(container->container.load(e, md, m->handle));
        }
        *memory = owned.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_container_get_metadata_count(const_mxdnn_container_t container, size_t *count) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(count);
    *count = container->container.metadata().size();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_container_get_metadata(
        const_mxdnn_container_t container, size_t index, const char **key, const char **value) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(key);
    MXDNN_CHECK_ARG(value);
    const auto &all = container->container.metadata();
    if (index >= all.size())
        return fail(mxdnn_invalid_arguments, "%s: index is %zu; the container has %zu pairs of metadata",
                __func__, index, all.size());
    const auto &pair = *container->container.metadata_order()[index];
    *key = pair.first.c_str();
    *value = pair.second.c_str();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_container_find_metadata(
        const_mxdnn_container_t container, const char *key, const char **value) {
    MXDNN_CHECK_ARG(container);
    MXDNN_CHECK_ARG(key);
    MXDNN_CHECK_ARG(value);
    return guarded(__func__, [&] {
        const auto &all = container->container.metadata();
        const auto it = all.find(key);
        *value = it == all.end() ? nullptr : it->second.c_str();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_checksum_create_for_tensor(
        mxdnn_checksum_t *checksum, const char *dtype, int ndims, const int64_t *dims) {
    MXDNN_CHECK_ARG(checksum);
    MXDNN_CHECK_ARG(dtype);
    if (ndims > 0) MXDNN_CHECK_ARG(dims);
    if (ndims < 0 || ndims > int(safetensors::max_ndims))
        return fail(mxdnn_invalid_arguments, "%s: ndims is %d; a tensor has 0 to %zu dimensions", __func__,
                ndims, safetensors::max_ndims);
    const char *const caller = __func__; // __func__ is another name inside the lambda
    return guarded(caller, [&] {
        const safetensors::dtype_t *type = safetensors::find_dtype(dtype);
        if (!type)
            return fail(mxdnn_invalid_data_type, "%s: dtype is %s, which safetensors does not have", caller,
                    safetensors::shown(dtype).c_str());
        const std::vector<int64_t> shape(dims, dims + ndims);
        uint64_t bytes = 0;
        const safetensors::status_t s = safetensors::size_in_bytes(*type, shape, bytes);
        if (!s.ok()) return fail(mxdnn_invalid_shape, "%s: a tensor %s", caller, s.message.c_str());
        *checksum = new mxdnn_checksum{tensor_checksum(dtype, shape), bytes};
        return mxdnn_success;
    });
}
