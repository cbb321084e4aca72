// SPDX-License-Identifier: Apache-2.0
/// @file
/// C++ wrapper of mxdnn_container.h: reading safetensors files with packed weights
/// (doc/reference/container.md).
#ifndef MXDNN_CONTAINER_HPP
#define MXDNN_CONTAINER_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_container.h"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_container_t> {
    static void destroy(mxdnn_container_t p) { mxdnn_container_destroy(p); }
};

/// A container that is open for reading. The file is closed with the last copy of this object.
struct container : public handle<mxdnn_container_t> {
    /// One entry. For packed weights `dims` is the number of stored bytes.
    struct entry {
        std::string name;  ///< for packed weights without the suffix
        std::string dtype; ///< the type as the file has it: F32, BF16, U8, ...
        memory::data_type data_type = memory::data_type::undef; ///< undef if mxdnn does not have the type
        bool is_packed = false;                                 ///< whether the entry is packed weights
        bool has_checksum = false; ///< whether the file has a checksum of this entry
        std::vector<int64_t> dims; ///< dimensions of the tensor as stored
        uint64_t offset = 0;       ///< position of the first byte in the file
        uint64_t size = 0;         ///< bytes as stored
    };

    /// Empty.
    container() = default;
    /// Opens a file and reads its header.
    explicit container(const std::string &path) {
        mxdnn_container_t c = nullptr;
        error::wrap_c_api(mxdnn_container_create(&c, path.c_str()), "could not open a container");
        reset(c);
    }
    /// Opens a file that is in memory. The caller keeps the bytes and does not change them.
    container(const void *bytes, size_t size) {
        mxdnn_container_t c = nullptr;
        error::wrap_c_api(mxdnn_container_create_from_bytes(&c, bytes, size), "could not open a container");
        reset(c);
    }

    /// Number of entries.
    size_t size() const {
        size_t count = 0;
        error::wrap_c_api(mxdnn_container_get_count(get(), &count), "could not count entries");
        return count;
    }
    /// Entry `index`, below size().
    entry get_entry(size_t index) const {
        mxdnn_container_entry_t e;
        error::wrap_c_api(mxdnn_container_get_entry(get(), index, &e), "could not get an entry");
        entry r;
        r.name = e.name;
        r.dtype = e.dtype;
        r.data_type = static_cast<memory::data_type>(e.data_type);
        r.is_packed = e.is_packed != 0;
        r.has_checksum = e.has_checksum != 0;
        r.dims.assign(e.dims, e.dims + e.ndims);
        r.offset = e.offset;
        r.size = e.size;
        return r;
    }
    /// The index of the entry with that name. Throws if there is none.
    size_t find(const std::string &name) const {
        size_t index = 0;
        error::wrap_c_api(mxdnn_container_find(get(), name.c_str(), &index), "could not find an entry");
        return index;
    }

    /// The memory descriptor of an entry.
    memory::desc get_desc(size_t index) const {
        mxdnn_memory_desc_t md = nullptr;
        error::wrap_c_api(
                mxdnn_container_get_memory_desc(get(), index, &md), "could not get a memory descriptor");
        return memory::desc(md);
    }
    /// Reads all bytes of an entry and checks them. Throws if something is wrong, or if there is no checksum.
    void verify(size_t index) const {
        error::wrap_c_api(mxdnn_container_verify(get(), index), "could not verify an entry");
    }
    /// Copies `size` bytes of an entry from byte `offset` on.
    void read(size_t index, uint64_t offset, size_t size, void *buffer) const {
        error::wrap_c_api(
                mxdnn_container_read(get(), index, offset, size, buffer), "could not read an entry");
    }
    /// The bytes of an entry: in the caller's memory, or in a mapping of the file, with the limits that
    /// mxdnn_container_get_data() describes.
    const void *get_data(size_t index) const {
        const void *data = nullptr;
        error::wrap_c_api(mxdnn_container_get_data(get(), index, &data), "could not map an entry");
        return data;
    }
    /// A memory over the bytes of an entry, which are not copied. Nobody may write to it, and this object has
    /// to outlive it.
    memory get_memory(size_t index, const engine &aengine) const {
        return memory(get_desc(index), aengine, const_cast<void *>(get_data(index)));
    }

    /// A memory that the library allocates, with a copy of the bytes of an entry, which are checked as they
    /// are copied. It lives on without this object.
    memory load(size_t index, const engine &aengine) const {
        mxdnn_memory_t m = nullptr;
        error::wrap_c_api(mxdnn_container_load(get(), index, aengine.get(), &m), "could not load an entry");
        return memory(m);
    }

    /// The metadata of the file.
    std::map<std::string, std::string> get_metadata() const {
        size_t count = 0;
        error::wrap_c_api(mxdnn_container_get_metadata_count(get(), &count), "could not count metadata");
        std::map<std::string, std::string> all;
        for (size_t i = 0; i < count; i++) {
            const char *key = nullptr, *value = nullptr;
            error::wrap_c_api(mxdnn_container_get_metadata(get(), i, &key, &value), "could not get metadata");
            all.emplace(key, value);
        }
        return all;
    }
};

/// The checksum that a container stores for a tensor that is not packed.
inline checksum checksum_for_tensor(const std::string &dtype, const std::vector<int64_t> &dims) {
    mxdnn_checksum_t c = nullptr;
    error::wrap_c_api(
            mxdnn_checksum_create_for_tensor(&c, dtype.c_str(), static_cast<int>(dims.size()), dims.data()),
            "could not create a checksum");
    return checksum(c);
}

} // namespace mxdnn

#endif
