// SPDX-License-Identifier: Apache-2.0
// y = x * w^T for up to 8 rows of bf16: bound by reading the weights.
//
// A block has 16 columns of y, and each of its warps some of the elements of a row. Weights are the 16 rows
// of the tensor cores' first operand, and rows of x are the 8 columns of the second. In which order elements
// are multiplied does not matter, as long as it is the same for both: a lane passes on the 8 elements of the
// 16 bytes that it loads as they are, and no operand needs shared memory.
#include "device.cuh"

namespace llm::cuda {

namespace {

constexpr int warps = 8, columns = 16, step = 64; // elements of a row that a warp multiplies at once: a line
constexpr int ahead = 3;                          // steps of which a warp has the weights in registers

struct few_t {
    int rows, in;
    int64_t out, y_stride;
    bool adds;
    const bf16_t *x, *w;
    const float *bias;
    float *y;
};

__global__ void __launch_bounds__(warps * 32) multiply_few_kernel(const few_t f) {
    __shared__ float parts[warps][columns][few_rows + 1];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int64_t first_column = int64_t(blockIdx.x) * columns, column = first_column + g;
    const bf16_t *const w_rows[2] = {f.w + column * f.in, f.w + (column + 8) * f.in};
    const bool is_there[2] = {column < f.out, column + 8 < f.out};
    const bf16_t *const x_row = f.x + g * f.in;
    // The first element of part i of a warp's steps from `first` on.
    const auto element = [&](int first, int i) {
        return (first + i / 2 * warps) * step + i % 2 * (step / 2) + 8 * t;
    };

    uint4 w[2][2 * ahead];
    const auto load = [&](int first) {
#pragma unroll
        for (int i = 0; i < 2 * ahead; i++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int k = element(first, i);
                w[r][i] = is_there[r] && k < f.in ? __ldcs(reinterpret_cast<const uint4 *>(w_rows[r] + k))
                                                  : uint4{0, 0, 0, 0};
            }
    };
    load(warp);
    float c[4] = {};
    for (int first = warp; first * step < f.in; first += ahead * warps) {
        uint4 x[2 * ahead];
#pragma unroll
        for (int i = 0; i < 2 * ahead; i++) {
            const int k = element(first, i);
            x[i] = g < f.rows && k < f.in ? *reinterpret_cast<const uint4 *>(x_row + k) : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (int i = 0; i < 2 * ahead; i++) {
            multiply(c, w[0][i].x, w[1][i].x, w[0][i].y, w[1][i].y, x[i].x, x[i].y);
            multiply(c, w[0][i].z, w[1][i].z, w[0][i].w, w[1][i].w, x[i].z, x[i].w);
        }
        load(first + ahead * warps);
    }

    for (int i = 0; i < 4; i++) parts[warp][g + i / 2 * 8][2 * t + i % 2] = c[i];
    __syncthreads();
    const int row = threadIdx.x / columns, of = threadIdx.x % columns;
    if (row >= f.rows || first_column + of >= f.out) return;
    float sum = f.bias ? f.bias[first_column + of] : 0.f;
    for (int i = 0; i < warps; i++) sum += parts[i][of][row];
    float *to = f.y + row * f.y_stride + first_column + of;
    *to = f.adds ? *to + sum : sum;
}

} // namespace

void multiply_few(stream_t s, int64_t rows, int64_t in, int64_t out, const void *x, const void *w,
        const float *bias, bool adds, int64_t y_stride, float *y) {
    const few_t f = {int(rows), int(in), out, y_stride, adds, static_cast<const bf16_t *>(x),
            static_cast<const bf16_t *>(w), bias, y};
    launch(s, multiply_few_kernel, unsigned((out + columns - 1) / columns), warps * 32, 0, f);
}

} // namespace llm::cuda
