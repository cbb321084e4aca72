// SPDX-License-Identifier: Apache-2.0
// MPI without a call that blocks: every wait ends at a deadline, because a rank that has died is not always
// reported.
#include <mpi.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ep/transport.hpp"

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

class mpi_transport_t : public transport_t {
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
    }

    ~mpi_transport_t() override {
        if (busy_) {
            // Messages that are under way may still need all of it.
            mine_.release();
            all_.release();
            return;
        }
        if (!mpi_runs()) return;
        for (row_type_t &t : row_types_) MPI_Type_free(&t.type);
        MPI_Type_free(&verdict_type_);
        MPI_Op_free(&merge_);
        MPI_Comm_free(&comm_);
    }

    status_t agree(verdict_t &verdict, time_point_t deadline) override {
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

    status_t exchange_counts(const int32_t *send, int32_t *recv, int count, time_point_t deadline) override {
        MXDNN_EP_CHECK(check_alive());
        MPI_Request request = MPI_REQUEST_NULL;
        MXDNN_EP_CHECK(
                begun(MPI_Ialltoall(send, count, MPI_INT32_T, recv, count, MPI_INT32_T, comm_, &request),
                        "MPI_Ialltoall"));
        return wait(&request, 1, deadline, "the exchange of counts");
    }

    status_t exchange_rows(
            const rows_t *rows, int arrays, const splits_t &s, time_point_t deadline) override {
        MXDNN_EP_CHECK(check_alive());
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        for (int i = 0; i < arrays; i++) {
            const MPI_Datatype type = row_types_[size_t(rows[i].row)].type;
            MXDNN_EP_CHECK(
                    begun(MPI_Ialltoallv(rows[i].send, s.send_counts, s.send_positions, type, rows[i].recv,
                                  s.recv_counts, s.recv_positions, type, comm_, &requests[i]),
                            "MPI_Ialltoallv"));
        }
        return wait(requests, arrays, deadline, "the exchange of rows");
    }

    int row_type(size_t bytes) override {
        for (size_t i = 0; i < row_types_.size(); i++)
            if (row_types_[i].bytes == bytes) return int(i);
        row_types_.push_back({bytes, contiguous(bytes)});
        return int(row_types_.size()) - 1;
    }

    bool is_busy() const override { return busy_; }

private:
    struct row_type_t {
        size_t bytes;
        MPI_Datatype type;
    };

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
    bool busy_ = false;
    char why_[256] = "";
};

} // namespace

std::shared_ptr<transport_t> create_mpi_transport(
        const void *communicator, size_t size, std::chrono::milliseconds timeout) {
    if (size != sizeof(MPI_Comm))
        refuse(mxdnn_invalid_arguments,
                "size is " + std::to_string(size)
                        + "; an MPI_Comm of the MPI that the library was built with has "
                        + std::to_string(sizeof(MPI_Comm)) + " bytes");
    if (!mpi_runs())
        refuse(mxdnn_invalid_arguments, "MPI does not run; call MPI_Init before, and MPI_Finalize after");
    MPI_Comm caller;
    std::memcpy(&caller, communicator, sizeof(caller));
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
