// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other before rows move: whether this one is ready, and what has to be the same on
// all of them.
#pragma once

#include "ep/error.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

enum class question_t : int64_t { layer, stage, counts, wait };

// Plain bytes, which travel as they are.
struct verdict_t {
    static constexpr int max_values = 10;

    int64_t status;             // mxdnn_success, or why this rank refuses
    int64_t rank;               // whose verdict it is; after a merge the lowest of those that say it
    int64_t question;           // question_t
    int64_t values[max_values]; // the same on every rank; their names follow from the question
    char text[256];             // the sentence of a refusal
};

// A verdict of this rank, with last_error() where it refuses.
verdict_t make_verdict(status_t status, int rank, question_t question, const int64_t *values, int count);

// Merges two verdicts into `to`: that of the lowest rank that refuses, or one that names what differs.
// Verdicts of all ranks, merged in any order and grouping, are a success only if no rank refuses and all
// values are the same.
void merge(const verdict_t &from, verdict_t &to);

// More rows than a rank has room for.
status_t refuse_rows(int64_t rows, int64_t capacity);

// The status, with the sentence as the last error.
status_t status_of(const verdict_t &verdict, const char *what);

} // namespace impl
} // namespace ep
} // namespace mxdnn
