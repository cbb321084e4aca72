// SPDX-License-Identifier: Apache-2.0
// A file that is read in pieces and never mapped, so that one that shrinks is an error and no signal.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

class input_file_t {
public:
    // Regular files only; it waits for nobody at the other end of a pipe. Throws std::runtime_error.
    explicit input_file_t(const std::string &path);
    ~input_file_t();
    input_file_t(const input_file_t &) = delete;
    input_file_t &operator=(const input_file_t &) = delete;

    // In a form to print.
    const std::string &name() const { return name_; }
    uint64_t size() const { return size_; }

    // Bytes that lie within size(). Throws where the file was written to since it was opened. Several threads
    // may read.
    void read(uint64_t offset, uint64_t size, void *buffer) const;

private:
    [[noreturn]] void fail(const std::string &why) const;

    std::string name_;
    int fd_;
    uint64_t size_ = 0;
    timespec modified_{};
};
