// SPDX-License-Identifier: Apache-2.0
// The device's reference for moe_route: a thread for every token, then one for every expert. The arithmetic
// is that of common/route_rules.hpp, so ids and weights are those of the host, bit for bit.
#include "common/route_rules.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ref/threads.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace route_rules;

constexpr float least = -HUGE_VALF;

// One token at a time. Scores and keys of neighbouring threads are neighbours.
struct token_router_t {
    const route_args_t &a;
    int64_t slice;

    __device__ float &score(int64_t e) const { return a.score[e * a.slices + slice]; }
    __device__ int32_t &key(int64_t e) const { return a.key[e * a.slices + slice]; }
    __device__ float choice(int64_t e) const { return a.bias ? add_f32(score(e), a.bias[e]) : score(e); }

    __device__ void make_scores() const {
        if (a.scoring == mxdnn_route_sigmoid)
            for (int64_t e = 0; e < a.E; e++) score(e) = sigmoid(score(e));
        if (a.scoring != mxdnn_route_softmax_topk) return;
        float most = least, s[sums] = {};
        for (int64_t e = 0; e < a.E; e++) most = larger(most, score(e));
        for (int64_t e = 0; e < a.E; e++) score(e) = exp_f32(sub_f32(score(e), most));
        for (int64_t e = 0; e < a.E; e++) s[e % sums] = add_f32(s[e % sums], score(e));
        const float sum = add_sums(s);
        for (int64_t e = 0; e < a.E; e++) score(e) = div_f32(score(e), sum);
    }
    __device__ int32_t key_of_group(int64_t g) const {
        const int64_t n = a.E / a.expert_groups;
        int32_t best = no_key, second = no_key;
        for (int64_t e = g * n; e < (g + 1) * n; e++) {
            const int32_t k = key_of(choice(e));
            second = max(second, min(best, k));
            best = max(best, k);
        }
        return a.group_max ? best : group_key(best, second);
    }
    // Experts outside the best groups cannot be chosen.
    __device__ void close_groups() const {
        const int64_t n = a.E / a.expert_groups;
        for (int64_t g = 0; g < a.expert_groups; g++) {
            const int32_t own = key_of_group(g);
            int64_t better = 0; // number of better groups
            for (int64_t other = 0; other < a.expert_groups; other++) {
                const int32_t k = key_of_group(other);
                better += k > own || (k == own && other < g);
            }
            if (better < a.topk_groups) continue;
            for (int64_t e = g * n; e < (g + 1) * n; e++) key(e) = no_key;
        }
    }
    __device__ void route(int64_t t) const {
        int32_t *ids = a.part_ids + (t - a.first) * a.topk;
        float *weights = a.part_weights + (t - a.first) * a.topk;
        for (int64_t e = 0; e < a.E; e++) {
            const int64_t idx[2] = {t, e};
            score(e) = load_value(a.logits, idx, 2);
            // Scores increase with their logits. So without a bias the logits rank the experts.
            if (!a.bias) key(e) = key_of(score(e));
        }
        make_scores();
        if (a.bias)
            for (int64_t e = 0; e < a.E; e++) key(e) = key_of(choice(e));
        if (a.topk_groups < a.expert_groups) close_groups();
        for (int64_t j = 0; j < a.topk; j++) {
            int64_t best = 0;
            for (int64_t e = 1; e < a.E; e++)
                if (key(e) > key(best)) best = e;
            ids[j] = int32_t(best);
            key(best) = no_key;
            weights[j] = score(best);
        }
        if (a.scoring == mxdnn_route_topk_softmax) {
            float most = least;
            for (int64_t j = 0; j < a.topk; j++) most = larger(most, weights[j]);
            for (int64_t j = 0; j < a.topk; j++) weights[j] = exp_f32(sub_f32(weights[j], most));
        }
        if (a.scoring == mxdnn_route_topk_softmax || a.renormalizes) {
            float sum = 0;
            for (int64_t j = 0; j < a.topk; j++) sum = add_f32(sum, weights[j]);
            if (a.scoring == mxdnn_route_sigmoid) sum = add_f32(sum, sum_guard);
            for (int64_t j = 0; j < a.topk; j++) weights[j] = div_f32(weights[j], sum);
        }
        for (int64_t j = 0; j < a.topk; j++) weights[j] = mul_f32(weights[j], a.factor);
        for (int64_t j = 0; j < a.topk && a.ids && ids != a.ids + t * a.topk; j++)
            a.ids[t * a.topk + j] = ids[j];
        for (int64_t j = 0; j < a.topk && a.weights && weights != a.weights + t * a.topk; j++)
            a.weights[t * a.topk + j] = weights[j];
    }
};

// Tokens of the current part, which ends here.
__device__ int64_t end_of(const route_args_t &a) { return a.T - a.first < a.part ? a.T : a.first + a.part; }

__global__ void __launch_bounds__(threads) choose(const __grid_constant__ route_args_t a) {
    const int64_t slice = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (slice >= a.slices) return;
    for (int64_t t = a.first + slice; t < end_of(a); t += a.slices) token_router_t{a, slice}.route(t);
}

__global__ void __launch_bounds__(threads) count(const __grid_constant__ route_args_t a) {
    const int64_t e = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (e >= a.E) return;
    int32_t n = a.first ? a.position[e] : 0;
    for (int64_t i = 0; i < (end_of(a) - a.first) * a.topk; i++) n += a.part_ids[i] == e;
    a.position[e] = n;
}

__global__ void offsets(const __grid_constant__ route_args_t a) {
    int32_t *out = a.offsets;
    if (out && a.starts) *out++ = 0;
    int32_t end = 0;
    for (int64_t e = 0; e < a.E; e++) {
        const int32_t n = a.position[e];
        a.position[e] = end;
        end += n;
        if (a.counts) a.counts[e] = n;
        if (out) out[e] = end;
    }
}

// The rows of the experts, one expert after the other. Rows of one expert are in the order of the tokens.
__global__ void __launch_bounds__(threads) order_rows(const __grid_constant__ route_args_t a) {
    const int64_t e = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (e >= a.E) return;
    int32_t row = a.position[e];
    for (int64_t i = 0; i < (end_of(a) - a.first) * a.topk; i++) {
        if (a.part_ids[i] != e) continue;
        if (a.order) a.order[row] = int32_t(a.first * a.topk + i);
        if (a.tokens) a.tokens[row] = int32_t(a.first + i / a.topk);
        if (a.row_weights) a.row_weights[row] = a.part_weights[i];
        row++;
    }
    a.position[e] = row; // of the next part
}

cudaError_t prepare_route(const void *) {
    for (auto *k : {choose, count, offsets, order_rows})
        if (const cudaError_t e = load_kernel(k)) return e;
    return cudaSuccess;
}

cudaError_t launch_route(const launch_t &at, const void *args) {
    route_args_t a = *static_cast<const route_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    const unsigned experts = unsigned(div_up(a.E, threads));
    if (a.ids && a.weights) {
        // One part, in the caller's memory.
        a.part = a.T;
        a.part_ids = a.ids;
        a.part_weights = a.weights;
    }
    const auto choose_part = [&] {
        const int64_t n = a.T - a.first < a.part ? a.T - a.first : a.part;
        if (n > 0) choose<<<unsigned(div_up(a.slices < n ? a.slices : n, threads)), threads, 0, s>>>(a);
    };
    a.first = 0;
    do {
        choose_part();
        count<<<experts, threads, 0, s>>>(a);
        a.first += a.part;
    } while (a.first < a.T);
    offsets<<<1, 1, 0, s>>>(a);
    for (a.first = 0; a.first < a.T && a.asks_for_rows(); a.first += a.part) {
        if (a.part < a.T) choose_part();
        order_rows<<<experts, threads, 0, s>>>(a);
    }
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_moe_route_kernel = {sizeof(route_args_t), prepare_route, launch_route};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
