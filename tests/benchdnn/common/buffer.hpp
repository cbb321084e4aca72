// SPDX-License-Identifier: Apache-2.0
// Memory that notices mistakes: it ends at a page that may not be touched, and starts poisoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace bench {

// Large buffers are in large pages if the system has them, like memory that the library allocates.
void prefer_large_pages(void *memory, size_t bytes);

class buffer_t {
public:
    buffer_t() = default;
    // `align`: the last byte may be up to align - 1 bytes before the guard page.
    explicit buffer_t(size_t bytes, size_t align = 16);
    ~buffer_t();
    buffer_t(buffer_t &&o) noexcept { swap(o); }
    buffer_t &operator=(buffer_t &&o) noexcept {
        swap(o);
        return *this;
    }

    uint8_t *data() const { return data_; }
    size_t size() const { return size_; }
    void poison() const { std::memset(data_, 0xA5, size_); }

private:
    void swap(buffer_t &o) {
        std::swap(map_, o.map_);
        std::swap(map_bytes_, o.map_bytes_);
        std::swap(data_, o.data_);
        std::swap(size_, o.size_);
    }
    void *map_ = nullptr;
    size_t map_bytes_ = 0;
    uint8_t *data_ = nullptr;
    size_t size_ = 0;
};

} // namespace bench
