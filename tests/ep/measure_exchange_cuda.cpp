// SPDX-License-Identifier: Apache-2.0
// Times of exchanges over NCCL by their size, for scripts/fit-exchange: both transports, and NCCL's own
// exchange of the same bytes in the same run. Each rank is a thread with a device of its own.
//
//     measure_exchange_cuda [RANKS [MOST_BYTES_OF_A_PAIR [PASSES]]]        default: all devices, 256 MB, 20
#include <cstdlib>

#include "ep/exchange_times.hpp"
#include "ep/nccl_ranks.hpp"

using namespace mxdnn;
using ep_test::nccl_rank_t;

namespace {

void exchange(const nccl_rank_t &rank, size_t bytes, const memory &out, const memory &in) {
    const ep_test::nccl_library_t &n = ep_test::nccl_library_t::get();
    const cudaStream_t s = cuda_interop::get_stream(rank.s);
    n.group_start();
    for (int p = 0; p < rank.ranks; p++) {
        n.send(static_cast<uint8_t *>(out.get_data_handle()) + size_t(p) * bytes, bytes, ncclUint8, p,
                rank.nccl, s);
        n.recv(static_cast<uint8_t *>(in.get_data_handle()) + size_t(p) * bytes, bytes, ncclUint8, p,
                rank.nccl, s);
    }
    if (n.group_end() != ncclSuccess) throw std::runtime_error("ncclGroupEnd failed");
}

int run(int argc, char **argv) {
    if (!ep_test::nccl_library_t::get().why_not.empty()) {
        std::printf("MXDNN_SKIP_ALL: %s\n", ep_test::nccl_library_t::get().why_not.c_str());
        return 0;
    }
    const int devices = int(engine::get_count(engine::kind::cuda));
    const int ranks = argc > 1 ? std::atoi(argv[1]) : devices;
    const long long most = argc > 2 ? std::atoll(argv[2]) : 256ll << 20;
    const int passes = argc > 3 ? std::atoi(argv[3]) : 20;
    std::vector<double> shared(static_cast<size_t>(ranks));
    int status = 0;
    for (const ep::transport t : {ep::transport::nccl, ep::transport::nccl_direct}) {
        std::string why;
        const auto measure = [&](nccl_rank_t &rank) {
            const ep_test::exchange_ranks_t r = {rank.rank, rank.ranks, rank.comm, rank.eng, rank.s,
                    [&] { rank.meeting->wait(); },
                    [&](double mine) {
                        shared[size_t(rank.rank)] = mine;
                        rank.meeting->wait();
                        const double all = *std::max_element(shared.begin(), shared.end());
                        rank.meeting->wait();
                        return all;
                    },
                    [&](const memory::desc &md, const void *values) { return rank.upload(md, values); }};
            const auto alone = [&](long long rows, long long row_bytes) {
                const memory::desc all(
                        {rows * row_bytes * rank.ranks}, memory::data_type::s8, memory::format_tag::a);
                const memory out(all, rank.eng), in(all, rank.eng);
                ep_test::print_exchange(r, "NCCL alone", rows * row_bytes,
                        ep_test::median_of_slowest(
                                r, passes, [&] { exchange(rank, size_t(rows * row_bytes), out, in); }));
            };
            ep_test::measure_exchanges(r, rank.direct ? "nccl_direct" : "nccl", 4096, most, 4ll << 30, passes,
                    rank.direct ? std::function<void(long long, long long)>() : alone);
        };
        if (ep_test::run_on_nccl_ranks(ranks, t, 20000, measure, why)) continue;
        std::printf("failed: %s\n", why.c_str());
        status = 1;
    }
    return status;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &e) {
        std::printf("failed: %s\n", e.what());
        return 1;
    }
}
