// SPDX-License-Identifier: Apache-2.0
#include "cpu/threading.hpp"

#include <algorithm>

#include <oneapi/tbb/parallel_for.h>

#include "mxdnn/mxdnn_threadpool.hpp"

namespace mxdnn {
namespace impl {

int threads_of(const stream_t &stream, int limit) {
    int n = limit;
    if (stream.threadpool) n = stream.threadpool->get_in_parallel() ? 1 : std::min(n, stream.threadpool->get_num_threads());
    return std::max(n, 1);
}

void parallel(const stream_t &stream, int nthr, const std::function<void(int, int)> &body) {
    if (nthr <= 1) return body(0, 1);
    if (stream.threadpool) {
        threadpool_iface &pool = *stream.threadpool;
        pool.parallel_for(nthr, body);
        // An asynchronous pool has to be waited for: CPU executions return when they are done.
        if (pool.get_flags() & threadpool_iface::ASYNCHRONOUS) pool.wait();
        return;
    }
    oneapi::tbb::parallel_for(
            0, nthr, [&](int i) { body(i, nthr); }, oneapi::tbb::static_partitioner());
}

} // namespace impl
} // namespace mxdnn
