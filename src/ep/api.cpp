// SPDX-License-Identifier: Apache-2.0
#include "ep/step.hpp"

using namespace mxdnn::ep::impl;

// The caller's handles.
struct mxdnn_ep_comm {
    std::shared_ptr<transport_t> transport;
    mxdnn::engine eng;
};
struct mxdnn_ep_layer {
    std::shared_ptr<layer_t> layer;
};
struct mxdnn_ep_step {
    step_t step;
};

namespace {

status_t check_not_null(const void *p, const char *function, const char *name) {
    return p ? mxdnn_success : fail(mxdnn_invalid_arguments, "%s: %s is a null pointer", function, name);
}

status_t check_memory_of_caller(const void *p, const char *function, const char *name) {
    if (p && (p == MXDNN_MEMORY_ALLOCATE || reinterpret_cast<uintptr_t>(p) % 64 == 0)) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "%s: %s is %p; it has to be a multiple of 64 that is not null, or MXDNN_MEMORY_ALLOCATE",
            function, name, p);
}

status_t find_stage(
        const char *function, mxdnn_ep_stage_t stage, mxdnn_ep_direction_t direction, int &index) {
    if (int(stage) < mxdnn_ep_dispatch || int(stage) > mxdnn_ep_combine)
        return fail(mxdnn_invalid_arguments, "%s: stage is %d, which is no stage", function, int(stage));
    if (direction != mxdnn_ep_forward && direction != mxdnn_ep_backward)
        return fail(mxdnn_invalid_arguments, "%s: direction is %d, which is no direction", function,
                int(direction));
    index = index_of(stage, direction);
    return mxdnn_success;
}

} // namespace

#define MXDNN_EP_CHECK_ARG(p) MXDNN_EP_CHECK(check_not_null(p, __func__, #p))

mxdnn_status_t mxdnn_ep_comm_create(mxdnn_ep_comm_t *comm, mxdnn_engine_t engine,
        mxdnn_ep_transport_t transport, const void *communicator, size_t size, int64_t timeout_ms) {
    MXDNN_EP_CHECK_ARG(comm);
    MXDNN_EP_CHECK_ARG(engine);
    MXDNN_EP_CHECK_ARG(communicator);
    const transport_info_t *info = find_transport(transport);
    if (!info)
        return fail(mxdnn_invalid_arguments, "%s: transport is %d, which is no transport", __func__,
                int(transport));
    constexpr int64_t day = 24 * 3600 * 1000;
    if (timeout_ms < 1 || timeout_ms > day)
        return fail(mxdnn_invalid_arguments, "%s: timeout_ms is %lld; possible are 1 to %lld", __func__,
                static_cast<long long>(timeout_ms), static_cast<long long>(day));
    mxdnn_engine_kind_t kind = mxdnn_any_engine;
    MXDNN_EP_CHECK(pass_on(mxdnn_engine_get_kind(engine, &kind), __func__));
    if (kind != info->engine_kind)
        return fail(mxdnn_invalid_arguments, "%s: the engine is of another kind than %s needs", __func__,
                info->name);
    if (!info->create)
        return fail(mxdnn_unimplemented, "%s: this build of the library has no transport over %s", __func__,
                info->name);
    return guarded(__func__, [&] {
        auto c = std::make_unique<mxdnn_ep_comm>();
        c->eng.reset(engine, /* weak, since engines are never freed */ true);
        c->transport = info->create(c->eng, communicator, size, std::chrono::milliseconds(timeout_ms));
        *comm = c.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_ep_comm_get_rank(mxdnn_ep_comm_t comm, int *rank) {
    MXDNN_EP_CHECK_ARG(comm);
    MXDNN_EP_CHECK_ARG(rank);
    *rank = comm->transport->rank();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_comm_get_size(mxdnn_ep_comm_t comm, int *size) {
    MXDNN_EP_CHECK_ARG(comm);
    MXDNN_EP_CHECK_ARG(size);
    *size = comm->transport->size();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_comm_wait(mxdnn_ep_comm_t comm, mxdnn_stream_t stream) {
    MXDNN_EP_CHECK_ARG(comm);
    MXDNN_EP_CHECK_ARG(stream);
    MXDNN_EP_CHECK(check_stream(comm->eng, stream, __func__));
    transport_t &t = *comm->transport;
    verdict_t verdict = make_verdict(mxdnn_success, t.rank(), question_t::wait, nullptr, 0);
    MXDNN_EP_CHECK(t.agree(verdict, stream, t.deadline()));
    return status_of(verdict, __func__);
}

mxdnn_status_t mxdnn_ep_comm_destroy(mxdnn_ep_comm_t comm) {
    delete comm;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_layer_get_memory_sizes(
        mxdnn_ep_comm_t comm, const mxdnn_ep_layer_desc_t *desc, size_t *scratchpad, size_t *workspace) {
    MXDNN_EP_CHECK_ARG(comm);
    MXDNN_EP_CHECK_ARG(scratchpad);
    MXDNN_EP_CHECK_ARG(workspace);
    plan_t plan;
    MXDNN_EP_CHECK(make_plan(desc, comm->eng.get(), *comm->transport, plan));
    *scratchpad = plan.scratchpad_size;
    *workspace = plan.workspace_size;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_layer_create(
        mxdnn_ep_layer_t *layer, mxdnn_ep_comm_t comm, const mxdnn_ep_layer_desc_t *desc, void *scratchpad) {
    MXDNN_EP_CHECK_ARG(layer);
    MXDNN_EP_CHECK_ARG(comm);
    transport_t &t = *comm->transport;
    // What fails here is a verdict: the other ranks hear of it, too.
    plan_t plan = {};
    std::unique_ptr<mxdnn_ep_layer> l;
    status_t mine = check_memory_of_caller(scratchpad, __func__, "scratchpad");
    if (mine == mxdnn_success) mine = make_plan(desc, comm->eng.get(), t, plan);
    if (mine == mxdnn_success)
        mine = guarded(__func__, [&] {
            l = std::make_unique<mxdnn_ep_layer>();
            l->layer = std::make_shared<layer_t>(comm->transport, comm->eng, plan, scratchpad);
            return mxdnn_success;
        });
    const mxdnn_ep_layer_desc_t &d = plan.desc;
    const int64_t values[] = {d.hidden, d.experts, d.max_tokens, d.max_rows, d.capacity, d.alignment,
            d.forward_type, d.backward_type, d.chunks, t.layers};
    verdict_t verdict = make_verdict(mine, t.rank(), question_t::layer, values, 10);
    MXDNN_EP_CHECK(t.agree(verdict, nullptr, t.deadline()));
    MXDNN_EP_CHECK(status_of(verdict, __func__));
    l->layer->number = t.layers++;
    *layer = l.release();
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_layer_destroy(mxdnn_ep_layer_t layer) {
    delete layer;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_step_create(mxdnn_ep_step_t *step, mxdnn_ep_layer_t layer, void *workspace) {
    MXDNN_EP_CHECK_ARG(step);
    MXDNN_EP_CHECK_ARG(layer);
    MXDNN_EP_CHECK(check_memory_of_caller(workspace, __func__, "workspace"));
    return guarded(__func__, [&] {
        *step = new mxdnn_ep_step{step_t(layer->layer, workspace)};
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_ep_execute(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage, mxdnn_ep_direction_t direction,
        mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args) {
    MXDNN_EP_CHECK_ARG(step);
    MXDNN_EP_CHECK_ARG(stream);
    int index = 0;
    MXDNN_EP_CHECK(find_stage(__func__, stage, direction, index));
    return guarded(__func__, [&] { return step->step.execute(index, stream, nargs, args); });
}

mxdnn_status_t mxdnn_ep_execute_chunk(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage,
        mxdnn_ep_direction_t direction, mxdnn_dim_t chunk, mxdnn_stream_t stream, int nargs,
        const mxdnn_exec_arg_t *args) {
    MXDNN_EP_CHECK_ARG(step);
    MXDNN_EP_CHECK_ARG(stream);
    int index = 0;
    MXDNN_EP_CHECK(find_stage(__func__, stage, direction, index));
    return guarded(__func__, [&] { return step->step.execute(index, chunk, stream, nargs, args); });
}

mxdnn_status_t mxdnn_ep_step_get_memory(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage,
        mxdnn_ep_direction_t direction, int arg, mxdnn_memory_t *memory) {
    MXDNN_EP_CHECK_ARG(step);
    MXDNN_EP_CHECK_ARG(memory);
    int index = 0;
    MXDNN_EP_CHECK(find_stage(__func__, stage, direction, index));
    const mxdnn_memory_t m = step->step.default_of(index, arg);
    if (!m)
        return fail(mxdnn_invalid_arguments, "%s: %s has no memory of its own for argument %d", __func__,
                stages[index].name, arg);
    *memory = m;
    return mxdnn_success;
}

mxdnn_status_t mxdnn_ep_step_get_arrived(mxdnn_ep_step_t step, mxdnn_dim_t *rows) {
    MXDNN_EP_CHECK_ARG(step);
    MXDNN_EP_CHECK_ARG(rows);
    *rows = step->step.arrived_rows();
    if (*rows >= 0) return mxdnn_success;
    return fail(mxdnn_unimplemented,
            "%s: the host does not know over this transport; the device has the counts", __func__);
}

mxdnn_status_t mxdnn_ep_step_destroy(mxdnn_ep_step_t step) {
    delete step;
    return mxdnn_success;
}

const char *mxdnn_ep_get_last_error(void) { return last_error(); }
