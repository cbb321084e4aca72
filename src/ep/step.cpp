// SPDX-License-Identifier: Apache-2.0
#include "ep/step.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

using dt = memory::data_type;
using tag_t = memory::format_tag;

array_t array_of(mxdnn_memory_t rows, mxdnn_memory_t scales) {
    return {static_cast<uint8_t *>(data_of(rows)),
            scales ? static_cast<uint8_t *>(data_of(scales)) : nullptr};
}

memory vector(const engine &eng, dim_t n, void *data) { return memory({{n}, dt::s32, tag_t::a}, eng, data); }

} // namespace

int64_t step_t::next_serial() {
    static std::atomic<int64_t> last{0};
    return ++last;
}

step_t::step_t(const std::shared_ptr<layer_t> &layer, void *workspace)
    : layer_(layer), owned_(*layer->transport, layer->eng, workspace, layer->plan.workspace_size),
      workspace_(owned_.data()), sent_to_(size_t(layer->plan.ranks)),
      arrived_from_(size_t(layer->plan.ranks)) {
    const plan_t &p = layer->plan;
    const row_format_t &forward = p.format(format_t::forward);
    counts_ = memory({{p.ranks, p.local_experts}, dt::s32, tag_t::ab}, layer->eng, work<void>(p.counts));
    offsets_ = vector(layer->eng, p.local_experts, work<int32_t>(p.starts) + 1);
    for (dim_t e = 0; e < p.local_experts; e += p.chunk_experts)
        starts_.push_back(vector(layer->eng, p.chunk_experts + 1, work<int32_t>(p.starts) + e));
    indices_ = vector(layer->eng, p.padded_rows, work<void>(p.indices));
    kept_ = make_memories(layer->eng, p.padded_rows, p.desc.hidden, forward,
            array_at(work<void>(p.kept), p.padded_rows, forward));
    results_.rows = layer->results;
}

const memories_t &step_t::at(place_t place, format_t format) const {
    switch (place) {
    case place_t::arrived: return layer_->arrived[int(format)];
    case place_t::kept: return kept_;
    case place_t::results: return results_;
    default: return layer_->gradients;
    }
}

// What a place of the stages alone holds; NULL for the others.
int64_t *step_t::tag_of(place_t place) {
    switch (place) {
    case place_t::arrived: return &layer_->tags->arrived;
    case place_t::gradients: return &layer_->tags->gradients;
    case place_t::results: return &layer_->tags->results;
    case place_t::kept: return &kept_tag_;
    default: return nullptr;
    }
}

mxdnn_memory_t step_t::default_of(int index, int arg) const {
    const stage_t &stage = stages[index];
    const bool from = arg == MXDNN_ARG_SRC || arg == (MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC);
    const bool to = arg == MXDNN_ARG_DST || arg == (MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
    const bool grouped = stage.op != op_t::send && stage.op != op_t::bring;
    if (arg == MXDNN_ARG_GROUP_COUNTS && grouped) return counts_.get();
    if (arg == MXDNN_ARG_GROUP_OFFSETS && grouped) return offsets_.get();
    if ((!from && !to) || (!is_forward(index) && !layer_->plan.has_backward())) return nullptr;
    const place_t place = from ? stage.from : stage.to;
    if (place == place_t::caller || (place == place_t::arrived && layer_->plan.direct)) return nullptr;
    const memories_t &m = at(place, from ? stage.from_format : stage.to_format);
    return arg & MXDNN_ARG_ATTR_SCALES ? m.scales.get(true) : m.rows.get();
}

status_t step_t::check_begun(int index, dim_t chunk) const {
    if (!is_forward(index) && !layer_->plan.has_backward())
        return fail(mxdnn_invalid_arguments, "the layer has no backward pass; its backward_type is undef");
    if ((index != dispatch_forward || chunk != 0) && pass_ == 0)
        return fail(mxdnn_invalid_arguments, "the step has no rows; dispatch forward comes first");
    return mxdnn_success;
}

// Chunks come in order, and their rows have been sent before. One that there is not becomes the next one,
// which the other ranks execute.
status_t step_t::check_chunk(int index, dim_t &chunk) {
    const dim_t chunks = layer_->plan.chunks();
    const bool sends = stages[index].op == op_t::send;
    status_t status = mxdnn_success;
    if (chunk < 0 || chunk >= chunks) {
        status = fail(mxdnn_invalid_arguments, "chunk is %lld; the layer has %lld",
                static_cast<long long>(chunk), static_cast<long long>(chunks));
        if (!sends && stages[index].op != op_t::bring) return status;
        chunk = next_[index];
    }
    if (index == dispatch_forward && chunk == 0) { // a new pass
        std::fill(std::begin(next_), std::end(next_), 0);
        moved_[0] = moved_[1] = 0;
    }
    const dim_t expected = next_[index];
    dim_t &moved = moved_[is_forward(index) ? 0 : 1];
    if (sends) moved = chunk + 1;
    next_[index] = (chunk + 1) % chunks;
    if (status != mxdnn_success) return status;
    if (chunk != expected)
        return fail(mxdnn_invalid_arguments, "chunk is %lld; the next one of this stage is %lld",
                static_cast<long long>(chunk), static_cast<long long>(expected));
    if (!sends && chunks > 1 && chunk >= moved)
        return fail(mxdnn_invalid_arguments, "the rows of chunk %lld have not been sent in this pass",
                static_cast<long long>(chunk));
    return mxdnn_success;
}

// What the stage reads is from the stage before, of this pass.
status_t step_t::check_source(int index, const args_t &args) {
    const stage_t &stage = stages[index];
    const int64_t *found = tag_of(stage.from);
    if (args.src || !found || (stage.from == place_t::results && made_results(index) == 0))
        return mxdnn_success;
    for (int before = 0; before < stage_count; before++)
        if (*found == tag(before) && is_forward(before) == is_forward(index)
                && stages[before].to == stage.from)
            return mxdnn_success;
    return refuse_source();
}

status_t step_t::refuse_source() {
    return fail(mxdnn_invalid_arguments,
            "SRC is not passed, and the stage before has not written it in this pass, or another stage has "
            "overwritten it");
}

// A stage that all ranks have to call goes on where it is refused.
status_t step_t::execute(int index, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *list) {
    status_t first = mxdnn_success;
    std::string why;
    for (dim_t chunk = 0; chunk < layer_->plan.chunks(); chunk++) {
        const status_t status = execute(index, chunk, stream, nargs, list);
        if (first == mxdnn_success && status != mxdnn_success) first = status, why = last_error();
    }
    return first == mxdnn_success ? first : fail(first, "%s", why.c_str());
}

status_t step_t::execute(
        int index, dim_t chunk, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *list) {
    const stage_t &stage = stages[index];
    args_t args;
    const status_t in_order = check_chunk(index, chunk);
    status_t status = check_begun(index, chunk);
    if (status == mxdnn_success) status = in_order;
    if (status == mxdnn_success) status = check_stream(layer_->eng, stream, stage.name);
    if (status == mxdnn_success) status = read_args(layer_->plan, index, sent_, nargs, list, args);
    if (status == mxdnn_success && index == dispatch_forward && chunk > 0 && pass_ != 0 && args.sent != sent_)
        status = fail(mxdnn_invalid_arguments, "%lld rows are sent; those of chunk 0 were %lld",
                static_cast<long long>(args.sent), static_cast<long long>(sent_));
    if (direct_t *direct = layer_->transport->direct())
        return execute_direct(*direct, index, chunk, stream, args, status);
    if (status == mxdnn_success) status = check_source(index, args);
    // All rows arrive with the first chunk, and go back with the last one.
    const bool arrives = stage.op == op_t::send || stage.op == op_t::group;
    if (stage.op != op_t::compute && chunk != (arrives ? 0 : layer_->plan.chunks() - 1)) {
        if (status != mxdnn_success) fail(status, "%s: %s", stage.name, last_error());
        return status;
    }
    if (status == mxdnn_success || stage.op == op_t::send || stage.op == op_t::bring) layer_->claim();
    // The other ranks have to hear of a failure.
    if (stage.op == op_t::send) return send(index, stream, args, status);
    if (stage.op == op_t::bring) return bring(index, stream, args, status);
    if (status == mxdnn_success) status = execute_here(index, chunk, stream, args);
    failed_ = status;
    if (status != mxdnn_success) {
        fail(status, "%s: %s", stage.name, last_error());
        std::snprintf(why_, sizeof(why_), "%s", last_error());
    }
    return status;
}

status_t step_t::execute_here(int index, dim_t chunk, mxdnn_stream_t stream, const args_t &args) {
    switch (stages[index].op) {
    case op_t::group: return group(index, stream, args);
    case op_t::ungroup: return ungroup(index, stream, args);
    default: return compute(index, chunk, stream);
    }
}

// The failure of a stage before, which is reported once.
status_t step_t::take_failure() {
    const status_t status = failed_;
    failed_ = mxdnn_success;
    return status == mxdnn_success ? status : fail(status, "%s", why_);
}

verdict_t step_t::verdict_of(int index, status_t mine) const {
    const int64_t values[] = {index, layer_->number, pass_};
    return make_verdict(mine, layer_->transport->rank(), question_t::stage, values, 3);
}

// Asks all ranks whether they are ready for the same stage. Where that would wait for the device, a rank that
// is not ready takes part with what its scratchpad holds, and the others hear of it later.
status_t step_t::agree(int index, mxdnn_stream_t stream, status_t &mine, time_point_t deadline) {
    transport_t &t = *layer_->transport;
    if (t.in_stream_order()) {
        if (mine == mxdnn_success) return mine;
        mine = fail(mine, "%s: %s", stages[index].name, last_error());
        if (pass_ == 0) return mine; // no rank has rows
        t.defer(mine);
        return mxdnn_success;
    }
    verdict_t verdict = verdict_of(index, mine);
    MXDNN_EP_CHECK(t.agree(verdict, stream, deadline));
    return status_of(verdict, stages[index].name);
}

// Asks all ranks whether they are ready, who sends how many rows to whom, and whether there is room.
status_t step_t::begin_pass(mxdnn_stream_t stream, const args_t &args, status_t mine, time_point_t deadline) {
    const plan_t &p = layer_->plan;
    routing_t r;
    if (mine == mxdnn_success) r.counts = static_cast<const int32_t *>(data_of(args.counts));
    r.rows = args.sent;
    r.local_experts = p.local_experts;
    r.capacity = p.desc.capacity;
    r.outgoing = layer_->scratch<int32_t>(p.send_counts);
    r.incoming = layer_->scratch<int32_t>(p.recv_counts);
    r.received = work<int32_t>(p.counts);
    r.sent = sent_to_.data();
    r.arrived = arrived_from_.data();
    verdict_t verdict = verdict_of(dispatch_forward, mine);
    MXDNN_EP_CHECK(layer_->transport->agree_on_routing(r, verdict, stream, deadline));
    MXDNN_EP_CHECK(status_of(verdict, stages[dispatch_forward].name));
    sent_ = args.sent;
    arrived_ = std::accumulate(arrived_from_.begin(), arrived_from_.end(), dim_t(0));
    return mxdnn_success;
}

array_t step_t::outgoing(format_t format) const {
    const plan_t &p = layer_->plan;
    return array_at(layer_->scratchpad + p.outgoing, p.desc.max_rows, p.format(format));
}
array_t step_t::arrived(format_t format) const {
    const plan_t &p = layer_->plan;
    return array_at(layer_->scratchpad + p.arrived, p.desc.capacity, p.format(format));
}

status_t step_t::copy(
        const array_t &dst, const array_t &src, format_t format, dim_t rows, mxdnn_stream_t stream) {
    const row_format_t &f = layer_->plan.format(format);
    transport_t &t = *layer_->transport;
    MXDNN_EP_CHECK(t.copy(dst.codes, src.codes, size_t(rows) * f.codes, stream));
    return f.quantised() ? t.copy(dst.scales, src.scales, size_t(rows) * f.scales, stream) : mxdnn_success;
}

// The rows that are sent, quantised once each and then gathered. Messages that may be in memory of the caller
// take bf16 rows from there.
status_t step_t::fill_outgoing(int index, mxdnn_stream_t stream, const args_t &args, array_t &out) {
    const plan_t &p = layer_->plan;
    transport_t &t = *layer_->transport;
    const format_t format = stages[index].to_format;
    const row_format_t &f = p.format(format);
    array_t src = array_of(args.src, nullptr);
    if (f.quantised()) {
        const array_t codes =
                args.gather ? array_at(layer_->scratchpad + p.quantised, p.desc.max_tokens, f) : out;
        MXDNN_EP_CHECK(layer_->quantizers[int(format)]->run(stream, src.codes, codes, args.src_rows));
        src = codes;
    }
    if (args.gather)
        return t.gather(f, out, src, static_cast<const int32_t *>(data_of(args.gather)), args.sent,
                args.src_rows, stream);
    if (f.quantised()) return mxdnn_success;
    if (!t.in_stream_order()) return copy(out, src, format, args.src_rows, stream);
    out = src;
    return mxdnn_success;
}

status_t step_t::send(int index, mxdnn_stream_t stream, const args_t &args, status_t early) {
    transport_t &t = *layer_->transport;
    const stage_t &stage = stages[index];
    const time_point_t deadline = t.deadline();
    const bool dispatches = index == dispatch_forward;
    if (dispatches) { // a new pass: nothing of the one before counts
        pass_ = 0;
        failed_ = mxdnn_success;
    }
    array_t from = outgoing(stage.to_format);
    status_t mine = early != mxdnn_success ? early : take_failure();
    if (mine == mxdnn_success) mine = fill_outgoing(index, stream, args, from);
    if (dispatches)
        MXDNN_EP_CHECK(begin_pass(stream, args, mine, deadline));
    else
        MXDNN_EP_CHECK(agree(index, stream, mine, deadline));
    const bool to_caller = mine == mxdnn_success && args.dst, direct = to_caller && t.in_stream_order();
    const array_t to = direct ? array_of(args.dst, args.dst_scales) : arrived(stage.to_format);
    if (!direct) *tag_of(place_t::arrived) = 0;
    const splits_t splits = {sent_to_.data(), arrived_from_.data()};
    const row_format_t &f = layer_->plan.format(stage.to_format);
    MXDNN_EP_CHECK(t.exchange_rows(f, from, to, splits, stream, deadline));
    if (mine != mxdnn_success) return mine;
    if (dispatches) {
        pass_ = ++t.passes;
        serial_ = next_serial();
    }
    if (!direct) *tag_of(place_t::arrived) = tag(index);
    return to_caller && !direct
                   ? copy(array_of(args.dst, args.dst_scales), to, stage.to_format, arrived_, stream)
                   : mxdnn_success;
}

status_t step_t::bring(int index, mxdnn_stream_t stream, const args_t &args, status_t early) {
    transport_t &t = *layer_->transport;
    const time_point_t deadline = t.deadline();
    status_t mine = early != mxdnn_success ? early : take_failure();
    MXDNN_EP_CHECK(agree(index, stream, mine, deadline));
    const bool direct = mine == mxdnn_success && t.in_stream_order();
    const format_t format = format_t::bf16;
    array_t from = arrived(format), to = outgoing(format);
    if (direct) {
        to = array_of(args.dst, nullptr);
        if (args.src) from = array_of(args.src, nullptr);
    } else if (!t.in_stream_order() && args.src) {
        *tag_of(place_t::arrived) = 0;
        MXDNN_EP_CHECK(copy(from, array_of(args.src, nullptr), format, arrived_, stream));
    }
    const splits_t splits = {arrived_from_.data(), sent_to_.data()};
    MXDNN_EP_CHECK(t.exchange_rows(layer_->plan.format(format), from, to, splits, stream, deadline));
    if (mine != mxdnn_success || direct) return mine;
    return copy(array_of(args.dst, nullptr), to, format, sent_, stream);
}

status_t step_t::group(int index, mxdnn_stream_t stream, const args_t &args) {
    const stage_t &stage = stages[index];
    const memories_t &from = at(stage.from, stage.from_format), &to = at(stage.to, stage.to_format);
    mxdnn_exec_arg_t list[8] = {{MXDNN_ARG_SRC, args.src ? args.src : from.rows.get()},
            {MXDNN_ARG_DST, args.dst ? args.dst : to.rows.get()}, {MXDNN_ARG_GROUP_COUNTS, counts_.get()},
            {MXDNN_ARG_GROUP_OFFSETS, offsets_.get()}, {MXDNN_ARG_PERMUTED_IDX, indices_.get()}};
    int n = 5;
    if (from.scales) {
        list[n++] = {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, args.src ? args.src_scales : from.scales.get()};
        list[n++] = {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, args.dst ? args.dst_scales : to.scales.get()};
    }
    int64_t *holds = args.dst ? nullptr : tag_of(stage.to);
    if (holds) *holds = 0;
    MXDNN_EP_CHECK(
            pass_on(mxdnn_primitive_execute(layer_->group[int(stage.to_format)].get(), stream, n, list),
                    "moe_permute"));
    if (holds) *holds = tag(index);
    made_results(index) = 0;
    MXDNN_EP_CHECK(layer_->transport->clear(work<void>(layer_->plan.starts), sizeof(int32_t), stream));
    return args.offsets ? copy_offsets(args, stream) : mxdnn_success;
}

status_t step_t::copy_offsets(const args_t &args, mxdnn_stream_t stream) {
    const plan_t &p = layer_->plan;
    return layer_->transport->copy(data_of(args.offsets), work<int32_t>(p.starts) + 1,
            size_t(p.local_experts) * sizeof(int32_t), stream);
}

status_t step_t::ungroup(int index, mxdnn_stream_t stream, const args_t &args) {
    const stage_t &stage = stages[index];
    const mxdnn_exec_arg_t list[] = {{MXDNN_ARG_SRC, args.src ? args.src : results_.rows.get()},
            {MXDNN_ARG_PERMUTED_IDX, indices_.get()},
            {MXDNN_ARG_DST, args.dst ? args.dst : at(stage.to, stage.to_format).rows.get()}};
    int64_t *holds = args.dst ? nullptr : tag_of(stage.to);
    if (holds) *holds = 0;
    MXDNN_EP_CHECK(pass_on(mxdnn_primitive_execute(layer_->ungroup.get(), stream, 3, list), "moe_unpermute"));
    if (holds) *holds = tag(index);
    return mxdnn_success;
}

status_t step_t::compute(int index, dim_t chunk, mxdnn_stream_t stream) {
    const mxdnn_ep_layer_desc_t &d = layer_->plan.desc;
    const bool forward = is_forward(index);
    const mxdnn_ep_experts_fn_t experts = forward ? d.experts_forward : d.experts_backward;
    if (!experts)
        return fail(mxdnn_invalid_arguments,
                "the layer has no callback for it; set experts_%s in its descriptor",
                forward ? "forward" : "backward");
    if (kept_tag_ != tag(permute_forward))
        return fail(mxdnn_invalid_arguments, "permute forward has not written to the workspace in this pass");
    mxdnn_ep_expert_args_t args = {};
    args.src = kept_.rows.get();
    args.src_scales = kept_.scales.get(true);
    args.group_offsets = offsets_.get();
    args.group_counts = counts_.get();
    args.first_expert = chunk * layer_->plan.chunk_experts;
    args.experts = layer_->plan.chunk_experts;
    args.group_starts = starts_[size_t(chunk)].get();
    if (forward) {
        args.dst = results_.rows.get();
    } else {
        args.diff_dst = layer_->gradients.rows.get();
        args.diff_dst_scales = layer_->gradients.scales.get(true);
        args.diff_src = results_.rows.get();
    }
    int64_t &results = *tag_of(place_t::results);
    results = made_results(index) = 0;
    MXDNN_EP_CHECK(guarded("the callback", [&] {
        const status_t status = experts(d.user, stream, &args);
        return status == mxdnn_success ? status
                                       : fail(status, "the callback returned %s", mxdnn_status2str(status));
    }));
    results = made_results(index) = tag(index);
    return mxdnn_success;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
