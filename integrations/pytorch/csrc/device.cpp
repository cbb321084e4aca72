// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <mxdnn/mxdnn_cuda.hpp>

namespace mxdnn_torch {

namespace {

std::mutex concurrency_mutex;
int largest_concurrency = 0; // what an execution may use at most; guarded by the mutex

// A symbol of libtorch_cuda, which a torch for the CPU alone does not have. Python loads torch's libraries
// without making their symbols global, so it is looked for in that library.
CUstream_st *current_cuda_stream(int32_t index) {
    using get_stream_t = AOTITorchError (*)(int32_t, void **);
    static const auto get_stream = [] {
        void *torch_cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
        return reinterpret_cast<get_stream_t>(
                torch_cuda ? dlsym(torch_cuda, "aoti_torch_get_current_cuda_stream") : nullptr);
    }();
    if (get_stream == nullptr) refuse("this torch has no CUDA; install one that has");
    void *stream = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(get_stream(index, &stream));
    return static_cast<CUstream_st *>(stream);
}

} // namespace

const mxdnn::engine &engine_of(const place_t &place) {
    if (!place.is_cuda) {
        static const mxdnn::engine cpu(mxdnn::engine::kind::cpu, 0);
        return cpu;
    }
    thread_local std::map<int32_t, mxdnn::engine> engines;
    auto found = engines.find(place.index);
    if (found == engines.end())
        found = engines.emplace(place.index,
                               mxdnn::engine(mxdnn::engine::kind::cuda, static_cast<size_t>(place.index)))
                        .first;
    return found->second;
}

mxdnn::engine host_engine_of(const std::string &target) {
    if (target == "cpu" || target == "cpu:x64") return engine_of({});
    return mxdnn::engine::for_target(
            target == "cuda" ? "cuda:sm_80" : target); // one layout for all of a family
}

const mxdnn::stream &stream_of(const mxdnn::engine &engine, const place_t &place) {
    if (!place.is_cuda) {
        thread_local std::pair<mxdnn_engine_t, mxdnn::stream> last;
        if (last.first != engine.get()) last = {engine.get(), mxdnn::stream(engine)};
        return last.second;
    }
    thread_local std::map<std::pair<int32_t, CUstream_st *>, mxdnn::stream> streams;
    CUstream_st *const current = current_cuda_stream(place.index);
    auto found = streams.find({place.index, current});
    if (found == streams.end())
        found = streams.emplace(std::make_pair(place.index, current),
                               mxdnn::cuda_interop::make_stream(engine, current))
                        .first;
    return found->second;
}

int torch_threads() {
    uint32_t threads = 1;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_get_num_threads(&threads));
    return static_cast<int>(std::min<uint32_t>(std::max<uint32_t>(threads, 1), 4096));
}

// The number counts when a primitive descriptor is created; afterwards the library's setting goes back to the
// largest that was ever asked for, so that each primitive keeps its own.
thread_count_scope_t::thread_count_scope_t(int threads) {
    concurrency_mutex.lock();
    largest_concurrency = std::max(largest_concurrency, threads);
    mxdnn_set_max_concurrency(threads);
}

thread_count_scope_t::~thread_count_scope_t() {
    mxdnn_set_max_concurrency(largest_concurrency);
    concurrency_mutex.unlock();
}

} // namespace mxdnn_torch
