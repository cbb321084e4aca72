// SPDX-License-Identifier: Apache-2.0
// Rows of a matmul's results, in f32, through post-ops that its kernels do not have, and to codes that
// quantise_rows does not make. A CTA has a part of a row, or takes whole rows where codes or the halves of
// gates need that.
#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels/finish_rows.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/matrix_view.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 128, each = 4; // neighbours of a row that a thread has

// Which row of the destination a CTA works on; in shared memory.
struct place_t {
    int64_t idx[max_ndims]; // all dims but columns
    int64_t row;            // counted through all matrices
    int group;              // of a grouped_matmul; -1: none
    int expert;             // -1: nobody's row

    // All threads ask.
    __device__ void find(const finish_rows_args_t &a, int64_t r) {
        __syncthreads(); // they are done with the row before
        if (threadIdx.x == 0) locate(a, a.first + r);
        __syncthreads();
        if (!a.listed) return;
        for (int64_t g = threadIdx.x; g < a.all.groups.groups; g += threads) {
            const row_group_t of = a.all.groups.group(g);
            if (of.expert >= 0 && row >= of.first && row < of.first + of.count) group = int(g);
        }
        __syncthreads();
        if (threadIdx.x == 0) expert = group < 0 ? -1 : a.all.groups.group(group).expert;
        __syncthreads();
    }
    __device__ int64_t row_of_matrix(const matmul_args_t &m) const { return idx[m.dst.ndims - 2]; }

private:
    __device__ void locate(const finish_rows_args_t &a, int64_t r) {
        const matmul_args_t &m = a.all.m;
        row = r;
        group = a.listed ? -1 : 0;
        expert = 0;
        if (!a.grouped) {
            const uint32_t M = uint32_t(m.M), matrix = uint32_t(row) / M; // rows are below 2^31
            batch_index(matrix, m.dst.ndims, m.dims, idx);
            idx[m.dst.ndims - 2] = uint32_t(row) - matrix * M;
            return;
        }
        const int64_t group_rows = a.all.dst_group_rows;
        if (group_rows) idx[0] = row / group_rows;
        idx[group_rows ? 1 : 0] = group_rows ? row % group_rows : row;
    }
};

// `count` neighbours of a tensor's row from column n on, at most four.
__device__ __forceinline__ float4 load_neighbours(
        const plain_args_t &t, data_type_t dt, const place_t &at, int nd, int64_t n, int count) {
    const int last = t.ndims - 1;
    const int64_t step = t.step[last];
    const uint8_t *p = t.data;
    for (int i = 0; i < last; i++) p += at.idx[nd - t.ndims + i] * t.step[i];
    p += n * step;
    if (dt == mxdnn_bf16 && step == 2 && count == each && reinterpret_cast<uintptr_t>(p) % 8 == 0) {
        const uint2 v = *reinterpret_cast<const uint2 *>(p);
        return make_float4(float_of(v.x << 16), float_of(v.x & 0xffff0000u), float_of(v.y << 16),
                float_of(v.y & 0xffff0000u));
    }
    float x[each] = {};
#pragma unroll
    for (int j = 0; j < each; j++, p += step) {
        if (j >= count) break;
        switch (dt) {
        case mxdnn_f32: x[j] = *reinterpret_cast<const float *>(p); break;
        case mxdnn_bf16: x[j] = __bfloat162float(*reinterpret_cast<const __nv_bfloat16 *>(p)); break;
        case mxdnn_f16: x[j] = __half2float(*reinterpret_cast<const __half *>(p)); break;
        default: x[j] = decode(dt, load_bytes(p, t.bits / 8)); break;
        }
    }
    return make_float4(x[0], x[1], x[2], x[3]);
}
__device__ __forceinline__ void store_neighbours(
        const matmul_args_t &m, const place_t &at, int64_t n, int count, const float (&x)[each]) {
    const plain_args_t &t = m.dst.elements;
    const bool wide = t.dt == mxdnn_f32;
    uint8_t *p = t.data;
    for (int i = 0; i < t.ndims - 1; i++) p += at.idx[i] * t.step[i];
    p += n * (wide ? 4 : 2);
    uint32_t code[each];
#pragma unroll
    for (int j = 0; j < each; j++)
        code[j] = wide                 ? bits_of(x[j])
                  : t.dt == mxdnn_bf16 ? uint32_t(__bfloat16_as_ushort(__float2bfloat16_rn(x[j])))
                                       : uint32_t(__half_as_ushort(__float2half_rn(x[j])));
    const auto to = reinterpret_cast<uintptr_t>(p);
    if (!wide && count == each && to % 8 == 0) {
        *reinterpret_cast<uint2 *>(p) = make_uint2(code[0] | code[1] << 16, code[2] | code[3] << 16);
        return;
    }
    if (wide && count == each && to % 16 == 0) {
        *reinterpret_cast<uint4 *>(p) = make_uint4(code[0], code[1], code[2], code[3]);
        return;
    }
#pragma unroll
    for (int j = 0; j < each; j++) {
        if (j >= count) break;
        if (wide)
            reinterpret_cast<uint32_t *>(p)[j] = code[j];
        else
            reinterpret_cast<uint16_t *>(p)[j] = uint16_t(code[j]);
    }
}

// Four values through an algorithm that is known when this is compiled.
template <mxdnn_alg_kind_t alg>
__device__ __forceinline__ float4 eltwise(float4 x, float alpha, float beta) {
    return make_float4(ref_eltwise<float>(alg, x.x, alpha, beta), ref_eltwise<float>(alg, x.y, alpha, beta),
            ref_eltwise<float>(alg, x.z, alpha, beta), ref_eltwise<float>(alg, x.w, alpha, beta));
}
__device__ __noinline__ float any_eltwise(const post_op_args_t &o, float x) {
    return ref_eltwise<float>(o.alg, x, o.alpha, o.beta);
}
__device__ __forceinline__ float4 eltwise(const post_op_args_t &o, float4 x) {
    switch (o.alg) { // those that models have, and all others
    case mxdnn_eltwise_relu: return eltwise<mxdnn_eltwise_relu>(x, o.alpha, o.beta);
    case mxdnn_eltwise_swish: return eltwise<mxdnn_eltwise_swish>(x, o.alpha, o.beta);
    case mxdnn_eltwise_gelu_erf: return eltwise<mxdnn_eltwise_gelu_erf>(x, o.alpha, o.beta);
    case mxdnn_eltwise_gelu_tanh: return eltwise<mxdnn_eltwise_gelu_tanh>(x, o.alpha, o.beta);
    default:
        return make_float4(
                any_eltwise(o, x.x), any_eltwise(o, x.y), any_eltwise(o, x.z), any_eltwise(o, x.w));
    }
}
__device__ __forceinline__ float4 binary(mxdnn_alg_kind_t alg, float4 x, float4 y) {
    return make_float4(ref_binary<float>(alg, x.x, y.x), ref_binary<float>(alg, x.y, y.y),
            ref_binary<float>(alg, x.z, y.z), ref_binary<float>(alg, x.w, y.w));
}

// Post-ops [begin, end), none of them a gate, on neighbours from column n on. One piece of code for all that
// call it.
__device__ __noinline__ float4 apply(
        const matmul_args_t &m, int begin, int end, const place_t &at, int64_t n, int count, float4 x) {
    const int nd = m.dst.ndims;
    for (int i = begin; i < end; i++) {
        const post_op_args_t &o = m.ops[i];
        if (o.kind == mxdnn_eltwise) {
            x = eltwise(o, x);
        } else if (o.kind == mxdnn_binary) {
            x = binary(o.alg, x, load_neighbours(o.src1, o.src1.dt, at, nd, n, count));
        } else if (o.kind == mxdnn_sum) {
            const float4 old = load_neighbours(m.dst.elements, o.dt, at, nd, n, count);
            const float zero = float(o.zero_point);
            x.x += o.scale * (old.x - zero), x.y += o.scale * (old.y - zero);
            x.z += o.scale * (old.z - zero), x.w += o.scale * (old.w - zero);
        }
    }
    return x;
}
__device__ __noinline__ float gated(
        mxdnn_alg_kind_t alg, float g, float u, float alpha, float limit, float beta) {
    return ref_gated<float>(alg, g, u, alpha, limit, beta);
}

// From a row of the scratchpad.
__device__ __forceinline__ float4 load_values(const float *p, int64_t n, int count) {
    if (n % each == 0 && count >= each) return *reinterpret_cast<const float4 *>(p + n);
    float x[each] = {};
#pragma unroll
    for (int j = 0; j < each; j++)
        if (j < count) x[j] = p[n + j];
    return make_float4(x[0], x[1], x[2], x[3]);
}

// The results from column n on, of values that have been sums with a bias.
__device__ __forceinline__ float4 results(
        const finish_rows_args_t &a, const place_t &at, int gate, const float *values, int64_t n, int count) {
    const matmul_args_t &m = a.all.m;
    float4 x;
    if (gate == m.post_ops) {
        x = apply(m, 0, gate, at, n, count, load_values(values, n, count));
    } else {
        const post_op_args_t &o = m.ops[gate];
        float alpha = o.alpha, beta = 1.f, limit = o.beta;
        if (a.grouped && a.all.activation_params) {
            const float *v = a.all.activation_params + a.all.activation_stride * at.expert;
            alpha = v[0], beta = v[1], limit = v[2];
        }
        // The first of what lies side by side, and the second; pairs are taken apart.
        const int64_t at_g = o.halves ? n : 2 * n, at_u = o.halves ? m.columns + n : 2 * n + each;
        const int of_g = o.halves ? count : min(2 * count, each), of_u = o.halves ? count : 2 * count - of_g;
        float4 g = apply(m, 0, gate, at, at_g, of_g, load_values(values, at_g, of_g)),
               u = apply(m, 0, gate, at, at_u, of_u, load_values(values, at_u, of_u));
        if (!o.halves) {
            const float4 first = g, second = u;
            g = make_float4(first.x, first.z, second.x, second.z);
            u = make_float4(first.y, first.w, second.y, second.w);
        }
        x = make_float4(gated(o.alg, g.x, u.x, alpha, limit, beta),
                gated(o.alg, g.y, u.y, alpha, limit, beta), gated(o.alg, g.z, u.z, alpha, limit, beta),
                gated(o.alg, g.w, u.w, alpha, limit, beta));
        if (gate + 1 < m.post_ops) x = apply(m, gate + 1, m.post_ops, at, n, count, x);
    }
    if (!a.grouped) return x;
    if (a.all.topk && !a.all.topk_on_input) {
        const float weight = a.all.topk_dt == mxdnn_f32
                                     ? static_cast<const float *>(a.all.topk)[at.row]
                                     : bf16_t::decode(static_cast<const uint16_t *>(a.all.topk)[at.row]);
        x.x *= weight, x.y *= weight, x.z *= weight, x.w *= weight;
    }
    if (a.all.has_old) {
        const float4 old = load_neighbours(m.dst.elements, a.all.old_dt, at, m.dst.ndims, n, count);
        const float scale = a.all.old_scale, zero = float(a.all.old_zero_point);
        x.x += scale * (old.x - zero), x.y += scale * (old.y - zero);
        x.z += scale * (old.z - zero), x.w += scale * (old.w - zero);
    }
    return x;
}

constexpr int part = threads * each; // of a row, at a time

__device__ int gate_of(const matmul_args_t &m) {
    int gate = 0;
    while (gate < m.post_ops && m.ops[gate].kind != mxdnn_gated) gate++;
    return gate;
}

// gridDim.y CTAs share each row.
__global__ void __launch_bounds__(threads) apply_ops(const __grid_constant__ finish_rows_args_t a) {
    __shared__ place_t at;
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const int gate = gate_of(m);
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        at.find(a, r);
        if (at.expert < 0) continue;
        float *values = a.values + r * a.stride;
        float largest = 0.f;
        for (int64_t begin = blockIdx.y * part; begin < m.columns; begin += gridDim.y * part) {
            const int64_t n = begin + threadIdx.x * each;
            const int count = n < m.columns ? int(min(int64_t(each), m.columns - n)) : 0;
            float x[each];
            if (count > 0) {
                const float4 v =
                        a.applies ? results(a, at, gate, values, n, count) : load_values(values, n, count);
                x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
            }
            // Pairs are read at or beyond the places of what becomes of them.
            __syncthreads();
            if (count == 0) continue;
            if (a.to_dst)
                store_neighbours(m, at, n, count, x);
            else if (a.applies)
                *reinterpret_cast<float4 *>(values + n) = make_float4(x[0], x[1], x[2], x[3]);
#pragma unroll
            for (int j = 0; j < each; j++)
                if (j < count) largest = nvfp4_global_amax(largest, x[j]);
        }
        if (!a.finds_largest) continue;
        matrix_view_t dst(m.dst, at.idx);
        if (a.grouped) dst.set_global_index(at.expert);
        const uint32_t of_warp = __reduce_max_sync(~0u, bits_of(largest));
        if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned *>(dst.global_at()), of_warp);
    }
}

__global__ void __launch_bounds__(threads) store_codes(const __grid_constant__ finish_rows_args_t a) {
    __shared__ place_t at;
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const int64_t block = m.dst.quant.block;
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        at.find(a, r);
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

// How many CTAs share a row.
unsigned parts_of_row(const finish_rows_args_t &a) {
    const matmul_args_t &m = a.all.m;
    if (a.step != finish_step_t::apply_ops) return 1;
    // What becomes of pairs takes the place of others.
    for (int i = 0; i < m.post_ops; i++)
        if (a.applies && !a.to_dst && m.ops[i].kind == mxdnn_gated && !m.ops[i].halves) return 1;
    return unsigned(std::min<int64_t>(div_up(m.columns, int64_t(part)), 65535));
}

cudaError_t launch_finish_rows(const launch_t &at, const finish_rows_args_t &a) {
    constexpr int ctas = 2048 / threads; // that a multiprocessor holds
    const bool of_rows = a.step == finish_step_t::apply_ops || a.step == finish_step_t::store_codes;
    if (!of_rows) return launch_kernel(at, find(a.step), {1, threads, 0, true}, a);
    const unsigned parts = parts_of_row(a);
    const int64_t most = div_up(int64_t(at.sm_count) * ctas, int64_t(parts));
    return launch_kernel(
            at, find(a.step), {dim3(unsigned(std::min<int64_t>(a.rows, most)), parts), threads, 0, true}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
