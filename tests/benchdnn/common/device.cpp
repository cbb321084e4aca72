// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/device.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "benchdnn/common/settings.hpp"
#include "common/engine.hpp"
#include "mxdnn/mxdnn_cuda.hpp"

namespace bench {

bool is_device(const mxdnn::engine &e) { return e.get()->device != nullptr; }

mxdnn::engine host_engine(const mxdnn::engine &e) {
    return is_device(e) ? mxdnn::engine::for_target(e.get_target()) : e;
}

mxdnn::memory on_device(const mxdnn::engine &e, const mxdnn::memory &host) {
    mxdnn::memory m(host.get_desc(), e);
    auto *p = m.map_data<uint8_t>();
    std::memcpy(p, host.get_data_handle(), host.get_desc().get_size());
    m.unmap_data(p);
    return m;
}

args_t on_device(const mxdnn::engine &e, const args_t &args) {
    args_t there;
    for (const auto &a : args) there[a.first] = on_device(e, a.second);
    return there;
}

mxdnn::memory bytes_on_device(const mxdnn::engine &e, const void *bytes, size_t size) {
    const mxdnn::memory::desc md({int64_t(size)}, mxdnn::memory::data_type::u8, mxdnn::memory::format_tag::a);
    return on_device(e, mxdnn::memory(md, host_engine(e), const_cast<void *>(bytes)));
}

namespace {

// Device memory by its size, for one execution after the other, since allocating takes longer than executing.
// It has exactly that size, so that compute-sanitizer sees every access beyond it.
class blocks_t {
public:
    explicit blocks_t(const mxdnn::engine &e) : engine_(e) {}
    mxdnn::memory take(const mxdnn::memory::desc &md) {
        const size_t bytes = md.get_size();
        std::vector<mxdnn::memory> &spare = spare_[bytes];
        if (spare.empty()) {
            taken_.push_back(allocate(bytes));
        } else {
            taken_.push_back(spare.back());
            spare.pop_back();
        }
        return mxdnn::memory(md, engine_, taken_.back().get_data_handle());
    }
    void give_back() {
        if (allocated_ > most_bytes) {
            spare_.clear();
            allocated_ = 0;
        } else {
            for (const mxdnn::memory &m : taken_) spare_[m.get_desc().get_size()].push_back(m);
        }
        taken_.clear();
    }

private:
    static constexpr size_t most_bytes = 256 << 20;
    mxdnn::engine engine_;
    std::map<size_t, std::vector<mxdnn::memory>> spare_;
    std::vector<mxdnn::memory> taken_;
    size_t allocated_ = 0;

    mxdnn::memory allocate(size_t bytes) {
        allocated_ += bytes;
        return mxdnn::memory(mxdnn::memory::desc({int64_t(bytes)}, mxdnn::memory::data_type::u8,
                                     mxdnn::memory::format_tag::a),
                engine_);
    }
};

} // namespace

void execute(const mxdnn::primitive &p, const mxdnn::stream &s, const args_t &args, const args_t &given) {
    mxdnn::stream stream = s;
    const mxdnn::engine e = s.get_engine();
    if (!is_device(e)) {
        p.execute(stream, args);
        return;
    }
    static auto &blocks_of = *new std::map<std::string, blocks_t>; // the runtime may end before statics do
    blocks_t &blocks = blocks_of.emplace(settings.engine, e).first->second;
    args_t there = given;
    for (const auto &a : args) {
        if (there.count(a.first)) continue;
        const mxdnn::memory m = blocks.take(a.second.get_desc());
        mxdnn::cuda_interop::copy(
                stream, m.get_data_handle(), a.second.get_data_handle(), m.get_desc().get_size());
        there[a.first] = m;
    }
    p.execute(stream, there);
    for (const auto &a : args)
        if (!given.count(a.first))
            mxdnn::cuda_interop::copy(stream, a.second.get_data_handle(), there.at(a.first).get_data_handle(),
                    a.second.get_desc().get_size());
    stream.wait();
    blocks.give_back();
}

int graph_nodes(const perf_t &p) {
    constexpr double graph_ms = 4;
    return int(std::clamp(graph_ms / std::max(least_ms(p), 1e-6), 20., 400.));
}

void time_execution(
        const mxdnn::primitive &p, const mxdnn::stream &s, const args_t &args, double budget_ms, perf_t &r) {
    if (!is_device(s.get_engine())) {
        const auto once = [&] { p.execute(s, args); };
        constexpr double least_far = 16e6; // fewer bytes are in a cache where they are used, too
        if (r.bytes < least_far)
            return time_interleaved(once, nullptr, r.threads, budget_ms, r.times, r.peer_times);
        return time_beside_copies(once, r.bytes, r.threads, budget_ms, r.times, r.copy_times);
    }
    const args_t there = on_device(s.get_engine(), args);
    r.limits = &device_ceilings();
    time_graphs(s, nodes_t(size_t(graph_nodes(r)), [&] { p.execute(s, there); }), {}, budget_ms, r.times,
            r.peer_times);
}

} // namespace bench
