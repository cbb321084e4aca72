// SPDX-License-Identifier: Apache-2.0
// mx_reorder from high precision to plain MX and NVFP4 whose blocks lie along contiguous elements: a thread
// reads a block, chooses its scale and writes its codes, 16 bytes at a time where everything is aligned. The
// arithmetic is formats/'s, so the bits are those of the host.
#include <cuda_fp8.h>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 256;

// Codes by the type's own rules, where there is a shorter way than the one for all small floats.
template <typename element_t>
__device__ __forceinline__ uint32_t encode_scaled(float x) {
    return element_t::encode(x);
}
template <>
__device__ __forceinline__ uint32_t encode_scaled<f8_e4m3_t>(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}
template <>
__device__ __forceinline__ uint32_t encode_scaled<f8_e5m2_t>(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
}
// To the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, ties to the even code; NaN does not come here.
template <>
__device__ __forceinline__ uint32_t encode_scaled<f4_e2m1_t>(float x) {
    const float m = fabsf(x);
    const uint32_t code =
            (m > 0.25f) + (m >= 0.75f) + (m > 1.25f) + (m >= 1.75f) + (m > 2.5f) + (m >= 3.5f) + (m > 5.f);
    return code | (bits_of(x) >> 28 & 8);
}

// `n` values from p on; the rest of a short block is zero.
template <int block>
__device__ __forceinline__ void load_block(float (&x)[block], const uint8_t *p, data_type_t dt, int n) {
    const int width = dt == mxdnn_f32 ? 4 : 2;
    const bool whole = n == block && reinterpret_cast<uintptr_t>(p) % 16 == 0;
    if (whole && width == 4) {
#pragma unroll
        for (int i = 0; i < block / 4; i++) {
            const uint4 v = reinterpret_cast<const uint4 *>(p)[i];
            x[4 * i] = float_of(v.x), x[4 * i + 1] = float_of(v.y), x[4 * i + 2] = float_of(v.z),
                  x[4 * i + 3] = float_of(v.w);
        }
        return;
    }
    if (whole && dt == mxdnn_bf16) {
#pragma unroll
        for (int i = 0; i < block / 8; i++) {
            const uint4 v = reinterpret_cast<const uint4 *>(p)[i];
            const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[8 * i + 2 * j] = float_of(w[j] << 16), x[8 * i + 2 * j + 1] = float_of(w[j] & 0xffff0000u);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < block; i++) {
        x[i] = 0;
        if (i >= n) continue;
        uint32_t code = 0;
        for (int b = 0; b < width; b++) code |= uint32_t(p[i * width + b]) << (8 * b);
        x[i] = dt == mxdnn_f32    ? float_of(code)
               : dt == mxdnn_bf16 ? float_of(code << 16)
                                  : f16_t::decode(code);
    }
}

// Codes of 4 bits, or of 6 and 8 in a byte each.
template <int block, bool nibbles>
__device__ __forceinline__ void store_block_codes(uint8_t *p, const uint32_t (&code)[block], int n) {
    constexpr int words = block / (nibbles ? 8 : 4);
    uint32_t w[words];
#pragma unroll
    for (int i = 0; i < words; i++) {
        w[i] = 0;
#pragma unroll
        for (int j = 0; j < block / words; j++)
            w[i] |= code[i * (block / words) + j] << (32 / (block / words) * j);
    }
    if (n == block && reinterpret_cast<uintptr_t>(p) % (words % 4 ? 8 : 16) == 0) {
        if constexpr (words % 4 == 0) {
#pragma unroll
            for (int i = 0; i < words / 4; i++)
                reinterpret_cast<uint4 *>(p)[i] =
                        make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
        } else {
            *reinterpret_cast<uint2 *>(p) = make_uint2(w[0], w[1]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < block; i++) {
        if (i >= n) continue;
        if (!nibbles)
            p[i] = uint8_t(code[i]);
        else if (i % 2 == 1)
            p[i / 2] = uint8_t(code[i - 1] | code[i] << 4);
        else if (i == n - 1)
            set_bits(p + i / 2, 15, code[i]); // the other half is not this tensor's
    }
}

struct place_t {
    int64_t idx[max_ndims];
    int64_t first; // element of the line
};

// The i-th block: lines follow each other in the order of the dims without the blocked one.
__device__ __forceinline__ place_t block_place(
        const reorder_args_t &a, int64_t i, int64_t blocks, int block) {
    place_t p = {};
    p.first = i % blocks * block;
    int64_t line = i / blocks;
    const int nd = a.dst.ndims, blocked = nd - a.dst.axis_from_end;
    for (int d = nd - 1; d >= 0; d--) {
        if (d == blocked) continue;
        p.idx[d] = line % a.dims[d];
        line /= a.dims[d];
    }
    p.idx[blocked] = p.first;
    return p;
}

// Address of an element; of codes that share bytes of one that begins a byte.
__device__ __forceinline__ uint8_t *address(const plain_args_t &t, const int64_t *idx) {
    uint8_t *p = t.data;
    for (int d = 0; d < t.ndims; d++) p += d == t.inner ? idx[d] * t.bits / 8 : idx[d] * t.step[d];
    return p;
}

template <typename element_t, bool nvfp4>
__global__ void __launch_bounds__(threads)
        quantise_rows(const __grid_constant__ reorder_args_t a, int64_t blocks, int64_t all) {
    constexpr int block = nvfp4 ? 16 : 32;
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i >= all) return;
    const place_t at = block_place(a, i, blocks, block);
    const int blocked = a.dst.ndims - a.dst.axis_from_end;
    const int64_t rest = a.dims[blocked] - at.first;
    const int n = int(rest < block ? rest : block);
    float x[block];
    load_block(x, address(a.src.elements, at.idx), a.src.dt, n);

    uint32_t amax = 0, code[block], scale;
#pragma unroll
    for (int j = 0; j < block; j++) amax = max(amax, magnitude_bits(x[j]));
    if constexpr (nvfp4) {
        scale = nvfp4_scale(amax);
        const float s = f8_e4m3_t::decode(scale), factor = div_f32(1.f, s);
#pragma unroll
        for (int j = 0; j < block; j++)
            code[j] = is_nan(s) ? 0 : encode_scaled<f4_e2m1_t>(mul_f32(x[j], factor));
    } else {
        scale = e8m0_from_amax<element_t>(amax, a.rounding);
        const float factor = e8m0_t::decode_inverse(scale);
        const bool poisoned = scale == e8m0_poison;
#pragma unroll
        for (int j = 0; j < block; j++)
            code[j] = poisoned ? element_t::poisoned_code : encode_scaled<element_t>(mul_f32(x[j], factor));
    }
    store_block_codes<block, element_t::bits == 4>(address(a.dst.elements, at.idx), code, n);

    if (a.dst.swizzled) {
        const int64_t row = at.idx[2 * a.dst.ndims - 3 - blocked]; // the other of the last two
        int64_t entry = 0;
        for (int d = 0; d < a.dst.ndims - 2; d++) entry += at.idx[d] * a.dst.batch_step[d];
        a.dst.scales.data[entry * a.dst.scales.step[0]
                          + swizzle_128x4::offset(row, at.first / block, a.dst.swizzle_cols)] =
                uint8_t(scale);
        return;
    }
    int64_t idx[max_ndims];
    for (int d = 0; d < a.dst.ndims; d++) idx[d] = d == blocked ? at.first / block : at.idx[d];
    *address(a.dst.scales, idx) = uint8_t(scale);
}

using kernel_t = void (*)(reorder_args_t, int64_t, int64_t);

kernel_t find(const matrix_args_t &dst) {
    if (dst.quant.scale_dt == mxdnn_f8_e4m3) return quantise_rows<f4_e2m1_t, true>;
    switch (dst.dt) {
    case mxdnn_f8_e4m3: return quantise_rows<f8_e4m3_t, false>;
    case mxdnn_f8_e5m2: return quantise_rows<f8_e5m2_t, false>;
    case mxdnn_f6_e2m3: return quantise_rows<f6_e2m3_t, false>;
    case mxdnn_f6_e3m2: return quantise_rows<f6_e3m2_t, false>;
    case mxdnn_s8: return quantise_rows<s8_t, false>;
    default: return quantise_rows<f4_e2m1_t, false>;
    }
}

cudaError_t prepare() {
    matrix_args_t dst{};
    dst.quant.scale_dt = mxdnn_f8_e4m3;
    if (const cudaError_t e = load_kernel(find(dst))) return e;
    dst.quant.scale_dt = mxdnn_e8m0;
    for (data_type_t dt :
            {mxdnn_f8_e4m3, mxdnn_f8_e5m2, mxdnn_f6_e2m3, mxdnn_f6_e3m2, mxdnn_s8, mxdnn_f4_e2m1}) {
        dst.dt = dt;
        if (const cudaError_t e = load_kernel(find(dst))) return e;
    }
    return cudaSuccess;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const reorder_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    if (a.clear_bytes[1] > 0)
        if (const cudaError_t e = cudaMemsetAsync(a.clear[1], 0, size_t(a.clear_bytes[1]), s)) return e;
    const int64_t length = a.dims[a.dst.ndims - a.dst.axis_from_end];
    const int64_t blocks = div_up(length, a.dst.quant.block);
    const int64_t all = length == 0 ? 0 : a.batch * a.rows * a.cols / length * blocks;
    if (all == 0) return cudaSuccess;
    find(a.dst)<<<unsigned(div_up(all, threads)), threads, 0, s>>>(a, blocks, all);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t quantise_rows_kernel = {
        kernel_id_t::quantise_rows, sizeof(reorder_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
