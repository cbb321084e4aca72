// SPDX-License-Identifier: Apache-2.0
// What device/kernels/sm90/fp8_weights.cu is told: packed MXFP4 panels that become columns of f8_e4m3 with
// one scale each.
#pragma once

#include <cstdint>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// f8_e4m3 represents e2m1 * 2^e for e from -8 to 6. The largest block of a column gets e = 6. So a column
// whose block scales lie within 2^14 of each other is exact.
constexpr int fp8_highest = 6, fp8_lowest = -8;
// Columns whose largest block has a scale byte outside of these are left to other kernels. So scales can be
// multiplied by any scale of a row without leaving the range of f32, unless the result does.
constexpr int fp8_least_scale = 69, fp8_most_scale = 133;

// The order of codes along K in which a thread has 16 of them side by side: within each 64, the place of
// element k. Sums do not depend on the order, as long as both sides have it.
MXDNN_HD constexpr int fp8_place(int k) { return k % 8 / 2 * 16 + k / 16 * 4 + k % 16 / 8 * 2 + k % 2; }
// The same order if decoded weights stay in the registers of wgmma (device/mma/decode_f4_fp8.cuh): within
// each 32.
MXDNN_HD constexpr int fp8_register_place(int k) {
    return k % 16 / 8 * 16 + k % 8 / 2 * 4 + k % 2 * 2 + (k < 16 ? 1 : 0);
}

struct fp8_weights_args_t {
    const uint8_t *panels = nullptr; // of 64 columns
    int64_t panel_bytes = 0;
    int32_t count = 0, columns = 0; // number of panels, and of columns that exist
    int32_t K = 0;                  // a multiple of 64
    uint8_t *codes = nullptr;       // [columns, K]
    float *scales = nullptr;        // [columns]
    bool early = false;             // as in launch_args_t
    int32_t *left = nullptr;        // [count]: not 0 if the panel has a column that is not exact
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
