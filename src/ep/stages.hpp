// SPDX-License-Identifier: Apache-2.0
// The stages: what each reads and writes, and which of five operations it is.
#pragma once

#include "mxdnn/mxdnn_ep.h"

namespace mxdnn {
namespace ep {
namespace impl {

// The same operations move activations one way and gradients the other.
enum class op_t {
    send,    // rows of the caller to the ranks of their experts; collective
    group,   // from the order of ranks to that of experts
    compute, // the callback
    ungroup, // from the order of experts to that of ranks
    bring    // results to the ranks that sent the rows, and to the caller; collective
};

// Where rows are, unless the caller passes them.
enum class place_t {
    caller,   // always passed
    arrived,  // scratchpad, in the order of ranks
    kept,     // workspace, in the order of experts
    results,  // scratchpad, in the order of experts; written by the caller's experts, too
    gradients // scratchpad, in the order of experts
};

// Of which type they are.
enum class format_t { bf16, forward, backward };
constexpr int format_count = 3;

struct stage_t {
    const char *name; // in sentences
    op_t op;
    place_t from;
    format_t from_format;
    place_t to;
    format_t to_format;
};

constexpr int stage_count = 10;
// By 2 * mxdnn_ep_stage_t + mxdnn_ep_direction_t.
constexpr stage_t stages[stage_count] = {
        {"dispatch forward", op_t::send, place_t::caller, format_t::bf16, place_t::arrived,
                format_t::forward},
        {"dispatch backward", op_t::bring, place_t::arrived, format_t::bf16, place_t::caller, format_t::bf16},
        {"permute forward", op_t::group, place_t::arrived, format_t::forward, place_t::kept,
                format_t::forward},
        {"permute backward", op_t::ungroup, place_t::results, format_t::bf16, place_t::arrived,
                format_t::bf16},
        {"experts forward", op_t::compute, place_t::kept, format_t::forward, place_t::results,
                format_t::bf16},
        {"experts backward", op_t::compute, place_t::gradients, format_t::backward, place_t::results,
                format_t::bf16},
        {"unpermute forward", op_t::ungroup, place_t::results, format_t::bf16, place_t::arrived,
                format_t::bf16},
        {"unpermute backward", op_t::group, place_t::arrived, format_t::backward, place_t::gradients,
                format_t::backward},
        {"combine forward", op_t::bring, place_t::arrived, format_t::bf16, place_t::caller, format_t::bf16},
        {"combine backward", op_t::send, place_t::caller, format_t::bf16, place_t::arrived,
                format_t::backward},
};

constexpr int index_of(mxdnn_ep_stage_t stage, mxdnn_ep_direction_t direction) {
    return 2 * int(stage) + int(direction);
}
constexpr int dispatch_forward = index_of(mxdnn_ep_dispatch, mxdnn_ep_forward);
constexpr int permute_forward = index_of(mxdnn_ep_permute, mxdnn_ep_forward);
constexpr bool is_forward(int index) { return index % 2 == 0; }

} // namespace impl
} // namespace ep
} // namespace mxdnn
