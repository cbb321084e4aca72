// SPDX-License-Identifier: Apache-2.0
// Gated results of gemm at the rate of FP8.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_shared.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/store.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Stores the sums of a consumer's panel, of gates and what they gate, columns c and c + 1. Lanes have columns
// c and c + 8. The lane with the gates of both keeps column c and takes its up from the other lane, which in
// turn gets the gate of column c + 8. So a warp has eight columns of results, the first four of them in every
// other lane.
template <typename cta_t, int count>
__device__ __forceinline__ void store_pairs(const cta_t &cta, const float (&sum)[count],
        const row_block_t &block, int consumer, int first_column) {
    using namespace ptx;
    using k = gemm_t;
    using format = typename cta_t::format_t;
    constexpr int width = 2 * count;
    const matmul_args_t &args = cta.args;
    const int thread = threadIdx.x % k::group, warp = thread / 32, lane = thread % 32;
    const uint32_t tile = cta.tile_of_results(consumer);
    const int column = first_column + warp * 16 + lane / 4;
    const bool odd = lane / 4 % 2;
    const columns_t gate(args, block.expert, first_column, format::sum_scale);
    // Results are bf16, so approximations suffice.
    const float exponent = -1.4426950409f * gate.alpha;
    const float most = gate.limit > 0.f ? gate.limit : __int_as_float(int(f32_inf_bits));
    const auto gated = [&](float x, float up) {
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(most));
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(up) : "f"(up), "f"(most));
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(up) : "f"(up), "f"(-most));
        float e, inverse;
        asm("ex2.approx.f32 %0, %1;" : "=f"(e) : "f"(x * exponent));
        asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(1.f + e));
        return x * inverse * (up + gate.beta);
    };
    float bias[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        bias[i] = args.bias_type != value_type_t::none && column + 8 * i < args.N ? load_value(
                          args.bias, args.bias_type, block.expert * args.bias_stride + column + 8 * i)
                                                                                  : 0.f;
    // Rows of 64 bytes. Two of them share the 128 bytes of all banks, so chunks of 16 bytes are exchanged
    // in every other row.
    constexpr int rows_at_once = 128, row_bytes = k::panel_columns;
    const uint32_t put = tile + lane * row_bytes + (warp ^ lane / 2 % 4) * 16;
    const int row = thread / 4, chunk = thread % 4;
    const shared_reader_t take{tile + row * row_bytes + (chunk ^ row / 2 % 4) * 16};
    auto *to = static_cast<__nv_bfloat16 *>(args.dst) + int64_t(block.first + row) * args.dst_stride
               + first_column / 2 + chunk * 8 - args.dst_first;
    const bool valid = first_column + chunk * 16 < min(args.N, args.panel_end * k::panel_columns);
#pragma unroll
    for (int first = 0; first < width; first += rows_at_once) {
        if (first >= block.rows) break;
        named_barrier(k::group_barrier + consumer, k::group); // the previous tile has been read
#pragma unroll
        for (int r = first; r < first + rows_at_once && r < width; r += 32) {
            uint32_t m[4] = {};
#pragma unroll
            for (int i = 0; i < 4 && r + i * 8 < width; i++) {
                const float *v = sum + (r + i * 8) / 2;
                float x[4];
#pragma unroll
                for (int j = 0; j < 4; j++) x[j] = v[j] * gate.scale.sum * gate.scale.expert + bias[j / 2];
                float result[2];
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const float other = __shfl_xor_sync(~0u, odd ? x[j] : x[2 + j], 4);
                    result[j] = gated(odd ? other : x[j], odd ? x[2 + j] : other);
                }
                m[i] = to_bf16x2(result[0], result[1]);
            }
            store_matrix_4_transposed(put + (r - first) * row_bytes, m);
        }
        named_barrier(k::group_barrier + consumer, k::group);
#pragma unroll
        for (int r = 0; r < rows_at_once; r += k::group / 4)
            if (valid && first + r + row < block.rows) {
                const uint4 v = take.read_16(r * row_bytes);
                *reinterpret_cast<uint4 *>(to + int64_t(first + r) * args.dst_stride) =
                        make_uint4(__byte_perm(v.x, v.y, 0x5410), __byte_perm(v.z, v.w, 0x5410),
                                __byte_perm(v.x, v.y, 0x7632), __byte_perm(v.z, v.w, 0x7632));
            }
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
