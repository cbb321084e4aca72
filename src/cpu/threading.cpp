// SPDX-License-Identifier: Apache-2.0
#include "cpu/threading.hpp"

#include <algorithm>

#include "cpu/cpu_settings.hpp"
#include "cpu/pool_region.hpp"
#include "cpu/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {

int threads_of(const stream_t &stream, int limit) {
    int n = std::min({limit, max_concurrency(), max_threads});
    if (n <= 1 || !(stream.has_threadpool() || runtime::has_threads)) return 1;
    if (stream.has_threadpool()) {
        const mxdnn_threadpool_t &pool = stream.threadpool;
        n = pool.get_in_parallel(pool.user) ? 1 : std::min(n, pool.get_num_threads(pool.user));
    }
    return std::max(n, 1);
}

void parallel_on_threads(const stream_t &stream, int nthr, const body_t &body) {
    if (stream.has_threadpool())
        run_on_pool(stream.threadpool, nthr, body);
    else
        runtime::run(nthr, body);
}

} // namespace impl
} // namespace mxdnn
