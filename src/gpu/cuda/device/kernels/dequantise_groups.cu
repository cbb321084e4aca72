// SPDX-License-Identifier: Apache-2.0
// MXFP8 rows in groups, with blocks along the rows, become rows of bf16, which holds their values exactly but
// for the ends of its range. A CTA makes a block of up to 32 rows; each thread makes eight columns of it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common/formats/e8m0.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/store.cuh"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 128, columns_each = 8, columns = threads * columns_each;
constexpr int block = 32, rows_at_once = 8;

// A block of rows: its group, its number in it, and its row of scales.
struct place_t {
    int group, block;
    int64_t scales_row;
};

// Called by one warp. Where block number `i` of all groups is; group -1 if there is none.
__device__ void find(const counted_groups_t &groups, int64_t i, place_t &found) {
    constexpr int each = max_gradient_groups / 32;
    const int lane = threadIdx.x;
    int64_t blocks[each], own = 0;
#pragma unroll
    for (int j = 0; j < each; j++) {
        const int g = lane * each + j;
        blocks[j] = g < groups.groups ? groups.blocks_of(g, block) : 0;
        own += blocks[j];
    }
    int64_t end = own;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int64_t before = __shfl_up_sync(~0u, end, d);
        if (lane >= d) end += before;
    }
    if (lane == 31 && i >= end) found.group = -1;
    int64_t first = end - own;
    if (i < first || i >= end) return;
#pragma unroll
    for (int j = 0; j < each; j++) {
        if (i >= first && i < first + blocks[j]) found = {lane * each + j, int(i - first), i};
        first += blocks[j];
    }
}

template <bool e5m2>
__device__ void make_rows(const gradient_operand_t &from, uint16_t *to, int64_t stride, int64_t first,
        int rows, int64_t scales_row, int64_t column) {
    float scale[columns_each];
    const uint8_t *scales = from.scales + scales_row * from.scales_row_step + column;
#pragma unroll
    for (int c = 0; c < columns_each; c++)
        scale[c] = e8m0_t::decode(scales_row < from.scales_rows ? scales[c] : 0xff);
    const uint8_t *at = from.data + first * from.row_step + column;
    uint16_t *out = to + first * stride + column;
    // Several rows are read before the first of them is stored.
    for (int r = 0; r < rows; r += rows_at_once) {
        uint2 codes[rows_at_once];
#pragma unroll
        for (int i = 0; i < rows_at_once; i++)
            if (r + i < rows) codes[i] = *reinterpret_cast<const uint2 *>(at + (r + i) * from.row_step);
#pragma unroll
        for (int i = 0; i < rows_at_once; i++) {
            if (r + i >= rows) break;
            uint32_t words[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const auto two = __nv_fp8x2_storage_t((j < 2 ? codes[i].x : codes[i].y) >> j % 2 * 16);
                const __half2 values(__nv_cvt_fp8x2_to_halfraw2(two, e5m2 ? __NV_E5M2 : __NV_E4M3)); // exact
                const __nv_bfloat162 pair = __floats2bfloat162_rn(
                        __low2float(values) * scale[2 * j], __high2float(values) * scale[2 * j + 1]);
                words[j] = *reinterpret_cast<const uint32_t *>(&pair);
            }
            ptx::store_16(out + (r + i) * stride, make_uint4(words[0], words[1], words[2], words[3]), true);
        }
    }
}

__global__ void __launch_bounds__(threads)
        dequantise_groups(const __grid_constant__ dequantise_groups_args_t a) {
    __shared__ place_t found;
    start_of_early_kernel();
    if (threadIdx.x < 32) find(a.groups, blockIdx.x, found);
    __syncthreads();
    const gradient_operand_t &from = a.from[blockIdx.z];
    const int64_t column = int64_t(blockIdx.y) * columns + threadIdx.x * columns_each;
    if (found.group < 0 || column >= from.columns) return;
    const row_group_t group = a.groups.group(found.group);
    const int64_t left = a.groups.rows_that_count(found.group, group.count) - int64_t(found.block) * block;
    if (left <= 0) return;
    const int64_t first = group.first + int64_t(found.block) * block, stride = a.to_stride[blockIdx.z];
    const int rows = int(left < block ? left : block);
    if (from.dt == mxdnn_f8_e5m2)
        make_rows<true>(from, a.to[blockIdx.z], stride, first, rows, found.scales_row, column);
    else
        make_rows<false>(from, a.to[blockIdx.z], stride, first, rows, found.scales_row, column);
}

} // namespace

const kernel_entry_t dequantise_groups_kernel = {sizeof(dequantise_groups_args_t),
        [](const void *) { return load_kernel(dequantise_groups); },
        [](const launch_t &at, const void *args) {
            const auto &a = *static_cast<const dequantise_groups_args_t *>(args);
            const int64_t most =
                    a.from[0].columns > a.from[1].columns ? a.from[0].columns : a.from[1].columns;
            // Each group may end with a block that is not full.
            const dim3 grid(
                    unsigned(a.groups.rows / block + a.groups.groups), unsigned(div_up(most, columns)), 2);
            return launch_kernel(at, dequantise_groups, {grid, dim3(threads), 0, early}, a);
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
