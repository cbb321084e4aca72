// SPDX-License-Identifier: Apache-2.0
// A panel of weights decoded to integers, which several rows are multiplied with. For every 32 rows of K it
// has a block: s8 codes, as many rows in a dword as int8_decoder_t has, and two vectors of 16 columns.
//
// Consecutive blocks whose scales lie within a few powers of two of each other in every column form a window.
// Codes are shifted left by what their scale has above the least one of the window, so that one sum of
// integers for all of them is exact. It begins with a number that takes off what sources without a sign have
// too much, and is converted and scaled once, where the window ends.
#pragma once

#include <cstdint>

#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct int8_panel_t {
    static constexpr int source_offset = 128; // added to the codes of rows, which have no sign then
    static constexpr int start = k_step * panel_columns;    // where a window begins: s32
    static constexpr int scale = start + panel_columns * 4; // where it ends: f32
    static constexpr int block_bytes = scale + panel_columns * 4;
    // Instead of the first scale, where it goes on: a NaN that no scale becomes.
    static constexpr uint32_t goes_on = 0xffffffff;

    // Kernels read where the block after the last one would begin.
    static constexpr int64_t bytes(int64_t K) { return (div_up(K, int64_t(k_step)) + 1) * block_bytes; }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
