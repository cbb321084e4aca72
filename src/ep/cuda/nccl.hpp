// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL, of the library that the caller's communicator is of.
#pragma once

#include <nccl.h>

namespace mxdnn {
namespace ep {
namespace impl {

struct nccl_t {
    decltype(&::ncclCommCount) count;
    decltype(&::ncclCommUserRank) user_rank;
    decltype(&::ncclCommCuDevice) device;
    decltype(&::ncclCommSplit) split;
    decltype(&::ncclCommDestroy) destroy;
    decltype(&::ncclCommAbort) abort;
    decltype(&::ncclCommGetAsyncError) async_error;
    decltype(&::ncclGetErrorString) error_string;
    decltype(&::ncclGetLastError) last_error;
    decltype(&::ncclGroupStart) group_start;
    decltype(&::ncclGroupEnd) group_end;
    decltype(&::ncclSend) send;
    decltype(&::ncclRecv) recv;
};

// Throws mxdnn::error if the process has no NCCL, or one that is too old.
const nccl_t &nccl();

} // namespace impl
} // namespace ep
} // namespace mxdnn
