// SPDX-License-Identifier: Apache-2.0
// Tests call generated code only through this. It fills every register that a function must preserve with a
// pattern, calls the code, and then checks:
// - rbx, rbp, r12 to r15, the control bits of MXCSR and the direction flag;
// - the arguments and the bytes around them;
// - that the upper halves of the vector registers are zero (vzeroupper);
// - that no tile configuration remains.
// guarded_t below is memory next to a page that cannot be accessed.
#pragma once

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/jit/jit_kernel.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct jit_call_frame_t {
    uint64_t before[6], after[6]; // rbx rbp r12 r13 r14 r15
    uint64_t flags;               // after
    const void *code, *args;
    uint32_t mxcsr_before, mxcsr_after;
    uint8_t ymm[16][32]; // after
};

// Needs AVX, which every generated kernel does.
inline void jit_call_trampoline(jit_call_frame_t *frame) {
    static_assert(offsetof(jit_call_frame_t, after) == 48 && offsetof(jit_call_frame_t, flags) == 96
                  && offsetof(jit_call_frame_t, code) == 104 && offsetof(jit_call_frame_t, args) == 112
                  && offsetof(jit_call_frame_t, mxcsr_before) == 120
                  && offsetof(jit_call_frame_t, mxcsr_after) == 124
                  && offsetof(jit_call_frame_t, ymm) == 128);
    // The compiler may keep values on the stack below the red zone.
    __asm__ volatile("lea -128(%%rsp), %%rsp\n"
                     "push %%rbx\n push %%rbp\n push %%r12\n push %%r13\n push %%r14\n push %%r15\n"
                     "mov %%rsp, %%rbx\n"
                     "and $-16, %%rsp\n"
                     "push %%rbx\n push %%rax\n"
                     "mov 0(%%rax), %%rbx\n mov 8(%%rax), %%rbp\n mov 16(%%rax), %%r12\n"
                     "mov 24(%%rax), %%r13\n mov 32(%%rax), %%r14\n mov 40(%%rax), %%r15\n"
                     "stmxcsr 120(%%rax)\n"
                     "mov 112(%%rax), %%rdi\n"
                     "call *104(%%rax)\n"
                     "mov (%%rsp), %%rax\n"
                     "mov %%rbx, 48(%%rax)\n mov %%rbp, 56(%%rax)\n mov %%r12, 64(%%rax)\n"
                     "mov %%r13, 72(%%rax)\n mov %%r14, 80(%%rax)\n mov %%r15, 88(%%rax)\n"
                     "pushfq\n popq 96(%%rax)\n"
                     "cld\n"
                     "stmxcsr 124(%%rax)\n"
                     "vmovdqu %%ymm0, 128(%%rax)\n vmovdqu %%ymm1, 160(%%rax)\n"
                     "vmovdqu %%ymm2, 192(%%rax)\n vmovdqu %%ymm3, 224(%%rax)\n"
                     "vmovdqu %%ymm4, 256(%%rax)\n vmovdqu %%ymm5, 288(%%rax)\n"
                     "vmovdqu %%ymm6, 320(%%rax)\n vmovdqu %%ymm7, 352(%%rax)\n"
                     "vmovdqu %%ymm8, 384(%%rax)\n vmovdqu %%ymm9, 416(%%rax)\n"
                     "vmovdqu %%ymm10, 448(%%rax)\n vmovdqu %%ymm11, 480(%%rax)\n"
                     "vmovdqu %%ymm12, 512(%%rax)\n vmovdqu %%ymm13, 544(%%rax)\n"
                     "vmovdqu %%ymm14, 576(%%rax)\n vmovdqu %%ymm15, 608(%%rax)\n"
                     "vzeroupper\n"
                     "add $8, %%rsp\n pop %%rsp\n"
                     "pop %%r15\n pop %%r14\n pop %%r13\n pop %%r12\n pop %%rbp\n pop %%rbx\n"
                     "lea 128(%%rsp), %%rsp\n"
                     : "+a"(frame)
                     :
                     : "memory", "cc", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                     "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                     "xmm12", "xmm13", "xmm14", "xmm15");
}

// The tile configuration of this thread; all zero after tiles are released.
inline void store_tile_config(uint8_t config[64]) {
    __asm__ volatile(".byte 0xc4, 0xe2, 0x79, 0x49, 0x00" : : "a"(config) : "memory"); // sttilecfg [rax]
}

template <typename Args>
void jit_call(const jit_kernel_t &kernel, const Args &args) {
    struct {
        uint8_t below[64];
        Args args;
        uint8_t above[64];
    } guarded;
    std::memset(&guarded, 0xa5, sizeof(guarded));
    guarded.args = args;
    const auto before = guarded;

    jit_call_frame_t frame = {};
    for (int i = 0; i < 6; i++) frame.before[i] = 0x1122334455667788u * uint64_t(i + 3);
    frame.code = kernel.code();
    frame.args = &guarded.args;
    jit_call_trampoline(&frame);

    static const char *const names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
    for (int i = 0; i < 6; i++)
        EXPECT_EQ(frame.before[i], frame.after[i]) << kernel.name() << " changes " << names[i];
    constexpr uint32_t control = 0xffc0; // all but the six sticky exception flags
    EXPECT_EQ(frame.mxcsr_before & control, frame.mxcsr_after & control) << kernel.name() << " changes MXCSR";
    EXPECT_EQ(frame.flags & 0x400, 0u) << kernel.name() << " leaves the direction flag set";
    EXPECT_EQ(std::memcmp(static_cast<const void *>(&before), static_cast<const void *>(&guarded),
                      sizeof(before)),
            0)
            << kernel.name() << " writes to its arguments";
    for (int i = 0; i < 16; i++)
        for (int b = 16; b < 32; b++)
            if (frame.ymm[i][b]) {
                ADD_FAILURE() << kernel.name() << " leaves the upper half of ymm" << i << " in use";
                break;
            }
    static const bool tiles = mayiuse(cpu_isa_t::avx512_core_amx);
    if (tiles) {
        uint8_t config[64] = {}, released[64] = {};
        store_tile_config(config);
        EXPECT_EQ(std::memcmp(config, released, 64), 0) << kernel.name() << " does not release its tiles";
    }
}

// Bytes between two pages that fault. The unused rest of the pages in between has a pattern that intact()
// checks.
class guarded_t {
public:
    enum place_t {
        at_end,   // the last byte is followed by a page that faults
        at_start, // the first byte is preceded by one
        at_16     // at an address that is a multiple of 16 and of nothing more
    };

    guarded_t(size_t bytes, place_t place) : bytes_(bytes), page_(size_t(sysconf(_SC_PAGESIZE))) {
        inner_ = (bytes + 16 + page_ - 1) / page_ * page_;
        map_ = static_cast<uint8_t *>(
                mmap(nullptr, inner_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (map_ == MAP_FAILED || mprotect(map_ + page_, inner_, PROT_READ | PROT_WRITE) != 0) std::abort();
        std::memset(map_ + page_, fill, inner_);
        data_ = map_ + page_ + (place == at_end ? inner_ - bytes : place == at_16 ? 16 : 0);
    }
    ~guarded_t() { munmap(map_, inner_ + 2 * page_); }
    guarded_t(const guarded_t &) = delete;
    guarded_t &operator=(const guarded_t &) = delete;

    size_t size() const { return bytes_; }
    template <typename T = uint8_t>
    T *data() const {
        return reinterpret_cast<T *>(data_);
    }

    // Whether the bytes around the data are as they were.
    bool intact() const {
        const uint8_t *first = map_ + page_, *last = first + inner_;
        for (const uint8_t *p = first; p < last; p++)
            if ((p < data_ || p >= data_ + bytes_) && *p != fill) return false;
        return true;
    }

private:
    static constexpr uint8_t fill = 0xc7;
    size_t bytes_, page_, inner_;
    uint8_t *map_, *data_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
