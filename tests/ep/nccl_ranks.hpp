// SPDX-License-Identifier: Apache-2.0
// Ranks over NCCL: threads of this process, each with a CUDA device of its own.
#pragma once

#include <dlfcn.h>
#include <nccl.h>

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mxdnn/mxdnn_cuda.hpp"
#include "mxdnn/mxdnn_ep.hpp"

namespace ep_test {

// NCCL as a program loads it; the library under test finds it there.
struct nccl_library_t {
    decltype(&::ncclCommInitAll) init_all = nullptr;
    decltype(&::ncclCommDestroy) destroy = nullptr;
    decltype(&::ncclGetErrorString) error_string = nullptr;
    decltype(&::ncclGroupStart) group_start = nullptr;
    decltype(&::ncclGroupEnd) group_end = nullptr;
    decltype(&::ncclSend) send = nullptr;
    decltype(&::ncclRecv) recv = nullptr;
    std::string why_not;

    static const nccl_library_t &get() {
        static const nccl_library_t l;
        return l;
    }

private:
    nccl_library_t() {
        void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            why_not = dlerror();
            return;
        }
        const auto find = [&](auto &function, const char *name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            if (!function) why_not = name;
        };
        find(init_all, "ncclCommInitAll");
        find(destroy, "ncclCommDestroy");
        find(error_string, "ncclGetErrorString");
        find(group_start, "ncclGroupStart");
        find(group_end, "ncclGroupEnd");
        find(send, "ncclSend");
        find(recv, "ncclRecv");
    }
};

// Waits until all threads have come. Where one has failed, none waits for it: the others fail, too.
class meeting_t {
public:
    explicit meeting_t(int threads) : threads_(threads) {}
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const int round = round_;
        if (++here_ == threads_) {
            here_ = 0;
            round_++;
            changed_.notify_all();
        } else {
            changed_.wait(lock, [&] { return round_ != round || failed_; });
        }
        if (round_ == round) throw std::runtime_error("another rank has failed");
    }
    void fail() {
        const std::lock_guard<std::mutex> lock(mutex_);
        failed_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int threads_, here_ = 0, round_ = 0;
    bool failed_ = false;
};

struct nccl_rank_t {
    int rank, ranks;
    ncclComm_t nccl; // the program's own
    bool direct;     // the transport is nccl_direct
    meeting_t *meeting;
    mxdnn::engine eng;
    mutable mxdnn::stream s; // waiting changes it
    mxdnn::ep::communicator comm;

    // A copy of host memory on the device.
    mxdnn::memory upload(const mxdnn::memory::desc &md, const void *data) const {
        const mxdnn::memory m(md, eng);
        mxdnn::cuda_interop::copy(s, m.get_data_handle(), data, md.get_size());
        s.wait();
        return m;
    }
    // Bytes of a memory on the device, after what is in the stream.
    std::vector<uint8_t> download(const mxdnn::memory &m) const {
        std::vector<uint8_t> bytes(m.get_desc().get_size());
        mxdnn::cuda_interop::copy(s, bytes.data(), m.get_data_handle(), bytes.size());
        s.wait();
        return bytes;
    }
};

// Runs fn on each rank. False: it cannot, or a rank threw; `why` says so.
inline bool run_on_nccl_ranks(int ranks, mxdnn::ep::transport transport, int64_t timeout_ms,
        const std::function<void(nccl_rank_t &)> &fn, std::string &why) {
    const nccl_library_t &nccl = nccl_library_t::get();
    std::vector<ncclComm_t> comms(static_cast<size_t>(ranks));
    const ncclResult_t e = nccl.init_all(comms.data(), ranks, nullptr);
    if (e != ncclSuccess) {
        why = std::string("ncclCommInitAll: ") + nccl.error_string(e);
        return false;
    }
    meeting_t meeting(ranks);
    std::vector<std::thread> threads;
    std::mutex mutex;
    why.clear();
    threads.reserve(size_t(ranks));
    for (int r = 0; r < ranks; r++)
        threads.emplace_back([&, r] {
            try {
                nccl_rank_t rank = {r, ranks, comms[size_t(r)],
                        transport == mxdnn::ep::transport::nccl_direct, &meeting,
                        mxdnn::engine(mxdnn::engine::kind::cuda, size_t(r)), {}, {}};
                rank.s = mxdnn::stream(rank.eng);
                rank.comm = mxdnn::ep::communicator(rank.eng, transport, comms[size_t(r)], timeout_ms);
                fn(rank);
            } catch (const std::exception &x) {
                const std::lock_guard<std::mutex> lock(mutex);
                why += "rank " + std::to_string(r) + ": " + x.what() + "; ";
                std::printf("rank %d: %s\n", r, x.what());
                std::fflush(stdout); // what follows may hang
                meeting.fail();
            }
        });
    for (std::thread &t : threads) t.join();
    threads.clear();
    for (const ncclComm_t c : comms) threads.emplace_back([&nccl, c] { nccl.destroy(c); });
    for (std::thread &t : threads) t.join();
    return why.empty();
}

} // namespace ep_test
