// SPDX-License-Identifier: Apache-2.0
// Tokens are divided among the threads twice: to choose experts and count them, then, when it is known
// where each thread's rows of each expert begin, to write the rows' order. What comes out does not depend on
// the number of threads.
#include "cpu/x64/moe/simd_moe_route.hpp"

#include <algorithm>
#include <cstring>

#include "common/formats/format_list.hpp"
#include "common/primitive.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

reason_t may_run(const problem_t &p, cpu_isa_t isa) {
    if (!mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    // A CPU target that runs here is held to what it stands for.
    if (p.engine->executes && p.engine->target->isa < isa)
        return no("engine", p.engine->target->name, isa_name(isa));
    return yes();
}

namespace {

// Fewer logits than this are not worth waking a thread for.
constexpr dim_t logits_per_thread = 1 << 14;

dim_t padded_experts(const problem_t &p) { return round_up(p.src.dims[1], route_pad); }
// Scores and keys of a token, twice the keys of groups, and where the thread's rows of each expert go.
dim_t floats_per_thread(const problem_t &p) { return 5 * padded_experts(p); }

struct route_run_t {
    const exec_ctx_t &ctx;
    const moe_kernels_t &kernels;
    route_params_t params;
    const memory_desc_t &md;
    const uint8_t *logits;
    dim_t tokens;
    int32_t *ids, *order, *gather;
    float *weights, *row_weights;
    float *buffers;
    dim_t per_thread;

    float *score(int thread) const { return buffers + thread * per_thread; }
    int32_t *position(int thread) const {
        return reinterpret_cast<int32_t *>(score(thread) + 4 * params.padded);
    }

    // Chooses the experts of tokens [begin, end), and counts them.
    void choose(int thread, dim_t begin, dim_t end) const {
        float *s = score(thread);
        int32_t *key = reinterpret_cast<int32_t *>(s + params.padded), *group_key = key + params.padded;
        int32_t *count = position(thread);
        std::fill(count, count + params.experts, 0);
        const row_kernels_t &rows = row_kernels();
        const int64_t width = data_type_info(md.dt)->bits / 8;
        const dim_t k = params.route.topk;
        for (dim_t t = begin; t < end; t++) {
            rows.to_f32(md.dt, logits + t * md.strides[0] * width, md.strides[1], s, params.experts);
            kernels.route(params, s, key, group_key, ids + t * k, weights + t * k);
            for (dim_t j = 0; j < k; j++) count[ids[t * k + j]]++;
        }
    }

    // Counts of all threads become the first rows of each thread's part of each expert.
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

    // Rows of tokens [begin, end), where place() put them.
    void write_rows(int thread, dim_t begin, dim_t end) const {
        int32_t *row = position(thread);
        const dim_t k = params.route.topk;
        for (dim_t t = begin; t < end; t++)
            for (dim_t i = t * k; i < (t + 1) * k; i++) {
                const int32_t r = row[ids[i]]++;
                if (order) order[r] = int32_t(i);
                if (gather) gather[r] = int32_t(t);
                if (row_weights) row_weights[r] = weights[i];
            }
    }
};

} // namespace

int64_t simd_moe_route_base_t::scratchpad_bytes(const problem_t &p) {
    return 4 * (padded_experts(p) + p.max_concurrency * floats_per_thread(p)); // the first: the bias, padded
}

status_t simd_moe_route_base_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC);
    const int E = int(src.md.dims[1]), padded = int(padded_experts(p));
    float *bias = reinterpret_cast<float *>(ctx.scratchpad);
    route_run_t run{ctx, kernels_, {}, src.md, static_cast<const uint8_t *>(src.handle), src.md.dims[0],
            ctx.data<int32_t>(MXDNN_ARG_TOPK_IDS), ctx.data<int32_t>(MXDNN_ARG_ROW_ORDER),
            ctx.data<int32_t>(MXDNN_ARG_GATHER_IDX), ctx.data<float>(MXDNN_ARG_TOPK_WEIGHTS),
            ctx.data<float>(MXDNN_ARG_ROW_WEIGHTS), bias + padded, floats_per_thread(p)};
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
