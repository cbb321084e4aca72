// SPDX-License-Identifier: Apache-2.0
#include "device.cuh"

#include <algorithm>
#include <cfloat>

namespace llm::cuda {

namespace {

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
    begin_work();
    const T *from = table + int64_t(max(tokens[blockIdx.x], 0)) * n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) x[blockIdx.x * n + i] = as_float(from[i]);
}

constexpr unsigned most_norm_threads = 1024;
// The sum over all threads of a block.
__device__ float sum_of_block(float v) {
    __shared__ float parts[most_norm_threads / 32];
    const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
    v = sum_of_warp(v);
    if (lane == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    return sum_of_warp(lane < warps ? parts[lane] : 0.f);
}

// A block for each row, which stays in registers: `vectors` times four values of each thread.
template <int vectors, typename T>
__global__ void __launch_bounds__(most_norm_threads)
        rms_norm_kernel(int n, const float *x, const float *weight, float eps, T *y) {
    begin_work();
    x += int64_t(blockIdx.x) * n;
    y += int64_t(blockIdx.x) * n;
    float4 v[vectors];
    float squares = 0;
#pragma unroll
    for (int j = 0; j < vectors; j++) {
        const unsigned i = 4 * (threadIdx.x + j * blockDim.x);
        v[j] = i < unsigned(n) ? *reinterpret_cast<const float4 *>(x + i) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int j = 0; j < vectors; j++)
        squares += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
    const float factor = rsqrtf(sum_of_block(squares) / float(n) + eps);
#pragma unroll
    for (int j = 0; j < vectors; j++) {
        const unsigned i = 4 * (threadIdx.x + j * blockDim.x);
        if (i >= unsigned(n)) break;
        const float4 w = *reinterpret_cast<const float4 *>(weight + i);
        put_pair(y + i, v[j].x * factor * w.x, v[j].y * factor * w.y);
        put_pair(y + i + 2, v[j].z * factor * w.z, v[j].w * factor * w.w);
    }
}

// Rows of any length.
template <typename T>
__global__ void __launch_bounds__(most_norm_threads)
        rms_norm_plainly_kernel(int n, const float *x, const float *weight, float eps, T *y) {
    begin_work();
    x += int64_t(blockIdx.x) * n;
    y += int64_t(blockIdx.x) * n;
    float squares = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) squares += x[i] * x[i];
    const float factor = rsqrtf(sum_of_block(squares) / float(n) + eps);
    for (int i = threadIdx.x; i < n; i += blockDim.x) put(y + i, x[i] * factor * weight[i]);
}

__global__ void take_rows_kernel(int64_t n, const float *x, const int32_t *index, float *y) {
    begin_work();
    const float *from = x + int64_t(index[blockIdx.x]) * n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = from[i];
}

// The larger of two; of equal ones the first. What is no finite number is larger than all, in place -1.
struct largest_t {
    float value = -FLT_MAX;
    int32_t place = 0;

    __device__ void take(const largest_t &other) {
        if (other.value > value || (other.value == value && other.place < place)) *this = other;
    }
    // Of all threads of the block, for its first one.
    __device__ void take_all() {
        __shared__ float values[32];
        __shared__ int32_t places[32];
        for (int i = 16; i > 0; i /= 2) {
            largest_t other;
            other.value = __shfl_xor_sync(~0u, value, i);
            other.place = __shfl_xor_sync(~0u, place, i);
            take(other);
        }
        if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value, places[threadIdx.x / 32] = place;
        __syncthreads();
        if (threadIdx.x == 0)
            for (unsigned i = 1; i < blockDim.x / 32; i++) {
                largest_t other;
                other.value = values[i], other.place = places[i];
                take(other);
            }
    }
};

// A block for each row and part of it.
__global__ void largest_parts_kernel(int64_t n, const float *x, largest_t *parts) {
    begin_work();
    x += blockIdx.y * n;
    largest_t largest;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        largest_t other;
        const bool is_finite = isfinite(x[i]);
        other.value = is_finite ? x[i] : INFINITY, other.place = is_finite ? int32_t(i) : -1;
        largest.take(other);
    }
    largest.take_all();
    if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = largest;
}
__global__ void largest_kernel(int count, const largest_t *parts, int32_t *index) {
    begin_work();
    largest_t largest;
    for (int i = threadIdx.x; i < count; i += blockDim.x) largest.take(parts[blockIdx.x * count + i]);
    largest.take_all();
    if (threadIdx.x == 0) index[blockIdx.x] = largest.place;
}

__global__ void increment_kernel(int64_t n, int32_t *values) {
    begin_work();
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) values[i]++;
}

__device__ float silu(float v) { return v / (1.f + expf(-v)); }

// A block for a row and some of its columns.
constexpr int finished_columns = 1024;
template <typename T>
__global__ void finish_kernel(const finish_t f, const float *x, const float *factor, T *y) {
    begin_work();
    const int64_t row = blockIdx.x;
    x += row * f.x_columns;
    factor += row * f.y_stride;
    y += row * f.y_stride;
    const int columns = int(f.columns), first = int(blockIdx.y) * finished_columns;
    for (int c = first + threadIdx.x; c < min(first + finished_columns, columns); c += blockDim.x) {
        float v = x[c] + (f.bias ? f.bias[c] : 0.f);
        switch (f.then) {
        case then_t::store: break;
        case then_t::add: v += as_float(y[c]); break;
        case then_t::silu: v = silu(v); break;
        case then_t::multiply: v *= factor[c]; break;
        case then_t::gated_silu: v = silu(v) * (x[columns + c] + (f.bias ? f.bias[columns + c] : 0.f)); break;
        }
        put(y + c, v);
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
    begin_work();
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
    if (threadIdx.x % 32 == 0) put(hidden + row * I + c, gate / (1.f + expf(-e.alpha * gate)) * (up + 1.f));
}

template <typename T, typename W>
__global__ void down_kernel(experts_t e, const T *hidden, const W *weights, float *y) {
    begin_work();
    const int64_t row = blockIdx.y, c = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int64_t H = e.hidden, I = e.intermediate;
    if (c >= H) return;
    const int64_t expert = expert_of(e, row);
    const float sum = dot(I, hidden + row * I, weights + (expert * H + c) * I) + e.down_bias[expert * H + c];
    if (threadIdx.x % 32 == 0)
        atomicAdd(y + int64_t(e.token_of_row[row]) * H + c, sum * e.weight_of_row[row]);
}

__global__ void read_all_kernel(const uint4 *bytes, int64_t count, float *sum) {
    begin_work();
    uint32_t all = 0;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
            i += int64_t(gridDim.x) * blockDim.x) {
        const uint4 v = __ldcs(bytes + i);
        all |= v.x | v.y | v.z | v.w;
    }
    if (all == 1) *sum = 1; // never, but nobody knows
}

constexpr unsigned threads = 256, warps = threads / 32, largest_parts = 64;

} // namespace

void look_up(stream_t s, int64_t rows, int64_t n, const int32_t *tokens, type_t type, const void *table,
        float *x) {
    with_type(type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        launch(s, look_up_kernel<T>, unsigned(rows), threads, 0, n, tokens, static_cast<const T *>(table), x);
    });
}

void rms_norm(stream_t s, int64_t rows, int64_t n, const float *x, const float *weight, float eps,
        type_t type, void *y) {
    with_type(type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        const auto with = [&](auto *kernel, int64_t values) {
            const unsigned row_threads = (blocks_for(n, values) + 31) / 32 * 32;
            launch(s, kernel, unsigned(rows), std::min(row_threads, most_norm_threads), 0, int(n), x, weight,
                    eps, static_cast<T *>(y));
        };
        // Few rows are a matter of latency, many of bandwidth.
        constexpr int64_t few = 64, most = most_norm_threads * 4;
        if (n % 4 == 0 && rows <= few && n <= most)
            with(rms_norm_kernel<1, T>, 4);
        else if (n % 4 == 0 && n <= 4 * most)
            with(rms_norm_kernel<4, T>, 16);
        else
            with(rms_norm_plainly_kernel<T>, 1);
    });
}

void take_rows(stream_t s, int64_t rows, int64_t n, const float *x, const int32_t *index, float *y) {
    launch(s, take_rows_kernel, unsigned(rows), threads, 0, n, x, index, y);
}

size_t largest_room(int64_t rows) { return size_t(rows) * largest_parts * sizeof(largest_t); }

void largest(stream_t s, int64_t rows, int64_t n, const float *x, void *room, int32_t *index) {
    largest_t *parts = static_cast<largest_t *>(room);
    launch(s, largest_parts_kernel, dim3(largest_parts, unsigned(rows)), threads, 0, n, x, parts);
    launch(s, largest_kernel, unsigned(rows), 32, 0, int(largest_parts), parts, index);
}

void increment(stream_t s, int64_t n, int32_t *values) {
    launch(s, increment_kernel, blocks_for(n, threads), threads, 0, n, values);
}

void finish(stream_t s, const finish_t &f, const float *x, const float *factor, void *y) {
    with_type(f.type, [&](auto *t) {
        using T = value_of<decltype(t)>;
        launch(s, finish_kernel<T>, dim3(unsigned(f.rows), blocks_for(f.columns, finished_columns)), threads,
                0, f, x, factor, static_cast<T *>(y));
    });
}

void gate_up(stream_t s, const experts_t &e, const void *h, const void *weights, void *hidden) {
    with_type(e.type, [&](auto *t) {
        with_type(e.weights, [&](auto *w) {
            using T = value_of<decltype(t)>;
            using W = value_of<decltype(w)>;
            launch(s, gate_up_kernel<T, W>, dim3(blocks_for(e.intermediate, warps), unsigned(e.rows)),
                    threads, 0, e, static_cast<const T *>(h), static_cast<const W *>(weights),
                    static_cast<T *>(hidden));
        });
    });
}

void down(stream_t s, const experts_t &e, const void *hidden, const void *weights, float *y) {
    with_type(e.type, [&](auto *t) {
        with_type(e.weights, [&](auto *w) {
            using T = value_of<decltype(t)>;
            using W = value_of<decltype(w)>;
            launch(s, down_kernel<T, W>, dim3(blocks_for(e.hidden, warps), unsigned(e.rows)), threads, 0, e,
                    static_cast<const T *>(hidden), static_cast<const W *>(weights), y);
        });
    });
}

void read_all(stream_t s, const void *bytes, int64_t size, float *sum) {
    launch(s, read_all_kernel, 2048, 512, 0, static_cast<const uint4 *>(bytes), size / int64_t(sizeof(uint4)),
            sum);
}

} // namespace llm::cuda
