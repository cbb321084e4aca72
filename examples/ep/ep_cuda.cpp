// SPDX-License-Identifier: Apache-2.0
// Expert parallelism over NCCL: each CUDA device is a rank, with a thread. Processes would get their
// ncclComm_t in another way.
//
//     ep_cuda [TOKENS [HIDDEN [PASSES]]]        e.g. ep_cuda 8192 4096 20
#include <nccl.h>

#include <atomic>
#include <thread>

#include "layer.hpp"

int main(int argc, char **argv) {
    example::sizes_t sizes;
    if (!read(sizes, argc, argv)) return 2;
    const size_t devices = mxdnn::engine::get_count(mxdnn::engine::kind::cuda);
    if (devices == 0) return std::puts("there is no CUDA device"), 0;
    std::vector<ncclComm_t> comms(devices);
    if (ncclCommInitAll(comms.data(), int(devices), nullptr) != ncclSuccess) {
        std::fprintf(stderr, "ncclCommInitAll: %s\n", ncclGetLastError(nullptr));
        return 1;
    }
    std::atomic<bool> right{true};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < devices; i++)
        threads.emplace_back([&, i] {
            try {
                const mxdnn::engine eng(mxdnn::engine::kind::cuda, i);
                const mxdnn::ep::communicator comm(eng, mxdnn::ep::transport::nccl, comms[i], 60000);
                for (const auto type : {example::dt::bf16, example::dt::f8_e4m3})
                    if (!run(comm, eng, type, sizes)) right = false;
            } catch (const mxdnn::error &e) {
                std::fprintf(stderr, "rank %zu: %s\n", i, e.what());
                right = false; // other ranks get an error, too
            }
        });
    for (std::thread &t : threads) t.join();
    for (const ncclComm_t c : comms) ncclCommDestroy(c);
    return right ? 0 : 1;
}
