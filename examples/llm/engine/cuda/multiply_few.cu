// SPDX-License-Identifier: Apache-2.0
// y = x * w^T for 8 rows of bf16 at a time, or for what RMSNorm makes of rows of f32: bound by reading the
// weights.
//
// A block has 16 columns of up to 8 rows of y, and each of its warps some of the elements of a row. Weights
// are the 16 rows of the tensor cores' first operand, and rows of x are the 8 columns of the second. In which
// order elements are multiplied does not matter, as long as it is the same for both: a lane passes on the 8
// elements of the 16 bytes that it loads as they are, and no operand needs shared memory. With a norm, every
// block makes all rows of it, in shared memory, but for the factor of a row, by which the sums are
// multiplied.
#include "device.cuh"
#include "multiply_hopper.hpp"

namespace llm::cuda {

namespace {

constexpr int columns = 16, step = 64; // elements of a row that a warp multiplies at once: a line
constexpr int ahead = 3;               // steps of which a warp has the weights in registers
// Warps of a block: few, and several blocks on a multiprocessor, or as many as have all of a long row at once
// where there are not enough blocks.
constexpr int some_warps = 8, most_warps = 16, enough_blocks = 128;

unsigned blocks_for(int64_t out, int64_t each = columns) { return unsigned((out + each - 1) / each); }

constexpr int64_t most_normed = 3072; // elements of a row
constexpr int row_padding = 32;       // elements, so that two rows of shared memory lie in different banks
// Vectors of four elements of a row that a thread normalises.
constexpr int norm_vectors = int(most_normed / 4 + most_warps * 32 - 1) / (most_warps * 32);

template <int warps, bool has_norm>
__global__ void __launch_bounds__(warps * 32, warps == some_warps ? 3 : 1) multiply_few_kernel(few_t f) {
    // Of few columns; all others have one block of rows.
    const int64_t first_row = warps == most_warps ? int64_t(blockIdx.y) * few_rows : 0;
    f.x = static_cast<const bf16_t *>(f.x) + first_row * f.in;
    f.y += first_row * f.y_stride;
    f.rows = min(few_rows, f.rows - first_row);
    __shared__ float parts[warps][columns][few_rows + 1], squares[few_rows][warps];
    extern __shared__ __align__(16) bf16_t normed[]; // [rows][in + row_padding]
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, in = int(f.in);
    const int64_t first_column = int64_t(blockIdx.x) * columns, column = first_column + g;
    const bf16_t *const w_rows[2] = {static_cast<const bf16_t *>(f.w) + column * in,
            static_cast<const bf16_t *>(f.w) + (column + 8) * in};
    const bool is_there[2] = {column < f.out, column + 8 < f.out};
    const bf16_t *const x_row =
            has_norm ? normed + g * (in + row_padding) : static_cast<const bf16_t *>(f.x) + g * in;
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
    float4 norm_weights[norm_vectors];
    const auto vector_at = [&](int j) { return int(4 * (threadIdx.x + j * warps * 32)); };
    if (has_norm)
        for (int j = 0; j < norm_vectors; j++)
            norm_weights[j] = vector_at(j) < in
                                      ? *reinterpret_cast<const float4 *>(f.norm.weight + vector_at(j))
                                      : make_float4(0, 0, 0, 0);
    begin_work();
    if (has_norm) {
        for (int row = 0; row < f.rows; row++) {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < norm_vectors; j++) {
                const int i = vector_at(j);
                if (i >= in) break;
                const float4 v = *reinterpret_cast<const float4 *>(f.norm.x + row * in + i),
                             by = norm_weights[j];
                sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
                bf16_t *to = normed + row * (in + row_padding) + i;
                *reinterpret_cast<uint2 *>(to) =
                        make_uint2(pair_of(v.x * by.x, v.y * by.y), pair_of(v.z * by.z, v.w * by.w));
            }
            sum = sum_of_warp(sum);
            if (threadIdx.x % 32 == 0) squares[row][warp] = sum;
        }
        __syncthreads();
    }
    const auto factor_of = [&](int row) {
        float sum = 0;
        for (int i = 0; i < warps; i++) sum += squares[row][i];
        return rsqrtf(sum / float(in) + f.norm.eps);
    };

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
    if (row < f.rows && first_column + of < f.out) {
        float sum = 0;
        for (int i = 0; i < warps; i++) sum += parts[i][of][row];
        if (has_norm) sum *= factor_of(row);
        if (f.bias) sum += f.bias[first_column + of];
        float *to = f.y + row * f.y_stride + first_column + of;
        *to = f.adds ? *to + sum : sum;
    }
    // The blocks share in writing all rows of the norm.
    const int all = has_norm && f.norm.h ? int(f.rows) : 0;
    for (int r = 0; r < all; r++) {
        const float factor = factor_of(r);
        for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < in; i += int(gridDim.x * blockDim.x))
            put(static_cast<bf16_t *>(f.norm.h) + r * in + i,
                    f.norm.x[r * in + i] * factor * f.norm.weight[i]);
    }
}

} // namespace

bool can_multiply_few(int64_t rows, int64_t in, int64_t out) {
    return in % 8 == 0 && (rows <= few_rows || (rows <= some_rows && out <= few_columns));
}

bool can_norm_few(int64_t rows, int64_t in, int64_t out) {
    return rows <= 2 && in <= most_normed && blocks_for(out) < enough_blocks;
}

void multiply_few(stream_t s, const few_t &f) {
#ifdef LLM_HOPPER
    if (can_multiply_on_hopper(f)) return multiply_on_hopper(s, f);
#endif
    const dim3 blocks(blocks_for(f.out), blocks_for(f.rows, few_rows));
    if (f.norm.x) {
        const auto kernel = multiply_few_kernel<most_warps, true>;
        const size_t size = size_t(f.rows * (f.in + row_padding)) * sizeof(bf16_t);
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(size)),
                "use shared memory");
        launch(s, kernel, blocks, most_warps * 32, size, f);
    } else if (blocks.x < enough_blocks) {
        launch(s, multiply_few_kernel<most_warps, false>, blocks, most_warps * 32, 0, f);
    } else {
        launch(s, multiply_few_kernel<some_warps, false>, blocks, some_warps * 32, 0, f);
    }
}

} // namespace llm::cuda
