// SPDX-License-Identifier: Apache-2.0
// Kernels that read and write the memory of other ranks, through NCCL's windows. Each begins or ends with
// barriers of all ranks: a rank's memory is written when its stream has come so far, and a kernel ends when
// what it waits for has arrived. A rank that does not come within the timeout is noted, and no kernel waits
// from then on.
#pragma once

// nccl_device.h relies on these.
#include <cuda_runtime.h>

#include <cstddef>

#include <nccl_device.h>

#include "ep/cuda/routing_kernels.hpp"
#include "ep/direct.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

// Blocks of a kernel, which run at the same time on every rank; and one barrier for each, and for the counts.
constexpr int direct_blocks = 96, direct_barriers = direct_blocks + 1;

// This rank among those of a communicator.
struct ranks_t {
    int rank, ranks;
    ncclWindow_t flags; // [barriers][ranks]: how often each rank has come
    uint32_t *rounds;   // [barriers]: how often this one has
    uint64_t timeout;   // ns
    report_t *report;
};
constexpr size_t flag_bytes(int ranks) { return size_t(direct_barriers) * size_t(ranks) * sizeof(uint32_t); }

struct window_rows_t {
    ncclWindow_t window;
    size_t codes, scales;
};

cudaError_t launch_route(cudaStream_t stream, const ranks_t &all, ncclWindow_t window, size_t matrix,
        const groups_t &groups, const int32_t *counts, dim_t rows);
cudaError_t launch_push(cudaStream_t stream, const ranks_t &all, const window_rows_t &to,
        const groups_t &groups, const row_format_t &format, const array_t &src, const int32_t *indices,
        dim_t rows, dim_t src_rows);
cudaError_t launch_pull(cudaStream_t stream, const ranks_t &all, const window_rows_t &from,
        const groups_t &groups, const row_format_t &format, uint8_t *dst, dim_t rows);

} // namespace impl
} // namespace ep
} // namespace mxdnn
