// SPDX-License-Identifier: Apache-2.0
// What the caller asked of a primitive: the input of every implementation's decision.
#pragma once

#include "common/attr.hpp"
#include "common/engine.hpp"
#include "common/formats/source_recipe.hpp"

namespace mxdnn {
namespace impl {

// moe_route: what is asked beside the shape of the logits.
struct route_desc_t {
    dim_t topk = 0;
    mxdnn_alg_kind_t scoring = mxdnn_alg_kind_undef;
    unsigned flags = 0; // mxdnn_route_flags_t
    dim_t expert_groups = 1, topk_groups = 1;

    bool renormalizes() const { return flags & mxdnn_route_renormalize; }
    bool has_bias() const { return flags & mxdnn_route_bias; }
};

// moe_permute: how the rows arrive, and what groups are padded to.
struct permute_desc_t {
    dim_t source_ranks = 0, local_experts = 0, alignment = 1;
};

struct problem_t {
    mxdnn_primitive_kind_t kind = mxdnn_undefined_primitive;
    const engine_t *engine = nullptr;      // where it runs; reorder: of the destination
    const engine_t *src_engine = nullptr;  // reorder only
    memory_desc_t src, weights, bias, dst; // ndims 0: absent
    memory_desc_t dst_1;                   // reorder only
    attr_t attr;
    route_desc_t route;
    permute_desc_t permute;
    int max_concurrency = 1; // threads that scratchpads are sized for; executions use no more
};

// Where the primitive runs: of a reorder between the host and a device, on the device.
inline const engine_t &exec_engine(const problem_t &p) {
    return p.src_engine && p.src_engine->device && !p.engine->device ? *p.src_engine : *p.engine;
}

// A reorder to one of two destinations, by itself.
problem_t reorder_to(const problem_t &p, bool second);

// The words of a verbose line for the problem.
std::string to_string(const problem_t &p);

// Everything that distinguishes two problems, for the primitive cache.
std::string cache_key(const problem_t &p);

// Validates, resolves what is implied (a missing mask, the format of `any` weights), and leaves a
// problem that the reference can run; or refuses with the caller's mistake.
status_t prepare_mx_matmul(problem_t &p);
status_t prepare_mx_reorder(problem_t &p);
status_t prepare_grouped_matmul(problem_t &p);
status_t prepare_moe_route(problem_t &p);
status_t prepare_moe_permute(problem_t &p);
status_t prepare_moe_unpermute(problem_t &p);

// The format of a quantised argument, from its attributes: what scales, blocks and zero points say.
// `axis_from_end` gets the blocked axis (2: rows, 1: columns).
status_t quant_of(
        const char *name, const memory_desc_t &md, const arg_attr_t &a, quant_t &q, int *axis_from_end);

// What a matmul multiplies for its source: the element type and, of quantised ones, the format. Dynamic
// scales on a source of f32, bf16 or f16 ask for it to be quantised in execute: to s8, in blocks (MXINT8) or
// with one scale per row, or to f8_e4m3 with one scale per row.
data_type_t source_format(const problem_t &p, quant_t &q);
// How its codes are made in execute, if they are.
source_recipe_t source_recipe(const problem_t &p);

// Dims of the plain scales (or zero points) of `md` quantised by `q` along that axis: md's dims
// with the blocked one divided. 128x4-swizzled scales are {batch, bytes of one matrix}.
memory_desc_t scales_desc(const memory_desc_t &md, const quant_t &q, data_type_t dt, int axis_from_end,
        mxdnn_scales_layout_t layout);

} // namespace impl
} // namespace mxdnn
