/* SPDX-License-Identifier: Apache-2.0 */
/* The expert layer of moe_layer.cpp in plain C: route, gate_up with swiglu_oai, down with the weighted sum.
 *
 *     moe_layer_c [--engine cpu|cuda] [--shape small|20b] [TOKENS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mxdnn/mxdnn.h>

/* Every call says what was wrong when it fails. */
#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const mxdnn_status_t status_ = (call);                                                               \
        if (status_ != mxdnn_success) {                                                                      \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, mxdnn_status2str(status_),                \
                    mxdnn_get_last_error());                                                                 \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define ANY_ROWS MXDNN_RUNTIME_DIM_VAL
#define ALL_DIMS ((1 << 0) | (1 << 1) | (1 << 2))

static mxdnn_engine_t engine;
static mxdnn_stream_t stream;
static long long E, TOP, H, I; /* experts, chosen per token, hidden, intermediate */

/* ---- helpers: buffers, random numbers, descriptors ---- */

static void *buffer(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static unsigned random_state = 1;
static float uniform(void) { /* in [-1, 1) */
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) / (float)(1 << 23) - 1.f;
}

static uint16_t to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static float from_bf16(uint16_t h) {
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static mxdnn_memory_desc_t matrix(mxdnn_dim_t rows, mxdnn_dim_t cols, mxdnn_data_type_t type) {
    const mxdnn_dims_t dims = {rows, cols};
    mxdnn_memory_desc_t md;
    CHECK(mxdnn_memory_desc_create_with_tag(&md, 2, dims, type, mxdnn_ab));
    return md;
}
static mxdnn_memory_desc_t vector(mxdnn_dim_t length, mxdnn_data_type_t type) {
    const mxdnn_dims_t dims = {length};
    mxdnn_memory_desc_t md;
    CHECK(mxdnn_memory_desc_create_with_tag(&md, 1, dims, type, mxdnn_a));
    return md;
}
static mxdnn_memory_desc_t tensor(
        mxdnn_dim_t n, mxdnn_dim_t k, mxdnn_dim_t m, mxdnn_data_type_t type, mxdnn_format_tag_t tag) {
    const mxdnn_dims_t dims = {n, k, m};
    mxdnn_memory_desc_t md;
    CHECK(mxdnn_memory_desc_create_with_tag(&md, 3, dims, type, tag));
    return md;
}
static mxdnn_memory_desc_t grouped(mxdnn_dim_t rows, mxdnn_dim_t cols, mxdnn_dim_t groups) {
    const mxdnn_dims_t dims = {rows, cols};
    mxdnn_memory_desc_t md;
    CHECK(mxdnn_memory_desc_create_with_grouped_encoding(&md, 2, dims, mxdnn_bf16, 0, groups, mxdnn_s32));
    return md;
}
/* Memory that the library allocates where the engine has it, or one over a pointer of the engine's. A memory
 * keeps a copy of its descriptor, so that this one can go. */
static mxdnn_memory_t memory_at(mxdnn_memory_desc_t md, void *data) {
    mxdnn_memory_t m;
    CHECK(mxdnn_memory_create(&m, md, engine, data));
    CHECK(mxdnn_memory_desc_destroy(md));
    return m;
}
static mxdnn_memory_t memory(mxdnn_memory_desc_t md) { return memory_at(md, MXDNN_MEMORY_ALLOCATE); }
/* Bytes of the host's into a memory, and back. */
static void put(mxdnn_memory_t m, const void *from, size_t bytes) {
    void *p;
    CHECK(mxdnn_memory_map_data(m, &p));
    memcpy(p, from, bytes);
    CHECK(mxdnn_memory_unmap_data(m, p));
}
static void get(mxdnn_memory_t m, void *to, size_t bytes) {
    void *p;
    CHECK(mxdnn_memory_map_data(m, &p));
    memcpy(to, p, bytes);
    CHECK(mxdnn_memory_unmap_data(m, p));
}

/* ---- one of the two matmuls: its primitive and its packed weights ---- */

typedef struct {
    mxdnn_primitive_t primitive;
    mxdnn_memory_t weights, bias_memory;
    size_t expert_stride;
    mxdnn_memory_desc_t one; /* one expert of the packed weights */
    float *bias;
    mxdnn_dim_t K, N;
} matmul_t;

static mxdnn_primitive_desc_t describe(mxdnn_memory_desc_t src, mxdnn_dim_t experts, mxdnn_dim_t K,
        mxdnn_dim_t N, mxdnn_memory_desc_t dst, int swiglu_oai) {
    const mxdnn_dims_t blocks = {32, 1};
    mxdnn_memory_desc_t weights = tensor(experts, K, N, mxdnn_f4_e2m1, mxdnn_format_tag_any);
    mxdnn_memory_desc_t bias = matrix(experts, N, mxdnn_f32);
    mxdnn_primitive_attr_t attr;
    mxdnn_primitive_desc_t pd;
    CHECK(mxdnn_primitive_attr_create(&attr));
    CHECK(mxdnn_primitive_attr_set_scales(attr, MXDNN_ARG_WEIGHTS, ALL_DIMS, 2, blocks, mxdnn_e8m0, 0,
            mxdnn_quantization_mode_static_sazp));
    if (swiglu_oai) {
        mxdnn_post_ops_t post_ops;
        CHECK(mxdnn_post_ops_create(&post_ops));
        CHECK(mxdnn_post_ops_append_gated(
                post_ops, mxdnn_gated_swiglu_oai, 1.702f, 7.f, mxdnn_gated_interleaved));
        CHECK(mxdnn_primitive_attr_set_post_ops(attr, post_ops));
        CHECK(mxdnn_post_ops_destroy(post_ops));
    }
    CHECK(mxdnn_grouped_matmul_primitive_desc_create(&pd, engine, src, weights, bias, dst, attr));
    CHECK(mxdnn_primitive_attr_destroy(attr));
    CHECK(mxdnn_memory_desc_destroy(weights));
    CHECK(mxdnn_memory_desc_destroy(bias));
    CHECK(mxdnn_memory_desc_destroy(src));
    CHECK(mxdnn_memory_desc_destroy(dst));
    return pd;
}

static mxdnn_primitive_t reorder(
        const_mxdnn_memory_desc_t from, const_mxdnn_memory_desc_t to, int quantises) {
    const mxdnn_dims_t blocks = {32, 1};
    mxdnn_primitive_attr_t attr;
    mxdnn_primitive_desc_t pd;
    mxdnn_primitive_t p;
    CHECK(mxdnn_primitive_attr_create(&attr));
    if (quantises) {
        CHECK(mxdnn_primitive_attr_set_scales(
                attr, MXDNN_ARG_DST, ALL_DIMS, 2, blocks, mxdnn_e8m0, 0, mxdnn_quantization_mode_dynamic_mx));
        CHECK(mxdnn_primitive_attr_set_scale_rounding(attr, MXDNN_ARG_DST, mxdnn_scale_rounding_rceil));
    }
    CHECK(mxdnn_mx_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr));
    CHECK(mxdnn_primitive_create(&p, pd));
    CHECK(mxdnn_primitive_desc_destroy(pd));
    CHECK(mxdnn_primitive_attr_destroy(attr));
    return p;
}

/* Packs (or unpacks) one expert after quantising it; `data` is bf16 or f32, [N, K] as frameworks store it. */
static void move_expert(const matmul_t *m, long long expert, mxdnn_data_type_t type, void *data, int packs) {
    mxdnn_memory_desc_t plain = tensor(1, m->K, m->N, type, mxdnn_acb), one;
    mxdnn_primitive_t p = packs ? reorder(plain, m->one, 1) : reorder(m->one, plain, 0);
    const size_t bytes = mxdnn_memory_desc_get_size(plain);
    mxdnn_memory_t a = memory(plain), b;
    mxdnn_exec_arg_t args[2];
    void *packed;
    CHECK(mxdnn_memory_get_data_handle(m->weights, &packed));
    CHECK(mxdnn_memory_desc_clone(&one, m->one));
    b = memory_at(one, (char *)packed + (size_t)expert * m->expert_stride);
    args[0].arg = MXDNN_ARG_FROM;
    args[0].memory = packs ? a : b;
    args[1].arg = MXDNN_ARG_TO;
    args[1].memory = packs ? b : a;
    if (packs) put(a, data, bytes);
    CHECK(mxdnn_primitive_execute(p, stream, 2, args));
    CHECK(mxdnn_stream_wait(stream));
    if (!packs) get(a, data, bytes);
    CHECK(mxdnn_memory_destroy(a));
    CHECK(mxdnn_memory_destroy(b));
    CHECK(mxdnn_primitive_destroy(p));
}

static matmul_t make_matmul(
        mxdnn_memory_desc_t src, mxdnn_dim_t K, mxdnn_dim_t N, mxdnn_memory_desc_t dst, int swiglu_oai) {
    matmul_t m;
    mxdnn_primitive_desc_t pd = describe(src, E, K, N, dst, swiglu_oai), one;
    mxdnn_memory_desc_t packed;
    int64_t stride;
    uint16_t *bf16 = buffer((size_t)(K * N) * 2);
    long long e, i;
    m.K = K;
    m.N = N;
    CHECK(mxdnn_primitive_create(&m.primitive, pd));
    CHECK(mxdnn_memory_desc_clone(&packed, mxdnn_primitive_desc_query_md(pd, mxdnn_query_weights_md, 0)));
    CHECK(mxdnn_memory_desc_query(packed, mxdnn_query_expert_stride_s64, &stride));
    m.expert_stride = (size_t)stride;
    m.weights = memory(packed);
    CHECK(mxdnn_primitive_desc_destroy(pd));

    one = describe(grouped(ANY_ROWS, K, 1), 1, K, N, grouped(ANY_ROWS, N, 1), 0);
    CHECK(mxdnn_memory_desc_clone(&m.one, mxdnn_primitive_desc_query_md(one, mxdnn_query_weights_md, 0)));
    CHECK(mxdnn_primitive_desc_destroy(one));
    for (e = 0; e < E; e++) {
        for (i = 0; i < K * N; i++) bf16[i] = to_bf16(uniform() * 1.7f / sqrtf((float)K));
        move_expert(&m, e, mxdnn_bf16, bf16, 1);
    }
    free(bf16);
    m.bias = buffer((size_t)(E * N) * 4);
    for (i = 0; i < E * N; i++) m.bias[i] = .1f * uniform();
    m.bias_memory = memory(matrix(E, N, mxdnn_f32));
    put(m.bias_memory, m.bias, (size_t)(E * N) * 4);
    return m;
}

static void destroy_matmul(matmul_t *m) {
    CHECK(mxdnn_primitive_destroy(m->primitive));
    CHECK(mxdnn_memory_destroy(m->weights));
    CHECK(mxdnn_memory_destroy(m->bias_memory));
    CHECK(mxdnn_memory_desc_destroy(m->one));
    free(m->bias);
}

/* ---- the first token with plain loops ---- */

static double check(const matmul_t *gate_up, const matmul_t *down, const float *logits, const uint16_t *x,
        const uint16_t *y) {
    float *w1 = buffer((size_t)(gate_up->K * gate_up->N) * 4), *w2 = buffer((size_t)(down->K * down->N) * 4);
    double *want = buffer((size_t)H * 8), *mid = buffer((size_t)I * 8), *exps = buffer((size_t)E * 8),
           sum = 0;
    double signal = 0, noise = 0;
    long long e, other, c, k;
    for (e = 0; e < E; e++) { /* e^logit of the chosen, 0 of the others */
        long long ahead = 0;
        for (other = 0; other < E; other++)
            ahead += logits[other] > logits[e] || (logits[other] == logits[e] && other < e);
        exps[e] = ahead < TOP ? exp((double)logits[e]) : 0;
        sum += exps[e];
    }
    for (e = 0; e < E; e++) {
        if (exps[e] == 0) continue;
        move_expert(gate_up, e, mxdnn_f32, w1, 0);
        move_expert(down, e, mxdnn_f32, w2, 0);
        for (c = 0; c < I; c++) {
            double g = (double)gate_up->bias[e * 2 * I + 2 * c],
                   u = (double)gate_up->bias[e * 2 * I + 2 * c + 1];
            for (k = 0; k < H; k++) {
                g += (double)from_bf16(x[k]) * (double)w1[2 * c * H + k];
                u += (double)from_bf16(x[k]) * (double)w1[(2 * c + 1) * H + k];
            }
            g = g < 7 ? g : 7;
            u = u < 7 ? u > -7 ? u : -7 : 7;
            mid[c] = g / (1 + exp(-1.702 * g)) * (u + 1);
        }
        for (c = 0; c < H; c++) {
            double v = (double)down->bias[e * H + c];
            for (k = 0; k < I; k++) v += mid[k] * (double)w2[c * I + k];
            want[c] += exps[e] / sum * v;
        }
    }
    for (c = 0; c < H; c++) {
        const double d = (double)from_bf16(y[c]) - want[c];
        signal += want[c] * want[c];
        noise += d * d;
    }
    free(w1);
    free(w2);
    free(want);
    free(mid);
    free(exps);
    return 10 * log10(signal / noise);
}

static double now_ms(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    int small = 0, word = 1;
    mxdnn_engine_kind_t kind = mxdnn_cpu;
    long long T = 16, i;
    mxdnn_primitive_desc_t pd;
    mxdnn_primitive_t route;
    mxdnn_memory_desc_t logits_md;
    matmul_t gate_up, down;
    double db, best = 1e30;

    for (; word + 1 < argc && strncmp(argv[word], "--", 2) == 0; word += 2) {
        if (strcmp(argv[word], "--engine") == 0)
            kind = strcmp(argv[word + 1], "cuda") == 0 ? mxdnn_cuda : mxdnn_cpu;
        else
            small = strcmp(argv[word + 1], "small") == 0;
    }
    if (word < argc) T = atoll(argv[word]);
    if (T < 1) {
        fprintf(stderr, "usage: moe_layer_c [--engine cpu|cuda] [--shape small|20b] [TOKENS]\n");
        return 2;
    }
    E = small ? 8 : 32;
    TOP = small ? 2 : 4;
    H = small ? 160 : 2880;
    I = small ? 96 : 2880;
    CHECK(mxdnn_engine_create(&engine, kind, 0));
    CHECK(mxdnn_stream_create(&stream, engine, mxdnn_stream_default_flags));

    /* 1. Primitives and packed weights; the number of tokens is a runtime value. */
    logits_md = matrix(ANY_ROWS, E, mxdnn_f32);
    CHECK(mxdnn_moe_route_primitive_desc_create(
            &pd, engine, logits_md, TOP, mxdnn_route_topk_softmax, mxdnn_route_flags_none, 1, 1, NULL));
    CHECK(mxdnn_primitive_create(&route, pd));
    CHECK(mxdnn_primitive_desc_destroy(pd));
    CHECK(mxdnn_memory_desc_destroy(logits_md));
    gate_up = make_matmul(matrix(ANY_ROWS, H, mxdnn_bf16), H, 2 * I, grouped(ANY_ROWS, I, E), 1);
    down = make_matmul(grouped(ANY_ROWS, I, E), I, H, matrix(ANY_ROWS, H, mxdnn_bf16), 0);

    {
        /* 2. Memories for T tokens. */
        const long long rows = T * TOP;
        float *logits = buffer((size_t)(T * E) * 4);
        uint16_t *x = buffer((size_t)(T * H) * 2), *y = buffer((size_t)(T * H) * 2);
        enum { LOGITS, IDS, WEIGHTS, ENDS, TOKENS, ROW_WEIGHTS, X, MID, Y, COUNT };
        mxdnn_memory_t mem[COUNT];
        mem[LOGITS] = memory(matrix(T, E, mxdnn_f32));
        mem[IDS] = memory(matrix(T, TOP, mxdnn_s32));
        mem[WEIGHTS] = memory(matrix(T, TOP, mxdnn_f32));
        mem[ENDS] = memory(vector(E, mxdnn_s32));
        mem[TOKENS] = memory(vector(rows, mxdnn_s32));
        mem[ROW_WEIGHTS] = memory(vector(rows, mxdnn_f32));
        mem[X] = memory(matrix(T, H, mxdnn_bf16));
        mem[MID] = memory(grouped(rows, I, E));
        mem[Y] = memory(matrix(T, H, mxdnn_bf16));
        for (i = 0; i < T * E; i++) logits[i] = 3.f * uniform();
        for (i = 0; i < T * H; i++) x[i] = to_bf16(1.7f * uniform());
        put(mem[LOGITS], logits, (size_t)(T * E) * 4);
        put(mem[X], x, (size_t)(T * H) * 2);
        {
            const mxdnn_exec_arg_t route_args[] = {{MXDNN_ARG_SRC, mem[LOGITS]},
                    {MXDNN_ARG_TOPK_IDS, mem[IDS]}, {MXDNN_ARG_TOPK_WEIGHTS, mem[WEIGHTS]},
                    {MXDNN_ARG_GROUP_OFFSETS, mem[ENDS]}, {MXDNN_ARG_GATHER_IDX, mem[TOKENS]},
                    {MXDNN_ARG_ROW_WEIGHTS, mem[ROW_WEIGHTS]}};
            /* The rows of an expert are gathered from the tokens ... */
            const mxdnn_exec_arg_t gate_up_args[] = {{MXDNN_ARG_SRC, mem[X]},
                    {MXDNN_ARG_WEIGHTS, gate_up.weights}, {MXDNN_ARG_BIAS, gate_up.bias_memory},
                    {MXDNN_ARG_DST, mem[MID]}, {MXDNN_ARG_GROUP_OFFSETS, mem[ENDS]},
                    {MXDNN_ARG_GATHER_IDX, mem[TOKENS]}};
            /* ... and go back to them: each times its weight, those of a token summed. */
            const mxdnn_exec_arg_t down_args[] = {{MXDNN_ARG_SRC, mem[MID]},
                    {MXDNN_ARG_WEIGHTS, down.weights}, {MXDNN_ARG_BIAS, down.bias_memory},
                    {MXDNN_ARG_DST, mem[Y]}, {MXDNN_ARG_GROUP_OFFSETS, mem[ENDS]},
                    {MXDNN_ARG_SCATTER_IDX, mem[TOKENS]}, {MXDNN_ARG_TOPK_WEIGHTS, mem[ROW_WEIGHTS]}};
            int run;

            /* 3. The layer: nothing is waited for between the steps. */
            for (run = 0; run < 5; run++) {
                const double start = now_ms();
                CHECK(mxdnn_primitive_execute(route, stream, 6, route_args));
                CHECK(mxdnn_primitive_execute(gate_up.primitive, stream, 6, gate_up_args));
                CHECK(mxdnn_primitive_execute(down.primitive, stream, 7, down_args));
                CHECK(mxdnn_stream_wait(stream));
                best = now_ms() - start < best ? now_ms() - start : best;
            }
            printf("%lld tokens, best of 5: %.4f ms\n", T, best);
            get(mem[Y], y, (size_t)(T * H) * 2);
            db = check(&gate_up, &down, logits, x, y);
        }
        for (i = 0; i < COUNT; i++) CHECK(mxdnn_memory_destroy(mem[i]));
        free(logits);
        free(x);
        free(y);
    }
    destroy_matmul(&gate_up);
    destroy_matmul(&down);
    CHECK(mxdnn_primitive_destroy(route));
    CHECK(mxdnn_stream_destroy(stream));
    CHECK(mxdnn_engine_destroy(engine));
    /* Two roundings to bf16 leave about 50 dB; a wrong expert, weight or scale leaves less than 20. */
    printf("%s: %.1f dB against plain loops\n", db >= 40 ? "right" : "WRONG", db);
    return db >= 40 ? 0 : 1;
}
