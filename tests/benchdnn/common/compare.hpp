// SPDX-License-Identifier: Apache-2.0
// Holding a destination against what it may be.
#pragma once

#include <initializer_list>

#include "benchdnn/common/interval.hpp"
#include "benchdnn/common/tensor.hpp"

namespace bench {

std::string index_text(const int64_t *idx, size_t n); // "[3,5]"

struct mismatch_t {
    std::string text; // of the first few
    int64_t count = 0;
    int64_t of = 0; // values compared by the functions below
    void add(const std::string &what) {
        if (count++ < 3) text += "    " + what + "\n";
    }
    // Numbers that have to be the same: element `index` of `what`.
    void same(const char *what, std::initializer_list<int64_t> index, int64_t want, int64_t got) {
        if (want == got) return;
        add(what + (" " + index_text(index.begin(), index.size())) + " expected " + std::to_string(want)
                + " got " + std::to_string(got) + ", bound: the same bits");
    }
};

// Instead of a result: nothing may be written there, so the poison of buffer_t remains.
constexpr interval_t untouched = {0, -1};

// Bytes between the rows of a destination: nothing may be written there.
void compare_gaps(const tensor_t &dst, mismatch_t &bad);

// A plain destination: within the bound and one rounding to its type. `want` is row-major.
void compare_plain(const tensor_t &dst, const std::vector<interval_t> &want, mismatch_t &bad);

// A quantised destination. The scale must follow from a result within the bound. Each code must lie between
// those of the two ends of its bound, since quantising is monotone.
void compare_quantised(const quantised_t &dst, mxdnn_scale_rounding_t rounding,
        const std::vector<interval_t> &want, mismatch_t &bad);

// Either of them.
void compare(const operand_t &dst, mxdnn_scale_rounding_t rounding, const std::vector<interval_t> &want,
        mismatch_t &bad);

// For a source that is quantised in execute: the signal-to-noise ratio of a result against that of the
// original source, " sqnr:41.2dB(recipe:41.2dB)". The ratio of the recipe is that of `want`, which is exact
// except for the codes.
std::string sqnr_text(
        const tensor_t &dst, const std::vector<interval_t> &want, const std::vector<interval_t> &unquantised);

// A fault as a wrong lane of a kernel would make it: one element gets the sign of its neighbour and a wrong
// exponent.
void plant_fault(const tensor_t &dst);

} // namespace bench
