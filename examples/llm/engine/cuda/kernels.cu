// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <cfloat>

#include <cuda_bf16.h>

namespace llm::cuda {

namespace {

using bf16_t = __nv_bfloat16;

template <typename T>
__device__ float as_float(T v);
template <>
__device__ float as_float(float v) {
    return v;
}
template <>
__device__ float as_float(bf16_t v) {
    return __bfloat162float(v);
}
template <typename T>
__device__ T from_float(float v);
template <>
__device__ float from_float(float v) {
    return v;
}
template <>
__device__ bf16_t from_float(float v) {
    return __float2bfloat16(v);
}

__device__ float sum_of_warp(float v) {
    for (int i = 16; i > 0; i /= 2) v += __shfl_xor_sync(~0u, v, i);
    return v;
}

// Calls f with a null pointer of the type.
template <typename F>
void with_type(type_t type, F &&f) {
    if (type == type_t::f32)
        f(static_cast<float *>(nullptr));
    else
        f(static_cast<bf16_t *>(nullptr));
}
template <typename T>
using value_of = std::remove_pointer_t<T>;

unsigned blocks_for(int64_t n, int64_t threads) { return unsigned((n + threads - 1) / threads); }

template <typename T>
__global__ void look_up_kernel(int64_t n, const int32_t *tokens, const T *table, float *x) {
    const T *from = table + int64_t(tokens[blockIdx.x]) * n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) x[blockIdx.x * n + i] = as_float(from[i]);
}

template <typename T>
__global__ void rms_norm_kernel(int64_t n, const float *x, const float *weight, float eps, T *y) {
    __shared__ float parts[32];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float squares = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) squares += x[i] * x[i];
    squares = sum_of_warp(squares);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++) sum += parts[i];
    const float factor = rsqrtf(sum / float(n) + eps);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = from_float<T>(x[i] * factor * weight[i]);
}

__global__ void take_rows_kernel(int64_t n, const float *x, const int32_t *index, float *y) {
    const float *from = x + int64_t(index[blockIdx.x]) * n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = from[i];
}

__global__ void largest_kernel(int64_t n, const float *x, int32_t *index) {
    __shared__ float values[32];
    __shared__ int32_t places[32];
    x += blockIdx.x * n;
    float best = -FLT_MAX;
    int32_t at = 0;
    bool is_finite = true;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        is_finite &= isfinite(x[i]) != 0;
        if (x[i] > best) best = x[i], at = int32_t(i);
    }
    // Of equal ones the first.
    const auto take = [&](float other, int32_t place) {
        if (other > best || (other == best && place < at)) best = other, at = place;
    };
    for (int i = 16; i > 0; i /= 2) {
        const float other = __shfl_xor_sync(~0u, best, i);
        const int32_t place = __shfl_xor_sync(~0u, at, i);
        take(other, place);
    }
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best, places[threadIdx.x / 32] = at;
    const bool are_finite = __syncthreads_and(is_finite);
    if (threadIdx.x) return;
    for (unsigned i = 1; i < blockDim.x / 32; i++) take(values[i], places[i]);
    index[blockIdx.x] = are_finite ? at : -1;
}

__global__ void increment_kernel(int64_t n, int32_t *values) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) values[i]++;
}

__device__ float silu(float v) { return v / (1.f + expf(-v)); }

template <typename T>
__global__ void finish_kernel(finish_t f, const float *x, const T *factor, T *y) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= f.rows * f.columns) return;
    const int64_t row = i / f.columns, c = i % f.columns, to = row * f.y_stride + c;
    float v = x[row * f.x_columns + c] + (f.bias ? f.bias[c] : 0.f);
    switch (f.then) {
    case then_t::store: break;
    case then_t::add: v += as_float(y[to]); break;
    case then_t::silu: v = silu(v); break;
    case then_t::multiply: v *= as_float(factor[to]); break;
    case then_t::gated_silu:
        v = silu(v) * (x[row * f.x_columns + f.columns + c] + (f.bias ? f.bias[f.columns + c] : 0.f));
        break;
    }
    y[to] = from_float<T>(v);
}

// Eight bf16 as floats.
__device__ void unpack(const uint4 &v, float *to) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < 4; i++) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

// A warp for each column. Rows of x are in shared memory; `in` is a multiple of 8.
template <int rows>
__global__ void multiply_few_kernel(int64_t in, int64_t out, const bf16_t *x, const bf16_t *w,
        const float *bias, bool adds, int64_t y_stride, float *y, int64_t count) {
    extern __shared__ uint4 room[];
    const int64_t vectors = in / 8;
    for (int64_t i = threadIdx.x; i < count * vectors; i += blockDim.x)
        room[i] = reinterpret_cast<const uint4 *>(x)[i];
    __syncthreads();
    const int64_t column = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (column >= out) return;
    const uint4 *weights = reinterpret_cast<const uint4 *>(w + column * in);
    float sum[rows] = {};
#pragma unroll 4
    for (int64_t i = threadIdx.x % 32; i < vectors; i += 32) {
        float a[8], b[8];
        unpack(__ldcs(weights + i), a);
        for (int r = 0; r < rows; r++) {
            if (r >= count) break;
            unpack(room[r * vectors + i], b);
            for (int k = 0; k < 8; k++) sum[r] += a[k] * b[k];
        }
    }
    for (int r = 0; r < rows; r++) {
        const float s = sum_of_warp(sum[r]);
        if (threadIdx.x % 32 || r >= count) continue;
        float *to = y + r * y_stride + column;
        *to = s + (bias ? bias[column] : 0.f) + (adds ? *to : 0.f);
    }
}

template <typename T, typename W>
__device__ float dot(int64_t n, const T *x, const W *w) {
    float sum = 0;
    for (int64_t i = threadIdx.x % 32; i < n; i += 32) sum += as_float(x[i]) * as_float(w[i]);
    return sum_of_warp(sum);
}

__device__ int64_t expert_of(const experts_t &e, int64_t row) {
    int64_t expert = 0;
    while (expert < e.experts - 1 && e.ends[expert] <= row) expert++;
    return expert;
}

template <typename T, typename W>
__global__ void gate_up_kernel(experts_t e, const T *h, const W *weights, T *hidden) {
    const int64_t row = blockIdx.y, c = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int64_t H = e.hidden, I = e.intermediate;
    if (c >= I) return;
    const int64_t expert = expert_of(e, row), token = e.token_of_row[row];
    const int64_t g = e.is_interleaved ? 2 * c : c, u = e.is_interleaved ? 2 * c + 1 : I + c;
    const W *w = weights + expert * 2 * I * H;
    float gate = dot(H, h + token * H, w + g * H) + e.gate_up_bias[expert * 2 * I + g];
    float up = dot(H, h + token * H, w + u * H) + e.gate_up_bias[expert * 2 * I + u];
    gate = fminf(gate, e.limit);
    up = fmaxf(fminf(up, e.limit), -e.limit);
    if (threadIdx.x % 32 == 0)
        hidden[row * I + c] = from_float<T>(gate / (1.f + expf(-e.alpha * gate)) * (up + 1.f));
}

template <typename T, typename W>
__global__ void down_kernel(experts_t e, const T *hidden, const W *weights, float *y) {
    const int64_t row = blockIdx.y, c = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int64_t H = e.hidden, I = e.intermediate;
    if (c >= H) return;
    const int64_t expert = expert_of(e, row);
    const float sum = dot(I, hidden + row * I, weights + (expert * H + c) * I) + e.down_bias[expert * H + c];
    if (threadIdx.x % 32 == 0)
        atomicAdd(y + int64_t(e.token_of_row[row]) * H + c, sum * e.weight_of_row[row]);
}

__global__ void read_all_kernel(const uint4 *bytes, int64_t count, float *sum) {
    uint32_t all = 0;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
            i += int64_t(gridDim.x) * blockDim.x) {
        const uint4 v = __ldcs(bytes + i);
        all |= v.x | v.y | v.z | v.w;
    }
    if (all == 1) *sum = 1; // never, but nobody knows
}

constexpr unsigned threads = 256, warps = threads / 32;

} // namespace

void look_up(stream_t s, int64_t rows, int64_t n, const int32_t *tokens, type_t type, const void *table,
        float *x) {
    with_type(type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        look_up_kernel<<<unsigned(rows), threads, 0, s>>>(n, tokens, static_cast<const T *>(table), x);
    });
}

void rms_norm(stream_t s, int64_t rows, int64_t n, const float *x, const float *weight, float eps,
        type_t type, void *y) {
    with_type(type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        rms_norm_kernel<<<unsigned(rows), threads, 0, s>>>(n, x, weight, eps, static_cast<T *>(y));
    });
}

void take_rows(stream_t s, int64_t rows, int64_t n, const float *x, const int32_t *index, float *y) {
    take_rows_kernel<<<unsigned(rows), threads, 0, s>>>(n, x, index, y);
}

void largest(stream_t s, int64_t rows, int64_t n, const float *x, int32_t *index) {
    largest_kernel<<<unsigned(rows), 1024, 0, s>>>(n, x, index);
}

void increment(stream_t s, int64_t n, int32_t *values) {
    increment_kernel<<<blocks_for(n, threads), threads, 0, s>>>(n, values);
}

void finish(stream_t s, const finish_t &f, const float *x, const void *factor, void *y) {
    with_type(f.type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        finish_kernel<<<blocks_for(f.rows * f.columns, threads), threads, 0, s>>>(
                f, x, static_cast<const T *>(factor), static_cast<T *>(y));
    });
}

void multiply_few(stream_t s, int64_t rows, int64_t in, int64_t out, const void *x, const void *w,
        const float *bias, bool adds, int64_t y_stride, float *y) {
    const auto launch = [&](auto *kernel) {
        const size_t room = size_t(rows * in) * sizeof(bf16_t);
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(room));
        kernel<<<blocks_for(out, warps), threads, room, s>>>(in, out, static_cast<const bf16_t *>(x),
                static_cast<const bf16_t *>(w), bias, adds, y_stride, y, rows);
    };
    if (rows == 1)
        launch(multiply_few_kernel<1>);
    else if (rows == 2)
        launch(multiply_few_kernel<2>);
    else if (rows <= 4)
        launch(multiply_few_kernel<4>);
    else
        launch(multiply_few_kernel<8>);
}

void gate_up(stream_t s, const experts_t &e, const void *h, const void *weights, void *hidden) {
    with_type(e.type, [&](auto *t) {
        with_type(e.weights, [&](auto *w) {
            using T = value_of<decltype(t)>;
            using W = value_of<decltype(w)>;
            gate_up_kernel<<<dim3(blocks_for(e.intermediate, warps), unsigned(e.rows)), threads, 0, s>>>(
                    e, static_cast<const T *>(h), static_cast<const W *>(weights), static_cast<T *>(hidden));
        });
    });
}

void down(stream_t s, const experts_t &e, const void *hidden, const void *weights, float *y) {
    with_type(e.type, [&](auto *t) {
        with_type(e.weights, [&](auto *w) {
            using T = value_of<decltype(t)>;
            using W = value_of<decltype(w)>;
            down_kernel<<<dim3(blocks_for(e.hidden, warps), unsigned(e.rows)), threads, 0, s>>>(
                    e, static_cast<const T *>(hidden), static_cast<const W *>(weights), y);
        });
    });
}

void read_all(stream_t s, const void *bytes, int64_t size, float *sum) {
    read_all_kernel<<<2048, 512, 0, s>>>(
            static_cast<const uint4 *>(bytes), size / int64_t(sizeof(uint4)), sum);
}

} // namespace llm::cuda
