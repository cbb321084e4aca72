// SPDX-License-Identifier: Apache-2.0
// 8 x 8 matrices of 16-bit elements from shared memory, transposed on their way.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// Four matrices. Lane l gives the address of row l % 8 of matrix l / 8. It gets two neighbours of column l /
// 4 of each matrix: those of rows l % 4 * 2 and the next.
__device__ __forceinline__ void load_matrix_4_transposed(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
