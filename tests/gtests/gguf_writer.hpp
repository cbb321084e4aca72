// SPDX-License-Identifier: Apache-2.0
// GGUF files for tests: valid files, and files with one mistake.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace gguf_test {

template <typename T>
std::string raw(T v) {
    std::string s(sizeof(T), '\0');
    std::memcpy(s.data(), &v, sizeof(T));
    return s;
}
// A string as the format stores it.
inline std::string text(const std::string &s) { return raw(uint64_t(s.size())) + s; }

struct tensor_t {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> dims; // innermost first, as in the file
    std::string data;
    uint64_t offset = UINT64_MAX; // where it is not the next that is free
};

struct writer_t {
    std::string magic = "GGUF";
    uint32_t version = 3;
    uint64_t alignment = 32;
    std::vector<std::string> keys; // with their values
    std::vector<tensor_t> tensors;
    uint64_t more_keys = 0, more_tensors = 0; // that the header counts and the file does not have

    template <typename T>
    void add(const std::string &key, uint32_t type, T v) {
        keys.push_back(text(key) + raw(type) + raw(v));
    }
    void add(const std::string &key, const std::string &v) {
        keys.push_back(text(key) + raw(uint32_t(8)) + text(v));
    }
    template <typename T>
    void add_array(const std::string &key, uint32_t type, const std::vector<T> &v) {
        std::string s = text(key) + raw(uint32_t(9)) + raw(type) + raw(uint64_t(v.size()));
        for (const T &x : v) s += raw(x);
        keys.push_back(s);
    }
    void add_array(const std::string &key, const std::vector<std::string> &v) {
        std::string s = text(key) + raw(uint32_t(9)) + raw(uint32_t(8)) + raw(uint64_t(v.size()));
        for (const std::string &x : v) s += text(x);
        keys.push_back(s);
    }

    std::string bytes() const {
        std::string s = magic + raw(version) + raw(uint64_t(tensors.size()) + more_tensors)
                        + raw(uint64_t(keys.size()) + more_keys);
        for (const std::string &k : keys) s += k;
        std::string data;
        const auto pad = [&](std::string &to) {
            to.resize(size_t((to.size() + alignment - 1) / alignment * alignment));
        };
        for (const tensor_t &t : tensors) {
            s += text(t.name) + raw(uint32_t(t.dims.size()));
            for (const uint64_t d : t.dims) s += raw(d);
            s += raw(t.type) + raw(t.offset == UINT64_MAX ? uint64_t(data.size()) : t.offset);
            data += t.data;
            pad(data);
        }
        pad(s);
        return s + data;
    }
};

// A file without a name. The path is valid during the lifetime of this object.
class memory_file_t {
public:
    explicit memory_file_t(const std::string &bytes) : fd_(memfd_create("gguf", 0)) {
        is_written_ = fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == ssize_t(bytes.size());
    }
    ~memory_file_t() { close(fd_); }
    memory_file_t(const memory_file_t &) = delete;
    memory_file_t &operator=(const memory_file_t &) = delete;

    bool is_written() const { return is_written_; }
    int fd() const { return fd_; }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    const int fd_;
    bool is_written_;
};

} // namespace gguf_test
