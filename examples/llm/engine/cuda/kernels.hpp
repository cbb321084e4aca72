// SPDX-License-Identifier: Apache-2.0
// What kernels.cu does between the matmuls; each call is put into the stream. Matrices lie row by row,
// pointers are device memory.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace llm::cuda {

using stream_t = CUstream_st *;
// The type of rows that linear layers read, and of plain weights.
enum class type_t { f32, bf16 };

void look_up(
        stream_t s, int64_t rows, int64_t n, const int32_t *tokens, type_t type, const void *table, float *x);
void rms_norm(stream_t s, int64_t rows, int64_t n, const float *x, const float *weight, float eps,
        type_t type, void *y);
void take_rows(stream_t s, int64_t rows, int64_t n, const float *x, const int32_t *index, float *y);
// The index of the largest of each row, or -1 where one of the row is no finite number; `room` has
// largest_room() bytes.
size_t largest_room(int64_t rows);
void largest(stream_t s, int64_t rows, int64_t n, const float *x, void *room, int32_t *index);
void increment(stream_t s, int64_t n, int32_t *values);

// What follows a plain matmul: y = then(x + bias), with columns of y where there is a gate and an up.
enum class then_t { store, add, gated_silu, silu, multiply };
struct finish_t {
    int64_t rows, columns, x_columns, y_stride;
    then_t then;
    type_t type;       // of y
    const float *bias; // or null
};
void finish(stream_t s, const finish_t &f, const float *x, const float *factor, void *y);

// y = x * w^T for 8 rows of bf16 or fewer, with a bias or none, added to y or not. Where y has few columns,
// such as those of a router, more rows take less time than by cuBLASLt, too: other blocks have them.
constexpr int64_t few_rows = 8, some_rows = 64, few_columns = 256;
bool can_multiply_few(int64_t rows, int64_t in, int64_t out);
// Instead of rows in bf16: what RMSNorm makes of rows in f32. It becomes h, too, where h is not null. There
// is a gain for one row or two and few columns: every block makes the whole norm.
bool can_norm_few(int64_t rows, int64_t in, int64_t out);
struct few_norm_t {
    const float *x = nullptr, *weight = nullptr;
    float eps = 0;
    void *h = nullptr;
};
struct few_t {
    int64_t rows, in, out, y_stride;
    bool adds;
    const void *x, *w;
    const float *bias;
    float *y;
    few_norm_t norm = {};
};
void multiply_few(stream_t s, const few_t &f);

// Experts on plain weights, a warp for each result: the baseline, not made for speed.
struct experts_t {
    int64_t rows, experts, hidden, intermediate; // rows of a token and one of its experts
    bool is_interleaved;
    float alpha, limit;
    type_t type; // of h and the hidden rows
    type_t weights;
    const int32_t *ends, *token_of_row;
    const float *weight_of_row, *gate_up_bias, *down_bias;
};
void gate_up(stream_t s, const experts_t &e, const void *h, const void *weights, void *hidden);
void down(stream_t s, const experts_t &e, const void *hidden, const void *weights, float *y);

// Reads memory; what it finds in it goes to `sum`.
void read_all(stream_t s, const void *bytes, int64_t size, float *sum);

} // namespace llm::cuda
