// SPDX-License-Identifier: Apache-2.0
// XXH64, the 64-bit checksum of blobs and of packed bytes: https://github.com/Cyan4973/xxHash, spec 0.1.1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxdnn {
namespace impl {

// XXH64 of bytes that come in parts of any size, at any address.
class xxh64_t {
public:
    explicit xxh64_t(uint64_t seed);
    void add(const void *data, size_t size);
    uint64_t value() const; // for the bytes so far
    uint64_t size() const { return size_; }

private:
    static constexpr size_t stripe = 32;
    void add_stripes(const uint8_t *p, size_t n);

    uint64_t seed_, size_ = 0;
    uint64_t acc_[4];
    uint8_t rest_[stripe]; // the last size_ % stripe bytes, not yet processed
};

uint64_t xxh64(const void *data, size_t size, uint64_t seed);

} // namespace impl
} // namespace mxdnn
