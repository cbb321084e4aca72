// SPDX-License-Identifier: Apache-2.0
#include "common/container/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mxdnn {
namespace impl {
namespace safetensors {

file_t::~file_t() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (bytes_) munmap(const_cast<uint8_t *>(bytes_), size_t(size_));
}

status_t file_t::error(const char *doing) const {
    char text[128] = "";
    const char *reason = strerror_r(errno, text, sizeof(text));
    return {kind_t::io, std::string("cannot ") + doing + " " + name_ + ": " + reason};
}

status_t file_t::open(const char *path) {
    name_ = shown_path(path);
    // Without O_NONBLOCK, opening a pipe would wait for a writer before the kind of file can be checked.
    fd_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) return error("open");
    struct stat st;
    if (fstat(fd_, &st) != 0) return error("look at");
    if (!S_ISREG(st.st_mode)) return {kind_t::io, name_ + " is not a regular file"};
    size_ = uint64_t(st.st_size);
    modified_ = st.st_mtim;
    return {};
}

void file_t::open_bytes(const void *bytes, uint64_t size) {
    name_ = "the container in memory";
    bytes_ = static_cast<const uint8_t *>(bytes);
    size_ = size;
}

status_t file_t::check_unchanged() const {
    struct stat st;
    if (fstat(fd_, &st) != 0) return error("look at");
    if (uint64_t(st.st_size) == size_ && st.st_mtim.tv_sec == modified_.tv_sec
            && st.st_mtim.tv_nsec == modified_.tv_nsec)
        return {};
    return {kind_t::io, name_ + " was written to while it was read; it had " + std::to_string(size_)
                                + " bytes and has " + std::to_string(st.st_size)};
}

status_t file_t::read(uint64_t offset, void *buffer, uint64_t size) const {
    if (fd_ < 0) {
        if (size) std::memcpy(buffer, bytes_ + offset, size_t(size));
        return {};
    }
    char *p = static_cast<char *>(buffer);
    uint64_t left = size;
    while (left > 0) {
        const ssize_t n = pread(fd_, p, size_t(std::min<uint64_t>(left, 1u << 30)), off_t(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error("read");
        if (n == 0) break; // the size has changed, or the system gives another than the file has
        p += n;
        offset += uint64_t(n);
        left -= uint64_t(n);
    }
    const status_t s = check_unchanged();
    if (!s.ok() || left == 0) return s;
    return {kind_t::io, "cannot read " + name_ + ": it ends at byte " + std::to_string(offset) + " of "
                                + std::to_string(size_)};
}

status_t file_t::map(const uint8_t *&bytes) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!bytes_ && size_ > 0) {
        if (const status_t s = check_unchanged(); !s.ok()) return s;
        void *p = mmap(nullptr, size_t(size_), PROT_READ, MAP_SHARED, fd_, 0);
        if (p == MAP_FAILED) return error("map");
#if defined(MADV_HUGEPAGE)
        (void)madvise(p, size_t(size_), MADV_HUGEPAGE); // what is not in memory yet comes in large pages
#endif
        bytes_ = static_cast<const uint8_t *>(p);
    }
    bytes = bytes_;
    return {};
}

} // namespace safetensors
} // namespace impl
} // namespace mxdnn
