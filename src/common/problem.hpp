// SPDX-License-Identifier: Apache-2.0
// What the caller asked of a primitive: the input of every implementation's decision.
#pragma once

#include "common/attr.hpp"
#include "common/engine.hpp"
#include "common/formats/source_recipe.hpp"

namespace mxdnn {
namespace impl {

// moe_route: parameters beside the shape of the logits.
struct route_desc_t {
    dim_t topk = 0;
    mxdnn_alg_kind_t scoring = mxdnn_alg_kind_undef;
    unsigned flags = 0; // mxdnn_route_flags_t
    dim_t expert_groups = 1, topk_groups = 1;

    bool renormalizes() const { return flags & mxdnn_route_renormalize; }
    bool has_bias() const { return flags & mxdnn_route_bias; }
};

// moe_permute: how the rows arrive, and the alignment of groups.
struct permute_desc_t {
    dim_t source_ranks = 0, local_experts = 0, alignment = 1;
};

struct problem_t {
    mxdnn_primitive_kind_t kind = mxdnn_undefined_primitive;
    const engine_t *engine = nullptr;      // of the primitive; reorder: of the destination
    const engine_t *src_engine = nullptr;  // reorder only
    memory_desc_t src, weights, bias, dst; // ndims 0: absent
    memory_desc_t dst_1;                   // reorder only
    memory_desc_t diff_dst, diff_weights;  // of gradients of weights only
    attr_t attr;
    route_desc_t route;
    permute_desc_t permute;
    int max_concurrency =
            1; // the number of threads that scratchpads are sized for; executions use at most as many
};

// The engine that executes. For a reorder between the host and a device it is the device's.
inline const engine_t &exec_engine(const problem_t &p) {
    return p.src_engine && p.src_engine->device && !p.engine->device ? *p.src_engine : *p.engine;
}

// The reorder to one of two destinations.
problem_t reorder_to(const problem_t &p, bool second);

// The problem in the words of verbose lines.
std::string to_string(const problem_t &p);

// Everything that makes two problems different, as the key of the primitive cache.
std::string cache_key(const problem_t &p);

// Validates a problem and completes it (a missing mask, the format of `any` weights). The reference can
// execute the result. Otherwise refuses it as an error of the caller.
status_t prepare_mx_matmul(problem_t &p);
status_t prepare_mx_reorder(problem_t &p);
status_t prepare_grouped_matmul(problem_t &p);
status_t prepare_grouped_matmul_backward_weights(problem_t &p);
status_t prepare_moe_route(problem_t &p);
status_t prepare_moe_permute(problem_t &p);
status_t prepare_moe_unpermute(problem_t &p);

// The format of a quantised argument: its scales, blocks and zero points, from the attributes.
// `axis_from_end` becomes the blocked axis (2: rows, 1: columns).
status_t quant_of(
        const char *name, const memory_desc_t &md, const arg_attr_t &a, quant_t &q, int *axis_from_end);

// The values that a matmul multiplies: the element type of the source and, if it is quantised, its format.
// Dynamic scales of a source of f32, bf16 or f16 say that it is quantised in execute: to s8 in blocks
// (MXINT8), or to s8 or f8_e4m3 with one scale per row.
data_type_t source_format(const problem_t &p, quant_t &q);
// How the codes of the source are computed in execute, if they are.
source_recipe_t source_recipe(const problem_t &p);

// The dims of the plain scales (or zero points) of `md`, which is quantised by `q` along that axis: the dims
// of md, the blocked one divided. Scales in the 128x4 order are {batch, bytes of one matrix}.
memory_desc_t scales_desc(const memory_desc_t &md, const quant_t &q, data_type_t dt, int axis_from_end,
        mxdnn_scales_layout_t layout);

} // namespace impl
} // namespace mxdnn
