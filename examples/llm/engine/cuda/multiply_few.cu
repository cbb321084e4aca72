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

constexpr int columns = 16, step = 64; // elements of a row that a warp multiplies at once: a line
constexpr int ahead = 3;               // steps of which a warp has the weights in registers
// Warps of a block: few, and several blocks on a multiprocessor, or as many as have all of a long row at once
// where there are not enough blocks.
constexpr int some_warps = 8, most_warps = 16, enough_blocks = 128;

template <int warps>
__global__ void __launch_bounds__(warps * 32, warps == some_warps ? 3 : 1)
        multiply_few_kernel(const few_t f) {
    __shared__ float parts[warps][columns][few_rows + 1];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, in = int(f.in);
    const int64_t first_column = int64_t(blockIdx.x) * columns, column = first_column + g;
    const bf16_t *const w_rows[2] = {static_cast<const bf16_t *>(f.w) + column * in,
            static_cast<const bf16_t *>(f.w) + (column + 8) * in};
    const bool is_there[2] = {column < f.out, column + 8 < f.out};
    const bf16_t *const x_row = static_cast<const bf16_t *>(f.x) + g * in;
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
                w[r][i] = is_there[r] && k < in ? __ldcs(reinterpret_cast<const uint4 *>(w_rows[r] + k))
                                                : uint4{0, 0, 0, 0};
            }
    };
    load(warp);
    begin_work();
    float c[4] = {};
    for (int first = warp; first * step < in; first += ahead * warps) {
        uint4 x[2 * ahead];
#pragma unroll
        for (int i = 0; i < 2 * ahead; i++) {
            const int k = element(first, i);
            x[i] = g < f.rows && k < in ? *reinterpret_cast<const uint4 *>(x_row + k) : uint4{0, 0, 0, 0};
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

void multiply_few(stream_t s, const few_t &f) {
    const unsigned blocks = unsigned((f.out + columns - 1) / columns);
    if (blocks < enough_blocks)
        launch(s, multiply_few_kernel<most_warps>, blocks, most_warps * 32, 0, f);
    else
        launch(s, multiply_few_kernel<some_warps>, blocks, some_warps * 32, 0, f);
}

} // namespace llm::cuda
