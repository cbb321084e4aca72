// SPDX-License-Identifier: Apache-2.0
// Rows in groups, and how they are quantised, for tests of mx_reorder on the host and on devices.
#pragma once

#include <mxdnn/mxdnn.hpp>

#include <cstdint>
#include <vector>

#include "common/formats/swizzle_128x4.hpp"

namespace rows_in_groups {

using dim = mxdnn::memory::dim;
using data_type = mxdnn::memory::data_type;
constexpr dim block = 32;

// How a side is quantised; a type of high precision is not.
struct format_t {
    data_type type;
    bool of_rows = false, swizzled = false; // blocks of rows, not columns; scales in the 128x4 order

    bool quantised() const {
        return type != data_type::f32 && type != data_type::bf16 && type != data_type::f16;
    }
    // Of the scales of a matrix.
    mxdnn::memory::dims scale_dims(dim rows, dim C) const {
        using mxdnn::impl::div_up;
        using mxdnn::impl::swizzle_128x4;
        const dim r = of_rows ? div_up(rows, block) : rows, c = of_rows ? C : div_up(C, block);
        if (!swizzled) return {r, c};
        return {1, of_rows ? swizzle_128x4::size(C, r) : swizzle_128x4::size(rows, c)};
    }
    void describe(mxdnn::primitive_attr &attr, int arg, bool dynamic,
            mxdnn::scale_rounding rounding = mxdnn::scale_rounding::rceil) const {
        if (!quantised()) return;
        attr.set_scales(arg, 3, of_rows ? mxdnn::memory::dims{block, 1} : mxdnn::memory::dims{1, block},
                data_type::e8m0, false,
                dynamic ? mxdnn::quantization_mode::dynamic_mx : mxdnn::quantization_mode::static_sazp);
        if (dynamic) attr.set_scale_rounding(arg, rounding);
        if (swizzled) attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    }
};

struct groups_t {
    std::vector<dim> rows;
    dim spare; // rows after the last group

    dim all() const {
        dim n = spare;
        for (const dim r : rows) n += r;
        return n;
    }
    std::vector<int32_t> offsets(bool starts) const {
        std::vector<int32_t> v;
        if (starts) v.push_back(0);
        int32_t end = 0;
        for (const dim r : rows) v.push_back(end += int32_t(r));
        return v;
    }
};

} // namespace rows_in_groups
