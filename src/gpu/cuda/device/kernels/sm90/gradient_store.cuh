// SPDX-License-Identifier: Apache-2.0
// The sums of a consumer of sm90_gradient become results.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/copy_out.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/device/ptx/zeros.cuh"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace gradient {

struct f32_result_t {
    using one = float;
    __device__ static float widen(float v) { return v; }
    __device__ static float narrow(float v) { return v; }
};
struct bf16_result_t {
    using one = __nv_bfloat16;
    __device__ static float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
    __device__ static __nv_bfloat16 narrow(float v) { return __float2bfloat16_rn(v); }
    __device__ static uint32_t pair(float x, float y) { return to_bf16x2(x, y); }
};
struct f16_result_t {
    using one = __half;
    __device__ static float widen(__half v) { return __half2float(v); }
    __device__ static __half narrow(float v) { return __float2half_rn(v); }
    __device__ static uint32_t pair(float x, float y) { return to_f16x2(x, y); }
};

// Sums become results in boxes of 16 rows of 128 bytes in shared memory, under the 128-byte swizzle.
constexpr int box_bytes = 16 * 128;

// The boxes of a warp. Tensor copies, which its lane 0 starts, take them to the result. Where those cannot,
// the warp does.
template <int boxes>
struct boxes_t {
    const sm90_gradient_args_t &g;
    const void *map;
    uint32_t at;
    int next = 0;

    // The sums of the warp's 16 of 64 rows from m on, and n columns. empty: the group has no rows.
    template <int n>
    __device__ __forceinline__ void store(int group, int m, int column, bool empty, float (&sum)[n / 2]) {
        if (empty)
#pragma unroll
            for (int i = 0; i < n / 2; i++) sum[i] = 0;
        m += threadIdx.x % 128 / 32 * 16;
        if (!g.copies)
            store_f32<n, false>(group, m, column, empty, sum);
        else if (g.to_dt == mxdnn_f32)
            store_f32<n, true>(group, m, column, empty, sum);
        else if (g.to_dt == mxdnn_bf16)
            store_16<bf16_result_t, n>(group, m, column, sum);
        else
            store_16<f16_result_t, n>(group, m, column, sum);
    }
    // Until no copy reads the boxes any more.
    __device__ __forceinline__ void wait() const {
        if (threadIdx.x % 32 == 0) ptx::copies_out_wait_read<0>();
        __syncwarp();
    }

private:
    // A box that no copy reads any more.
    __device__ __forceinline__ uint32_t take() {
        if (threadIdx.x % 32 == 0) ptx::copies_out_wait_read<boxes - 1>();
        __syncwarp();
        const uint32_t box = at + next * box_bytes;
        if (++next == boxes) next = 0;
        return box;
    }
    __device__ __forceinline__ void send(uint32_t box, int group, int m, int column) const {
        using namespace ptx;
        fence_for_copies();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            tensor_copy_out(map, column, m, group, box);
            copies_out_commit();
        }
    }
    // 32 columns in a box. Lanes of odd rows store other columns at the same time, in other banks.
    template <int n, bool sends>
    __device__ __forceinline__ void store_f32(
            int group, int m, int column, bool empty, const float (&sum)[n / 2]) {
        using namespace ptx;
        const int lane = threadIdx.x % 32, row = lane / 4, part = lane % 4;
        const bool odd = row % 2;
#pragma unroll
        for (int c = 0; c < n / 32; c++) {
            const uint32_t box = take(), to = box + row * 128 + part % 2 * 8;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float *of_even = sum + 16 * c + 4 * j, *of_odd = sum + 16 * c + 4 * (j ^ 2);
                const int chunk = ((odd ? j ^ 2 : j) * 2 + part / 2) ^ row;
#pragma unroll
                for (int half = 0; half < 2; half++)
                    store_shared(to + half * 1024 + chunk * 16, odd ? of_odd[2 * half] : of_even[2 * half],
                            odd ? of_odd[2 * half + 1] : of_even[2 * half + 1]);
            }
            if (sends)
                send(box, group, m, column + c * 32);
            else
                finish(box, group, m, column + c * 32, empty);
        }
    }
    // 64 columns in a box.
    template <typename result_t, int n>
    __device__ __forceinline__ void store_16(int group, int m, int column, const float (&sum)[n / 2]) {
        using namespace ptx;
        const int lane = threadIdx.x % 32, row = lane % 16, side = lane / 16;
#pragma unroll
        for (int c = 0; c < n / 64; c++) {
            const uint32_t box = take();
#pragma unroll
            for (int j = 0; j < 8; j += 2) { // 16 rows of two times 8 columns
                const float *s = sum + 32 * c + 4 * j;
                const uint32_t r[4] = {result_t::pair(s[0], s[1]), result_t::pair(s[2], s[3]),
                        result_t::pair(s[4], s[5]), result_t::pair(s[6], s[7])};
                store_matrix_4(box + row * 128 + ((j + side) ^ row % 8) * 16, r);
            }
            send(box, group, m, column + c * 64);
        }
    }
    // One element after the other, and what is added to it.
    __device__ void finish(uint32_t box, int group, int m, int column, bool empty) const {
        const int lane = threadIdx.x % 32;
        __syncwarp();
        if (column + lane < g.N)
#pragma unroll 1
            for (int r = 0; r < min(16, g.M - m); r++) {
                const ptx::shared_reader_t from{box + r * 128 + ((lane / 4) ^ r % 8) * 16 + lane % 4 * 4};
                const float sum = __uint_as_float(from.read_4());
                const int64_t at = group * g.to_group_stride + (m + r) * g.to_row_stride + column + lane;
                switch (g.to_dt) {
                case mxdnn_f32: finish_one<f32_result_t>(at, sum, empty); break;
                case mxdnn_bf16: finish_one<bf16_result_t>(at, sum, empty); break;
                default: finish_one<f16_result_t>(at, sum, empty);
                }
            }
        __syncwarp();
    }
    template <typename result_t>
    __device__ __forceinline__ void finish_one(int64_t at, float sum, bool empty) const {
        auto *to = reinterpret_cast<typename result_t::one *>(g.to) + at;
        if (g.has_old) {
            const float old = g.old_scale * result_t::widen(*to);
            sum = empty ? old : sum + old;
        }
        *to = result_t::narrow(sum);
    }
};

} // namespace gradient
} // namespace cuda
} // namespace impl
} // namespace mxdnn
