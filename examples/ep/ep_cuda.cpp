// SPDX-License-Identifier: Apache-2.0
// Expert parallelism over NCCL, on the CUDA devices of one machine: a rank for each, which is a thread. Ranks
// that are processes differ in how they get their ncclComm_t.
//
//     ep_cuda [TOKENS [HIDDEN [PASSES]]]        e.g. ep_cuda 8192 4096 20
#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include <mxdnn/mxdnn_cuda.hpp>

#include "layer.hpp"

using namespace example;

namespace {

// Where the threads meet, with the most of what they bring.
class meeting_t {
public:
    explicit meeting_t(int threads) : threads_(threads) {}
    double most(double mine) {
        std::unique_lock<std::mutex> lock(mutex_);
        const int round = round_;
        next_ = here_ == 0 ? mine : std::max(next_, mine);
        if (++here_ == threads_) {
            here_ = 0;
            most_ = next_;
            round_++;
            all_here_.notify_all();
        }
        all_here_.wait(lock, [&] { return round_ != round; });
        return most_; // it changes when all threads have come again
    }

private:
    std::mutex mutex_;
    std::condition_variable all_here_;
    int threads_, here_ = 0, round_ = 0;
    double next_ = 0, most_ = 0;
};

struct nccl_ranks_t : ranks_t {
    const engine &eng;
    stream &s;
    meeting_t &meeting;
    nccl_ranks_t(const engine &e, stream &as, meeting_t &m) : eng(e), s(as), meeting(m) {}

    using ranks_t::put;
    memory put(const memory::desc &md, const void *values) override {
        const memory m(md, eng);
        cuda_interop::copy(s, m.get_data_handle(), values, md.get_size());
        s.wait();
        return m;
    }
    void get(const memory &m, void *values) override {
        cuda_interop::copy(s, values, m.get_data_handle(), m.get_desc().get_size());
        s.wait();
    }
    void meet() override { meeting.most(0); }
    double most(double mine) override { return meeting.most(mine); }
};

} // namespace

int main(int argc, char **argv) {
    const std::optional<sizes_t> sizes = sizes_of(argc, argv);
    if (!sizes) return 2;
    const int devices = int(engine::get_count(engine::kind::cuda));
    if (devices == 0) {
        std::puts("there is no CUDA device");
        return 0;
    }
    std::vector<ncclComm_t> comms(static_cast<size_t>(devices));
    if (ncclCommInitAll(comms.data(), devices, nullptr) != ncclSuccess) {
        std::fprintf(stderr, "ncclCommInitAll: %s\n", ncclGetLastError(nullptr));
        return 1;
    }
    meeting_t meeting(devices);
    std::vector<int> status(static_cast<size_t>(devices));
    std::vector<std::thread> threads;
    threads.reserve(size_t(devices));
    for (int i = 0; i < devices; i++)
        threads.emplace_back([&, i] {
            try {
                const engine eng(engine::kind::cuda, size_t(i));
                stream s(eng);
                const ep::communicator comm(eng, ep::transport::nccl, comms[size_t(i)], 60000);
                nccl_ranks_t ranks(eng, s, meeting);
                status[size_t(i)] = run_all(ranks, comm, eng, s, *sizes);
            } catch (const mxdnn::error &e) {
                std::fprintf(stderr, "rank %d: %s\n", i, e.what());
                std::exit(1); // the other ranks would wait for this one
            }
        });
    for (std::thread &t : threads) t.join();
    threads.clear();
    for (const ncclComm_t c : comms) threads.emplace_back([c] { ncclCommDestroy(c); });
    for (std::thread &t : threads) t.join();
    return *std::max_element(status.begin(), status.end());
}
