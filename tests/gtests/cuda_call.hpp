// SPDX-License-Identifier: Apache-2.0
// Runs one primitive on two engines with the same bytes, and compares every output byte.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "common/formats/quantize_block.hpp"
#include "common/primitive_desc.hpp"
#include "mxdnn/mxdnn_cuda.hpp"

namespace cuda_test {

using mxdnn::memory;
using dt = memory::data_type;
using tag = memory::format_tag;
using bytes_t = std::vector<uint8_t>;
using values_t = std::map<int, bytes_t>; // by execution argument
using shapes_t = std::map<int, memory::desc>;

// Random choices; the same seed gives the same choices.
struct dice_t {
    std::mt19937 rng;
    explicit dice_t(unsigned seed) : rng(seed) {}
    int below(int n) { return int(rng() % unsigned(n)); }
    bool coin() { return below(2) == 1; }
    template <typename T, size_t n>
    const T &one_of(const T (&list)[n]) {
        return list[below(int(n))];
    }
    template <typename T>
    const T &one_of(const std::vector<T> &list) {
        return list[size_t(below(int(list.size())))];
    }
    // Small numbers that are exact in every type.
    float small() { return float(below(129) - 64) / 16; }
};

inline mxdnn::engine gpu(size_t index = 0) { return mxdnn::engine(mxdnn::engine::kind::cuda, index); }
inline mxdnn::engine cpu() { return mxdnn::engine(mxdnn::engine::kind::cpu, 0); }

inline memory::desc desc_of(const mxdnn::impl::memory_desc_t &md) {
    return memory::desc(new mxdnn::impl::memory_desc_t(md));
}

inline const std::vector<mxdnn::impl::arg_desc_t> &args_of(const mxdnn::primitive_desc_base &pd) {
    return pd.get()->pd->args;
}

// Advances to the implementation of that name. Returns false if there is none.
inline bool go_to(mxdnn::primitive_desc_base &pd, const std::string &name) {
    while (pd.impl_info_str() != name)
        if (!pd.next_impl()) return false;
    return true;
}

// Device or host memory that holds `bytes`.
inline memory make_memory(const memory::desc &md, const mxdnn::engine &e, const bytes_t &bytes) {
    memory m(md, e);
    if (e.get()->device) {
        // Written without being read, so that initcheck knows which bytes an execution did not write.
        mxdnn::stream s(e);
        mxdnn::cuda_interop::copy(s, m.get_data_handle(), bytes.data(), bytes.size());
        s.wait();
        return m;
    }
    auto *p = m.map_data<uint8_t>();
    std::memcpy(p, bytes.data(), bytes.size());
    m.unmap_data(p);
    return m;
}
inline bytes_t read_memory(const memory &m) {
    bytes_t bytes(m.get_desc().get_size());
    auto *p = m.map_data<uint8_t>();
    std::memcpy(bytes.data(), p, bytes.size());
    m.unmap_data(p);
    return bytes;
}

// Arguments on an engine: bytes from `in`, poison for all others.
struct call_t {
    std::unordered_map<int, memory> args;
    std::vector<int> outputs;

    // `shapes`: of arguments whose descriptor leaves dims open; those that are not in it are not passed.
    call_t(const mxdnn::primitive_desc_base &pd, const mxdnn::engine &e, const values_t &in,
            const shapes_t &shapes = {}) {
        for (const auto &a : args_of(pd)) {
            const auto shape = shapes.find(a.arg);
            const memory::desc md = shape == shapes.end() ? desc_of(a.md) : shape->second;
            if (mxdnn::impl::has_runtime_dims(*md.get()) || args.count(a.arg)) continue;
            const auto given = in.find(a.arg);
            const bytes_t bytes = given == in.end() ? bytes_t(md.get_size(), 0xc3) : given->second;
            args[a.arg] = make_memory(md, e, bytes);
            if (a.use == mxdnn::impl::arg_use_t::output && a.arg != MXDNN_ARG_SCRATCHPAD)
                outputs.push_back(a.arg);
        }
    }
    values_t results() const {
        values_t out;
        for (int arg : outputs) out[arg] = read_memory(args.at(arg));
        return out;
    }
};

inline values_t run(const mxdnn::primitive_desc_base &pd, const mxdnn::engine &e, const values_t &in,
        const shapes_t &shapes = {}) {
    call_t call(pd, e, in, shapes);
    mxdnn::stream s(e);
    mxdnn::primitive p(pd);
    p.execute(s, call.args);
    s.wait();
    return call.results();
}

// Bytes of one type that keep sums of products exact, or nearly: small numbers, scales near one.
inline bytes_t random_bytes(mxdnn::impl::data_type_t type, size_t size, std::mt19937 &rng) {
    using namespace mxdnn::impl;
    bytes_t b(size);
    const auto put = [&](int width, auto make) {
        for (size_t i = 0; i + width <= size; i += width) {
            const uint32_t code = make();
            std::memcpy(&b[i], &code, width);
        }
    };
    std::uniform_int_distribution<int> small(-64, 64), scale(122, 130), fp8_scale(0x30, 0x48), zero(0, 15);
    switch (type) {
    case mxdnn_f32: put(4, [&] { return f32_t::encode(float(small(rng)) / 16); }); break;
    case mxdnn_bf16: put(2, [&] { return bf16_t::encode(float(small(rng)) / 16); }); break;
    case mxdnn_f16: put(2, [&] { return f16_t::encode(float(small(rng)) / 16); }); break;
    case mxdnn_e8m0: put(1, [&] { return uint32_t(scale(rng)); }); break;
    case mxdnn_u8: put(1, [&] { return uint32_t(zero(rng)); }); break;
    default: put(1, [&] { return uint32_t(rng()) & 0xff; }); break;
    }
    return b;
}

// Inputs for every argument; scales of type f8_e4m3 and floating ones are positive.
inline values_t random_inputs(const mxdnn::primitive_desc_base &pd, std::mt19937 &rng) {
    using namespace mxdnn::impl;
    values_t in;
    for (const auto &a : args_of(pd)) {
        if ((a.use == arg_use_t::output && a.arg != MXDNN_ARG_DST) || has_runtime_dims(a.md)) continue;
        const size_t size = size_t(size_of(a.md));
        bytes_t b = random_bytes(a.md.dt, size, rng);
        if ((a.arg & MXDNN_ARG_ATTR_SCALES) || (a.arg & MXDNN_ARG_ATTR_GLOBAL_SCALE)) {
            const int width = data_type_info(a.md.dt)->bits / 8;
            for (size_t i = 0; i + width <= size; i += width) {
                const float s = std::ldexp(1.f + float(rng() % 4) / 4, int(rng() % 6) - 3);
                uint32_t code = a.md.dt == mxdnn_f8_e4m3 ? f8_e4m3_t::encode(s) : encode_value(a.md.dt, s);
                if (a.md.dt == mxdnn_e8m0) code = b[i];
                std::memcpy(&b[i], &code, width);
            }
        }
        // Codes of plain 6-bit elements leave the upper bits of their bytes free; zero is what they are
        // written as.
        if (data_type_info(a.md.dt)->bits == 6 && is_strided(a.md))
            for (auto &x : b) x &= 0x3f;
        if (a.use == arg_use_t::output && !has_role(a.md.dt, role_high_precision)) continue;
        in[a.arg] = std::move(b);
    }
    return in;
}

} // namespace cuda_test
