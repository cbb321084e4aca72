// SPDX-License-Identifier: Apache-2.0
// A rank over NCCL is killed between two passes: the others have an error at their timeout, and their streams
// end. Ranks are processes, with a device each. It is a program of its own, because it has to fork before
// anything uses CUDA.
//
//     test_ep_cuda_death nccl|nccl_direct [nobody]
//
// nobody: no rank is killed, and all check a layer in bf16 and in MXFP8. This is for compute-sanitizer, under
// which the kernels of a process run one after the other: ranks that are threads wait for each other for
// ever.
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include "ep/nccl_case.hpp"

using namespace ep_test;
using ep::direction;
using ep::stage;

namespace {

constexpr int64_t timeout_ms = 6000, patient_timeout_ms = 60000;
constexpr int most_seconds = 40, patient_seconds = 240; // of the whole program

// What the processes share.
struct shared_t {
    ncclUniqueId id;
    std::atomic<int> id_is_there, devices, here;
};

struct library_t {
    decltype(&::ncclGetUniqueId) get_id;
    decltype(&::ncclCommInitRank) init;
};

bool open_nccl(library_t &l) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library) return false;
    l.get_id = reinterpret_cast<decltype(l.get_id)>(dlsym(library, "ncclGetUniqueId"));
    l.init = reinterpret_cast<decltype(l.init)>(dlsym(library, "ncclCommInitRank"));
    return l.get_id && l.init;
}

// This process as a rank.
nccl_rank_t join(shared_t &shared, int rank, int ranks, ep::transport transport, int64_t timeout) {
    library_t nccl;
    if (!open_nccl(nccl)) throw std::runtime_error("there is no NCCL");
    nccl_rank_t r = {rank, ranks, nullptr, transport == ep::transport::nccl_direct, nullptr,
            engine(engine::kind::cuda, size_t(rank)), {}, {}};
    r.s = stream(r.eng);
    const memory first(memory::desc({64}, dt::s8, tag::a), r.eng); // a context
    if (rank == 0) {
        if (nccl.get_id(&shared.id) != ncclSuccess) throw std::runtime_error("ncclGetUniqueId failed");
        shared.id_is_there = 1;
    }
    while (!shared.id_is_there) usleep(1000);
    if (cudaSetDevice(rank) != cudaSuccess || nccl.init(&r.nccl, ranks, shared.id, rank) != ncclSuccess)
        throw std::runtime_error("ncclCommInitRank failed");
    r.comm = ep::communicator(r.eng, transport, r.nccl, timeout);
    return r;
}

// 0: as expected.
int run_with_death(shared_t &shared, const nccl_rank_t &r) {
    layer_case_t l(r, {routing_t::random, 32, 2, 2, 4, dt::bf16, dt::bf16, true, 5});
    const ep::layer layer(r.comm, l.desc());
    const ep::step step(layer);
    const memory y = l.poisoned();
    const auto args = l.dispatch_args();
    const auto pass = [&] {
        step.execute(stage::dispatch, direction::forward, r.s, args);
        step.execute(stage::permute, direction::forward, r.s);
        step.execute(stage::unpermute, direction::forward, r.s);
        step.execute(stage::combine, direction::forward, r.s, {{MXDNN_ARG_DST, y}});
        r.comm.wait(r.s);
    };
    pass();
    shared.here++;
    while (shared.here < r.ranks) usleep(1000);
    if (r.rank == r.ranks - 1) raise(SIGKILL);
    const auto begin = std::chrono::steady_clock::now();
    try {
        pass();
        std::printf("rank %d: WRONG: no error\n", r.rank);
        return 1;
    } catch (const mxdnn::error &e) {
        const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::printf("rank %d: after %.1f s: %s\n", r.rank, seconds, e.what());
    }
    std::fflush(stdout);
    r.s.wait(); // nothing is under way
    try {
        r.comm.wait(r.s);
        std::printf("rank %d: WRONG: the communicator goes on\n", r.rank);
        return 1;
    } catch (const mxdnn::error &e) {
        std::printf("rank %d: survivor: its stream has ended; %s\n", r.rank, e.what());
    }
    std::fflush(stdout);
    return 0;
}

int run_whole(const nccl_rank_t &r) {
    for (const dt type : {dt::bf16, dt::f8_e4m3}) {
        layer_case_t l(r, {routing_t::random, 64, 2, 2, 4, type, type, true, 5});
        const ep::layer layer(r.comm, l.desc());
        const ep::step step(layer);
        for (int pass = 0; pass < 2; pass++) l.run(step);
    }
    return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed();
}

int run_rank(shared_t &shared, int rank, int ranks, ep::transport transport, bool dies) {
    try {
        const nccl_rank_t r = join(shared, rank, ranks, transport, dies ? timeout_ms : patient_timeout_ms);
        return dies ? run_with_death(shared, r) : run_whole(r);
    } catch (const std::exception &e) {
        std::printf("rank %d: %s\n", rank, e.what());
        std::fflush(stdout);
        return 1;
    }
}

// How many devices there are, asked in a process of its own.
int count_devices(shared_t &shared) {
    const pid_t child = fork();
    if (child == 0) {
        shared.devices = int(engine::get_count(engine::kind::cuda));
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    return shared.devices;
}

} // namespace

int main(int argc, char **argv) {
    void *memory = mmap(nullptr, sizeof(shared_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    shared_t &shared = *new (memory) shared_t();
    library_t nccl;
    const int ranks = std::min(count_devices(shared), 4);
    if (ranks < 2 || !open_nccl(nccl)) {
        std::puts("MXDNN_SKIP_ALL: two devices and NCCL are needed");
        return 0;
    }
    const ep::transport transport = argc > 1 && !std::strcmp(argv[1], "nccl_direct")
                                            ? ep::transport::nccl_direct
                                            : ep::transport::nccl;
    const bool dies = argc < 3 || std::strcmp(argv[2], "nobody") != 0;
    const int tenths_all = 10 * (dies ? most_seconds : patient_seconds);
    std::vector<pid_t> children;
    for (int r = 0; r < ranks; r++) {
        const pid_t child = fork();
        if (child == 0) {
            const int status = run_rank(shared, r, ranks, transport, dies);
            if (!dies) std::exit(status); // compute-sanitizer sums up then
            _exit(status);
        }
        children.push_back(child);
    }
    int wrong = 0;
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        pid_t ended = 0;
        for (int tenths = 0; tenths < tenths_all && ended == 0; tenths++) {
            ended = waitpid(children[size_t(r)], &status, WNOHANG);
            if (ended == 0) usleep(100000);
        }
        if (ended == 0) {
            kill(children[size_t(r)], SIGKILL);
            waitpid(children[size_t(r)], &status, 0);
            std::printf("rank %d: WRONG: it did not end\n", r);
            wrong = 1;
        } else if ((!dies || r < ranks - 1) && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
            std::printf("rank %d: WRONG: status %d\n", r, status);
            wrong = 1;
        }
    }
    std::puts(wrong  ? "failed"
              : dies ? "each rank that was left had an error"
                     : "the layers of all ranks are right");
    return wrong;
}
