// SPDX-License-Identifier: Apache-2.0
// Expert parallelism over MPI, on CPUs.
//
//     mpiexec -n 4 ep [TOKENS [HIDDEN [PASSES]]]        e.g. mpiexec -n 4 ep 1024 1024 20
#include <mpi.h>

#include "layer.hpp"

using namespace example;

namespace {

struct mpi_ranks_t : ranks_t {
    const engine &eng;
    explicit mpi_ranks_t(const engine &e) : eng(e) {}

    using ranks_t::put;
    memory put(const memory::desc &md, const void *values) override {
        const memory m(md, eng);
        if (md.get_size() > 0) std::memcpy(m.get_data_handle(), values, md.get_size());
        return m;
    }
    void get(const memory &m, void *values) override {
        if (m.get_desc().get_size() > 0) std::memcpy(values, m.get_data_handle(), m.get_desc().get_size());
    }
    void meet() override { MPI_Barrier(MPI_COMM_WORLD); }
    double most(double mine) override {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }
};

} // namespace

int main(int argc, char **argv) {
    const std::optional<sizes_t> sizes = sizes_of(argc, argv);
    if (!sizes) return 2;
    MPI_Init(&argc, &argv);
    int status = 0;
    try {
        set_max_concurrency(1); // each rank is one thread
        const engine eng(engine::kind::cpu, 0);
        stream s(eng);
        const ep::communicator comm(eng, ep::transport::mpi, MPI_COMM_WORLD, 60000);
        mpi_ranks_t ranks(eng);
        status = run_all(ranks, comm, eng, s, *sizes);
    } catch (const mxdnn::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return status;
}
