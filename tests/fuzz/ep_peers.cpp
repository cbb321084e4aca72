// SPDX-License-Identifier: Apache-2.0
// Compiled with libmxdnn_ep's sources, in the place of its list of transports.
#include "fuzz/ep_peers.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ep/direct.hpp"
#include "ep/host_transport.hpp"
#include "fuzz/fuzz.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

using fuzz::peers_t;

// bf16 rows of whole numbers, or any codes.
void draw_rows(uint64_t &state, uint8_t *rows, size_t bytes, mxdnn_data_type_t type) {
    for (size_t i = 0; i < bytes; i++) {
        state = state * 0x5851f42d4c957f2d + 1;
        rows[i] = uint8_t(state >> 56);
        // 2 to 128, of either sign, with 7 bits of mantissa
        if (type == mxdnn_bf16 && i % 2) rows[i] = uint8_t(0x40 | (rows[i] & 0x82));
    }
}

// What kernels would do with the memory of this rank; that of the others is made up.
class direct_peers_t : public direct_t {
public:
    explicit direct_peers_t(peers_t &peers) : peers_(peers) {}

    std::unique_ptr<shared_memory_t> allocate(size_t bytes) override {
        struct memory_t : shared_memory_t {
            explicit memory_t(size_t bytes) : bytes_(bytes + 64) {
                data_ = bytes_.data() + (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64) % 64;
            }
            std::vector<uint8_t> bytes_;
        };
        return std::make_unique<memory_t>(bytes);
    }

    status_t route(const shared_memory_t &shared, size_t matrix, const groups_t &g, const int32_t *counts,
            dim_t rows, mxdnn_stream_t) override {
        fuzz::choices_t &c = peers_.c;
        const dim_t ranks = peers_.ranks, local = g.local_experts, experts = ranks * local;
        std::memset(shared.data() + matrix, 1, size_t(ranks * (experts + 1)) * sizeof(int32_t));
        FUZZ_CHECK(counts || rows == 0);
        const bool refused = !counts || (!peers_.quiet && c.one_in(20));
        dim_t room = std::min(g.capacity, peers_.capacity), sum = 0;
        for (dim_t i = 0; i < experts; i++) {
            const bool own = i / local == peers_.rank;
            g.received[i] = refused ? 0 : own ? counts[i] : int32_t(c.below(std::min<dim_t>(room, 9) + 1));
            if (!own) room -= g.received[i];
            sum += g.received[i];
        }
        const bool none = refused || sum > g.capacity;
        peers_.refused = peers_.refused || none;
        dim_t first = 0, start = 0;
        for (dim_t e = 0; e < experts; e++) {
            g.first[e] = int32_t(first);
            first += none ? 0 : counts[e];
        }
        FUZZ_CHECK(none || first == rows);
        g.first[experts] = int32_t(first);
        for (dim_t e = 0; e < local; e++) {
            g.starts[e] = int32_t(start);
            dim_t in_group = 0;
            for (dim_t p = 0; p < ranks; p++) {
                if (none) g.received[p * local + e] = 0;
                if (p == peers_.rank) g.target[p * local + e] = int32_t(start + in_group);
                in_group += g.received[p * local + e];
            }
            start += std::max<dim_t>((in_group + g.alignment - 1) / g.alignment, 1) * g.alignment;
        }
        g.starts[local] = int32_t(start);
        return mxdnn_success;
    }

    status_t push(const shared_rows_t &to, const groups_t &g, const row_format_t &f, const array_t &src,
            const int32_t *indices, dim_t rows, dim_t src_rows, mxdnn_stream_t) override {
        uint8_t *const codes = to.memory->data() + to.codes, *const scales = to.memory->data() + to.scales;
        const size_t begin = size_t(g.starts[g.begin]), n = size_t(g.starts[g.end]) - begin;
        draw_rows(state_, codes + begin * f.codes, n * f.codes, f.type);
        draw_rows(state_, scales + begin * f.scales, n * f.scales, f.type);
        if (g.begin == 0 || peers_.sent.size() != size_t(rows)) peers_.sent.assign(size_t(rows), {});
        for_each_row(g, rows, [&](dim_t row, dim_t at) {
            const dim_t index = indices ? indices[row] : row;
            FUZZ_CHECK(index >= 0 && index < src_rows);
            const uint8_t *from = src.codes + size_t(index) * f.codes;
            peers_.sent[size_t(row)].assign(from, from + f.codes);
            if (f.quantised()) FUZZ_CHECK(src.scales[size_t(index) * f.scales + f.scales - 1] <= 255);
            if (at >= 0) std::memcpy(codes + size_t(at) * f.codes, from, f.codes);
        });
        return mxdnn_success;
    }

    status_t pull(const shared_rows_t &from, const groups_t &g, const row_format_t &f, uint8_t *dst,
            dim_t rows, mxdnn_stream_t) override {
        for_each_row(g, rows, [&](dim_t row, dim_t at) {
            uint8_t *const to = dst + size_t(row) * f.codes;
            const bool known = peers_.returns && peers_.returns->size() == size_t(rows)
                               && (*peers_.returns)[size_t(row)].size() == f.codes;
            if (at >= 0)
                std::memcpy(to, from.memory->data() + from.codes + size_t(at) * f.codes, f.codes);
            else if (known)
                std::memcpy(to, (*peers_.returns)[size_t(row)].data(), f.codes);
            else
                draw_rows(state_, to, f.codes, f.type);
        });
        return mxdnn_success;
    }

private:
    // Those of the chunk's experts: the row, and where it is in the groups of this rank; else -1.
    template <typename F>
    void for_each_row(const groups_t &g, dim_t rows, const F &fn) const {
        for (dim_t e = 0; rows > 0 && e < peers_.ranks * g.local_experts; e++) {
            if (e % g.local_experts < g.begin || e % g.local_experts >= g.end) continue;
            for (dim_t row = g.first[e]; row < g.first[e + 1]; row++) {
                FUZZ_CHECK(row < rows);
                fn(row, e / g.local_experts == peers_.rank ? g.target[e] + row - g.first[e] : -1);
            }
        }
    }

    peers_t &peers_;
    uint64_t state_ = 1;
};

class peers_transport_t : public host_transport_t {
public:
    peers_transport_t(peers_t &peers, std::chrono::milliseconds timeout) : peers_(peers), direct_(peers) {
        rank_ = peers.rank;
        size_ = peers.ranks;
        timeout_ = timeout;
    }

    bool in_stream_order() const override { return peers_.in_stream_order; }
    direct_t *direct() override { return peers_.direct ? &direct_ : nullptr; }

    status_t agree(verdict_t &verdict, mxdnn_stream_t, time_point_t) override {
        MXDNN_EP_CHECK(check_alive());
        if (in_stream_order()) take_deferred(verdict);
        fuzz::choices_t &c = peers_.c;
        for (int p = 0; p < size_; p++) {
            if (p == rank_) continue;
            verdict_t of_peer = make_verdict(
                    mxdnn_success, p, question_t(verdict.question), verdict.values, verdict_t::max_values);
            if (!peers_.quiet && c.one_in(100)) {
                switch (c.below(3)) {
                case 0:
                    of_peer.status = c.of({mxdnn_invalid_arguments, mxdnn_out_of_memory});
                    std::memset(of_peer.text, 'x', sizeof(of_peer.text)); // without an end
                    break;
                case 1: of_peer.values[c.below(verdict_t::max_values)] += c.of({1, -1, INT32_MAX}); break;
                default: of_peer.question = c.below(4);
                }
            }
            if (of_peer.status != mxdnn_success || of_peer.question != verdict.question
                    || std::memcmp(of_peer.values, verdict.values, sizeof(verdict.values)) != 0)
                peers_.refused = true;
            merge(of_peer, verdict);
        }
        return mxdnn_success;
    }

    status_t agree_on_routing(
            routing_t &r, verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) override {
        MXDNN_EP_CHECK(agree(verdict, stream, deadline));
        if (verdict.status != mxdnn_success) return mxdnn_success;
        fuzz::choices_t &c = peers_.c;
        const size_t local = size_t(r.local_experts), all = local * size_t(size_);
        std::memcpy(r.outgoing, r.counts, all * sizeof(int32_t));
        const bool many = !peers_.quiet && c.one_in(50);
        dim_t room = many ? INT32_MAX : peers_.capacity;
        for (size_t e = 0; e < local; e++) room -= r.outgoing[size_t(rank_) * local + e];
        for (size_t i = 0; i < all; i++) {
            const bool own = i / local == size_t(rank_);
            const dim_t most = room < 0 ? 0 : many ? room : std::min<dim_t>(room, 12);
            r.incoming[i] = own ? r.outgoing[i] : int32_t(c.below(most + 1));
            if (!own) room -= r.incoming[i];
        }
        const dim_t rows = std::accumulate(r.incoming, r.incoming + all, dim_t(0));
        if (rows > r.capacity) {
            verdict = make_verdict(refuse_rows(rows, r.capacity), rank_, question_t::counts, nullptr, 0);
            peers_.refused = true;
            return mxdnn_success;
        }
        std::memcpy(r.received, r.incoming, all * sizeof(int32_t));
        for (int p = 0; p < size_; p++) {
            r.sent[p] = r.arrived[p] = 0;
            for (size_t e = 0; e < local; e++) {
                r.sent[p] += r.outgoing[size_t(p) * local + e];
                r.arrived[p] += r.incoming[size_t(p) * local + e];
            }
        }
        return mxdnn_success;
    }

    status_t exchange_rows(const row_format_t &f, const array_t &send, const array_t &recv,
            const splits_t &splits, mxdnn_stream_t, time_point_t) override {
        MXDNN_EP_CHECK(check_alive());
        peers_.sent.resize(size_t(size_));
        peers_.arrived.resize(size_t(size_));
        const uint8_t *codes = send.codes, *scales = send.scales;
        for (int p = 0; p < size_; p++) {
            std::vector<uint8_t> &rows = peers_.sent[size_t(p)];
            rows.clear();
            take(codes, size_t(splits.send[p]) * f.codes, rows);
            take(scales, size_t(splits.send[p]) * f.scales, rows);
        }
        uint8_t *to = recv.codes, *to_scales = recv.scales;
        for (int p = 0; p < size_; p++) {
            const size_t n = size_t(splits.recv[p]), bytes = n * (f.codes + f.scales);
            std::vector<uint8_t> &rows = peers_.arrived[size_t(p)];
            if (p == rank_)
                rows = peers_.sent[size_t(p)];
            else if (peers_.returns && !peers_.returns->empty()
                     && (*peers_.returns)[size_t(p)].size() == bytes)
                rows = (*peers_.returns)[size_t(p)];
            else
                rows.resize(bytes), draw_rows(state_, rows.data(), bytes, f.type);
            FUZZ_CHECK(rows.size() == bytes);
            put(to, rows.data(), n * f.codes);
            put(to_scales, rows.data() + n * f.codes, n * f.scales);
        }
        return mxdnn_success;
    }

    void prepare(const row_format_t &) override {}
    bool is_busy() const override { return peers_.has_failed; }

    status_t gather(const row_format_t &f, const array_t &dst, const array_t &src, const int32_t *indices,
            dim_t rows, dim_t src_rows, mxdnn_stream_t stream) override {
        for (dim_t r = 0; r < rows; r++) FUZZ_CHECK(indices[r] >= 0 && indices[r] < src_rows);
        return host_transport_t::gather(f, dst, src, indices, rows, src_rows, stream);
    }

private:
    status_t check_alive() {
        if (!peers_.quiet && peers_.c.one_in(400)) peers_.has_failed = true;
        return peers_.has_failed ? fail(mxdnn_runtime_error, "the other ranks do not answer") : mxdnn_success;
    }
    static void take(const uint8_t *&from, size_t bytes, std::vector<uint8_t> &rows) {
        if (bytes > 0) rows.insert(rows.end(), from, from + bytes);
        from += bytes;
    }
    static void put(uint8_t *&to, const uint8_t *from, size_t bytes) {
        if (bytes > 0) std::memcpy(to, from, bytes);
        to += bytes;
    }
    peers_t &peers_;
    direct_peers_t direct_;
    uint64_t state_ = 1;
};

std::shared_ptr<transport_t> create_peers(
        const engine &, const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    if (size != sizeof(peers_t *)) throw mxdnn::error(mxdnn_invalid_arguments, "not a peers_t *");
    peers_t *peers = nullptr;
    std::memcpy(&peers, communicator, size);
    return std::make_shared<peers_transport_t>(*peers, timeout);
}

} // namespace

const transport_info_t transports[] = {
        {fuzz::over_peers, "a fuzzer", mxdnn_cpu, create_peers},
        {mxdnn_ep_nccl, "nothing", mxdnn_cuda, nullptr},
        {},
};

} // namespace impl
} // namespace ep
} // namespace mxdnn
