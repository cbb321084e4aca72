// SPDX-License-Identifier: Apache-2.0
// y = x * w^T for up to 8 rows of bf16: bound by reading the weights.
//
// A block has 16 columns of y, and each of its warps some of the elements of a row. Weights are the 16 rows
// of the tensor cores' first operand, and rows of x are the 8 columns of the second. In which order elements
// are multiplied does not matter, as long as it is the same for both: a lane passes on the 8 elements of the
// 16 bytes that it loads as they are, and no operand needs shared memory.
//
// With an RMSNorm before it, each block computes the norm: it multiplies x * weight, in shared memory, and
// the sums by what the norm divides the row by.
#include "device.cuh"

namespace llm::cuda {

namespace {

constexpr int columns = 16, step = 64; // elements of a row that a warp multiplies at once: a line
constexpr int ahead = 3;               // steps of which a warp has the weights in registers
// Warps of a block: few, and several blocks on a multiprocessor, or as many as have all of a long row at once
// where there are not enough blocks.
constexpr int some_warps = 8, most_warps = 16, enough_blocks = 128;
constexpr int padding = 8; // elements between rows in shared memory, so that they begin in other banks
constexpr int64_t most_shared_bytes = 36 << 10;

// Writes bf16(x * weight) of the rows to shared memory, and their sums of squares, a part for each warp.
template <int warps>
__device__ void stage_rows(const few_t &f, bf16_t *to, float (*squares)[warps]) {
    constexpr int threads = warps * 32, at_once = 2;
    for (int row = 0; row < f.rows; row++) {
        const float *const x = f.norm.x + row * f.in;
        float sum = 0;
        for (int first = 4 * threadIdx.x; first < f.in; first += 4 * threads * at_once) {
            float4 v[at_once], w[at_once];
#pragma unroll
            for (int j = 0; j < at_once; j++) {
                const int i = first + 4 * threads * j;
                if (i >= f.in) continue;
                v[j] = *reinterpret_cast<const float4 *>(x + i);
                w[j] = *reinterpret_cast<const float4 *>(f.norm.weight + i);
            }
#pragma unroll
            for (int j = 0; j < at_once; j++) {
                const int i = first + 4 * threads * j;
                if (i >= f.in) continue;
                sum += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
                bf16_t *const at = to + row * (f.in + padding) + i;
                put_pair(at, v[j].x * w[j].x, v[j].y * w[j].y);
                put_pair(at + 2, v[j].z * w[j].z, v[j].w * w[j].w);
            }
        }
        sum = sum_of_warp(sum);
        if (threadIdx.x % 32 == 0) squares[row][threadIdx.x / 32] = sum;
    }
    __syncthreads();
}

template <int warps, bool has_norm>
__global__ void __launch_bounds__(warps * 32, warps == some_warps ? 3 : 1)
        multiply_few_kernel(const few_t f) {
    __shared__ float parts[warps][columns][few_rows + 1];
    __shared__ float squares[has_norm ? few_rows : 1][warps];
    extern __shared__ __align__(16) bf16_t staged[];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, in = int(f.in);
    const int64_t first_column = int64_t(blockIdx.x) * columns, column = first_column + g;
    const bf16_t *const w_rows[2] = {static_cast<const bf16_t *>(f.w) + column * in,
            static_cast<const bf16_t *>(f.w) + (column + 8) * in};
    const bool is_there[2] = {column < f.out, column + 8 < f.out};
    const bf16_t *const x_row =
            has_norm ? staged + g * (in + padding) : static_cast<const bf16_t *>(f.x) + g * in;
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
    const auto factor_of = [&](int row) {
        float sum = 0;
        for (int i = 0; i < warps; i++) sum += squares[row][i];
        return rsqrtf(sum / float(in) + f.norm.eps);
    };
    if constexpr (has_norm) {
        stage_rows<warps>(f, staged, squares);
        // Each block writes some of the rows after the norm.
        if (f.norm.y)
            for (int row = 0; row < f.rows; row++) {
                const float factor = factor_of(row);
                const int64_t of_row = int64_t(row) * in;
                for (int i = blockIdx.x * warps * 32 + threadIdx.x; i < in; i += gridDim.x * warps * 32)
                    put(static_cast<bf16_t *>(f.norm.y) + of_row + i,
                            f.norm.x[of_row + i] * factor * f.norm.weight[i]);
            }
    }
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
    float sum = 0;
    for (int i = 0; i < warps; i++) sum += parts[i][of][row];
    if (has_norm) sum *= factor_of(row);
    if (f.bias) sum += f.bias[first_column + of];
    float *to = f.y + row * f.y_stride + first_column + of;
    *to = f.adds ? *to + sum : sum;
}

} // namespace

bool can_norm_few(int64_t rows, int64_t in) {
    return rows <= 2 && in % 8 == 0 && rows * (in + padding) * int64_t(sizeof(bf16_t)) <= most_shared_bytes;
}

void multiply_few(stream_t s, const few_t &f) {
    const unsigned blocks = unsigned((f.out + columns - 1) / columns);
    const size_t staged = f.norm.x ? size_t(f.rows * (f.in + padding)) * sizeof(bf16_t) : 0;
    const auto with = [&](auto *kernel, int warps) { launch(s, kernel, blocks, warps * 32, staged, f); };
    if (blocks < enough_blocks)
        with(staged ? multiply_few_kernel<most_warps, true> : multiply_few_kernel<most_warps, false>,
                most_warps);
    else
        with(staged ? multiply_few_kernel<some_warps, true> : multiply_few_kernel<some_warps, false>,
                some_warps);
}

} // namespace llm::cuda
