// SPDX-License-Identifier: Apache-2.0
// wgmma with A in registers: 64 columns of the weights x N rows of the source x 32 bytes of K, which are 16
// of bf16 or 32 of FP8, accumulated in f32. B lies in shared memory, rows of 128 bytes under the 128-byte
// swizzle: of row r, 16-byte chunk c stands at chunk c ^ (r % 8), and eight rows are 1024 bytes.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace wgmma {

// The lower half of the descriptor of a K-major tile B at a shared address that is a multiple of 1024 (PTX
// ISA, matrix descriptor): address / 16. The upper half, MXDNN_B_UPPER, is constant: stride of eight rows /
// 16, and 128-byte swizzle in bits 62...
__device__ __forceinline__ uint32_t b_descriptor(uint32_t at) { return (at >> 4 & 0x3FFF) | 1u << 16; }
#define MXDNN_B_UPPER "0x40000040" // swizzle 1 << 30, 1024 / 16
// The number to add to the descriptor for 32 bytes further along K.
constexpr uint32_t b_step = 32 / 16;

// Called before the first wgmma that reads registers which ordinary instructions wrote.
__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `pending` of the committed groups are unfinished.
template <int pending>
__device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps the registers of an unfinished wgmma alive until here.
template <int steps>
__device__ __forceinline__ void keep(uint32_t (&a)[steps][4]) {
    for (int i = 0; i < steps; i++)
        asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
}

template <int rows>
__device__ void mma(float *d, const uint32_t (&a)[4], uint32_t b);
template <int rows>
__device__ void mma_f16(float *d, const uint32_t (&a)[4], uint32_t b);
// f8_e4m3 rows; weights of f8_e4m3, or of f8_e5m2, which has Inf. `add`: adds to the sums; otherwise they
// begin here.
template <int rows>
__device__ void mma_e4m3(float *d, const uint32_t (&a)[4], uint32_t b, bool add);
template <int rows>
__device__ void mma_e5m2(float *d, const uint32_t (&a)[4], uint32_t b, bool add);

// For every multiple of 16 rows: the names of the sums' operands and the operands themselves, each list
// continuing the one before.
// clang-format off
#define MXDNN_NAMES_8 "%0, %1, %2, %3"
#define MXDNN_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MXDNN_NAMES_24 MXDNN_NAMES_16 ", %8, %9, %10, %11"
#define MXDNN_NAMES_32 MXDNN_NAMES_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define MXDNN_NAMES_40 MXDNN_NAMES_32 ", %16, %17, %18, %19"
#define MXDNN_NAMES_48 MXDNN_NAMES_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define MXDNN_NAMES_56 MXDNN_NAMES_48 ", %24, %25, %26, %27"
#define MXDNN_NAMES_64 MXDNN_NAMES_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define MXDNN_NAMES_72 MXDNN_NAMES_64 ", %32, %33, %34, %35"
#define MXDNN_NAMES_80 MXDNN_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define MXDNN_NAMES_96 MXDNN_NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define MXDNN_NAMES_112 MXDNN_NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define MXDNN_NAMES_128 MXDNN_NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define MXDNN_NAMES_144 MXDNN_NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define MXDNN_NAMES_160 MXDNN_NAMES_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define MXDNN_NAMES_176 MXDNN_NAMES_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define MXDNN_NAMES_192 MXDNN_NAMES_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define MXDNN_NAMES_208 MXDNN_NAMES_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define MXDNN_NAMES_224 MXDNN_NAMES_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define MXDNN_NAMES_240 MXDNN_NAMES_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define MXDNN_NAMES_256 MXDNN_NAMES_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define MXDNN_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define MXDNN_8(i) MXDNN_4(i), MXDNN_4(i + 4)
#define MXDNN_SUMS_8 MXDNN_4(0)
#define MXDNN_SUMS_16 MXDNN_8(0)
#define MXDNN_SUMS_24 MXDNN_SUMS_16, MXDNN_4(8)
#define MXDNN_SUMS_32 MXDNN_SUMS_16, MXDNN_8(8)
#define MXDNN_SUMS_40 MXDNN_SUMS_32, MXDNN_4(16)
#define MXDNN_SUMS_48 MXDNN_SUMS_32, MXDNN_8(16)
#define MXDNN_SUMS_56 MXDNN_SUMS_48, MXDNN_4(24)
#define MXDNN_SUMS_64 MXDNN_SUMS_48, MXDNN_8(24)
#define MXDNN_SUMS_72 MXDNN_SUMS_64, MXDNN_4(32)
#define MXDNN_SUMS_80 MXDNN_SUMS_64, MXDNN_8(32)
#define MXDNN_SUMS_96 MXDNN_SUMS_80, MXDNN_8(40)
#define MXDNN_SUMS_112 MXDNN_SUMS_96, MXDNN_8(48)
#define MXDNN_SUMS_128 MXDNN_SUMS_112, MXDNN_8(56)
#define MXDNN_SUMS_144 MXDNN_SUMS_128, MXDNN_8(64)
#define MXDNN_SUMS_160 MXDNN_SUMS_144, MXDNN_8(72)
#define MXDNN_SUMS_176 MXDNN_SUMS_160, MXDNN_8(80)
#define MXDNN_SUMS_192 MXDNN_SUMS_176, MXDNN_8(88)
#define MXDNN_SUMS_208 MXDNN_SUMS_192, MXDNN_8(96)
#define MXDNN_SUMS_224 MXDNN_SUMS_208, MXDNN_8(104)
#define MXDNN_SUMS_240 MXDNN_SUMS_224, MXDNN_8(112)
#define MXDNN_SUMS_256 MXDNN_SUMS_240, MXDNN_8(120)

// a0...b: the numbers of the operands after the sums. The predicate says whether to add to the sums.
#define MXDNN_MMA_OF(name, type, rows, a0, a1, a2, a3, b_)                                                         \
    template <>                                                                                     \
    __device__ __forceinline__ void name<rows>(float *d, const uint32_t (&a)[4], uint32_t b) { \
        asm volatile("{.reg .pred p; .reg .b64 b; setp.eq.u32 p, 0, 0; mov.b64 b, {%" #b_ ", " MXDNN_B_UPPER "}; "                                       \
                     "wgmma.mma_async.sync.aligned.m64n" #rows "k16.f32." type "." type " {" MXDNN_NAMES_##rows \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, b, p, 1, 1, 0;}"           \
                : MXDNN_SUMS_##rows                                                                 \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));                              \
    }
#define MXDNN_MMA(rows, ...) MXDNN_MMA_OF(mma, "bf16", rows, __VA_ARGS__) MXDNN_MMA_OF(mma_f16, "f16", rows, __VA_ARGS__)
MXDNN_MMA(16, 8, 9, 10, 11, 12)
MXDNN_MMA(24, 12, 13, 14, 15, 16)
MXDNN_MMA(32, 16, 17, 18, 19, 20)
MXDNN_MMA(40, 20, 21, 22, 23, 24)
MXDNN_MMA(48, 24, 25, 26, 27, 28)
MXDNN_MMA(64, 32, 33, 34, 35, 36)
MXDNN_MMA(80, 40, 41, 42, 43, 44)
MXDNN_MMA(96, 48, 49, 50, 51, 52)
MXDNN_MMA(112, 56, 57, 58, 59, 60)
MXDNN_MMA(128, 64, 65, 66, 67, 68)
MXDNN_MMA(144, 72, 73, 74, 75, 76)
MXDNN_MMA(160, 80, 81, 82, 83, 84)
MXDNN_MMA(176, 88, 89, 90, 91, 92)
MXDNN_MMA(192, 96, 97, 98, 99, 100)
MXDNN_MMA(208, 104, 105, 106, 107, 108)
MXDNN_MMA(224, 112, 113, 114, 115, 116)
MXDNN_MMA(240, 120, 121, 122, 123, 124)
MXDNN_MMA(256, 128, 129, 130, 131, 132)
#define MXDNN_MMA_F8(name, rows, a0, a1, a2, a3, b_, add_)                                          \
    template <>                                                                                     \
    __device__ __forceinline__ void mma_##name<rows>(float *d, const uint32_t (&a)[4], uint32_t b, bool add) { \
        asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.u32 p, %" #add_ ", 0; mov.b64 b, {%" #b_ ", " MXDNN_B_UPPER "}; "                              \
                     "wgmma.mma_async.sync.aligned.m64n" #rows "k32.f32." #name ".e4m3 {" MXDNN_NAMES_##rows \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, b, p, 1, 1;}"              \
                : MXDNN_SUMS_##rows                                                                 \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(int(add)));               \
    }
#define MXDNN_MMA_F8S(rows, ...) MXDNN_MMA_F8(e4m3, rows, __VA_ARGS__) MXDNN_MMA_F8(e5m2, rows, __VA_ARGS__)
MXDNN_MMA_F8S(8, 4, 5, 6, 7, 8, 9)
MXDNN_MMA_F8S(16, 8, 9, 10, 11, 12, 13)
MXDNN_MMA_F8S(24, 12, 13, 14, 15, 16, 17)
MXDNN_MMA_F8S(32, 16, 17, 18, 19, 20, 21)
MXDNN_MMA_F8S(40, 20, 21, 22, 23, 24, 25)
MXDNN_MMA_F8S(48, 24, 25, 26, 27, 28, 29)
MXDNN_MMA_F8S(56, 28, 29, 30, 31, 32, 33)
MXDNN_MMA_F8S(64, 32, 33, 34, 35, 36, 37)
MXDNN_MMA_F8S(72, 36, 37, 38, 39, 40, 41)
MXDNN_MMA_F8S(80, 40, 41, 42, 43, 44, 45)
MXDNN_MMA_F8(e5m2, 96, 48, 49, 50, 51, 52, 53)
MXDNN_MMA_F8(e5m2, 112, 56, 57, 58, 59, 60, 61)
MXDNN_MMA_F8(e5m2, 128, 64, 65, 66, 67, 68, 69)
MXDNN_MMA_F8(e5m2, 144, 72, 73, 74, 75, 76, 77)
MXDNN_MMA_F8(e5m2, 160, 80, 81, 82, 83, 84, 85)
MXDNN_MMA_F8(e5m2, 176, 88, 89, 90, 91, 92, 93)
MXDNN_MMA_F8(e5m2, 192, 96, 97, 98, 99, 100, 101)
MXDNN_MMA_F8(e5m2, 208, 104, 105, 106, 107, 108, 109)
MXDNN_MMA_F8(e5m2, 224, 112, 113, 114, 115, 116, 117)
MXDNN_MMA_F8(e5m2, 240, 120, 121, 122, 123, 124, 125)
MXDNN_MMA_F8(e5m2, 256, 128, 129, 130, 131, 132, 133)
// clang-format on
#undef MXDNN_MMA
#undef MXDNN_MMA_OF
#undef MXDNN_MMA_F8
#undef MXDNN_MMA_F8S
#undef MXDNN_B_UPPER
#undef MXDNN_4
#undef MXDNN_8
#undef MXDNN_NAMES_8
#undef MXDNN_NAMES_16
#undef MXDNN_NAMES_24
#undef MXDNN_NAMES_32
#undef MXDNN_NAMES_40
#undef MXDNN_NAMES_48
#undef MXDNN_NAMES_56
#undef MXDNN_NAMES_64
#undef MXDNN_NAMES_72
#undef MXDNN_NAMES_80
#undef MXDNN_NAMES_96
#undef MXDNN_NAMES_112
#undef MXDNN_NAMES_128
#undef MXDNN_NAMES_144
#undef MXDNN_NAMES_160
#undef MXDNN_NAMES_176
#undef MXDNN_NAMES_192
#undef MXDNN_NAMES_208
#undef MXDNN_NAMES_224
#undef MXDNN_NAMES_240
#undef MXDNN_NAMES_256
#undef MXDNN_SUMS_8
#undef MXDNN_SUMS_16
#undef MXDNN_SUMS_24
#undef MXDNN_SUMS_32
#undef MXDNN_SUMS_40
#undef MXDNN_SUMS_48
#undef MXDNN_SUMS_56
#undef MXDNN_SUMS_64
#undef MXDNN_SUMS_72
#undef MXDNN_SUMS_80
#undef MXDNN_SUMS_96
#undef MXDNN_SUMS_112
#undef MXDNN_SUMS_128
#undef MXDNN_SUMS_144
#undef MXDNN_SUMS_160
#undef MXDNN_SUMS_176
#undef MXDNN_SUMS_192
#undef MXDNN_SUMS_208
#undef MXDNN_SUMS_224
#undef MXDNN_SUMS_240
#undef MXDNN_SUMS_256

} // namespace wgmma
} // namespace impl
} // namespace mxdnn
