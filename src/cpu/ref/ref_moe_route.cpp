// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_moe_route.hpp"

#include <algorithm>
#include <cmath>

#include "common/route_rules.hpp"
#include "cpu/ref/tensor_view.hpp"

namespace mxdnn {
namespace impl {

namespace {

using namespace route_rules;

struct token_router_t {
    const route_desc_t &r;
    const int E;
    const float *bias;  // null for none
    const float factor; // factor of all weights
    float *score;
    int32_t *key;

    // The order of the sum is one of the rules.
    float sum_of_scores() const {
        float s[sums] = {};
        for (int e = 0; e < E; e++) s[e % sums] += score[e];
        return add_sums(s);
    }

    // Logits in `score` become scores.
    void make_scores() const {
        if (r.scoring == mxdnn_route_sigmoid)
            for (int e = 0; e < E; e++) score[e] = sigmoid(score[e]);
        if (r.scoring != mxdnn_route_softmax_topk) return;
        float most = -INFINITY;
        for (int e = 0; e < E; e++) most = larger(most, score[e]);
        for (int e = 0; e < E; e++) score[e] = exp_f32(score[e] - most);
        const float sum = sum_of_scores();
        for (int e = 0; e < E; e++) score[e] /= sum;
    }

    float choice(int e) const { return bias ? score[e] + bias[e] : score[e]; }

    // The index of the largest of n keys; of equal ones the lowest.
    static int best_of(const int32_t *keys, int n) {
        int best = 0;
        for (int i = 1; i < n; i++)
            if (keys[i] > keys[best]) best = i;
        return best;
    }

    int32_t key_of_group(int g) const {
        const int n = int(E / r.expert_groups);
        int32_t best = no_key, second = no_key;
        for (int e = g * n; e < (g + 1) * n; e++) {
            const int32_t k = key_of(choice(e));
            second = std::max(second, std::min(best, k));
            best = std::max(best, k);
        }
        return r.flags & mxdnn_route_group_max ? best : group_key(best, second);
    }

    // Experts outside the best groups cannot be chosen.
    void close_groups() const {
        const int n = int(E / r.expert_groups);
        for (int g = 0; g < r.expert_groups; g++) {
            const int32_t own = key_of_group(g);
            int better = 0; // number of better groups
            for (int other = 0; other < r.expert_groups; other++) {
                const int32_t k = key_of_group(other);
                better += k > own || (k == own && other < g);
            }
            if (better >= r.topk_groups) std::fill(key + g * n, key + (g + 1) * n, no_key);
        }
    }

    template <typename logit_t>
    void route(logit_t &&logit, int32_t *ids, float *weights) const {
        // Scores increase with their logits. So without a bias the logits rank the experts.
        for (int e = 0; e < E; e++) score[e] = logit(e);
        if (!bias)
            for (int e = 0; e < E; e++) key[e] = key_of(score[e]);
        make_scores();
        if (bias)
            for (int e = 0; e < E; e++) key[e] = key_of(choice(e));
        if (r.topk_groups < r.expert_groups) close_groups();

        const int k = int(r.topk);
        for (int j = 0; j < k; j++) {
            ids[j] = best_of(key, E);
            key[ids[j]] = no_key;
            weights[j] = score[ids[j]];
        }
        if (r.scoring == mxdnn_route_topk_softmax) {
            float most = -INFINITY;
            for (int j = 0; j < k; j++) most = larger(most, weights[j]);
            for (int j = 0; j < k; j++) weights[j] = exp_f32(weights[j] - most);
        }
        if (r.scoring == mxdnn_route_topk_softmax || r.renormalizes()) {
            float sum = 0;
            for (int j = 0; j < k; j++) sum += weights[j];
            if (r.scoring == mxdnn_route_sigmoid) sum += sum_guard;
            for (int j = 0; j < k; j++) weights[j] /= sum;
        }
        for (int j = 0; j < k; j++) weights[j] *= factor;
    }
};

} // namespace

status_t ref_moe_route_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &logits = *ctx.memory(MXDNN_ARG_SRC);
    const dim_t T = logits.md.dims[0], E = logits.md.dims[1], k = p.route.topk;
    float *score = ctx.scratch<float>(scratch_t::scores);
    int32_t *key = ctx.scratch<int32_t>(scratch_t::keys);
    int32_t *position = ctx.scratch<int32_t>(scratch_t::positions); // first used for counts
    // If these outputs were not passed, the choice of a token is kept until the next token.
    int32_t *ids = ctx.data<int32_t>(MXDNN_ARG_TOPK_IDS), *own_ids = ctx.scratch<int32_t>(scratch_t::ids);
    float *weights = ctx.data<float>(MXDNN_ARG_TOPK_WEIGHTS),
          *own_weights = ctx.scratch<float>(scratch_t::row_weights);
    const auto ids_of = [&](dim_t t) { return ids ? ids + t * k : own_ids; };
    const auto weights_of = [&](dim_t t) { return weights ? weights + t * k : own_weights; };

    const plain_view_t view(logits);
    const float factor = p.attr.post_ops.ops.empty() ? 1.f : p.attr.post_ops.ops[0].alpha;
    const token_router_t router{
            p.route, int(E), ctx.data<const float>(MXDNN_ARG_ROUTE_BIAS), factor, score, key};
    const auto route = [&](dim_t t) {
        router.route(
                [&](int e) {
                    const dim_t idx[2] = {t, e};
                    return view.value(idx);
                },
                ids_of(t), weights_of(t));
    };

    // The rows of the experts, one expert after the other. Rows of one expert are in the order of the tokens.
    std::fill(position, position + E, 0);
    for (dim_t t = 0; t < T; t++) {
        route(t);
        for (dim_t j = 0; j < k; j++) position[ids_of(t)[j]]++;
    }
    if (int32_t *counts = ctx.data<int32_t>(MXDNN_ARG_GROUP_COUNTS))
        std::copy(position, position + E, counts);
    int32_t *offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    const bool starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
    if (offsets && starts) *offsets++ = 0;
    int32_t end = 0;
    for (dim_t e = 0; e < E; e++) {
        const int32_t count = position[e];
        position[e] = end;
        end += count;
        if (offsets) offsets[e] = end;
    }
    int32_t *order = ctx.data<int32_t>(MXDNN_ARG_ROW_ORDER),
            *tokens = ctx.data<int32_t>(MXDNN_ARG_GATHER_IDX);
    float *row_weights = ctx.data<float>(MXDNN_ARG_ROW_WEIGHTS);
    if (!order && !tokens && !row_weights) return mxdnn_success;
    for (dim_t t = 0; t < T; t++) {
        if (!ids || (row_weights && !weights)) route(t);
        for (dim_t j = 0; j < k; j++) {
            const int32_t row = position[ids_of(t)[j]]++;
            if (order) order[row] = int32_t(t * k + j);
            if (tokens) tokens[row] = int32_t(t);
            if (row_weights) row_weights[row] = weights_of(t)[j];
        }
    }
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
