// SPDX-License-Identifier: Apache-2.0
// What attention of any shape needs: the cache, and a plain kernel.
#include "attention.cuh"

#include <algorithm>

namespace llm::cuda {

namespace {

// A block for each row; its threads are [heads at once][pairs of a head].
// Queries go to rows of `stride` elements.
template <typename T, typename Q>
__global__ void rotate_and_store_kernel(const attention_t a, const int32_t *sequences,
        const int32_t *positions, const float *qkv, float scale, Q *queries, int64_t stride) {
    begin_work();
    const int row = blockIdx.x, n = int(a.head_size), pair = threadIdx.x, position = positions[row];
    const int rotated = int(a.heads + a.kv_heads), all = rotated + int(a.kv_heads);
    const int e = first_of_pair(a, pair), distance = pair_distance(a);
    const int64_t slot = position % a.capacity;
    const turn_t turn(a, position, pair);
    for (int head = threadIdx.y; head < all; head += blockDim.y) {
        const float *x = qkv + row * a.qkv() + head * n + e;
        float2 v = make_float2(x[0], x[distance]);
        if (head < rotated) v = turn.of(v.x, v.y);
        if (head < a.heads) {
            Q *const q = queries + row * stride + head * n + e;
            put(q, v.x * scale);
            put(q + distance, v.y * scale);
            continue;
        }
        const bool is_key = head < rotated;
        const int64_t h = head - (is_key ? a.heads : rotated);
        T *to = static_cast<T *>(is_key ? a.keys : a.values)
                + ((sequences[row] * a.kv_heads + h) * a.capacity + slot) * n + e;
        put(to, v.x);
        put(to + distance, v.y);
    }
}

// A warp for each row and query head.
template <typename T, typename R>
__global__ void attend_plainly_kernel(const attention_t a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, R *y) {
    begin_work();
    constexpr int most = 32; // values of a lane: heads of up to 1024
    const int64_t index = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= rows * a.heads) return;
    const int64_t row = index / a.heads, head = index % a.heads, n = a.head_size, position = positions[row];
    const int64_t at = (sequences[row] * a.kv_heads + head / (a.heads / a.kv_heads)) * a.capacity * n;
    const T *keys = static_cast<const T *>(a.keys) + at, *values = static_cast<const T *>(a.values) + at;
    const float *q = qkv + row * a.qkv() + head * n;
    float top = a.sinks ? a.sinks[head] : no_score, sum = a.sinks ? 1.f : 0.f, result[most] = {};
    for (int64_t p = first_seen(a, int(position)); p <= position; p++) {
        const int64_t slot = p % a.capacity;
        float score = 0;
        for (int64_t i = lane; i < n; i += 32) score += q[i] * as_float(keys[slot * n + i]);
        score = sum_of_warp(score);
        const float new_top = fmaxf(top, score), factor = expf(top - new_top), e = expf(score - new_top);
        top = new_top;
        sum = sum * factor + e;
        for (int i = 0; i < most; i++)
            if (lane + 32 * i < n)
                result[i] = result[i] * factor + e * as_float(values[slot * n + lane + 32 * i]);
    }
    for (int i = 0; i < most; i++)
        if (lane + 32 * i < n) put(y + row * a.heads * n + head * n + lane + 32 * i, result[i] / sum);
}

template <typename Q>
void rotate(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, float scale, Q *queries, int64_t stride) {
    const unsigned pairs = unsigned(a.head_size / 2);
    const dim3 threads(pairs, std::max(1u, 256 / pairs));
    launch(s, a.cache == type_t::f32 ? rotate_and_store_kernel<float, Q> : rotate_and_store_kernel<bf16_t, Q>,
            unsigned(rows), threads, 0, a, sequences, positions, qkv, scale, queries, stride);
}

} // namespace

void rotate_and_store(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, float *qkv) {
    rotate(s, a, rows, sequences, positions, qkv, a.scale, qkv, a.qkv());
}

void prepare_spans(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, float *qkv, void *y) {
    const auto to = [&](auto *queries) {
        rotate(s, a, rows, sequences, positions, qkv, a.scale * log2_of_e, queries, a.heads * a.head_size);
    };
    a.result == type_t::bf16 ? to(static_cast<bf16_t *>(y)) : to(static_cast<float *>(y));
}

void attend_plainly(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, void *y) {
    constexpr unsigned warps = 4;
    const auto with = [&](auto *kernel, auto *to) {
        launch(s, kernel, unsigned((rows * a.heads + warps - 1) / warps), warps * 32, 0, a, rows, sequences,
                positions, qkv, to);
    };
    const bool is_f32 = a.cache == type_t::f32;
    if (a.result == type_t::bf16)
        with(is_f32 ? attend_plainly_kernel<float, bf16_t> : attend_plainly_kernel<bf16_t, bf16_t>,
                static_cast<bf16_t *>(y));
    else
        with(is_f32 ? attend_plainly_kernel<float, float> : attend_plainly_kernel<bf16_t, float>,
                static_cast<float *>(y));
}

} // namespace llm::cuda
