// SPDX-License-Identifier: Apache-2.0
// The device's reference for grouped_matmul_backward_weights: a CTA for a square of the gradient, whose
// threads each sum one element over the rows of its group, in order.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int side = 16, side_threads = side * side;
constexpr int step = 32; // rows that are decoded together

// Where a group begins: its rows, and its scales in a tensor of 2 dims.
struct group_t {
    int64_t g, first, rows, first_block;
};

__device__ float value(const gradient_operand_t &o, const group_t &group, int64_t i, int64_t column) {
    const int64_t row = group.first + i;
    const uint8_t *at = o.data + column * o.column_step
                        + (o.group_rows ? row / o.group_rows * o.group_step + row % o.group_rows * o.row_step
                                        : row * o.row_step);
    const int bytes = o.dt == mxdnn_f32 ? 4 : o.scales ? 1 : 2;
    const uint32_t code = load_bytes(at, bytes);
    if (!o.scales) return decode(o.dt, code);
    quant_t q;
    q.scale_dt = mxdnn_e8m0;
    q.block = o.block;
    const int64_t block = i / o.block + (o.group_rows ? 0 : group.first_block);
    block_params_t params;
    params.scale = block < o.scales_rows
                           ? o.scales[(o.group_rows ? group.g * o.scales_group_step : 0)
                                      + block * o.scales_row_step + column * o.scales_column_step]
                           : 0xff; // scales that are missing are NaN
    return dequantize(o.dt, q, params, 1.f, code);
}

// The rows of scales of all groups before g.
__device__ int64_t blocks_before(const gradient_args_t &a, int64_t g) {
    __shared__ unsigned long long sum;
    __syncthreads();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    unsigned long long own = 0;
    for (int64_t i = threadIdx.x; i < g; i += side_threads) own += a.groups.blocks_of(i, a.src.block);
    atomicAdd(&sum, own);
    __syncthreads();
    return int64_t(sum);
}

__device__ void store(const gradient_result_t &to, const group_t &group, int64_t k, int64_t n, double sum) {
    uint8_t *at = to.data + group.g * to.group_step + k * to.row_step + n * to.column_step;
    const int bytes = to.dt == mxdnn_f32 ? 4 : 2;
    if (to.has_old) {
        const double old =
                double(to.old_scale) * (decode(to.old_dt, load_bytes(at, bytes)) - to.old_zero_point);
        sum = group.rows == 0 ? old : sum + old; // nothing is added, not even to -0
    }
    store_bytes(at, bytes, encode(to.dt, float(sum)));
}

__global__ void __launch_bounds__(side_threads) gradients(const __grid_constant__ gradient_args_t a) {
    __shared__ float x[step][side], y[step][side];
    const int64_t K = a.src.columns, N = a.diff_dst.columns, down = div_up(K, side), across = div_up(N, side);
    const int own_k = threadIdx.x / side, own_n = threadIdx.x % side;
    for (int64_t i = blockIdx.x; i < a.groups.groups * down * across; i += gridDim.x) {
        const int64_t g = i / (down * across), k = i / across % down * side, n = i % across * side;
        const row_group_t all = a.groups.group(g);
        const group_t group = {g, all.first, a.groups.rows_that_count(g, all.count),
                a.src.scales && !(a.src.group_rows && a.diff_dst.group_rows) ? blocks_before(a, g) : 0};
        double sum = 0;
        for (int64_t r = 0; r < group.rows; r += step) {
            __syncthreads();
            for (int j = threadIdx.x; j < step * side; j += side_threads) {
                const int row = j / side, c = j % side;
                const bool exists = r + row < group.rows;
                x[row][c] = exists && k + c < K ? value(a.src, group, r + row, k + c) : 0.f;
                y[row][c] = exists && n + c < N ? value(a.diff_dst, group, r + row, n + c) : 0.f;
            }
            __syncthreads();
            const int rows = int(group.rows - r < step ? group.rows - r : step);
            for (int j = 0; j < rows; j++) sum += double(x[j][own_k]) * double(y[j][own_n]);
        }
        if (k + own_k < K && n + own_n < N) store(a.to, group, k + own_k, n + own_n, sum);
    }
}

} // namespace

const kernel_entry_t ref_grouped_backward_weights_kernel = {sizeof(gradient_args_t),
        [](const void *) { return load_kernel(gradients); },
        [](const launch_t &at, const void *args) {
            const auto &a = *static_cast<const gradient_args_t *>(args);
            const int64_t squares =
                    a.groups.groups * div_up(a.src.columns, side) * div_up(a.diff_dst.columns, side);
            const int64_t most = int64_t(at.sm_count) * 64;
            if (squares > 0)
                gradients<<<unsigned(squares < most ? squares : most), side_threads, 0, stream_of(at)>>>(a);
            return cudaGetLastError();
        }};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
