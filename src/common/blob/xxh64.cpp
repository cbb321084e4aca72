// SPDX-License-Identifier: Apache-2.0
// XXH64 over one buffer, at any address.
#include "common/blob/xxh64.hpp"

#include "common/blob/little_endian.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr uint64_t prime_1 = 0x9e3779b185ebca87u, prime_2 = 0xc2b2ae3d27d4eb4fu,
                   prime_3 = 0x165667b19e3779f9u, prime_4 = 0x85ebca77c2b2ae63u,
                   prime_5 = 0x27d4eb2f165667c5u;

uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }
uint64_t mix(uint64_t acc, uint64_t lane) { return rotate(acc + lane * prime_2, 31) * prime_1; }
uint64_t fold(uint64_t hash, uint64_t acc) { return (hash ^ mix(0, acc)) * prime_1 + prime_4; }

} // namespace

uint64_t xxh64(const void *data, size_t size, uint64_t seed) {
    const uint8_t *p = static_cast<const uint8_t *>(data);
    size_t left = size;
    uint64_t hash = seed + prime_5;
    if (left >= 32) {
        // Four chains that do not wait for one another: what makes this run at memory speed.
        uint64_t a = seed + prime_1 + prime_2, b = seed + prime_2, c = seed, d = seed - prime_1;
        for (; left >= 32; left -= 32, p += 32) {
            a = mix(a, load_le<8>(p));
            b = mix(b, load_le<8>(p + 8));
            c = mix(c, load_le<8>(p + 16));
            d = mix(d, load_le<8>(p + 24));
        }
        hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
        hash = fold(fold(fold(fold(hash, a), b), c), d);
    }
    hash += uint64_t(size);
    for (; left >= 8; left -= 8, p += 8) hash = rotate(hash ^ mix(0, load_le<8>(p)), 27) * prime_1 + prime_4;
    if (left >= 4) {
        hash = rotate(hash ^ load_le<4>(p) * prime_1, 23) * prime_2 + prime_3;
        left -= 4, p += 4;
    }
    for (; left > 0; left--, p++) hash = rotate(hash ^ *p * prime_5, 11) * prime_1;

    hash = (hash ^ hash >> 33) * prime_2;
    hash = (hash ^ hash >> 29) * prime_3;
    return hash ^ hash >> 32;
}

} // namespace impl
} // namespace mxdnn
