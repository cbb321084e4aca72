// SPDX-License-Identifier: Apache-2.0
// wgmma with both operands in shared memory, whose rows are summed: 64 columns of A x 192 columns of B x 16
// rows, accumulated in f32. Operands lie in columns of 64 elements: rows of 128 bytes under the 128-byte
// swizzle, as in wgmma.cuh.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace wgmma {

// The lower half of the descriptor (PTX ISA, matrix descriptor) of an operand at a shared address that is a
// multiple of 1024: address / 16, and `column_bytes` / 16 from one column of 64 elements to the next. The
// upper half is constant: stride of eight rows / 16, and 128-byte swizzle.
__device__ __forceinline__ uint32_t rows_descriptor(uint32_t at, int column_bytes) {
    return (at >> 4 & 0x3FFF) | uint32_t(column_bytes >> 4) << 16;
}
// The number to add to it for 16 rows further.
constexpr uint32_t rows_step = 16 * 128 / 16;
constexpr int rows_n = 192; // columns of B

// Sums of bf16 or f16. `add`: adds to the sums; otherwise they begin here.
template <bool f16>
__device__ void mma_rows(float (&d)[rows_n / 2], uint32_t a, uint32_t b, bool add);

// clang-format off
#define MXDNN_MMA_ROWS(f16, type) \
    template <> \
    __device__ __forceinline__ void mma_rows<f16>(float (&d)[rows_n / 2], uint32_t a, uint32_t b, bool add) { \
        asm volatile("{.reg .pred p; .reg .b64 a, b; setp.ne.u32 p, %98, 0; " \
                     "mov.b64 a, {%96, 0x40000040}; mov.b64 b, {%97, 0x40000040}; " \
                     "wgmma.mma_async.sync.aligned.m64n192k16.f32." #type "." #type " {" \
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
                     "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
                     "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
                     "}, a, b, p, 1, 1, 1, 1;}" \
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), \
                  "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
                  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), \
                  "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
                  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), \
                  "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
                  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), \
                  "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
                  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), \
                  "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
                  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), \
                  "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
                  "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), \
                  "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), \
                  "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), \
                  "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]) \
                : "r"(a), "r"(b), "r"(int(add))); \
    }
MXDNN_MMA_ROWS(false, bf16)
MXDNN_MMA_ROWS(true, f16)
// clang-format on
#undef MXDNN_MMA_ROWS

} // namespace wgmma
} // namespace impl
} // namespace mxdnn
