// SPDX-License-Identifier: Apache-2.0
// How far packed weights are from what they were made of.
#pragma once

#include "checkpoint.hpp"
#include "options.hpp"
#include "sources.hpp"

namespace mxdnn_pack {

// Sums over the weights of a tensor.
struct difference_t {
    double signal = 0, noise = 0;
    uint64_t not_finite = 0; // on one side only, or another value
    bool equal = true;

    void add(const float *original, const float *packed, size_t count);
    // Lower is worse.
    double decibels() const;
    // "equal", "18.46 dB"
    std::string text() const;
};

// Of packed weights of `packed`. Throws where they do not have the shape of the original.
difference_t compare(const checkpoint_t &packed, size_t entry, const source_t &original,
        const mxdnn::engine &engine, const options_t &options, unsigned threads);

} // namespace mxdnn_pack
