// SPDX-License-Identifier: Apache-2.0
// A whole layer of experts, forward and backward, over NCCL: with rows in bf16 and in MXFP8, and with chunks
// whose exchange runs beside the experts of others.
//
//     measure_layer_cuda [RANKS [TOKENS [HIDDEN [INNER [EXPERTS [TOPK [PASSES]]]]]]]     default: all
//     devices, 8192 7168 2048 256 8 5
//
// An expert is DeepSeek-V3's: two products with swiglu between. Weights are MXFP8 in both; gradients of
// weights are sums of products of bf16. Each rank is a thread with a device of its own. Prints, for each way
// to do it, the median over the passes of the slowest rank's time, the results' checksums, and lines
// `span,WAY,RANK,STREAM,NAME,BEGIN,END` in microseconds of one pass, which scripts/plot-overlap draws.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "ep/expert_kernels.hpp"
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

constexpr direction forward = direction::forward, backward = direction::backward;
constexpr dim alignment = 128;

void check(cudaError_t e) {
    if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }
uint16_t *bf16_of(const memory &m) { return static_cast<uint16_t *>(m.get_data_handle()); }

// Part of a memory.
memory part(const memory &all, const memory::desc &md, size_t at) {
    return memory(md, all.get_engine(), static_cast<uint8_t *>(all.get_data_handle()) + at);
}

// Spans of one pass, in the order in which streams execute them.
class spans_t {
public:
    bool on = false;
    ~spans_t() {
        for (const span_t &s : spans_) cudaEventDestroy(s.begin), cudaEventDestroy(s.end);
        if (zero_) cudaEventDestroy(zero_);
    }
    void start(cudaStream_t s) {
        check(cudaEventCreate(&zero_));
        check(cudaEventRecord(zero_, s));
    }
    template <typename F>
    void run(const std::string &lane, const std::string &name, cudaStream_t s, F &&fn) {
        if (!on) return fn();
        span_t span{lane, name, nullptr, nullptr};
        check(cudaEventCreate(&span.begin));
        check(cudaEventCreate(&span.end));
        check(cudaEventRecord(span.begin, s));
        fn();
        check(cudaEventRecord(span.end, s));
        spans_.push_back(span);
    }
    void print(const std::string &way, int rank) const {
        for (const span_t &s : spans_) {
            float begin = 0, end = 0;
            check(cudaEventElapsedTime(&begin, zero_, s.begin));
            check(cudaEventElapsedTime(&end, zero_, s.end));
            std::printf("span,%s,%d,%s,%s,%.0f,%.0f\n", way.c_str(), rank, s.lane.c_str(), s.name.c_str(),
                    begin * 1e3, end * 1e3);
        }
    }

private:
    struct span_t {
        std::string lane, name;
        cudaEvent_t begin, end;
    };
    std::vector<span_t> spans_;
    cudaEvent_t zero_ = nullptr;
};

// Weights [experts, K, N] of all local experts, packed for both directions, and their gradients.
struct weights_t {
    dim experts, K, N;
    memory packed, turned, gradients;

    weights_t(const engine &eng, const stream &s, dim e, dim k, dim n, uint32_t seed)
        : experts(e), K(k), N(n) {
        const memory::desc plain({e, k, n}, dt::bf16, tag::abc), any({e, k, n}, dt::f8_e4m3, tag::any);
        primitive_attr both;
        both.set_scales(MXDNN_ARG_DST, 7, {1, 32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
        both.set_scales(MXDNN_ARG_DST_1, 7, {1, 1, 32}, dt::e8m0, false, quantization_mode::dynamic_mx);
        for (int arg : {MXDNN_ARG_DST, MXDNN_ARG_DST_1}) both.set_scale_rounding(arg, scale_rounding::rceil);
        const mx_reorder::primitive_desc pd(eng, plain, eng, any, any, both);
        const memory values(plain, eng);
        packed = memory(pd.dst_desc(0), eng);
        turned = memory(pd.dst_desc(1), eng);
        gradients = memory(plain, eng);
        check(fill_values(
                cuda_interop::get_stream(s), bf16_of(values), e * k * n, 1 / std::sqrt(float(k)), seed));
        mx_reorder(pd).execute(
                s, {{MXDNN_ARG_FROM, values}, {MXDNN_ARG_DST, packed}, {MXDNN_ARG_DST_1, turned}});
        stream(s).wait();
    }
};

// The products of the experts of a chunk: Y = X W, dX = dY W^T, dW = X^T dY.
struct products_t {
    grouped_matmul ahead, back;
    grouped_matmul_backward_weights of_weights;
    memory::desc ahead_md, back_md, weights_md;

    products_t(const engine &eng, dim rows, dim likely, const weights_t &w, dim experts) {
        primitive_attr attr, gradient; // copies of one would share what is set
        attr.set_row_grouping(row_grouping::starts);
        attr.set_max_rows_hint(likely);
        attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        gradient.set_row_grouping(row_grouping::starts);
        const memory::desc x = matrix(rows, w.K, dt::bf16), y = matrix(rows, w.N, dt::bf16);
        const grouped_matmul::primitive_desc f(
                eng, x, memory::desc({experts, w.K, w.N}, dt::f8_e4m3, tag::any), y, attr),
                b(eng, y, memory::desc({experts, w.N, w.K}, dt::f8_e4m3, tag::any), x, attr);
        ahead = grouped_matmul(f);
        back = grouped_matmul(b);
        ahead_md = f.weights_desc();
        back_md = b.weights_desc();
        weights_md = memory::desc({experts, w.K, w.N}, dt::bf16, tag::abc);
        of_weights = grouped_matmul_backward_weights({eng, x, y, weights_md, gradient});
    }
};

// One rank's layer, in one way to do it.
struct layer_t {
    const nccl_rank_t &at;
    const sizes_t &z;
    const dim inner, chunks;
    const bool quantised;
    const stream &experts; // its stream
    const weights_t &up, &down;
    dim rows = 0; // with padding
    ep::layer layer;
    ep::step step;
    std::vector<products_t> of; // of a chunk: up, down
    memory x, dy, h, a, da, dh; // rows of experts in bf16; x and dy are those of the step if they are bf16
    spans_t *spans = nullptr;
    cudaEvent_t rows_done = nullptr; // the gradients of rows are there, those of weights follow

    layer_t(const nccl_rank_t &r, const sizes_t &sizes, dim ainner, dim achunks, bool q, dim capacity,
            const stream &st, const weights_t &u, const weights_t &d)
        : at(r), z(sizes), inner(ainner), chunks(achunks), quantised(q), experts(st), up(u), down(d) {
        ep::layer::desc desc(z.hidden, z.experts, z.tokens, z.tokens * z.topk);
        desc.capacity = capacity;
        desc.alignment = alignment;
        desc.chunks = chunks;
        desc.forward_type = desc.backward_type = mxdnn_data_type_t(quantised ? dt::f8_e4m3 : dt::bf16);
        desc.user = this;
        desc.experts_forward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *args) {
            return static_cast<layer_t *>(user)->run(*args, false);
        };
        desc.experts_backward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *args) {
            return static_cast<layer_t *>(user)->run(*args, true);
        };
        layer = ep::layer(at.comm, desc);
        step = ep::step(layer);
        const dim local = z.experts / at.ranks;
        rows = capacity + local * alignment;
        of.emplace_back(at.eng, rows, rows, up, local / chunks);
        of.emplace_back(at.eng, rows, rows, down, local / chunks);
        const auto room = [&](dim columns) { return memory(matrix(rows, columns, dt::bf16), at.eng); };
        if (quantised) x = room(z.hidden), dy = room(z.hidden);
        h = room(2 * inner), a = room(inner), da = room(inner), dh = room(2 * inner);
        check(cudaEventCreateWithFlags(&rows_done, cudaEventDisableTiming));
    }
    ~layer_t() { cudaEventDestroy(rows_done); }

    mxdnn_status_t run(const mxdnn_ep_expert_args_t &args, bool is_backward) {
        try {
            if (is_backward)
                run_backward(args);
            else
                run_forward(args);
        } catch (const std::exception &e) {
            std::printf("rank %d: %s\n", at.rank, e.what());
            return mxdnn_runtime_error;
        }
        return mxdnn_success;
    }

    template <typename F>
    void span(const char *name, const mxdnn_ep_expert_args_t &args, F &&fn) {
        spans->run("experts", name + (" " + std::to_string(args.first_expert / args.experts)),
                cuda_interop::get_stream(experts), fn);
    }
    row_range_t range(const mxdnn_ep_expert_args_t &args) const {
        const int32_t *starts =
                static_cast<const int32_t *>(memory(args.group_starts, true).get_data_handle());
        return {starts, starts + args.experts};
    }
    // Rows of experts in bf16.
    memory read(const char *name, const mxdnn_ep_expert_args_t &args, mxdnn_memory_t src,
            mxdnn_memory_t scales, const memory &room) {
        if (!quantised) return memory(src, true);
        span(name, args, [&] {
            check(dequantise_rows(cuda_interop::get_stream(experts), range(args), z.hidden,
                    static_cast<uint8_t *>(memory(src, true).get_data_handle()),
                    static_cast<uint8_t *>(memory(scales, true).get_data_handle()), bf16_of(room)));
        });
        return room;
    }
    void multiply(const char *name, const grouped_matmul &m, const memory::desc &md, const memory &packed,
            const mxdnn_ep_expert_args_t &args, const memory &src, const memory &dst) {
        const size_t each = packed.get_desc().get_size() / size_t(up.experts);
        span(name, args, [&] {
            m.execute(
                    experts, {{MXDNN_ARG_SRC, src},
                                     {MXDNN_ARG_WEIGHTS, part(packed, md, size_t(args.first_expert) * each)},
                                     {MXDNN_ARG_GROUP_OFFSETS, memory(args.group_starts, true)},
                                     {MXDNN_ARG_DST, dst}});
        });
    }
    void gradient(const char *name, const products_t &p, const weights_t &w,
            const mxdnn_ep_expert_args_t &args, const memory &src, const memory &diff) {
        span(name, args, [&] {
            p.of_weights.execute(experts,
                    {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_DIFF_DST, diff},
                            {MXDNN_ARG_GROUP_OFFSETS, memory(args.group_starts, true)},
                            {MXDNN_ARG_DIFF_WEIGHTS, part(w.gradients, p.weights_md,
                                                             size_t(args.first_expert * w.K * w.N) * 2)}});
        });
    }

    void run_forward(const mxdnn_ep_expert_args_t &args) {
        const memory rows_in = read("decode", args, args.src, args.src_scales, x);
        multiply("gate_up", of[0].ahead, of[0].ahead_md, up.packed, args, rows_in, h);
        span("activation", args, [&] {
            check(swiglu(cuda_interop::get_stream(experts), range(args), inner, bf16_of(h), bf16_of(a)));
        });
        multiply("down", of[1].ahead, of[1].ahead_md, down.packed, args, a, memory(args.dst, true));
    }
    void run_backward(const mxdnn_ep_expert_args_t &args) {
        const memory d = read("decode", args, args.diff_dst, args.diff_dst_scales, dy);
        multiply("down rows", of[1].back, of[1].back_md, down.turned, args, d, da);
        span("activation", args, [&] {
            check(swiglu_backward(cuda_interop::get_stream(experts), range(args), inner, bf16_of(h),
                    bf16_of(da), bf16_of(dh)));
        });
        multiply("gate_up rows", of[0].back, of[0].back_md, up.turned, args, dh, memory(args.diff_src, true));
        check(cudaEventRecord(rows_done, cuda_interop::get_stream(experts)));
        gradient("down weights", of[1], down, args, a, d);
        gradient("gate_up weights", of[0], up, args, quantised ? x : memory(args.src, true), dh);
    }

    void exchange(stage st, direction dir, dim chunk, const std::unordered_map<int, memory> &args) {
        const std::string name = std::string(st == stage::dispatch ? "dispatch" : "combine")
                                 + (dir == backward ? " back " : " ") + std::to_string(chunk);
        spans->run("exchange", name, cuda_interop::get_stream(at.s),
                [&] { step.execute_chunk(st, dir, chunk, at.s, args); });
    }
    void local(stage st, direction dir, dim chunk) {
        const bool spans_apart = st != stage::experts;
        const auto fn = [&] { step.execute_chunk(st, dir, chunk, experts); };
        if (spans_apart)
            spans->run("experts",
                    std::string(st == stage::permute ? "permute" : "unpermute")
                            + (dir == backward ? " back" : "") + " " + std::to_string(chunk),
                    cuda_interop::get_stream(experts), fn);
        else
            fn();
    }

    // A pass in two directions, in the streams of the exchange and of the experts.
    void pass(const std::unordered_map<int, memory> &tokens, const memory &y, const memory &dy_rows,
            const memory &dx) {
        const cudaStream_t exchanges = cuda_interop::get_stream(at.s),
                           computes = cuda_interop::get_stream(experts);
        const bool apart = exchanges != computes;
        std::vector<cudaEvent_t> &sent = events_;
        while (dim(sent.size()) < chunks + 1) {
            sent.push_back(nullptr);
            check(cudaEventCreateWithFlags(&sent.back(), cudaEventDisableTiming));
        }
        const auto half = [&](direction dir, const std::unordered_map<int, memory> &first,
                                  const std::unordered_map<int, memory> &last) {
            const bool ahead = dir == forward;
            for (dim k = 0; k < chunks; k++) {
                exchange(ahead ? stage::dispatch : stage::combine, dir, k, first);
                check(cudaEventRecord(sent[size_t(k)], exchanges));
            }
            for (dim k = 0; k < chunks; k++) {
                if (apart) check(cudaStreamWaitEvent(computes, sent[size_t(k)], 0));
                local(ahead ? stage::permute : stage::unpermute, dir, k);
                local(stage::experts, dir, k);
                if (!ahead && apart) check(cudaStreamWaitEvent(exchanges, rows_done, 0));
                local(ahead ? stage::unpermute : stage::permute, dir, k);
                if (ahead && apart) {
                    check(cudaEventRecord(sent.back(), computes));
                    check(cudaStreamWaitEvent(exchanges, sent.back(), 0));
                }
                exchange(ahead ? stage::combine : stage::dispatch, dir, k, last);
            }
        };
        half(forward, tokens, {{MXDNN_ARG_DST, y}});
        half(backward, {{MXDNN_ARG_SRC, dy_rows}}, {{MXDNN_ARG_DST, dx}});
        if (apart) { // the pass ends with the gradients of weights
            check(cudaEventRecord(sent.back(), computes));
            check(cudaStreamWaitEvent(exchanges, sent.back(), 0));
        }
    }

private:
    std::vector<cudaEvent_t> events_;
};

struct shared_t {
    std::vector<double> seconds;
    std::vector<routes_t> routes;
};

unsigned long long checksum(const nccl_rank_t &rank, const memory &m, const memory &sum) {
    const cudaStream_t s = cuda_interop::get_stream(rank.s);
    check(cudaMemsetAsync(sum.get_data_handle(), 0, 8, s));
    check(add_checksum(s, bf16_of(m), dim(m.get_desc().get_size() / 2),
            static_cast<unsigned long long *>(sum.get_data_handle())));
    unsigned long long value = 0;
    std::memcpy(&value, rank.download(sum).data(), 8);
    return value;
}
double decibels(const nccl_rank_t &rank, const memory &x, const memory &y, const memory &sums) {
    const cudaStream_t s = cuda_interop::get_stream(rank.s);
    check(cudaMemsetAsync(sums.get_data_handle(), 0, 16, s));
    check(add_squares(s, bf16_of(x), bf16_of(y), dim(x.get_desc().get_size() / 2),
            static_cast<double *>(sums.get_data_handle())));
    double v[2];
    std::memcpy(v, rank.download(sums).data(), 16);
    return 10 * std::log10(v[0] / v[1]);
}

void measure(nccl_rank_t &rank, const sizes_t &z, dim inner, shared_t &shared) {
    check(cudaSetDevice(rank.rank));
    const routes_t &mine = shared.routes[size_t(rank.rank)];
    const dim rows = z.tokens * z.topk, local = z.experts / rank.ranks,
              capacity = most_arrivals(shared.routes);
    const weights_t up(rank.eng, rank.s, local, z.hidden, 2 * inner, 10 + uint32_t(rank.rank)),
            down(rank.eng, rank.s, local, inner, z.hidden, 20 + uint32_t(rank.rank));
    const auto filled = [&](dim n, uint32_t seed) {
        const memory m(matrix(n, z.hidden, dt::bf16), rank.eng);
        check(fill_values(cuda_interop::get_stream(rank.s), bf16_of(m), n * z.hidden, 1.f, seed));
        return m;
    };
    const memory dy = filled(rows, 200 + uint32_t(rank.rank)), y(dy.get_desc(), rank.eng),
                 dx(dy.get_desc(), rank.eng), plain_y(dy.get_desc(), rank.eng),
                 plain_dx(dy.get_desc(), rank.eng), sums(memory::desc({16}, dt::s8, tag::a), rank.eng);
    const std::unordered_map<int, memory> tokens = {
            {MXDNN_ARG_SRC, filled(z.tokens, 100 + uint32_t(rank.rank))},
            {MXDNN_ARG_GROUP_COUNTS, rank.upload({{z.experts}, dt::s32, tag::a}, mine.counts.data())},
            {MXDNN_ARG_GATHER_IDX, rank.upload({{rows}, dt::s32, tag::a}, mine.token_of.data())}};
    const stream experts(rank.eng);
    for (const bool quantised : {false, true}) {
        unsigned long long one_chunk = 0;
        for (const dim chunks : {0, 1, 2, 4, 8}) { // 0: one, with everything in one stream
            if (chunks > 0 && local % chunks != 0) continue;
            // Over nccl, the gradients of rows are not ready before permute has moved them.
            if (chunks > 0 && !rank.direct) continue;
            const std::string way = std::string(quantised ? "MXFP8 " : "bf16 ")
                                    + (rank.direct ? "nccl_direct " : "nccl ") + std::to_string(chunks);
            layer_t l(rank, z, inner, std::max<dim>(chunks, 1), quantised, capacity,
                    chunks ? experts : rank.s, up, down);
            spans_t off;
            l.spans = &off;
            std::vector<double> slowest;
            for (int i = 0; i < z.passes + 2; i++) {
                rank.s.wait();
                rank.meeting->wait();
                const auto begin = std::chrono::steady_clock::now();
                l.pass(tokens, y, dy, dx);
                rank.s.wait();
                shared.seconds[size_t(rank.rank)] =
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                rank.meeting->wait();
                if (i >= 2)
                    slowest.push_back(*std::max_element(shared.seconds.begin(), shared.seconds.end()));
                rank.meeting->wait();
            }
            rank.comm.wait(rank.s);
            std::sort(slowest.begin(), slowest.end());
            const unsigned long long sum = checksum(rank, y, sums) * 3 + checksum(rank, dx, sums) * 5
                                           + checksum(rank, up.gradients, sums) * 7
                                           + checksum(rank, down.gradients, sums) * 11;
            if (chunks == 0) one_chunk = sum;
            if (!quantised && chunks == 0) {
                cuda_interop::copy(
                        rank.s, plain_y.get_data_handle(), y.get_data_handle(), y.get_desc().get_size());
                cuda_interop::copy(
                        rank.s, plain_dx.get_data_handle(), dx.get_data_handle(), y.get_desc().get_size());
            }
            const double db = decibels(rank, plain_y, y, sums), dx_db = decibels(rank, plain_dx, dx, sums);
            if (rank.rank == 0)
                std::printf("layer,%s,%d,%.3f,%.3f,%s,%.1f,%.1f\n", way.c_str(), rank.ranks,
                        1e3 * slowest[slowest.size() / 2], 1e3 * slowest[0],
                        sum == one_chunk ? "same bits" : "OTHER BITS", db, dx_db);
            else if (sum != one_chunk)
                std::printf("rank %d: OTHER BITS\n", rank.rank);
            {
                spans_t spans;
                spans.on = true;
                l.spans = &spans;
                rank.s.wait();
                rank.meeting->wait();
                spans.start(cuda_interop::get_stream(rank.s));
                l.pass(tokens, y, dy, dx);
                rank.comm.wait(rank.s);
                if (rank.rank == 0) spans.print(way, rank.rank);
                rank.meeting->wait();
            }
            std::fflush(stdout);
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
    if (!nccl_library_t::get().why_not.empty()) {
        std::printf("MXDNN_SKIP_ALL: %s\n", nccl_library_t::get().why_not.c_str());
        return 0;
    }
    const int ranks = argument(1, int(engine::get_count(engine::kind::cuda)));
    const sizes_t z = {
            argument(2, 8192), argument(3, 7168), argument(5, 256), argument(6, 8), argument(7, 5)};
    const dim inner = argument(4, 2048);
    shared_t shared;
    shared.seconds.resize(size_t(ranks));
    for (int p = 0; p < ranks; p++) shared.routes.push_back(make_routes(z, p, ranks));
    int status = 0;
    for (const ep::transport t : {ep::transport::nccl_direct, ep::transport::nccl}) {
        std::string why;
        if (run_on_nccl_ranks(
                    ranks, t, 20000, [&](nccl_rank_t &rank) { measure(rank, z, inner, shared); }, why))
            continue;
        std::printf("failed: %s\n", why.c_str());
        status = 1;
    }
    return status;
}
