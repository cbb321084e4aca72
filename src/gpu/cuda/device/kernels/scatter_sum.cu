// SPDX-License-Identifier: Apache-2.0
// The second half of a grouped matmul with SCATTER_IDX: rows of finished results, in f32, are added where
// they meet, in the order of the rows, and become rows of dst. A CTA makes some columns of one row of dst, or
// all of most rows where there are many, so that each chain is followed once.
//
// Which rows meet is found in one of two ways. Few rows: every CTA looks through all indices. More: two
// kernels before the matmul chain the rows of each row of dst; chains have whatever order the threads came
// in, so they are sorted while they are read.
//
// The matmul, or what finishes its sums, lets this kernel start when all work before it has ended. So
// indices, chains and old values of dst, which are older, are read while it runs, and only the sums wait for
// its end.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/barrier.cuh"
#include "gpu/cuda/interface/scatter_sum_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

constexpr int threads = 256, warps = threads / 32;
constexpr int columns_each = 4, cta_columns = threads * columns_each;
constexpr int chain_part = 32; // rows of a chain that are sorted at a time
static_assert(max_searched_rows % threads == 0, "windows of a row per thread");

// Adds up four columns of the given rows.
struct sum_t {
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    bool any = false;

    __device__ void add(const float4 &x) {
        // The first row is copied, so that -0 stays -0.
        v = any ? make_float4(v.x + x.x, v.y + x.y, v.z + x.z, v.w + x.w) : x;
        any = true;
    }
    __device__ void add_rows(const scatter_sum_args_t &a, const int *list, int count, int column) {
        if (column + columns_each <= a.columns)
            add_rows_of<true>(a, list, count, column);
        else if (column < a.columns)
            add_rows_of<false>(a, list, count, column);
    }

private:
    // `whole`: all four columns exist. Otherwise those beyond the last are not written.
    template <bool whole>
    __device__ void add_rows_of(const scatter_sum_args_t &a, const int *list, int count, int column) {
        constexpr int at_once = 4;
        for (int i = 0; i < count; i += at_once) {
            float4 x[at_once];
#pragma unroll
            for (int j = 0; j < at_once; j++) {
                if (i + j >= count) continue;
                const float *row = a.rows + list[i + j] * a.row_stride + column;
                if (whole)
                    x[j] = *reinterpret_cast<const float4 *>(row);
                else
                    x[j] = make_float4(row[0], column + 1 < a.columns ? row[1] : 0.f,
                            column + 2 < a.columns ? row[2] : 0.f, 0.f);
            }
#pragma unroll
            for (int j = 0; j < at_once; j++)
                if (i + j < count) add(x[j]);
        }
    }
};

// Which of a few rows are computed, as bits.
__device__ void find_computed(const scatter_sum_args_t &a, uint32_t *computed) {
    for (int i = threadIdx.x; i < max_searched_rows / 32; i += threads) computed[i] = 0;
    __syncthreads();
    for (int64_t g = threadIdx.x; g < a.groups.groups; g += threads) {
        const row_group_t group = a.groups.group(g);
        if (group.expert < 0) continue;
        for (int64_t r = group.first; r < group.first + group.count; r++)
            atomicOr(&computed[r / 32], 1u << (r % 32));
    }
    __syncthreads();
}

__device__ void search_rows(const scatter_sum_args_t &a, int dst_row, int column, sum_t &sum) {
    constexpr int windows = max_searched_rows / threads;
    __shared__ uint32_t computed[max_searched_rows / 32];
    __shared__ int list[threads], warp_count[warps];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    int to[windows];
#pragma unroll
    for (int w = 0; w < windows; w++) {
        const int r = w * threads + thread;
        to[w] = r < a.M ? a.scatter[r] : -1;
    }
    find_computed(a, computed);
#pragma unroll
    for (int w = 0; w < windows; w++) {
        if (w > 0 && w * threads >= a.M) break;
        const int r = w * threads + thread;
        const bool mine = to[w] == dst_row && (computed[r / 32] >> (r % 32) & 1);
        const uint32_t votes = __ballot_sync(~0u, mine);
        if (lane == 0) warp_count[warp] = __popc(votes);
        __syncthreads();
        int before = 0, count = 0;
        for (int i = 0; i < warps; i++) {
            if (i < warp) before += warp_count[i];
            count += warp_count[i];
        }
        if (mine) list[before + __popc(votes & ((1u << lane) - 1))] = r;
        __syncthreads();
        if (w == 0) start_of_early_kernel();
        sum.add_rows(a, list, count, column);
    }
}

// `pieces` times the columns of a CTA.
template <int pieces>
__device__ void follow_chain(const scatter_sum_args_t &a, int dst_row, int column, sum_t (&sum)[pieces]) {
    __shared__ int list[chain_part], shared_count;
    int last = -1; // rows up to this one have been added
    for (;;) {
        if (threadIdx.x == 0) {
            int count = 0;
            // The smallest ones beyond `last`, ascending.
            for (int r = a.first[dst_row]; r >= 0; r = a.next[r]) {
                if (r <= last || (count == chain_part && r > list[count - 1])) continue;
                int i = count < chain_part ? count++ : count - 1;
                for (; i > 0 && list[i - 1] > r; i--) list[i] = list[i - 1];
                list[i] = r;
            }
            shared_count = count;
        }
        __syncthreads();
        const int count = shared_count;
        if (last < 0) start_of_early_kernel();
#pragma unroll
        for (int p = 0; p < pieces; p++) sum[p].add_rows(a, list, count, column + p * cta_columns);
        if (count < chain_part) return;
        last = list[count - 1];
        __syncthreads();
    }
}

__device__ void store(const scatter_sum_args_t &a, int dst_row, int column, const sum_t &sum,
        const float (&old)[columns_each]) {
    if (column >= a.columns || (a.keeps && !sum.any)) return;
    const int valid = min(columns_each, a.columns - column);
    const int64_t at = dst_row * a.dst_stride + column;
    float v[columns_each] = {sum.v.x, sum.v.y, sum.v.z, sum.v.w};
    if (a.old_scale != 0.f)
        for (int j = 0; j < columns_each; j++) v[j] += a.old_scale * old[j];
    store_values<columns_each>(a.dst, a.dst_type, at, v, valid);
}

template <int pieces>
__global__ void __launch_bounds__(threads) sum_rows(const scatter_sum_args_t a) {
    if (a.M == 0) start_of_early_kernel(); // there is no matmul before it
    const int dst_row = blockIdx.x, column = blockIdx.y * pieces * cta_columns + threadIdx.x * columns_each;
    sum_t sum[pieces];
    float old[pieces][columns_each] = {};
    if (a.old_scale != 0.f)
#pragma unroll
        for (int i = 0; i < pieces * columns_each; i++)
            if (const int c = column + i / columns_each * cta_columns + i % columns_each; c < a.columns)
                old[i / columns_each][i % columns_each] =
                        load_value(a.dst, a.dst_type, dst_row * a.dst_stride + c);
    if (a.next)
        follow_chain(a, dst_row, column, sum);
    else if constexpr (pieces == 1)
        search_rows(a, dst_row, column, sum[0]);
#pragma unroll
    for (int p = 0; p < pieces; p++) store(a, dst_row, column + p * cta_columns, sum[p], old[p]);
}

__global__ void __launch_bounds__(threads) clear_chains(const scatter_sum_args_t a) {
    start_of_early_kernel();
    for (int64_t i = blockIdx.x * threads + threadIdx.x; i < a.dst_rows; i += gridDim.x * threads)
        a.first[i] = -1;
}

// Processes groups in order. A row joins the chain of its row of dst.
__global__ void __launch_bounds__(threads) link_rows(const scatter_sum_args_t a) {
    start_of_early_kernel();
    for (int64_t g = blockIdx.x; g < a.groups.groups; g += gridDim.x) {
        const row_group_t group = a.groups.group(g);
        if (group.expert < 0) continue;
        for (int64_t r = group.first + threadIdx.x; r < group.first + group.count; r += threads) {
            const int to = a.scatter[r];
            if (to >= 0 && to < a.dst_rows) a.next[r] = atomicExch(a.first + to, int(r));
        }
    }
}

constexpr int ctas_at_most = 1024;
constexpr int many_rows = 2048, many_pieces = 3;

cudaError_t launch_link(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const scatter_sum_args_t *>(args);
    const unsigned clear = unsigned(std::min((a.dst_rows + threads - 1) / threads, ctas_at_most));
    const cudaError_t e = launch_kernel(at, clear_chains, {clear, threads}, a);
    if (e != cudaSuccess) return e;
    const unsigned link = unsigned(std::min<int64_t>(a.groups.groups, ctas_at_most));
    return launch_kernel(at, link_rows, {link, threads, 0, early}, a);
}

cudaError_t launch_sum(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const scatter_sum_args_t *>(args);
    const bool has_many = a.next && a.dst_rows >= many_rows;
    const int64_t columns = cta_columns * (has_many ? many_pieces : 1);
    const dim3 grid(unsigned(a.dst_rows), unsigned((a.columns + columns - 1) / columns));
    return launch_kernel(at, has_many ? sum_rows<many_pieces> : sum_rows<1>, {grid, threads, 0, early}, a);
}

cudaError_t prepare_link(const void *) {
    const cudaError_t e = load_kernel(clear_chains);
    return e != cudaSuccess ? e : load_kernel(link_rows);
}

cudaError_t prepare_sum(const void *) {
    const cudaError_t e = load_kernel(sum_rows<1>);
    return e != cudaSuccess ? e : load_kernel(sum_rows<many_pieces>);
}

} // namespace

const kernel_entry_t scatter_link_kernel = {sizeof(scatter_sum_args_t), prepare_link, launch_link};
const kernel_entry_t scatter_sum_kernel = {sizeof(scatter_sum_args_t), prepare_sum, launch_sum};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
