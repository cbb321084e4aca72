// SPDX-License-Identifier: Apache-2.0
// The end of gemm_narrow: sums of consumers, and of CTAs, that share K add up and become results. Each of
// them finishes a part of the rows, for which the others put their sums into its shared memory: fragments as
// they are in registers, four sums of a thread for every eight rows.
#pragma once

#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/exchange.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The part of `count` things that number i of n gets.
struct narrow_share_t {
    int begin, end;
    __device__ narrow_share_t(int count, int i, int n) : begin(count * i / n), end(count * (i + 1) / n) {}
    __device__ int count() const { return end - begin; }
    __device__ bool has(int i) const { return i >= begin && i < end; }
};

// What a consumer of a CTA is, and where it puts its sums.
template <typename v>
struct narrow_sums_t {
    const matmul_args_t &args;
    uint8_t *shared;
    uint32_t at;      // shared address of what is used instead of the stages
    uint32_t arrived; // a barrier for the sums of other CTAs
    int consumer, step, thread;
    int part; // of K
    float4 mine[v::most_groups];

    static constexpr int group_bytes = v::group * 16;

    __device__ static float4 sums_of_group(const float (&sum)[v::width / 2], int group) {
        return make_float4(sum[4 * group], sum[4 * group + 1], sum[4 * group + 2], sum[4 * group + 3]);
    }
    __device__ static float4 read(uint32_t from) {
        const uint4 o = ptx::shared_reader_t{from}.read_16();
        return make_float4(
                __uint_as_float(o.x), __uint_as_float(o.y), __uint_as_float(o.z), __uint_as_float(o.w));
    }
    __device__ __forceinline__ void add(int group, uint32_t from) {
        const float4 o = read(from);
        mine[group].x += o.x, mine[group].y += o.y, mine[group].z += o.z, mine[group].w += o.w;
    }
    // Groups of eight rows that a consumer, of those that share K, finishes.
    __device__ static narrow_share_t groups_of(int step) { return {v::groups, step, v::steps}; }
    // Of these, those that this part of K finishes.
    __device__ narrow_share_t own() const { return {groups_of(step).count(), part, v::parts}; }

    // The consumers of a panel. Sums of `from` others wait for consumer `to`.
    __device__ uint32_t exchange(int to, int from) const {
        return at + thread * 16
               + ((consumer - step + to) * (v::steps - 1) + from) * v::most_groups * group_bytes;
    }
    __device__ __forceinline__ void take(const float (&sum)[v::width / 2]) {
#pragma unroll
        for (int to = 0; to < v::steps; to++) {
            constexpr auto bound = [](int i) { return v::groups * i / v::steps; };
            const uint32_t there = exchange(to, step < to ? step : step - 1);
#pragma unroll
            for (int g = bound(to); g < bound(to + 1); g++)
                if (to == step)
                    mine[g - bound(to)] = sums_of_group(sum, g);
                else
                    ptx::store_shared(there + (g - bound(to)) * group_bytes, sums_of_group(sum, g));
        }
        if constexpr (v::steps > 1) {
            ptx::named_barrier(v::panel_barrier + consumer / v::steps, v::steps * v::group);
            const int count = groups_of(step).count();
#pragma unroll
            for (int g = 0; g < v::most_groups; g++)
#pragma unroll
                for (int from = 0; from < v::steps - 1; from++)
                    if (g < count) add(g, exchange(step, from) + g * group_bytes);
        }
    }

    // The CTAs that share K.
    __device__ uint32_t buffer(int from) const {
        return at + v::exchange_bytes + thread * 16
               + (consumer * (v::parts - 1) + from) * v::most_own * group_bytes;
    }
    // The bytes that come from other CTAs.
    __device__ static int bytes_for(int part) {
        int groups = 0;
        for (int i = 0; i < v::steps; i++)
            groups += narrow_share_t(groups_of(i).count(), part, v::parts).count();
        return v::panels * (v::parts - 1) * groups * group_bytes;
    }
    __device__ __forceinline__ void add_parts() {
        using namespace ptx;
#pragma unroll
        for (int other = 1; other < v::parts; other++) {
            const int to = (part + other) % v::parts;
            const narrow_share_t theirs(groups_of(step).count(), to, v::parts);
            const uint32_t there = cluster_address(buffer(v::parts - 1 - other), to),
                           bar = cluster_address(arrived, to);
#pragma unroll
            for (int g = 0; g < v::most_groups; g++)
                if (theirs.has(g))
                    cluster_store_async(there + (g - theirs.begin) * group_bytes, mine[g], bar);
        }
        barrier_wait_cluster(arrived, 0);
        const narrow_share_t own = this->own();
#pragma unroll
        for (int g = 0; g < v::most_groups; g++)
#pragma unroll
            for (int from = 0; from < v::parts - 1; from++)
                if (own.has(g)) add(g, buffer(from) + (g - own.begin) * group_bytes);
    }

    // rows: that exist from first_row on, which is the first one of the block.
    __device__ __forceinline__ void store(int panel, int first_row, int rows) {
        using namespace ptx;
        const narrow_share_t own = this->own();
        const int begin = 8 * (groups_of(step).begin + own.begin), first_column = panel * panel_columns,
                  lane = thread % 32, warp = thread / 32;
        const int first = first_row + begin, end = min(rows - begin, 8 * own.count());
        if (end <= 0 || first_column >= args.N) return;
        const uint32_t results = at + v::exchange_bytes + v::buffers_bytes + consumer * v::results_bytes;
        if (is_tiles_of_dst(args) && !args.row_factors) {
            if (v::format::sum_scale != 1.f || args.expert_alpha || args.prefix || args.src_global
                    || args.bias_type != value_type_t::none) {
                const int column = first_column + warp * 16 + lane / 4;
                const sum_scale_t scale(args, 0, v::format::sum_scale);
                float bias[2];
#pragma unroll
                for (int i = 0; i < 2; i++)
                    bias[i] = args.bias_type != value_type_t::none && column + 8 * i < args.N
                                      ? load_value(args.bias, args.bias_type, column + 8 * i)
                                      : 0.f;
#pragma unroll
                for (float4 &x : mine) {
                    x.x = x.x * scale.sum * scale.expert + bias[0],
                    x.y = x.y * scale.sum * scale.expert + bias[0];
                    x.z = x.z * scale.sum * scale.expert + bias[1],
                    x.w = x.w * scale.sum * scale.expert + bias[1];
                }
            }
            // Rows of 128 bytes in the swizzle of the source. Lane l has the address of row l % 8.
            const uint32_t put = results + lane % 8 * 128 + ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;
#pragma unroll
            for (int g = 0; g < v::most_groups; g++)
                if (own.has(g))
                    store_matrix_2_transposed(put + (g - own.begin) * 1024,
                            pair_of(value_type_t::bf16, mine[g].x, mine[g].y),
                            pair_of(value_type_t::bf16, mine[g].z, mine[g].w));
            named_barrier(v::consumer_barrier + consumer, v::group);
            const int row = thread / 8, chunk = thread % 8;
            const shared_reader_t take{results + row * 128 + (chunk ^ row % 8) * 16};
            auto *to = static_cast<__nv_bfloat16 *>(args.dst)
                       + int64_t(args.row_begin + first + row) * args.dst_stride + first_column + chunk * 8
                       - args.dst_first;
            const bool valid = first_column + chunk * 8 < min(args.N, args.panel_end * panel_columns);
#pragma unroll
            for (int r = 0; r < v::most_own * 8; r += 16)
                if (valid && r + row < end)
                    *reinterpret_cast<uint4 *>(to + int64_t(r) * args.dst_stride) = take.read_16(r * 128);
            return;
        }
        const uint32_t put = results + (lane % 4 * 2 * v::pitch + warp * 16 + lane / 4) * 4;
#pragma unroll
        for (int g = 0; g < v::most_groups; g++)
            if (own.has(g)) {
                const float x[4] = {mine[g].x, mine[g].y, mine[g].z, mine[g].w};
#pragma unroll
                for (int i = 0; i < 4; i++)
                    store_shared(put + (((g - own.begin) * 8 + i % 2) * v::pitch + i / 2 * 8) * 4, x[i]);
            }
        named_barrier(v::consumer_barrier + consumer, v::group);
        constexpr int quads = panel_columns / 4;
        const int quad = thread % quads;
        const columns_t columns(args, 0, first_column + quad * 4, v::format::sum_scale);
        const float *sums =
                reinterpret_cast<const float *>(shared + (results - shared_address(shared))) + quad * 4;
#pragma unroll 1
        for (int row = thread / quads; row < end; row += v::group / quads) {
            const int m = args.row_begin + first + row;
            columns.store<1>(args, m, 1, m + 1, sums + row * v::pitch, sums + row * v::pitch, 0);
        }
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
