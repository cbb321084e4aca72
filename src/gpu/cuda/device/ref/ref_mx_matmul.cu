// SPDX-License-Identifier: Apache-2.0
// The device's reference for mx_matmul: one thread computes one element of dst, or one block of a quantised
// dst.
#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ref/threads.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// One row of dst.
struct row_t {
    const matmul_args_t &a;
    int nd;
    int64_t idx[max_ndims] = {};
    matrix_view_t src, wei;
    float src_global, wei_global;

    __device__ row_t(const matmul_args_t &args, const int64_t *row)
        : a(args), nd(args.dst.ndims), src(args.src, row), wei(args.wei, row), src_global(src.global()),
          wei_global(wei.global()) {
        for (int i = 0; i < nd - 1; i++) idx[i] = row[i];
    }

    __device__ const int64_t *at(int64_t n) {
        idx[nd - 1] = n;
        return idx;
    }
    // A post-op other than gated, on column n.
    __device__ __noinline__ double apply(const post_op_args_t &o, double x, int64_t n) {
        switch (o.kind) {
        case mxdnn_eltwise: return ref_eltwise(o.alg, x, o.alpha, o.beta);
        case mxdnn_binary: return ref_binary(o.alg, x, load_value(o.src1, at(n), nd));
        case mxdnn_sum:
            return x + double(o.scale) * (decode(o.dt, load_code(a.dst.elements, at(n), nd)) - o.zero_point);
        default: return x;
        }
    }
    // The sum of products of column n with bias and the post-ops before `end`.
    __device__ __noinline__ double column(int64_t n, int end) {
        const int64_t m = idx[nd - 2];
        double sum = 0;
        source_values_t x(src, a.recipe, m, a.K, src_global);
        for (int64_t k = 0; k < a.K; k++) sum += x.next() * double(wei.value(k, n, wei_global));
        if (a.bias.data) sum += load_value(a.bias, at(n), nd);
        for (int i = 0; i < end; i++) sum = apply(a.ops[i], sum, n);
        return sum;
    }
    __device__ float result(int64_t n) {
        int gated = 0;
        while (gated < a.post_ops && a.ops[gated].kind != mxdnn_gated) gated++;
        if (gated == a.post_ops) return float(column(n, gated));
        const post_op_args_t &o = a.ops[gated];
        const double g = column(o.halves ? n : 2 * n, gated),
                     u = column(o.halves ? n + a.columns : 2 * n + 1, gated);
        double x = ref_gated(o.alg, g, u, o.alpha, o.beta);
        for (int i = gated + 1; i < a.post_ops; i++) x = apply(a.ops[i], x, n);
        return float(x);
    }
};

__device__ void locate(const matmul_args_t &a, int64_t row, int64_t *idx) {
    batch_index(row / a.M, a.dst.ndims, a.dims, idx);
    idx[a.dst.ndims - 2] = row % a.M;
}

__global__ void __launch_bounds__(threads) clear_globals(const __grid_constant__ matmul_args_t a) {
    for (int64_t i = threadIdx.x; i < a.globals; i += threads) a.dst.global[i] = 0;
}

// The largest magnitudes are collected in the memory of the scales. Bits of non-negative floats have the
// order of integers.
__global__ void __launch_bounds__(threads) find_largest(const __grid_constant__ matmul_args_t a) {
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i >= a.rows * a.columns) return;
    int64_t idx[max_ndims];
    locate(a, i / a.columns, idx);
    row_t row(a, idx);
    const float amax = nvfp4_global_amax(0, row.result(i % a.columns));
    const matrix_view_t dst(a.dst, idx);
    atomicMax(reinterpret_cast<unsigned *>(dst.global_at()), bits_of(amax));
}

__global__ void __launch_bounds__(threads) finish_globals(const __grid_constant__ matmul_args_t a) {
    for (int64_t i = threadIdx.x; i < a.globals; i += threads)
        a.dst.global[i] = nvfp4_global_scale(a.dst.global[i]);
}

__global__ void __launch_bounds__(threads) results(const __grid_constant__ matmul_args_t a) {
    const int64_t block = a.dst.quantised ? a.dst.quant.block : 1, blocks = div_up(a.columns, block);
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i >= a.rows * blocks) return;
    int64_t idx[max_ndims];
    locate(a, i / blocks, idx);
    const int64_t first = i % blocks * block;
    const int count = int(a.columns - first < block ? a.columns - first : block);
    for_sharers(a.dst, a.dims, idx, [&] {
        row_t row(a, idx);
        const matrix_view_t dst(a.dst, idx);
        float x[max_block];
        for (int j = 0; j < count; j++) x[j] = row.result(first + j);
        store_block(a, dst, idx[a.dst.ndims - 2], first, count, x);
    });
}

cudaError_t prepare_matmul(const void *) {
    for (auto *k : {clear_globals, find_largest, finish_globals, results})
        if (const cudaError_t e = load_kernel(k)) return e;
    return cudaSuccess;
}

cudaError_t launch_matmul(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const matmul_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    const int64_t block = a.dst.quantised ? a.dst.quant.block : 1;
    if (a.dynamic_global) clear_globals<<<1, threads, 0, s>>>(a);
    if (a.rows * a.columns == 0) return cudaGetLastError();
    if (a.dynamic_global) {
        find_largest<<<unsigned(div_up(a.rows * a.columns, threads)), threads, 0, s>>>(a);
        finish_globals<<<1, threads, 0, s>>>(a);
    }
    results<<<unsigned(div_up(a.rows * div_up(a.columns, block), threads)), threads, 0, s>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_mx_matmul_kernel = {sizeof(matmul_args_t), prepare_matmul, launch_matmul};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
