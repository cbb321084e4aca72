// SPDX-License-Identifier: Apache-2.0
// NCCL between CUDA engines, in the order of the caller's stream. The host waits where ranks agree: in a
// dispatch, because it has to know how many rows come, and in the functions of the API that say so. Each of
// these waits has a deadline, at which ncclCommAbort() ends what is under way.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "ep/cuda/nccl.hpp"
#include "ep/cuda/routing_kernels.hpp"
#include "gpu/cuda/runtime/on_device.hpp"
#include "mxdnn/mxdnn_cuda.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

using mxdnn::impl::cuda::on_device_t;

[[noreturn]] inline void refuse(mxdnn_status_t status, const std::string &sentence) {
    throw mxdnn::error(status, sentence);
}

inline status_t check(cudaError_t e, const char *what) {
    if (e == cudaSuccess) return mxdnn_success;
    (void)cudaGetLastError();
    return fail(e == cudaErrorMemoryAllocation ? mxdnn_out_of_memory : mxdnn_runtime_error, "%s: %s", what,
            cudaGetErrorString(e));
}

// In constructors.
inline void require(status_t status) {
    if (status != mxdnn_success) refuse(status, last_error());
}

inline cudaStream_t cuda_stream_of(mxdnn_stream_t stream) {
    CUstream_st *s = nullptr;
    mxdnn_cuda_interop_stream_get_stream(stream, &s);
    return s;
}

// What a rank says to all others. Behind it are the rows that it sends to each rank.
struct control_t {
    verdict_t verdict; // the host writes it
    report_t report;   // the device does

    int32_t *sent() { return reinterpret_cast<int32_t *>(this + 1); }
};

// Controls of some ranks, one after the other.
class controls_t {
public:
    controls_t(bool on_host, int ranks, size_t count) : on_host_(on_host) {
        step_ = (sizeof(control_t) + size_t(ranks) * sizeof(int32_t) + 63) / 64 * 64;
        void *p = nullptr;
        require(check(on_host ? cudaMallocHost(&p, step_ * count) : cudaMalloc(&p, step_ * count),
                "memory for messages"));
        data_ = static_cast<uint8_t *>(p);
    }
    ~controls_t() { (void)(on_host_ ? cudaFreeHost(data_) : cudaFree(data_)); }
    controls_t(const controls_t &) = delete;
    controls_t &operator=(const controls_t &) = delete;

    control_t *operator[](int i) const { return reinterpret_cast<control_t *>(data_ + size_t(i) * step_); }
    size_t step() const { return step_; } // bytes

private:
    bool on_host_;
    size_t step_;
    uint8_t *data_;
};

class nccl_transport_t : public transport_t {
public:
    nccl_transport_t(ncclComm_t caller, int device, std::chrono::milliseconds timeout)
        : nccl_(nccl()), device_(device) {
        timeout_ = timeout;
        int its_device = -1;
        require(said(nccl_.count(caller, &size_), "ncclCommCount"));
        require(said(nccl_.user_rank(caller, &rank_), "ncclCommUserRank"));
        require(said(nccl_.device(caller, &its_device), "ncclCommCuDevice"));
        if (its_device != device)
            refuse(mxdnn_invalid_arguments, "the engine is device " + std::to_string(device)
                                                    + ", the communicator's device is "
                                                    + std::to_string(its_device));
        const on_device_t here(device);
        require(check(here.error(), "the CUDA device"));
        here_ = std::make_unique<controls_t>(false, size_, 1);
        all_ = std::make_unique<controls_t>(false, size_, size_t(size_));
        host_here_ = std::make_unique<controls_t>(true, size_, 1);
        host_all_ = std::make_unique<controls_t>(true, size_, size_t(size_));
        require(check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"));
        require(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
        require(check(clear_control(stream_), "memory for messages"));
        require(finish(nccl_.split(caller, 0, rank_, &comm_, nullptr), caller, deadline(), "ncclCommSplit"));
        require(finish(ncclInProgress, comm_, deadline(), "ncclCommSplit"));
        require(check(cudaStreamSynchronize(stream_), "memory for messages"));
    }

    ~nccl_transport_t() override {
        const on_device_t here(device_);
        if (comm_) nccl_.destroy(comm_);
        if (event_) cudaEventDestroy(event_);
        if (stream_) cudaStreamDestroy(stream_);
    }

    bool in_stream_order() const override { return true; }

    status_t agree(verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) override {
        const on_device_t here(device_);
        MXDNN_EP_CHECK(check(here.error(), "the CUDA device"));
        return agree_on(stream ? cuda_stream_of(stream) : stream_, verdict, deadline);
    }

    status_t agree_on_routing(
            routing_t &r, verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) override {
        const on_device_t here(device_);
        MXDNN_EP_CHECK(check(here.error(), "the CUDA device"));
        const cudaStream_t s = cuda_stream_of(stream);
        control_t *mine = (*here_)[0];
        MXDNN_EP_CHECK(check(launch_count(s, r.counts, r.rows, r.outgoing, size_, r.local_experts,
                                     mine->sent(), &mine->report),
                "sums of counts"));
        MXDNN_EP_CHECK(agree_on(s, verdict, deadline));
        if (verdict.status == mxdnn_success) check_arrivals(r.capacity, verdict);
        if (verdict.status != mxdnn_success) return mxdnn_success;
        for (int p = 0; p < size_; p++) {
            r.sent[p] = (*host_all_)[rank_]->sent()[p];
            r.arrived[p] = (*host_all_)[p]->sent()[rank_];
        }
        const size_t bytes = size_t(r.local_experts) * sizeof(int32_t);
        return grouped(
                [&](int p) {
                    const size_t at = size_t(p) * size_t(r.local_experts);
                    ncclResult_t e = nccl_.send(r.outgoing + at, bytes, ncclUint8, p, comm_, s);
                    return e == ncclSuccess ? nccl_.recv(r.received + at, bytes, ncclUint8, p, comm_, s) : e;
                },
                deadline, "the exchange of counts");
    }

    status_t exchange_rows(const row_format_t &f, const array_t &send, const array_t &recv,
            const splits_t &splits, mxdnn_stream_t stream, time_point_t deadline) override {
        MXDNN_EP_CHECK(check_alive());
        const on_device_t here(device_);
        MXDNN_EP_CHECK(check(here.error(), "the CUDA device"));
        const cudaStream_t s = cuda_stream_of(stream);
        size_t from = 0, to = 0; // rows
        return grouped(
                [&](int p) {
                    const size_t leave = size_t(splits.send[p]), arrive = size_t(splits.recv[p]);
                    const auto exchange = [&](const uint8_t *out, uint8_t *in, size_t bytes) {
                        ncclResult_t e = ncclSuccess;
                        if (leave > 0)
                            e = nccl_.send(out + from * bytes, leave * bytes, ncclUint8, p, comm_, s);
                        if (e == ncclSuccess && arrive > 0)
                            e = nccl_.recv(in + to * bytes, arrive * bytes, ncclUint8, p, comm_, s);
                        return e;
                    };
                    ncclResult_t e = exchange(send.codes, recv.codes, f.codes);
                    if (e == ncclSuccess && f.quantised()) e = exchange(send.scales, recv.scales, f.scales);
                    from += leave;
                    to += arrive;
                    return e;
                },
                deadline, "the exchange of rows");
    }

    void prepare(const row_format_t &) override {}
    bool is_busy() const override { return false; }

    status_t copy(void *dst, const void *src, size_t bytes, mxdnn_stream_t stream) override {
        return bytes > 0 ? pass_on(mxdnn_cuda_interop_copy(stream, dst, src, bytes), "a copy")
                         : mxdnn_success;
    }

    status_t clear(void *dst, size_t bytes, mxdnn_stream_t stream) override {
        const on_device_t here(device_);
        return check(cudaMemsetAsync(dst, 0, bytes, cuda_stream_of(stream)), "zeros");
    }

    status_t gather(const row_format_t &f, const array_t &dst, const array_t &src, const int32_t *indices,
            dim_t rows, dim_t src_rows, mxdnn_stream_t stream) override {
        const on_device_t here(device_);
        MXDNN_EP_CHECK(check(here.error(), "the CUDA device"));
        return check(launch_gather(cuda_stream_of(stream), f, dst, src, indices, rows, src_rows,
                             &(*here_)[0]->report.bad_index),
                "gathering rows");
    }

protected:
    // Nothing was found, and nothing is sent.
    cudaError_t clear_control(cudaStream_t s) {
        control_t *mine = (*here_)[0];
        const cudaError_t e = cudaMemsetAsync(&mine->report, 0xff, sizeof(report_t), s);
        if (e != cudaSuccess) return e;
        return cudaMemsetAsync(mine->sent(), 0, size_t(size_) * sizeof(int32_t), s);
    }

    // Everyone's control to everyone, and to the host. The verdict becomes that of all.
    status_t agree_on(cudaStream_t s, verdict_t &verdict, time_point_t deadline) {
        MXDNN_EP_CHECK(check_alive());
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        MXDNN_EP_CHECK(check(cudaStreamIsCapturing(s, &capture), "the CUDA stream"));
        if (capture != cudaStreamCaptureStatusNone)
            return fail(mxdnn_invalid_arguments,
                    "the stream is being captured; the ranks agree on the host, which cannot be captured");
        take_deferred(verdict);
        control_t *out = (*host_here_)[0], *mine = (*here_)[0];
        out->verdict = verdict;
        MXDNN_EP_CHECK(
                check(cudaMemcpyAsync(mine, out, offsetof(control_t, report), cudaMemcpyHostToDevice, s),
                        "the copy of a verdict"));
        const size_t bytes = here_->step();
        MXDNN_EP_CHECK(grouped(
                [&](int p) {
                    ncclResult_t e = nccl_.send(mine, bytes, ncclUint8, p, comm_, s);
                    return e == ncclSuccess ? nccl_.recv((*all_)[p], bytes, ncclUint8, p, comm_, s) : e;
                },
                deadline, "the ranks' agreement"));
        MXDNN_EP_CHECK(check(cudaMemcpyAsync((*host_all_)[0], (*all_)[0], bytes * size_t(size_),
                                     cudaMemcpyDeviceToHost, s),
                "the copy of verdicts"));
        MXDNN_EP_CHECK(check(cudaEventRecord(event_, s), "cudaEventRecord"));
        MXDNN_EP_CHECK(wait(deadline, "the ranks' agreement"));
        MXDNN_EP_CHECK(check(clear_control(s), "memory for messages"));
        for (int p = 0; p < size_; p++) {
            control_t &c = *(*host_all_)[p];
            check_report(c, p);
            if (p > 0) merge(c.verdict, (*host_all_)[0]->verdict);
        }
        verdict = (*host_all_)[0]->verdict;
        return mxdnn_success;
    }

    // What the device has found becomes a verdict.
    static void check_report(control_t &c, int rank) {
        const report_t &r = c.report;
        status_t status = mxdnn_invalid_arguments;
        if (c.verdict.status != mxdnn_success) return;
        if (r.late.found())
            status = fail(mxdnn_runtime_error, "rank %d did not come within the timeout", r.late.first());
        else if (r.bad_count.found())
            fail(status, "GROUP_COUNTS[%d] is %d; a count is 0 or more", r.bad_count.first(),
                    r.bad_count.second());
        else if (r.bad_sum.found())
            fail(status, "the sum of GROUP_COUNTS is %d; it has to be the %d rows that are sent",
                    r.bad_sum.first(), r.bad_sum.second());
        else if (r.bad_index.found())
            fail(status, "GATHER_IDX[%d] is %d, which is no row of SRC", r.bad_index.first(),
                    r.bad_index.second());
        else if (r.too_many.found())
            refuse_rows(r.too_many.first(), r.too_many.second());
        else
            return;
        c.verdict = make_verdict(
                status, rank, question_t(c.verdict.question), c.verdict.values, verdict_t::max_values);
    }

    // Every rank knows what arrives at each, so that all of them say the same.
    void check_arrivals(dim_t capacity, verdict_t &verdict) const {
        for (int to = 0; to < size_; to++) {
            dim_t rows = 0;
            for (int from = 0; from < size_; from++) rows += (*host_all_)[from]->sent()[to];
            if (rows <= capacity) continue;
            verdict = make_verdict(refuse_rows(rows, capacity), to, question_t::counts, nullptr, 0);
            return;
        }
    }

    // One group of what `each` sends to and receives from each rank.
    template <typename each_t>
    status_t grouped(each_t &&each, time_point_t deadline, const char *what) {
        MXDNN_EP_CHECK(check_alive());
        ncclResult_t e = nccl_.group_start();
        for (int p = 0; p < size_ && e == ncclSuccess; p++) e = each(p);
        const ncclResult_t end = nccl_.group_end();
        return finish(e == ncclSuccess || e == ncclInProgress ? end : e, comm_, deadline, what);
    }

    status_t said(ncclResult_t e, const char *what) const {
        if (e == ncclSuccess) return mxdnn_success;
        return fail(mxdnn_runtime_error, "%s failed: %s", what, nccl_.error_string(e));
    }

    // Waits for what the host does for a call, where the communicator does not block.
    status_t finish(ncclResult_t e, ncclComm_t comm, time_point_t deadline, const char *what) {
        while (e == ncclInProgress) {
            if (nccl_.async_error(comm, &e) != ncclSuccess) e = ncclInternalError;
            if (e != ncclInProgress) break;
            if (std::chrono::steady_clock::now() > deadline) return give_up_late(what);
            std::this_thread::yield();
        }
        return e == ncclSuccess ? mxdnn_success : give_up("%s failed: %s", what, nccl_.error_string(e));
    }

    // Waits for the event.
    status_t wait(time_point_t deadline, const char *what) {
        for (;;) {
            const cudaError_t e = cudaEventQuery(event_);
            if (e == cudaSuccess) return mxdnn_success;
            if (e != cudaErrorNotReady) {
                (void)cudaGetLastError();
                return give_up("%s failed: %s", what, cudaGetErrorString(e));
            }
            ncclResult_t of_others = ncclSuccess;
            if (nccl_.async_error(comm_, &of_others) != ncclSuccess
                    || (of_others != ncclSuccess && of_others != ncclInProgress))
                return give_up("%s failed: %s", what, nccl_.error_string(of_others));
            if (std::chrono::steady_clock::now() > deadline) return give_up_late(what);
            std::this_thread::yield();
        }
    }

    status_t check_alive() const {
        return why_[0] ? fail(mxdnn_runtime_error, "the communicator failed before: %s", why_)
                       : mxdnn_success;
    }

    status_t give_up_late(const char *what) {
        return give_up("%s did not end within %s ms: a rank has died, is too slow, or calls something else",
                what, std::to_string(timeout_.count()).c_str());
    }

    // What is under way ends here.
    template <typename... args_t>
    status_t give_up(const char *format, args_t... args) {
        std::snprintf(why_, sizeof(why_), format, args...);
        if (comm_) nccl_.abort(comm_);
        comm_ = nullptr;
        return fail(mxdnn_runtime_error, "%s", why_);
    }

    const nccl_t &nccl_;
    int device_;
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr; // for agreements that belong to no stream
    cudaEvent_t event_ = nullptr;
    std::unique_ptr<controls_t> here_, all_, host_here_, host_all_;
    char why_[256] = "";
};

// The device that the engine's memory is on.
int device_of(const engine &eng);
// The caller's handle.
ncclComm_t communicator_of(const void *communicator, size_t size);

} // namespace impl
} // namespace ep
} // namespace mxdnn
