// SPDX-License-Identifier: Apache-2.0
#include "ep/ranks.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace ep_test {

namespace {

// What a rank that does not speak says.
struct failures_t : testing::EmptyTestEventListener {
    int rank;
    explicit failures_t(int r) : rank(r) {}
    void OnTestPartResult(const testing::TestPartResult &r) override {
        if (r.failed())
            std::printf("rank %d: %s:%d: %s\n", rank, r.file_name(), r.line_number(), r.message());
    }
};

} // namespace

unsigned seed_of_run() {
    static const unsigned seed = [] {
        const char *wanted = std::getenv("MXDNN_TEST_SEED");
        unsigned s = wanted ? unsigned(std::strtoul(wanted, nullptr, 10)) : std::random_device()() % 1000000;
        MPI_Bcast(&s, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
        return s;
    }();
    return seed;
}

int run_on_all_ranks(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    testing::InitGoogleTest(&argc, argv);
    const unsigned seed = seed_of_run();
    if (rank == 0) {
        std::printf("MXDNN_TEST_SEED=%u\n", seed);
    } else {
        testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new failures_t(rank));
    }
    const int status = RUN_ALL_TESTS();
    // A rank that failed may have left others behind, with which MPI_Finalize would wait forever.
    if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}

} // namespace ep_test
