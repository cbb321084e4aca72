// SPDX-License-Identifier: Apache-2.0
/// @file
/// C++ wrapper of mxdnn_ep.h: expert parallelism (doc/ep.md). A call that fails throws mxdnn::error with the
/// sentence of mxdnn_ep_get_last_error().
#ifndef MXDNN_EP_HPP
#define MXDNN_EP_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_ep.h"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_ep_comm_t> {
    static void destroy(mxdnn_ep_comm_t p) { mxdnn_ep_comm_destroy(p); }
};
template <>
struct handle_traits<mxdnn_ep_layer_t> {
    static void destroy(mxdnn_ep_layer_t p) { mxdnn_ep_layer_destroy(p); }
};
template <>
struct handle_traits<mxdnn_ep_step_t> {
    static void destroy(mxdnn_ep_step_t p) { mxdnn_ep_step_destroy(p); }
};

/// Expert parallelism: rows travel to the ranks that have their experts, and back.
namespace ep {

/// What carries the rows.
enum class transport {
    mpi = mxdnn_ep_mpi,
    nccl = mxdnn_ep_nccl,
    nccl_direct = mxdnn_ep_nccl_direct,
};

/// The stages of an expert-parallel layer.
enum class stage {
    dispatch = mxdnn_ep_dispatch,
    permute = mxdnn_ep_permute,
    experts = mxdnn_ep_experts,
    unpermute = mxdnn_ep_unpermute,
    combine = mxdnn_ep_combine,
};

/// Which pass a stage belongs to.
enum class direction {
    forward = mxdnn_ep_forward,
    backward = mxdnn_ep_backward,
};

/// Throws for anything but success, with the sentence of mxdnn_ep_get_last_error().
inline void wrap_c_api(mxdnn_status_t status) {
    if (status != mxdnn_success) error::raise(status, mxdnn_ep_get_last_error());
}

/// A communicator of this library, over one of the caller.
struct communicator : public handle<mxdnn_ep_comm_t> {
    /// Empty.
    communicator() = default;
    /// Over an MPI_Comm or an ncclComm_t; collective. A call waits for other ranks for `timeout_ms`.
    template <typename comm_t>
    communicator(const engine &aengine, transport atransport, const comm_t &acomm, int64_t timeout_ms) {
        mxdnn_ep_comm_t c = nullptr;
        // NOLINTNEXTLINE(bugprone-sizeof-expression): a communicator may be a pointer
        constexpr size_t size = sizeof(comm_t);
        wrap_c_api(mxdnn_ep_comm_create(
                &c, aengine.get(), static_cast<mxdnn_ep_transport_t>(atransport), &acomm, size, timeout_ms));
        reset(c);
    }
    /// The number of this rank.
    int rank() const {
        int r = 0;
        wrap_c_api(mxdnn_ep_comm_get_rank(get(), &r));
        return r;
    }
    /// The number of ranks.
    int size() const {
        int n = 0;
        wrap_c_api(mxdnn_ep_comm_get_size(get(), &n));
        return n;
    }
    /// Waits for the work of a stream and for the other ranks, at most for the timeout; collective.
    void wait(const stream &astream) const { wrap_c_api(mxdnn_ep_comm_wait(get(), astream.get())); }
};

/// The shapes, the precisions and the temporary memory of expert-parallel layers.
struct layer : public handle<mxdnn_ep_layer_t> {
    /// A layer without callbacks and with bf16 rows in both directions, to be filled in.
    struct desc : public mxdnn_ep_layer_desc_t {
        /// The four sizes that every layer has. Capacity is enough for any counts.
        desc(memory::dim ahidden, memory::dim aexperts, memory::dim amax_tokens, memory::dim amax_rows)
            : mxdnn_ep_layer_desc_t() {
            struct_size = sizeof(mxdnn_ep_layer_desc_t);
            hidden = ahidden;
            experts = aexperts;
            max_tokens = amax_tokens;
            max_rows = amax_rows;
            alignment = 1;
            forward_type = backward_type = mxdnn_bf16;
        }
    };
    /// Bytes of temporary memory, and of what a step keeps.
    struct memory_sizes {
        size_t scratchpad; ///< temporary memory, which layers may share
        size_t workspace;  ///< of each step
    };

    /// Empty.
    layer() = default;
    /// Collective. `scratchpad` is memory of the caller, or the library allocates it.
    layer(const communicator &comm, const desc &adesc, void *scratchpad = MXDNN_MEMORY_ALLOCATE) {
        mxdnn_ep_layer_t l = nullptr;
        wrap_c_api(mxdnn_ep_layer_create(&l, comm.get(), &adesc, scratchpad));
        reset(l);
    }
    /// How much memory a layer needs.
    static memory_sizes get_memory_sizes(const communicator &comm, const desc &adesc) {
        memory_sizes s = {0, 0};
        wrap_c_api(mxdnn_ep_layer_get_memory_sizes(comm.get(), &adesc, &s.scratchpad, &s.workspace));
        return s;
    }
};

/// One pass through a layer: what its forward stages leave for the backward ones.
struct step : public handle<mxdnn_ep_step_t> {
    /// Empty.
    step() = default;
    /// `workspace` is memory of the caller, or the library allocates it.
    explicit step(const layer &alayer, void *workspace = MXDNN_MEMORY_ALLOCATE) {
        mxdnn_ep_step_t s = nullptr;
        wrap_c_api(mxdnn_ep_step_create(&s, alayer.get(), workspace));
        reset(s);
    }
    /// Executes a stage, for all chunks.
    void execute(stage astage, direction adirection, const stream &astream,
            const std::unordered_map<int, memory> &args = {}) const {
        const list list_of(args);
        wrap_c_api(mxdnn_ep_execute(get(), static_cast<mxdnn_ep_stage_t>(astage),
                static_cast<mxdnn_ep_direction_t>(adirection), astream.get(), list_of.n, list_of.args));
    }
    /// Executes a stage for the rows of one chunk of the experts.
    void execute_chunk(stage astage, direction adirection, memory::dim chunk, const stream &astream,
            const std::unordered_map<int, memory> &args = {}) const {
        const list list_of(args);
        wrap_c_api(mxdnn_ep_execute_chunk(get(), static_cast<mxdnn_ep_stage_t>(astage),
                static_cast<mxdnn_ep_direction_t>(adirection), chunk, astream.get(), list_of.n,
                list_of.args));
    }
    /// The memory that a stage uses if `arg` is not passed. This object has to outlive it.
    memory get_memory(stage astage, direction adirection, int arg) const {
        mxdnn_memory_t m = nullptr;
        wrap_c_api(mxdnn_ep_step_get_memory(get(), static_cast<mxdnn_ep_stage_t>(astage),
                static_cast<mxdnn_ep_direction_t>(adirection), arg, &m));
        return memory(m, true);
    }
    /// The arguments of a grouped_matmul that computes all experts in place of a callback, but for the
    /// weights: rows and their scales, ends of the groups, and where the next stage expects results.
    std::unordered_map<int, memory> get_expert_args(direction adirection) const {
        const bool ahead = adirection == direction::forward;
        const stage before = ahead ? stage::permute : stage::unpermute,
                    after = ahead ? stage::unpermute : stage::permute;
        std::unordered_map<int, memory> args;
        args[MXDNN_ARG_SRC] = get_memory(before, adirection, MXDNN_ARG_DST);
        if (args[MXDNN_ARG_SRC].get_desc().get_data_type() != memory::data_type::bf16)
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                    get_memory(before, adirection, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        args[MXDNN_ARG_GROUP_OFFSETS] =
                get_memory(stage::permute, direction::forward, MXDNN_ARG_GROUP_OFFSETS);
        args[MXDNN_ARG_DST] = get_memory(after, adirection, MXDNN_ARG_SRC);
        return args;
    }
    /// How many rows the last dispatch has brought.
    memory::dim arrived() const {
        memory::dim rows = 0;
        wrap_c_api(mxdnn_ep_step_get_arrived(get(), &rows));
        return rows;
    }

private:
    struct list {
        enum { most = 8 }; // no stage has more
        mxdnn_exec_arg_t args[most];
        int n = 0;

        explicit list(const std::unordered_map<int, memory> &all) {
            for (const auto &a : all) {
                if (n == most)
                    error::raise(mxdnn_invalid_arguments, "a stage has fewer arguments than were passed");
                args[n].arg = a.first;
                args[n].memory = a.second.get(true);
                n++;
            }
        }
    };
};

} // namespace ep
} // namespace mxdnn

#endif
