/* SPDX-License-Identifier: Apache-2.0 */
/* mxdnn_container.h from C: a container is opened, listed, verified and executed from; one that is damaged is
 * refused. test_container.cpp makes the file. */
#include "mxdnn/mxdnn_container.h"

#include <string.h>

#include "gtests/test_container_c.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) return __LINE__;                                                                   \
    } while (0)

int container_from_c(const char *path, float *values) {
    mxdnn_container_t container = NULL;
    mxdnn_container_entry_t entry;
    mxdnn_memory_desc_t packed = NULL, plain = NULL;
    mxdnn_engine_t engine = NULL;
    mxdnn_stream_t stream = NULL;
    mxdnn_memory_t from = NULL, to = NULL;
    mxdnn_primitive_desc_t pd = NULL;
    mxdnn_primitive_t reorder = NULL;
    mxdnn_exec_arg_t args[2];
    mxdnn_dims_t dims = {0};
    const void *data = NULL;
    const char *value = NULL, *key = NULL;
    size_t count = 0, index = 0, i;

    CHECK(mxdnn_container_create(&container, path) == mxdnn_success);
    CHECK(mxdnn_container_get_count(container, &count) == mxdnn_success && count == 2);
    for (i = 0; i < count; i++) {
        CHECK(mxdnn_container_get_entry(container, i, &entry) == mxdnn_success);
        CHECK(entry.has_checksum && mxdnn_container_verify(container, i) == mxdnn_success);
    }
    CHECK(mxdnn_container_find(container, "bias", &index) == mxdnn_success);
    CHECK(mxdnn_container_get_entry(container, index, &entry) == mxdnn_success);
    CHECK(!entry.is_packed && strcmp(entry.dtype, "F32") == 0 && entry.data_type == mxdnn_f32);
    CHECK(entry.ndims == 1 && entry.dims[0] == 2 && entry.size == 8);
    CHECK(mxdnn_container_find(container, "nobody", &index) == mxdnn_invalid_arguments);
    CHECK(strstr(mxdnn_get_last_error(), "no tensor 'nobody'") != NULL);
    CHECK(mxdnn_container_find_metadata(container, "w.mxdnn_checksum", &value) == mxdnn_success && value);
    CHECK(mxdnn_container_get_metadata_count(container, &count) == mxdnn_success && count == 2);
    CHECK(mxdnn_container_get_metadata(container, 0, &key, &value) == mxdnn_success);
    CHECK(strcmp(key, "bias.mxdnn_checksum") == 0 && strlen(value) == 16);

    CHECK(mxdnn_container_find(container, "w", &index) == mxdnn_success);
    CHECK(mxdnn_container_get_memory_desc(container, index, &packed) == mxdnn_success);
    CHECK(mxdnn_container_get_data(container, index, &data) == mxdnn_success);
    CHECK((uintptr_t)data % 64 == 0);
    CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0) == mxdnn_success);
    CHECK(mxdnn_stream_create(&stream, engine, mxdnn_stream_default_flags) == mxdnn_success);
    dims[0] = 32;
    dims[1] = 2;
    CHECK(mxdnn_memory_desc_create_with_tag(&plain, 2, dims, mxdnn_f32, mxdnn_ba) == mxdnn_success);
    CHECK(mxdnn_memory_create(&from, packed, engine, (void *)(uintptr_t)data) == mxdnn_success);
    CHECK(mxdnn_memory_create(&to, plain, engine, values) == mxdnn_success);
    CHECK(mxdnn_mx_reorder_primitive_desc_create(&pd, packed, engine, plain, engine, NULL) == mxdnn_success);
    CHECK(mxdnn_primitive_create(&reorder, pd) == mxdnn_success);
    args[0].arg = MXDNN_ARG_FROM;
    args[0].memory = from;
    args[1].arg = MXDNN_ARG_TO;
    args[1].memory = to;
    CHECK(mxdnn_primitive_execute(reorder, stream, 2, args) == mxdnn_success);
    CHECK(mxdnn_stream_wait(stream) == mxdnn_success);
    CHECK(mxdnn_primitive_destroy(reorder) == mxdnn_success);
    CHECK(mxdnn_primitive_desc_destroy(pd) == mxdnn_success);
    CHECK(mxdnn_memory_destroy(from) == mxdnn_success);
    CHECK(mxdnn_memory_destroy(to) == mxdnn_success);
    CHECK(mxdnn_memory_desc_destroy(packed) == mxdnn_success);
    CHECK(mxdnn_memory_desc_destroy(plain) == mxdnn_success);
    CHECK(mxdnn_stream_destroy(stream) == mxdnn_success);
    CHECK(mxdnn_engine_destroy(engine) == mxdnn_success);
    CHECK(mxdnn_container_destroy(container) == mxdnn_success);
    return 0;
}
