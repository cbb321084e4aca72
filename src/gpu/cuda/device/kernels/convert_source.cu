// SPDX-License-Identifier: Apache-2.0
// Rows of a source in any form as neighbouring rows of bf16, which all other kernels multiply: gathered, and
// converted where they are codes or of another type of high precision. Codes times block scales have few
// bits, so that the values are exact; what scales all of a row becomes its factor, and leaves the range of
// bf16 to the blocks.
//
// A CTA takes whole rows: it looks through the scales of one first, then a thread makes eight neighbours
// at a time, which are 16 bytes of the result.
//
// Rows of f8_e4m3 with one scale each, and rows of MXFP8, have kernels of their own where they lie well:
// convert_source_fp8.cuh and convert_source_mx.cuh.
#include <algorithm>

#include "gpu/cuda/device/kernels/convert_source_ahead.cuh"
#include "gpu/cuda/device/kernels/convert_source_fp8.cuh"
#include "gpu/cuda/device/kernels/convert_source_mx.cuh"
#include "gpu/cuda/device/kernels/convert_source_row.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/mma/f16_terms.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace packed;

constexpr int threads = 256, each = 8;

__device__ __forceinline__ void store_row_piece(uint16_t *to, const float (&x)[each]) {
    *reinterpret_cast<uint4 *>(to) = make_uint4(
            to_bf16x2(x[0], x[1]), to_bf16x2(x[2], x[3]), to_bf16x2(x[4], x[5]), to_bf16x2(x[6], x[7]));
}

// The values of n elements of a row in high precision, from k on.
__device__ __forceinline__ void load_values(
        float (&x)[each], const convert_source_args_t &a, const uint8_t *row, int64_t k, int n) {
    const int bytes = a.bits / 8;
    const uint8_t *p = row + k * a.col_step;
    if (n == each && a.col_step == bytes && reinterpret_cast<uintptr_t>(p) % 16 == 0) {
        uint4 v[2];
        v[0] = *reinterpret_cast<const uint4 *>(p);
        if (bytes == 4) v[1] = *reinterpret_cast<const uint4 *>(p + 16);
        const uint32_t *w = reinterpret_cast<const uint32_t *>(v);
#pragma unroll
        for (int i = 0; i < each; i++) {
            const uint32_t half = w[i / 2] >> (i % 2 * 16) & 0xffff;
            x[i] = a.dt == mxdnn_f32    ? float_of(w[i])
                   : a.dt == mxdnn_bf16 ? float_of(half << 16)
                                        : __half2float(__ushort_as_half(uint16_t(half)));
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < each; i++) {
        x[i] = 0.f;
        if (i >= n) continue;
        uint32_t code = 0;
        for (int b = 0; b < bytes; b++) code |= uint32_t(p[i * a.col_step + b]) << (8 * b);
        x[i] = a.dt == mxdnn_f32    ? float_of(code)
               : a.dt == mxdnn_bf16 ? float_of(code << 16)
                                    : __half2float(__ushort_as_half(uint16_t(code)));
    }
}

__device__ __forceinline__ void load_codes(
        uint32_t (&code)[each], const convert_source_args_t &a, const uint8_t *row, int64_t k, int n) {
    if (a.bits == 4 && n == each && reinterpret_cast<uintptr_t>(row) % 4 == 0) {
        const uint32_t w = *reinterpret_cast<const uint32_t *>(row + k / 2);
#pragma unroll
        for (int i = 0; i < each; i++) code[i] = w >> (4 * i) & 15;
        return;
    }
    const bool bytes = storage_bits(a.bits, a.packing) == 8;
    const uint32_t mask = (1u << a.bits) - 1; // other bits in the byte of a 6-bit code may have any value
    if (bytes && n == each && a.col_step == 1 && reinterpret_cast<uintptr_t>(row) % 8 == 0) {
        const uint2 w = *reinterpret_cast<const uint2 *>(row + k);
#pragma unroll
        for (int i = 0; i < each; i++) code[i] = (i < 4 ? w.x : w.y) >> (8 * (i % 4)) & mask;
        return;
    }
#pragma unroll
    for (int i = 0; i < each; i++) {
        code[i] = 0;
        if (i < n)
            code[i] = bytes ? row[(k + i) * a.col_step] & mask : get_code(row, k + i, a.bits, a.packing);
    }
}

// The row of the scales that belongs to row m of the source; -1: none, because the row is in no group. All
// threads call it.
__device__ int64_t scale_row_of(const convert_source_args_t &a, int64_t m) {
    if (!a.swizzled_by_group) return m;
    __shared__ int own;
    __shared__ unsigned before; // rows of scales of earlier groups
    __syncthreads();            // the result of the previous call has been read
    if (threadIdx.x == 0) own = -1, before = 0;
    __syncthreads();
    for (int64_t g = threadIdx.x; g < a.groups.groups; g += threads) {
        const row_group_t of = a.groups.group(g);
        if (m >= of.first && m < of.first + of.count) own = int(g);
    }
    __syncthreads();
    if (own < 0) return -1;
    if (a.groups.grouping == mxdnn_row_grouping_padded)
        return a.groups.swizzled_rows_before(own) + m - a.groups.group(own).first;
    unsigned mine = 0;
    for (int g = threadIdx.x; g < own; g += threads)
        mine += unsigned(round_up(a.groups.group(g).count, swizzle_128x4::tile_rows));
    if (mine) atomicAdd(&before, mine);
    __syncthreads();
    return int64_t(before) + m - a.groups.group(own).first;
}

// A further factor of blocks of row m: 2^small_row_shift or 1.
__device__ float enlarged(const convert_source_args_t &a, int64_t m, int64_t K, int element_emax) {
    uint32_t most = 0;
    const int64_t blocks = div_up(K, a.quant.block);
    for (int64_t b = threadIdx.x; b < blocks; b += threads) {
        const uint32_t scale = *scale_at(a, m, b);
        if (scale != e8m0_t::nan_code) most = max(most, scale);
    }
    return small_row_factor(largest_of_all<threads>(most), element_emax);
}

// The bits of the largest magnitude of a row in high precision.
__device__ uint32_t row_amax(const convert_source_args_t &a, const uint8_t *row, int64_t K) {
    uint32_t most = 0;
#pragma unroll 2
    for (int64_t k = int64_t(threadIdx.x) * each; k < K; k += threads * each) {
        float x[each];
        load_values(x, a, row, k, int(min(int64_t(each), K - k)));
#pragma unroll
        for (int i = 0; i < each; i++) most = max(most, magnitude_bits(x[i]));
    }
    return largest_of_all<threads>(most);
}

// Values of the codes of MXINT8. Four neighbouring threads have a block.
__device__ void through_mx_int8(float (&x)[each], const source_recipe_t &recipe) {
    uint32_t amax = 0;
#pragma unroll
    for (int i = 0; i < each; i++) amax = max(amax, magnitude_bits(x[i]));
    const uint32_t block = 15u << (threadIdx.x % 32 / 4 * 4);
    for (int d = 1; d < 4; d *= 2) amax = max(amax, __shfl_xor_sync(block, amax, d));
    const uint32_t scale = recipe.scale(amax);
#pragma unroll
    for (int i = 0; i < each; i++) x[i] = mx_dequantize<s8_t>(mx_quantize<s8_t>(x[i], scale), scale);
}

// Copies elements, in pieces of 16 bytes.
__global__ void __launch_bounds__(threads) copied_rows(const __grid_constant__ convert_source_args_t a) {
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const int64_t m = source_row_of(a, r), K = m < 0 ? 0 : a.K;
        const uint8_t *row = a.elements + m * a.row_step;
#pragma unroll 2
        for (int64_t k = int64_t(threadIdx.x) * each; k < a.stride; k += threads * each)
            *reinterpret_cast<uint4 *>(a.out + r * a.stride + k) =
                    k < K ? *reinterpret_cast<const uint4 *>(row + k * 2) : make_uint4(0, 0, 0, 0);
    }
}

// Values of the codes of f8_e4m3 under one scale, without it: row_fp8_quantize() with the device's own
// conversions.
__device__ void through_row_fp8(float (&x)[each], float step) {
#pragma unroll
    for (int i = 0; i < each; i += 2) {
        const bool nan = is_nan(step);
        const uint16_t codes =
                to_e4m3x2(nan ? 0.f : div_f32(x[i], step), nan ? 0.f : div_f32(x[i + 1], step));
        const __half2 pair(__nv_cvt_fp8x2_to_halfraw2(codes, __NV_E4M3));
        x[i] = __low2float(pair);
        x[i + 1] = __high2float(pair);
    }
}

// Values as exact sums of `terms` bf16 numbers, the smallest one first. Parts of a row are `part` elements
// apart.
__device__ __forceinline__ void store_terms(uint16_t *to, int64_t part, int terms, float (&x)[each]) {
    for (int term = terms - 1; term > 0; term--) {
        float high[each];
#pragma unroll
        for (int i = 0; i < each; i++) high[i] = take_bf16_term(x[i]);
        store_row_piece(to + term * part, high);
    }
    store_row_piece(to, x);
}

__device__ __forceinline__ void store_f16(uint16_t *to, const float (&x)[each]) {
    uint32_t w[each / 2];
#pragma unroll
    for (int i = 0; i < each / 2; i++) {
        const __half2 pair = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
        w[i] = *reinterpret_cast<const uint32_t *>(&pair);
    }
    *reinterpret_cast<uint4 *>(to) = make_uint4(w[0], w[1], w[2], w[3]);
}

enum class scales_t { none, e8m0, e4m3, of_rows };

// Rows that may be wanted as codes.
template <scales_t kind, recipe_kind_t recipe>
constexpr bool has_fp8_codes = recipe == recipe_kind_t::row_fp8 || kind == scales_t::of_rows;

// Values of f8_e4m3 from k on, a multiple of 8, in the order of fp8_place(): pairs, 16 bytes apart.
__device__ __forceinline__ void store_codes(uint8_t *row, int64_t k, const float (&x)[each]) {
    uint8_t *to = row + k / 64 * 64 + fp8_place(int(k % 64));
    static_assert(each == 8 && fp8_place(2) == 16 && fp8_place(8) == 2, "pairs of eight neighbours");
#pragma unroll
    for (int i = 0; i < each / 2; i++)
        *reinterpret_cast<uint16_t *>(to + 16 * i) = to_e4m3x2(x[2 * i], x[2 * i + 1]);
}

// The same in their own order.
__device__ __forceinline__ void store_plain_codes(uint8_t *to, const float (&x)[each]) {
    static_assert(each == 8, "one store");
    *reinterpret_cast<uint2 *>(to) = make_uint2(to_e4m3x2(x[0], x[1]) | uint32_t(to_e4m3x2(x[2], x[3])) << 16,
            to_e4m3x2(x[4], x[5]) | uint32_t(to_e4m3x2(x[6], x[7])) << 16);
}

// The same in the order of fp8_register_place(), by the four threads that have 32 neighbours. The first and
// the third, and the second and the fourth thread, have alternating elements.
__device__ __forceinline__ void store_codes_for_registers(uint8_t *row, int64_t k, const float (&x)[each]) {
    static_assert(each == 8 && fp8_register_place(0) == 1 && fp8_register_place(16) == 0
                          && fp8_register_place(1) == 3 && fp8_register_place(2) == 5
                          && fp8_register_place(8) == 17,
            "bytes of two threads in turn");
    const uint32_t codes[2] = {to_e4m3x2(x[0], x[1]) | uint32_t(to_e4m3x2(x[2], x[3])) << 16,
            to_e4m3x2(x[4], x[5]) | uint32_t(to_e4m3x2(x[6], x[7])) << 16};
    const bool second = k % 32 >= 16; // of the two
    const uint32_t four = 0xFu << (threadIdx.x % 32 / 4 * 4),
                   other = __shfl_xor_sync(four, second ? codes[0] : codes[1], 2),
                   low = second ? codes[1] : other, high = second ? other : codes[0];
    *reinterpret_cast<uint2 *>(row + k / 32 * 32 + k % 16 / 8 * 16 + (second ? 8 : 0)) =
            make_uint2(__byte_perm(low, high, 0x5140), __byte_perm(low, high, 0x7362));
}

template <scales_t kind, recipe_kind_t recipe = recipe_kind_t::none>
__global__ void __launch_bounds__(threads) convert_source(const __grid_constant__ convert_source_args_t a) {
    __shared__ float table[kind == scales_t::none ? 1 : 256];
    int emax = 0;
    if constexpr (kind != scales_t::none) {
        if (threadIdx.x < 1 << a.bits)
            table[threadIdx.x] = kind == scales_t::of_rows && a.dt == mxdnn_s8
                                         ? float(int8_t(threadIdx.x))
                                         : decode_value(a.dt, threadIdx.x);
        visit_type(mx_element_types(), a.dt, [&](auto e) { emax = decltype(e)::emax; });
    }
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();
    if (a.wanted) {
        bool any = false;
        for (int i = threadIdx.x; i < a.wanted_count; i += threads) any |= a.wanted[i] != 0;
        if (!__syncthreads_or(any)) return;
    }
    __syncthreads();
    for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
        const int64_t m = source_row_of(a, r);
        int64_t scales = m;
        if constexpr (kind == scales_t::e8m0 || kind == scales_t::e4m3)
            if (m >= 0) scales = scale_row_of(a, m);
        const int64_t K = scales < 0 ? 0 : a.K;
        const uint8_t *row = a.elements + m * a.row_step;
        float scale_factor = 1.f;
        if constexpr (kind == scales_t::e8m0) scale_factor = enlarged(a, scales, K, emax);
        float row_step = 1.f; // if there is a recipe
        if constexpr (recipe == recipe_kind_t::row_int8)
            row_step = row_int8_scale(row_amax(a, row, K));
        else if constexpr (recipe == recipe_kind_t::row_fp8)
            row_step = row_fp8_scale(row_amax(a, row, K));
        if (threadIdx.x == 0) {
            float f = row_step / scale_factor;
            if constexpr (kind == scales_t::of_rows)
                f = K > 0 ? row_scale(a.quant.scale_dt, scale_at(a, m, 0)) : 1.f;
            a.factors[r] = f;
        }
        constexpr bool takes_terms = kind == scales_t::none && recipe == recipe_kind_t::none;
        const int64_t part = takes_terms ? a.stride / a.terms : a.stride;
        for (int64_t k = int64_t(threadIdx.x) * each; k < part; k += threads * each) {
            const int n = int(max(int64_t(0), min(int64_t(each), K - k)));
            float x[each] = {};
            if constexpr (kind == scales_t::none) {
                load_values(x, a, row, k, n);
                if constexpr (recipe == recipe_kind_t::mx_int8) through_mx_int8(x, a.recipe);
                if constexpr (recipe == recipe_kind_t::row_fp8) through_row_fp8(x, row_step);
#pragma unroll
                for (int i = 0; i < each; i++)
                    if constexpr (recipe == recipe_kind_t::row_int8)
                        x[i] = float(s8_t::to_int(row_int8_quantize(x[i], row_step)));
            } else if (n > 0) {
                uint32_t code[each];
                load_codes(code, a, row, k, n);
                float scale = 1.f;
                if constexpr (kind == scales_t::e8m0)
                    scale = e8m0_t::decode(*scale_at(a, scales, k / a.quant.block)) * scale_factor;
                else if constexpr (kind == scales_t::e4m3)
                    scale = f8_e4m3_t::decode(*scale_at(a, scales, k / a.quant.block));
#pragma unroll
                for (int i = 0; i < each; i++) x[i] = i < n ? table[code[i]] * scale : 0.f;
            }
            if (has_fp8_codes<kind, recipe> && a.codes) {
                uint8_t *to = a.codes + r * a.stride;
                switch (a.order) {
                case fp8_order_t::pairs: store_codes(to, k, x); break;
                case fp8_order_t::registers: store_codes_for_registers(to, k, x); break;
                case fp8_order_t::plain: store_plain_codes(to + k, x); break;
                }
                continue;
            }
            if (takes_terms && a.f16)
                store_f16(a.out + r * a.stride + k, x);
            else if constexpr (takes_terms)
                store_terms(a.out + r * a.stride + k, part, a.terms, x);
            else
                store_row_piece(a.out + r * a.stride + k, x);
        }
    }
}

using kernel_t = void (*)(convert_source_args_t);

kernel_t find(const convert_source_args_t &a) {
    switch (a.recipe.kind) {
    case recipe_kind_t::row_int8: return convert_source<scales_t::none, recipe_kind_t::row_int8>;
    case recipe_kind_t::mx_int8: return convert_source<scales_t::none, recipe_kind_t::mx_int8>;
    case recipe_kind_t::row_fp8: return convert_source<scales_t::none, recipe_kind_t::row_fp8>;
    case recipe_kind_t::none: break;
    }
    if (a.in_pieces) return copied_rows;
    switch (a.quant.scale_dt) {
    case mxdnn_data_type_undef: return convert_source<scales_t::none>;
    case mxdnn_e8m0: return convert_source<scales_t::e8m0>;
    case mxdnn_f8_e4m3: return convert_source<scales_t::e4m3>;
    default: return convert_source<scales_t::of_rows>;
    }
}

kernel_t find_mx_rows(data_type_t dt) {
    return dt == mxdnn_f8_e4m3 ? mx_rows<mxdnn_f8_e4m3> : mx_rows<mxdnn_f8_e5m2>;
}

cudaError_t prepare(const void *args) {
    if (const auto *a = static_cast<const convert_source_args_t *>(args)) {
        convert_source_args_t made = *a;
        made.in_pieces = false;
        cudaError_t e = load_kernel(find(made));
        if (e == cudaSuccess && a->in_pieces) e = load_kernel(copied_rows);
        if (e == cudaSuccess && mx_rows_t::may_take(*a)) e = load_kernel(find_mx_rows(a->dt));
        if (e != cudaSuccess || !fp8_rows_t::may_take(*a)) return e;
        return fp8_rows_t::quantises(*a) ? load_kernels(std::initializer_list<kernel_t>{
                       fp8_rows<true, false>, fp8_rows<true, true>, fp8_rows_ahead})
                                         : load_kernels(std::initializer_list<kernel_t>{
                                                 fp8_rows<false, false>, fp8_rows<false, true>});
    }
    const cudaError_t e = load_kernels(std::initializer_list<kernel_t>{copied_rows, fp8_rows<false, false>,
            fp8_rows<false, true>, fp8_rows<true, false>, fp8_rows<true, true>, fp8_rows_ahead,
            find_mx_rows(mxdnn_f8_e4m3), find_mx_rows(mxdnn_f8_e5m2)});
    if (e != cudaSuccess) return e;
    for (const recipe_kind_t recipe :
            {recipe_kind_t::none, recipe_kind_t::row_int8, recipe_kind_t::mx_int8, recipe_kind_t::row_fp8})
        for (const data_type_t dt : {mxdnn_data_type_undef, mxdnn_e8m0, mxdnn_f8_e4m3, mxdnn_f32}) {
            convert_source_args_t a;
            a.recipe.kind = recipe;
            a.quant.scale_dt = dt;
            if (const cudaError_t e = load_kernel(find(a))) return e;
        }
    return cudaSuccess;
}

cudaError_t launch_rows(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const convert_source_args_t *>(args);
    if (a.makers)
        return launch_kernel(at, fp8_rows_ahead, {unsigned(a.makers), fp8_ahead_t::threads, 0, a.early}, a);
    if (fp8_rows_t::takes(a)) {
        const bool quantises = fp8_rows_t::quantises(a);
        const unsigned grid = unsigned(std::min<int64_t>(div_up(a.rows, fp8_rows_t::teams(quantises)),
                int64_t(at.sm_count) * fp8_rows_t::ctas(quantises)));
        const kernel_t kernel = quantises ? a.codes ? fp8_rows<true, true> : fp8_rows<true, false>
                                : a.codes ? fp8_rows<false, true>
                                          : fp8_rows<false, false>;
        return launch_kernel(at, kernel, {grid, unsigned(fp8_rows_t::threads(quantises)), 0, a.early}, a);
    }
    if (mx_rows_t::takes(a)) {
        const dim3 grid(
                unsigned(div_up(a.rows, mx_rows_t::warps)), unsigned(div_up(a.stride, mx_rows_t::piece)));
        return launch_kernel(at, find_mx_rows(a.dt), {grid, mx_rows_t::threads, 0, a.early}, a);
    }
    constexpr int ctas = 2048 / threads; // CTAs of a multiprocessor
    const unsigned grid = unsigned(std::min<int64_t>(a.rows, int64_t(at.sm_count) * ctas));
    return launch_kernel(at, find(a), {grid, threads, 0, a.early}, a);
}

} // namespace

const kernel_entry_t convert_source_kernel = {sizeof(convert_source_args_t), prepare, launch_rows};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
