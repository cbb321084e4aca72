// SPDX-License-Identifier: Apache-2.0
// Expert parallelism over MPI, on CPUs.
//
//     mpiexec -n 4 ep [TOKENS [HIDDEN [PASSES]]]        e.g. mpiexec -n 4 ep 1024 1024 20
#include <mpi.h>

#include "layer.hpp"

int main(int argc, char **argv) {
    example::sizes_t sizes;
    if (!read(sizes, argc, argv)) return 2;
    MPI_Init(&argc, &argv);
    bool right = true;
    try {
        mxdnn::set_max_concurrency(1); // each rank is one thread
        const mxdnn::engine eng(mxdnn::engine::kind::cpu, 0);
        const mxdnn::ep::communicator comm(eng, mxdnn::ep::transport::mpi, MPI_COMM_WORLD, 60000);
        for (const auto type : {example::dt::bf16, example::dt::f8_e4m3})
            right &= run(comm, eng, type, sizes);
    } catch (const mxdnn::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
