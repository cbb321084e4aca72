// SPDX-License-Identifier: Apache-2.0
// XXH64, the 64-bit checksum of blobs and of packed bytes: https://github.com/Cyan4973/xxHash, spec 0.1.1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxdnn {
namespace impl {

uint64_t xxh64(const void *data, size_t size, uint64_t seed);

} // namespace impl
} // namespace mxdnn
