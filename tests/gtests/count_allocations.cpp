// SPDX-License-Identifier: Apache-2.0
// In a separate file: when these replacements are inlined into callers, GCC warns of a mismatch.
#include "gtests/count_allocations.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

static std::atomic<long> allocations{0};

long count_of_allocations() { return allocations; }

void *operator new(std::size_t size) {
    allocations++;
    if (void *p = std::malloc(size ? size : 1)) return p;
    throw std::bad_alloc();
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    allocations++;
    return std::malloc(size ? size : 1);
}
void *operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept {
    allocations++;
    const std::size_t a = std::size_t(alignment);
    return size > SIZE_MAX - a ? nullptr : std::aligned_alloc(a, (size + a - 1) / a * a);
}
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
