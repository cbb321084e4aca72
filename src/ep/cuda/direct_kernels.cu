// SPDX-License-Identifier: Apache-2.0
#include "ep/cuda/direct_kernels.hpp"

#include "ep/cuda/rows.cuh"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

constexpr int route_threads = 512, most_direct_threads = 1024, blocks_beside_experts = 16;

template <typename T>
__device__ T *at_peer(ncclWindow_t window, size_t at, int peer) {
    return static_cast<T *>(ncclGetLsaPointer(window, at, peer));
}

__device__ uint64_t now() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// Blocks of one number on all ranks meet: what one has written before, all of them can read after.
__device__ void barrier(const ranks_t &all, int number) {
    const uint32_t round = all.rounds[number] + 1;
    __syncthreads();
    for (int p = threadIdx.x; p < all.ranks; p += blockDim.x) {
        if (p == all.rank) continue;
        uint32_t *to = at_peer<uint32_t>(all.flags, 0, p) + number * all.ranks + all.rank;
        const uint32_t *from = at_peer<uint32_t>(all.flags, 0, all.rank) + number * all.ranks + p;
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(round) : "memory");
        const uint64_t begin = now();
        for (;;) {
            uint32_t found;
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
            if (int32_t(found - round) >= 0) break;
            const bool late = now() - begin > all.timeout;
            if (late) note(&all.report->late, p, 0);
            // Volatile: another block may have noted it.
            if (late || *static_cast<volatile uint64_t *>(&all.report->late.packed) != ~uint64_t(0)) break;
        }
    }
    if (threadIdx.x == 0) all.rounds[number] = round;
    __syncthreads();
}

// Whether every rank is ready and right, and how many rows each gets. What this rank does wrong is noted.
__device__ bool check_matrix(const ranks_t &who, const int32_t *matrix, const groups_t &g) {
    __shared__ int wrong;
    const int ranks = who.ranks, rank = who.rank;
    const int experts = int(g.local_experts) * ranks, step = experts + 1;
    if (threadIdx.x == 0) wrong = 0;
    __syncthreads();
    for (int r = threadIdx.x / warp; r < ranks; r += route_threads / warp) {
        int64_t sent = 0, arrive = 0;
        const int32_t rows = matrix[r * step + experts];
        for (int e = threadIdx.x % warp; e < experts; e += warp) {
            const int32_t count = matrix[r * step + e];
            if (count < 0) {
                wrong = 1;
                if (r == rank && rows >= 0) note(&who.report->bad_count, e, count);
            }
            sent += count;
        }
        for (int i = threadIdx.x % warp; i < experts; i += warp) // rows of each rank for each expert of r
            arrive += matrix[i / g.local_experts * step + r * g.local_experts + i % g.local_experts];
        for (int d = warp / 2; d > 0; d /= 2) {
            sent += __shfl_down_sync(~0u, sent, d);
            arrive += __shfl_down_sync(~0u, arrive, d);
        }
        if (threadIdx.x % warp != 0) continue;
        if (rows < 0) { // it refuses
            wrong = 1;
        } else if (sent != rows) {
            wrong = 1;
            if (r == rank)
                note(&who.report->bad_sum, sent < 0 ? 0 : sent > INT32_MAX ? INT32_MAX : sent, rows);
        } else if (arrive > g.capacity) {
            wrong = 1;
            if (r == rank) note(&who.report->too_many, arrive, int32_t(g.capacity));
        }
    }
    __syncthreads();
    return wrong == 0;
}

// One block. Counts of this rank to all, and then what follows from those of all.
__global__ void __launch_bounds__(route_threads) route_kernel(
        ranks_t all, ncclWindow_t window, size_t matrix_at, groups_t g, const int32_t *counts, int32_t rows) {
    const int ranks = all.ranks, rank = all.rank, local = int(g.local_experts), experts = local * ranks,
              step = experts + 1;
    barrier(all, 0);
    for (int p = 0; p < ranks; p++) {
        int32_t *to = at_peer<int32_t>(window, matrix_at, p) + rank * step;
        for (int e = threadIdx.x; e < experts; e += route_threads) to[e] = counts ? counts[e] : 0;
        if (threadIdx.x == 0) to[experts] = counts ? rows : -1;
    }
    barrier(all, 0);
    const int32_t *matrix = at_peer<const int32_t>(window, matrix_at, rank);
    const bool good = check_matrix(all, matrix, g);
    const auto count = [&](int from, int expert) { return good ? matrix[from * step + expert] : 0; };
    // A thread for each rank: where its groups begin, and where in them this rank's rows go.
    for (int p = threadIdx.x; p < ranks; p += route_threads) {
        int64_t begin = 0;
        for (int e = 0; e < local; e++) {
            int64_t before = 0, sum = 0;
            for (int r = 0; r < ranks; r++) {
                const int32_t n = count(r, p * local + e);
                if (r < rank) before += n;
                sum += n;
                if (p == rank) g.received[r * local + e] = n;
            }
            g.target[p * local + e] = int32_t(begin + before);
            if (sum < 1) sum = 1;
            begin += (sum + g.alignment - 1) / g.alignment * g.alignment;
            if (p == rank) g.starts[e + 1] = int32_t(begin);
        }
    }
    if (threadIdx.x == route_threads - 1) {
        g.starts[0] = 0;
        int32_t sum = 0;
        for (int e = 0; e < experts; e++) {
            g.first[e] = sum;
            sum += count(rank, e);
        }
        g.first[experts] = sum;
    }
}

// Where the row is: its expert, and the row of its groups.
__device__ __forceinline__ int expert_of(const int32_t *first, int experts, int64_t row) {
    int low = 0, high = experts - 1; // the last expert whose rows begin at or before `row`
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (first[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// A warp for each row of the experts whose rows move. Rows for all ranks take turns, so that no two ranks
// write to the same one alone. Where no rank has rows, the first experts stand for all.
template <typename fn_t>
__device__ __forceinline__ void for_each_row(const ranks_t &all, const groups_t &g, int64_t rows, fn_t &&fn) {
    extern __shared__ int32_t shared[]; // first, and then target
    const int local = int(g.local_experts), experts = local * all.ranks, begin = int(g.begin),
              end = int(g.end), warps_here = int(blockDim.x) / warp;
    if (rows == 0) return;
    for (int e = threadIdx.x; e <= experts; e += blockDim.x) shared[e] = g.first[e];
    for (int e = threadIdx.x; e < experts; e += blockDim.x) shared[experts + 1 + e] = g.target[e];
    __syncthreads();
    const int64_t own = int64_t(blockIdx.x) * warps_here + threadIdx.x / warp,
                  step = int64_t(gridDim.x) * warps_here;
    if (shared[experts] < rows) {
        for (int64_t r = own; begin == 0 && r < rows; r += step) fn(r, 0, int64_t(-1));
        return;
    }
    int most = 0;
    for (int p = 0; p < all.ranks; p++) most = max(most, shared[p * local + end] - shared[p * local + begin]);
    for (int64_t i = own; i < int64_t(most) * all.ranks; i += step) {
        const int p = int((i + all.rank) % all.ranks);
        const int64_t r = shared[p * local + begin] + i / all.ranks;
        if (r >= shared[p * local + end]) continue;
        const int e = expert_of(shared, experts, r);
        fn(r, e, int64_t(shared[experts + 1 + e]) + r - shared[e]);
    }
}

__device__ void clear_row(uint8_t *dst, size_t bytes) {
    for (size_t i = threadIdx.x % warp; i < bytes; i += warp) dst[i] = 0;
}

// The padding of this rank's own groups.
__device__ void clear_padding(
        const ranks_t &all, const window_rows_t &to, const groups_t &g, const row_format_t &f) {
    const int local = int(g.local_experts);
    uint8_t *codes = at_peer<uint8_t>(to.window, to.codes, all.rank),
            *scales = at_peer<uint8_t>(to.window, to.scales, all.rank);
    for (int e = int(g.begin) + blockIdx.x; e < int(g.end); e += gridDim.x) {
        int64_t begin = g.starts[e];
        for (int r = 0; r < all.ranks; r++) begin += g.received[r * local + e];
        for (int64_t row = begin + threadIdx.x / warp; row < g.starts[e + 1]; row += blockDim.x / warp) {
            clear_row(codes + size_t(row) * f.codes, f.codes);
            if (f.scales > 0) clear_row(scales + size_t(row) * f.scales, f.scales);
        }
    }
}

__global__ void __launch_bounds__(most_direct_threads) push_kernel(ranks_t all, window_rows_t to, groups_t g,
        row_format_t f, array_t src, const int32_t *indices, int64_t rows, int64_t src_rows) {
    const int local = int(g.local_experts);
    barrier(all, 1 + blockIdx.x);
    clear_padding(all, to, g, f);
    for_each_row(all, g, rows, [&](int64_t r, int e, int64_t row) {
        if (row < 0) return;
        int64_t from = indices ? indices[r] : r;
        const int peer = e / local;
        uint8_t *codes = at_peer<uint8_t>(to.window, to.codes, peer) + size_t(row) * f.codes,
                *scales = at_peer<uint8_t>(to.window, to.scales, peer) + size_t(row) * f.scales;
        if (from < 0 || from >= src_rows) {
            if (threadIdx.x % warp == 0) note(&all.report->bad_index, r, int32_t(from));
            clear_row(codes, f.codes);
            if (f.scales > 0) clear_row(scales, f.scales);
            return;
        }
        copy_row(codes, src.codes + size_t(from) * f.codes, f.codes);
        if (f.scales > 0) copy_row(scales, src.scales + size_t(from) * f.scales, f.scales);
    });
    barrier(all, 1 + blockIdx.x);
}

__global__ void __launch_bounds__(most_direct_threads)
        pull_kernel(ranks_t all, window_rows_t from, groups_t g, row_format_t f, uint8_t *dst, int64_t rows) {
    const int local = int(g.local_experts);
    barrier(all, 1 + blockIdx.x);
    for_each_row(all, g, rows, [&](int64_t r, int e, int64_t row) {
        if (row < 0)
            clear_row(dst + size_t(r) * f.codes, f.codes);
        else
            copy_row(dst + size_t(r) * f.codes,
                    at_peer<const uint8_t>(from.window, from.codes, e / local) + size_t(row) * f.codes,
                    f.codes);
    });
}

size_t shared_bytes(const ranks_t &all, const groups_t &g) {
    return (2 * size_t(g.local_experts) * size_t(all.ranks) + 1) * sizeof(int32_t);
}

// Alone on the device, or beside the experts of other chunks: blocks that fill a multiprocessor each, so that
// they leave the others alone.
struct shape_t {
    int blocks, threads;
};
shape_t shape_of(const groups_t &groups) {
    if (groups.end - groups.begin == groups.local_experts) return {direct_blocks, threads};
    return {blocks_beside_experts, most_direct_threads};
}

} // namespace

cudaError_t launch_route(cudaStream_t stream, const ranks_t &all, ncclWindow_t window, size_t matrix,
        const groups_t &groups, const int32_t *counts, dim_t rows) {
    route_kernel<<<1, route_threads, 0, stream>>>(all, window, matrix, groups, counts, int32_t(rows));
    return cudaGetLastError();
}

cudaError_t launch_push(cudaStream_t stream, const ranks_t &all, const window_rows_t &to,
        const groups_t &groups, const row_format_t &format, const array_t &src, const int32_t *indices,
        dim_t rows, dim_t src_rows) {
    const shape_t shape = shape_of(groups);
    push_kernel<<<shape.blocks, shape.threads, shared_bytes(all, groups), stream>>>(
            all, to, groups, format, src, indices, rows, src_rows);
    return cudaGetLastError();
}

cudaError_t launch_pull(cudaStream_t stream, const ranks_t &all, const window_rows_t &from,
        const groups_t &groups, const row_format_t &format, uint8_t *dst, dim_t rows) {
    const shape_t shape = shape_of(groups);
    pull_kernel<<<shape.blocks, shape.threads, shared_bytes(all, groups), stream>>>(
            all, from, groups, format, dst, rows);
    return cudaGetLastError();
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
