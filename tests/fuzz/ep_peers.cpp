// SPDX-License-Identifier: Apache-2.0
// Compiled with libmxdnn_ep's sources, in the place of its list of transports.
#include "fuzz/ep_peers.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ep/transport.hpp"
#include "fuzz/fuzz.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

using fuzz::peers_t;

class peers_transport_t : public transport_t {
public:
    peers_transport_t(peers_t &peers, std::chrono::milliseconds timeout) : peers_(peers) {
        rank_ = peers.rank;
        size_ = peers.ranks;
        timeout_ = timeout;
    }

    bool in_stream_order() const override { return peers_.in_stream_order; }

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
                draw(rows, bytes, f);
            FUZZ_CHECK(rows.size() == bytes);
            put(to, rows.data(), n * f.codes);
            put(to_scales, rows.data() + n * f.codes, n * f.scales);
        }
        return mxdnn_success;
    }

    void prepare(const row_format_t &) override {}
    bool is_busy() const override { return peers_.has_failed; }

    status_t copy(void *dst, const void *src, size_t bytes, mxdnn_stream_t) override {
        if (bytes > 0) std::memcpy(dst, src, bytes);
        return mxdnn_success;
    }
    status_t clear(void *dst, size_t bytes, mxdnn_stream_t) override {
        std::memset(dst, 0, bytes);
        return mxdnn_success;
    }
    status_t gather(const row_format_t &f, const array_t &dst, const array_t &src, const int32_t *indices,
            dim_t rows, dim_t src_rows, mxdnn_stream_t) override {
        for (dim_t r = 0; r < rows; r++) {
            int32_t index;
            std::memcpy(&index, indices + r, sizeof(index));
            FUZZ_CHECK(index >= 0 && index < src_rows);
            std::memcpy(dst.codes + size_t(r) * f.codes, src.codes + size_t(index) * f.codes, f.codes);
            if (f.quantised())
                std::memcpy(
                        dst.scales + size_t(r) * f.scales, src.scales + size_t(index) * f.scales, f.scales);
        }
        return mxdnn_success;
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
    // bf16 rows of whole numbers, or any codes.
    void draw(std::vector<uint8_t> &rows, size_t bytes, const row_format_t &f) {
        rows.resize(bytes);
        for (size_t i = 0; i < bytes; i++) {
            next_ = next_ * 0x5851f42d4c957f2d + 1;
            rows[i] = uint8_t(next_ >> 56);
            // 2 to 128, of either sign, with 7 bits of mantissa
            if (f.type == mxdnn_bf16) rows[i] = i % 2 ? uint8_t(0x40 | (rows[i] & 0x82)) : uint8_t(rows[i]);
        }
    }

    peers_t &peers_;
    uint64_t next_ = 1;
};

std::shared_ptr<transport_t> create_peers(
        const engine &, const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    if (size != sizeof(peers_t *)) throw mxdnn::error(mxdnn_invalid_arguments, "not a peers_t *");
    peers_t *peers = nullptr;
    std::memcpy(&peers, communicator, size);
    return std::make_shared<peers_transport_t>(*peers, timeout);
}

constexpr transport_info_t transports[] = {{fuzz::over_peers, "a fuzzer", mxdnn_cpu, create_peers},
        {mxdnn_ep_nccl, "nothing", mxdnn_cuda, nullptr}};

} // namespace

const transport_info_t *find_transport(mxdnn_ep_transport_t id) {
    for (const transport_info_t &t : transports)
        if (t.id == id) return &t;
    return nullptr;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
