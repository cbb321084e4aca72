// SPDX-License-Identifier: Apache-2.0
// What carries verdicts, counts and rows between ranks. transport_list.cpp has the list of them.
#pragma once

#include <chrono>
#include <memory>

#include "ep/verdict.hpp"
#include "mxdnn/mxdnn_ep.h"

namespace mxdnn {
namespace ep {
namespace impl {

using time_point_t = std::chrono::steady_clock::time_point;

// Rows to and from each rank, one rank after the other. Counts and positions are rows.
struct splits_t {
    const int *send_counts, *send_positions, *recv_counts, *recv_positions;
};

// One array of rows on both sides.
struct rows_t {
    const void *send;
    void *recv;
    int row; // of row_type()
};

// Functions with a deadline are collective. If one of them fails, no later one succeeds. Memory that was
// passed may be read and written after that, as long as is_busy() says.
class transport_t {
public:
    virtual ~transport_t() = default;

    int rank() const { return rank_; }
    int size() const { return size_; }
    // How long a call of the API may wait.
    time_point_t deadline() const { return std::chrono::steady_clock::now() + timeout_; }

    // Merges the verdicts of all ranks.
    virtual status_t agree(verdict_t &verdict, time_point_t deadline) = 0;
    // `count` numbers to each rank, and from each.
    virtual status_t exchange_counts(
            const int32_t *send, int32_t *recv, int count, time_point_t deadline) = 0;
    // Both arrays of rows, codes and scales, go at the same time.
    virtual status_t exchange_rows(
            const rows_t *rows, int arrays, const splits_t &splits, time_point_t deadline) = 0;
    // Prepares rows of so many bytes. Not collective; allocates.
    virtual int row_type(size_t bytes) = 0;
    virtual bool is_busy() const = 0;

    // Numbers that are the same on all ranks, because only collective calls change them.
    int64_t layers = 0, passes = 0;

protected:
    int rank_ = 0, size_ = 1;
    std::chrono::milliseconds timeout_{0};
};

struct transport_info_t {
    mxdnn_ep_transport_t id;
    const char *name;
    mxdnn_engine_kind_t engine_kind;
    // Throws mxdnn::error. NULL: not in this build.
    std::shared_ptr<transport_t> (*create)(
            const void *communicator, size_t size, std::chrono::milliseconds timeout);
};

// NULL for a value outside the enumeration.
const transport_info_t *find_transport(mxdnn_ep_transport_t id);

} // namespace impl
} // namespace ep
} // namespace mxdnn
