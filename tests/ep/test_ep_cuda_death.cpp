// SPDX-License-Identifier: Apache-2.0
// A rank over NCCL is killed between two passes: the others have an error at their timeout, and their streams
// end. Ranks are processes, with a device each. It is a program of its own, because it has to fork before
// anything uses CUDA.
//
//     test_ep_cuda_death nccl|nccl_direct
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

#include "ep/layer_case.hpp"
#include "mxdnn/mxdnn_cuda.hpp"

using namespace ep_test;
using ep::direction;
using ep::stage;

namespace {

constexpr int64_t timeout_ms = 6000;
constexpr int most_seconds = 40; // of the whole program

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

memory upload(const engine &eng, stream &s, const memory::desc &md, const void *data) {
    const memory m(md, eng);
    cuda_interop::copy(s, m.get_data_handle(), data, md.get_size());
    s.wait();
    return m;
}

// 0: as expected.
int run_rank(shared_t &shared, int rank, int ranks, ep::transport transport) {
    library_t nccl;
    if (!open_nccl(nccl)) return 1;
    const engine eng(engine::kind::cuda, size_t(rank));
    stream s(eng);
    const memory first(memory::desc({64}, dt::s8, tag::a), eng); // a context
    if (rank == 0) {
        if (nccl.get_id(&shared.id) != ncclSuccess) return 1;
        shared.id_is_there = 1;
    }
    while (!shared.id_is_there) usleep(1000);
    ncclComm_t caller = nullptr;
    if (cudaSetDevice(rank) != cudaSuccess || nccl.init(&caller, ranks, shared.id, rank) != ncclSuccess) {
        std::printf("rank %d: ncclCommInitRank failed\n", rank);
        return 1;
    }
    const ep::communicator comm(eng, transport, caller, timeout_ms);
    const case_t c = {routing_t::random, 32, 2, 2, 4, dt::bf16, dt::bf16, true, 5};
    const rank_data_t mine = make_rank(c, rank, ranks);
    const dim sent = dim(mine.token_of.size());
    const ep::layer layer(comm, ep::layer::desc(c.hidden, 2 * ranks, most_tokens * 2, most_tokens * 2));
    const ep::step step(layer);
    const std::unordered_map<int, memory> args = {
            {MXDNN_ARG_SRC, upload(eng, s, {{mine.tokens, c.hidden}, dt::bf16, tag::ab}, mine.x.data())},
            {MXDNN_ARG_GROUP_COUNTS, upload(eng, s, {{2 * ranks}, dt::s32, tag::a}, mine.counts.data())},
            {MXDNN_ARG_GATHER_IDX, upload(eng, s, {{sent}, dt::s32, tag::a}, mine.token_of.data())}};
    const memory y(memory::desc({sent, c.hidden}, dt::bf16, tag::ab), eng);
    const auto pass = [&] {
        step.execute(stage::dispatch, direction::forward, s, args);
        step.execute(stage::permute, direction::forward, s);
        step.execute(stage::unpermute, direction::forward, s);
        step.execute(stage::combine, direction::forward, s, {{MXDNN_ARG_DST, y}});
        comm.wait(s);
    };
    pass();
    shared.here++;
    while (shared.here < ranks) usleep(1000);
    if (rank == ranks - 1) raise(SIGKILL);
    const auto begin = std::chrono::steady_clock::now();
    try {
        pass();
        std::printf("rank %d: WRONG: no error\n", rank);
        return 1;
    } catch (const mxdnn::error &e) {
        const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::printf("rank %d: after %.1f s: %s\n", rank, seconds, e.what());
    }
    std::fflush(stdout);
    s.wait(); // nothing is under way
    try {
        comm.wait(s);
        std::printf("rank %d: WRONG: the communicator goes on\n", rank);
        return 1;
    } catch (const mxdnn::error &e) {
        std::printf("rank %d: survivor: its stream has ended; %s\n", rank, e.what());
    }
    std::fflush(stdout);
    return 0;
}

int run_rank_guarded(shared_t &shared, int rank, int ranks, ep::transport transport) {
    try {
        return run_rank(shared, rank, ranks, transport);
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
    std::vector<pid_t> children;
    for (int r = 0; r < ranks; r++) {
        const pid_t child = fork();
        if (child == 0) _exit(run_rank_guarded(shared, r, ranks, transport));
        children.push_back(child);
    }
    int wrong = 0;
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        pid_t ended = 0;
        for (int tenths = 0; tenths < 10 * most_seconds && ended == 0; tenths++) {
            ended = waitpid(children[size_t(r)], &status, WNOHANG);
            if (ended == 0) usleep(100000);
        }
        if (ended == 0) {
            kill(children[size_t(r)], SIGKILL);
            waitpid(children[size_t(r)], &status, 0);
            std::printf("rank %d: WRONG: it did not end\n", r);
            wrong = 1;
        } else if (r < ranks - 1 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
            std::printf("rank %d: WRONG: status %d\n", r, status);
            wrong = 1;
        }
    }
    std::puts(wrong ? "failed" : "each rank that was left had an error");
    return wrong;
}
