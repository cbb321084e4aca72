// SPDX-License-Identifier: Apache-2.0
// Attention of rows that follow each other in a sequence, on tensor cores: keys come 64 at a time, the next
// while these are multiplied, and the softmax is corrected as larger scores are found.
#include "attention.cuh"

namespace llm::cuda {

namespace {

// A block has some rows of one query head, each of its warps one or two times 16 of them.
template <int size>
struct span_t {
    static constexpr int warps = 4, threads = warps * 32, keys = 64;
    static constexpr int tiles = size == 64 ? 2 : 1; // as many as registers hold
    static constexpr int warp_rows = tiles * 16, rows = warps * warp_rows;
    // Weights are at most 2^slack.
    static constexpr float slack = 8;
    static constexpr int stride = size + 8; // rows of shared memory begin in different banks
    static constexpr int stage = keys * stride;
    static constexpr size_t shared_bytes = 2 * 2 * stage * sizeof(bf16_t);
};

template <bool is_transposed>
__device__ void load_matrices(uint32_t *r, const bf16_t *row) {
    const auto address = unsigned(__cvta_generic_to_shared(row));
    if (is_transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
}

// 16 bytes into shared memory, as they arrive, or zeros.
__device__ void fetch(bf16_t *to, const bf16_t *from, bool is_there) {
    asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
            "l"(from), "r"(is_there ? 16 : 0)
            : "memory");
}
__device__ void end_fetch() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait_for_fetches() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

__device__ uint32_t bf16_pair_at(const bf16_t *p) { return *reinterpret_cast<const uint32_t *>(p); }
__device__ uint32_t bf16_pair_at(const float *p) {
    const float2 v = *reinterpret_cast<const float2 *>(p);
    return pair_of(v.x, v.y);
}

template <int size, typename R>
__global__ void __launch_bounds__(span_t<size>::threads, 2)
        attend_span_kernel(const attention_t a, int sequence, int rows, int position, R *y) {
    using k = span_t<size>;
    constexpr int vectors = size / 8;
    extern __shared__ __align__(16) bf16_t room[]; // [stage][keys or values]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.x, kv = head / int(a.heads / a.kv_heads), capacity = int(a.capacity);
    // The last rows have the most keys; they begin first.
    const int block_row = int(gridDim.y - 1 - blockIdx.y) * k::rows,
              warp_row = block_row + warp * k::warp_rows;
    const int begin = first_seen(a, position + block_row) / k::keys * k::keys;
    const int end = position + min(block_row + k::rows, rows);
    const int64_t at = (int64_t(sequence) * a.kv_heads + kv) * a.capacity * size;
    const bf16_t *const keys = static_cast<const bf16_t *>(a.keys) + at, *const values =
                                                                                 static_cast<const bf16_t *>(
                                                                                         a.values)
                                                                                 + at;

    // Each thread fetches the same part of some keys and values, from where position p, in `slot`, is on.
    const int part = threadIdx.x % vectors * 8, first_key = threadIdx.x / vectors;
    const auto fetch_all = [&](int stage, int p, int slot) {
        bf16_t *to = room + stage * 2 * k::stage;
#pragma unroll
        for (int key = first_key; key < k::keys; key += k::threads / vectors) {
            int of = slot + key;
            while (of >= capacity) of -= capacity;
            const bool is_there = p + key < end;
            fetch(to + key * k::stride + part, keys + of * size + part, is_there);
            fetch(to + k::stage + key * k::stride + part, values + of * size + part, is_there);
        }
        end_fetch();
    };
    int slot = begin % capacity;
    begin_work();
    fetch_all(0, begin, slot);

    // This lane has rows r and r + 8 of each tile.
    uint32_t q[k::tiles][size / 16][4];
    for (int m = 0; m < k::tiles; m++)
        for (int i = 0; i < 4; i++) {
            const int r = warp_row + m * 16 + lane / 4 + i % 2 * 8;
            const R *from = y + (int64_t(r) * a.heads + head) * size + lane % 4 * 2 + i / 2 * 8;
            for (int e = 0; e < size / 16; e++) q[m][e][i] = r < rows ? bf16_pair_at(from + e * 16) : 0;
        }
    float result[k::tiles][size / 8][4] = {}, top[k::tiles][2], sum[k::tiles][2] = {};
    for (int m = 0; m < k::tiles; m++) top[m][0] = top[m][1] = no_score;

    const int first_of_warp = first_seen(a, position + warp_row),
              last_of_warp = position + min(warp_row + k::warp_rows, rows) - 1;
    for (int key = begin, stage = 0; key < end; key += k::keys, stage ^= 1) {
        wait_for_fetches();
        __syncthreads(); // also: no warp reads the other stage any more
        if (key + k::keys < end) {
            slot += k::keys;
            while (slot >= capacity) slot -= capacity;
            fetch_all(stage ^ 1, key + k::keys, slot);
        }
        // Keys that no row of the warp sees are left out.
        if (warp_row >= rows || key > last_of_warp || key + k::keys <= first_of_warp) continue;
        const bf16_t *k_rows = room + stage * 2 * k::stage, *v_rows = k_rows + k::stage;

        float scores[k::tiles][k::keys / 8][4] = {};
#pragma unroll
        for (int n = 0; n < k::keys / 16; n++)
#pragma unroll
            for (int e = 0; e < size / 16; e++) {
                uint32_t b[4]; // keys 0-7 and 8-15, each the two halves of the elements
                load_matrices<false>(b,
                        k_rows + (n * 16 + lane % 8 + lane / 16 * 8) * k::stride + e * 16 + lane / 8 % 2 * 8);
#pragma unroll
                for (int m = 0; m < k::tiles; m++) {
                    const uint32_t *of = q[m][e];
                    multiply(scores[m][2 * n], of[0], of[1], of[2], of[3], b[0], b[1]);
                    multiply(scores[m][2 * n + 1], of[0], of[1], of[2], of[3], b[2], b[3]);
                }
            }
        // Only where some row of the warp does not see all of the keys.
        if (key + k::keys > position + warp_row + 1 || key < first_seen(a, last_of_warp))
            for (int m = 0; m < k::tiles; m++)
                for (int h = 0; h < 2; h++) {
                    const int of = position + warp_row + m * 16 + lane / 4 + h * 8, first = first_seen(a, of);
                    for (int n = 0; n < k::keys / 8; n++)
                        for (int i = 0; i < 2; i++) {
                            const int p = key + n * 8 + lane % 4 * 2 + i;
                            if (p > of || p < first) scores[m][n][2 * h + i] = unseen;
                        }
                }
#pragma unroll
        for (int m = 0; m < k::tiles; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float most = top[m][h];
                for (int n = 0; n < k::keys / 8; n++)
                    most = fmaxf(most, fmaxf(scores[m][n][2 * h], scores[m][n][2 * h + 1]));
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
                most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
                // What is there already is corrected only for scores that are much larger.
                if (__any_sync(~0u, most > top[m][h] + k::slack)) {
                    const float factor = power_of_2(top[m][h] - most);
                    top[m][h] = most;
                    sum[m][h] *= factor;
                    for (int n = 0; n < size / 8; n++)
                        for (int i = 2 * h; i < 2 * h + 2; i++) result[m][n][i] *= factor;
                }
                for (int n = 0; n < k::keys / 8; n++)
                    for (int i = 2 * h; i < 2 * h + 2; i++)
                        sum[m][h] += scores[m][n][i] = power_of_2(scores[m][n][i] - top[m][h]);
            }
#pragma unroll
        for (int n = 0; n < k::keys / 16; n++) {
            uint32_t p[k::tiles][4];
            for (int m = 0; m < k::tiles; m++)
                for (int i = 0; i < 4; i++) {
                    const float *of = scores[m][2 * n + i / 2] + i % 2 * 2;
                    p[m][i] = pair_of(of[0], of[1]);
                }
#pragma unroll
            for (int e = 0; e < size / 16; e++) {
                uint32_t b[4]; // elements 0-7 and 8-15, each the two halves of the keys
                load_matrices<true>(b, v_rows + (n * 16 + lane % 16) * k::stride + e * 16 + lane / 16 * 8);
#pragma unroll
                for (int m = 0; m < k::tiles; m++) {
                    multiply(result[m][2 * e], p[m][0], p[m][1], p[m][2], p[m][3], b[0], b[1]);
                    multiply(result[m][2 * e + 1], p[m][0], p[m][1], p[m][2], p[m][3], b[2], b[3]);
                }
            }
        }
    }

    for (int m = 0; m < k::tiles; m++)
        for (int h = 0; h < 2; h++) {
            float all = sum[m][h];
            all += __shfl_xor_sync(~0u, all, 1);
            all += __shfl_xor_sync(~0u, all, 2);
            float factor = add_sink(a, head, top[m][h], all);
            factor /= all;
            const int r = warp_row + m * 16 + lane / 4 + h * 8;
            if (r >= rows) continue;
            R *to = y + (r * a.heads + head) * size + lane % 4 * 2;
            for (int n = 0; n < size / 8; n++)
                put_pair(to + n * 8, result[m][n][2 * h] * factor, result[m][n][2 * h + 1] * factor);
        }
}

template <int size, typename R>
void attend(stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position, R *y) {
    using k = span_t<size>;
    const auto kernel = attend_span_kernel<size, R>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(k::shared_bytes)),
            "use shared memory");
    launch(s, kernel, dim3(unsigned(a.heads), unsigned((rows + k::rows - 1) / k::rows)), k::threads,
            k::shared_bytes, a, int(sequence), int(rows), int(position), y);
}

} // namespace

bool can_attend_span(const attention_t &a) {
    return a.cache == type_t::bf16 && (a.head_size == 64 || a.head_size == 128);
}

void attend_span(
        stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position, void *y) {
#ifdef LLM_HOPPER
    if (can_attend_span_on_hopper(a)) return attend_span_on_hopper(s, a, sequence, rows, position, y);
#endif
    const auto to = [&](auto *result) {
        a.head_size == 64 ? attend<64>(s, a, sequence, rows, position, result)
                          : attend<128>(s, a, sequence, rows, position, result);
    };
    a.result == type_t::bf16 ? to(static_cast<bf16_t *>(y)) : to(static_cast<float *>(y));
}

} // namespace llm::cuda
