// SPDX-License-Identifier: Apache-2.0
// Rows of f8_e4m3 at the speed of memory: from codes or from bf16, as codes, in their own order or in
// that of wgmma's registers, or as bf16 again. A team takes a row, a lane 32 neighbours of it at a time, as
// whole pieces of 16 bytes. A team is a warp or, where rows are quantised, a CTA: that is much work for each
// element, and the matmul waits for the last row.
#pragma once

#include "gpu/cuda/device/kernels/convert_source_row.cuh"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct fp8_rows_t {
    static constexpr int threads(bool quantises) { return quantises ? 128 : 256; }
    static constexpr int team(bool quantises) { return quantises ? 128 : 32; } // threads that have a row
    static constexpr int teams(bool quantises) { return threads(quantises) / team(quantises); }
    static constexpr int ctas(bool quantises) { return quantises ? 8 : 4; } // of a multiprocessor
    static constexpr int unit = 32;                                         // elements of a lane
    static constexpr int once = 128; // units of a row that are loaded at a time
    // Whether the kernel can read rows of these types at these addresses.
    static bool may_take(const convert_source_args_t &a) {
        return a.dt == (quantises(a) ? mxdnn_bf16 : mxdnn_f8_e4m3)
               && (quantises(a) || (a.recipe.kind == recipe_kind_t::none && scales_rows(a.quant.scale_dt)));
    }
    static bool takes(const convert_source_args_t &a) {
        return may_take(a) && (!a.codes || a.order != fp8_order_t::pairs) && !a.wanted && a.K % unit == 0
               && a.terms == 1 && a.col_step == (quantises(a) ? 2 : 1) && a.row_step % 16 == 0
               && reinterpret_cast<uintptr_t>(a.elements) % 16 == 0;
    }
    static bool scales_rows(data_type_t dt) { return dt == mxdnn_f32 || dt == mxdnn_bf16 || dt == mxdnn_f16; }
    static bool quantises(const convert_source_args_t &a) { return a.recipe.kind == recipe_kind_t::row_fp8; }
};

// 32 codes, in words of neighbours, in the order of fp8_register_place() or as they are.
__device__ __forceinline__ void store_unit(uint8_t *to, const uint32_t (&w)[8], bool plain) {
    static_assert(fp8_register_place(0) == 1 && fp8_register_place(16) == 0 && fp8_register_place(1) == 3
                          && fp8_register_place(2) == 5 && fp8_register_place(8) == 17,
            "bytes of two words in turn");
    if (plain) {
        reinterpret_cast<uint4 *>(to)[0] = make_uint4(w[0], w[1], w[2], w[3]);
        reinterpret_cast<uint4 *>(to)[1] = make_uint4(w[4], w[5], w[6], w[7]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
        reinterpret_cast<uint4 *>(to)[i] = make_uint4(__byte_perm(w[4 + 2 * i], w[2 * i], 0x5140),
                __byte_perm(w[4 + 2 * i], w[2 * i], 0x7362), __byte_perm(w[5 + 2 * i], w[1 + 2 * i], 0x5140),
                __byte_perm(w[5 + 2 * i], w[1 + 2 * i], 0x7362));
}

// The values of 32 codes, in words of neighbours.
__device__ __forceinline__ void store_values(uint16_t *to, const uint32_t (&w)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const __half2 pair(__nv_cvt_fp8x2_to_halfraw2(uint16_t(w[i + j / 2] >> j % 2 * 16), __NV_E4M3));
            pairs[j] = to_bf16x2(__low2float(pair), __high2float(pair));
        }
        reinterpret_cast<uint4 *>(to)[i / 2] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

// x / step for a bf16 x, so exactly that its code of f8_e4m3 is that of div_f32(). The inverse is rounded
// down, so that zeros keep their signs.
struct divisor_t {
    float inverse, rest; // their sum is 1 / step
    bool plain;          // whether they are valid
    __device__ explicit divisor_t(float step) {
        inverse = __frcp_rz(step);
        rest = fmaf(-step, inverse, 1.f) * inverse;
        // A step of ones only has quotients beside the middle of two numbers.
        plain = step >= 0x1p-90f && step <= 0x1p100f && (__float_as_uint(step) & 0x7FFFFF) != 0x7FFFFF;
    }
    __device__ __forceinline__ float operator()(float x) const { return fmaf(x, inverse, x * rest); }
};

// quantises: the source is bf16, with one scale per row. Otherwise it is codes with given scales.
// makes_codes: the result is codes. Otherwise it is bf16.
template <bool quantises, bool makes_codes>
__global__ void __launch_bounds__(fp8_rows_t::threads(quantises), fp8_rows_t::ctas(quantises))
        fp8_rows(const __grid_constant__ convert_source_args_t a) {
    using k = fp8_rows_t;
    constexpr int words = quantises ? 16 : 8; // of a unit
    constexpr int threads = k::threads(quantises), team = k::team(quantises), teams = k::teams(quantises),
                  held = k::once / team;
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();
    const int lane = threadIdx.x % team, units = int(a.stride / k::unit);
    for (int64_t r = int64_t(blockIdx.x) * teams + threadIdx.x / team; r < a.rows;
            r += int64_t(gridDim.x) * teams) {
        const int64_t m = source_row_of(a, r);
        const int taken = m < 0 ? 0 : int(a.K / k::unit); // the other elements are zeros
        const uint8_t *row = a.elements + m * a.row_step;
        uint32_t x[held][words];
        const auto load = [&](int first) {
#pragma unroll
            for (int h = 0; h < held; h++) {
                const int u = first + team * h + lane;
#pragma unroll
                for (int i = 0; i < words; i += 4) {
                    const uint4 v = u < taken ? __ldcs(reinterpret_cast<const uint4 *>(
                                            row + int64_t(u) * words * 4 + i * 4))
                                              : make_uint4(0, 0, 0, 0);
                    x[h][i] = v.x, x[h][i + 1] = v.y, x[h][i + 2] = v.z, x[h][i + 3] = v.w;
                }
            }
        };
        float step = 1.f;
        if constexpr (quantises) {
            uint32_t most = 0; // in halves
            for (int first = 0; first < units; first += k::once) {
                load(first);
#pragma unroll
                for (int h = 0; h < held; h++)
#pragma unroll
                    for (int i = 0; i < words; i++) most = __vmaxu2(most, x[h][i] & 0x7FFF7FFFu);
            }
            step = row_fp8_scale(largest_of_all<threads>(max(most & 0xFFFF, most >> 16)) << 16);
        }
        if (lane == 0)
            a.factors[r] = quantises ? step : m < 0 ? 1.f : row_scale(a.quant.scale_dt, scale_at(a, m, 0));
        const bool nan = is_nan(step);
        const divisor_t divide(step);
        for (int first = 0; first < units; first += k::once) {
            if (!quantises || units > k::once) load(first);
#pragma unroll
            for (int h = 0; h < held; h++) {
                const int u = first + team * h + lane;
                if (u >= units) break;
                const int64_t to = r * a.stride + int64_t(u) * k::unit;
                uint32_t codes[8];
                if constexpr (quantises) {
#pragma unroll
                    for (int i = 0; i < words; i++) {
                        const float low = float_of(x[h][i] << 16), high = float_of(x[h][i] & 0xFFFF0000u);
                        const uint32_t pair = nan ? 0
                                              : divide.plain
                                                      ? to_e4m3x2(divide(low), divide(high))
                                                      : to_e4m3x2(div_f32(low, step), div_f32(high, step));
                        codes[i / 2] = i % 2 ? codes[i / 2] | pair << 16 : pair;
                    }
                } else {
#pragma unroll
                    for (int i = 0; i < 8; i++) codes[i] = x[h][i];
                }
                if constexpr (makes_codes)
                    store_unit(a.codes + to, codes, a.order == fp8_order_t::plain);
                else
                    store_values(a.out + to, codes);
            }
        }
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
