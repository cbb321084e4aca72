// SPDX-License-Identifier: Apache-2.0
// Times of the stages over NCCL, next to NCCL's own exchange of the same bytes in the same run.
//
//     measure_ep_cuda [RANKS [TOKENS [HIDDEN [EXPERTS [TOPK [PASSES]]]]]]      default: all devices, 8192
//     7168 256 8 10
//
// Each rank is a thread with a device of its own. A time is that of the slowest rank, from a common start
// until its stream has ended; the median of the passes.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "ep/nccl_ranks.hpp"
#include "ep/routes.hpp"

using namespace mxdnn;
using namespace ep_test;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
using ep::direction;
using ep::stage;

namespace {

memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }
memory::desc vector(dim n) { return {{n}, dt::s32, tag::a}; }

// Median over the passes of the slowest rank's seconds; the first two passes do not count.
class times_t {
public:
    times_t(const nccl_rank_t &rank, std::vector<double> &shared) : rank_(rank), shared_(shared) {}
    template <typename F>
    double measure(int passes, F &&fn) {
        std::vector<double> slowest;
        for (int i = 0; i < passes + 2; i++) {
            rank_.s.wait();
            rank_.meeting->wait();
            const auto begin = std::chrono::steady_clock::now();
            fn();
            rank_.s.wait();
            shared_[size_t(rank_.rank)] =
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            rank_.meeting->wait();
            if (i >= 2) slowest.push_back(*std::max_element(shared_.begin(), shared_.end()));
            rank_.meeting->wait();
        }
        std::sort(slowest.begin(), slowest.end());
        return slowest[slowest.size() / 2];
    }

private:
    const nccl_rank_t &rank_;
    std::vector<double> &shared_;
};

// What each rank sends to each.
using bytes_t = std::vector<std::vector<size_t>>;

// NCCL's exchange of the program itself: the same bytes for each pair of ranks.
void exchange(const nccl_rank_t &rank, const bytes_t &bytes, const uint8_t *out, uint8_t *in) {
    const ep_test::nccl_library_t &n = ep_test::nccl_library_t::get();
    const cudaStream_t s = cuda_interop::get_stream(rank.s);
    n.group_start();
    size_t from = 0, to = 0;
    for (int p = 0; p < rank.ranks; p++) {
        const size_t leave = bytes[size_t(rank.rank)][size_t(p)],
                     arrive = bytes[size_t(p)][size_t(rank.rank)];
        n.send(out + from, leave, ncclUint8, p, rank.nccl, s);
        n.recv(in + to, arrive, ncclUint8, p, rank.nccl, s);
        from += leave;
        to += arrive;
    }
    if (n.group_end() != ncclSuccess) throw std::runtime_error("ncclGroupEnd failed");
}

void measure(const nccl_rank_t &rank, const sizes_t &z, dt type, const std::vector<routes_t> &routes,
        std::vector<double> &shared) {
    const bool first = rank.rank == 0;
    const routes_t &mine = routes[size_t(rank.rank)];
    const dim rows = z.tokens * z.topk;
    dim arrive = 0, most = 0, leave = 0; // `leave`: rows for other ranks
    for (int p = 0; p < rank.ranks; p++) {
        dim here = 0;
        for (const routes_t &r : routes) here += r.to_rank[size_t(p)];
        most = std::max(most, here);
        if (p == rank.rank) arrive = here;
        if (p != rank.rank) leave += mine.to_rank[size_t(p)];
    }
    ep::layer::desc d(z.hidden, z.experts, z.tokens, rows);
    d.capacity = most;
    d.alignment = 128;
    d.forward_type = d.backward_type = mxdnn_data_type_t(type);
    const ep::layer layer(rank.comm, d);
    const ep::step step(layer);

    std::mt19937 rng(unsigned(rank.rank) + 100);
    std::vector<uint16_t> values(size_t(z.tokens * z.hidden));
    for (uint16_t &v : values) v = uint16_t(0x3f00 | (rng() & 0x80ff)); // around 1, both signs
    const memory x = rank.upload(matrix(z.tokens, z.hidden, dt::bf16), values.data()),
                 counts = rank.upload(vector(z.experts), mine.counts.data()),
                 gather = rank.upload(vector(rows), mine.token_of.data()),
                 y(matrix(rows, z.hidden, dt::bf16), rank.eng),
                 dx(matrix(rows, z.hidden, dt::bf16), rank.eng);

    times_t times(rank, shared);
    const struct {
        const char *name;
        stage st;
        direction dir;
        std::unordered_map<int, memory> args;
    } stages[] = {
            {"dispatch", stage::dispatch, direction::forward,
                    {{MXDNN_ARG_SRC, x}, {MXDNN_ARG_GROUP_COUNTS, counts}, {MXDNN_ARG_GATHER_IDX, gather}}},
            {"permute", stage::permute, direction::forward, {}},
            {"unpermute", stage::unpermute, direction::forward, {}},
            {"combine", stage::combine, direction::forward, {{MXDNN_ARG_DST, y}}},
            {"combine, backward", stage::combine, direction::backward, {{MXDNN_ARG_SRC, y}}},
            {"unpermute, backward", stage::unpermute, direction::backward, {}},
            {"permute, backward", stage::permute, direction::backward, {}},
            {"dispatch, backward", stage::dispatch, direction::backward, {{MXDNN_ARG_DST, dx}}}};
    double all = 0;
    if (first) std::printf("%s\n", type == dt::bf16 ? "bf16" : "MXFP8");
    for (const auto &st : stages) {
        const double t = times.measure(z.passes, [&] { step.execute(st.st, st.dir, rank.s, st.args); });
        all += t;
        if (first) std::printf("  %-22s %9.3f ms\n", st.name, 1e3 * t);
    }
    const double whole = times.measure(z.passes, [&] {
        for (const auto &st : stages) step.execute(st.st, st.dir, rank.s, st.args);
    });
    if (first)
        std::printf("  %-22s %9.3f ms (their sum %.3f)\n", "one after the other", 1e3 * whole, 1e3 * all);

    if (rank.direct) return;
    // NCCL alone: what dispatch sends, and what combine sends, bytes as one message for each pair.
    for (const bool back : {false, true}) {
        const size_t row = back || type == dt::bf16 ? size_t(2 * z.hidden) : size_t(z.hidden + z.hidden / 32);
        bytes_t bytes(size_t(rank.ranks), std::vector<size_t>(size_t(rank.ranks)));
        for (int p = 0; p < rank.ranks; p++)
            for (int q = 0; q < rank.ranks; q++)
                bytes[size_t(p)][size_t(q)] =
                        row * size_t(routes[size_t(back ? q : p)].to_rank[size_t(back ? p : q)]);
        const memory out(memory::desc({dim(row) * (back ? most : rows)}, dt::s8, tag::a), rank.eng),
                in(memory::desc({dim(row) * (back ? rows : most)}, dt::s8, tag::a), rank.eng);
        const double t = times.measure(z.passes, [&] {
            exchange(rank, bytes, static_cast<uint8_t *>(out.get_data_handle()),
                    static_cast<uint8_t *>(in.get_data_handle()));
        });
        const double wire = double(row) * double(back ? arrive - mine.to_rank[size_t(rank.rank)] : leave);
        if (first)
            std::printf("  NCCL alone, %-10s %9.3f ms, %.1f MB leave rank 0: %.1f GB/s\n",
                    back ? "combine" : "dispatch", 1e3 * t, wire / 1e6, wire / t / 1e9);
    }
}

} // namespace

int main(int argc, char **argv) {
    const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
    if (!ep_test::nccl_library_t::get().why_not.empty()) {
        std::printf("MXDNN_SKIP_ALL: %s\n", ep_test::nccl_library_t::get().why_not.c_str());
        return 0;
    }
    const int ranks = argument(1, int(engine::get_count(engine::kind::cuda)));
    const sizes_t z = {
            argument(2, 8192), argument(3, 7168), argument(4, 256), argument(5, 8), argument(6, 10)};
    std::vector<routes_t> routes;
    routes.reserve(size_t(ranks));
    for (int p = 0; p < ranks; p++) routes.push_back(make_routes(z, p, ranks));
    std::vector<double> shared(static_cast<size_t>(ranks));
    std::printf("%d ranks, %lld tokens each, %lld columns, top %lld of %lld experts\n", ranks,
            static_cast<long long>(z.tokens), static_cast<long long>(z.hidden),
            static_cast<long long>(z.topk), static_cast<long long>(z.experts));
    int status = 0;
    for (const ep::transport t : {ep::transport::nccl, ep::transport::nccl_direct}) {
        std::printf("== transport %s\n", t == ep::transport::nccl ? "nccl" : "nccl_direct");
        std::string why;
        if (ep_test::run_on_nccl_ranks(
                    ranks, t, 20000,
                    [&](nccl_rank_t &rank) {
                        for (const dt type : {dt::bf16, dt::f8_e4m3}) measure(rank, z, type, routes, shared);
                    },
                    why))
            continue;
        std::printf("failed: %s\n", why.c_str());
        status = 1;
    }
    return status;
}
