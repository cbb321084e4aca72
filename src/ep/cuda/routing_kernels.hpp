// SPDX-License-Identifier: Apache-2.0
// What a dispatch computes on the device before its messages: checks of counts and indices, the rows for each
// rank, and rows that are gathered.
#pragma once

#include <cuda_runtime.h>

#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// What a kernel has found: the first place, and what is there.
struct finding_t {
    uint64_t packed; // ~0: nothing

    bool found() const { return packed != ~uint64_t(0); }
    int32_t first() const { return int32_t(packed >> 32); }
    int32_t second() const { return int32_t(packed & 0xffffffffu); }
};
struct report_t {
    finding_t bad_count, bad_index; // where, and its value
    finding_t bad_sum;              // the sum of counts, and of how many rows it is not
    finding_t too_many;             // rows that would arrive, and the capacity
    finding_t late;                 // a rank
};

// dst[i] = src[indices[i]], where indices[i] is below src_rows. Others are noted in `bad`.
cudaError_t launch_gather(cudaStream_t stream, const row_format_t &format, const array_t &dst,
        const array_t &src, const int32_t *indices, dim_t rows, dim_t src_rows, finding_t *bad);

// Sums counts for each rank, checks that all are `rows`, and copies them to `outgoing`. NULL counts: zeros.
cudaError_t launch_count(cudaStream_t stream, const int32_t *counts, dim_t rows, int32_t *outgoing, int ranks,
        dim_t local_experts, int32_t *sent, report_t *report);

} // namespace impl
} // namespace ep
} // namespace mxdnn
