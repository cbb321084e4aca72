// SPDX-License-Identifier: Apache-2.0
#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

using create_t = std::shared_ptr<transport_t>(
        const engine &, const void *, size_t, std::chrono::milliseconds);
create_t create_mpi_transport, create_nccl_transport, create_direct_transport;

const transport_info_t transports[] = {
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
        {},
};

} // namespace impl
} // namespace ep
} // namespace mxdnn
