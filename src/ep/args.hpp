// SPDX-License-Identifier: Apache-2.0
// The arguments of a stage: which there are, and that their memories fit.
#pragma once

#include "ep/layer.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// Memories of the caller, NULL where it passed none.
struct args_t {
    mxdnn_memory_t src, src_scales, dst, dst_scales, counts, gather, offsets;
    dim_t src_rows; // of `src`
    dim_t sent;     // rows that go to other ranks; of a dispatch
};

// Sorts and checks what was passed: known arguments, once each, with the shapes and types of the stage.
// Indices and counts of a dispatch are checked, too. `sent` are the rows that the dispatch before has sent.
status_t read_args(
        const plan_t &plan, int stage, dim_t sent, int nargs, const mxdnn_exec_arg_t *args, args_t &out);

// A stream of the engine of the communicator.
status_t check_stream(const engine &eng, mxdnn_stream_t stream, const char *what);

void *data_of(mxdnn_memory_t memory);

} // namespace impl
} // namespace ep
} // namespace mxdnn
