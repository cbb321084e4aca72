// SPDX-License-Identifier: Apache-2.0
// A rank goes away: killed between two stages, killed at any moment, or it does not call. The others get an
// error in time, every later call fails at once, and all memory of theirs is their own again. Each prints one
// line then.
//     test_ep_death between|anytime|absent
#include <mpi.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "mxdnn/mxdnn_ep.hpp"

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;

namespace {

constexpr dim hidden = 4096, tokens = 64;
constexpr int64_t timeout_ms = 2000;
constexpr int passes_before = 3;

int rank, ranks;

[[noreturn]] void wrong(const char *what, const char *detail) {
    std::printf("rank %d: WRONG: %s: %s\n", rank, what, detail);
    std::fflush(stdout);
    _exit(1);
}

void run(const std::string &when) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const bool victim = rank == ranks - 1;

    const engine eng(engine::kind::cpu, 0);
    const stream s(eng);
    const ep::communicator comm(eng, ep::transport::mpi, MPI_COMM_WORLD, timeout_ms);
    ep::layer::desc desc(hidden, ranks, tokens, tokens);
    desc.forward_type = mxdnn_f8_e4m3;
    const ep::layer::memory_sizes sizes = ep::layer::get_memory_sizes(comm, desc);
    void *workspace = std::aligned_alloc(64, sizes.workspace);

    std::vector<uint16_t> x(tokens * hidden, 0x3f80), y(tokens * hidden);
    std::vector<int32_t> counts(size_t(ranks), tokens / ranks);
    const memory src({{tokens, hidden}, dt::bf16, tag::ab}, eng, x.data());
    const memory dst({{tokens, hidden}, dt::bf16, tag::ab}, eng, y.data());
    const memory group_counts({{ranks}, dt::s32, tag::a}, eng, counts.data());

    try {
        const ep::layer layer(comm, desc);
        ep::step step(layer, workspace);
        MPI_Barrier(MPI_COMM_WORLD);
        if (victim && when == "anytime") {
            const unsigned us = 1000 + std::random_device()() % 100000;
            std::printf("dies after %u us\n", us);
            std::fflush(stdout);
            struct itimerval timer = {};
            timer.it_value.tv_usec = us;
            setitimer(ITIMER_REAL, &timer, nullptr); // SIGALRM ends the process
        }
        try {
            for (int pass = 0; when == "anytime" || pass <= passes_before; pass++) {
                step.execute(ep::stage::dispatch, ep::direction::forward, s,
                        {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_GROUP_COUNTS, group_counts}});
                step.execute(ep::stage::permute, ep::direction::forward, s);
                if (victim && pass == passes_before && when == "between") std::raise(SIGKILL);
                if (victim && pass == passes_before && when == "absent") {
                    usleep(useconds_t(2 * timeout_ms * 1000));
                    _exit(0);
                }
                step.execute(ep::stage::unpermute, ep::direction::forward, s);
                step.execute(ep::stage::combine, ep::direction::forward, s, {{MXDNN_ARG_DST, dst}});
            }
            wrong("no error", "");
        } catch (const error &e) {
            if (e.status != mxdnn_runtime_error) wrong("another status than runtime_error", e.what());
        }
        try {
            step.execute(ep::stage::dispatch, ep::direction::forward, s,
                    {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_GROUP_COUNTS, group_counts}});
            wrong("a later call succeeds", "");
        } catch (const error &e) {
            if (!std::strstr(e.what(), "failed before")) wrong("another sentence", e.what());
        }
    } catch (const error &e) {
        wrong("no layer", e.what());
    }
    // Layer and step are gone. What was the caller's is the caller's: messages under way touch none of it.
    std::memset(workspace, 0x5a, sizes.workspace);
    std::free(workspace);
    x.assign(x.size(), 0x5a5a);
    y.assign(y.size(), 0x5a5a);
    usleep(100000);
    for (const auto *v : {&x, &y})
        for (const uint16_t h : *v)
            if (h != 0x5a5a) wrong("memory of the caller was written to", "");
    std::printf("survivor: an error and its own memory\n");
    std::fflush(stdout);
    _exit(0); // MPI_Finalize would wait for the dead
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    try {
        run(argc > 1 ? argv[1] : "");
    } catch (const std::exception &e) {
        wrong("an exception", e.what());
    }
}
