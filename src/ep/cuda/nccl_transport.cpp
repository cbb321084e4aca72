// SPDX-License-Identifier: Apache-2.0
#include "ep/cuda/nccl_transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

int device_of(const engine &eng) {
    const memory some(memory::desc({64}, memory::data_type::s8, memory::format_tag::a), eng);
    cudaPointerAttributes attributes = {};
    require(check(cudaPointerGetAttributes(&attributes, some.get_data_handle()), "the engine's device"));
    return attributes.device;
}

ncclComm_t communicator_of(const void *communicator, size_t size) {
    if (size != sizeof(ncclComm_t))
        refuse(mxdnn_invalid_arguments, "size is " + std::to_string(size) + "; an ncclComm_t has "
                                                + std::to_string(sizeof(ncclComm_t)) + " bytes");
    ncclComm_t caller;
    std::memcpy(&caller, communicator, size);
    if (!caller) refuse(mxdnn_invalid_arguments, "the communicator is NULL");
    return caller;
}

std::shared_ptr<transport_t> create_nccl_transport(
        const engine &eng, const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    return std::make_shared<nccl_transport_t>(communicator_of(communicator, size), device_of(eng), timeout);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
