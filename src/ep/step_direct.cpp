// SPDX-License-Identifier: Apache-2.0
// Stages where rows go straight between ranks: dispatch and the gradient of combine write into the padded
// groups of the experts, combine and the gradient of dispatch read from there. The stages between have
// nothing to do. The host knows no counts and waits for nothing, so that ranks agree later.
#include "ep/step.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

// The rows are in one place, which is not the caller's.
status_t refuse_memory(const args_t &args, bool src, bool dst) {
    if ((!src || !args.src) && (!dst || !args.dst)) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "%s is passed; over this transport rows go straight to and from the groups of the experts, which "
            "are memory of the step",
            src && args.src ? "SRC" : "DST");
}

} // namespace

groups_t step_t::groups(dim_t chunk) const {
    const plan_t &p = layer_->plan;
    const dim_t begin = chunk * p.chunk_experts;
    return {p.local_experts, p.desc.alignment, p.desc.capacity, begin, begin + p.chunk_experts,
            work<int32_t>(p.starts), work<int32_t>(p.counts), work<int32_t>(p.first),
            work<int32_t>(p.target)};
}

status_t step_t::execute_direct(
        direct_t &direct, int index, dim_t chunk, mxdnn_stream_t stream, const args_t &args, status_t early) {
    const stage_t &stage = stages[index];
    status_t status = early;
    // All ranks refuse it, since the layer is the same on all.
    if (!is_forward(index) && !layer_->plan.has_backward())
        return fail(status, "%s: %s", stage.name, last_error());
    if (status == mxdnn_success && (index != dispatch_forward || chunk > 0)) status = take_failure();
    switch (stage.op) {
    case op_t::send: status = send_direct(direct, index, chunk, stream, args, status); break;
    case op_t::bring: status = bring_direct(direct, index, chunk, stream, args, status); break;
    case op_t::compute:
        if (status == mxdnn_success) status = compute(index, chunk, stream);
        break;
    default:
        if (status == mxdnn_success) status = refuse_memory(args, true, true);
        if (status == mxdnn_success && args.offsets) status = copy_offsets(args, stream);
    }
    if (status == mxdnn_success) return status;
    fail(status, "%s: %s", stage.name, last_error());
    layer_->transport->defer(status);
    return status;
}

// A rank that refuses has no rows, but takes part.
status_t step_t::send_direct(
        direct_t &direct, int index, dim_t chunk, mxdnn_stream_t stream, const args_t &args, status_t mine) {
    const plan_t &p = layer_->plan;
    const stage_t &stage = stages[index];
    const row_format_t &f = p.format(stage.to_format);
    const bool dispatches = index == dispatch_forward, begins = dispatches && chunk == 0;
    if (begins) {
        failed_ = mxdnn_success;
        pass_ = ++layer_->transport->passes;
        serial_ = next_serial();
        arrived_ = -1;
    } else if (pass_ == 0) {
        return mine; // no rank has rows
    }
    if (mine == mxdnn_success) mine = refuse_memory(args, false, true);
    made_results(index) = 0;
    array_t src;
    if (mine == mxdnn_success) {
        src.codes = static_cast<uint8_t *>(data_of(args.src));
        if (f.quantised()) {
            const array_t codes = dispatches
                                          ? array_at(layer_->scratchpad + p.quantised, p.desc.max_tokens, f)
                                          : outgoing(stage.to_format);
            if (chunk == 0) // for all of them
                mine = layer_->quantizers[int(stage.to_format)]->run(stream, src.codes, codes, args.src_rows);
            src = codes;
        }
    }
    const bool ready = mine == mxdnn_success;
    const groups_t g = groups(chunk);
    if (begins) {
        sent_ = ready ? args.sent : 0;
        MXDNN_EP_CHECK(direct.route(*owned_.shared(), p.matrix, g,
                ready ? static_cast<const int32_t *>(data_of(args.counts)) : nullptr, sent_, stream));
    }
    const size_t begin = dispatches ? p.kept : p.gradients;
    const shared_memory_t *memory = dispatches ? owned_.shared() : layer_->owned.shared();
    const array_t at = array_at(memory->data() + begin, p.padded_rows, f);
    const size_t scales = f.quantised() ? size_t(at.scales - memory->data()) : 0;
    const shared_rows_t to = {memory, begin, scales};
    const int32_t *indices =
            ready && args.gather ? static_cast<const int32_t *>(data_of(args.gather)) : nullptr;
    MXDNN_EP_CHECK(direct.push(to, g, f, src, indices, ready ? sent_ : 0, ready ? args.src_rows : 0, stream));
    if (dispatches) kept_tag_ = tag(permute_forward);
    return mine;
}

status_t step_t::bring_direct(
        direct_t &direct, int index, dim_t chunk, mxdnn_stream_t stream, const args_t &args, status_t mine) {
    const plan_t &p = layer_->plan;
    if (pass_ == 0) return mine;
    if (mine == mxdnn_success) mine = refuse_memory(args, true, false);
    const int64_t made = made_results(index);
    if (mine == mxdnn_success && made != 0 && layer_->tags->results != made) mine = refuse_source();
    const bool ready = mine == mxdnn_success;
    const shared_rows_t from = {layer_->owned.shared(), p.results, 0};
    MXDNN_EP_CHECK(direct.pull(from, groups(chunk), p.format(format_t::bf16),
            ready ? static_cast<uint8_t *>(data_of(args.dst)) : nullptr, ready ? sent_ : 0, stream));
    return mine;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
