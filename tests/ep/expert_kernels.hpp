// SPDX-License-Identifier: Apache-2.0
// What a program with experts has beside the library: activations, and values for measurements. Rows are
// those between two entries of a vector on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ep_test {

// Rows from *begin up to *end.
struct row_range_t {
    const int32_t *begin, *end;
};

// bf16 values around zero, of about this size.
cudaError_t fill_values(cudaStream_t s, uint16_t *to, int64_t n, float size, uint32_t seed);
// MXFP8 rows as bf16. Columns are a multiple of 32.
cudaError_t dequantise_rows(cudaStream_t s, row_range_t rows, int64_t columns, const uint8_t *codes,
        const uint8_t *scales, uint16_t *to);
// a = silu(gate) * up, where a row of h is its gates and then its ups; and the gradient of h.
cudaError_t swiglu(cudaStream_t s, row_range_t rows, int64_t columns, const uint16_t *h, uint16_t *a);
cudaError_t swiglu_backward(cudaStream_t s, row_range_t rows, int64_t columns, const uint16_t *h,
        const uint16_t *da, uint16_t *dh);
// Adds to *sum what differs if any bit of the values does.
cudaError_t add_checksum(cudaStream_t s, const uint16_t *values, int64_t n, unsigned long long *sum);
// Adds the squares of x and of x - y to sums[0] and sums[1].
cudaError_t add_squares(cudaStream_t s, const uint16_t *x, const uint16_t *y, int64_t n, double *sums);

} // namespace ep_test
