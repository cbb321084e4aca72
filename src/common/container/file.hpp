// SPDX-License-Identifier: Apache-2.0
// A file that is read in pieces and mapped only for who asks, or one that lies in memory.
#pragma once

#include <cstdint>
#include <ctime>
#include <mutex>

#include "common/container/safetensors_format.hpp"

namespace mxdnn {
namespace impl {
namespace safetensors {

class file_t {
public:
    file_t() = default;
    ~file_t();
    file_t(const file_t &) = delete;
    file_t &operator=(const file_t &) = delete;

    // Opens regular files only. It does not wait for the other end of a pipe.
    status_t open(const char *path);
    void open_bytes(const void *bytes, uint64_t size);

    // The name in messages.
    const std::string &name() const { return name_; }
    uint64_t size() const { return size_; }

    // Reads `size` bytes from `offset` on, which lie within size(). Refused if the file was shortened or
    // written to after it was opened.
    status_t read(uint64_t offset, void *buffer, uint64_t size) const;

    // All bytes. The first call maps the file.
    status_t map(const uint8_t *&bytes) const;

private:
    status_t error(const char *doing) const;
    status_t check_unchanged() const;

    std::string name_;
    int fd_ = -1;
    uint64_t size_ = 0;
    timespec modified_{};
    mutable std::mutex mutex_;
    mutable const uint8_t *bytes_ = nullptr;
};

} // namespace safetensors
} // namespace impl
} // namespace mxdnn
