// SPDX-License-Identifier: Apache-2.0
// Attention on a device. Keys and values are kept as rows [sequence][head][slot][head_size]; position p is in
// slot p % capacity.
#pragma once

#include "kernels.hpp"

namespace llm::cuda {

// A layer's cache, and the shape of its attention.
struct attention_t {
    int64_t heads, kv_heads, head_size;
    int64_t capacity, window; // window 0: all positions are seen
    bool is_interleaved;      // pairs of the rotation
    float scale, turn_factor; // of queries; of sines and cosines
    const float *frequencies; // [head_size / 2]
    type_t cache, result;
    void *keys, *values;
    const float *sinks; // [heads], or null

    // Elements of a row of queries, keys and values.
    constexpr int64_t qkv() const { return (heads + 2 * kv_heads) * head_size; }
};

// ---- any shape ----

// Rotates queries and keys of qkv [rows, a.qkv()], stores keys and values. Queries, multiplied by a.scale,
// stay where they are.
void rotate_and_store(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, float *qkv);
// Attention of rows after that.
void attend_plainly(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, void *y);

// ---- some rows of one sequence that follow each other ----

bool can_attend_span(const attention_t &a);
// As rotate_and_store(), but queries go to y, in powers of 2 and in the type of results.
void prepare_spans(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, float *qkv, void *y);
// Results take the place of the queries.
void attend_span(stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position, void *y);
// The same for heads of 64 in bf16 on a device of compute capability 9.
bool can_attend_span_on_hopper(const attention_t &a);
void attend_span_on_hopper(
        stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position, void *y);

// ---- one row of each of some sequences ----

// Does what rotate_and_store() does, too; queries in qkv remain as they are. `room` has attend_rows_room()
// bytes, which were zeros before the first call.
bool can_attend_rows(const attention_t &a);
size_t attend_rows_room(const attention_t &a);
void attend_rows(stream_t s, const attention_t &a, int64_t rows, const int32_t *sequences,
        const int32_t *positions, const float *qkv, void *room, void *y);

} // namespace llm::cuda
