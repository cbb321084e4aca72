/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Expert parallelism: rows travel to the ranks that have their experts, and back (doc/ep.md). The functions
 * are in libmxdnn_ep, the component `ep`. The header needs no header of MPI, NCCL or CUDA.
 *
 * A layer has five stages: dispatch, permute, experts, unpermute, combine. The backward pass has the same
 * stages in the opposite order. Dispatch and combine are collective: every rank of the communicator calls
 * them, in the same order. The others work on this rank alone.
 *
 * **Errors.** Before rows move, all ranks agree that they can: if one refuses, or if two ranks disagree, the
 * stage fails on every rank with the same status and sentence. Nothing was exchanged then, and the next call
 * may succeed. If ranks do not answer until the timeout, every rank that waits gets mxdnn_runtime_error. The
 * communicator is of no further use then.
 *
 * **Over NCCL** stages are put into the stream. Dispatch forward waits for the device, since the host has to
 * know how many rows come, and the ranks agree there. The other stages wait for nothing: a rank that refuses
 * takes part with other rows, and the other ranks hear of it in the next dispatch or mxdnn_ep_comm_wait().
 *
 * Sentences of these functions are those of mxdnn_ep_get_last_error(). Statuses, ownership and threads are as
 * in mxdnn.h. One thread at a time uses a communicator and what was created on it. */
#ifndef MXDNN_EP_H
#define MXDNN_EP_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What carries the rows. */
typedef enum {
    mxdnn_ep_mpi = 0,  /**< MPI 3.1, between CPU engines; the communicator is an MPI_Comm */
    mxdnn_ep_nccl = 1, /**< NCCL 2.18, between CUDA engines; the communicator is an ncclComm_t */
    /** NCCL 2.28 and its device API, between CUDA devices that reach each other's memory (NVLink). Rows are
     * written straight into the groups of the experts. No stage waits, and stages may be captured in CUDA
     * graphs. doc/ep.md says what differs. */
    mxdnn_ep_nccl_direct = 2
} mxdnn_ep_transport_t;

/** The stages of an expert-parallel layer. */
typedef enum {
    mxdnn_ep_dispatch = 0,  /**< rows to the ranks of their experts, quantised where the layer says so */
    mxdnn_ep_permute = 1,   /**< from the order of ranks to the order of experts, with padding */
    mxdnn_ep_experts = 2,   /**< the callback of the layer */
    mxdnn_ep_unpermute = 3, /**< back to the order of ranks, without padding */
    mxdnn_ep_combine = 4    /**< results to the ranks that sent the rows */
} mxdnn_ep_stage_t;

/** Which pass a stage belongs to. The backward form of a stage moves gradients from where its forward form
 * wrote to where it read. */
typedef enum {
    mxdnn_ep_forward = 0, /**< activations */
    mxdnn_ep_backward = 1 /**< gradients */
} mxdnn_ep_direction_t;

/** Communicators of this library, over one of the caller. */
typedef struct mxdnn_ep_comm *mxdnn_ep_comm_t;
/** The shapes, the precisions and the temporary memory of expert-parallel layers. */
typedef struct mxdnn_ep_layer *mxdnn_ep_layer_t;
/** One pass through a layer: what its forward stages leave for the backward ones. */
typedef struct mxdnn_ep_step *mxdnn_ep_step_t;

/** What experts read and write. Rows are {padded rows, hidden}, in groups. Group e has the rows of local
 * expert e and its padding, and ends before row group_offsets[e]. Scales are NULL for bf16 rows. In a layer
 * with chunks a call is for those of one, and only their rows are there. */
typedef struct {
    mxdnn_memory_t src;           /**< rows, of the layer's forward type */
    mxdnn_memory_t src_scales;    /**< their e8m0 scales {padded rows, hidden / 32} */
    mxdnn_memory_t group_offsets; /**< s32 {local experts}: ends of the groups */
    mxdnn_memory_t group_counts;  /**< s32 {ranks, local experts}: rows of each rank for each expert */
    mxdnn_memory_t dst;           /**< forward: results to write, bf16; backward: NULL */
    mxdnn_memory_t diff_dst;      /**< backward: gradients of the results, of the backward type; else NULL */
    mxdnn_memory_t diff_dst_scales; /**< their scales */
    mxdnn_memory_t diff_src;        /**< backward: gradients of the rows to write, bf16; else NULL */
    mxdnn_dim_t first_expert;       /**< the first local expert of the call */
    mxdnn_dim_t experts;            /**< and how many there are */
    mxdnn_memory_t group_starts;    /**< s32 {experts + 1}: starts of their groups, and the last end */
} mxdnn_ep_expert_args_t;

/** Computes the experts of this rank. A status other than mxdnn_success, or an exception, fails the stage
 * here, and the next collective stage on every rank. */
typedef mxdnn_status_t (*mxdnn_ep_experts_fn_t)(
        void *user, mxdnn_stream_t stream, const mxdnn_ep_expert_args_t *args);

/** A layer. Every rank passes the same values, but for the callbacks. */
typedef struct {
    /** sizeof(mxdnn_ep_layer_desc_t). Later versions of the library learn from it which members there are. */
    size_t struct_size;
    /** Columns of a row. A multiple of 32 where rows are quantised. */
    mxdnn_dim_t hidden;
    /** Experts of all ranks, a multiple of the number of ranks. Rank r has those from r * experts / ranks on.
     */
    mxdnn_dim_t experts;
    /** The most rows of the source of a dispatch on one rank. */
    mxdnn_dim_t max_tokens;
    /** The most rows that a rank sends in a step; max_tokens times the experts of a token. */
    mxdnn_dim_t max_rows;
    /** The most rows that a rank receives in a step. 0: enough for any counts, ranks * max_rows. */
    mxdnn_dim_t capacity;
    /** The rows of each expert are padded to a multiple of this, at least once. */
    mxdnn_dim_t alignment;
    /** Rows that dispatch sends: mxdnn_bf16, mxdnn_f8_e4m3 (MXFP8) or mxdnn_f4_e2m1 (MXFP4). */
    mxdnn_data_type_t forward_type;
    /** Gradients that the backward form of combine sends: mxdnn_bf16 or mxdnn_f8_e4m3 (MXFP8).
     * mxdnn_data_type_undef: no backward pass. */
    mxdnn_data_type_t backward_type;
    /** Passed to the callbacks; may be NULL. */
    void *user;
    /** Parts of the local experts whose rows may move one after the other, mxdnn_ep_execute_chunk(). It
     * divides the local experts. 0: one. */
    mxdnn_dim_t chunks;
    /** The forward experts. NULL: the stage is not used. */
    mxdnn_ep_experts_fn_t experts_forward;
    /** The backward experts. NULL: the stage is not used. */
    mxdnn_ep_experts_fn_t experts_backward;
} mxdnn_ep_layer_desc_t;

/** Creates a communicator over one of the caller; collective. `communicator` points to the caller's MPI_Comm
 * or ncclComm_t, and `size` is the size of that handle. It is duplicated, so that messages do not meet those
 * of the caller; ncclCommSplit() does it for NCCL, and ends when all ranks have called. `timeout_ms` is how
 * long a call waits for other ranks, at least 1. `engine` is where rows are.
 *
 * mxdnn_unimplemented: this build has no such transport. */
mxdnn_status_t MXDNN_API mxdnn_ep_comm_create(mxdnn_ep_comm_t *comm, mxdnn_engine_t engine,
        mxdnn_ep_transport_t transport, const void *communicator, size_t size, int64_t timeout_ms);
/** Writes the number of this rank, from 0 on. */
mxdnn_status_t MXDNN_API mxdnn_ep_comm_get_rank(mxdnn_ep_comm_t comm, int *rank);
/** Writes the number of ranks. */
mxdnn_status_t MXDNN_API mxdnn_ep_comm_get_size(mxdnn_ep_comm_t comm, int *size);
/** Waits for the work of a stream, and for the other ranks, at most for the timeout; collective. Fails on
 * every rank if a stage that did not agree has failed on any since the last dispatch or call of this
 * function. A program over NCCL waits with it rather than with cudaStreamSynchronize(), which waits for a
 * dead rank forever. */
mxdnn_status_t MXDNN_API mxdnn_ep_comm_wait(mxdnn_ep_comm_t comm, mxdnn_stream_t stream);
/** Destroys a communicator. Layers on it stay valid. Over NCCL it is destroyed with the last of them, on all
 * ranks, when their streams have ended. */
mxdnn_status_t MXDNN_API mxdnn_ep_comm_destroy(mxdnn_ep_comm_t comm);

/** Writes how many bytes a layer needs: `scratchpad`, temporary memory of the stages, and `workspace`, which
 * a step keeps from its forward to its backward pass. */
mxdnn_status_t MXDNN_API mxdnn_ep_layer_get_memory_sizes(
        mxdnn_ep_comm_t comm, const mxdnn_ep_layer_desc_t *desc, size_t *scratchpad, size_t *workspace);
/** Creates a layer; collective. `scratchpad` is memory of the caller, of the engine's device, at a multiple
 * of 64 bytes, which several layers may share, or MXDNN_MEMORY_ALLOCATE. mxdnn_invalid_arguments on every
 * rank: the ranks disagree.
 *
 * Steps that take turns in one scratchpad must not pass each other between a stage and the next one that
 * reads its result there; that is refused. Messages that were under way when a stage timed out may be
 * written later: a scratchpad of the caller must then stay until MPI has ended. The library does not free
 * its own then. No other memory is concerned. */
mxdnn_status_t MXDNN_API mxdnn_ep_layer_create(
        mxdnn_ep_layer_t *layer, mxdnn_ep_comm_t comm, const mxdnn_ep_layer_desc_t *desc, void *scratchpad);
/** Destroys a layer. Steps of it stay valid. */
mxdnn_status_t MXDNN_API mxdnn_ep_layer_destroy(mxdnn_ep_layer_t layer);

/** Creates a step. `workspace` is memory of the caller at a multiple of 64 bytes, or MXDNN_MEMORY_ALLOCATE. A
 * step may be used again and again. Each pass that waits for its backward stages needs a step of its own. */
mxdnn_status_t MXDNN_API mxdnn_ep_step_create(mxdnn_ep_step_t *step, mxdnn_ep_layer_t layer, void *workspace);
/** Executes a stage. It allocates nothing in the thread that created the layer. Each stage reads
 * MXDNN_ARG_SRC and writes MXDNN_ARG_DST, in both directions, with MXDNN_ARG_ATTR_SCALES where rows are
 * quantised. What is not passed is in the scratchpad or the workspace. doc/ep.md has the arguments of each
 * stage.
 *
 * A failure of a stage that is not collective is also reported to all ranks by the next collective stage
 * that is called, unless a stage has succeeded in between. */
mxdnn_status_t MXDNN_API mxdnn_ep_execute(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage,
        mxdnn_ep_direction_t direction, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args);
/** Executes a stage for the rows of one chunk of the local experts of every rank. mxdnn_ep_execute() does so
 * for all chunks. The chunks of a stage are executed in order, 0 first, with the same arguments. They may be
 * in another stream than those of other stages: the caller sees to it that a stage reads what has been
 * written, and that dispatch and combine are all in one stream. mxdnn_ep_comm_wait() is for that one.
 *
 * Over MPI and mxdnn_ep_nccl all rows arrive with the first chunk and go back with the last one. */
mxdnn_status_t MXDNN_API mxdnn_ep_execute_chunk(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage,
        mxdnn_ep_direction_t direction, mxdnn_dim_t chunk, mxdnn_stream_t stream, int nargs,
        const mxdnn_exec_arg_t *args);
/** Writes the memory that a stage uses if `arg` is not passed. It lives as long as the step.
 * mxdnn_invalid_arguments: the caller has to pass it, or the stage does not have it. */
mxdnn_status_t MXDNN_API mxdnn_ep_step_get_memory(mxdnn_ep_step_t step, mxdnn_ep_stage_t stage,
        mxdnn_ep_direction_t direction, int arg, mxdnn_memory_t *memory);
/** Writes how many rows the last dispatch has brought. */
mxdnn_status_t MXDNN_API mxdnn_ep_step_get_arrived(mxdnn_ep_step_t step, mxdnn_dim_t *rows);
/** Destroys a step. */
mxdnn_status_t MXDNN_API mxdnn_ep_step_destroy(mxdnn_ep_step_t step);

/** The last failure of these functions in this thread, in one sentence; "" if there was none. The string is
 * valid until the thread's next call of them. */
const char MXDNN_API *mxdnn_ep_get_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
