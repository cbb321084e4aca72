// SPDX-License-Identifier: Apache-2.0
// What the companions of grouped_matmul compute per token. Compiled once per vector ISA from
// moe_kernels_body.hpp.
#pragma once

#include "common/problem.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Arrays over the experts are padded to this many elements.
constexpr int route_pad = 16;

struct route_params_t {
    route_desc_t route;
    int experts = 0;
    int padded = 0;              // round_up(experts, route_pad)
    float factor = 1.f;          // of all weights
    const float *bias = nullptr; // [padded], null for none
};

struct combine_params_t {
    data_type_t src_dt, dst_dt; // f32, bf16, f16
    const uint8_t *src;
    int64_t src_pitch; // bytes from row to row
    int64_t cols;
    int k;                  // choices of a token
    const void *weights;    // of all entries; null: all are 1
    data_type_t weights_dt; // f32 or bf16
};

struct moe_kernels_t {
    // One token. score [padded] has its logits, which are replaced by the scores. key and group_key [padded]
    // are work space. Writes topk ids and weights.
    void (*route)(const route_params_t &p, float *score, int32_t *key, int32_t *group_key, int32_t *ids,
            float *weights);
    // dst row = sum over j of weight `entry` + j times source row from[j], in the order of j. A row of -1
    // adds nothing.
    void (*combine)(const combine_params_t &p, const int32_t *from, int64_t entry, void *dst);
};

extern const moe_kernels_t moe_kernels_avx2, moe_kernels_avx512;

} // namespace x64
} // namespace impl
} // namespace mxdnn
