/* SPDX-License-Identifier: Apache-2.0 */
/* The header as a C99 program sees it: pack weights, write the descriptor as bytes, read them back,
 * multiply, and compare with a plain loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxdnn/mxdnn.h"

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const mxdnn_status_t status = (call);                                                                \
        if (status != mxdnn_success) {                                                                       \
            printf("%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, mxdnn_status2str(status),               \
                    mxdnn_get_last_error());                                                                 \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                           \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

enum { M = 3, K = 64, N = 8 };

/* Weights that MXFP8 holds exactly, so that the plain loop needs no rounding. */
static float weight(int k, int n) { return (float)((k * 7 + n * 3) % 15 - 7) * 0.25f; }
static float input(int m, int k) { return (float)((m * 5 + k) % 9 - 4) * 0.5f; }

static int run(void) {
    mxdnn_engine_t engine = NULL;
    mxdnn_stream_t stream = NULL;
    CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0));
    CHECK(mxdnn_stream_create(&stream, engine, mxdnn_stream_default_flags));

    /* Descriptors: rows are a runtime value, the weights' layout is left open. */
    const mxdnn_dims_t src_dims = {MXDNN_RUNTIME_DIM_VAL, K}, wei_dims = {K, N}, bia_dims = {1, N};
    const mxdnn_dims_t dst_dims = {MXDNN_RUNTIME_DIM_VAL, N};
    mxdnn_memory_desc_t src_md = NULL, any_md = NULL, bia_md = NULL, dst_md = NULL, hp_md = NULL;
    CHECK(mxdnn_memory_desc_create_with_tag(&src_md, 2, src_dims, mxdnn_f32, mxdnn_ab));
    CHECK(mxdnn_memory_desc_create_with_tag(&any_md, 2, wei_dims, mxdnn_f8_e4m3, mxdnn_format_tag_any));
    CHECK(mxdnn_memory_desc_create_with_tag(&bia_md, 2, bia_dims, mxdnn_f32, mxdnn_ab));
    CHECK(mxdnn_memory_desc_create_with_tag(&dst_md, 2, dst_dims, mxdnn_f32, mxdnn_ab));
    CHECK(mxdnn_memory_desc_create_with_tag(&hp_md, 2, wei_dims, mxdnn_f32, mxdnn_ba));

    const mxdnn_dims_t groups = {32, 1};
    mxdnn_primitive_attr_t attr = NULL;
    CHECK(mxdnn_primitive_attr_create(&attr));
    CHECK(mxdnn_primitive_attr_set_scales(
            attr, MXDNN_ARG_WEIGHTS, 3, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_static_sazp));
    mxdnn_primitive_desc_t pd = NULL;
    CHECK(mxdnn_mx_matmul_primitive_desc_create(&pd, engine, src_md, any_md, bia_md, dst_md, attr));
    const_mxdnn_memory_desc_t packed_md = mxdnn_primitive_desc_query_md(pd, mxdnn_query_weights_md, 0);
    EXPECT(packed_md != NULL);

    /* Quantise and pack. */
    static float hp[N][K];
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) hp[n][k] = weight(k, n);
    mxdnn_primitive_attr_t q = NULL;
    CHECK(mxdnn_primitive_attr_create(&q));
    CHECK(mxdnn_primitive_attr_set_scales(
            q, MXDNN_ARG_DST, 3, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_dynamic_mx));
    mxdnn_primitive_desc_t reorder_pd = NULL;
    CHECK(mxdnn_mx_reorder_primitive_desc_create(&reorder_pd, hp_md, engine, packed_md, engine, q));
    mxdnn_primitive_t reorder = NULL, matmul = NULL;
    CHECK(mxdnn_primitive_create(&reorder, reorder_pd));
    mxdnn_memory_t hp_mem = NULL, packed = NULL;
    CHECK(mxdnn_memory_create(&hp_mem, hp_md, engine, hp));
    CHECK(mxdnn_memory_create(&packed, packed_md, engine, MXDNN_MEMORY_ALLOCATE));
    const mxdnn_exec_arg_t reorder_args[] = {{MXDNN_ARG_FROM, hp_mem}, {MXDNN_ARG_TO, packed}};
    CHECK(mxdnn_primitive_execute(reorder, stream, 2, reorder_args));

    /* What a file would hold: the descriptor, the bytes, their checksum. */
    size_t blob_size = 0;
    CHECK(mxdnn_memory_desc_get_blob(NULL, &blob_size, packed_md));
    EXPECT(blob_size > 0 && blob_size <= 4096);
    uint8_t *blob = malloc(blob_size);
    EXPECT(blob != NULL);
    CHECK(mxdnn_memory_desc_get_blob(blob, &blob_size, packed_md));
    void *bytes = NULL;
    uint64_t checksum = 0, again = 1;
    CHECK(mxdnn_memory_get_data_handle(packed, &bytes));
    CHECK(mxdnn_packed_checksum(packed_md, bytes, &checksum));

    mxdnn_blob_verdict_t verdict = mxdnn_blob_corrupt;
    CHECK(mxdnn_memory_desc_check_blob(engine, blob, blob_size, &verdict));
    EXPECT(verdict == mxdnn_blob_native || verdict == mxdnn_blob_slower);
    mxdnn_memory_desc_t read_md = NULL, unsized_md = NULL;
    CHECK(mxdnn_memory_desc_create_with_sized_blob(&read_md, blob, blob_size));
    CHECK(mxdnn_memory_desc_create_with_blob(&unsized_md, blob));
    EXPECT(mxdnn_memory_desc_equal(read_md, packed_md) == 1);
    EXPECT(mxdnn_memory_desc_equal(unsized_md, packed_md) == 1);
    CHECK(mxdnn_packed_checksum(read_md, bytes, &again));
    EXPECT(checksum == again);

    /* Queries in C. */
    int ndims = 0;
    const mxdnn_dims_t *dims = NULL;
    const char *name = NULL;
    CHECK(mxdnn_memory_desc_query(read_md, mxdnn_query_ndims_s32, &ndims));
    CHECK(mxdnn_memory_desc_query(read_md, mxdnn_query_dims, &dims));
    EXPECT(ndims == 2 && (*dims)[0] == K && (*dims)[1] == N);
    CHECK(mxdnn_primitive_desc_query(pd, mxdnn_query_impl_info_str, 0, &name));
    char text[256];
    size_t text_size = sizeof(text);
    CHECK(mxdnn_memory_desc_to_string(text, &text_size, read_md));
    EXPECT(strlen(text) + 1 == text_size);

    /* Multiply with the descriptor that was read; the weights say the rest, so no attributes. */
    mxdnn_primitive_desc_t read_pd = NULL;
    CHECK(mxdnn_mx_matmul_primitive_desc_create(&read_pd, engine, src_md, read_md, bia_md, dst_md, NULL));
    CHECK(mxdnn_primitive_create(&matmul, read_pd));
    static float src[M][K], bias[N], dst[M][N];
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++) src[m][k] = input(m, k);
    for (int n = 0; n < N; n++) bias[n] = (float)n;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) dst[m][n] = NAN;
    const mxdnn_dims_t m_src = {M, K}, m_dst = {M, N};
    mxdnn_memory_desc_t run_src = NULL, run_dst = NULL;
    CHECK(mxdnn_memory_desc_create_with_strides(&run_src, 2, m_src, mxdnn_f32, NULL));
    CHECK(mxdnn_memory_desc_create_with_strides(&run_dst, 2, m_dst, mxdnn_f32, NULL));
    mxdnn_memory_t src_mem = NULL, bia_mem = NULL, dst_mem = NULL;
    CHECK(mxdnn_memory_create(&src_mem, run_src, engine, src));
    CHECK(mxdnn_memory_create(&bia_mem, bia_md, engine, bias));
    CHECK(mxdnn_memory_create(&dst_mem, run_dst, engine, dst));
    const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src_mem}, {MXDNN_ARG_WEIGHTS, packed},
            {MXDNN_ARG_BIAS, bia_mem}, {MXDNN_ARG_DST, dst_mem}};
    CHECK(mxdnn_primitive_execute(matmul, stream, 4, args));
    CHECK(mxdnn_stream_wait(stream));
    /* Every product and sum is exact in f32 and in bf16 inputs, so the results are equal, not close. */
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float want = bias[n];
            for (int k = 0; k < K; k++) want += input(m, k) * weight(k, n);
            if (dst[m][n] != want) {
                printf("at %d,%d: expected %g, got %g (%s, %s)\n", m, n, want, dst[m][n], name, text);
                return 1;
            }
        }

    /* A mistake: a status, a sentence, nothing else. */
    EXPECT(mxdnn_primitive_execute(matmul, stream, 3, args) == mxdnn_invalid_arguments);
    EXPECT(strstr(mxdnn_get_last_error(), "dst") != NULL);

    free(blob);
    CHECK(mxdnn_memory_destroy(src_mem));
    CHECK(mxdnn_memory_destroy(bia_mem));
    CHECK(mxdnn_memory_destroy(dst_mem));
    CHECK(mxdnn_memory_destroy(hp_mem));
    CHECK(mxdnn_memory_destroy(packed));
    CHECK(mxdnn_memory_desc_destroy(run_src));
    CHECK(mxdnn_memory_desc_destroy(run_dst));
    CHECK(mxdnn_memory_desc_destroy(read_md));
    CHECK(mxdnn_memory_desc_destroy(unsized_md));
    CHECK(mxdnn_memory_desc_destroy(src_md));
    CHECK(mxdnn_memory_desc_destroy(any_md));
    CHECK(mxdnn_memory_desc_destroy(bia_md));
    CHECK(mxdnn_memory_desc_destroy(dst_md));
    CHECK(mxdnn_memory_desc_destroy(hp_md));
    CHECK(mxdnn_primitive_destroy(matmul));
    CHECK(mxdnn_primitive_destroy(reorder));
    CHECK(mxdnn_primitive_desc_destroy(pd));
    CHECK(mxdnn_primitive_desc_destroy(read_pd));
    CHECK(mxdnn_primitive_desc_destroy(reorder_pd));
    CHECK(mxdnn_primitive_attr_destroy(attr));
    CHECK(mxdnn_primitive_attr_destroy(q));
    CHECK(mxdnn_stream_destroy(stream));
    CHECK(mxdnn_engine_destroy(engine));
    return 0;
}

int main(void) {
    const int failed = run();
    printf("%d passed, %d failed\n", !failed, failed);
    return failed;
}
