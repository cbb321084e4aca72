// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

using create_t = std::shared_ptr<transport_t>(
        const engine &, const void *, size_t, std::chrono::milliseconds);
create_t create_mpi_transport, create_nccl_transport, create_direct_transport;

namespace {

constexpr transport_info_t transports[] = {
#if MXDNN_EP_MPI
        {mxdnn_ep_mpi, "MPI", mxdnn_cpu, create_mpi_transport},
#else
        {mxdnn_ep_mpi, "MPI", mxdnn_cpu, nullptr},
#endif
#if MXDNN_EP_NCCL
        {mxdnn_ep_nccl, "NCCL", mxdnn_cuda, create_nccl_transport},
#else
        {mxdnn_ep_nccl, "NCCL", mxdnn_cuda, nullptr},
#endif
#if MXDNN_EP_NCCL_DEVICE
        {mxdnn_ep_nccl_direct, "NCCL's device API", mxdnn_cuda, create_direct_transport},
#else
        {mxdnn_ep_nccl_direct, "NCCL's device API", mxdnn_cuda, nullptr},
#endif
};

} // namespace

void transport_t::defer(status_t status) {
    if (deferred_ != mxdnn_success) return;
    deferred_ = status;
    std::snprintf(why_deferred_, sizeof(why_deferred_), "%s", last_error());
}

void transport_t::take_deferred(verdict_t &verdict) {
    const status_t status = deferred_;
    deferred_ = mxdnn_success;
    if (status == mxdnn_success || verdict.status != mxdnn_success) return;
    fail(status, "%s", why_deferred_);
    verdict =
            make_verdict(status, rank_, question_t(verdict.question), verdict.values, verdict_t::max_values);
}

const transport_info_t *find_transport(mxdnn_ep_transport_t id) {
    for (const transport_info_t &t : transports)
        if (t.id == id) return &t;
    return nullptr;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
