/* SPDX-License-Identifier: Apache-2.0 */
/* What a C integrator does first: quantise and pack weights into mxfp4, keep descriptor blob and bytes,
 * come back with nothing but those two, multiply, and compare with arithmetic done here. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mxdnn/mxdnn.h>
#include <mxdnn/mxdnn_container.h>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        mxdnn_status_t status_ = (call);                                                                     \
        if (status_ != mxdnn_success) {                                                                      \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, mxdnn_status2str(status_),                \
                    mxdnn_get_last_error());                                                                 \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

enum { M = 3, K = 72, N = 40 }; /* K is no multiple of the block of 32 */

static mxdnn_memory_desc_t plain(
        mxdnn_dim_t rows, mxdnn_dim_t columns, mxdnn_data_type_t type, mxdnn_format_tag_t tag) {
    mxdnn_dims_t dims = {0};
    mxdnn_memory_desc_t md = NULL;
    dims[0] = rows;
    dims[1] = columns;
    CHECK(mxdnn_memory_desc_create_with_tag(&md, 2, dims, type, tag));
    return md;
}

static void execute(
        mxdnn_primitive_desc_t pd, mxdnn_stream_t stream, int nargs, const mxdnn_exec_arg_t *args) {
    mxdnn_primitive_t primitive = NULL;
    CHECK(mxdnn_primitive_create(&primitive, pd));
    CHECK(mxdnn_primitive_execute(primitive, stream, nargs, args));
    CHECK(mxdnn_stream_wait(stream));
    CHECK(mxdnn_primitive_destroy(primitive));
}

/* A safetensors file of another program is a container, too. */
static void read_container(void) {
    static const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    static uint8_t file[8 + sizeof(header) - 1 + 8]; /* the header's length, the header, the data */
    mxdnn_container_t container = NULL;
    mxdnn_container_entry_t entry;
    const void *data = NULL;
    size_t count = 0;
    file[0] = (uint8_t)(sizeof(header) - 1);
    memcpy(file + 8, header, sizeof(header) - 1);
    CHECK(mxdnn_container_create_from_bytes(&container, file, sizeof(file)));
    CHECK(mxdnn_container_get_count(container, &count));
    REQUIRE(count == 1);
    CHECK(mxdnn_container_get_entry(container, 0, &entry));
    REQUIRE(strcmp(entry.name, "b") == 0 && entry.data_type == mxdnn_f32 && !entry.is_packed);
    CHECK(mxdnn_container_get_data(container, 0, &data));
    REQUIRE(data == file + sizeof(file) - 8);
    REQUIRE(mxdnn_container_create_from_bytes(&container, file, sizeof(file) - 1) == mxdnn_corrupt_blob);
    CHECK(mxdnn_container_destroy(container));
}

int main(void) {
    /* All of these are exact in f4_e2m1 with a scale of one, so the product is exact too. */
    static const float exact[8] = {0.5f, -1.f, 1.5f, 6.f, -3.f, 2.f, 0.f, -4.f};
    static float weights[N * K], x[M * K], y[M * N]; /* weights as frameworks keep them: [N, K] */
    const mxdnn_dims_t groups = {32, 1};
    const int both = (1 << 0) | (1 << 1);
    mxdnn_engine_t engine = NULL;
    mxdnn_stream_t stream = NULL;
    mxdnn_memory_desc_t src, any, dst, framework, packed = NULL, loaded = NULL;
    mxdnn_primitive_attr_t attr = NULL, quantise = NULL;
    mxdnn_primitive_desc_t pd = NULL, reorder = NULL, run = NULL;
    mxdnn_memory_t from = NULL, to = NULL, in = NULL, out = NULL, mapped = NULL;
    mxdnn_exec_arg_t args[3];
    mxdnn_blob_verdict_t verdict;
    uint64_t checksum = 0, checksum_again = 0;
    size_t blob_size = 0, packed_size, i, j, k;
    uint8_t *blob, *artefact;

    REQUIRE(mxdnn_version() != NULL);
    printf("mxdnn %d.%d.%d\n", mxdnn_version()->major, mxdnn_version()->minor, mxdnn_version()->patch);
    for (i = 0; i < N * K; i++) weights[i] = (i / K * 7 + i) % 32 == 0 ? 6.f : exact[(i * 5 + i / K) % 8];
    for (i = 0; i < M * K; i++) x[i] = (float)((int)(i * 7 % 13) - 6);
    for (i = 0; i < M * N; i++) y[i] = NAN; /* whatever is not written shows */

    CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0));
    CHECK(mxdnn_stream_create(&stream, engine, mxdnn_stream_default_flags));
    src = plain(MXDNN_RUNTIME_DIM_VAL, K, mxdnn_f32, mxdnn_ab);
    any = plain(K, N, mxdnn_f4_e2m1, mxdnn_format_tag_any);
    dst = plain(MXDNN_RUNTIME_DIM_VAL, N, mxdnn_f32, mxdnn_ab);
    framework = plain(K, N, mxdnn_f32, mxdnn_ba);

    CHECK(mxdnn_primitive_attr_create(&attr));
    CHECK(mxdnn_primitive_attr_set_scales(
            attr, MXDNN_ARG_WEIGHTS, both, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_static_sazp));
    CHECK(mxdnn_mx_matmul_primitive_desc_create(&pd, engine, src, any, NULL, dst, attr));
    CHECK(mxdnn_memory_desc_clone(&packed, mxdnn_primitive_desc_query_md(pd, mxdnn_query_weights_md, 0)));
    packed_size = mxdnn_memory_desc_get_size(packed);
    REQUIRE(packed_size >= (size_t)K * N / 2 && packed_size < (size_t)K * N * 4);

    artefact = (uint8_t *)malloc(packed_size); /* 16-byte aligned, which is all that packed bytes need */
    REQUIRE(artefact != NULL);
    CHECK(mxdnn_primitive_attr_create(&quantise));
    CHECK(mxdnn_primitive_attr_set_scales(
            quantise, MXDNN_ARG_DST, both, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_dynamic_mx));
    CHECK(mxdnn_mx_reorder_primitive_desc_create(&reorder, framework, engine, packed, engine, quantise));
    CHECK(mxdnn_memory_create(&from, framework, engine, weights));
    CHECK(mxdnn_memory_create(&to, packed, engine, artefact));
    args[0].arg = MXDNN_ARG_FROM;
    args[0].memory = from;
    args[1].arg = MXDNN_ARG_TO;
    args[1].memory = to;
    execute(reorder, stream, 2, args);

    CHECK(mxdnn_memory_desc_get_blob(NULL, &blob_size, packed));
    blob = (uint8_t *)malloc(blob_size);
    REQUIRE(blob != NULL);
    CHECK(mxdnn_memory_desc_get_blob(blob, &blob_size, packed));
    CHECK(mxdnn_packed_checksum(packed, artefact, &checksum));

    /* The other side: the blob and the bytes are all there is. */
    CHECK(mxdnn_memory_desc_check_blob(engine, blob, blob_size, &verdict));
    REQUIRE(verdict == mxdnn_blob_native || verdict == mxdnn_blob_slower);
    CHECK(mxdnn_memory_desc_create_with_sized_blob(&loaded, blob, blob_size));
    REQUIRE(mxdnn_memory_desc_equal(loaded, packed));
    CHECK(mxdnn_packed_checksum(loaded, artefact, &checksum_again));
    REQUIRE(checksum == checksum_again);
    CHECK(mxdnn_mx_matmul_primitive_desc_create(&run, engine, src, loaded, NULL, dst, NULL));
    {
        mxdnn_memory_desc_t src_m = plain(M, K, mxdnn_f32, mxdnn_ab),
                            dst_m = plain(M, N, mxdnn_f32, mxdnn_ab);
        CHECK(mxdnn_memory_create(&in, src_m, engine, x));
        CHECK(mxdnn_memory_create(&out, dst_m, engine, y));
        CHECK(mxdnn_memory_create(&mapped, loaded, engine, artefact));
        args[0].arg = MXDNN_ARG_SRC;
        args[0].memory = in;
        args[1].arg = MXDNN_ARG_WEIGHTS;
        args[1].memory = mapped;
        args[2].arg = MXDNN_ARG_DST;
        args[2].memory = out;
        execute(run, stream, 3, args);
        CHECK(mxdnn_memory_desc_destroy(src_m));
        CHECK(mxdnn_memory_desc_destroy(dst_m));
    }

    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++) {
            float expected = 0.f;
            for (k = 0; k < K; k++) expected += x[i * K + k] * weights[j * K + k];
            if (y[i * N + j] != expected) {
                fprintf(stderr, "y[%lu][%lu] is %g, expected %g\n", (unsigned long)i, (unsigned long)j,
                        (double)y[i * N + j], (double)expected);
                return 1;
            }
        }

    read_container();

    /* A mistake costs one line to understand. */
    REQUIRE(mxdnn_memory_desc_create_with_sized_blob(&loaded, blob, blob_size - 1) != mxdnn_success);
    REQUIRE(strlen(mxdnn_get_last_error()) > 10);

    CHECK(mxdnn_memory_destroy(from));
    CHECK(mxdnn_memory_destroy(to));
    CHECK(mxdnn_memory_destroy(in));
    CHECK(mxdnn_memory_destroy(out));
    CHECK(mxdnn_memory_destroy(mapped));
    CHECK(mxdnn_primitive_desc_destroy(pd));
    CHECK(mxdnn_primitive_desc_destroy(reorder));
    CHECK(mxdnn_primitive_desc_destroy(run));
    CHECK(mxdnn_primitive_attr_destroy(attr));
    CHECK(mxdnn_primitive_attr_destroy(quantise));
    CHECK(mxdnn_memory_desc_destroy(src));
    CHECK(mxdnn_memory_desc_destroy(any));
    CHECK(mxdnn_memory_desc_destroy(dst));
    CHECK(mxdnn_memory_desc_destroy(framework));
    CHECK(mxdnn_memory_desc_destroy(packed));
    CHECK(mxdnn_memory_desc_destroy(loaded));
    CHECK(mxdnn_stream_destroy(stream));
    CHECK(mxdnn_engine_destroy(engine));
    free(blob);
    free(artefact);
    puts("consumer_c: ok");
    return 0;
}
