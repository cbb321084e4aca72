// SPDX-License-Identifier: Apache-2.0
// What carries verdicts, counts and rows between ranks, and moves rows within one. transport_list.cpp has the
// list of transports.
#pragma once

#include <chrono>
#include <memory>

#include "ep/verdict.hpp"
#include "mxdnn/mxdnn_ep.h"

namespace mxdnn {
namespace ep {
namespace impl {

using dim_t = mxdnn_dim_t;
using time_point_t = std::chrono::steady_clock::time_point;

// Bytes of one row, and of its scales.
struct row_format_t {
    mxdnn_data_type_t type = mxdnn_data_type_undef;
    size_t codes = 0, scales = 0;
    bool quantised() const { return scales > 0; }
};

// Rows in memory: codes, and their scales.
struct array_t {
    uint8_t *codes = nullptr, *scales = nullptr;
};

// How many rows go to each rank and come from each, one rank after the other; on the host.
struct splits_t {
    const int32_t *send, *recv;
};

// The rows of a dispatch. Pointers are to memory of the engine, but for the last two.
struct routing_t {
    const int32_t *counts = nullptr; // rows for each expert; NULL where this rank refuses
    dim_t rows = 0;                  // their sum
    dim_t local_experts = 0, capacity = 0;
    int32_t *outgoing = nullptr, *incoming = nullptr; // counts as messages; as many as experts
    int32_t *received = nullptr;                      // written: [ranks][local experts]
    int32_t *sent = nullptr, *arrived = nullptr;      // written: rows to and from each rank
};

class direct_t; // of direct.hpp

// Functions with a deadline are collective. If one of them fails, no later one succeeds. Memory that was
// passed may be read and written after that, as long as is_busy() says.
class transport_t {
public:
    virtual ~transport_t() = default;

    int rank() const { return rank_; }
    int size() const { return size_; }
    // How long a call of the API may wait.
    time_point_t deadline() const { return std::chrono::steady_clock::now() + timeout_; }

    // Whether everything is put into the stream, and nothing is under way when the stream has ended. If so,
    // messages may be in memory of the caller, and ranks agree in a dispatch only. If not, they agree before
    // every exchange.
    virtual bool in_stream_order() const = 0;
    // Not NULL: rows go straight between ranks, by these functions and not by those below.
    virtual direct_t *direct() { return nullptr; }

    // Merges the verdicts of all ranks, after the work of the stream. NULL: of no stream.
    virtual status_t agree(verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) = 0;
    // Merges the verdicts, and exchanges and checks counts. `verdict` becomes that of all ranks; if it is a
    // refusal, nothing was received.
    virtual status_t agree_on_routing(
            routing_t &routing, verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) = 0;
    virtual status_t exchange_rows(const row_format_t &format, const array_t &send, const array_t &recv,
            const splits_t &splits, mxdnn_stream_t stream, time_point_t deadline) = 0;
    // Prepares rows of a format. Not collective; allocates.
    virtual void prepare(const row_format_t &format) = 0;
    virtual bool is_busy() const = 0;

    // Within this rank, in the order of the stream.
    virtual status_t copy(void *dst, const void *src, size_t bytes, mxdnn_stream_t stream) = 0;
    // Zeros.
    virtual status_t clear(void *dst, size_t bytes, mxdnn_stream_t stream) = 0;
    // dst[i] = src[indices[i]]. Indices outside of `src_rows` are left out, and agree_on_routing() refuses.
    virtual status_t gather(const row_format_t &format, const array_t &dst, const array_t &src,
            const int32_t *indices, dim_t rows, dim_t src_rows, mxdnn_stream_t stream) = 0;

    // A failure that the next agreement will tell to the other ranks. Where they agree before every exchange
    // there is none.
    void defer(status_t status);
    // Numbers that are the same on all ranks, because only collective calls change them.
    int64_t layers = 0, passes = 0;

protected:
    // The verdict of this rank, or the failure that was deferred.
    void take_deferred(verdict_t &verdict);

    int rank_ = 0, size_ = 1;
    std::chrono::milliseconds timeout_{0};

private:
    status_t deferred_ = mxdnn_success;
    char why_deferred_[256] = "";
};

struct transport_info_t {
    mxdnn_ep_transport_t id;
    const char *name;
    mxdnn_engine_kind_t engine_kind;
    // Throws mxdnn::error. NULL: not in this build.
    std::shared_ptr<transport_t> (*create)(
            const engine &eng, const void *communicator, size_t size, std::chrono::milliseconds timeout);
};

// All of them, and one without a name after the last: transport_list.cpp.
extern const transport_info_t transports[];

// NULL for a value outside the enumeration.
const transport_info_t *find_transport(mxdnn_ep_transport_t id);

} // namespace impl
} // namespace ep
} // namespace mxdnn
