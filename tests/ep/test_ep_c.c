/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface without ranks: null pointers, values outside their enumerations, no transport, no MPI_Init.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxdnn/mxdnn_ep.h"

#define EXPECT_REFUSED(call, status, sentence)                                                               \
    do {                                                                                                     \
        const mxdnn_status_t status_ = (call);                                                               \
        if (status_ != (status) || !strstr(mxdnn_ep_get_last_error(), sentence)) {                           \
            printf("%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, mxdnn_status2str(status_),              \
                    mxdnn_ep_get_last_error());                                                              \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

int main(void) {
    const mxdnn_status_t invalid = mxdnn_invalid_arguments;
    void *handle = NULL; /* as large as an MPI_Comm of Open MPI; it is not looked into */
    int number = 0;
    size_t bytes = 0;
    mxdnn_dim_t rows = 0;
    mxdnn_engine_t engine = NULL;
    mxdnn_ep_comm_t comm = NULL;
    mxdnn_ep_layer_t layer = NULL;
    mxdnn_ep_step_t step = NULL;
    mxdnn_memory_t memory = NULL;
    if (mxdnn_ep_get_last_error()[0]) return 1;
    if (mxdnn_engine_create(&engine, mxdnn_cpu, 0) != mxdnn_success) return 1;

    EXPECT_REFUSED(mxdnn_ep_comm_create(NULL, engine, mxdnn_ep_mpi, &handle, 8, 1), invalid,
            "comm is a null pointer");
    EXPECT_REFUSED(
            mxdnn_ep_comm_create(&comm, NULL, mxdnn_ep_mpi, &handle, 8, 1), invalid, "engine is a null");
    EXPECT_REFUSED(
            mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, NULL, 8, 1), invalid, "communicator is a null");
    EXPECT_REFUSED(mxdnn_ep_comm_create(&comm, engine, (mxdnn_ep_transport_t)7, &handle, 8, 1), invalid,
            "transport is 7, which is no transport");
    EXPECT_REFUSED(mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_nccl, &handle, 8, 1), invalid,
            "of another kind than NCCL");
    EXPECT_REFUSED(
            mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, &handle, 8, 0), invalid, "timeout_ms is 0");
    EXPECT_REFUSED(mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, &handle, 3, 1), invalid, "size is 3");
    /* The size of an MPI_Comm is that of a pointer or of an int. */
    if (mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, &handle, sizeof(handle), 1) == mxdnn_success)
        return 1;
    if (strstr(mxdnn_ep_get_last_error(), "size is"))
        EXPECT_REFUSED(mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, &handle, sizeof(int), 1), invalid,
                "MPI_Init");
    else
        EXPECT_REFUSED(mxdnn_ep_comm_create(&comm, engine, mxdnn_ep_mpi, &handle, sizeof(handle), 1), invalid,
                "MPI_Init");

    EXPECT_REFUSED(mxdnn_ep_comm_get_rank(NULL, &number), invalid, "comm is a null pointer");
    EXPECT_REFUSED(mxdnn_ep_comm_get_size(NULL, &number), invalid, "comm is a null pointer");
    EXPECT_REFUSED(
            mxdnn_ep_layer_get_memory_sizes(NULL, NULL, &bytes, &bytes), invalid, "comm is a null pointer");
    EXPECT_REFUSED(mxdnn_ep_layer_create(&layer, NULL, NULL, NULL), invalid, "comm is a null pointer");
    EXPECT_REFUSED(
            mxdnn_ep_step_create(&step, NULL, MXDNN_MEMORY_ALLOCATE), invalid, "layer is a null pointer");
    EXPECT_REFUSED(mxdnn_ep_execute(NULL, mxdnn_ep_dispatch, mxdnn_ep_forward, NULL, 0, NULL), invalid,
            "step is a null");
    EXPECT_REFUSED(mxdnn_ep_step_get_memory(NULL, mxdnn_ep_permute, mxdnn_ep_forward, MXDNN_ARG_DST, &memory),
            invalid, "step is a null pointer");
    EXPECT_REFUSED(mxdnn_ep_step_get_arrived(NULL, &rows), invalid, "step is a null pointer");
    if (mxdnn_ep_comm_destroy(NULL) || mxdnn_ep_layer_destroy(NULL) || mxdnn_ep_step_destroy(NULL)) return 1;
    mxdnn_engine_destroy(engine);
    printf("ok\n");
    return 0;
}
