// SPDX-License-Identifier: Apache-2.0
// The division of a scratchpad: an implementation books its parts when its descriptor is made, and finds them
// by the same names when it executes. An implementation that is made of others books one part for each of
// them, in which they find their own parts.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

enum class scratch_t : uint8_t {
    // For products
    source_rows, // rows of the source in the form that kernels read
    row_scales,
    column_scales,
    weights,   // decoded
    workspace, // workspace of cuBLASLt
    results,   // results before they become the destination
    sums,
    partial_sums, // sums over parts of K
    thread,       // buffers of one thread
    tasks,        // what is left of the tasks of each thread
    left_panels,  // panels that another kernel computes
    // For rows that belong to experts
    experts,
    segments,
    rows,
    row_shifts,
    meetings, // several rows that are added to one row of the destination
    group_ids,
    // For routing and moving rows
    bias,
    scores,
    keys,
    positions,
    ids,
    row_weights,
    first_rows,
    group_starts,
    inverse,
    // For reorders
    values,
    amax,
    // For the implementations that another one consists of
    nested,
};

class scratch_parts_t {
public:
    // Books a part: `copies` times so many bytes. Each copy begins on its own cache line. A part is booked
    // once. If sizes overflow, the total becomes the largest value of the type, which no primitive may have.
    void book(scratch_t part, int64_t bytes, int64_t copies = 1) {
        assert(count_ < parts_.size());
        const int64_t stride = bytes > largest ? largest : round_up(bytes, line);
        int64_t all = 0, end = 0;
        const bool fits = !__builtin_mul_overflow(stride, copies, &all) && all <= largest
                          && !__builtin_add_overflow(round_up(size_, start), all, &end) && end <= largest;
        parts_[count_++] = {part, fits ? round_up(size_, start) : 0, stride};
        size_ = fits ? end : largest;
    }
    void book(scratch_t part, const scratch_parts_t &nested) { book(part, nested.size()); }

    int64_t size() const { return size_; }
    // The offset of a part in the scratchpad. The part was booked.
    int64_t offset(scratch_t part, int64_t copy = 0) const {
        const auto *p = std::find_if(
                parts_.begin(), parts_.begin() + count_, [&](const part_t &x) { return x.part == part; });
        assert(p != parts_.begin() + count_);
        return p->offset + p->stride * copy;
    }
    bool has(scratch_t part) const {
        return std::any_of(
                parts_.begin(), parts_.begin() + count_, [&](const part_t &x) { return x.part == part; });
    }

private:
    static constexpr int64_t line = 64, start = 256; // bytes that devices read together
    static constexpr int64_t largest = int64_t(1) << 60;
    struct part_t {
        scratch_t part;
        int64_t offset, stride;
    };
    std::array<part_t, 12> parts_{};
    size_t count_ = 0;
    int64_t size_ = 0;
};

} // namespace impl
} // namespace mxdnn
