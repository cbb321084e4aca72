// SPDX-License-Identifier: Apache-2.0
// Times of exchanges by their size: what scripts/fit-exchange fits a model to. Every rank sends the same
// number of rows to every rank, so that the bytes of a pair are known.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "mxdnn/mxdnn_ep.hpp"

namespace ep_test {

struct exchange_ranks_t {
    int rank, ranks;
    const mxdnn::ep::communicator &comm;
    const mxdnn::engine &eng;
    mxdnn::stream &s;
    std::function<void()> meet;
    std::function<double(double)> most; // of all ranks
    std::function<mxdnn::memory(const mxdnn::memory::desc &, const void *)> put;
};

// The median, over the passes, of the slowest rank's seconds. The first two passes do not count.
inline double median_of_slowest(const exchange_ranks_t &r, int passes, const std::function<void()> &fn) {
    std::vector<double> slowest;
    for (int i = 0; i < passes + 2; i++) {
        r.s.wait();
        r.meet();
        const auto begin = std::chrono::steady_clock::now();
        fn();
        r.s.wait();
        const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin;
        const double all = r.most(mine.count());
        if (i >= 2) slowest.push_back(all);
    }
    std::sort(slowest.begin(), slowest.end());
    return slowest[slowest.size() / 2];
}

inline void print_exchange(
        const exchange_ranks_t &r, const char *what, long long bytes_of_pair, double seconds) {
    if (r.rank == 0) std::printf("exchange,%s,%d,%lld,%.3f\n", what, r.ranks, bytes_of_pair, 1e6 * seconds);
}

// A line `exchange,NAME,RANKS,BYTES OF A PAIR,MICROSECONDS` for each size: dispatch, and its backward form,
// in bf16. `also` measures more with the same rows of a pair and bytes of a row.
inline void measure_exchanges(const exchange_ranks_t &r, const char *name, long long least, long long most,
        long long most_in_all, int passes,
        const std::function<void(long long rows, long long row_bytes)> &also = {}) {
    using namespace mxdnn;
    using dt = memory::data_type;
    using tag = memory::format_tag;
    using dim = memory::dim;
    const dim hidden = 2048, row_bytes = 2 * hidden; // bf16
    for (long long bytes = least; bytes <= most && bytes * r.ranks <= most_in_all; bytes *= 4) {
        const dim each = std::max<dim>(bytes / row_bytes, 1), rows = each * r.ranks;
        ep::layer::desc d(hidden, r.ranks, rows, rows);
        d.capacity = rows;
        const ep::layer layer(r.comm, d);
        const ep::step step(layer);
        const std::vector<int32_t> counts(size_t(r.ranks), int32_t(each));
        const std::vector<uint16_t> values(size_t(rows * hidden), 0x3f80);
        const memory x = r.put({{rows, hidden}, dt::bf16, tag::ab}, values.data()),
                     n = r.put({{r.ranks}, dt::s32, tag::a}, counts.data()),
                     y({{rows, hidden}, dt::bf16, tag::ab}, r.eng);
        const auto dispatch = [&] {
            step.execute(ep::stage::dispatch, ep::direction::forward, r.s,
                    {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_GROUP_COUNTS, n}});
        };
        print_exchange(r, (std::string(name) + " dispatch").c_str(), each * row_bytes,
                median_of_slowest(r, passes, dispatch));
        dispatch();
        step.execute(ep::stage::permute, ep::direction::forward, r.s);
        step.execute(ep::stage::unpermute, ep::direction::forward, r.s);
        print_exchange(r, (std::string(name) + " combine").c_str(), each * row_bytes,
                median_of_slowest(r, passes, [&] {
                    step.execute(ep::stage::combine, ep::direction::forward, r.s, {{MXDNN_ARG_DST, y}});
                }));
        r.comm.wait(r.s);
        if (also) also(each, row_bytes);
    }
}

} // namespace ep_test
