// SPDX-License-Identifier: Apache-2.0
// Three kernels: one for few rows and heads of 64 or 128, which divides the keys of a row among blocks; one
// on tensor cores for the rows of a prompt; and a plain one for every other shape.
#include "attention.hpp"

#include <algorithm>
#include <cfloat>
#include <type_traits>

#include <cuda_bf16.h>

namespace llm::cuda {

namespace {

using bf16_t = __nv_bfloat16;

__device__ float as_float(float v) { return v; }
__device__ float as_float(bf16_t v) { return __bfloat162float(v); }
__device__ void put(float *to, float v) { *to = v; }
__device__ void put(bf16_t *to, float v) { *to = __float2bfloat16(v); }

__device__ int64_t first_seen(const attention_t &a, int64_t position) {
    return a.window && position >= a.window ? position - a.window + 1 : 0;
}

// ---- the cache ----

// A block for each row.
template <typename T>
__global__ void rotate_and_store_kernel(
        attention_t a, const int32_t *sequences, const int32_t *positions, float *qkv) {
    const int64_t n = a.head_size, half = n / 2, position = positions[blockIdx.x];
    const int64_t heads = a.heads + 2 * a.kv_heads, step = a.is_interleaved ? 2 : 1,
                  other = a.is_interleaved ? 1 : half;
    float *row = qkv + int64_t(blockIdx.x) * a.qkv();
    const int64_t slot = position % a.capacity;
    for (int64_t i = threadIdx.x; i < heads * half; i += blockDim.x) {
        const int64_t head = i / half, pair = i % half;
        float *x = row + head * n + pair * step;
        float v = x[0], w = x[other];
        if (head < a.heads + a.kv_heads) {
            float sine, cosine;
            sincosf(float(position) * a.frequencies[pair], &sine, &cosine);
            const float c = cosine * a.turn_factor, s = sine * a.turn_factor,
                        scale = head < a.heads ? a.scale : 1.f;
            const float rotated = (v * c - w * s) * scale;
            w = (w * c + v * s) * scale;
            v = rotated;
            x[0] = v;
            x[other] = w;
        }
        if (head >= a.heads) {
            const bool is_key = head < a.heads + a.kv_heads;
            const int64_t h = head - a.heads - (is_key ? 0 : a.kv_heads);
            T *to = static_cast<T *>(is_key ? a.keys : a.values)
                    + ((sequences[blockIdx.x] * a.kv_heads + h) * a.capacity + slot) * n + pair * step;
            put(to, v);
            put(to + other, w);
        }
    }
}

// ---- any shape ----

// A warp for each row and query head.
template <typename T, typename R>
__global__ void attend_plainly(attention_t a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, R *y) {
    constexpr int most = 32; // values of a lane: heads of up to 1024
    const int64_t index = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= rows * a.heads) return;
    const int64_t row = index / a.heads, head = index % a.heads, n = a.head_size, position = positions[row];
    const int64_t at = (sequences[row] * a.kv_heads + head / (a.heads / a.kv_heads)) * a.capacity * n;
    const T *keys = static_cast<const T *>(a.keys) + at, *values = static_cast<const T *>(a.values) + at;
    const float *q = qkv + row * a.qkv() + head * n;
    float top = a.sinks ? a.sinks[head] : -FLT_MAX, sum = a.sinks ? 1.f : 0.f, result[most] = {};
    for (int64_t p = first_seen(a, position); p <= position; p++) {
        const int64_t slot = p % a.capacity;
        float score = 0;
        for (int64_t i = lane; i < n; i += 32) score += q[i] * as_float(keys[slot * n + i]);
        for (int i = 16; i > 0; i /= 2) score += __shfl_xor_sync(~0u, score, i);
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

// ---- few rows ----

constexpr int few_threads = 128;

// The keys of a row and key-value head are divided among `splits` blocks. A key is read by size / 8 lanes, 8
// elements each; each lane has these elements of up to `group` queries. Writes [row][head][split]: the
// largest score, the sum, and the weighted sum of values.
template <int size, int group>
__global__ void __launch_bounds__(few_threads) attend_few(attention_t a, const int32_t *sequences,
        const int32_t *positions, const float *qkv, float *partials) {
    constexpr int lanes = size / 8, keys_of_warp = 32 / lanes, warps = few_threads / 32,
                  streams = warps * keys_of_warp;
    const int64_t row = blockIdx.y, kv = blockIdx.x, splits = gridDim.z, split = blockIdx.z;
    const int queries = int(a.heads / a.kv_heads), lane = threadIdx.x % lanes, stream = threadIdx.x / lanes;
    const int64_t position = positions[row], first = first_seen(a, position), count = position + 1 - first;
    const int64_t part = (count + splits - 1) / splits, begin = first + split * part,
                  end = min(begin + part, position + 1);
    const int64_t at = (sequences[row] * a.kv_heads + kv) * a.capacity * size + lane * 8;
    const bf16_t *keys = static_cast<const bf16_t *>(a.keys) + at,
                 *values = static_cast<const bf16_t *>(a.values) + at;

    float q[group][8], result[group][8] = {}, top[group], sum[group];
    for (int g = 0; g < group; g++) {
        top[g] = -FLT_MAX;
        sum[g] = 0;
        for (int i = 0; i < 8; i++)
            q[g][i] = g < queries ? qkv[row * a.qkv() + (kv * queries + g) * size + lane * 8 + i] : 0.f;
    }
    // All lanes of a warp take part in each turn, for the sums over lanes.
    for (int64_t p = begin + stream; p - stream < end; p += streams) {
        const bool is_there = p < end;
        const int64_t slot = (is_there ? p : begin) % a.capacity;
        const uint4 k4 = *reinterpret_cast<const uint4 *>(keys + slot * size);
        const uint4 v4 = *reinterpret_cast<const uint4 *>(values + slot * size);
        float k[8], v[8];
        const uint32_t kw[4] = {k4.x, k4.y, k4.z, k4.w}, vw[4] = {v4.x, v4.y, v4.z, v4.w};
        for (int i = 0; i < 4; i++) {
            k[2 * i] = __uint_as_float(kw[i] << 16), k[2 * i + 1] = __uint_as_float(kw[i] & 0xffff0000u);
            v[2 * i] = __uint_as_float(vw[i] << 16), v[2 * i + 1] = __uint_as_float(vw[i] & 0xffff0000u);
        }
#pragma unroll
        for (int g = 0; g < group; g++) {
            float score = 0;
            for (int i = 0; i < 8; i++) score += q[g][i] * k[i];
            for (int i = lanes / 2; i > 0; i /= 2) score += __shfl_xor_sync(~0u, score, i);
            if (!is_there) continue;
            if (score > top[g]) {
                const float factor = __expf(top[g] - score);
                top[g] = score;
                sum[g] *= factor;
                for (int i = 0; i < 8; i++) result[g][i] *= factor;
            }
            const float e = __expf(score - top[g]);
            sum[g] += e;
            for (int i = 0; i < 8; i++) result[g][i] += e * v[i];
        }
    }

    __shared__ float tops[streams], sums[streams], results[streams][size];
    for (int g = 0; g < queries && g < group; g++) {
        if (lane == 0) tops[stream] = top[g], sums[stream] = sum[g];
        for (int i = 0; i < 8; i++) results[stream][lane * 8 + i] = result[g][i];
        __syncthreads();
        float *to = partials + ((row * a.heads + kv * queries + g) * splits + split) * (size + 2);
        float all_top = -FLT_MAX;
        for (int s = 0; s < streams; s++) all_top = fmaxf(all_top, tops[s]);
        float all_sum = 0, value = 0;
        for (int s = 0; s < streams; s++) {
            const float factor = __expf(tops[s] - all_top);
            all_sum += sums[s] * factor;
            if (threadIdx.x < size) value += results[s][threadIdx.x] * factor;
        }
        if (threadIdx.x == 0) to[0] = all_top, to[1] = all_sum;
        if (threadIdx.x < size) to[2 + threadIdx.x] = value;
        __syncthreads();
    }
}

// A block of `head_size` threads for each row and head.
template <typename R>
__global__ void add_splits(attention_t a, int64_t splits, const float *partials, R *y) {
    const int64_t index = blockIdx.x, head = index % a.heads, n = a.head_size;
    const float *from = partials + index * splits * (n + 2);
    const float sink = a.sinks ? a.sinks[head] : -FLT_MAX;
    float top = sink;
    for (int64_t s = 0; s < splits; s++) top = fmaxf(top, from[s * (n + 2)]);
    float sum = a.sinks ? __expf(sink - top) : 0.f, value = 0;
    for (int64_t s = 0; s < splits; s++) {
        const float factor = __expf(from[s * (n + 2)] - top);
        sum += from[s * (n + 2) + 1] * factor;
        value += from[s * (n + 2) + 2 + threadIdx.x] * factor;
    }
    put(y + index * n + threadIdx.x, value / sum);
}

bool is_few_shape(const attention_t &a) {
    return a.cache == type_t::bf16 && (a.head_size == 64 || a.head_size == 128) && a.heads / a.kv_heads <= 8;
}

// Blocks that keep a device busy.
constexpr int64_t busy_blocks = 528;

// Enough splits for a device at few rows, and no more than there are keys for.
int64_t splits_for(const attention_t &a, int64_t rows) {
    const int64_t seen = a.window ? std::min(a.window, a.capacity) : a.capacity;
    const int64_t useful = std::max<int64_t>(1, seen / 128);
    return std::min(useful, std::max<int64_t>(1, busy_blocks / (rows * a.kv_heads)));
}

// ---- the rows of a prompt ----

constexpr int span_rows = 128, span_keys = 64, span_size = 64, span_threads = 256;
constexpr int span_stride = span_size + 8; // rows of shared memory begin in different banks

__device__ void load_matrices(uint32_t *r, const bf16_t *row, bool is_transposed) {
    const auto address = unsigned(__cvta_generic_to_shared(row));
    if (is_transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
}

// c[16x8] += a[16x16] * b[16x8]
__device__ void multiply(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
    asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ uint32_t pair_of(float low, float high) {
    const __nv_bfloat162 p = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&p);
}

// Keys or values of positions [first, first + 64) into shared memory, as they arrive.
__device__ void fetch(bf16_t *to, const bf16_t *from, int64_t first, int64_t end, int64_t capacity) {
    for (int i = threadIdx.x; i < span_keys * span_size / 8; i += span_threads) {
        const int key = i / (span_size / 8), part = i % (span_size / 8);
        const int64_t p = first + key;
        const auto address = unsigned(__cvta_generic_to_shared(to + key * span_stride + part * 8));
        const bf16_t *source = from + (p < end ? p % capacity : 0) * span_size + part * 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source),
                "r"(p < end ? 16 : 0));
    }
}
__device__ void end_fetch() { asm volatile("cp.async.commit_group;"); }
template <int left>
__device__ void wait_fetch() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left));
}

// A block has 128 rows of one query head, a warp 16 of them; keys come 64 at a time, the next while these are
// multiplied.
template <typename R>
__global__ void __launch_bounds__(span_threads) attend_span_kernel(
        attention_t a, int64_t sequence, int64_t rows, int64_t position, const float *qkv, R *y) {
    extern __shared__ bf16_t room[];
    bf16_t *keys_room = room, *values_room = room + 2 * span_keys * span_stride;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t head = blockIdx.y, kv = head / (a.heads / a.kv_heads);
    // The last rows have the most keys; they begin first.
    const int64_t block_row = int64_t(gridDim.x - 1 - blockIdx.x) * span_rows;
    const int64_t end_row = min(block_row + span_rows, rows), end = position + end_row;
    const int64_t begin = first_seen(a, position + block_row) / span_keys * span_keys;
    const int64_t at = (sequence * a.kv_heads + kv) * a.capacity * span_size;
    const bf16_t *keys = static_cast<const bf16_t *>(a.keys) + at,
                 *values = static_cast<const bf16_t *>(a.values) + at;

    // Rows of this lane: r and r + 8.
    const int64_t row = block_row + warp * 16 + lane / 4;
    uint32_t q[span_size / 16][4];
    for (int k = 0; k < span_size / 16; k++)
        for (int i = 0; i < 4; i++) {
            const int64_t r = row + i % 2 * 8, c = k * 16 + lane % 4 * 2 + i / 2 * 8;
            const float *from = qkv + r * a.qkv() + head * span_size + c;
            q[k][i] = r < rows ? pair_of(from[0], from[1]) : 0;
        }
    float result[span_size / 8][4] = {}, top[2] = {-FLT_MAX, -FLT_MAX}, sum[2] = {};

    fetch(keys_room, keys, begin, end, a.capacity);
    fetch(values_room, values, begin, end, a.capacity);
    end_fetch();
    int stage = 0;
    for (int64_t key = begin; key < end; key += span_keys, stage ^= 1) {
        if (key + span_keys < end) {
            const int next = (stage ^ 1) * span_keys * span_stride;
            fetch(keys_room + next, keys, key + span_keys, end, a.capacity);
            fetch(values_room + next, values, key + span_keys, end, a.capacity);
            end_fetch();
            wait_fetch<1>();
        } else {
            wait_fetch<0>();
        }
        __syncthreads();
        const bf16_t *k_rows = keys_room + stage * span_keys * span_stride,
                     *v_rows = values_room + stage * span_keys * span_stride;
        // Keys that no row of the warp sees are left out; all warps meet again below.
        const int64_t warp_row = block_row + warp * 16;
        const bool is_seen = warp_row < rows && key <= position + min(warp_row + 15, rows - 1)
                             && key + span_keys > first_seen(a, position + warp_row);
        if (is_seen) {
            float scores[span_keys / 8][4] = {};
            for (int n = 0; n < span_keys / 16; n++)
                for (int k = 0; k < span_size / 16; k++) {
                    uint32_t b[4]; // keys 0-7 and 8-15, each the two halves of k
                    load_matrices(b,
                            k_rows + (n * 16 + lane % 8 + lane / 16 * 8) * span_stride + k * 16
                                    + lane / 8 % 2 * 8,
                            false);
                    multiply(scores[2 * n], q[k], b[0], b[1]);
                    multiply(scores[2 * n + 1], q[k], b[2], b[3]);
                }
            // Masked where a row of the warp does not see all keys.
            if (key + span_keys > position + warp_row || key < first_seen(a, position + warp_row + 15))
                for (int n = 0; n < span_keys / 8; n++)
                    for (int i = 0; i < 4; i++) {
                        const int64_t p = key + n * 8 + lane % 4 * 2 + i % 2, of = position + row + i / 2 * 8;
                        if (p > of || p < first_seen(a, of)) scores[n][i] = -FLT_MAX;
                    }
            float factor[2];
            for (int h = 0; h < 2; h++) {
                float most = top[h];
                for (int n = 0; n < span_keys / 8; n++)
                    most = fmaxf(most, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
                factor[h] = __expf(top[h] - most);
                top[h] = most;
                sum[h] *= factor[h];
                for (int n = 0; n < span_keys / 8; n++)
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        // A row that has seen no key yet keeps zeros.
                        scores[n][i] = scores[n][i] == -FLT_MAX ? 0.f : __expf(scores[n][i] - most);
                        sum[h] += scores[n][i];
                    }
            }
            for (int n = 0; n < span_size / 8; n++)
                for (int i = 0; i < 4; i++) result[n][i] *= factor[i / 2];
            for (int k = 0; k < span_keys / 16; k++) {
                const uint32_t p[4] = {pair_of(scores[2 * k][0], scores[2 * k][1]),
                        pair_of(scores[2 * k][2], scores[2 * k][3]),
                        pair_of(scores[2 * k + 1][0], scores[2 * k + 1][1]),
                        pair_of(scores[2 * k + 1][2], scores[2 * k + 1][3])};
                for (int n = 0; n < span_size / 16; n++) {
                    uint32_t b[4]; // columns 0-7 and 8-15, each the two halves of k
                    load_matrices(
                            b, v_rows + (k * 16 + lane % 16) * span_stride + n * 16 + lane / 16 * 8, true);
                    multiply(result[2 * n], p, b[0], b[1]);
                    multiply(result[2 * n + 1], p, b[2], b[3]);
                }
            }
        }
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        float factor = 1;
        if (a.sinks) {
            const float most = fmaxf(top[h], a.sinks[head]);
            factor = __expf(top[h] - most);
            sum[h] = sum[h] * factor + __expf(a.sinks[head] - most);
        }
        const int64_t r = row + h * 8;
        if (r >= rows) continue;
        for (int n = 0; n < span_size / 8; n++)
            for (int i = 0; i < 2; i++)
                put(y + (r * a.heads + head) * span_size + n * 8 + lane % 4 * 2 + i,
                        result[n][2 * h + i] * factor / sum[h]);
    }
}

} // namespace

void rotate_and_store(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, float *qkv) {
    if (a.cache == type_t::f32)
        rotate_and_store_kernel<float><<<unsigned(rows), 256, 0, s>>>(a, sequences, positions, qkv);
    else
        rotate_and_store_kernel<bf16_t><<<unsigned(rows), 256, 0, s>>>(a, sequences, positions, qkv);
}

int64_t attend_rows_room(const attention_t &a, int64_t max_rows) {
    // rows * splits_for(a, rows) is at most this.
    const int64_t parts = std::max(max_rows, busy_blocks / a.kv_heads);
    return is_few_shape(a) ? parts * a.heads * (a.head_size + 2) : 0;
}

void attend_rows(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, float *room, void *y) {
    const bool to_bf16 = a.result == type_t::bf16;
    if (!is_few_shape(a)) {
        const unsigned blocks = unsigned((rows * a.heads + 3) / 4);
        if (a.cache == type_t::f32 && to_bf16)
            attend_plainly<float>
                    <<<blocks, 128, 0, s>>>(a, rows, sequences, positions, qkv, static_cast<bf16_t *>(y));
        else if (a.cache == type_t::f32)
            attend_plainly<float>
                    <<<blocks, 128, 0, s>>>(a, rows, sequences, positions, qkv, static_cast<float *>(y));
        else if (to_bf16)
            attend_plainly<bf16_t>
                    <<<blocks, 128, 0, s>>>(a, rows, sequences, positions, qkv, static_cast<bf16_t *>(y));
        else
            attend_plainly<bf16_t>
                    <<<blocks, 128, 0, s>>>(a, rows, sequences, positions, qkv, static_cast<float *>(y));
        return;
    }
    const int64_t splits = splits_for(a, rows), group = a.heads / a.kv_heads;
    const dim3 grid(unsigned(a.kv_heads), unsigned(rows), unsigned(splits));
    const auto launch = [&](auto *kernel) {
        kernel<<<grid, few_threads, 0, s>>>(a, sequences, positions, qkv, room);
    };
    if (a.head_size == 64)
        group == 1   ? launch(attend_few<64, 1>)
        : group == 2 ? launch(attend_few<64, 2>)
        : group <= 4 ? launch(attend_few<64, 4>)
                     : launch(attend_few<64, 8>);
    else
        group == 1   ? launch(attend_few<128, 1>)
        : group == 2 ? launch(attend_few<128, 2>)
        : group <= 4 ? launch(attend_few<128, 4>)
                     : launch(attend_few<128, 8>);
    const unsigned blocks = unsigned(rows * a.heads), threads = unsigned(a.head_size);
    if (to_bf16)
        add_splits<<<blocks, threads, 0, s>>>(a, splits, room, static_cast<bf16_t *>(y));
    else
        add_splits<<<blocks, threads, 0, s>>>(a, splits, room, static_cast<float *>(y));
}

bool can_attend_span(const attention_t &a) { return a.cache == type_t::bf16 && a.head_size == span_size; }

void attend_span(stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position,
        const float *qkv, void *y) {
    const dim3 grid(unsigned((rows + span_rows - 1) / span_rows), unsigned(a.heads));
    constexpr size_t room = 4 * span_keys * span_stride * sizeof(bf16_t);
    static_assert(room <= 48 * 1024, "more needs to be asked for");
    if (a.result == type_t::bf16)
        attend_span_kernel<<<grid, span_threads, room, s>>>(
                a, sequence, rows, position, qkv, static_cast<bf16_t *>(y));
    else
        attend_span_kernel<<<grid, span_threads, room, s>>>(
                a, sequence, rows, position, qkv, static_cast<float *>(y));
}

} // namespace llm::cuda
