// SPDX-License-Identifier: Apache-2.0
#include "replaced_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace safetensors {

namespace {

std::string folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool is_same(const struct stat &a, const struct stat &b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void wait_a_moment() {
    const timespec t{0, 10'000'000};
    nanosleep(&t, nullptr);
}

constexpr int attempts = 200; // of wait_a_moment(): two seconds

} // namespace

std::string replaced_file_t::temporary_name(const std::string &path) {
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (const char c : path.substr(path.rfind('/') + 1)) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
    return folder_of(path) + "/.mxdnn-" + hexadecimal(hash) + ".tmp";
}

replaced_file_t::replaced_file_t(std::string path, bool nameless)
    : path_(std::move(path)), dir_(folder_of(path_)), temporary_(temporary_name(path_)),
      try_nameless_(nameless) {}

replaced_file_t::~replaced_file_t() {
    if (is_named_ && !committed_) unlink(temporary_.c_str());
    if (fd_ >= 0) ::close(fd_);
}

status_t replaced_file_t::error(const char *doing) const {
    const std::string reason = strerror(errno);
    return {kind_t::io, std::string("cannot ") + doing + " " + shown_path(path_) + ": " + reason};
}

status_t replaced_file_t::busy() const {
    return {kind_t::io,
            "another process is writing " + shown_path(path_) + "; its file is " + shown_path(temporary_)};
}

// Whether the file is this process's; a file system without locks leaves it to the names.
bool replaced_file_t::lock() { return flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

status_t replaced_file_t::open() {
    // The last step is a rename, which would put a file in the place of a device, too.
    struct stat there;
    if (stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
        return {kind_t::io, "cannot replace " + shown_path(path_) + ": it is no regular file"};
    // Such a file gets its name by way of /proc.
    if (try_nameless_ && access("/proc/self/fd", X_OK) == 0)
        fd_ = ::open(dir_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0) return open_named();
    lock();
    return {};
}

status_t replaced_file_t::open_named() {
    for (int i = 0; i < attempts; i++) {
        fd_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd_ < 0 && errno != EEXIST) return error("create a file beside");
        if (fd_ >= 0) {
            // Until it is locked, another process may take it for one that was left behind.
            struct stat own, named;
            if (lock() && fstat(fd_, &own) == 0 && stat(temporary_.c_str(), &named) == 0
                    && is_same(own, named)) {
                is_named_ = true;
                return {};
            }
            ::close(fd_);
            fd_ = -1;
            wait_a_moment();
            continue;
        }
        switch (remove_stale()) {
        case removed_t::yes: break;
        case removed_t::busy: return busy();
        case removed_t::error: return error("remove what is left of writing");
        }
    }
    return busy();
}

// Removes the file of a process that is gone.
replaced_file_t::removed_t replaced_file_t::remove_stale() const {
    const int fd = ::open(temporary_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? removed_t::yes : removed_t::error;
    removed_t removed = removed_t::error;
    struct stat own, named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) removed = removed_t::busy;
    } else if (fstat(fd, &own) == 0) {
        // Who holds the lock of the file under that name may remove it, and nobody else.
        if (!S_ISREG(own.st_mode))
            errno = EEXIST;
        else if (lstat(temporary_.c_str(), &named) != 0 || !is_same(own, named)
                 || unlink(temporary_.c_str()) == 0)
            removed = removed_t::yes;
    }
    const int reason = errno;
    ::close(fd);
    errno = reason;
    return removed;
}

status_t replaced_file_t::reserve(uint64_t size) {
    if (size == 0 || fallocate(fd_, 0, 0, off_t(size)) == 0) return {};
    // Others say that the file system has no such call.
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
        return {kind_t::io, error("write").message + " (" + std::to_string(size) + " bytes)"};
    return {};
}

status_t replaced_file_t::write_at(uint64_t offset, const void *bytes, uint64_t size) {
    const char *p = static_cast<const char *>(bytes);
    while (size) {
        const ssize_t n = pwrite(fd_, p, size_t(std::min<uint64_t>(size, 1u << 30)), off_t(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return error("write");
        p += n;
        offset += uint64_t(n);
        size -= uint64_t(n);
    }
    return {};
}

status_t replaced_file_t::replace() {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_);
    for (int i = 0; !is_named_; i++) {
        if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0)
            return {}; // a new file
        // Only rename() replaces what is there, and it wants a name.
        if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
            is_named_ = true;
            break;
        }
        if (errno != EEXIST) return error("replace");
        const removed_t removed = remove_stale();
        if (removed == removed_t::error) return error("remove what is left of writing");
        if (i == attempts) return busy();
        if (removed == removed_t::busy) wait_a_moment();
    }
    return rename(temporary_.c_str(), path_.c_str()) == 0 ? status_t{} : error("replace");
}

status_t replaced_file_t::take_new_name() {
    const std::string from = is_named_ ? temporary_ : "/proc/self/fd/" + std::to_string(fd_);
    if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        if (errno == EEXIST)
            return {kind_t::io,
                    shown_path(path_) + " is there already; name another place, or remove it first"};
        return error("write");
    }
    if (is_named_) unlink(temporary_.c_str());
    return {};
}

status_t replaced_file_t::commit(bool only_new) {
    // The file is the owner's alone so far.
    struct stat st;
    mode_t mode;
    if (stat(path_.c_str(), &st) == 0) {
        mode = st.st_mode & 0777;
    } else {
        const mode_t mask = umask(0);
        umask(mask);
        mode = 0666 & ~mask;
    }
    if (fchmod(fd_, mode) != 0 || fsync(fd_) != 0) return error("write");
    if (status_t s = only_new ? take_new_name() : replace(); !s.ok()) return s;
    committed_ = true;
    // The new name is durable once the directory is; a file system that cannot sync one is no failure.
    const int d = ::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d >= 0) {
        (void)fsync(d);
        ::close(d);
    }
    return {};
}

} // namespace safetensors
