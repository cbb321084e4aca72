// SPDX-License-Identifier: Apache-2.0
#include "common/blob/xxh64.hpp"

#include <algorithm>
#include <cstring>

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

xxh64_t::xxh64_t(uint64_t seed)
    : seed_(seed), acc_{seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1} {}

void xxh64_t::add_stripes(const uint8_t *p, size_t n) {
    // Four independent chains of operations. So this runs at the speed of memory.
    uint64_t a = acc_[0], b = acc_[1], c = acc_[2], d = acc_[3];
    for (; n > 0; n--, p += stripe) {
        a = mix(a, load_le<8>(p));
        b = mix(b, load_le<8>(p + 8));
        c = mix(c, load_le<8>(p + 16));
        d = mix(d, load_le<8>(p + 24));
    }
    acc_[0] = a, acc_[1] = b, acc_[2] = c, acc_[3] = d;
}

void xxh64_t::add(const void *data, size_t size) {
    const uint8_t *p = static_cast<const uint8_t *>(data);
    const size_t waiting = size_ % stripe;
    size_ += size;
    if (waiting > 0) {
        const size_t n = std::min(size, stripe - waiting);
        std::memcpy(rest_ + waiting, p, n);
        if (waiting + n < stripe) return;
        add_stripes(rest_, 1);
        p += n;
        size -= n;
    }
    add_stripes(p, size / stripe);
    if (size % stripe > 0) std::memcpy(rest_, p + size / stripe * stripe, size % stripe);
}

uint64_t xxh64_t::value() const {
    uint64_t hash = seed_ + prime_5;
    if (size_ >= stripe) {
        hash = rotate(acc_[0], 1) + rotate(acc_[1], 7) + rotate(acc_[2], 12) + rotate(acc_[3], 18);
        for (const uint64_t acc : acc_) hash = fold(hash, acc);
    }
    hash += size_;
    const uint8_t *p = rest_;
    size_t left = size_ % stripe;
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

uint64_t xxh64(const void *data, size_t size, uint64_t seed) {
    xxh64_t sum(seed);
    sum.add(data, size);
    return sum.value();
}

} // namespace impl
} // namespace mxdnn
