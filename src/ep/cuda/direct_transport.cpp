// SPDX-License-Identifier: Apache-2.0
// NCCL's device API, between devices that reach each other's memory: kernels write rows straight into the
// groups of other ranks. Nothing waits in a stage.
#include "ep/cuda/direct_kernels.hpp"
#include "ep/cuda/nccl_transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

class direct_transport_t;

// Memory of NCCL's, and its window.
struct opened_t {
    void *data = nullptr;
    ncclWindow_t window = nullptr;
};

class window_memory_t : public shared_memory_t {
public:
    window_memory_t(std::shared_ptr<direct_transport_t> transport, const opened_t &opened)
        : opened(opened), transport_(std::move(transport)) {
        data_ = static_cast<uint8_t *>(opened.data);
    }
    ~window_memory_t() override;

    const opened_t opened;

private:
    std::shared_ptr<direct_transport_t> transport_; // windows end before their communicator
};

window_rows_t window_of(const shared_rows_t &rows) {
    return {static_cast<const window_memory_t *>(rows.memory)->opened.window, rows.codes, rows.scales};
}

class direct_transport_t : public nccl_transport_t,
                           public direct_t,
                           public std::enable_shared_from_this<direct_transport_t> {
public:
    direct_transport_t(ncclComm_t caller, int device, std::chrono::milliseconds timeout)
        : nccl_transport_t(caller, device, timeout), device_api_(nccl_device()) {
        const on_device_t here(device_);
        const int reached = device_api_.team(comm_).nRanks;
        if (reached != size_)
            refuse(mxdnn_unimplemented,
                    "only " + std::to_string(reached) + " of " + std::to_string(size_)
                            + " ranks reach each other's memory; take the transport nccl");
        const size_t rounds = direct_barriers * sizeof(uint32_t);
        require(check(cudaMalloc(&rounds_, rounds), "memory for barriers"));
        flags_ = open(flag_bytes(size_));
        require(check(cudaMemsetAsync(rounds_, 0, rounds, stream_), "memory for barriers"));
        require(check(cudaMemsetAsync(flags_.data, 0, flag_bytes(size_), stream_), "memory for barriers"));
        require(check(cudaStreamSynchronize(stream_), "memory for barriers")); // layers agree after it
    }
    ~direct_transport_t() override {
        const on_device_t here(device_);
        close(flags_);
        cudaFree(rounds_);
    }

    direct_t *direct() override { return this; }

    std::unique_ptr<shared_memory_t> allocate(size_t bytes) override {
        const on_device_t here(device_);
        return std::make_unique<window_memory_t>(shared_from_this(), open(bytes));
    }

    void close(const opened_t &o) {
        const on_device_t here(device_);
        if (comm_ && o.window) device_api_.window_deregister(comm_, o.window);
        if (o.data) device_api_.release(o.data);
    }

    status_t route(const shared_memory_t &shared, size_t matrix, const groups_t &groups,
            const int32_t *counts, dim_t rows, mxdnn_stream_t stream) override {
        return launched(
                [&](cudaStream_t s) {
                    return launch_route(s, ranks(),
                            static_cast<const window_memory_t &>(shared).opened.window, matrix, groups,
                            counts, rows);
                },
                stream, "the exchange of counts");
    }
    status_t push(const shared_rows_t &to, const groups_t &groups, const row_format_t &format,
            const array_t &src, const int32_t *indices, dim_t rows, dim_t src_rows,
            mxdnn_stream_t stream) override {
        return launched(
                [&](cudaStream_t s) {
                    return launch_push(
                            s, ranks(), window_of(to), groups, format, src, indices, rows, src_rows);
                },
                stream, "the exchange of rows");
    }
    status_t pull(const shared_rows_t &from, const groups_t &groups, const row_format_t &format, uint8_t *dst,
            dim_t rows, mxdnn_stream_t stream) override {
        return launched(
                [&](cudaStream_t s) {
                    return launch_pull(s, ranks(), window_of(from), groups, format, dst, rows);
                },
                stream, "the exchange of rows");
    }

private:
    opened_t open(size_t bytes) {
        require(check_alive());
        bytes = (bytes + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT
                * NCCL_WIN_REQUIRED_ALIGNMENT;
        opened_t o;
        // If a rank has no memory, the others wait until their timeout.
        if (device_api_.allocate(&o.data, bytes) != ncclSuccess)
            refuse(mxdnn_out_of_memory, "ncclMemAlloc has no " + std::to_string(bytes) + " bytes");
        const status_t status =
                finish(device_api_.window_register(comm_, o.data, bytes, &o.window, NCCL_WIN_COLL_SYMMETRIC),
                        comm_, this->deadline(), "ncclCommWindowRegister");
        if (status == mxdnn_success && o.window) return o;
        close(o);
        require(status);
        refuse(mxdnn_unimplemented, "NCCL has no symmetric memory here; take the transport nccl");
    }

    ranks_t ranks() const {
        return {rank_, size_, flags_.window, rounds_, uint64_t(timeout_.count()) * 1000000,
                &(*here_)[0]->report};
    }

    template <typename launch_t>
    status_t launched(launch_t &&launch, mxdnn_stream_t stream, const char *what) const {
        MXDNN_EP_CHECK(check_alive());
        const on_device_t here(device_);
        MXDNN_EP_CHECK(check(here.error(), "the CUDA device"));
        return check(launch(cuda_stream_of(stream)), what);
    }

    const nccl_device_t &device_api_;
    opened_t flags_;
    uint32_t *rounds_ = nullptr;
};

window_memory_t::~window_memory_t() { transport_->close(opened); }

} // namespace

std::shared_ptr<transport_t> create_direct_transport(
        const engine &eng, const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    return std::make_shared<direct_transport_t>(communicator_of(communicator, size), device_of(eng), timeout);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
