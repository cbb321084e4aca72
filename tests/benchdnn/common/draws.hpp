// SPDX-License-Identifier: Apache-2.0
// Random choices that two numbers decide, on every machine alike. Two of them never stand in one expression,
// whose parts a compiler may take in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace bench {

class draws_t {
public:
    draws_t(uint64_t seed, uint64_t index) : state_(seed) { state_ = next() + index; }

    int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }
    bool one_in(int64_t n) { return below(n) == 0; }
    // A number of a range, small ones as often as large ones.
    int64_t range(int64_t least, int64_t most) {
        int bits = 0;
        while ((most - least) >> bits) bits++;
        if (bits == 0) return least;
        const int64_t span = int64_t(2) << below(bits);
        return least + std::min(most - least, below(span));
    }
    // A length of a dim up to `most`: any, or at the edge of what kernels do at a time.
    int64_t length(int64_t most) {
        const int64_t n = range(1, most);
        if (one_in(2)) return n;
        const int64_t tile = int64_t(16) << below(5), edge = (n + tile - 1) / tile * tile;
        return std::min(most, edge - 1 + below(3));
    }
    template <typename T>
    const T &of(const std::vector<T> &list) {
        return list[size_t(below(int64_t(list.size())))];
    }
    template <typename T>
    T of(std::initializer_list<T> list) {
        return list.begin()[below(int64_t(list.size()))];
    }

private:
    // SplitMix64.
    uint64_t next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    uint64_t state_;
};

} // namespace bench
