// SPDX-License-Identifier: Apache-2.0
// wgmma for bf16 with A in registers: 64 columns of the weights x N rows of the source x 16 of K,
// accumulated in f32. B lies in shared memory, rows of 64 bf16 (128 bytes) under the 128-byte
// swizzle: of row r, 16-byte chunk c stands at chunk c ^ (r % 8), and eight rows are 1024 bytes.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace wgmma {

// Descriptor of a K-major B tile at a shared address that is a multiple of 1024 (PTX ISA, matrix
// descriptor): address / 16, stride of eight rows / 16 in bits 32.., 128-byte swizzle in bits 62...
__device__ __forceinline__ uint64_t b_descriptor(uint32_t at) {
    constexpr uint64_t eight_rows = 1024 / 16, swizzle_128 = 1;
    return uint64_t(at >> 4 & 0x3FFF) | uint64_t(1) << 16 | eight_rows << 32 | swizzle_128 << 62;
}
// What 16 of K further on adds to the descriptor.
constexpr uint64_t b_step = 16 * 2 / 16;

// Before the first wgmma that reads registers which ordinary instructions wrote.
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `pending` of the committed groups are unfinished.
template <int pending>
__device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps registers that a wgmma in flight reads alive until here.
template <int steps>
__device__ __forceinline__ void keep(uint32_t (&a)[steps][4]) {
    for (int i = 0; i < steps; i++)
        asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}

template <int rows>
__device__ void mma(float (&d)[rows / 2], const uint32_t (&a)[4], uint64_t b);

// Operand lists: %0..%7, %8..%15, ...
#define MXDNN_D0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MXDNN_D1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define MXDNN_D2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define MXDNN_D3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define MXDNN_D4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define MXDNN_D5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define MXDNN_D6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define MXDNN_D7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define MXDNN_D8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define MXDNN_D9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define MXDNN_D10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define MXDNN_D11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define MXDNN_D12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define MXDNN_D13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define MXDNN_D14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define MXDNN_D15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define MXDNN_F8(i)                                                                                          \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),              \
            "+f"(d[i + 6]), "+f"(d[i + 7])

// The predicate says that d is added to.
#define MXDNN_BEGIN "{.reg .pred p; setp.eq.u32 p, 0, 0; "

// clang-format off
template <>
__device__ __forceinline__ void mma<16>(float (&d)[8], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
            MXDNN_D0
            "}, {%8, %9, %10, %11}, %12, p, 1, 1, 0;}"
            : MXDNN_F8(0)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<32>(float (&d)[16], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1
            "}, {%16, %17, %18, %19}, %20, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<48>(float (&d)[24], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n48k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2
            "}, {%24, %25, %26, %27}, %28, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<64>(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3
            "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<80>(float (&d)[40], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3 ", "
            MXDNN_D4
            "}, {%40, %41, %42, %43}, %44, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24), MXDNN_F8(32)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<96>(float (&d)[48], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3 ", "
            MXDNN_D4 ", " MXDNN_D5
            "}, {%48, %49, %50, %51}, %52, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24), MXDNN_F8(32), MXDNN_F8(40)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<112>(float (&d)[56], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n112k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3 ", "
            MXDNN_D4 ", " MXDNN_D5 ", " MXDNN_D6
            "}, {%56, %57, %58, %59}, %60, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24), MXDNN_F8(32), MXDNN_F8(40), MXDNN_F8(48)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<128>(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3 ", "
            MXDNN_D4 ", " MXDNN_D5 ", " MXDNN_D6 ", " MXDNN_D7
            "}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24), MXDNN_F8(32), MXDNN_F8(40), MXDNN_F8(48), MXDNN_F8(56)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <>
__device__ __forceinline__ void mma<144>(float (&d)[72], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(MXDNN_BEGIN "wgmma.mma_async.sync.aligned.m64n144k16.f32.bf16.bf16 {"
            MXDNN_D0 ", " MXDNN_D1 ", " MXDNN_D2 ", " MXDNN_D3 ", "
            MXDNN_D4 ", " MXDNN_D5 ", " MXDNN_D6 ", " MXDNN_D7 ", "
            MXDNN_D8
            "}, {%72, %73, %74, %75}, %76, p, 1, 1, 0;}"
            : MXDNN_F8(0), MXDNN_F8(8), MXDNN_F8(16), MXDNN_F8(24), MXDNN_F8(32), MXDNN_F8(40), MXDNN_F8(48), MXDNN_F8(56), MXDNN_F8(64)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
// clang-format on
#undef MXDNN_D0
#undef MXDNN_D1
#undef MXDNN_D2
#undef MXDNN_D3
#undef MXDNN_D4
#undef MXDNN_D5
#undef MXDNN_D6
#undef MXDNN_D7
#undef MXDNN_D8
#undef MXDNN_D9
#undef MXDNN_D10
#undef MXDNN_D11
#undef MXDNN_D12
#undef MXDNN_D13
#undef MXDNN_D14
#undef MXDNN_D15
#undef MXDNN_F8
#undef MXDNN_BEGIN

} // namespace wgmma
} // namespace impl
} // namespace mxdnn
