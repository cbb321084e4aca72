// SPDX-License-Identifier: Apache-2.0
#include "input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors.hpp"

input_file_t::input_file_t(const std::string &path)
    : name_(safetensors::shown_path(path)),
      fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat st;
    const char *wrong = nullptr;
    if (fd_ < 0 || fstat(fd_, &st) != 0)
        wrong = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        wrong = "it is not a regular file";
    if (wrong) {
        const std::string why = wrong;
        if (fd_ >= 0) close(fd_);
        fail(why);
    }
    size_ = uint64_t(st.st_size);
    modified_ = st.st_mtim;
}

input_file_t::~input_file_t() { close(fd_); }

void input_file_t::fail(const std::string &why) const {
    throw std::runtime_error("cannot read " + name_ + ": " + why);
}

void input_file_t::read(uint64_t offset, uint64_t size, void *buffer) const {
    char *p = static_cast<char *>(buffer);
    uint64_t left = size;
    while (left > 0) {
        const ssize_t n = pread(fd_, p, size_t(std::min<uint64_t>(left, 1u << 30)), off_t(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(strerror(errno));
        if (n == 0) break; // the size has changed, or the system gives another than the file has
        p += n;
        offset += uint64_t(n);
        left -= uint64_t(n);
    }
    struct stat st;
    if (fstat(fd_, &st) != 0) fail(strerror(errno));
    if (uint64_t(st.st_size) != size_ || st.st_mtim.tv_sec != modified_.tv_sec
            || st.st_mtim.tv_nsec != modified_.tv_nsec)
        fail("it was written to meanwhile; it had " + std::to_string(size_) + " bytes and has "
                + std::to_string(st.st_size));
    if (left > 0) fail("it ends at byte " + std::to_string(offset) + " of " + std::to_string(size_));
}
