// SPDX-License-Identifier: Apache-2.0
/// @file
/// What an engine can do with packed weights, and checksums of them.
#ifndef MXDNN_HPP_BLOB_HPP
#define MXDNN_HPP_BLOB_HPP

#include <cstdint>
#include <vector>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/memory.hpp"

namespace mxdnn {

/// What `aengine` can do with weights that a blob describes; bad bytes are a verdict. get_last_error() has
/// the reason, empty for blob_verdict::native.
inline blob_verdict check_blob(const engine &aengine, const uint8_t *blob, size_t size) {
    mxdnn_blob_verdict_t verdict = mxdnn_blob_corrupt;
    error::wrap_c_api(
            mxdnn_memory_desc_check_blob(aengine.get(), blob, size, &verdict), "could not check a blob");
    return static_cast<blob_verdict>(verdict);
}
/// The same of a vector.
inline blob_verdict check_blob(const engine &aengine, const std::vector<uint8_t> &blob) {
    return check_blob(aengine, blob.data(), blob.size());
}

/// Checksum of packed bytes together with their descriptor.
inline uint64_t packed_checksum(const memory::desc &md, const void *packed) {
    uint64_t checksum = 0;
    error::wrap_c_api(mxdnn_packed_checksum(md.get(), packed, &checksum), "could not compute a checksum");
    return checksum;
}

template <>
struct handle_traits<mxdnn_checksum_t> {
    static void destroy(mxdnn_checksum_t p) { mxdnn_checksum_destroy(p); }
};

/// Checksum of packed bytes that come in parts: value() once all of them have been added.
struct checksum : public handle<mxdnn_checksum_t> {
    /// Takes a C handle over.
    explicit checksum(mxdnn_checksum_t c) : handle(c) {}
    /// Of the packed bytes of a descriptor.
    explicit checksum(const memory::desc &md) {
        mxdnn_checksum_t c = nullptr;
        error::wrap_c_api(mxdnn_checksum_create(&c, md.get()), "could not create a checksum");
        reset(c);
    }
    /// Adds the next `size` bytes, of any number; more than are missing are refused.
    void add(const void *bytes, size_t size) {
        error::wrap_c_api(mxdnn_checksum_add(get(), bytes, size), "could not add to a checksum");
    }
    /// Refused until every byte of the descriptor has been added.
    uint64_t value() const {
        uint64_t v = 0;
        error::wrap_c_api(mxdnn_checksum_get(get(), &v), "could not get a checksum");
        return v;
    }
};

} // namespace mxdnn

#endif
