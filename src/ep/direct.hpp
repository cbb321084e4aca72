// SPDX-License-Identifier: Apache-2.0
// What a transport offers whose kernels read and write the memory of other ranks. Rows go straight between
// the caller's order and the padded groups of the experts, and the host knows no counts: nothing waits.
#pragma once

#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// Memory that every rank has at the same place, and that the others see. Freed by all ranks.
class shared_memory_t {
public:
    virtual ~shared_memory_t() = default;
    uint8_t *data() const { return data_; }

protected:
    uint8_t *data_ = nullptr;
};

// Where rows are on each rank: bytes from the beginning of a shared memory.
struct shared_rows_t {
    const shared_memory_t *memory;
    size_t codes, scales;
};

// The experts of a layer, and what a dispatch leaves in this rank's memory for the stages after it.
struct groups_t {
    dim_t local_experts, alignment, capacity;
    dim_t begin, end;  // the local experts of each rank whose rows move
    int32_t *starts;   // [local experts + 1]: where the padded groups begin, and where the last one ends
    int32_t *received; // [ranks][local experts]: rows of each rank for each expert
    int32_t *first;    // [experts + 1]: where the rows for an expert begin, of those that this rank sends
    int32_t *target;   // [experts]: and where in the groups of their rank they go
};

class direct_t {
public:
    virtual ~direct_t() = default;
    // The most experts of all ranks.
    static constexpr dim_t most_experts = 4096;

    // Collective.
    virtual std::unique_ptr<shared_memory_t> allocate(size_t bytes) = 0;
    // Tells all ranks the counts of each, and fills the groups. `matrix`: [ranks][experts + 1] in a shared
    // memory. NULL counts: this rank refuses. Where any rank refuses, is wrong or gets too many rows, no rank
    // has rows.
    virtual status_t route(const shared_memory_t &shared, size_t matrix, const groups_t &groups,
            const int32_t *counts, dim_t rows, mxdnn_stream_t stream) = 0;
    // src[indices[i]], or src[i], for each of `rows` rows to the groups of all ranks. Padding becomes zero.
    virtual status_t push(const shared_rows_t &to, const groups_t &groups, const row_format_t &format,
            const array_t &src, const int32_t *indices, dim_t rows, dim_t src_rows,
            mxdnn_stream_t stream) = 0;
    // Rows of all groups to dst, in the order in which they were sent.
    virtual status_t pull(const shared_rows_t &from, const groups_t &groups, const row_format_t &format,
            uint8_t *dst, dim_t rows, mxdnn_stream_t stream) = 0;
};

} // namespace impl
} // namespace ep
} // namespace mxdnn
