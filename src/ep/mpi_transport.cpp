// SPDX-License-Identifier: Apache-2.0
// MPI without a call that blocks: every wait ends at a deadline, because a rank that has died is not always
// reported.
#include <mpi.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ep/host_transport.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

[[noreturn]] void refuse(mxdnn_status_t status, const std::string &sentence) {
    throw mxdnn::error(status, sentence);
}

std::string error_text(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "error " + std::to_string(code);
    return std::string(text, size_t(length));
}

void check(int code, const char *function) {
    if (code != MPI_SUCCESS)
        refuse(mxdnn_runtime_error, std::string(function) + " failed: " + error_text(code));
}

void merge_op(void *from, void *to, int *count, MPI_Datatype *) {
    for (int i = 0; i < *count; i++)
        merge(static_cast<verdict_t *>(from)[i], static_cast<verdict_t *>(to)[i]);
}

bool mpi_runs() {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

class mpi_transport_t : public host_transport_t {
public:
    mpi_transport_t(MPI_Comm caller, std::chrono::milliseconds timeout) {
        timeout_ = timeout;
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Comm_idup(caller, &comm_, &request), "MPI_Comm_idup");
        if (wait(&request, 1, deadline(), "mxdnn_ep_comm_create") != mxdnn_success)
            refuse(mxdnn_runtime_error, why_);
        check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        check(MPI_Op_create(merge_op, /* commutes */ 1, &merge_), "MPI_Op_create");
        verdict_type_ = contiguous(sizeof(verdict_t));
        splits_.reset(new int[4 * size_t(size_)]);
    }

    ~mpi_transport_t() override {
        if (busy_) {
            // Messages that are under way may still need all of it.
            (void)mine_.release();
            (void)all_.release();
            (void)splits_.release();
            return;
        }
        if (!mpi_runs()) return;
        for (row_type_t &t : row_types_) MPI_Type_free(&t.type);
        MPI_Type_free(&verdict_type_);
        MPI_Op_free(&merge_);
        MPI_Comm_free(&comm_);
    }

    bool in_stream_order() const override { return false; }

    status_t agree(verdict_t &verdict, mxdnn_stream_t, time_point_t deadline) override {
        MXDNN_EP_CHECK(check_alive());
        *mine_ = verdict;
        MPI_Request request = MPI_REQUEST_NULL;
        MXDNN_EP_CHECK(
                begun(MPI_Iallreduce(mine_.get(), all_.get(), 1, verdict_type_, merge_, comm_, &request),
                        "MPI_Iallreduce"));
        MXDNN_EP_CHECK(wait(&request, 1, deadline, "the ranks' agreement"));
        verdict = *all_;
        return mxdnn_success;
    }

    // Counts are sent when all ranks are ready, and then the ranks agree that there is room.
    status_t agree_on_routing(
            routing_t &r, verdict_t &verdict, mxdnn_stream_t stream, time_point_t deadline) override {
        MXDNN_EP_CHECK(agree(verdict, stream, deadline));
        if (verdict.status != mxdnn_success) return mxdnn_success;
        const int count = int(r.local_experts);
        const size_t experts = size_t(count) * size_t(size_);
        std::memcpy(r.outgoing, r.counts, experts * sizeof(int32_t));
        MPI_Request request = MPI_REQUEST_NULL;
        MXDNN_EP_CHECK(begun(MPI_Ialltoall(r.outgoing, count, MPI_INT32_T, r.incoming, count, MPI_INT32_T,
                                     comm_, &request),
                "MPI_Ialltoall"));
        MXDNN_EP_CHECK(wait(&request, 1, deadline, "the exchange of counts"));
        const dim_t rows = std::accumulate(r.incoming, r.incoming + experts, dim_t(0));
        status_t mine = mxdnn_success;
        if (rows > r.capacity) mine = refuse_rows(rows, r.capacity);
        verdict = make_verdict(mine, rank_, question_t::counts, nullptr, 0);
        MXDNN_EP_CHECK(agree(verdict, stream, deadline));
        if (verdict.status != mxdnn_success) return mxdnn_success;
        std::memcpy(r.received, r.incoming, experts * sizeof(int32_t));
        for (int p = 0; p < size_; p++) {
            const auto sum = [&](const int32_t *of) {
                return std::accumulate(of + p * count, of + (p + 1) * count, int32_t(0));
            };
            r.sent[p] = sum(r.outgoing);
            r.arrived[p] = sum(r.incoming);
        }
        return mxdnn_success;
    }

    // Codes and scales go at the same time.
    status_t exchange_rows(const row_format_t &f, const array_t &send, const array_t &recv,
            const splits_t &splits, mxdnn_stream_t, time_point_t deadline) override {
        MXDNN_EP_CHECK(check_alive());
        // Messages read them as long as they are under way.
        int *sent = splits_.get(), *sent_at = sent + size_, *arrive = sent_at + size_,
            *arrive_at = arrive + size_;
        std::copy(splits.send, splits.send + size_, sent);
        std::copy(splits.recv, splits.recv + size_, arrive);
        std::exclusive_scan(sent, sent + size_, sent_at, 0);
        std::exclusive_scan(arrive, arrive + size_, arrive_at, 0);
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        const auto begin = [&](const uint8_t *from, uint8_t *to, size_t bytes, MPI_Request *request) {
            const MPI_Datatype type = type_of(bytes);
            return begun(
                    MPI_Ialltoallv(from, sent, sent_at, type, to, arrive, arrive_at, type, comm_, request),
                    "MPI_Ialltoallv");
        };
        MXDNN_EP_CHECK(begin(send.codes, recv.codes, f.codes, &requests[0]));
        if (f.quantised()) MXDNN_EP_CHECK(begin(send.scales, recv.scales, f.scales, &requests[1]));
        return wait(requests, f.quantised() ? 2 : 1, deadline, "the exchange of rows");
    }

    void prepare(const row_format_t &f) override {
        add_type(f.codes);
        if (f.quantised()) add_type(f.scales);
    }

    bool is_busy() const override { return busy_; }

private:
    struct row_type_t {
        size_t bytes;
        MPI_Datatype type;
    };

    void add_type(size_t bytes) {
        for (const row_type_t &t : row_types_)
            if (t.bytes == bytes) return;
        row_types_.push_back({bytes, contiguous(bytes)});
    }
    MPI_Datatype type_of(size_t bytes) const {
        for (const row_type_t &t : row_types_)
            if (t.bytes == bytes) return t.type;
        return MPI_DATATYPE_NULL;
    }

    static MPI_Datatype contiguous(size_t bytes) {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        check(MPI_Type_contiguous(int(bytes), MPI_BYTE, &type), "MPI_Type_contiguous");
        check(MPI_Type_commit(&type), "MPI_Type_commit");
        return type;
    }

    status_t check_alive() const {
        return why_[0] ? fail(mxdnn_runtime_error, "the communicator failed before: %s", why_)
                       : mxdnn_success;
    }

    // Earlier requests of the same call may be under way when a later one cannot begin.
    status_t begun(int code, const char *function) {
        return code == MPI_SUCCESS ? mxdnn_success
                                   : give_up("%s failed: %s", function, error_text(code).c_str());
    }

    template <typename... args_t>
    status_t give_up(const char *format, args_t... args) {
        busy_ = true;
        std::snprintf(why_, sizeof(why_), format, args...);
        return fail(mxdnn_runtime_error, "%s", why_);
    }

    status_t wait(MPI_Request *requests, int count, time_point_t deadline, const char *what) {
        for (int tests = 0;; tests++) {
            int done = 0;
            const int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
            if (code != MPI_SUCCESS) return give_up("%s failed: %s", what, error_text(code).c_str());
            if (done) return mxdnn_success;
            if (tests < 100) continue;
            if (std::chrono::steady_clock::now() > deadline)
                return give_up(
                        "%s did not end within %lld ms: a rank has died, is too slow, or calls something else",
                        what, static_cast<long long>(timeout_.count()));
            std::this_thread::yield(); // there may be more ranks than cores
        }
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    MPI_Op merge_ = MPI_OP_NULL;
    MPI_Datatype verdict_type_ = MPI_DATATYPE_NULL;
    std::vector<row_type_t> row_types_;
    std::unique_ptr<verdict_t> mine_{new verdict_t()}, all_{new verdict_t()};
    std::unique_ptr<int[]> splits_; // rows that are sent and arrive, and where they begin
    bool busy_ = false;
    char why_[256] = "";
};

} // namespace

std::shared_ptr<transport_t> create_mpi_transport(
        const engine &, const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    if (size != sizeof(MPI_Comm))
        refuse(mxdnn_invalid_arguments,
                "size is " + std::to_string(size)
                        + "; an MPI_Comm of the MPI that the library was built with has "
                        + std::to_string(sizeof(MPI_Comm)) + " bytes");
    if (!mpi_runs())
        refuse(mxdnn_invalid_arguments, "MPI does not run; call MPI_Init before, and MPI_Finalize after");
    MPI_Comm caller;
    std::memcpy(&caller, communicator, size);
    if (caller == MPI_COMM_NULL) refuse(mxdnn_invalid_arguments, "the communicator is MPI_COMM_NULL");
    int between = 0;
    check(MPI_Comm_test_inter(caller, &between), "MPI_Comm_test_inter");
    if (between)
        refuse(mxdnn_invalid_arguments,
                "the communicator is an intercommunicator; an intracommunicator is needed");
    return std::make_shared<mpi_transport_t>(caller, timeout);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
