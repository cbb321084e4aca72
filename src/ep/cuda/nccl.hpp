// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL, of the library that the caller's communicator is of.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#if MXDNN_EP_NCCL_DEVICE
#include <nccl_device.h>
#endif

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
    decltype(&::ncclGroupStart) group_start;
    decltype(&::ncclGroupEnd) group_end;
    decltype(&::ncclSend) send;
    decltype(&::ncclRecv) recv;
};

// Throws mxdnn::error if the process has no NCCL, or one that is too old.
const nccl_t &nccl();

#if MXDNN_EP_NCCL_DEVICE
// Those of its device API.
struct nccl_device_t {
    decltype(&::ncclGetVersion) version;
    decltype(&::ncclMemAlloc) allocate;
    decltype(&::ncclMemFree) release;
    decltype(&::ncclCommWindowRegister) window_register;
    decltype(&::ncclCommWindowDeregister) window_deregister;
    decltype(static_cast<ncclTeam_t (*)(ncclComm_t)>(&::ncclTeamLsa)) team;
};

// Throws if they are missing, or those of another version than the library was built for, whose kernels may
// differ.
const nccl_device_t &nccl_device();
#endif

} // namespace impl
} // namespace ep
} // namespace mxdnn
