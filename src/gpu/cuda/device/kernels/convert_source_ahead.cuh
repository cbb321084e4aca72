// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 as codes of f8_e4m3 with a scale each, while the matmul that reads them already runs: on a few
// multiprocessors, row after row, so that memory is busy where the others multiply. A row's factor is written
// after its codes, and tells that it is there.
#pragma once

#include "gpu/cuda/device/kernels/convert_source_fp8.cuh"
#include "gpu/cuda/device/ptx/come.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// A warp takes a row, a lane every 32nd piece of it. The last warp publishes the rows of all others together,
// because a multiprocessor takes a third of a microsecond for each fence. A CTA fills the registers of a
// multiprocessor, so that no CTA of the matmul is beside it.
struct fp8_ahead_t {
    static constexpr int warps = 16, threads = (warps + 1) * 32;
    static constexpr int piece = 8;        // elements: 16 bytes of bf16
    static constexpr int held = 12;        // pieces of a lane that are loaded at a time
    static constexpr int once = 32 * held; // pieces of a row
    static constexpr int rounds = 4;       // of rows that have not been published
};

// Writes the codes of a row. Returns its scale, which lanes have alike.
__device__ __forceinline__ float make_fp8_row(const convert_source_args_t &a, int64_t r, int lane) {
    using k = fp8_ahead_t;
    const int pieces = int(a.stride / k::piece);
    const int64_t m = source_row_of(a, r);
    const int taken = m < 0 ? 0 : int(a.K / k::piece); // the other elements are zeros
    const uint8_t *row = a.elements + m * a.row_step;
    uint4 x[k::held];
    const auto load = [&](int first) {
#pragma unroll
        for (int h = 0; h < k::held; h++) {
            const int p = first + 32 * h + lane;
            x[h] = p < taken ? __ldcs(reinterpret_cast<const uint4 *>(row) + p) : make_uint4(0, 0, 0, 0);
        }
    };
    uint32_t most = 0; // in halves
    for (int first = 0; first < pieces; first += k::once) {
        load(first);
#pragma unroll
        for (int h = 0; h < k::held; h++)
            for (const uint32_t w : {x[h].x, x[h].y, x[h].z, x[h].w}) most = __vmaxu2(most, w & 0x7FFF7FFFu);
    }
    const float step = row_fp8_scale(__reduce_max_sync(~0u, max(most & 0xFFFF, most >> 16)) << 16);
    const divisor_t divide(step);
    const auto store = [&](const auto &codes) {
        for (int first = 0; first < pieces; first += k::once) {
            if (pieces > k::once) load(first);
#pragma unroll
            for (int h = 0; h < k::held; h++) {
                const int p = first + 32 * h + lane;
                if (p >= pieces) break;
                *reinterpret_cast<uint2 *>(a.codes + r * a.stride + int64_t(p) * k::piece) =
                        make_uint2(codes(x[h].x) | codes(x[h].y) << 16, codes(x[h].z) | codes(x[h].w) << 16);
            }
        }
    };
    const auto low = [](uint32_t w) { return float_of(w << 16); };
    const auto high = [](uint32_t w) { return float_of(w & 0xFFFF0000u); };
    if (divide.plain)
        store([&](uint32_t w) -> uint32_t { return to_e4m3x2(divide(low(w)), divide(high(w))); });
    else
        store([&](uint32_t w) -> uint32_t {
            return is_nan(step) ? 0 : to_e4m3x2(div_f32(low(w), step), div_f32(high(w), step));
        });
    return step;
}

__global__ void __launch_bounds__(fp8_ahead_t::threads, 1)
        fp8_rows_ahead(const __grid_constant__ convert_source_args_t a) {
#if __CUDA_ARCH__ >= 900 // whose kernels wait for rows
    using k = fp8_ahead_t;
    using namespace ptx;
    __shared__ uint64_t made[k::rounds], free[k::rounds];
    __shared__ float steps[k::rounds][k::warps];
    wait_for_earlier_kernels();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, round_rows = int(gridDim.x) * k::warps;
    const int64_t first_row = int64_t(blockIdx.x) * k::warps;
    // Only the rows of this CTA: others may have made theirs.
    for (int64_t i = threadIdx.x; first_row + i / k::warps * round_rows < a.rows; i += k::threads) {
        const int64_t r = first_row + i / k::warps * round_rows + i % k::warps;
        if (r < a.rows) a.factors[r] = float_of(row_to_come);
    }
    if (threadIdx.x == 0)
        for (int i = 0; i < k::rounds; i++) {
            barrier_init(shared_address(&made[i]), k::warps);
            barrier_init(shared_address(&free[i]), 1);
        }
    __threadfence();
    __syncthreads();
    let_later_kernels_start();
    int slot = 0, parity = 0;
    const auto next = [&] {
        if (++slot == k::rounds) slot = 0, parity ^= 1;
    };
    if (warp == k::warps) {
        for (int64_t r = first_row; r < a.rows; r += round_rows, next()) {
            barrier_wait(shared_address(&made[slot]), parity);
            const float step = steps[slot][lane % k::warps];
            fence_with_copies();
            if (lane < k::warps && r + lane < a.rows) store_flag(a.factors + r + lane, step);
            __syncwarp();
            if (lane == 0) barrier_arrive(shared_address(&free[slot]));
        }
        return;
    }
    for (int64_t r = first_row + warp; r - warp < a.rows; r += round_rows, next()) {
        const float step = r < a.rows ? make_fp8_row(a, r, lane) : 0.f;
        barrier_wait(shared_address(&free[slot]), parity ^ 1);
        if (lane == 0) steps[slot][warp] = step;
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&made[slot]));
    }
#endif
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
