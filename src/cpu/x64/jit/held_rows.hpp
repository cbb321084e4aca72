// SPDX-License-Identifier: Apache-2.0
// Keeps the first part of a row of the source, or two short rows, in the first-level cache beside a stream of
// weights.
//
// Each panel of weights reads the same row. Before the next panel does, the weights have driven parts of it
// out of the cache, whose replacement is not quite that of the least recently used line; and lines that come
// from the second-level cache again and again hold up the weights. So with each step some lines of the row
// are read that are not needed yet. A position goes round the row several times while a panel is read once.
//
// The processor fetches the weights by itself meanwhile: weights that wait in the first-level cache would
// take the place of the row.
#pragma once

#include <algorithm>

#include "common/layouts/packed_shape.hpp"
#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class held_rows_t {
public:
    // Rows of `bytes` bytes. `lines` of each are read with a step.
    held_rows_t(int rows, int64_t bytes, int lines)
        : rows_(rows), lines_(lines), bytes_(int(held_bytes(rows, bytes)) / step_bytes() * step_bytes()) {}

    // Whether this pays: rows are not too short, and two of them not too long.
    bool any() const { return bytes_ > 0; }

    // The number of lines of a row of bytes with a step of 32 rows of K: as many for a step of 4 bits as for
    // two of 8.
    static int lines_of_int8(const packed_shape_t &weights) { return 24 / int(weights.bits); }

    // The address of the first row, and the distance of the second one.
    void begin(jit_base_t &j, const Xbyak::Address &first, const Xbyak::Address &stride) const {
        j.mov(end_[0], first);
        j.add(end_[0], bytes_);
        if (rows_ > 1) {
            j.mov(end_[1], stride);
            j.add(end_[1], end_[0]);
        }
        j.mov(begin_, -bytes_);
        j.mov(at_, -(bytes_ / step_bytes() + 1) / 2 * step_bytes());
    }
    void step(jit_base_t &j) const {
        for (int i = 0; i < lines_; i++)
            for (int r = 0; r < rows_; r++) j.mov(seen_, j.ptr[end_[r] + at_ + i * line_bytes]);
        j.add(at_, step_bytes());
        j.cmovns(at_, begin_);
    }

private:
    static constexpr int most_rows = 2;
    static constexpr int64_t most_of_one = 9 << 9, most_of_two = 12 << 10;
    static constexpr int line_bytes = 64;

    // Of each row, from its beginning. The rest comes from the second-level cache for every panel.
    static constexpr int64_t held_bytes(int rows, int64_t bytes) {
        if (rows == 1) return std::min(bytes, most_of_one);
        return rows <= most_rows && rows * bytes <= most_of_two ? bytes : 0;
    }

    const int rows_, lines_, bytes_;
    int step_bytes() const { return lines_ * line_bytes; }

    // The position is relative to the ends of the rows: from -bytes_ to 0. Row addresses of so few rows do
    // not use these registers, nor do kernels.
    const Xbyak::Reg64 at_ = Xbyak::util::r11, seen_ = Xbyak::util::r10, begin_ = Xbyak::util::r13;
    const Xbyak::Reg64 end_[most_rows] = {Xbyak::util::r12, Xbyak::util::rbx};
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
