// SPDX-License-Identifier: Apache-2.0
// Other libraries running the same shape with dense weights, for --against.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

struct peer_t {
    std::function<void()> run; // empty: the peer cannot run this here
    std::string name;          // "onednn:bf16", or why it cannot
};

// oneDNN's matmul of M x K by K x N (`batch` of them) with unquantised weights in its own best layout, in
// bf16 if oneDNN has it on this machine, else in f32. `copies` of the weights are used in turn, so that they
// come from memory.
peer_t make_onednn_matmul(int64_t batch, int64_t M, int64_t K, int64_t N, bool bias, int threads, int copies);

} // namespace bench
