// SPDX-License-Identifier: Apache-2.0
#include "ep/step.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

using dt = memory::data_type;
using tag_t = memory::format_tag;

std::atomic<int64_t> serials{0};

// Copies rows, or gathers them by their indices.
void copy_rows(uint8_t *dst, const uint8_t *src, size_t row_bytes, dim_t rows, const int32_t *indices) {
    if (rows == 0 || row_bytes == 0) return;
    if (!indices) {
        std::memcpy(dst, src, size_t(rows) * row_bytes);
        return;
    }
    for (dim_t r = 0; r < rows; r++)
        std::memcpy(dst + size_t(r) * row_bytes, src + size_t(indices[r]) * row_bytes, row_bytes);
}

void copy_array(
        const array_t &dst, const array_t &src, const row_format_t &f, dim_t rows, const int32_t *indices) {
    copy_rows(dst.codes, src.codes, f.codes, rows, indices);
    copy_rows(dst.scales, src.scales, f.scales, rows, indices);
}

array_t array_of(mxdnn_memory_t rows, mxdnn_memory_t scales) {
    return {static_cast<uint8_t *>(data_of(rows)),
            scales ? static_cast<uint8_t *>(data_of(scales)) : nullptr};
}

// Positions of consecutive parts; the number of rows.
dim_t positions_of(const int *counts, int *positions, dim_t n) {
    dim_t at = 0;
    for (dim_t i = 0; i < n; i++) {
        positions[i] = int(at);
        at += counts[i];
    }
    return at;
}

memory vector(const engine &eng, dim_t n, void *data) { return memory({{n}, dt::s32, tag_t::a}, eng, data); }

} // namespace

step_t::step_t(const std::shared_ptr<layer_t> &layer, void *workspace)
    : layer_(layer), owned_(allocate(workspace, layer->plan.workspace_size)),
      workspace_(owned_ ? owned_.get() : static_cast<uint8_t *>(workspace)) {
    const plan_t &p = layer->plan;
    const row_format_t &forward = p.format(format_t::forward);
    counts_ = memory({{p.ranks, p.local_experts}, dt::s32, tag_t::ab}, layer->eng, work<void>(p.counts));
    offsets_ = vector(layer->eng, p.local_experts, work<void>(p.offsets));
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
    int64_t *tags = layer_->scratch<int64_t>(layer_->plan.tags);
    switch (place) {
    case place_t::arrived: return &tags[0];
    case place_t::gradients: return &tags[1];
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
    if (place == place_t::caller) return nullptr;
    const memories_t &m = at(place, from ? stage.from_format : stage.to_format);
    return arg & MXDNN_ARG_ATTR_SCALES ? m.scales.get(true) : m.rows.get();
}

status_t step_t::check_begun(int index) const {
    if (!is_forward(index) && !layer_->plan.has_backward())
        return fail(mxdnn_invalid_arguments, "the layer has no backward pass; its backward_type is undef");
    if (index != dispatch_forward && pass_ == 0)
        return fail(mxdnn_invalid_arguments, "the step has no rows; dispatch forward comes first");
    return mxdnn_success;
}

// What the stage reads is from the stage before, of this pass.
status_t step_t::check_source(int index, const args_t &args) {
    const stage_t &stage = stages[index];
    const int64_t *found = tag_of(stage.from);
    if (args.src || !found) return mxdnn_success;
    for (int before = 0; before < stage_count; before++)
        if (*found == tag(before) && is_forward(before) == is_forward(index)
                && stages[before].to == stage.from)
            return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "SRC is not passed, and the stage before has not written it in this pass, or another stage has "
            "overwritten it");
}

status_t step_t::execute(int index, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *list) {
    const stage_t &stage = stages[index];
    args_t args;
    status_t status = check_begun(index);
    if (status == mxdnn_success) status = read_args(layer_->plan, index, sent_, nargs, list, args);
    if (status == mxdnn_success) status = check_source(index, args);
    // The other ranks have to hear of a failure.
    if (stage.op == op_t::send) return send(index, stream, args, status);
    if (stage.op == op_t::bring) return bring(index, args, status);
    if (status == mxdnn_success) status = execute_here(index, stream, args);
    failed_ = status;
    if (status != mxdnn_success) {
        fail(status, "%s: %s", stage.name, last_error());
        std::snprintf(why_, sizeof(why_), "%s", last_error());
    }
    return status;
}

status_t step_t::execute_here(int index, mxdnn_stream_t stream, const args_t &args) {
    switch (stages[index].op) {
    case op_t::group: return group(index, stream, args);
    case op_t::ungroup: return ungroup(index, stream, args);
    default: return compute(index, stream);
    }
}

// The failure of a stage before, which is reported once.
status_t step_t::take_failure() {
    const status_t status = failed_;
    failed_ = mxdnn_success;
    return status == mxdnn_success ? status : fail(status, "%s", why_);
}

// Asks all ranks whether they are ready for the same stage.
status_t step_t::agree(int index, status_t mine, time_point_t deadline) {
    transport_t &t = *layer_->transport;
    const int64_t values[] = {index, layer_->number, pass_};
    verdict_t verdict = make_verdict(mine, t.rank(), question_t::stage, values, 3);
    MXDNN_EP_CHECK(t.agree(verdict, deadline));
    return status_of(verdict, stages[index].name);
}

// Exchanges the counts of a dispatch, and asks all ranks whether there is room.
status_t step_t::agree_on_counts(const args_t &args, time_point_t deadline) {
    const plan_t &p = layer_->plan;
    transport_t &t = *layer_->transport;
    int32_t *to = layer_->scratch<int32_t>(p.send_counts), *from = layer_->scratch<int32_t>(p.recv_counts);
    std::memcpy(to, data_of(args.counts), size_t(p.desc.experts) * sizeof(int32_t));
    MXDNN_EP_CHECK(t.exchange_counts(to, from, int(p.local_experts), deadline));
    dim_t rows = 0;
    for (dim_t e = 0; e < p.desc.experts; e++) rows += from[e];
    status_t mine = mxdnn_success;
    if (rows > p.desc.capacity)
        mine = fail(mxdnn_invalid_arguments, "%lld rows would arrive; the capacity is %lld",
                static_cast<long long>(rows), static_cast<long long>(p.desc.capacity));
    verdict_t verdict = make_verdict(mine, t.rank(), question_t::counts, nullptr, 0);
    MXDNN_EP_CHECK(t.agree(verdict, deadline));
    MXDNN_EP_CHECK(status_of(verdict, stages[dispatch_forward].name));
    std::memcpy(work<int32_t>(p.counts), from, size_t(p.desc.experts) * sizeof(int32_t));
    for (dim_t r = 0; r < p.ranks; r++)
        work<int32_t>(p.sent)[r] =
                std::accumulate(to + r * p.local_experts, to + (r + 1) * p.local_experts, 0);
    sent_ = args.sent;
    arrived_ = rows;
    return mxdnn_success;
}

// Rows between the arrays of outgoing and of arrived rows; forth or back.
status_t step_t::exchange(format_t format, bool forth, time_point_t deadline) {
    const plan_t &p = layer_->plan;
    const row_format_t &f = p.format(format);
    // Messages read the splits as long as they are under way, so that these are in the scratchpad.
    int *sent = layer_->scratch<int>(p.splits), *sent_at = sent + p.ranks, *arrived = sent_at + p.ranks,
        *arrived_at = arrived + p.ranks;
    const int32_t *counts = work<int32_t>(p.counts);
    for (dim_t r = 0; r < p.ranks; r++) {
        sent[r] = work<int32_t>(p.sent)[r];
        arrived[r] = std::accumulate(counts + r * p.local_experts, counts + (r + 1) * p.local_experts, 0);
    }
    positions_of(sent, sent_at, p.ranks);
    positions_of(arrived, arrived_at, p.ranks);
    const splits_t splits = forth ? splits_t{sent, sent_at, arrived, arrived_at}
                                  : splits_t{arrived, arrived_at, sent, sent_at};
    const array_t here = array_at(layer_->scratchpad + p.outgoing, p.desc.max_rows, f);
    const array_t there = array_at(layer_->scratchpad + p.arrived, p.desc.capacity, f);
    const array_t &from = forth ? here : there, &to = forth ? there : here;
    const rows_t rows[] = {{from.codes, to.codes, layer_->row_types[int(format)]},
            {from.scales, to.scales, layer_->scale_types[int(format)]}};
    return layer_->transport->exchange_rows(rows, f.quantised() ? 2 : 1, splits, deadline);
}

// The rows that are sent, quantised once each and then gathered.
status_t step_t::fill_outgoing(int index, mxdnn_stream_t stream, const args_t &args) {
    const plan_t &p = layer_->plan;
    const format_t format = stages[index].to_format;
    const row_format_t &f = p.format(format);
    const array_t outgoing = array_at(layer_->scratchpad + p.outgoing, p.desc.max_rows, f);
    const int32_t *indices = args.gather ? static_cast<const int32_t *>(data_of(args.gather)) : nullptr;
    array_t src = array_of(args.src, nullptr);
    if (f.quantised()) {
        const array_t codes =
                indices ? array_at(layer_->scratchpad + p.quantised, p.desc.max_tokens, f) : outgoing;
        MXDNN_EP_CHECK(layer_->quantizers[int(format)]->run(stream, src.codes, codes, args.src_rows));
        src = codes;
    }
    if (indices || !f.quantised()) copy_array(outgoing, src, f, indices ? args.sent : args.src_rows, indices);
    return mxdnn_success;
}

status_t step_t::send(int index, mxdnn_stream_t stream, const args_t &args, status_t early) {
    const plan_t &p = layer_->plan;
    const stage_t &stage = stages[index];
    const time_point_t deadline = layer_->transport->deadline();
    const bool dispatches = index == dispatch_forward;
    if (dispatches) { // a new pass: nothing of the one before counts
        pass_ = 0;
        failed_ = mxdnn_success;
    }
    status_t mine = early != mxdnn_success ? early : take_failure();
    if (mine == mxdnn_success) mine = fill_outgoing(index, stream, args);
    MXDNN_EP_CHECK(agree(index, mine, deadline));
    if (dispatches) MXDNN_EP_CHECK(agree_on_counts(args, deadline));
    *tag_of(place_t::arrived) = 0;
    MXDNN_EP_CHECK(exchange(stage.to_format, true, deadline));
    if (dispatches) {
        pass_ = ++layer_->transport->passes;
        serial_ = ++serials;
    }
    *tag_of(place_t::arrived) = tag(index);
    const memories_t &arrived = at(place_t::arrived, stage.to_format);
    if (args.dst)
        copy_array(array_of(args.dst, args.dst_scales),
                array_of(arrived.rows.get(), arrived.scales.get(true)), p.format(stage.to_format), arrived_,
                nullptr);
    return mxdnn_success;
}

status_t step_t::bring(int index, const args_t &args, status_t early) {
    const plan_t &p = layer_->plan;
    const row_format_t &f = p.format(format_t::bf16);
    const time_point_t deadline = layer_->transport->deadline();
    MXDNN_EP_CHECK(agree(index, early != mxdnn_success ? early : take_failure(), deadline));
    if (args.src) {
        *tag_of(place_t::arrived) = 0;
        copy_array(array_of(at(place_t::arrived, format_t::bf16).rows.get(), nullptr),
                array_of(args.src, nullptr), f, arrived_, nullptr);
    }
    MXDNN_EP_CHECK(exchange(format_t::bf16, false, deadline));
    copy_array(array_of(args.dst, nullptr), array_at(layer_->scratchpad + p.outgoing, p.desc.max_rows, f), f,
            sent_, nullptr);
    return mxdnn_success;
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
    if (args.offsets)
        std::memcpy(data_of(args.offsets), work<void>(layer_->plan.offsets),
                size_t(layer_->plan.local_experts) * sizeof(int32_t));
    return mxdnn_success;
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

status_t step_t::compute(int index, mxdnn_stream_t stream) {
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
    if (forward) {
        args.dst = results_.rows.get();
    } else {
        args.diff_dst = layer_->gradients.rows.get();
        args.diff_dst_scales = layer_->gradients.scales.get(true);
        args.diff_src = results_.rows.get();
    }
    const status_t status = experts(d.user, stream, &args);
    if (status != mxdnn_success) return fail(status, "the callback returned %s", mxdnn_status2str(status));
    return mxdnn_success;
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
