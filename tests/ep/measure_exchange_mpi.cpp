// SPDX-License-Identifier: Apache-2.0
// Times of exchanges over MPI by their size, for scripts/fit-exchange.
//
//     mpiexec -n RANKS measure_exchange_mpi [MOST_BYTES_OF_A_PAIR [PASSES]]     default: 64 MB, 7
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "ep/exchange_times.hpp"

using namespace mxdnn;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    try {
        set_max_concurrency(1); // each rank is one thread
        const engine eng(engine::kind::cpu, 0);
        stream s(eng);
        const ep::communicator comm(eng, ep::transport::mpi, MPI_COMM_WORLD, 60000);
        const ep_test::exchange_ranks_t ranks = {comm.rank(), comm.size(), comm, eng, s,
                [] { MPI_Barrier(MPI_COMM_WORLD); },
                [](double mine) {
                    double all = 0;
                    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
                    return all;
                },
                [&](const memory::desc &md, const void *values) {
                    const memory m(md, eng);
                    std::memcpy(m.get_data_handle(), values, md.get_size());
                    return m;
                }};
        ep_test::measure_exchanges(ranks, "mpi", 4096, argc > 1 ? std::atoll(argv[1]) : 64 << 20,
                /* of all pairs of a rank */ 1ll << 28, argc > 2 ? std::atoi(argv[2]) : 7);
    } catch (const mxdnn::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
