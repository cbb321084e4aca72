// SPDX-License-Identifier: Apache-2.0
// Rows of the operands of a gradient of weights as gemm kernels read them along the rows: a dword for each
// column has the f32 of one row, or the bf16 of two.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct word_rows_t {
    // words[i] for `n` columns that are contiguous. Without `second` it is the f32 of row `first`. With it,
    // the lower half is the bf16 of `first` and the upper half that of `second`; bf16 and f8 only. `scales`
    // [n] are those of the columns of f8, null for other types.
    void (*words)(data_type_t dt, const void *first, const void *second, const float *scales, uint32_t *words,
            int64_t n);
    // scales[i] = the value of e8m0 codes[i * stride]
    void (*scales)(const uint8_t *codes, int64_t stride, float *scales, int64_t n);
};

extern const word_rows_t word_rows_avx2;

} // namespace x64
} // namespace impl
} // namespace mxdnn
