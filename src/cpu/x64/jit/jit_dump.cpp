// SPDX-License-Identifier: Apache-2.0
// Writes generated code to files, for a disassembler.
#include "cpu/x64/jit/jit_dump.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
std::atomic<bool> dumps{false};
std::atomic<int> count{0};
} // namespace

void set_jit_dump(bool on) { dumps.store(on, std::memory_order_relaxed); }

void jit_dump(const char *name, const void *code, size_t size) {
    if (!dumps.load(std::memory_order_relaxed)) return;
    char path[256];
    std::snprintf(path, sizeof(path), "mxdnn_dump_%s.%d.bin", name, count.fetch_add(1));
    // Always a new file. An existing file, which may be a link to another place, is removed first.
    unlink(path);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    std::FILE *const f = file < 0 ? nullptr : fdopen(file, "wb");
    const bool written = f && std::fwrite(code, 1, size, f) == size;
    if (!(f && std::fclose(f) == 0 && written))
        std::fprintf(
                stderr, "mxdnn: cannot write %s into the current folder: %s\n", path, std::strerror(errno));
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
