// SPDX-License-Identifier: Apache-2.0
// One pass through a layer, and the stages that it executes.
#pragma once

#include "ep/args.hpp"
#include "ep/layer.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

class step_t {
public:
    step_t(const std::shared_ptr<layer_t> &layer, void *workspace);

    status_t execute(int stage, dim_t chunk, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args);
    // The same for all chunks.
    status_t execute(int stage, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args);
    // What the stage uses if `arg` is not passed; NULL where there is none.
    mxdnn_memory_t default_of(int stage, int arg) const;
    dim_t arrived_rows() const { return arrived_; }

private:
    status_t execute_here(int stage, dim_t chunk, mxdnn_stream_t stream, const args_t &args);
    status_t send(int stage, mxdnn_stream_t stream, const args_t &args, status_t early);
    status_t bring(int stage, mxdnn_stream_t stream, const args_t &args, status_t early);
    status_t group(int stage, mxdnn_stream_t stream, const args_t &args);
    status_t copy_offsets(const args_t &args, mxdnn_stream_t stream);
    status_t ungroup(int stage, mxdnn_stream_t stream, const args_t &args);
    status_t compute(int stage, dim_t chunk, mxdnn_stream_t stream);

    // What the others are where rows go straight between ranks.
    status_t execute_direct(direct_t &direct, int stage, dim_t chunk, mxdnn_stream_t stream,
            const args_t &args, status_t early);
    status_t send_direct(direct_t &direct, int stage, dim_t chunk, mxdnn_stream_t stream, const args_t &args,
            status_t mine);
    status_t bring_direct(direct_t &direct, int stage, dim_t chunk, mxdnn_stream_t stream, const args_t &args,
            status_t mine);
    groups_t groups(dim_t chunk) const;

    status_t check_begun(int stage, dim_t chunk) const;
    status_t check_chunk(int stage, dim_t &chunk);
    status_t check_source(int stage, const args_t &args);
    static status_t refuse_source();
    status_t take_failure();
    verdict_t verdict_of(int stage, status_t mine) const;
    status_t agree(int stage, mxdnn_stream_t stream, status_t &mine, time_point_t deadline);
    status_t begin_pass(mxdnn_stream_t stream, const args_t &args, status_t mine, time_point_t deadline);
    status_t fill_outgoing(int stage, mxdnn_stream_t stream, const args_t &args, array_t &outgoing);
    status_t copy(const array_t &dst, const array_t &src, format_t format, dim_t rows, mxdnn_stream_t stream);
    array_t outgoing(format_t format) const;
    array_t arrived(format_t format) const;

    const memories_t &at(place_t place, format_t format) const;
    int64_t *tag_of(place_t place);
    static int64_t next_serial();
    int64_t &made_results(int stage) { return results_tags_[is_forward(stage) ? 0 : 1]; }
    int64_t tag(int stage) const { return serial_ * stage_count + stage; }
    template <typename T>
    T *work(size_t at) const {
        return reinterpret_cast<T *>(workspace_ + at);
    }

    std::shared_ptr<layer_t> layer_;
    buffer_t owned_;
    uint8_t *workspace_;
    memory counts_, offsets_, indices_;
    std::vector<memory> starts_; // of each chunk
    memories_t kept_, results_;

    int64_t pass_ = 0;             // of the last dispatch; the same on every rank; 0: there was none
    int64_t serial_ = 0;           // of the last dispatch; unlike that of any other one in this process
    int64_t kept_tag_ = 0;         // says which stage filled the workspace's rows
    int64_t results_tags_[2] = {}; // by direction: which callback made the results; 0: the caller may have
    dim_t sent_ = 0, arrived_ = 0;
    dim_t next_[stage_count] = {};                // the chunk that each stage goes on with
    dim_t moved_[2] = {};                         // by direction: how many chunks have been sent in this pass
    std::vector<int32_t> sent_to_, arrived_from_; // rows, by rank
    status_t failed_ = mxdnn_success;             // of the last stage that is not collective
    char why_[256] = "";
};

} // namespace impl
} // namespace ep
} // namespace mxdnn
