// SPDX-License-Identifier: Apache-2.0
// Rows of a matmul's results, in f32, through post-ops that its kernels do not have, and to codes that
// quantise_rows does not make. A CTA takes whole rows.
#include <algorithm>

#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels/finish_rows.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/matrix_view.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 256, each = 4; // neighbours of a row that a thread has

// Which row of the destination a CTA works on.
struct place_t {
    int64_t idx[max_ndims] = {}; // all dims but columns
    int64_t row;                 // counted through all matrices
    int64_t group = 0;           // of a grouped_matmul
    int expert = 0;              // -1: nobody's row

    // All threads ask.
    __device__ place_t(const finish_rows_args_t &a, int64_t r) : row(a.first + r) {
        const matmul_args_t &m = a.all.m;
        if (!a.grouped) {
            batch_index(row / m.M, m.dst.ndims, m.dims, idx);
            idx[m.dst.ndims - 2] = row % m.M;
            return;
        }
        const int64_t group_rows = a.all.dst_group_rows;
        if (group_rows) idx[0] = row / group_rows;
        idx[group_rows ? 1 : 0] = group_rows ? row % group_rows : row;
        if (a.listed) find_group(a.all.groups);
    }
    __device__ int64_t row_of_matrix(const matmul_args_t &m) const { return idx[m.dst.ndims - 2]; }

private:
    __device__ void find_group(const row_groups_t &groups) {
        __shared__ int found;
        if (threadIdx.x == 0) found = -1;
        __syncthreads();
        for (int64_t g = threadIdx.x; g < groups.groups; g += threads) {
            const row_group_t of = groups.group(g);
            if (of.expert >= 0 && row >= of.first && row < of.first + of.count) found = int(g);
        }
        __syncthreads();
        group = found < 0 ? 0 : found;
        expert = found < 0 ? -1 : groups.group(found).expert;
        __syncthreads();
    }
};

// `count` neighbours of a tensor's row from column n on, at most four.
__device__ __forceinline__ void load_neighbours(
        const plain_args_t &t, data_type_t dt, const place_t &at, int nd, int64_t n, int count, float *x) {
    const int last = t.ndims - 1;
    const uint8_t *p = t.data;
    for (int i = 0; i < last; i++) p += at.idx[nd - t.ndims + i] * t.step[i];
    p += n * t.step[last];
#pragma unroll
    for (int j = 0; j < each; j++, p += t.step[last]) {
        x[j] = 0.f;
        if (j >= count) continue;
        switch (dt) {
        case mxdnn_f32: x[j] = *reinterpret_cast<const float *>(p); break;
        case mxdnn_bf16: x[j] = bf16_t::decode(*reinterpret_cast<const uint16_t *>(p)); break;
        case mxdnn_f16: x[j] = f16_t::decode(*reinterpret_cast<const uint16_t *>(p)); break;
        default: x[j] = decode(dt, load_bytes(p, t.bits / 8)); break;
        }
    }
}
__device__ __forceinline__ void store_neighbours(
        const matmul_args_t &m, const place_t &at, int64_t n, int count, const float *x) {
    const plain_args_t &t = m.dst.elements;
    uint8_t *p = t.data;
    for (int i = 0; i < t.ndims - 1; i++) p += at.idx[i] * t.step[i];
    p += n * (t.bits / 8);
    uint32_t code[each];
#pragma unroll
    for (int j = 0; j < each; j++)
        code[j] = t.dt == mxdnn_f32    ? bits_of(x[j])
                  : t.dt == mxdnn_bf16 ? uint32_t(bf16_t::encode(x[j]))
                                       : uint32_t(f16_t::encode(x[j]));
    const auto to = reinterpret_cast<uintptr_t>(p);
    if (t.dt != mxdnn_f32 && count == each && to % 8 == 0) {
        *reinterpret_cast<uint2 *>(p) = make_uint2(code[0] | code[1] << 16, code[2] | code[3] << 16);
        return;
    }
    if (t.dt == mxdnn_f32 && count == each && to % 16 == 0) {
        *reinterpret_cast<uint4 *>(p) = make_uint4(code[0], code[1], code[2], code[3]);
        return;
    }
#pragma unroll
    for (int j = 0; j < each; j++) {
        if (j >= count) break;
        if (t.dt == mxdnn_f32)
            reinterpret_cast<uint32_t *>(p)[j] = code[j];
        else
            reinterpret_cast<uint16_t *>(p)[j] = uint16_t(code[j]);
    }
}

// Once each: they are large.
__device__ __noinline__ float eltwise(mxdnn_alg_kind_t alg, float x, float alpha, float beta) {
    return ref_eltwise<float>(alg, x, alpha, beta);
}
__device__ __noinline__ float gated(
        mxdnn_alg_kind_t alg, float g, float u, float alpha, float limit, float beta) {
    return ref_gated<float>(alg, g, u, alpha, limit, beta);
}

// Post-ops [begin, end), none of them a gate, on neighbours from column n on.
__device__ __forceinline__ void apply(const matmul_args_t &m, int begin, int end, const place_t &at,
        int64_t n, int count, float (&x)[each]) {
    const int nd = m.dst.ndims;
    for (int i = begin; i < end; i++) {
        const post_op_args_t &o = m.ops[i];
        float y[each];
        switch (o.kind) {
        case mxdnn_eltwise:
#pragma unroll
            for (int j = 0; j < each; j++) x[j] = eltwise(o.alg, x[j], o.alpha, o.beta);
            break;
        case mxdnn_binary: load_neighbours(o.src1, o.src1.dt, at, nd, n, count, y);
#pragma unroll
            for (int j = 0; j < each; j++) x[j] = ref_binary<float>(o.alg, x[j], y[j]);
            break;
        case mxdnn_sum: load_neighbours(m.dst.elements, o.dt, at, nd, n, count, y);
#pragma unroll
            for (int j = 0; j < each; j++) x[j] += o.scale * (y[j] - float(o.zero_point));
            break;
        default: break;
        }
    }
}

// From a row of the scratchpad.
__device__ __forceinline__ void load_values(const float *p, int64_t n, int count, float (&x)[each]) {
    if (n % each == 0 && count >= each) {
        const float4 v = *reinterpret_cast<const float4 *>(p + n);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        return;
    }
#pragma unroll
    for (int j = 0; j < each; j++) x[j] = j < count ? p[n + j] : 0.f;
}

// The results from column n on, of values that have been sums with a bias.
__device__ __forceinline__ void results(const finish_rows_args_t &a, const place_t &at, int gate,
        const float *values, int64_t n, int count, float (&x)[each]) {
    const matmul_args_t &m = a.all.m;
    if (gate == m.post_ops) {
        load_values(values, n, count, x);
        apply(m, 0, gate, at, n, count, x);
    } else {
        const post_op_args_t &o = m.ops[gate];
        float alpha = o.alpha, beta = 1.f, limit = o.beta;
        if (a.grouped && a.all.activation_params) {
            const float *v = a.all.activation_params + a.all.activation_stride * at.expert;
            alpha = v[0], beta = v[1], limit = v[2];
        }
        // Of the gates, and of what they gate; side by side these are taken apart first.
        float g[each], u[each];
        if (o.halves) {
            load_values(values, n, count, g);
            load_values(values, m.columns + n, count, u);
            apply(m, 0, gate, at, n, count, g);
            apply(m, 0, gate, at, m.columns + n, count, u);
        } else {
            float lower[each], upper[each];
            const int all = 2 * count;
            load_values(values, 2 * n, all, lower);
            load_values(values, 2 * n + each, all - each, upper);
            apply(m, 0, gate, at, 2 * n, min(all, each), lower);
            apply(m, 0, gate, at, 2 * n + each, all - each, upper);
#pragma unroll
            for (int j = 0; j < each / 2; j++) {
                g[j] = lower[2 * j], u[j] = lower[2 * j + 1];
                g[each / 2 + j] = upper[2 * j], u[each / 2 + j] = upper[2 * j + 1];
            }
        }
#pragma unroll
        for (int j = 0; j < each; j++) x[j] = gated(o.alg, g[j], u[j], alpha, limit, beta);
        apply(m, gate + 1, m.post_ops, at, n, count, x);
    }
    if (!a.grouped) return;
    if (a.all.topk && !a.all.topk_on_input) {
        const float weight = a.all.topk_dt == mxdnn_f32
                                     ? static_cast<const float *>(a.all.topk)[at.row]
                                     : bf16_t::decode(static_cast<const uint16_t *>(a.all.topk)[at.row]);
#pragma unroll
        for (float &v : x) v *= weight;
    }
    if (a.all.has_old) {
        float old[each];
        load_neighbours(m.dst.elements, a.all.old_dt, at, m.dst.ndims, n, count, old);
#pragma unroll
        for (int j = 0; j < each; j++) x[j] += a.all.old_scale * (old[j] - float(a.all.old_zero_point));
    }
}

__global__ void __launch_bounds__(threads) apply_ops(const __grid_constant__ finish_rows_args_t a) {
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    int gate = 0;
    while (gate < m.post_ops && m.ops[gate].kind != mxdnn_gated) gate++;
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const place_t at(a, r);
        if (at.expert < 0) continue;
        float *values = a.values + r * a.stride;
        float largest = 0.f;
        for (int64_t begin = 0; begin < m.columns; begin += threads * each) {
            const int64_t n = begin + threadIdx.x * each;
            const int count = n < m.columns ? int(min(int64_t(each), m.columns - n)) : 0;
            float x[each];
            if (count > 0) {
                if (a.applies)
                    results(a, at, gate, values, n, count, x);
                else
                    load_values(values, n, count, x);
            }
            // Pairs are read at or beyond the places of what becomes of them.
            __syncthreads();
            if (count > 0) {
                if (a.to_dst)
                    store_neighbours(m, at, n, count, x);
                else if (a.applies)
                    *reinterpret_cast<float4 *>(values + n) = make_float4(x[0], x[1], x[2], x[3]);
#pragma unroll
                for (int j = 0; j < each; j++)
                    if (j < count) largest = nvfp4_global_amax(largest, x[j]);
            }
        }
        if (!a.finds_largest) continue;
        matrix_view_t dst(m.dst, at.idx);
        if (a.grouped) dst.set_global_index(at.expert);
        const uint32_t of_warp = __reduce_max_sync(~0u, bits_of(largest));
        if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned *>(dst.global_at()), of_warp);
    }
}

__global__ void __launch_bounds__(threads) store_codes(const __grid_constant__ finish_rows_args_t a) {
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const int64_t block = m.dst.quant.block;
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const place_t at(a, r);
        if (at.expert < 0) continue;
        matrix_view_t dst(m.dst, at.idx);
        if (a.grouped) {
            dst.set_global_index(at.expert);
            if (a.all.dst_swizzled_by_group)
                dst.set_scale_row_shift(
                        a.all.groups.swizzled_rows_before(at.group) - a.all.groups.group(at.group).first);
        }
        for (int64_t n = threadIdx.x * block; n < m.columns; n += threads * block)
            store_block(m, dst, at.row_of_matrix(m), n, int(min(block, m.columns - n)),
                    a.values + r * a.stride + n);
    }
}

__global__ void __launch_bounds__(threads) set_globals(const __grid_constant__ finish_rows_args_t a) {
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    for (int64_t i = threadIdx.x; i < m.globals; i += threads)
        m.dst.global[i] = a.step == finish_step_t::clear_globals ? 0.f : nvfp4_global_scale(m.dst.global[i]);
}

using kernel_t = void (*)(finish_rows_args_t);

kernel_t find(finish_step_t step) {
    switch (step) {
    case finish_step_t::apply_ops: return apply_ops;
    case finish_step_t::store_codes: return store_codes;
    default: return set_globals;
    }
}

} // namespace

cudaError_t prepare_finish_rows() {
    for (kernel_t k : {apply_ops, store_codes, set_globals})
        if (const cudaError_t e = load_kernel(k)) return e;
    return cudaSuccess;
}

cudaError_t launch_finish_rows(const launch_t &at, const finish_rows_args_t &a) {
    constexpr int ctas = 2048 / threads; // that a multiprocessor holds
    const bool of_rows = a.step == finish_step_t::apply_ops || a.step == finish_step_t::store_codes;
    const int64_t most = of_rows ? std::min<int64_t>(a.rows, int64_t(at.sm_count) * ctas) : 1;
    return launch_kernel(at, find(a.step), {unsigned(most), threads, 0, true}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
