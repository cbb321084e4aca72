// SPDX-License-Identifier: Apache-2.0
// One kind of int4 weights, for tests that run many kinds.
#pragma once

#include "cuda_call.hpp"

namespace cuda_test {

struct int4_weights_t {
    dt wei, scale, zero; // undef: no zeros
    memory::dim block = 32;

    bool zero_points() const { return zero == dt::u8; }
    bool zeros() const { return zero != dt::undef && !zero_points(); }
    std::string text() const {
        const auto name = [](dt t) { return std::string(mxdnn::impl::data_type_name(mxdnn_data_type_t(t))); };
        return name(wei) + " scales " + name(scale) + " by " + std::to_string(block)
               + (zero == dt::undef ? "" : " zeros " + name(zero));
    }
    void set(mxdnn::primitive_attr &attr) const {
        attr.set_scales(MXDNN_ARG_WEIGHTS, 3, {block, 1}, scale);
        if (zero != dt::undef) attr.set_zero_points(MXDNN_ARG_WEIGHTS, 3, {block, 1}, zero);
    }
};

} // namespace cuda_test
