// SPDX-License-Identifier: Apache-2.0
// Pages for code.
#include "cpu/x64/jit/jit_kernel.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "cpu/x64/jit/jit_dump.hpp"
#include "cpu/x64/jit/jit_profile.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

status_t jit_kernel_t::make(const char *name, const void *image, size_t bytes, size_t entry,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
#if defined(MAP_POPULATE) // all pages at once instead of one fault after the other
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
#else
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
    void *const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (pages == MAP_FAILED) {
        *reason = "there is no memory for code";
        return mxdnn_out_of_memory;
    }
    std::unique_ptr<jit_kernel_t> made(new (std::nothrow) jit_kernel_t(name, pages, bytes, entry));
    if (!made) {
        munmap(pages, bytes);
        *reason = "there is no memory for a kernel";
        return mxdnn_out_of_memory;
    }
    std::memcpy(pages, image, bytes);
    if (mprotect(pages, bytes, PROT_READ | PROT_EXEC) != 0) {
        *reason = "memory cannot be made executable";
        return errno == ENOMEM ? mxdnn_out_of_memory : mxdnn_runtime_error;
    }
    jit_dump(name, made->code(), made->code_size());
    jit_profile(name, made->code(), made->code_size());
    *kernel = std::move(made);
    return mxdnn_success;
}

jit_kernel_t::~jit_kernel_t() { munmap(pages_, bytes_); }

} // namespace x64
} // namespace impl
} // namespace mxdnn
