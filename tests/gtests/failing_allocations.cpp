// SPDX-License-Identifier: Apache-2.0
#include "gtests/failing_allocations.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// What the C library's names stand for.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

constexpr int64_t never = INT64_MAX;
std::atomic<int64_t> left{never}; // allocations until the first that fails
std::atomic<bool> all_after{false}, failed{false}, only_others{false};
std::atomic<int64_t> alive{0};
__thread bool is_exempt = false;

bool fails() {
    if (only_others.load(std::memory_order_relaxed)) {
        if (is_exempt) return false;
        failed = true;
        return true;
    }
    if (left.load(std::memory_order_relaxed) == never) return false;
    const int64_t n = left.fetch_sub(1);
    if (n > 1 || (n < 1 && !all_after)) return false;
    failed = true;
    return true;
}

template <typename F>
void *allocate(F f) {
    if (fails()) {
        errno = ENOMEM;
        return nullptr;
    }
    void *const p = f();
    if (p) alive++;
    return p;
}

} // namespace

namespace failing {

void arm(int64_t n, bool and_all_after) {
    failed = false;
    all_after = and_all_after;
    left = n;
}
void arm_others() {
    failed = false;
    is_exempt = true;
    only_others = true;
}
bool disarm() {
    left = never;
    only_others = false;
    is_exempt = false;
    return failed;
}
int64_t live() { return alive; }

} // namespace failing

extern "C" {

void *malloc(size_t n) {
    return allocate([=] { return __libc_malloc(n); });
}
void *calloc(size_t n, size_t size) {
    return allocate([=] { return __libc_calloc(n, size); });
}
void *realloc(void *p, size_t n) {
    if (!p) return malloc(n);
    return fails() ? nullptr : __libc_realloc(p, n);
}
void *memalign(size_t align, size_t n) {
    return allocate([=] { return __libc_memalign(align, n); });
}
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n) {
    void *const made = memalign(align, n);
    if (!made) return ENOMEM;
    *p = made;
    return 0;
}
void free(void *p) {
    if (p) alive--;
    __libc_free(p);
}
void *mmap(void *at, size_t n, int access, int flags, int file, off_t offset) noexcept {
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *const p = reinterpret_cast<void *>(syscall(SYS_mmap, at, n, access, flags, file, offset));
    if (p != MAP_FAILED) alive++;
    return p;
}
int munmap(void *p, size_t n) noexcept {
    const int r = int(syscall(SYS_munmap, p, n));
    if (r == 0) alive--;
    return r;
}

} // extern "C"
