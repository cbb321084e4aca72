// SPDX-License-Identifier: Apache-2.0
// Addresses of up to sixteen equally spaced rows from two base registers and the stride's odd
// multiples, so that a loop over k advances two registers instead of sixteen.
#pragma once

#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct row_addr_t {
    static constexpr int rows_per_base = 8;
    static constexpr int max_rows = 2 * rows_per_base;

    Xbyak::Reg64 base[2], stride, stride3, stride5, stride7;

    Xbyak::RegExp operator()(int row) const {
        const Xbyak::RegExp b = base[row / rows_per_base];
        switch (row % rows_per_base) {
        case 0: return b;
        case 1: return b + stride;
        case 2: return b + stride * 2;
        case 3: return b + stride3;
        case 4: return b + stride * 4;
        case 5: return b + stride5;
        case 6: return b + stride3 * 2;
        default: return b + stride7;
        }
    }
    // stride is loaded.
    void set_multiples(jit_base_t &j, int rows) const {
        if (rows > 3) j.lea(stride3, j.ptr[stride + stride * 2]);
        if (rows > 5) j.lea(stride5, j.ptr[stride + stride * 4]);
        if (rows > 7) j.lea(stride7, j.ptr[stride3 + stride * 4]);
    }
    // base[0] is loaded.
    void set_second_base(jit_base_t &j, int rows) const {
        if (rows > rows_per_base) j.lea(base[1], j.ptr[base[0] + stride * 8]);
    }
    void advance(jit_base_t &j, int rows, int bytes) const {
        j.add(base[0], bytes);
        if (rows > rows_per_base) j.add(base[1], bytes);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
