// SPDX-License-Identifier: Apache-2.0
// Tokens are divided among the threads twice: to choose experts and count them, then, when it is known
// where each thread's rows of each expert begin, to write the rows' order. What comes out does not depend on
// the number of threads.
#include "cpu/x64/moe/simd_moe_route.hpp"

#include <algorithm>
#include <cstring>

#include "common/formats/format_list.hpp"
#include "common/primitive.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

reason_t may_run(const problem_t &p, cpu_isa_t isa) {
    if (!mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    // A CPU target that runs here uses no ISA above its own.
    if (p.engine->executes && !includes(isa_of(*p.engine), isa))
        return no("engine", p.engine->target->name, isa_name(isa));
    return yes();
}

namespace {

// For fewer logits it does not pay to wake a thread.
constexpr dim_t logits_per_thread = 1 << 14;

dim_t padded_experts(const problem_t &p) { return round_up(p.src.dims[1], route_pad); }
// The number of choices that a thread stores if the caller does not want them: those of as many tokens as
// fit, at least one.
constexpr dim_t kept_entries = 2048;
dim_t kept_tokens(const problem_t &p) { return std::max<dim_t>(1, kept_entries / p.route.topk); }

// Buffers of a thread: scores and keys of a token, two sets of keys of groups, the next row of each expert,
// and stored ids and weights.
dim_t floats_per_thread(const problem_t &p) {
    return 5 * padded_experts(p) + round_up(2 * kept_tokens(p) * p.route.topk, route_pad);
}

struct route_run_t {
    const exec_ctx_t &ctx;
    const moe_kernels_t &kernels;
    route_params_t params;
    const memory_desc_t &md;
    const uint8_t *logits;
    dim_t tokens;
    int32_t *ids, *order, *gather; // null: not wanted
    float *weights, *row_weights;
    dim_t kept;

    float *score(int thread) const { return ctx.scratch<float>(scratch_t::thread, thread); }
    int32_t *position(int thread) const {
        return reinterpret_cast<int32_t *>(score(thread) + 4 * params.padded);
    }

    // The place of a token's choices: in the outputs of the caller or, if these were not passed, in the
    // buffer of the thread whose tokens begin with `begin`. Tokens beyond the buffer share its last place.
    struct choice_t {
        int32_t *ids;
        float *weights;
        bool stays;
    };
    choice_t choice(int thread, dim_t begin, dim_t t) const {
        const dim_t k = params.route.topk, at = std::min(t - begin, kept - 1) * k;
        int32_t *own = position(thread) + params.padded;
        return {ids ? ids + t * k : own + at,
                weights ? weights + t * k : reinterpret_cast<float *>(own + kept * k) + at,
                (ids && (weights || !row_weights)) || t - begin < kept - 1};
    }

    void choose(int thread, dim_t t, const choice_t &c) const {
        float *s = score(thread);
        int32_t *key = reinterpret_cast<int32_t *>(s + params.padded), *group_key = key + params.padded;
        const int64_t width = data_type_info(md.dt)->bits / 8;
        row_kernels().to_f32(md.dt, logits + t * md.strides[0] * width, md.strides[1], s, params.experts);
        kernels.route(params, s, key, group_key, c.ids, c.weights);
    }

    // Chooses the experts of tokens [begin, end), and counts them.
    void choose(int thread, dim_t begin, dim_t end) const {
        int32_t *count = position(thread);
        std::fill(count, count + params.experts, 0);
        for (dim_t t = begin; t < end; t++) {
            const choice_t c = choice(thread, begin, t);
            choose(thread, t, c);
            for (dim_t j = 0; j < params.route.topk; j++) count[c.ids[j]]++;
        }
    }

    // The counts of all threads become the first row of each thread's part of each expert.
    void place(int nthr) const {
        int32_t *counts = ctx.data<int32_t>(MXDNN_ARG_GROUP_COUNTS),
                *offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
        if (offsets && ctx.pd.problem.attr.row_grouping == mxdnn_row_grouping_starts) *offsets++ = 0;
        int32_t end = 0;
        for (int e = 0; e < params.experts; e++) {
            const int32_t start = end;
            for (int thread = 0; thread < nthr; thread++) {
                int32_t &p = position(thread)[e];
                const int32_t count = p;
                p = end;
                end += count;
            }
            if (counts) counts[e] = end - start;
            if (offsets) offsets[e] = end;
        }
    }

    // Writes the rows of tokens [begin, end).
    void write_rows(int thread, dim_t begin, dim_t end) const {
        int32_t *row = position(thread);
        const dim_t k = params.route.topk;
        for (dim_t t = begin; t < end; t++) {
            const choice_t c = choice(thread, begin, t);
            if (!c.stays) choose(thread, t, c);
            for (dim_t j = 0; j < k; j++) {
                const int32_t r = row[c.ids[j]]++;
                if (order) order[r] = int32_t(t * k + j);
                if (gather) gather[r] = int32_t(t);
                if (row_weights) row_weights[r] = c.weights[j];
            }
        }
    }
};

} // namespace

void simd_moe_route_base_t::book(scratch_parts_t &scratch, const problem_t &p) {
    scratch.book(scratch_t::bias, 4 * padded_experts(p));
    scratch.book(scratch_t::thread, 4 * floats_per_thread(p), p.max_concurrency);
}

status_t simd_moe_route_base_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC);
    const int E = int(src.md.dims[1]), padded = int(padded_experts(p));
    float *bias = ctx.scratch<float>(scratch_t::bias); // padded
    route_run_t run{ctx, kernels_, {}, src.md, static_cast<const uint8_t *>(src.handle), src.md.dims[0],
            ctx.data<int32_t>(MXDNN_ARG_TOPK_IDS), ctx.data<int32_t>(MXDNN_ARG_ROW_ORDER),
            ctx.data<int32_t>(MXDNN_ARG_GATHER_IDX), ctx.data<float>(MXDNN_ARG_TOPK_WEIGHTS),
            ctx.data<float>(MXDNN_ARG_ROW_WEIGHTS), kept_tokens(p)};
    run.params.route = p.route;
    run.params.experts = E;
    run.params.padded = padded;
    if (!p.attr.post_ops.ops.empty()) run.params.factor = p.attr.post_ops.ops[0].alpha;
    if (p.route.has_bias()) {
        std::memcpy(bias, ctx.data<const float>(MXDNN_ARG_ROUTE_BIAS), size_t(E) * 4);
        std::fill(bias + E, bias + padded, 0.f);
        run.params.bias = bias;
    }

    const dim_t T = run.tokens;
    const dim_t wanted = std::max<dim_t>(1, std::min(T, T * E / logits_per_thread));
    const int nthr = int(std::min<dim_t>(wanted, threads_of(ctx.stream, p.max_concurrency)));
    const auto divide = [&](auto &&part) {
        parallel(ctx, nthr, [&](int ithr, int n) {
            int64_t begin, end;
            balance(T, n, ithr, begin, end);
            part(ithr, begin, end);
        });
    };
    divide([&](int ithr, dim_t begin, dim_t end) { run.choose(ithr, begin, end); });
    run.place(nthr);
    if (run.order || run.gather || run.row_weights)
        divide([&](int ithr, dim_t begin, dim_t end) { run.write_rows(ithr, begin, end); });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
