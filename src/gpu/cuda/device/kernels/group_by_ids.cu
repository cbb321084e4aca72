// SPDX-License-Identifier: Apache-2.0
// Rows with the id of an expert each, one expert's after the other's. A CTA has an expert, and looks through
// all ids: how many come before its own is where its rows begin. The last one has the rows of nobody.
#include "common/formats/bf16.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/interface/group_by_ids_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 512, warps = threads / 32;

// For all threads: the sum of their numbers, and the sum of those of the threads before.
struct sums_t {
    int all, before;
};
__device__ sums_t sum_of_all(int mine) {
    __shared__ int of_warp[warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int up_to = mine;
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, up_to, d);
        if (lane >= d) up_to += other;
    }
    __syncthreads(); // the result of the previous call has been read
    if (lane == 31) of_warp[warp] = up_to;
    __syncthreads();
    sums_t s = {0, up_to - mine};
    for (int i = 0; i < warps; i++) {
        s.all += of_warp[i];
        if (i < warp) s.before += of_warp[i];
    }
    return s;
}

__global__ void __launch_bounds__(threads) group_rows(const __grid_constant__ group_by_ids_args_t a) {
    start_of_early_kernel();
    const int own = blockIdx.x, experts = gridDim.x - 1, rows = int(a.rows.rows);
    // The position of rows that belong to no expert.
    const auto place_of = [&](int row) {
        const int expert = a.rows.group(row).expert;
        return expert < 0 ? experts : expert;
    };
    const int each = (rows + threads - 1) / threads, begin = min(int(threadIdx.x) * each, rows),
              end = min(begin + each, rows);
    int mine = 0, earlier = 0;
    for (int r = begin; r < end; r++) {
        const int place = place_of(r);
        mine += place == own, earlier += place < own;
    }
    const int first = sum_of_all(earlier).all;
    int to = first + sum_of_all(mine).before;
    if (threadIdx.x == 0) a.starts[own] = first;
    if (mine == 0) return;
    for (int r = begin; r < end; r++) {
        if (place_of(r) != own) continue;
        a.gather_out[to] = own == experts ? -1 : a.gather ? a.gather[r] : r;
        a.scatter_out[to] = own == experts ? -1 : a.scatter ? a.scatter[r] : r;
        if (a.topk_out)
            a.topk_out[to] = a.topk_dt == mxdnn_f32
                                     ? static_cast<const float *>(a.topk)[r]
                                     : bf16_t::decode(static_cast<const uint16_t *>(a.topk)[r]);
        to++;
    }
}

} // namespace

const kernel_entry_t group_by_ids_kernel = {sizeof(group_by_ids_args_t),
        [](const void *) { return load_kernel(group_rows); },
        [](const launch_t &at, const void *args) {
            const auto &a = *static_cast<const group_by_ids_args_t *>(args);
            return launch_kernel(at, group_rows, {unsigned(a.rows.experts + 1), threads, 0, early}, a);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
