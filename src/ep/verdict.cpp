// SPDX-License-Identifier: Apache-2.0
#include "ep/verdict.hpp"

#include <cstdio>
#include <cstring>

#include "ep/stages.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

// How values of a question are called, by question_t.
constexpr const char *value_names[][verdict_t::max_values] = {
        {"hidden", "experts", "max_tokens", "max_rows", "capacity", "alignment", "forward_type",
                "backward_type", "chunks", "the number of layers before"},
        {"the stage", "the number of the layer", "the pass"}, {}, {}};

// A stage has a name, other values are numbers.
void print_value(char *out, size_t size, int64_t question, int index, int64_t value) {
    if (question == int64_t(question_t::stage) && index == 0 && value >= 0 && value < stage_count)
        std::snprintf(out, size, "%s", stages[value].name);
    else
        std::snprintf(out, size, "%lld", static_cast<long long>(value));
}

} // namespace

verdict_t make_verdict(status_t status, int rank, question_t question, const int64_t *values, int count) {
    verdict_t v;
    std::memset(&v, 0, sizeof(v));
    v.status = status;
    v.rank = rank;
    v.question = int64_t(question);
    std::copy(values, values + count, v.values);
    if (status != mxdnn_success) std::snprintf(v.text, sizeof(v.text), "rank %d: %s", rank, last_error());
    return v;
}

void merge(const verdict_t &from, verdict_t &to) {
    if (from.status != mxdnn_success || to.status != mxdnn_success) {
        const bool both = from.status != mxdnn_success && to.status != mxdnn_success;
        if (both ? from.rank < to.rank : from.status != mxdnn_success) to = from;
        return;
    }
    const verdict_t &low = from.rank < to.rank ? from : to, &high = from.rank < to.rank ? to : from;
    verdict_t r = low;
    if (from.question != to.question) {
        r.status = mxdnn_invalid_arguments;
        std::snprintf(r.text, sizeof(r.text),
                "ranks %d and %d call different functions; every rank calls the same one", int(low.rank),
                int(high.rank));
    }
    for (int i = 0; i < verdict_t::max_values && r.status == mxdnn_success; i++) {
        if (low.values[i] == high.values[i]) continue;
        char a[64], b[64];
        print_value(a, sizeof(a), low.question, i, low.values[i]);
        print_value(b, sizeof(b), high.question, i, high.values[i]);
        r.status = mxdnn_invalid_arguments;
        std::snprintf(r.text, sizeof(r.text),
                "ranks disagree: %s is %s on rank %d and %s on rank %d; it has to be the same on every rank",
                value_names[low.question][i], a, int(low.rank), b, int(high.rank));
    }
    to = r;
}

status_t refuse_rows(int64_t rows, int64_t capacity) {
    return fail(mxdnn_invalid_arguments, "%lld rows would arrive; the capacity is %lld",
            static_cast<long long>(rows), static_cast<long long>(capacity));
}

status_t status_of(const verdict_t &v, const char *what) {
    if (v.status == mxdnn_success) return mxdnn_success;
    return fail(status_t(v.status), "%s: %.*s", what, int(sizeof(v.text)), v.text);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
