// SPDX-License-Identifier: Apache-2.0
// Choices that the bytes of an input decide and, where they end, numbers that follow from all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace fuzz {

class choices_t {
public:
    choices_t(const uint8_t *data, size_t size) : data_(data), size_(size) {
        for (size_t i = 0; i < size; i++) state_ = (state_ ^ data[i]) * 0x100000001b3;
    }

    // One of a few, chosen by one byte, so that a mutation of the input changes one choice.
    int64_t below(int64_t n) {
        return int64_t((n <= 256 && at_ < size_ ? data_[at_++] : bits()) % uint64_t(n));
    }
    bool one_in(int64_t n) { return below(n) == 0; }
    bool percent(int64_t n) { return below(100) < n; }
    template <typename T, size_t n>
    const T &of(const T (&list)[n]) {
        return list[below(int64_t(n))];
    }
    template <typename T, size_t n>
    const T &of(const std::array<T, n> &list) {
        return list[size_t(below(int64_t(n)))];
    }
    template <typename T>
    T of(std::initializer_list<T> list) {
        return list.begin()[below(int64_t(list.size()))];
    }
    template <typename T>
    T &of(std::vector<T> &list) {
        return list[size_t(below(int64_t(list.size())))];
    }
    uint64_t bits() { // SplitMix64
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

private:
    const uint8_t *data_;
    size_t size_, at_ = 0;
    uint64_t state_ = 0xcbf29ce484222325;
};

} // namespace fuzz
