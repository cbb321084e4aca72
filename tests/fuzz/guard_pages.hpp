// SPDX-License-Identifier: Apache-2.0
// Buffers of which the first byte follows, or the last one precedes, a page that nobody may touch; those that
// are only read are on pages that cannot be written.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace fuzz {

class guard_pages_t {
public:
    static constexpr size_t most_bytes = 1 << 20; // of a buffer

    explicit guard_pages_t(size_t buffers) : page_(size_t(sysconf(_SC_PAGESIZE))), slots_(buffers) {
        base_ = static_cast<uint8_t *>(mmap(nullptr, buffers * pitch() + page_, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (base_ == MAP_FAILED) std::abort();
        for (size_t i = 0; i < buffers; i++) protect(begin_of(i), most_bytes, PROT_READ | PROT_WRITE);
    }
    guard_pages_t(const guard_pages_t &) = delete;
    guard_pages_t &operator=(const guard_pages_t &) = delete;

    // A buffer that can be written; null where there is no room. At the end of its pages it is aligned as its
    // size is, or to `align` bytes with as many after it as that takes.
    uint8_t *place(size_t size, bool at_end, size_t align = 1) {
        if (used_ == slots_.size() || size > most_bytes) return nullptr;
        uint8_t *const begin = begin_of(used_++), *const end = begin + most_bytes;
        return at_end ? end - (size + align - 1) / align * align : begin;
    }
    // The buffer of that address cannot be written any more.
    void make_read_only(uint8_t *buffer, size_t size) {
        if (size == 0) return;
        uint8_t *const first = buffer - (uintptr_t(buffer) & (page_ - 1));
        const size_t bytes = (size_t(buffer + size - first) + page_ - 1) / page_ * page_;
        protect(first, bytes, PROT_READ);
        read_only_.push_back({first, bytes});
    }
    // All buffers are free again.
    void clear() {
        for (const span_t &s : read_only_) protect(s.first, s.bytes, PROT_READ | PROT_WRITE);
        read_only_.clear();
        used_ = 0;
    }

private:
    struct span_t {
        uint8_t *first;
        size_t bytes;
    };
    size_t pitch() const { return most_bytes + page_; }
    uint8_t *begin_of(size_t slot) const { return base_ + page_ + slot * pitch(); }
    static void protect(uint8_t *first, size_t bytes, int access) {
        if (mprotect(first, bytes, access) != 0) std::abort();
    }

    size_t page_;
    std::vector<char> slots_;
    size_t used_ = 0;
    uint8_t *base_;
    std::vector<span_t> read_only_;
};

} // namespace fuzz
