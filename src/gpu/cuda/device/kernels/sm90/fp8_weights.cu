// SPDX-License-Identifier: Apache-2.0
// Packed MXFP4 weights as columns of f8_e4m3 with one scale each, for products at the rate of FP8, and which
// panels have a column that this is not exact for.
//
// A CTA has a panel and some of its K. It looks through all scales of the panel for the largest one of each
// column; a thread then decodes 16 codes of two columns at a time, which it has side by side (fp8_place()).
#include <algorithm>

#include "common/formats/float_bits.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/ptx/barrier.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

constexpr int threads = 256, group = 128, panel_columns = 64, step_rows = 64;
constexpr int header_bytes = e8m0_scales_t::header_bytes,
              step_bytes = header_bytes + step_rows * panel_columns / 2;

__device__ __forceinline__ uint32_t to_e4m3x2(uint32_t f16x2) {
    uint16_t r;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(r) : "r"(f16x2));
    return r;
}
// Both halves 2^e; 0 if this is below the smallest f16.
__device__ __forceinline__ uint32_t power_of_two_f16x2(int e) {
    return e < -14 ? 0u : uint32_t(e + 15) << 10 | uint32_t(e + 15) << 26;
}

// Two codes in the form of land_f4(), times 2^e. As f16 such a code is 2^-14 of its value. Two products
// correct this, because one factor alone would be beyond f16.
__device__ __forceinline__ uint32_t encode_pair(uint32_t landed, uint32_t power) {
    const uint32_t f16 = (landed & 0x01C001C0u) << 3 | (landed & 0x80008000u);
    return to_e4m3x2(f16x2_t::mul(f16x2_t::mul(f16, power_of_two_f16x2(14)), power));
}

__global__ void __launch_bounds__(threads) fp8_weights(const __grid_constant__ fp8_weights_args_t a) {
    __shared__ uint32_t most[threads / 32][32], least[threads / 32][32];
    __shared__ uint8_t base[panel_columns]; // scale byte of the largest block of a column
    const int panel = blockIdx.x, thread = threadIdx.x % group, steps = a.K / step_rows;
    const uint8_t *packed = a.panels + panel * a.panel_bytes;
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();

    // A word has the scales of two columns in two blocks.
    const int word = threadIdx.x % 32, part = threadIdx.x / 32;
    uint32_t high = 0, low = ~0u;
#pragma unroll 4
    for (int s = part; s < steps; s += threads / 32) {
        const uint32_t scales =
                __ldg(reinterpret_cast<const uint32_t *>(packed + int64_t(s) * step_bytes) + word);
        high = __vmaxu4(high, scales);
        low = __vminu4(low, scales);
    }
    most[part][word] = high;
    least[part][word] = low;
    __syncthreads();
    bool left = false;
    if (part == 0) {
        for (int i = 1; i < threads / 32; i++) {
            high = __vmaxu4(high, most[i][word]);
            low = __vminu4(low, least[i][word]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            // Word w has columns c and c + 8 of 16.
            const int column = word / 8 * 16 + word % 8 + i * 8, shift = 8 * i;
            const int top = int(max(high >> shift & 255, high >> (shift + 16) & 255)),
                      bottom = int(min(low >> shift & 255, low >> (shift + 16) & 255));
            base[column] = uint8_t(top);
            const bool exact = top - bottom <= fp8_highest - fp8_lowest && top >= fp8_least_scale
                               && top <= fp8_most_scale;
            const int n = panel * panel_columns + column;
            if (n >= a.columns) continue;
            left |= !exact;
            // Panels that are not exact are computed again, and must not be slow or out of range here.
            if (blockIdx.y == 0) a.scales[n] = exact ? float_of(uint32_t(top - fp8_highest) << 23) : 0.f;
        }
    }
    left = __syncthreads_or(left);
    if (threadIdx.x == 0 && blockIdx.y == 0) a.left[panel] = left;

    const int column = thread / 32 * 16 + thread % 32 / 4, quad = thread % 4;
    const int tops[2] = {base[column], base[column + 8]};
    const int first = int(blockIdx.y) * (threads / group) + threadIdx.x / group,
              step = gridDim.y * (threads / group);
    const place_t place = mxfp4_t::place(thread, tiling_t());
    for (int s = first; s < steps; s += step) {
        const uint8_t *tile = packed + int64_t(s) * step_bytes;
        const uint4 codes = __ldg(reinterpret_cast<const uint4 *>(tile + place.codes));
        const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w},
                       scales = __ldg(reinterpret_cast<const uint32_t *>(tile + place.scales));
        uint32_t out[2][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t landed[4];
            land_f4(landed, words[i]);
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int e = int(scales >> (i / 2 * 16 + c * 8) & 255) - tops[c] + fp8_highest;
                const uint32_t power = power_of_two_f16x2(e);
                out[c][i] = encode_pair(landed[c], power) | encode_pair(landed[c + 2], power) << 16;
            }
        }
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int n = panel * panel_columns + column + c * 8;
            if (n < a.columns)
                *reinterpret_cast<uint4 *>(a.codes + int64_t(n) * a.K + s * step_rows + quad * 16) =
                        make_uint4(out[c][0], out[c][1], out[c][2], out[c][3]);
        }
    }
}

cudaError_t launch_weights(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const fp8_weights_args_t *>(args);
    // About four CTAs per multiprocessor. Each searches the scales.
    const int parts = std::min(std::max(4 * at.sm_count / a.count, 1), std::max(a.K / step_rows / 8, 1));
    const dim3 grid(unsigned(a.count), unsigned(parts));
    return launch_kernel(at, fp8_weights, {grid, threads, 0, a.early}, a);
}

} // namespace

const kernel_entry_t sm90_fp8_weights_kernel = {
        sizeof(fp8_weights_args_t), [](const void *) { return load_kernel(fp8_weights); }, launch_weights};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
