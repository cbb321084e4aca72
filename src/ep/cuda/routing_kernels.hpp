// SPDX-License-Identifier: Apache-2.0
// What a dispatch computes on the device before its messages: checks of counts and indices, the rows for each
// rank, and rows that are gathered.
#pragma once

#include <cuda_runtime.h>

#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// What is wrong with counts and indices: the first one, and its value.
struct finding_t {
    static constexpr uint64_t none = ~uint64_t(0);
    uint64_t packed; // none, or where it is << 32 | its value

    int32_t index() const { return int32_t(packed >> 32); }
    int32_t value() const { return int32_t(packed & 0xffffffffu); }
};
struct report_t {
    finding_t bad_count, bad_index; // set to `none` by the caller
    int64_t sum;                    // of the counts
};

// dst[i] = src[indices[i]], where indices[i] is below src_rows. Others are noted in `bad`.
cudaError_t launch_gather(cudaStream_t stream, const row_format_t &format, const array_t &dst,
        const array_t &src, const int32_t *indices, dim_t rows, dim_t src_rows, finding_t *bad);

// Sums counts for each rank and for all, and copies them to `outgoing`. NULL counts: zeros.
cudaError_t launch_count(cudaStream_t stream, const int32_t *counts, int32_t *outgoing, int ranks,
        dim_t local_experts, int32_t *sent, report_t *report);

} // namespace impl
} // namespace ep
} // namespace mxdnn
