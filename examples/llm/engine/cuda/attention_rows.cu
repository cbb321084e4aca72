// SPDX-License-Identifier: Apache-2.0
// Attention of a decode step: a row of each of some sequences, on tensor cores.
//
// The keys of a row and key-value head are divided among `splits` blocks, and a block's among its warps, 16
// at a time. A warp multiplies them with the queries of up to 8 heads that share them:
//   scores[queries x keys] = q * k^T, then result^T[head size x queries] += v^T * weights^T.
// Elements of a head and keys may be multiplied in any order, if both operands have the same one, so that all
// operands are registers, as 16-byte loads left them. The last block to end adds up what all have found.
#include "attention.cuh"

#include <algorithm>

// Without the standard library of CUDA, whose headers take the compiler 2 s.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>

namespace llm::cuda {

namespace {

constexpr int step_keys = 16, most_queries = 8;
// Warps of a block. Heads of 64 have smaller blocks where an H200 runs all of these at once, but not all of
// the others.
constexpr int most_warps = 8, some_warps = 4;
constexpr int64_t most_at_once = 3 * 132, some_at_once = most_at_once * most_warps / some_warps;
// Blocks that keep a device busy, and keys that are worth one.
constexpr int64_t busy_blocks = 1024, keys_of_block = 256;
constexpr unsigned most_blocks_of_cluster = 8; // on every device that has clusters

constexpr int line = 64; // elements that L2 fetches at once
__device__ void fetch_to_l2(const bf16_t *p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

// Largest score, sum of weights, weighted sum of values.
template <int size>
struct part_t {
    float top, sum, result[size];
};

// The low halves of two words of bf16, or the high ones.
__device__ uint32_t low_of(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
__device__ uint32_t high_of(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }
__device__ uint32_t word_of(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

template <int size, int warps, bool is_cluster, typename R>
__global__ void __launch_bounds__(warps * 32, (size == 64 ? 3 : 2) * most_warps / warps)
        attend_rows_kernel(const attention_t a, const int32_t *sequences, const int32_t *positions,
                const float *qkv, part_t<size> *parts, unsigned *arrived, R *y) {
    constexpr int threads = warps * 32;
    __shared__ __align__(16) bf16_t queries[most_queries][size + 8];
    __shared__ part_t<size> of_warps[warps][most_queries];
    __shared__ bool is_last;
    const int kv = blockIdx.x, row = blockIdx.y, split = blockIdx.z, splits = gridDim.z;
    const int group = int(a.heads / a.kv_heads), capacity = int(a.capacity), first_head = kv * group;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

    const int position = positions[row], first = first_seen(a, position);
    const int share = (position + 1 - first + splits - 1) / splits;
    const int begin = first + split * share, end = min(begin + share, position + 1);
    const int64_t at = (sequences[row] * a.kv_heads + kv) * a.capacity * size;
    bf16_t *const keys = static_cast<bf16_t *>(a.keys) + at;
    bf16_t *const values = static_cast<bf16_t *>(a.values) + at;
    const float *const from = qkv + row * a.qkv();
    const int first_slot = begin % capacity;
    const auto slot_of = [&](int p) {
        const int slot = first_slot + p - begin;
        return slot < capacity ? slot : slot - capacity;
    };

    // Keys and values of earlier steps are on their way while this step's are computed.
    constexpr int lines = size / line;
    for (int i = threadIdx.x; i < min(end - begin, int(keys_of_block)) * lines; i += threads) {
        const int64_t e = int64_t(slot_of(begin + i / lines)) * size + i % lines * line;
        fetch_to_l2(keys + e);
        fetch_to_l2(values + e);
    }
    const int distance = pair_distance(a), pair = threadIdx.x % (size / 2), e = first_of_pair(a, pair);
    static_assert(threads % (size / 2) == 0 && threads >= size / 2 + size,
            "a thread turns one pair of each head, and stores a pair of a key or an element of a value");
    const turn_t turn(a, position, pair);
    begin_work();

    // Queries, in powers of 2; heads that there are none of are zeros.
    for (int head = threadIdx.x / (size / 2); head < most_queries; head += threads / (size / 2)) {
        float2 v = make_float2(0, 0);
        if (head < group) {
            const float *q = from + (first_head + head) * size + e;
            v = turn.of(q[0], q[distance]);
        }
        put(&queries[head][e], v.x * a.scale * log2_of_e);
        put(&queries[head][e + distance], v.y * a.scale * log2_of_e);
    }
    // The block that reads the newest key and value stores them first.
    if (begin <= position && end == position + 1) {
        const int64_t to = int64_t(position % capacity) * size;
        const float *k = from + (a.heads + kv) * size, *v = k + a.kv_heads * size;
        const int i = threadIdx.x;
        if (i < size / 2) {
            const float2 turned = turn.of(k[e], k[e + distance]);
            put(keys + to + e, turned.x);
            put(keys + to + e + distance, turned.y);
        } else if (i < size / 2 + size) {
            put(values + to + i - size / 2, v[i - size / 2]);
        }
    }
    __syncthreads();

    uint4 q[size / 32];
    for (int j = 0; j < size / 32; j++) q[j] = *reinterpret_cast<const uint4 *>(&queries[g][32 * j + 8 * t]);
    const auto load = [&](const bf16_t *rows, int p, int e) {
        return p < end ? *reinterpret_cast<const uint4 *>(rows + int64_t(slot_of(p)) * size + e)
                       : uint4{0, 0, 0, 0};
    };
    // Of query g; sums of this lane's keys. result: of queries 2t and 2t + 1.
    float top = no_score, sum = 0, result[size / 16][4] = {};
    for (int p = begin + warp * step_keys; p < end; p += warps * step_keys) {
        uint4 k[2][size / 32], v[size / 64][4]; // keys g and g + 8; 2t, 2t + 1, 2t + 8, 2t + 9
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int j = 0; j < size / 32; j++) k[n][j] = load(keys, p + g + 8 * n, 32 * j + 8 * t);
#pragma unroll
        for (int j = 0; j < size / 64; j++)
#pragma unroll
            for (int n = 0; n < 4; n++) v[j][n] = load(values, p + 2 * t + n % 2 + n / 2 * 8, 64 * j + 8 * g);

        float scores[2][4] = {};
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int j = 0; j < size / 32; j++) {
                multiply(scores[n], q[j].x, 0, q[j].y, 0, k[n][j].x, k[n][j].y);
                multiply(scores[n], q[j].z, 0, q[j].w, 0, k[n][j].z, k[n][j].w);
            }
        float most = top;
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 2; i++) {
                if (p + 8 * n + 2 * t + i >= end) scores[n][i] = unseen;
                most = fmaxf(most, scores[n][i]);
            }
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        const float factor = power_of_2(top - most);
        top = most;
        sum *= factor;
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 2; i++) sum += scores[n][i] = power_of_2(scores[n][i] - most);
        const uint32_t weights[2] = {
                pair_of(scores[0][0], scores[0][1]), pair_of(scores[1][0], scores[1][1])};
        const float factors[2] = {__shfl_sync(~0u, factor, 8 * t), __shfl_sync(~0u, factor, 8 * t + 4)};
#pragma unroll
        for (int i = 0; i < size / 16; i++) {
            for (int c = 0; c < 4; c++) result[i][c] *= factors[c % 2];
            // Rows g and g + 8 are elements 8g + 2i and 8g + 2i + 1.
            const uint4 *of = v[i / 4];
            const uint32_t a0 = word_of(of[0], i % 4), a1 = word_of(of[1], i % 4), b0 = word_of(of[2], i % 4),
                           b1 = word_of(of[3], i % 4);
            multiply(result[i], low_of(a0, a1), high_of(a0, a1), low_of(b0, b1), high_of(b0, b1), weights[0],
                    weights[1]);
        }
    }

    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (t == 0) of_warps[warp][g].top = top, of_warps[warp][g].sum = sum;
    for (int i = 0; i < size / 16; i++)
        for (int c = 0; c < 4; c++)
            of_warps[warp][2 * t + c % 2].result[i / 4 * 64 + 8 * g + i % 4 * 2 + c / 2] = result[i][c];
    __syncthreads();

    // What `count` parts are together for an element. Some are loaded at once, whether or not there are as
    // many: each load from L2 takes long.
    const auto add_up = [](const auto &part_of, int count, int e, float &all_top, float &all_sum) {
        constexpr int at_once = 8;
        float value = 0;
        all_top = no_score;
        all_sum = 0;
        for (int first = 0; first < count; first += at_once) {
            float tops[at_once], sums[at_once], values[at_once], most = all_top;
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const part_t<size> &part = part_of(min(first + i, count - 1));
                tops[i] = first + i < count ? part.top : unseen;
                sums[i] = part.sum;
                values[i] = part.result[e];
            }
#pragma unroll
            for (int i = 0; i < at_once; i++) most = fmaxf(most, tops[i]);
            const float before = power_of_2(all_top - most);
            all_top = most;
            all_sum *= before;
            value *= before;
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const float factor = power_of_2(tops[i] - most);
                all_sum += sums[i] * factor;
                value += values[i] * factor;
            }
        }
        return value;
    };
    const auto finish = [&](int head, int e, float top, float sum, float value) {
        const float factor = add_sink(a, head, top, sum);
        put(y + (row * a.heads + head) * size + e, value * factor / sum);
    };
    // The block's parts, where others have some, too: for those of its cluster, or for all, of which the last
    // one finishes.
    __shared__ part_t<size> of_block[most_queries];
    part_t<size> *const of_row = parts + (row * a.heads + first_head) * splits;
    for (int i = threadIdx.x; i < group * size; i += threads) {
        const int head = i / size, e = i % size;
        float all_top, all_sum;
        const auto part_of = [&](int w) -> auto & { return of_warps[w][head]; };
        const float value = add_up(part_of, warps, e, all_top, all_sum);
        if (splits == 1) {
            finish(first_head + head, e, all_top, all_sum, value);
        } else {
            part_t<size> &to = is_cluster ? of_block[head] : of_row[head * splits + split];
            if (e == 0) to.top = all_top, to.sum = all_sum;
            to.result[e] = value;
        }
    }
    if (splits == 1) return;

#if __CUDA_ARCH__ >= 900
    if (is_cluster) {
        const auto cluster = cooperative_groups::this_cluster();
        cluster.sync();
        for (int i = split * threads + threadIdx.x; i < group * size; i += splits * threads) {
            const int head = i / size, e = i % size;
            float all_top, all_sum;
            const auto part_of = [&](int rank) -> auto & {
                return *cluster.map_shared_rank(&of_block[head], rank);
            };
            const float value = add_up(part_of, splits, e, all_top, all_sum);
            finish(first_head + head, e, all_top, all_sum, value);
        }
        cluster.sync(); // others may still read this block's parts
        return;
    }
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned *const count = arrived + row * a.kv_heads + kv;
        __threadfence();
        is_last = atomicAdd(count, 1u) == unsigned(splits - 1);
        __threadfence();
        if (is_last) *count = 0; // for the next layer
    }
    __syncthreads();
    if (!is_last) return;
    for (int i = threadIdx.x; i < group * size; i += threads) {
        const int head = i / size, e = i % size;
        float all_top, all_sum;
        const auto part_of = [&](int other) -> auto & { return of_row[head * splits + other]; };
        const float value = add_up(part_of, splits, e, all_top, all_sum);
        finish(first_head + head, e, all_top, all_sum, value);
    }
}

// Enough for a device at few rows, and no more than there are keys for.
int64_t splits_for(const attention_t &a, int64_t rows) {
    const int64_t seen = a.window ? std::min(a.window, a.capacity) : a.capacity;
    const int64_t useful = std::max<int64_t>(1, seen / keys_of_block);
    return std::min(useful, std::max<int64_t>(1, busy_blocks / (rows * a.kv_heads)));
}

} // namespace

bool can_attend_rows(const attention_t &a) {
    return a.cache == type_t::bf16 && (a.head_size == 64 || a.head_size == 128)
           && a.heads / a.kv_heads <= most_queries;
}

// Where a row has several parts, rows * kv_heads * splits is at most busy_blocks.
size_t attend_rows_room(const attention_t &a) {
    const size_t part = size_t(a.head_size + 2) * sizeof(float);
    return can_attend_rows(a) ? busy_blocks * (sizeof(unsigned) + size_t(a.heads / a.kv_heads) * part) : 0;
}

void attend_rows(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, void *room, void *y) {
    const unsigned splits = unsigned(splits_for(a, rows));
    const dim3 grid(unsigned(a.kv_heads), unsigned(rows), splits);
    unsigned *arrived = static_cast<unsigned *>(room);
    void *parts = arrived + busy_blocks;
    const auto of_size = [&](auto size, auto warps, auto *to) {
        constexpr int n = decltype(size)::value, w = decltype(warps)::value;
        using R = std::remove_pointer_t<decltype(to)>;
        const auto in_clusters = attend_rows_kernel<n, w, true, R>;
        const bool is_cluster = splits > 1 && splits <= most_blocks_of_cluster
                                && can_begin_early(reinterpret_cast<const void *>(in_clusters));
        launch_clusters(s, is_cluster ? in_clusters : attend_rows_kernel<n, w, false, R>, grid,
                is_cluster ? splits : 1, w * 32, 0, a, sequences, positions, qkv,
                static_cast<part_t<n> *>(parts), arrived, to);
    };
    const auto of_type = [&](auto size, auto warps) {
        if (a.result == type_t::bf16)
            of_size(size, warps, static_cast<bf16_t *>(y));
        else
            of_size(size, warps, static_cast<float *>(y));
    };
    constexpr std::integral_constant<int, most_warps> most;
    constexpr std::integral_constant<int, some_warps> some;
    const int64_t blocks = rows * a.kv_heads * splits;
    if (a.head_size == 128)
        of_type(std::integral_constant<int, 128>(), most);
    else if (blocks > most_at_once && blocks <= some_at_once)
        of_type(std::integral_constant<int, 64>(), some);
    else
        of_type(std::integral_constant<int, 64>(), most);
}

} // namespace llm::cuda
