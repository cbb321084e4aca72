// SPDX-License-Identifier: Apache-2.0
// Rows of a matmul's results, in f32, through post-ops that its kernels do not have, and to codes that
// quantise_results does not make. A CTA has a part of a row, or takes whole rows where codes or the halves of
// gates need that.
#include <algorithm>

#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels/finish_results.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 128, each = 4; // each: neighbouring elements of a row per thread

// A row of the destination, in shared memory.
struct place_t {
    int64_t idx[max_ndims]; // all dims but columns
    int64_t row;            // number of the row among those of all matrices
    int group;              // group of a grouped_matmul; -1: none
    int expert;             // -1: no expert computes the row

    __device__ int64_t row_of_matrix(const matmul_args_t &m) const { return idx[m.dst.ndims - 2]; }

    // Everything except its group.
    __device__ void locate(const finish_results_args_t &a, int64_t r) {
        const matmul_args_t &m = a.all.m;
        row = r;
        group = a.listed ? -1 : 0;
        expert = a.listed ? -1 : 0;
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

// Rows [r, r + n). All threads call it. There is a barrier before and after.
template <int n>
__device__ void find_rows(const finish_results_args_t &a, int64_t r, place_t (&at)[n]) {
    __syncthreads(); // the previous rows have been read
    if (threadIdx.x < n) {
        if (r + threadIdx.x < a.rows)
            at[threadIdx.x].locate(a, a.first + r + threadIdx.x);
        else
            at[threadIdx.x].row = at[threadIdx.x].expert = -1;
    }
    __syncthreads();
    if (!a.listed) return;
    const row_groups_t &groups = a.all.groups;
    if (groups.grouping == mxdnn_row_grouping_row_ids) { // a row is a group
        if (threadIdx.x < n && at[threadIdx.x].row >= 0) {
            place_t &p = at[threadIdx.x];
            p.group = int(p.row), p.expert = groups.group(p.row).expert;
        }
        __syncthreads();
        return;
    }
    for (int64_t g = threadIdx.x; g < groups.groups; g += threads) {
        const row_group_t of = groups.group(g);
        if (of.expert < 0) continue;
#pragma unroll
        for (place_t &p : at)
            if (p.row >= of.first && p.row < of.first + of.count) p.group = int(g), p.expert = of.expert;
    }
    __syncthreads();
}

// Reads `count` elements of a tensor's row from column n on, at most four.
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
        case mxdnn_bf16: x[j] = bf16_to_float(*reinterpret_cast<const uint16_t *>(p)); break;
        case mxdnn_f16: x[j] = f16_to_float(*reinterpret_cast<const uint16_t *>(p)); break;
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
                  : t.dt == mxdnn_bf16 ? uint32_t(to_bf16(x[j]))
                                       : uint32_t(to_f16(x[j]));
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

// Applies an algorithm that is known at compile time to four values.
template <mxdnn_alg_kind_t alg>
__device__ __forceinline__ float4 eltwise(float4 x, float alpha, float beta) {
    return make_float4(ref_eltwise<float>(alg, x.x, alpha, beta), ref_eltwise<float>(alg, x.y, alpha, beta),
            ref_eltwise<float>(alg, x.z, alpha, beta), ref_eltwise<float>(alg, x.w, alpha, beta));
}
__device__ __noinline__ float any_eltwise(const post_op_args_t &o, float x) {
    return ref_eltwise<float>(o.alg, x, o.alpha, o.beta);
}
__device__ __forceinline__ float4 eltwise(const post_op_args_t &o, float4 x) {
    switch (o.alg) { // algorithms of models; all others in the default case
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

// Applies post-ops [begin, end), without a gated one, to elements from column n on. It is one function for
// all callers, to keep the code small.
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

// Reads from a row of the scratchpad.
__device__ __forceinline__ float4 load_values(const float *p, int64_t n, int count) {
    if (n % each == 0 && count >= each) return *reinterpret_cast<const float4 *>(p + n);
    float x[each] = {};
#pragma unroll
    for (int j = 0; j < each; j++)
        if (j < count) x[j] = p[n + j];
    return make_float4(x[0], x[1], x[2], x[3]);
}

// The steps after all post-ops.
__device__ __forceinline__ float4 results(
        const finish_results_args_t &a, const place_t &at, float4 x, int64_t n, int count) {
    if (!a.grouped) return x;
    const matmul_args_t &m = a.all.m;
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

// The results from column n on, from sums with a bias; one of the post-ops is gated.
__device__ __noinline__ float4 gated_results(const finish_results_args_t &a, const place_t &at, int gate,
        const float *values, int64_t n, int count) {
    const matmul_args_t &m = a.all.m;
    const post_op_args_t &o = m.ops[gate];
    float alpha = o.alpha, beta = 1.f, limit = o.beta;
    if (a.grouped && a.all.activation_params) {
        const float *v = a.all.activation_params + a.all.activation_stride * at.expert;
        alpha = v[0], beta = v[1], limit = v[2];
    }
    // With pairs, g first gets four neighbouring values and u the next four. They are separated below.
    const int64_t at_g = o.halves ? n : 2 * n, at_u = o.halves ? m.columns + n : 2 * n + each;
    const int of_g = o.halves ? count : min(2 * count, each), of_u = o.halves ? count : 2 * count - of_g;
    float4 g = apply(m, 0, gate, at, at_g, of_g, load_values(values, at_g, of_g)),
           u = apply(m, 0, gate, at, at_u, of_u, load_values(values, at_u, of_u));
    if (!o.halves) {
        const float4 first = g, second = u;
        g = make_float4(first.x, first.z, second.x, second.z);
        u = make_float4(first.y, first.w, second.y, second.w);
    }
    const float4 x = make_float4(gated(o.alg, g.x, u.x, alpha, limit, beta),
            gated(o.alg, g.y, u.y, alpha, limit, beta), gated(o.alg, g.z, u.z, alpha, limit, beta),
            gated(o.alg, g.w, u.w, alpha, limit, beta));
    return results(a, at, apply(m, gate + 1, m.post_ops, at, n, count, x), n, count);
}

constexpr int part = threads * each; // elements of a row that are processed together

__device__ int gate_of(const matmul_args_t &m) {
    int gate = 0;
    while (gate < m.post_ops && m.ops[gate].kind != mxdnn_gated) gate++;
    return gate;
}

constexpr int rows_at_once = 4; // rows of a CTA whose loads are in flight together

// gridDim.y CTAs share each row.
__global__ void __launch_bounds__(threads, 5) apply_ops(const __grid_constant__ finish_results_args_t a) {
    __shared__ place_t at[rows_at_once];
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const int gate = gate_of(m);
    const bool gates = a.applies && gate < m.post_ops;
    for (int64_t r = int64_t(blockIdx.x) * rows_at_once; r < a.rows; r += int64_t(gridDim.x) * rows_at_once) {
        find_rows(a, r, at);
        float *values = a.values + r * a.stride;
        float largest[rows_at_once] = {};
        for (int64_t begin = blockIdx.y * part; begin < m.columns; begin += gridDim.y * part) {
            const int64_t n = begin + threadIdx.x * each;
            const int count = n < m.columns ? int(min(int64_t(each), m.columns - n)) : 0;
            float4 x[rows_at_once];
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
                if (count > 0 && at[i].expert >= 0 && !gates)
                    x[i] = load_values(values + i * a.stride, n, count);
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
                if (count > 0 && at[i].expert >= 0 && a.applies)
                    x[i] = gates ? gated_results(a, at[i], gate, values + i * a.stride, n, count)
                                 : results(a, at[i], apply(m, 0, gate, at[i], n, count, x[i]), n, count);
            // Pairs are read at or behind the place where their result is written.
            if (gates) __syncthreads();
#pragma unroll
            for (int i = 0; i < rows_at_once; i++) {
                if (count == 0 || at[i].expert < 0) continue;
                const float v[each] = {x[i].x, x[i].y, x[i].z, x[i].w};
                if (a.to_dst)
                    store_neighbours(m, at[i], n, count, v);
                else if (a.applies)
                    *reinterpret_cast<float4 *>(values + i * a.stride + n) = x[i];
#pragma unroll
                for (int j = 0; j < each; j++)
                    if (j < count) largest[i] = nvfp4_global_amax(largest[i], v[j]);
            }
        }
        if (!a.finds_largest) continue;
#pragma unroll
        for (int i = 0; i < rows_at_once; i++) {
            if (at[i].expert < 0) continue;
            matrix_view_t dst(m.dst, at[i].idx);
            if (a.grouped) dst.set_global_index(at[i].expert);
            const uint32_t of_warp = __reduce_max_sync(~0u, bits_of(largest[i]));
            if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned *>(dst.global_at()), of_warp);
        }
    }
}

// The usual case by itself: one eltwise on whole rows with aligned pieces of 16 bytes. A thread has eight
// elements at a time, and waits for no other thread.
constexpr int piece = 8;

__host__ __device__ bool is_one_eltwise(const finish_results_args_t &a) {
    const matmul_args_t &m = a.all.m;
    const plain_args_t &t = m.dst.elements;
    return !a.grouped && a.applies && a.to_dst && !a.finds_largest && m.post_ops == 1
           && m.ops[0].kind == mxdnn_eltwise && t.ndims == 2 && m.columns % piece == 0
           && (reinterpret_cast<uintptr_t>(t.data) | uint64_t(t.step[0])) % 16 == 0;
}

template <mxdnn_alg_kind_t alg>
__global__ void __launch_bounds__(threads) apply_eltwise(const __grid_constant__ finish_results_args_t a) {
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const plain_args_t &t = m.dst.elements;
    const float alpha = m.ops[0].alpha, beta = m.ops[0].beta;
    const uint32_t pieces = uint32_t(m.columns / piece), all = uint32_t(a.rows) * pieces;
    for (uint32_t i = blockIdx.x * threads + threadIdx.x; i < all; i += gridDim.x * threads) {
        const uint32_t r = i / pieces, n = (i - r * pieces) * piece;
        const auto *from = reinterpret_cast<const float4 *>(a.values + r * a.stride + n);
        float4 x[2] = {from[0], from[1]};
        for (float4 &v : x) v = eltwise<alg>(v, alpha, beta);
        auto *to = reinterpret_cast<uint4 *>(t.data + (a.first + r) * t.step[0] + n * (t.bits / 8));
        if (t.dt == mxdnn_f32) {
            for (int j = 0; j < 2; j++)
                to[j] = make_uint4(bits_of(x[j].x), bits_of(x[j].y), bits_of(x[j].z), bits_of(x[j].w));
            continue;
        }
        const auto pair = [&](float lower, float upper) {
            if (t.dt == mxdnn_bf16) return uint32_t(to_bf16(lower)) | uint32_t(to_bf16(upper)) << 16;
            return uint32_t(to_f16(lower)) | uint32_t(to_f16(upper)) << 16;
        };
        *to = make_uint4(
                pair(x[0].x, x[0].y), pair(x[0].z, x[0].w), pair(x[1].x, x[1].y), pair(x[1].z, x[1].w));
    }
}

__global__ void __launch_bounds__(threads) store_codes(const __grid_constant__ finish_results_args_t a) {
    __shared__ place_t place[1];
    const place_t &at = place[0];
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    const int64_t block = m.dst.quant.block;
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        find_rows(a, r, place);
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

__global__ void __launch_bounds__(threads) set_globals(const __grid_constant__ finish_results_args_t a) {
    start_of_early_kernel();
    const matmul_args_t &m = a.all.m;
    for (int64_t i = threadIdx.x; i < m.globals; i += threads)
        m.dst.global[i] = a.step == finish_step_t::clear_globals ? 0.f : nvfp4_global_scale(m.dst.global[i]);
}

using kernel_t = void (*)(finish_results_args_t);

// Null for rarely used algorithms.
kernel_t find_eltwise(mxdnn_alg_kind_t alg) {
    switch (alg) {
    case mxdnn_eltwise_swish: return apply_eltwise<mxdnn_eltwise_swish>;
    case mxdnn_eltwise_gelu_erf: return apply_eltwise<mxdnn_eltwise_gelu_erf>;
    case mxdnn_eltwise_gelu_tanh: return apply_eltwise<mxdnn_eltwise_gelu_tanh>;
    case mxdnn_eltwise_clip: return apply_eltwise<mxdnn_eltwise_clip>;
    default: return nullptr;
    }
}

kernel_t find(finish_step_t step) {
    switch (step) {
    case finish_step_t::apply_ops: return apply_ops;
    case finish_step_t::store_codes: return store_codes;
    default: return set_globals;
    }
}

} // namespace

cudaError_t prepare_finish_results(const finish_results_args_t *a) {
    cudaError_t e = load_kernels(std::initializer_list<kernel_t>{apply_ops, set_globals});
    if (e == cudaSuccess && (!a || !a->to_dst)) e = load_kernel(store_codes);
    if (e == cudaSuccess && (!a || (a->applies && a->to_dst)))
        e = load_kernels(std::initializer_list<kernel_t>{find_eltwise(mxdnn_eltwise_swish),
                find_eltwise(mxdnn_eltwise_gelu_erf), find_eltwise(mxdnn_eltwise_gelu_tanh),
                find_eltwise(mxdnn_eltwise_clip)});
    return e;
}

// How many CTAs share a row.
unsigned parts_of_row(const finish_results_args_t &a) {
    const matmul_args_t &m = a.all.m;
    if (a.step != finish_step_t::apply_ops) return 1;
    // Results of pairs are written in the place of other pairs.
    for (int i = 0; i < m.post_ops; i++)
        if (a.applies && !a.to_dst && m.ops[i].kind == mxdnn_gated && !m.ops[i].halves) return 1;
    return unsigned(std::min<int64_t>(div_up(m.columns, int64_t(part)), 65535));
}

cudaError_t launch_finish_results(const launch_t &at, const finish_results_args_t &a) {
    constexpr int ctas = 2048 / threads; // that a multiprocessor holds
    const bool of_rows = a.step == finish_step_t::apply_ops || a.step == finish_step_t::store_codes;
    if (!of_rows) return launch_kernel(at, find(a.step), {1, threads, 0, early}, a);
    const int64_t rows_by_pieces = a.rows * (a.all.m.columns / piece);
    if (a.step == finish_step_t::apply_ops && is_one_eltwise(a) && rows_by_pieces <= INT32_MAX)
        if (const kernel_t k = find_eltwise(a.all.m.ops[0].alg)) {
            const int64_t grid =
                    std::min(div_up(rows_by_pieces, int64_t(threads)), int64_t(at.sm_count) * ctas);
            return launch_kernel(at, k, {unsigned(grid), threads, 0, early}, a);
        }
    const unsigned parts = parts_of_row(a);
    const int64_t most = div_up(int64_t(at.sm_count) * ctas, int64_t(parts));
    const int64_t takes = div_up(a.rows, int64_t(a.step == finish_step_t::apply_ops ? rows_at_once : 1));
    return launch_kernel(
            at, find(a.step), {dim3(unsigned(std::min(takes, most)), parts), threads, 0, early}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
