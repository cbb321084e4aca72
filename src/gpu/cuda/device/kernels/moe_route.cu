// SPDX-License-Identifier: Apache-2.0
// moe_route in one launch: a warp for every token, then the rows of all experts by their numbers. The
// arithmetic is that of common/route_rules.hpp, operation by operation.
//
// Tokens are dealt out in order: to CTAs, in these to warps. So a row's place is where its expert begins, and
// behind it what CTAs before, warps before and tokens before have chosen of that expert. CTAs tell each other
// their counts once, across a barrier of the whole grid, which is launched cooperatively for that.
//
// Few tokens have a kernel of their own, in one CTA: a row's place is the number of choices that come before
// it, by expert and token, which is found by comparing it with all of them.

// Without the standard library of CUDA, whose headers take the compiler 2 s.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
#include <cuda_fp16.h>

#include "common/formats/format_list.hpp"
#include "common/route_rules.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace route_rules;

constexpr int max_warps = 16, lanes = 32;
constexpr unsigned all_lanes = ~0u;
constexpr float least = -HUGE_VALF;

// One token. This lane has the experts lane, lane + 32, ...
template <int per_lane>
struct token_t {
    const route_args_t &a;
    const int lane;
    int32_t *shared; // one number for every expert, for this warp
    float score[per_lane];
    int32_t key[per_lane];
    // The choice that belongs to the lane.
    int32_t id = 0;
    float weight = 0;

    __device__ token_t(const route_args_t &args, int32_t *own)
        : a(args), lane(threadIdx.x % lanes), shared(own) {}

    __device__ bool exists(int i) const { return i * lanes + lane < a.E; }
    __device__ float choice(int i) const {
        return a.bias ? add_f32(score[i], a.bias[i * lanes + lane]) : score[i];
    }

    __device__ void load(int64_t t) {
        const uint8_t *p = a.logits.data + t * a.logits.step[0];
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            score[i] = least;
            if (!exists(i)) continue;
            const uint8_t *q = p + (i * lanes + lane) * a.logits.step[1];
            score[i] = a.logits.dt == mxdnn_f32 ? *reinterpret_cast<const float *>(q)
                       : a.logits.dt == mxdnn_bf16
                               ? float_of(uint32_t(*reinterpret_cast<const uint16_t *>(q)) << 16)
                               : f16_t::decode(*reinterpret_cast<const uint16_t *>(q));
        }
    }

    __device__ void softmax() {
        float most = least;
#pragma unroll
        for (int i = 0; i < per_lane; i++) most = larger(most, score[i]);
#pragma unroll
        for (int d = lanes / 2; d > 0; d /= 2) most = larger(most, __shfl_xor_sync(all_lanes, most, d));
        // Experts i and i + 16 of 32 belong to one of the 16 sums, in this order.
        static_assert(sums == lanes / 2);
        float s[1] = {0};
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            score[i] = exists(i) ? exp_f32(sub_f32(score[i], most)) : 0.f;
            const float other = __shfl_xor_sync(all_lanes, score[i], sums);
            s[0] = add_f32(add_f32(s[0], score[i]), other); // not used in the upper lanes
        }
#pragma unroll
        for (int d = sums / 2; d > 0; d /= 2) s[0] = add_f32(s[0], __shfl_xor_sync(all_lanes, s[0], d));
        const float sum = __shfl_sync(all_lanes, s[0], 0);
#pragma unroll
        for (int i = 0; i < per_lane; i++) score[i] = div_f32(score[i], sum);
    }

    // Experts outside the best groups cannot be chosen.
    __device__ void close_groups() {
        const int groups = int(a.expert_groups), n = int(a.E) / groups;
#pragma unroll
        for (int i = 0; i < per_lane; i++)
            if (exists(i)) shared[i * lanes + lane] = key_of(choice(i));
        __syncwarp();
        int32_t own[per_lane];
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            int32_t best = no_key, second = no_key;
            if (const int g = i * lanes + lane; g < groups)
                for (int e = g * n; e < (g + 1) * n; e++) {
                    second = max(second, min(best, shared[e]));
                    best = max(best, shared[e]);
                }
            own[i] = a.group_max ? best : group_key(best, second);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < per_lane; i++)
            if (const int g = i * lanes + lane; g < groups) shared[g] = own[i];
        __syncwarp();
        bool closed[per_lane];
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            const int g = i * lanes + lane;
            int better = 0; // number of better groups
            for (int other = 0; g < groups && other < groups; other++)
                better += shared[other] > own[i] || (shared[other] == own[i] && other < g);
            closed[i] = better >= a.topk_groups;
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < per_lane; i++)
            if (const int g = i * lanes + lane; g < groups) shared[g] = closed[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < per_lane; i++)
            if (exists(i) && shared[(i * lanes + lane) / n]) key[i] = no_key;
        __syncwarp();
    }

    __device__ void choose() {
        for (int j = 0; j < a.topk; j++) {
            int32_t best = key[0];
            int place = 0;
#pragma unroll
            for (int i = 1; i < per_lane; i++)
                if (key[i] > best) best = key[i], place = i;
            const int32_t most = __reduce_max_sync(all_lanes, best);
            const int e = __reduce_min_sync(all_lanes, best == most ? place * lanes + lane : INT32_MAX);
            float x = 0;
#pragma unroll
            for (int i = 0; i < per_lane; i++)
                if (i * lanes + lane == e) x = score[i], key[i] = no_key;
            x = __shfl_sync(all_lanes, x, e % lanes);
            if (lane == j) id = e, weight = x;
        }
    }

    __device__ float sum_of_weights() const {
        float sum = 0;
        for (int j = 0; j < a.topk; j++) sum = add_f32(sum, __shfl_sync(all_lanes, weight, j));
        return sum;
    }

    __device__ void route(int64_t t) {
        load(t);
        // Scores increase with their logits. So without a bias the logits rank the experts.
#pragma unroll
        for (int i = 0; i < per_lane; i++) key[i] = exists(i) ? key_of(score[i]) : no_key;
        if (a.scoring == mxdnn_route_sigmoid) {
#pragma unroll
            for (int i = 0; i < per_lane; i++) score[i] = sigmoid(score[i]);
        } else if (a.scoring == mxdnn_route_softmax_topk) {
            softmax();
        }
        if (a.bias) {
#pragma unroll
            for (int i = 0; i < per_lane; i++)
                if (exists(i)) key[i] = key_of(choice(i));
        }
        if (a.topk_groups < a.expert_groups) close_groups();
        choose();
        const bool softmax_last = a.scoring == mxdnn_route_topk_softmax;
        if (softmax_last) {
            float most = least;
            for (int j = 0; j < a.topk; j++) most = larger(most, __shfl_sync(all_lanes, weight, j));
            weight = exp_f32(sub_f32(weight, most));
        }
        if (softmax_last || a.renormalizes) {
            float sum = sum_of_weights();
            if (a.scoring == mxdnn_route_sigmoid) sum = add_f32(sum, sum_guard);
            weight = div_f32(weight, sum);
        }
        weight = mul_f32(weight, a.factor);
    }
};

// `keeps`: ids and weights are outputs, and are read again when rows are placed. Otherwise all tokens but the
// last one of each warp are routed a second time.
template <int per_lane, bool keeps>
__global__ void __launch_bounds__(max_warps *lanes) route(const __grid_constant__ route_args_t a) {
    // For each warp and expert: number of rows, later the next row. For each expert: its rows in earlier
    // CTAs, in all, and its first row.
    extern __shared__ int32_t shared[];
    const int E = int(a.E), k = int(a.topk), lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    const int warps = blockDim.x / lanes;
    int32_t *place = shared + warp * E, *before = shared + warps * E, *total = before + E, *first = total + E;
    for (int i = threadIdx.x; i < (warps + 2) * E; i += blockDim.x) shared[i] = 0;
    start_of_early_kernel();
    __syncthreads();

    const int64_t of_warp = div_up(div_up(a.T, gridDim.x), warps);
    const int64_t begin = (int64_t(blockIdx.x) * warps + warp) * of_warp;
    const int64_t end = begin + of_warp < a.T ? begin + of_warp : a.T;
    int last_id = 0;
    float last_weight = 0;
    for (int64_t t = begin; t < end; t++) {
        token_t<per_lane> token(a, first + E + warp * E);
        token.route(t);
        if (lane < k) {
            if (keeps || a.ids) a.ids[t * k + lane] = token.id;
            if (keeps || a.weights) a.weights[t * k + lane] = token.weight;
            place[token.id]++; // the experts of a token are different
        }
        if (!keeps) last_id = token.id, last_weight = token.weight;
        __syncwarp();
    }
    if (!a.counts && !a.offsets && !a.asks_for_rows()) return;

    __syncthreads();
    for (int e = threadIdx.x; e < E; e += blockDim.x) {
        int32_t sum = 0;
        for (int w = 0; w < warps; w++) {
            const int32_t n = shared[w * E + e];
            shared[w * E + e] = sum;
            sum += n;
        }
        total[e] = sum;
        if (gridDim.x > 1) a.position[int64_t(blockIdx.x) * E + e] = sum;
    }
    __syncthreads();
    if (gridDim.x > 1) {
        cooperative_groups::this_grid().sync();
        // Several threads an expert, where there are as many.
        const int parts = E < int(blockDim.x) ? int(blockDim.x) / E : 1;
        for (int i = threadIdx.x; i < E * parts; i += blockDim.x) {
            const int e = i % E;
            int32_t ahead = 0, other = 0;
#pragma unroll 8
            for (unsigned c = i / E; c < gridDim.x; c += parts) {
                const int32_t n = a.position[int64_t(c) * E + e];
                ahead += c < blockIdx.x ? n : 0;
                other += c != blockIdx.x ? n : 0;
            }
            atomicAdd(before + e, ahead);
            atomicAdd(total + e, other);
        }
        __syncthreads();
    }
    if (warp == 0) {
        // Each lane has experts next to each other.
        const int own = (E + lanes - 1) / lanes;
        int32_t sum = 0;
        for (int e = lane * own; e < min(E, (lane + 1) * own); e++) sum += total[e];
        int32_t next = sum;
        for (int d = 1; d < lanes; d *= 2) {
            const int32_t n = __shfl_up_sync(all_lanes, next, d);
            if (lane >= d) next += n;
        }
        next -= sum;
        for (int e = lane * own; e < min(E, (lane + 1) * own); e++) {
            first[e] = next;
            next += total[e];
        }
    }
    __syncthreads();
    if (blockIdx.x == 0)
        for (int e = threadIdx.x; e < E; e += blockDim.x) {
            if (a.counts) a.counts[e] = total[e];
            if (!a.offsets) continue;
            if (a.starts && e == 0) a.offsets[0] = 0;
            a.offsets[e + a.starts] = first[e] + total[e];
        }
    if (!a.asks_for_rows()) return;
    for (int64_t t = begin; t < end; t++) {
        int id = last_id;
        float weight = last_weight;
        if (!keeps && t + 1 < end) {
            token_t<per_lane> token(a, first + E + warp * E);
            token.route(t);
            id = token.id, weight = token.weight;
        }
        if (lane < k) {
            const int64_t i = t * k + lane;
            const int e = keeps ? a.ids[i] : id;
            const int32_t row = first[e] + before[e] + place[e]++;
            if (a.order) a.order[row] = int32_t(i);
            if (a.tokens) a.tokens[row] = int32_t(t);
            if (a.row_weights) a.row_weights[row] = keeps ? a.weights[i] : weight;
        }
        __syncwarp();
    }
}

constexpr int few_choices = 128;
bool is_few(const route_args_t &a) { return a.T > 0 && a.T <= max_warps && a.T * a.topk <= few_choices; }

template <int per_lane>
__global__ void __launch_bounds__(max_warps *lanes) route_few(const __grid_constant__ route_args_t a) {
    __shared__ __align__(16) int32_t ids[few_choices];
    extern __shared__ int32_t shared[]; // one number for each warp and expert
    const int E = int(a.E), k = int(a.topk), choices = int(a.T) * k, lane = threadIdx.x % lanes,
              t = threadIdx.x / lanes, i = t * k + lane;
    for (int j = choices + threadIdx.x; j < few_choices; j += blockDim.x) ids[j] = INT32_MAX;
    start_of_early_kernel();

    token_t<per_lane> token(a, shared + t * E);
    token.route(t);
    if (lane < k) {
        ids[i] = token.id;
        if (a.ids) a.ids[i] = token.id;
        if (a.weights) a.weights[i] = token.weight;
    }
    __syncthreads();
    // Choices of smaller experts, and those of this expert before choice `until`.
    const auto before = [&](int expert, int until) {
        int count = 0;
        for (int j = 0; j < choices; j += 4) {
            const int4 v = *reinterpret_cast<const int4 *>(ids + j);
            count += (v.x < expert) + (v.y < expert) + (v.z < expert) + (v.w < expert);
            count += (v.x == expert && j < until) + (v.y == expert && j + 1 < until)
                     + (v.z == expert && j + 2 < until) + (v.w == expert && j + 3 < until);
        }
        return count;
    };
    if (a.asks_for_rows() && lane < k) {
        const int row = before(token.id, i);
        if (a.order) a.order[row] = i;
        if (a.tokens) a.tokens[row] = t;
        if (a.row_weights) a.row_weights[row] = token.weight;
    }
    if (!a.counts && !a.offsets) return;
    for (int e = threadIdx.x; e < E; e += blockDim.x) {
        const int end = before(e, choices);
        if (a.counts) a.counts[e] = end - before(e, 0);
        if (!a.offsets) continue;
        if (a.starts && e == 0) a.offsets[0] = 0;
        a.offsets[e + a.starts] = end;
    }
}

using kernel_t = void (*)(route_args_t);

kernel_t find_few(int64_t E) {
    return E <= 32    ? route_few<1>
           : E <= 64  ? route_few<2>
           : E <= 128 ? route_few<4>
           : E <= 256 ? route_few<8>
                      : route_few<16>;
}
int few_shared_bytes(int64_t E, int64_t tokens) { return int(E * tokens) * 4; }

template <bool keeps>
kernel_t find(int64_t E) {
    return E <= 32    ? route<1, keeps>
           : E <= 64  ? route<2, keeps>
           : E <= 128 ? route<4, keeps>
           : E <= 256 ? route<8, keeps>
                      : route<16, keeps>;
}
kernel_t find(int64_t E, bool keeps) { return keeps ? find<true>(E) : find<false>(E); }

int shared_bytes(int64_t E, int warps) { return int(E) * (2 * warps + 3) * 4; }

cudaError_t prepare(const void *args) {
    // Execution decides which outputs there are.
    const auto load = [](int64_t E) {
        for (const bool keeps : {true, false})
            if (const cudaError_t e = load_kernel(find(E, keeps), shared_bytes(E, max_warps))) return e;
        return load_kernel(find_few(E), few_shared_bytes(E, max_warps));
    };
    if (const auto *a = static_cast<const route_args_t *>(args)) return load(a->E);
    for (int64_t E : {32, 64, 128, 256, 512})
        if (const cudaError_t e = load(E)) return e;
    return cudaSuccess;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const route_args_t *>(args);
    if (is_few(a))
        return launch_kernel(
                at, find_few(a.E), {1, unsigned(a.T * lanes), size_t(few_shared_bytes(a.E, a.T)), early}, a);
    // One token per warp, until every multiprocessor has a CTA.
    const int warps = int(a.T < 1 ? 1 : a.T < max_warps ? a.T : max_warps);
    const int64_t wanted = div_up(a.T, max_warps);
    const int64_t ctas = wanted < 1 ? 1 : wanted < at.sm_count ? wanted : at.sm_count;
    // CTAs that wait for each other cannot start early.
    launch_shape_t shape{unsigned(ctas), unsigned(warps * lanes), size_t(shared_bytes(a.E, warps))};
    shape.cooperative = ctas > 1;
    shape.early = !shape.cooperative;
    return launch_kernel(at, find(a.E, a.ids && a.weights), shape, a);
}

} // namespace

const kernel_entry_t moe_route_kernel = {sizeof(route_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
