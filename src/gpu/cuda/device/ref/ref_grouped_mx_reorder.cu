// SPDX-License-Identifier: Apache-2.0
// The device's reference for mx_reorder of rows in groups: CTAs take one group after the other, as a matrix
// of its own.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/ref/ref_reorder_task.cuh"
#include "gpu/cuda/device/ref/threads.cuh"
#include "gpu/cuda/interface/quantise_groups_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int64_t most_ctas = 1024, most_groups_at_once = 65535;

// One side of a group: its rows and its scales, which begin after those of the groups before it. False: there
// is no room for them.
__device__ bool narrow(
        matrix_args_t &m, const grouped_reorder_args_t &a, int i, const row_group_t &rows, int64_t group) {
    m.elements.data += rows.first * m.elements.step[0];
    const group_scales_t &s = a.scales[i];
    if (!s.block) return true;
    int64_t first = rows.first;
    if (!s.follows_rows()) {
        first = 0;
        for (int64_t g = 0; g < group; g++) first += s.length(a.groups.group(g).count);
    }
    m.scales.data += first * (s.swizzled ? 1 : m.scales.step[0]);
    if (s.swizzled && s.of_rows) m.swizzle_cols = div_up(rows.count, s.block);
    return first + s.length(rows.count) <= a.limits[i];
}

// Padding of the 128x4 order is zero.
__device__ void clear_padding(const matrix_args_t &m, const group_scales_t &s, int64_t rows) {
    const int64_t lines = s.of_rows ? s.columns : rows,
                  blocks = div_up(s.of_rows ? rows : s.columns, s.block);
    const int64_t all_lines = round_up(lines, swizzle_128x4::tile_rows),
                  all_blocks = round_up(blocks, swizzle_128x4::tile_cols);
    for (int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x; i < all_lines * all_blocks;
            i += int64_t(gridDim.x) * threads)
        if (i / all_blocks >= lines || i % all_blocks >= blocks)
            m.scales.data[swizzle_128x4::offset(i / all_blocks, i % all_blocks, blocks)] = 0;
}

__global__ void __launch_bounds__(threads) move_groups(const __grid_constant__ grouped_reorder_args_t a) {
    __shared__ __align__(16) uint8_t of_group[sizeof(reorder_args_t)];
    __shared__ bool fits;
    reorder_args_t &one = *reinterpret_cast<reorder_args_t *>(of_group);
    for (int64_t g = blockIdx.y; g < a.groups.groups; g += gridDim.y) {
        const row_group_t rows = a.groups.group(g);
        __syncthreads();
        if (threadIdx.x == 0) {
            one = a.all;
            one.rows = one.dims[0] = rows.count;
            const bool src = narrow(one.src, a, 0, rows, g), dst = narrow(one.dst, a, 1, rows, g);
            fits = src && dst;
        }
        __syncthreads();
        if (!fits || rows.count == 0) continue;
        if (a.scales[1].swizzled && a.all.dynamic) clear_padding(one.dst, a.scales[1], rows.count);
        const int64_t tasks = reorder_tasks(one);
        for (int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x; i < tasks;
                i += int64_t(gridDim.x) * threads)
            reorder_task(one, i);
    }
}

cudaError_t prepare_grouped_reorder(const void *) { return load_kernel(move_groups); }

cudaError_t launch_grouped_reorder(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const grouped_reorder_args_t *>(args);
    const auto least = [](int64_t x, int64_t y) { return unsigned(x < y ? x : y); };
    const dim3 grid(least(div_up(reorder_tasks(a.all), int64_t(threads)), most_ctas),
            least(a.groups.groups, most_groups_at_once));
    move_groups<<<grid, threads, 0, stream_of(at)>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_grouped_mx_reorder_kernel = {
        sizeof(grouped_reorder_args_t), prepare_grouped_reorder, launch_grouped_reorder};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
