// SPDX-License-Identifier: Apache-2.0
// Problems on engines that are CUDA devices: tensors of the bench stay on the host, and visit the device to
// execute.
#pragma once

#include <functional>
#include <unordered_map>

#include "benchdnn/common/buffer.hpp"
#include "benchdnn/common/ceilings.hpp"
#include "benchdnn/common/perf.hpp"
#include "mxdnn/mxdnn.hpp"

namespace bench {

bool is_device(const mxdnn::engine &e);
// The engine of host memory for `e`: itself, or the target of a device, which packs on the host.
mxdnn::engine host_engine(const mxdnn::engine &e);

using args_t = std::unordered_map<int, mxdnn::memory>;

// Executes and waits. Host memory is copied to a device and, if it may have been written, back. `there` has
// arguments that are already on the device.
void execute(const mxdnn::primitive &p, const mxdnn::stream &s, const args_t &args, const args_t &there = {});
// Bytes as they are, on a device.
mxdnn::memory bytes_on_device(const mxdnn::engine &e, const void *bytes, size_t size);
// Arguments in a device's own memory.
args_t on_device(const mxdnn::engine &e, const args_t &args);
mxdnn::memory on_device(const mxdnn::engine &e, const mxdnn::memory &host);

// Times executions that copy, on the same arguments, where the engine is: on a device as nodes of a graph,
// else in turn with copies.
void time_execution(
        const mxdnn::primitive &p, const mxdnn::stream &s, const args_t &args, double budget_ms, perf_t &r);

// ---- timing; only on a device ----

using nodes_t = std::vector<std::function<void()>>; // each puts one execution into the stream

// The number of executions in a graph: some milliseconds of them by the limits, since they share the cost of
// launching the graph; 20 to 400.
int graph_nodes(const perf_t &p);

// Captures the calls of each list, back to back, into a graph, and replays both alternately (the second may
// be empty). Times are those of one node.
void time_graphs(const mxdnn::stream &s, const nodes_t &mine, const nodes_t &peer, double budget_ms,
        times_t &mine_times, times_t &peer_times);

// Measured once: read and copy bandwidth, the rate of cuBLASLt's bf16 product of 8192 cubed (0 without
// cuBLASLt).
const ceilings_t &device_ceilings();
// Of an empty kernel among others like it in a graph.
double empty_kernel_us();

struct device_peer_t {
    nodes_t nodes;    // empty: the peer cannot run this here
    std::string name; // "cublaslt:bf16", or why it cannot
};
// Operands of an unquantised product in bf16, on the host: one matrix for all of a batch, or one for each.
struct dense_matmul_t {
    int64_t batch, M, K, N;
    const buffer_t &src, &weights; // [M, K] and [N, K]
};
// With the best of cuBLASLt's suggestions, alternating between copies of the weights. The caller gives the
// numbers, because the clock that the power limit leaves depends on them.
device_peer_t make_cublaslt_matmul(const mxdnn::stream &s, const dense_matmul_t &m, int copies, int nodes);

} // namespace bench
