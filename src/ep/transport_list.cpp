// SPDX-License-Identifier: Apache-2.0
#include "ep/transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

std::shared_ptr<transport_t> create_mpi_transport(const void *, size_t, std::chrono::milliseconds);

namespace {
constexpr transport_info_t transports[] = {
        {mxdnn_ep_mpi, "MPI", mxdnn_cpu, create_mpi_transport},
        {mxdnn_ep_nccl, "NCCL", mxdnn_cuda, nullptr},
};
} // namespace

const transport_info_t *find_transport(mxdnn_ep_transport_t id) {
    for (const transport_info_t &t : transports)
        if (t.id == id) return &t;
    return nullptr;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
