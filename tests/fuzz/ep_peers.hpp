// SPDX-License-Identifier: Apache-2.0
// A communicator for fuzzing: this rank is real, and the others are what an input says. They send counts and
// rows, refuse, disagree, or do not answer.
#pragma once

#include <string>
#include <vector>

#include "fuzz/choices.hpp"
#include "mxdnn/mxdnn_ep.h"

namespace fuzz {

struct peers_t {
    explicit peers_t(choices_t &c) : c(c) {}

    choices_t &c;
    int rank = 0, ranks = 1;
    bool in_stream_order = false; // as over NCCL
    bool direct = false;          // as over nccl_direct, and then in stream order
    int64_t capacity = 0;         // about as many rows as the others send
    bool quiet = false;           // the others do what they should
    bool has_failed = false;      // they do not answer any more
    bool refused = false;         // one of them refused, or disagreed, since this was set to false

    // By rank: the rows of the last exchange that this rank sent, and that the others sent. Direct: each row
    // that this rank has sent.
    using rows_t = std::vector<std::vector<uint8_t>>;
    rows_t sent, arrived;
    // What they send, if it has as many bytes.
    const rows_t *returns = nullptr;
};

// `communicator` and `size` of mxdnn_ep_comm_create() are those of a `peers_t *`.
inline constexpr mxdnn_ep_transport_t over_peers = mxdnn_ep_mpi;

} // namespace fuzz
