// SPDX-License-Identifier: Apache-2.0
// The device's reference for moe_permute and moe_unpermute: a CTA for every row of the destination. Counts
// and indices are on the device, so they are not refused when they are wrong: what does not fit is left out.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ref/threads.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Rows of values or codes and, of a quantised tensor, the scales of their blocks. From row -1: zeros, also
// for scales.
__device__ void move_row(const permute_args_t &a, int64_t to, int64_t from) {
    const int64_t none[max_ndims] = {};
    const matrix_view_t src(a.src, none), dst(a.dst, none);
    const int64_t block = a.dst.quantised ? a.dst.quant.block : 1;
    for (int64_t first = threadIdx.x * block; first < a.columns; first += threads * block) {
        const int64_t end = first + block < a.columns ? first + block : a.columns;
        for (int64_t c = first; c < end; c++) dst.set_code(to, c, from < 0 ? 0 : src.code(from, c));
        if (a.dst.quantised) dst.set_params(to, first, from < 0 ? block_params_t() : src.params(from, first));
    }
    // Columns of a tile that no scale of the row uses are zero.
    if (!a.dst.swizzled || threadIdx.x) return;
    const int64_t own = a.dst.swizzle_cols;
    for (int64_t c = own; c < round_up(own, swizzle_128x4::tile_cols); c++)
        a.dst.scales.data[swizzle_128x4::offset(to, c, own)] = 0;
}

// ---- moe_permute ----

__global__ void plan(const __grid_constant__ permute_args_t a) {
    int64_t row = 0, end = 0;
    for (int64_t i = 0; i < a.ranks * a.experts; i++) {
        a.from[i] = int32_t(row < a.src_rows ? row : a.src_rows);
        row += a.counts[i] > 0 ? a.counts[i] : 0;
    }
    a.start[0] = 0;
    for (int64_t e = 0; e < a.experts; e++) {
        int64_t n = 0;
        for (int64_t r = 0; r < a.ranks; r++)
            n += a.counts[r * a.experts + e] > 0 ? a.counts[r * a.experts + e] : 0;
        end += round_up(n > a.alignment ? n : a.alignment, a.alignment);
        a.start[e + 1] = int32_t(end < a.dst_rows ? end : a.dst_rows);
    }
    for (int64_t e = 0; a.offsets && e < a.experts + a.starts; e++) a.offsets[e] = a.start[e + !a.starts];
}

// The row of the destination of a CTA, or the rows that share bytes with it.
template <typename F>
__device__ void for_rows(const permute_args_t &a, int64_t row, F &&body) {
    int64_t idx[max_ndims] = {row};
    for_sharers(a.dst, &a.dst_rows, idx, [&] { body(idx[0]); });
}

__device__ void permute_row(const permute_args_t &a, int64_t row) {
    int64_t from = -1;
    const bool inside = row < a.start[a.experts];
    if (inside) {
        int64_t e = 0;
        while (a.start[e + 1] <= row) e++;
        int64_t rest = row - a.start[e];
        for (int64_t r = 0; r < a.ranks; r++) {
            const int64_t i = r * a.experts + e, n = a.counts[i] > 0 ? a.counts[i] : 0;
            if (rest < n) {
                from = a.from[i] + rest < a.src_rows ? a.from[i] + rest : -1;
                break;
            }
            rest -= n;
        }
        move_row(a, row, from);
    }
    if (a.idx && threadIdx.x == 0) a.idx[row] = int32_t(from); // rows after the last end belong to no expert
}

__global__ void __launch_bounds__(threads) permute(const __grid_constant__ permute_args_t a) {
    for_rows(a, blockIdx.x, [&](int64_t row) { permute_row(a, row); });
}

cudaError_t prepare_permute(const void *) {
    if (const cudaError_t e = load_kernel(plan)) return e;
    return load_kernel(permute);
}

cudaError_t launch_permute(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const permute_args_t *>(args);
    plan<<<1, 1, 0, stream_of(at)>>>(a);
    if (a.dst_rows > 0) permute<<<unsigned(a.dst_rows), threads, 0, stream_of(at)>>>(a);
    return cudaGetLastError();
}

// ---- moe_unpermute ----

// The source rows of the entries of some tokens. If several rows claim one entry, the last one counts.
__global__ void __launch_bounds__(threads) clear_inverse(const __grid_constant__ permute_args_t a) {
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i < a.part_tokens * a.k) a.inverse[i] = -1;
}

__global__ void __launch_bounds__(threads)
        invert(const __grid_constant__ permute_args_t a, int64_t first_token) {
    const int64_t r = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (r >= a.src_rows || a.idx[r] < 0) return;
    const int64_t at = a.idx[r] - first_token * a.k;
    if (at >= 0 && at < a.part_tokens * a.k && a.idx[r] < a.dst_rows * a.k)
        atomicMax(a.inverse + at, int32_t(r));
}

__device__ float weight(const permute_args_t &a, int64_t entry) {
    if (!a.weights) return 1.f;
    return a.weights_dt == mxdnn_f32 ? static_cast<const float *>(a.weights)[entry]
                                     : bf16_t::decode(static_cast<const uint16_t *>(a.weights)[entry]);
}

__global__ void __launch_bounds__(threads)
        unpermute(const __grid_constant__ permute_args_t a, int64_t first_token) {
    const int64_t t = first_token + blockIdx.x;
    const int32_t *from = a.inverse + int64_t(blockIdx.x) * a.k;
    if (a.dst.quantised) return for_rows(a, t, [&](int64_t row) { move_row(a, row, from[(row - t) * a.k]); });
    const int64_t none[max_ndims] = {};
    const matrix_view_t src(a.src, none), dst(a.dst, none);
    for (int64_t c = threadIdx.x; c < a.columns; c += threads) {
        // A sum in the order of the choices. Choices without a row add nothing.
        float sum = 0;
        bool first = true;
        for (int64_t j = 0; j < a.k; j++) {
            if (from[j] < 0) continue;
            const float x = src.value(from[j], c, 1.f), w = weight(a, t * a.k + j);
            sum = first ? mul_f32(w, x) : __fmaf_rn(w, x, sum);
            first = false;
        }
        dst.set_code(t, c, encode(a.dst.dt, sum));
    }
}

// The rows of the last 128x4 tile that the tensor does not have are zero.
__global__ void pad_rows(const __grid_constant__ permute_args_t a) {
    const int64_t own = a.dst.swizzle_cols, columns = round_up(own, swizzle_128x4::tile_cols);
    for (int64_t r = a.dst_rows; r < round_up(a.dst_rows, swizzle_128x4::tile_rows); r++)
        for (int64_t c = threadIdx.x; c < columns; c += blockDim.x)
            a.dst.scales.data[swizzle_128x4::offset(r, c, own)] = 0;
}

cudaError_t prepare_unpermute(const void *) {
    if (const cudaError_t e = load_kernel(clear_inverse)) return e;
    if (const cudaError_t e = load_kernel(invert)) return e;
    if (const cudaError_t e = load_kernel(pad_rows)) return e;
    return load_kernel(unpermute);
}

cudaError_t launch_unpermute(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const permute_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    for (int64_t first = 0; first < a.dst_rows; first += a.part_tokens) {
        const int64_t tokens = a.dst_rows - first < a.part_tokens ? a.dst_rows - first : a.part_tokens;
        clear_inverse<<<unsigned(div_up(a.part_tokens * a.k, threads)), threads, 0, s>>>(a);
        if (a.src_rows > 0) invert<<<unsigned(div_up(a.src_rows, threads)), threads, 0, s>>>(a, first);
        unpermute<<<unsigned(tokens), threads, 0, s>>>(a, first);
    }
    if (a.dst.swizzled && a.dst_rows > 0) pad_rows<<<1, threads, 0, s>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_moe_permute_kernel = {sizeof(permute_args_t), prepare_permute, launch_permute};
const kernel_entry_t ref_moe_unpermute_kernel = {sizeof(permute_args_t), prepare_unpermute, launch_unpermute};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
