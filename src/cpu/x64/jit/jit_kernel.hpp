// SPDX-License-Identifier: Apache-2.0
// A kernel that was generated at run time, as its callers see it.
#pragma once

#include <cstddef>
#include <memory>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class jit_kernel_t {
public:
    // Copies an image of `bytes` to pages of its own. These become executable and are no longer writable. The
    // image has constants first, and then code from `entry` on. It may be at any multiple of 64. On failure
    // *kernel does not change and *reason says why.
    static status_t make(const char *name, const void *image, size_t bytes, size_t entry,
            std::unique_ptr<jit_kernel_t> *kernel, const char **reason);
    ~jit_kernel_t();
    jit_kernel_t(const jit_kernel_t &) = delete;
    jit_kernel_t &operator=(const jit_kernel_t &) = delete;

    const char *name() const { return name_; }
    const void *code() const { return code_; }
    size_t code_size() const {
        return size_t(static_cast<char *>(pages_) + bytes_ - static_cast<char *>(code_));
    }

    // args is the structure of the kernel's kind (kernel_types.hpp).
    void operator()(const void *args) const { reinterpret_cast<void (*)(const void *)>(code_)(args); }

private:
    jit_kernel_t(const char *name, void *pages, size_t bytes, size_t entry)
        : name_(name), pages_(pages), bytes_(bytes), code_(static_cast<char *>(pages) + entry) {}

    const char *const name_; // the name in the kernel list, which outlives every kernel
    void *const pages_;
    const size_t bytes_;
    void *const code_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
