// SPDX-License-Identifier: Apache-2.0
// Little-endian integers at any address; compilers turn both into one move.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {

inline uint64_t load_le(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= uint64_t(p[i]) << (8 * i);
    return v;
}

template <int bytes>
inline uint64_t load_le(const uint8_t *p) {
    uint64_t v = 0;
#if defined(__GNUC__)
#pragma GCC unroll 8
#endif
    for (int i = 0; i < bytes; i++) v |= uint64_t(p[i]) << (8 * i);
    return v;
}

inline void store_le(uint8_t *p, int bytes, uint64_t v) {
    for (int i = 0; i < bytes; i++) p[i] = uint8_t(v >> (8 * i));
}

} // namespace impl
} // namespace mxdnn
