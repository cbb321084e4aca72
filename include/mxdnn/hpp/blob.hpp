// SPDX-License-Identifier: Apache-2.0
/// @file
/// Verdicts on blobs, and checksums of packed weights.
#ifndef MXDNN_HPP_BLOB_HPP
#define MXDNN_HPP_BLOB_HPP

#include <cstdint>
#include <vector>

#include "mxdnn/hpp/enums.hpp"
#include "mxdnn/hpp/memory.hpp"

namespace mxdnn {

/// What `aengine` can do with the weights that a blob describes. Wrong bytes are a verdict, not a failure.
/// get_last_error() has the reason for the verdict; it is empty for blob_verdict::native.
inline blob_verdict check_blob(const engine &aengine, const uint8_t *blob, size_t size) {
    mxdnn_blob_verdict_t verdict = mxdnn_blob_corrupt;
    error::wrap_c_api(
            mxdnn_memory_desc_check_blob(aengine.get(), blob, size, &verdict), "could not check a blob");
    return static_cast<blob_verdict>(verdict);
}
/// The same for a vector.
inline blob_verdict check_blob(const engine &aengine, const std::vector<uint8_t> &blob) {
    return check_blob(aengine, blob.data(), blob.size());
}

/// The checksum of packed weights and their descriptor. `packed` has md.get_size() bytes.
inline uint64_t packed_checksum(const memory::desc &md, const void *packed) {
    uint64_t checksum = 0;
    error::wrap_c_api(mxdnn_packed_checksum(md.get(), packed, &checksum), "could not compute a checksum");
    return checksum;
}

template <>
struct handle_traits<mxdnn_checksum_t> {
    static void destroy(mxdnn_checksum_t p) { mxdnn_checksum_destroy(p); }
};

/// The checksum of bytes that come in parts. It has a value when all bytes have been added.
struct checksum : public handle<mxdnn_checksum_t> {
    /// Owns a C handle from now on.
    explicit checksum(mxdnn_checksum_t c) : handle(c) {}
    /// For the packed weights of a descriptor.
    explicit checksum(const memory::desc &md) {
        mxdnn_checksum_t c = nullptr;
        error::wrap_c_api(mxdnn_checksum_create(&c, md.get()), "could not create a checksum");
        reset(c);
    }
    /// Adds the next `size` bytes. Parts may have any size. More bytes than the descriptor has are refused.
    void add(const void *bytes, size_t size) {
        error::wrap_c_api(mxdnn_checksum_add(get(), bytes, size), "could not add to a checksum");
    }
    /// The checksum. Throws as long as bytes are missing.
    uint64_t value() const {
        uint64_t v = 0;
        error::wrap_c_api(mxdnn_checksum_get(get(), &v), "could not get a checksum");
        return v;
    }
};

} // namespace mxdnn

#endif
