// SPDX-License-Identifier: Apache-2.0
#include "timing.hpp"

#include <algorithm>
#include <chrono>

#if MOE_LAYER_HAVE_GRAPHS
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>
#include <mxdnn/mxdnn_cuda.hpp>
#endif

namespace {

using replay_t = std::function<double()>; // does the work, and says how many ms that took

replay_t by_clock(mxdnn::stream &s, const std::function<void()> &work) {
    return [&s, work] {
        using clock = std::chrono::steady_clock;
        const clock::time_point start = clock::now();
        work();
        s.wait();
        return std::chrono::duration<double, std::milli>(clock::now() - start).count();
    };
}

#if MOE_LAYER_HAVE_GRAPHS
void check(cudaError_t e, const char *what) {
    if (e != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(e));
}

// Every execution on a CUDA engine can be captured: it allocates nothing, and waits for nothing.
struct graph_t {
    cudaStream_t stream;
    cudaGraphExec_t exec = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;

    graph_t(const mxdnn::stream &s, const std::function<void()> &work)
        : stream(mxdnn::cuda_interop::get_stream(s)) {
        cudaGraph_t graph = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
        work();
        check(cudaStreamEndCapture(stream, &graph), "capture");
        check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
        check(cudaGraphDestroy(graph), "cudaGraphDestroy");
        check(cudaEventCreate(&begin), "cudaEventCreate");
        check(cudaEventCreate(&end), "cudaEventCreate");
    }
    ~graph_t() {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        cudaGraphExecDestroy(exec);
    }
    graph_t(const graph_t &) = delete;
    graph_t &operator=(const graph_t &) = delete;

    double replay() const {
        float ms = 0;
        check(cudaEventRecord(begin, stream), "cudaEventRecord");
        check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
        check(cudaEventRecord(end, stream), "cudaEventRecord");
        check(cudaEventSynchronize(end), "a replay");
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        return ms;
    }
};
#endif

replay_t make_replay(mxdnn::stream &s, const std::function<void()> &work) {
#if MOE_LAYER_HAVE_GRAPHS
    if (s.get_engine().get_kind() == mxdnn::engine::kind::cuda) {
        const auto graph = std::make_shared<graph_t>(s, work);
        return [graph] { return graph->replay(); };
    }
#endif
    return by_clock(s, work);
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
    return v[v.size() / 2];
}

} // namespace

std::vector<double> median_ms(
        mxdnn::stream &s, const std::vector<std::function<void()>> &work, double budget_ms) {
    std::vector<replay_t> replays;
    replays.reserve(work.size());
    for (const auto &w : work) replays.push_back(make_replay(s, w));
    for (const replay_t &r : replays) r();
    std::vector<std::vector<double>> ms(work.size());
    double spent = 0;
    while (ms[0].size() < 5 || (spent < budget_ms && ms[0].size() < 1000))
        for (size_t i = 0; i < work.size(); i++) {
            ms[i].push_back(replays[i]());
            spent += ms[i].back();
        }
    std::vector<double> medians;
    medians.reserve(ms.size());
    for (const auto &m : ms) medians.push_back(median(m));
    return medians;
}
