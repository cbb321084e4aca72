// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/buffer.hpp"

#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "benchdnn/common/settings.hpp"

namespace bench {

void prefer_large_pages(void *memory, size_t bytes) {
#if defined(MADV_HUGEPAGE)
    if (bytes >= 2 << 20) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

buffer_t::buffer_t(size_t bytes, size_t align) : size_(bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    const size_t padded = (bytes + align - 1) / align * align;
    const size_t inner = (padded + page - 1) / page * page;
    map_bytes_ = inner + 2 * page;
    map_ = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) {
        map_ = nullptr;
        throw std::bad_alloc();
    }
    if (!settings.small_pages) prefer_large_pages(map_, map_bytes_);
#if defined(MADV_NOHUGEPAGE)
    else
        (void)madvise(map_, map_bytes_, MADV_NOHUGEPAGE);
#endif
    uint8_t *first = static_cast<uint8_t *>(map_) + page;
    mprotect(map_, page, PROT_NONE);
    mprotect(first + inner, page, PROT_NONE);
    data_ = first + inner - padded;
    poison();
}

buffer_t::~buffer_t() {
    if (map_) munmap(map_, map_bytes_);
}

} // namespace bench
