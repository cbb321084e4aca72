/* SPDX-License-Identifier: Apache-2.0 */
/* A thread pool of a C99 program: threads that are started for every piece of work, waited for by the pool,
 * by its wait, or by the library. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxdnn/mxdnn_threadpool.h"

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const mxdnn_status_t status_ = (call);                                                               \
        if (status_ != mxdnn_success) {                                                                      \
            printf("%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, mxdnn_status2str(status_),              \
                    mxdnn_get_last_error());                                                                 \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                           \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

enum { THREADS = 3, M = 4, K = 512, N = 1024 };

typedef struct {
    mxdnn_threadpool_body_t body;
    void *context;
    int index;
} call_t;

typedef struct {
    int asynchronous;
    int regions, calls;
    int started;
    pthread_t threads[THREADS];
    call_t work[THREADS];
} pool_t;

static void *run_call(void *p) {
    const call_t *c = (const call_t *)p;
    c->body(c->context, c->index);
    return NULL;
}

static int num_threads(void *user) {
    (void)user;
    return THREADS;
}
static int in_parallel(void *user) {
    (void)user;
    return 0;
}

static void wait_for_all(void *user) {
    pool_t *p = (pool_t *)user;
    int i;
    for (i = 0; i < p->started; i++) pthread_join(p->threads[i], NULL);
    p->started = 0;
}

static mxdnn_status_t parallel_for(void *user, int n, mxdnn_threadpool_body_t body, void *context) {
    pool_t *p = (pool_t *)user;
    int i;
    EXPECT(n >= 2 && n <= THREADS);
    wait_for_all(p); /* of the region before, if the library waited for its calls */
    p->regions++;
    p->calls += n;
    for (i = 0; i < n; i++) {
        p->work[i].body = body;
        p->work[i].context = context;
        p->work[i].index = i;
        if (pthread_create(&p->threads[i], NULL, run_call, &p->work[i]) != 0) return mxdnn_out_of_memory;
        p->started++;
    }
    if (!p->asynchronous) wait_for_all(p);
    return mxdnn_success;
}

static mxdnn_memory_desc_t plain(int rows, int columns, mxdnn_data_type_t type, mxdnn_format_tag_t tag) {
    mxdnn_dims_t dims = {0};
    mxdnn_memory_desc_t md = NULL;
    dims[0] = rows;
    dims[1] = columns;
    CHECK(mxdnn_memory_desc_create_with_tag(&md, 2, dims, type, tag));
    return md;
}

int main(void) {
    static float weights[N * K], x[M * K], y[M * N], want[M * N];
    const mxdnn_dims_t groups = {32, 1};
    mxdnn_engine_t engine = NULL;
    mxdnn_memory_desc_t src = plain(M, K, mxdnn_f32, mxdnn_ab), dst = plain(M, N, mxdnn_f32, mxdnn_ab),
                        any = plain(K, N, mxdnn_f8_e4m3, mxdnn_format_tag_any),
                        framework = plain(K, N, mxdnn_f32, mxdnn_ba);
    const_mxdnn_memory_desc_t packed;
    mxdnn_primitive_attr_t attr = NULL, quantise = NULL;
    mxdnn_primitive_desc_t pd = NULL, reorder_pd = NULL;
    mxdnn_primitive_t matmul = NULL, reorder = NULL;
    mxdnn_memory_t from = NULL, to = NULL, in = NULL, out = NULL;
    mxdnn_exec_arg_t pack_args[2], args[3];
    int i, kind;

    for (i = 0; i < N * K; i++) weights[i] = (float)(i * 7 % 15 - 7) * 0.25f;
    for (i = 0; i < M * K; i++) x[i] = (float)(i * 5 % 9 - 4) * 0.5f;
    CHECK(mxdnn_set_max_concurrency(8));
    CHECK(mxdnn_engine_create(&engine, mxdnn_cpu, 0));
    CHECK(mxdnn_primitive_attr_create(&attr));
    CHECK(mxdnn_primitive_attr_set_scales(
            attr, MXDNN_ARG_WEIGHTS, 3, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_static_sazp));
    CHECK(mxdnn_primitive_attr_create(&quantise));
    CHECK(mxdnn_primitive_attr_set_scales(
            quantise, MXDNN_ARG_DST, 3, 2, groups, mxdnn_e8m0, 0, mxdnn_quantization_mode_dynamic_mx));
    CHECK(mxdnn_mx_matmul_primitive_desc_create(&pd, engine, src, any, NULL, dst, attr));
    packed = mxdnn_primitive_desc_query_md(pd, mxdnn_query_weights_md, 0);
    CHECK(mxdnn_mx_reorder_primitive_desc_create(&reorder_pd, framework, engine, packed, engine, quantise));
    CHECK(mxdnn_primitive_create(&matmul, pd));
    CHECK(mxdnn_primitive_create(&reorder, reorder_pd));
    CHECK(mxdnn_memory_create(&from, framework, engine, weights));
    CHECK(mxdnn_memory_create(&to, packed, engine, MXDNN_MEMORY_ALLOCATE));
    CHECK(mxdnn_memory_create(&in, src, engine, x));
    CHECK(mxdnn_memory_create(&out, dst, engine, y));
    pack_args[0].arg = MXDNN_ARG_FROM;
    pack_args[0].memory = from;
    pack_args[1].arg = MXDNN_ARG_TO;
    pack_args[1].memory = to;
    args[0].arg = MXDNN_ARG_SRC;
    args[0].memory = in;
    args[1].arg = MXDNN_ARG_WEIGHTS;
    args[1].memory = to;
    args[2].arg = MXDNN_ARG_DST;
    args[2].memory = out;

    /* In the calling thread, then on three kinds of pools: the bits are the same. */
    for (kind = 0; kind < 4; kind++) {
        pool_t pool;
        mxdnn_threadpool_t callbacks;
        mxdnn_stream_t stream = NULL;
        memset(&pool, 0, sizeof(pool));
        memset(&callbacks, 0, sizeof(callbacks));
        pool.asynchronous = kind >= 2;
        callbacks.struct_size = sizeof(callbacks);
        callbacks.flags = kind >= 2 ? MXDNN_THREADPOOL_ASYNCHRONOUS : 0;
        callbacks.user = &pool;
        callbacks.get_num_threads = num_threads;
        callbacks.get_in_parallel = in_parallel;
        callbacks.parallel_for = parallel_for;
        callbacks.wait = kind == 3 ? wait_for_all : NULL;
        if (kind == 0) CHECK(mxdnn_set_max_concurrency(1));
        CHECK(mxdnn_threadpool_interop_stream_create(&stream, engine, &callbacks));
        for (i = 0; i < M * N; i++) y[i] = -1e30f;
        CHECK(mxdnn_primitive_execute(reorder, stream, 2, pack_args));
        CHECK(mxdnn_primitive_execute(matmul, stream, 3, args));
        wait_for_all(&pool);
        CHECK(mxdnn_stream_destroy(stream));
        if (kind == 0) {
            EXPECT(pool.calls == 0);
            memcpy(want, y, sizeof(want));
            CHECK(mxdnn_set_max_concurrency(8));
        } else {
            EXPECT(pool.regions >= 2 && pool.calls >= 2 * pool.regions);
            EXPECT(memcmp((const char *)want, (const char *)y, sizeof(want)) == 0);
        }
    }

    CHECK(mxdnn_memory_destroy(from));
    CHECK(mxdnn_memory_destroy(to));
    CHECK(mxdnn_memory_destroy(in));
    CHECK(mxdnn_memory_destroy(out));
    CHECK(mxdnn_primitive_destroy(matmul));
    CHECK(mxdnn_primitive_destroy(reorder));
    CHECK(mxdnn_primitive_desc_destroy(pd));
    CHECK(mxdnn_primitive_desc_destroy(reorder_pd));
    CHECK(mxdnn_primitive_attr_destroy(attr));
    CHECK(mxdnn_primitive_attr_destroy(quantise));
    CHECK(mxdnn_memory_desc_destroy(src));
    CHECK(mxdnn_memory_desc_destroy(dst));
    CHECK(mxdnn_memory_desc_destroy(any));
    CHECK(mxdnn_memory_desc_destroy(framework));
    CHECK(mxdnn_engine_destroy(engine));
    return 0;
}
