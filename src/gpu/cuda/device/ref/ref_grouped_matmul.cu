// SPDX-License-Identifier: Apache-2.0
// The device's reference for grouped_matmul: a CTA for every row of dst, whose threads each make one column,
// or one block of a quantised dst, out of all the rows that are added there.
#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ref/threads.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

__device__ float topk_weight(const grouped_args_t &a, int64_t row) {
    if (!a.topk) return 1.f;
    return a.topk_dt == mxdnn_f32 ? static_cast<const float *>(a.topk)[row]
                                  : bf16_t::decode(static_cast<const uint16_t *>(a.topk)[row]);
}

// The index of a row. If groups are padded, it consists of the group and the row in it.
struct row_index_t {
    int64_t idx[max_ndims] = {};
    int64_t m;
    __device__ row_index_t(int64_t row, int64_t group_rows) : m(row) {
        if (group_rows) {
            idx[0] = row / group_rows;
            m = row % group_rows;
        }
        idx[group_rows ? 1 : 0] = m;
    }
};

// One row of the source times the weights of its expert.
struct product_t {
    const grouped_args_t &a;
    int64_t row;
    int expert;
    bool zero; // a row of zeros
    row_index_t from;
    int64_t wei_idx[max_ndims];
    matrix_view_t src, wei;

    __device__ static int64_t *expert_index(int64_t *idx, int expert) {
        for (int i = 0; i < max_ndims; i++) idx[i] = 0;
        idx[0] = expert;
        return idx;
    }
    // -1: zeros.
    __device__ static int64_t source(const grouped_args_t &a, int64_t row) {
        if (!a.gather) return row;
        const int64_t from = a.gather[row];
        return from < a.src_rows ? from : -1;
    }

    __device__ product_t(const grouped_args_t &args, int64_t group, int64_t r, int e)
        : a(args), row(r), expert(e), zero(source(args, r) < 0),
          from(zero ? 0 : source(args, r), args.src_group_rows), src(args.m.src, from.idx),
          wei(args.m.wei, expert_index(wei_idx, e)) {
        src.set_global_index(expert);
        if (a.src_swizzled_by_group)
            src.set_scale_row_shift(a.groups.swizzled_rows_before(group) - a.groups.group(group).first);
        if (a.weights_ptrs) wei.set_packed_data(reinterpret_cast<uint8_t *>(a.weights_ptrs[expert]));
    }

    // alpha, top-k weight of the input, bias, and the post-ops before `end`.
    __device__ __noinline__ double column(int64_t c, int end) const {
        const matmul_args_t &m = a.m;
        double sum = 0;
        const float wei_global = wei.global();
        source_values_t x(src, m.recipe, from.m, m.K, src.global());
        for (int64_t k = 0; k < m.K; k++) sum += (zero ? 0. : x.next()) * double(wei.value(k, c, wei_global));
        sum *= double(a.expert_alpha ? a.expert_alpha[expert] : 1.f)
               * (a.topk_on_input ? double(topk_weight(a, row)) : 1.);
        if (m.bias.data) {
            const int64_t at[2] = {expert, c};
            sum += load_value(m.bias, at, 2);
        }
        for (int i = 0; i < end; i++)
            sum = ref_eltwise<double>(m.ops[i].alg, sum, m.ops[i].alpha, m.ops[i].beta);
        return sum;
    }
    __device__ __noinline__ double result(int64_t c) const {
        const matmul_args_t &m = a.m;
        int gate = 0;
        while (gate < m.post_ops && m.ops[gate].kind != mxdnn_gated) gate++;
        double x;
        if (gate == m.post_ops) {
            x = column(c, gate);
        } else {
            const post_op_args_t &o = m.ops[gate];
            float alpha = o.alpha, beta = 1.f, limit = o.beta;
            if (a.activation_params) {
                const float *v = a.activation_params + a.activation_stride * expert;
                alpha = v[0], beta = v[1], limit = v[2];
            }
            const double g = column(o.halves ? c : 2 * c, gate),
                         u = column(o.halves ? c + m.columns : 2 * c + 1, gate);
            x = ref_gated<double>(o.alg, g, u, alpha, limit, beta);
            for (int i = gate + 1; i < m.post_ops; i++)
                x = ref_eltwise<double>(m.ops[i].alg, x, m.ops[i].alpha, m.ops[i].beta);
        }
        return a.topk && !a.topk_on_input ? x * double(topk_weight(a, row)) : x;
    }
};

// The contributions to one row of dst: calls body(group, expert, row) in ascending order of groups and rows.
template <typename F>
__device__ void for_each_source(const grouped_args_t &a, int64_t dst_row, F &&body) {
    for (int64_t g = 0; g < a.groups.groups; g++) {
        const row_group_t group = a.groups.group(g);
        if (group.expert < 0) continue;
        const int64_t end = group.first + group.count;
        if (!a.scatter) {
            if (dst_row >= group.first && dst_row < end) body(g, group.expert, dst_row);
            continue;
        }
        for (int64_t r = group.first; r < end; r++)
            if (a.scatter[r] == dst_row) body(g, group.expert, r);
    }
}

// The sums of `count` columns from `first` on, in one row of dst. Returns the last expert that was added
// there; -1: none.
__device__ int sums_of(const grouped_args_t &a, int64_t dst_row, int64_t first, int count, double *sums,
        int64_t *last_group) {
    int last = -1;
    *last_group = 0;
    for (int j = 0; j < count; j++) sums[j] = 0;
    for_each_source(a, dst_row, [&](int64_t g, int expert, int64_t r) {
        const product_t p(a, g, r, expert);
        // The first row is copied, so that -0 stays -0.
        for (int j = 0; j < count; j++) sums[j] = p.result(first + j) + (last < 0 ? -0. : sums[j]);
        last = expert;
        *last_group = g;
    });
    if (!a.has_old || (last < 0 && !a.scatter)) return last;
    const row_index_t at(dst_row, a.dst_group_rows);
    const matrix_view_t dst(a.m.dst, at.idx);
    for (int j = 0; j < count; j++)
        sums[j] += double(a.old_scale) * (decode(a.old_dt, dst.code(at.m, first + j)) - a.old_zero_point);
    return last;
}

__global__ void __launch_bounds__(threads) clear_grouped_globals(const __grid_constant__ grouped_args_t a) {
    for (int64_t i = threadIdx.x; i < a.m.globals; i += threads) a.m.dst.global[i] = 0;
}

__global__ void __launch_bounds__(threads) find_largest_of_rows(const __grid_constant__ grouped_args_t a) {
    for (int64_t c = threadIdx.x; c < a.m.columns; c += threads) {
        double sum;
        int64_t group;
        const int expert = sums_of(a, blockIdx.x, c, 1, &sum, &group);
        if (expert < 0) continue;
        const float amax = nvfp4_global_amax(0, float(sum));
        atomicMax(reinterpret_cast<unsigned *>(a.m.dst.global) + (a.m.globals == 1 ? 0 : expert),
                bits_of(amax));
    }
}

__global__ void __launch_bounds__(threads) finish_grouped_globals(const __grid_constant__ grouped_args_t a) {
    for (int64_t i = threadIdx.x; i < a.m.globals; i += threads)
        a.m.dst.global[i] = nvfp4_global_scale(a.m.dst.global[i]);
}

__device__ void row_of_results(const grouped_args_t &a, int64_t dst_row) {
    const int64_t block = a.m.dst.quantised ? a.m.dst.quant.block : 1;
    for (int64_t first = threadIdx.x * block; first < a.m.columns; first += threads * block) {
        const int count = int(a.m.columns - first < block ? a.m.columns - first : block);
        double sums[max_block];
        float x[max_block];
        int64_t group;
        const int expert = sums_of(a, dst_row, first, count, sums, &group);
        if (expert < 0 && !a.scatter) return; // no expert computes the row
        for (int j = 0; j < count; j++) x[j] = float(sums[j]);
        const row_index_t at(dst_row, a.dst_group_rows);
        matrix_view_t dst(a.m.dst, at.idx);
        dst.set_global_index(expert < 0 ? 0 : expert);
        if (a.dst_swizzled_by_group)
            dst.set_scale_row_shift(a.groups.swizzled_rows_before(group) - a.groups.group(group).first);
        store_block(a.m, dst, at.m, first, count, x);
    }
}

__global__ void __launch_bounds__(threads) grouped_results(const __grid_constant__ grouped_args_t a) {
    row_index_t at(blockIdx.x, a.dst_group_rows);
    for_sharers(a.m.dst, a.m.dims, at.idx, [&] {
        row_of_results(a, a.dst_group_rows ? at.idx[0] * a.dst_group_rows + at.idx[1] : at.idx[0]);
    });
}

cudaError_t prepare_grouped_matmul(const void *) {
    for (auto *k : {clear_grouped_globals, find_largest_of_rows, finish_grouped_globals, grouped_results})
        if (const cudaError_t e = load_kernel(k)) return e;
    return cudaSuccess;
}

cudaError_t launch_grouped_matmul(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const grouped_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    if (a.m.dynamic_global) {
        clear_grouped_globals<<<1, threads, 0, s>>>(a);
        if (a.dst_rows > 0) find_largest_of_rows<<<unsigned(a.dst_rows), threads, 0, s>>>(a);
        finish_grouped_globals<<<1, threads, 0, s>>>(a);
    }
    if (a.dst_rows > 0 && a.m.columns > 0) grouped_results<<<unsigned(a.dst_rows), threads, 0, s>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_grouped_matmul_kernel = {
        sizeof(grouped_args_t), prepare_grouped_matmul, launch_grouped_matmul};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
