// SPDX-License-Identifier: Apache-2.0
#include "ep/expert_kernels.hpp"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace ep_test {

namespace {

constexpr int threads = 256, blocks = 132 * 8, each = 8; // neighbours that a thread takes at a time

union piece_t {
    uint4 all;
    __nv_bfloat16 of[each];
};

__device__ int64_t first_piece() { return int64_t(blockIdx.x) * threads + threadIdx.x; }
__device__ int64_t pieces_apart() { return int64_t(gridDim.x) * threads; }

// fn(row, first column) for each piece of the rows.
template <typename fn_t>
__device__ void for_pieces(row_range_t rows, int64_t columns, fn_t &&fn) {
    const int64_t begin = *rows.begin, all = (*rows.end - begin) * (columns / each);
    for (int64_t i = first_piece(); i < all; i += pieces_apart())
        fn(begin + i / (columns / each), i % (columns / each) * each);
}

__device__ uint32_t mixed(uint64_t x) {
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
    return uint32_t(x >> 32);
}

__global__ void fill_kernel(uint16_t *to, int64_t n, float size, uint32_t seed) {
    for (int64_t i = first_piece(); i < n; i += pieces_apart()) {
        // A sum of bytes is nearly normal: of four, with a deviation of 147.8.
        const uint32_t r = mixed(uint64_t(seed) << 40 ^ uint64_t(i));
        const float sum =
                float(r & 255) + float(r >> 8 & 255) + float(r >> 16 & 255) + float(r >> 24) - 510.f;
        const __nv_bfloat16 v = __float2bfloat16(sum * (size / 147.8f));
        to[i] = __bfloat16_as_ushort(v);
    }
}

__global__ void dequantise_kernel(
        row_range_t rows, int64_t columns, const uint8_t *codes, const uint8_t *scales, uint16_t *to) {
    for_pieces(rows, columns, [&](int64_t row, int64_t column) {
        const uint2 v = *reinterpret_cast<const uint2 *>(codes + row * columns + column);
        const uint32_t e = scales[row * (columns / 32) + column / 32];
        const float scale = e == 0 ? 0x1p-127f : __uint_as_float(e << 23); // not NaN here
        piece_t out;
        for (int i = 0; i < each; i++) {
            __nv_fp8_e4m3 x;
            x.__x = uint8_t((i < 4 ? v.x : v.y) >> (i % 4 * 8));
            out.of[i] = __float2bfloat16(float(x) * scale);
        }
        *reinterpret_cast<uint4 *>(to + row * columns + column) = out.all;
    });
}

__global__ void swiglu_kernel(row_range_t rows, int64_t columns, const uint16_t *h, uint16_t *a) {
    for_pieces(rows, columns, [&](int64_t row, int64_t column) {
        piece_t gate, up, out;
        gate.all = *reinterpret_cast<const uint4 *>(h + row * 2 * columns + column);
        up.all = *reinterpret_cast<const uint4 *>(h + row * 2 * columns + columns + column);
        for (int i = 0; i < each; i++) {
            const float g = __bfloat162float(gate.of[i]), u = __bfloat162float(up.of[i]);
            out.of[i] = __float2bfloat16(g / (1.f + __expf(-g)) * u);
        }
        *reinterpret_cast<uint4 *>(a + row * columns + column) = out.all;
    });
}

__global__ void swiglu_backward_kernel(
        row_range_t rows, int64_t columns, const uint16_t *h, const uint16_t *da, uint16_t *dh) {
    for_pieces(rows, columns, [&](int64_t row, int64_t column) {
        piece_t gate, up, d, dgate, dup;
        const int64_t at = row * 2 * columns + column;
        gate.all = *reinterpret_cast<const uint4 *>(h + at);
        up.all = *reinterpret_cast<const uint4 *>(h + at + columns);
        d.all = *reinterpret_cast<const uint4 *>(da + row * columns + column);
        for (int i = 0; i < each; i++) {
            const float g = __bfloat162float(gate.of[i]), u = __bfloat162float(up.of[i]),
                        x = __bfloat162float(d.of[i]), s = 1.f / (1.f + __expf(-g));
            dgate.of[i] = __float2bfloat16(x * u * s * (1.f + g * (1.f - s)));
            dup.of[i] = __float2bfloat16(x * g * s);
        }
        *reinterpret_cast<uint4 *>(dh + at) = dgate.all;
        *reinterpret_cast<uint4 *>(dh + at + columns) = dup.all;
    });
}

__global__ void checksum_kernel(const uint16_t *values, int64_t n, unsigned long long *sum) {
    unsigned long long mine = 0;
    for (int64_t i = first_piece(); i < n; i += pieces_apart()) mine += mixed(uint64_t(i) << 16 | values[i]);
    atomicAdd(sum, mine);
}

__global__ void squares_kernel(const uint16_t *x, const uint16_t *y, int64_t n, double *sums) {
    double signal = 0, noise = 0;
    for (int64_t i = first_piece(); i < n; i += pieces_apart()) {
        const float a = __uint_as_float(uint32_t(x[i]) << 16), b = __uint_as_float(uint32_t(y[i]) << 16);
        signal += double(a) * a;
        noise += double(a - b) * (a - b);
    }
    atomicAdd(sums, signal);
    atomicAdd(sums + 1, noise);
}

} // namespace

cudaError_t fill_values(cudaStream_t s, uint16_t *to, int64_t n, float size, uint32_t seed) {
    fill_kernel<<<blocks, threads, 0, s>>>(to, n, size, seed);
    return cudaGetLastError();
}
cudaError_t dequantise_rows(cudaStream_t s, row_range_t rows, int64_t columns, const uint8_t *codes,
        const uint8_t *scales, uint16_t *to) {
    dequantise_kernel<<<blocks, threads, 0, s>>>(rows, columns, codes, scales, to);
    return cudaGetLastError();
}
cudaError_t swiglu(cudaStream_t s, row_range_t rows, int64_t columns, const uint16_t *h, uint16_t *a) {
    swiglu_kernel<<<blocks, threads, 0, s>>>(rows, columns, h, a);
    return cudaGetLastError();
}
cudaError_t swiglu_backward(cudaStream_t s, row_range_t rows, int64_t columns, const uint16_t *h,
        const uint16_t *da, uint16_t *dh) {
    swiglu_backward_kernel<<<blocks, threads, 0, s>>>(rows, columns, h, da, dh);
    return cudaGetLastError();
}
cudaError_t add_checksum(cudaStream_t s, const uint16_t *values, int64_t n, unsigned long long *sum) {
    checksum_kernel<<<blocks, threads, 0, s>>>(values, n, sum);
    return cudaGetLastError();
}
cudaError_t add_squares(cudaStream_t s, const uint16_t *x, const uint16_t *y, int64_t n, double *sums) {
    squares_kernel<<<blocks, threads, 0, s>>>(x, y, n, sums);
    return cudaGetLastError();
}

} // namespace ep_test
