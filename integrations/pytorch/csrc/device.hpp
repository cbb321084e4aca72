// SPDX-License-Identifier: Apache-2.0
// Engines and streams for the places where tensors are.
#pragma once

#include <mxdnn/mxdnn.hpp>

#include "tensor.hpp"

namespace mxdnn_torch {

// The engine of this machine that executes where a tensor is. Refused where libmxdnn has none.
const mxdnn::engine &engine_of(const place_t &place);

// An engine for weights that are in the host's memory, whatever they are packed for: "cpu", "cuda", what a
// packed descriptor has ("cpu:x64"), or the name of a target ("cuda:sm_90").
mxdnn::engine host_engine_of(const std::string &target);

// The order in which a tensor's place executes: on CUDA torch's current stream.
const mxdnn::stream &stream_of(const mxdnn::engine &engine, const place_t &place);

// Primitives are created for as many threads as torch uses in this thread (torch.get_num_threads()), or for
// all of the library's where torch has not been told a number. Holds the library's setting while it exists.
class thread_count_scope_t {
public:
    explicit thread_count_scope_t(int threads);
    ~thread_count_scope_t();
    thread_count_scope_t(const thread_count_scope_t &) = delete;
    thread_count_scope_t &operator=(const thread_count_scope_t &) = delete;
};

// torch.get_num_threads() of the calling thread.
int torch_threads();

} // namespace mxdnn_torch
