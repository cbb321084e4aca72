// SPDX-License-Identifier: Apache-2.0
// A file that takes the place of another, or a new place, when it is complete, and not before.
//
// Where the file system has files without a name (O_TMPFILE), a new file gets its name when it is complete,
// and nothing else is ever seen. One that replaces another has the name temporary_name() between two system
// calls. Other file systems hold the data under that name from the start. A process that is killed meanwhile
// leaves that file behind, locked by nobody: the next that writes to the same path removes it. While a
// process lives it holds a lock (flock), so that a second one neither removes its file nor writes to the same
// path in pieces.
#pragma once

#include <cstdint>
#include <string>

#include "common/container/safetensors_format.hpp"

namespace safetensors {

using namespace mxdnn::impl::safetensors;

class replaced_file_t {
public:
    // `nameless`: whether to try O_TMPFILE.
    explicit replaced_file_t(std::string path, bool nameless = true);
    ~replaced_file_t(); // what is not committed is gone
    replaced_file_t(const replaced_file_t &) = delete;
    replaced_file_t &operator=(const replaced_file_t &) = delete;

    // Refused where `path` is there and is no regular file.
    status_t open();
    // Refused at once where there is no room for so many bytes.
    status_t reserve(uint64_t size);
    status_t write_at(uint64_t offset, const void *bytes, uint64_t size);
    // With the mode that the old file has, or that open() would give. A symbolic link is replaced itself.
    // With `only_new` what has the name already stays, and this is refused.
    status_t commit(bool only_new = false);

    // In the folder of `path`, of a length that every file system takes.
    static std::string temporary_name(const std::string &path);

private:
    enum class removed_t { yes, busy, error };

    status_t error(const char *doing) const;
    status_t busy() const;
    bool lock();
    status_t open_named();
    status_t replace();
    status_t take_new_name();
    removed_t remove_stale() const;

    const std::string path_, dir_, temporary_;
    const bool try_nameless_;
    bool is_named_ = false, committed_ = false; // is_named_: under temporary_
    int fd_ = -1;
};

} // namespace safetensors
