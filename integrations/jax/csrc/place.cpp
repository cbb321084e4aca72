// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include <cstdint>

#include <mxdnn/mxdnn_cuda.hpp>

#include "xla_threadpool.hpp"

namespace mxdnn_jax {

namespace {

class cpu_t : public place_t {
public:
    explicit cpu_t(const xla::ffi::ThreadPool &pool) : pool_(pool) {}

    int id() const override { return -1; }
    const mxdnn::engine &engine() const override {
        static const mxdnn::engine cpu(mxdnn::engine::kind::cpu, 0);
        return cpu;
    }
    mxdnn::stream stream_of(const mxdnn::engine &eng) const override {
        if (eng.get_kind() != mxdnn::engine::kind::cpu) return mxdnn::stream(eng);
        return mxdnn::threadpool_interop::make_stream(eng, &pool_);
    }

private:
    mutable xla_threadpool_t pool_;
};

class cuda_t : public place_t {
public:
    cuda_t(CUstream_st *stream, int ordinal, xla::ffi::ScratchAllocator &scratch)
        : ordinal_(ordinal), engine_(mxdnn::engine::kind::cuda, size_t(ordinal)),
          stream_(mxdnn::cuda_interop::make_stream(engine_, stream)), scratch_(scratch) {}

    int id() const override { return ordinal_; }
    const mxdnn::engine &engine() const override { return engine_; }
    mxdnn::stream stream_of(const mxdnn::engine &) const override { return stream_; }
    mxdnn::memory::dim rows_of_problem(mxdnn::memory::dim rows) const override { return rows; }
    bool has_scratch() const override { return true; }
    void *scratch(size_t bytes) override {
        // A scratchpad begins at a multiple of 64. XLA refuses to promise more than 16.
        const size_t alignment = 64, room = bytes + alignment - 16;
        const auto allocated = scratch_.Allocate(room, 16);
        if (!allocated)
            throw mxdnn::error(mxdnn_out_of_memory,
                    "XLA has no " + std::to_string(room) + " bytes of scratch memory left");
        const auto address = reinterpret_cast<uintptr_t>(*allocated);
        return reinterpret_cast<void *>((address + alignment - 1) / alignment * alignment);
    }

private:
    int ordinal_;
    mxdnn::engine engine_;
    mxdnn::stream stream_;
    xla::ffi::ScratchAllocator &scratch_;
};

} // namespace

void on_cpu(const xla::ffi::ThreadPool &pool, const std::function<void(place_t &)> &fn) {
    cpu_t place(pool);
    fn(place);
}

void on_cuda(CUstream_st *stream, int ordinal, xla::ffi::ScratchAllocator &scratch,
        const std::function<void(place_t &)> &fn) {
    cuda_t place(stream, ordinal, scratch);
    fn(place);
}

} // namespace mxdnn_jax
