// SPDX-License-Identifier: Apache-2.0
// moe_permute and moe_unpermute: whole rows, 16 bytes at a time where they are aligned, a warp for each; sums
// of rows eight columns at a time. Counts and indices are on the device, so they are not refused when they
// are wrong: what does not fit is left out.
#include "common/formats/plain_bits.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"
#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int threads = 256, warps = threads / 32;

// `from` null: zeros.
template <typename T>
__device__ __forceinline__ void copy_all(uint8_t *to, const uint8_t *from, int n) {
    constexpr int at_once = 4;
    for (int i = threadIdx.x % 32; i < n; i += 32 * at_once) {
        T v[at_once] = {};
#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (from && i + 32 * j < n) v[j] = reinterpret_cast<const T *>(from)[i + 32 * j];
#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + 32 * j < n) reinterpret_cast<T *>(to)[i + 32 * j] = v[j];
    }
}
__device__ void copy_bytes(uint8_t *to, const uint8_t *from, int64_t bytes) {
    const uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
    const int64_t width = both % 16 == 0 ? 16 : both % 4 == 0 ? 4 : 1, whole = bytes / width * width;
    if (width == 16)
        copy_all<uint4>(to, from, int(whole / 16));
    else if (width == 4)
        copy_all<uint32_t>(to, from, int(whole / 4));
    else
        return copy_all<uint8_t>(to, from, int(bytes));
    copy_all<uint8_t>(to + whole, from ? from + whole : nullptr, int(bytes - whole));
}

__device__ uint8_t *scale_at(const matrix_args_t &t, int64_t row, int64_t col) {
    return t.scales.data
           + (t.swizzled ? swizzle_128x4::offset(row, col, t.swizzle_cols)
                         : row * t.scales.step[0] + col * t.scales.step[1]);
}

// Scales of one byte of a row, a few for each lane. They are loaded before the codes are moved, and stored
// after them. From row -1: zeros. Columns of a 128x4 tile that no scale of the row uses are zero.
class byte_scales_t {
    static constexpr int each = 4;
    uint8_t v_[each];

public:
    static constexpr int at_once = 32 * each;
    __device__ __forceinline__ void fetch(const permute_args_t &a, int64_t from, int64_t first, int64_t own) {
#pragma unroll
        for (int j = 0; j < each; j++) {
            const int64_t c = first + threadIdx.x % 32 + 32 * j;
            v_[j] = from < 0 || c >= own ? uint8_t(0) : *scale_at(a.src, from, c);
        }
    }
    __device__ __forceinline__ void store(
            const permute_args_t &a, int64_t to, int64_t first, int64_t all) const {
#pragma unroll
        for (int j = 0; j < each; j++) {
            const int64_t c = first + threadIdx.x % 32 + 32 * j;
            if (c < all) *scale_at(a.dst, to, c) = v_[j];
        }
    }
};

// A warp moves a row: codes and, of a quantised tensor, the scales of its blocks. From row -1: zeros, also
// for scales. Rows after the last have scales only: those of a 128x4 tile.
__device__ __forceinline__ void move_row(const permute_args_t &a, int64_t to, int64_t from) {
    const int64_t own = a.dst.quantised ? div_up(a.columns, a.dst.quant.block) : 0;
    const int64_t all = a.dst.swizzled ? round_up(own, swizzle_128x4::tile_cols) : own;
    const int width = a.dst.scales.bits / 8;
    byte_scales_t scales;
    if (a.dst.quantised && width == 1) scales.fetch(a, from, 0, own);
    if (to < a.dst_rows)
        copy_bytes(a.dst.elements.data + to * a.dst.elements.step[0],
                from < 0 ? nullptr : a.src.elements.data + from * a.src.elements.step[0],
                plain_row_bytes(a.columns, a.dst.elements.bits, a.dst.elements.packing));
    if (!a.dst.quantised) return;
    if (width == 1) {
        scales.store(a, to, 0, all);
        for (int64_t first = scales.at_once; first < all; first += scales.at_once) {
            scales.fetch(a, from, first, own);
            scales.store(a, to, first, all);
        }
        return;
    }
    for (int64_t c = threadIdx.x % 32; c < all; c += 32) {
        uint8_t *p = scale_at(a.dst, to, c);
        const uint8_t *q = from < 0 || c >= own ? nullptr : scale_at(a.src, from, c);
        for (int i = 0; i < width; i++) p[i] = q ? q[i] : uint8_t(0);
    }
}

// ---- moe_permute ----

// In place: prefix sums of value(i), and the total behind the last one. Sums above `most` become `most`.
template <typename F>
__device__ void exclusive_sums(int32_t *out, int64_t n, int64_t most, F &&value) {
    __shared__ int64_t of_warp[warps];
    const int64_t own = div_up(n, threads), first = threadIdx.x * own,
                  last = first + own < n ? first + own : n;
    int64_t sum = 0;
    for (int64_t i = first; i < last; i++) sum += value(i);
    int64_t next = sum;
    for (int d = 1; d < 32; d *= 2) {
        const int64_t before = __shfl_up_sync(~0u, next, d);
        if (int(threadIdx.x % 32) >= d) next += before;
    }
    if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = next;
    __syncthreads();
    next -= sum;
    for (int w = 0; w < int(threadIdx.x / 32); w++) next += of_warp[w];
    for (int64_t i = first; i < last; i++) {
        const int64_t v = value(i);
        out[i] = int32_t(next < most ? next : most);
        next += v;
    }
    if (first < n && last == n) out[n] = int32_t(next < most ? next : most);
    __syncthreads();
}

// All CTAs run at the same time. Each computes the plan for itself.
constexpr int permute_ctas = 4;

__global__ void __launch_bounds__(threads, permute_ctas) permute(const __grid_constant__ permute_args_t a) {
    extern __shared__ int32_t plan[];
    start_of_early_kernel();
    const int64_t counts = a.ranks * a.experts;
    int32_t *count = plan, *from = count + counts, *start = from + counts + 1;
    for (int64_t i = threadIdx.x; i < counts; i += threads) count[i] = max(a.counts[i], 0);
    __syncthreads();
    exclusive_sums(from, counts, a.src_rows, [&](int64_t i) -> int64_t { return count[i]; });
    exclusive_sums(start, a.experts, a.dst_rows, [&](int64_t e) -> int64_t {
        int64_t n = 0;
        for (int64_t r = 0; r < a.ranks; r++) n += count[r * a.experts + e];
        return round_up(n > a.alignment ? n : a.alignment, a.alignment);
    });
    if (blockIdx.x == 0 && a.offsets)
        for (int64_t e = threadIdx.x; e < a.experts + a.starts; e += threads)
            a.offsets[e] = start[e + !a.starts];

    const int32_t end = start[a.experts];
    for (int64_t row = int64_t(blockIdx.x) * warps + threadIdx.x / 32; row < a.dst_rows;
            row += int64_t(gridDim.x) * warps) {
        int64_t source = -1;
        if (row < end) {
            int lo = 0, hi = int(a.experts); // start[lo] <= row < start[hi]
            while (hi - lo > 1) (start[(lo + hi) / 2] <= row ? lo : hi) = (lo + hi) / 2;
            int64_t rest = row - start[lo];
            for (int64_t r = 0; r < a.ranks; r++) {
                const int64_t i = r * a.experts + lo;
                if (rest < count[i]) {
                    source = from[i] + rest < a.src_rows ? from[i] + rest : -1;
                    break;
                }
                rest -= count[i];
            }
            move_row(a, row, source);
        }
        if (a.idx && threadIdx.x % 32 == 0)
            a.idx[row] = int32_t(source); // rows after the last end belong to no expert
    }
}

constexpr int max_plan_bytes = (2 * 4096 + 1 + 4096 + 1) * 4;

cudaError_t prepare_permute(const void *) { return load_kernel(permute, max_plan_bytes); }

cudaError_t launch_permute(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const permute_args_t *>(args);
    const int64_t wanted = div_up(a.dst_rows, warps), most = int64_t(at.sm_count) * permute_ctas;
    const int64_t ctas = wanted < 1 ? 1 : wanted < most ? wanted : most;
    const size_t bytes = size_t(2 * a.ranks * a.experts + 1 + a.experts + 1) * 4;
    return launch_kernel(at, permute, {unsigned(ctas), threads, bytes, early}, a);
}

// ---- moe_unpermute ----

// No entry has a row.
__global__ void __launch_bounds__(threads) forget(const __grid_constant__ permute_args_t a, int64_t entries) {
    start_of_early_kernel();
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i < entries) a.inverse[i] = -1;
}

// The source rows of the entries of some tokens. If several rows claim one entry, the last one counts.
__global__ void __launch_bounds__(threads)
        invert(const __grid_constant__ permute_args_t a, int64_t first_token) {
    start_of_early_kernel();
    const int64_t r = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (r >= a.src_rows || a.idx[r] < 0) return;
    const int64_t at = a.idx[r] - first_token * a.k;
    if (at >= 0 && at < a.part_tokens * a.k && a.idx[r] < a.dst_rows * a.k)
        atomicMax(a.inverse + at, int32_t(r));
}

__global__ void __launch_bounds__(threads)
        move_back(const __grid_constant__ permute_args_t a, int64_t first_token, int64_t tokens) {
    start_of_early_kernel();
    const int64_t i = int64_t(blockIdx.x) * warps + threadIdx.x / 32, t = first_token + i;
    if (i < tokens) return move_row(a, t, a.inverse[i]);
    // The rows of the last 128x4 tile that the tensor does not have are zero.
    if (a.dst.swizzled && t < round_up(a.dst_rows, swizzle_128x4::tile_rows) && t >= a.dst_rows)
        move_row(a, t, -1);
}

__device__ __forceinline__ float weight(const permute_args_t &a, int64_t entry) {
    if (!a.weights) return 1.f;
    return a.weights_dt == mxdnn_f32
                   ? static_cast<const float *>(a.weights)[entry]
                   : float_of(uint32_t(static_cast<const uint16_t *>(a.weights)[entry]) << 16);
}

using tiles::bf16_words_t;
using tiles::f16_words_t;
using tiles::f32_words_t;

__device__ __forceinline__ uint32_t encode_one(bf16_words_t, float x) { return to_bf16(x); }
__device__ __forceinline__ uint32_t encode_one(f16_words_t, float x) { return to_f16(x); }
__device__ __forceinline__ uint32_t encode_one(f32_words_t, float x) { return bits_of(x); }

// A warp sums a part of a token's columns, eight per lane, in the order of the choices. Choices without a row
// add nothing. This many rows, and this many times eight columns of them, are loaded together.
constexpr int columns = 8;
template <typename from_t, typename to_t, bool one_row>
__global__ void __launch_bounds__(threads) combine(
        const __grid_constant__ permute_args_t a, int64_t first_token, int64_t tokens, int groups_of_part) {
    constexpr int rows_at_once = one_row ? 1 : 4, groups_at_once = one_row ? 4 : from_t::per_word;
    constexpr int width = 4 / from_t::per_word, loads = columns * width / 16;
    constexpr int to_width = 4 / to_t::per_word, to_words = columns / to_t::per_word;
    start_of_early_kernel();
    const int64_t part = int64_t(blockIdx.x) * warps + threadIdx.x / 32, t = first_token + part;
    if (part >= tokens) return;
    const int32_t *rows = a.inverse + part * a.k;
    const int64_t step = a.src.elements.step[0],
                  first_column = int64_t(blockIdx.y) * groups_of_part * columns;
    const uint8_t *p = a.src.elements.data + first_column * width;
    uint8_t *to = a.dst.elements.data + t * a.dst.elements.step[0] + first_column * to_width;
    const int n = int(min(a.columns - first_column, int64_t(groups_of_part) * columns));
    const bool from_aligned = (reinterpret_cast<uintptr_t>(p) | uint64_t(step)) % 16 == 0;
    const bool to_aligned = reinterpret_cast<uintptr_t>(to) % 16 == 0;

    for (int c0 = threadIdx.x % 32 * columns; c0 < n; c0 += 32 * groups_at_once * columns) {
        float sum[groups_at_once][columns] = {};
        bool first = true;
        for (int64_t j0 = 0; j0 < a.k; j0 += rows_at_once) {
            uint4 v[rows_at_once][groups_at_once][loads];
            int32_t row[rows_at_once];
            float w[rows_at_once];
#pragma unroll
            for (int j = 0; j < rows_at_once; j++) {
                row[j] = j0 + j < a.k ? rows[j0 + j] : -1;
                w[j] = j0 + j < a.k ? weight(a, t * a.k + j0 + j) : 0;
            }
#pragma unroll
            for (int j = 0; j < rows_at_once; j++) {
                if (row[j] < 0) continue;
#pragma unroll
                for (int g = 0; g < groups_at_once; g++) {
                    const int c = c0 + g * 32 * columns, left = (n - c) * width;
                    if (left <= 0) continue;
                    const uint8_t *q = p + row[j] * step + c * width;
#pragma unroll
                    for (int i = 0; i < loads; i++)
                        v[j][g][i] = from_aligned && left >= columns * width
                                             ? reinterpret_cast<const uint4 *>(q)[i]
                                             : tiles::load_some(q + 16 * i, left - 16 * i);
                }
            }
#pragma unroll
            for (int j = 0; j < rows_at_once; j++) {
                if (row[j] < 0) continue;
#pragma unroll
                for (int g = 0; g < groups_at_once; g++) {
                    const uint32_t *words = reinterpret_cast<const uint32_t *>(v[j][g]);
                    float x[columns];
#pragma unroll
                    for (int i = 0; i < columns / from_t::per_word; i++)
                        from_t::values(words[i], x + i * from_t::per_word);
#pragma unroll
                    for (int i = 0; i < columns; i++)
                        sum[g][i] = first ? mul_f32(w[j], x[i]) : __fmaf_rn(w[j], x[i], sum[g][i]);
                }
                first = false;
            }
        }
#pragma unroll
        for (int g = 0; g < groups_at_once; g++) {
            const int c = c0 + g * 32 * columns, left = n - c;
            if (left <= 0) continue;
            uint32_t out[to_words];
#pragma unroll
            for (int i = 0; i < to_words; i++) {
                out[i] = encode_one(to_t(), sum[g][i * to_t::per_word]);
                if (to_t::per_word == 2) out[i] |= encode_one(to_t(), sum[g][2 * i + 1]) << 16;
            }
            uint8_t *q = to + c * to_width;
            if (to_aligned && left >= columns) {
#pragma unroll
                for (int w = 0; w < to_words / 4; w++)
                    reinterpret_cast<uint4 *>(q)[w] =
                            make_uint4(out[4 * w], out[4 * w + 1], out[4 * w + 2], out[4 * w + 3]);
                continue;
            }
#pragma unroll
            for (int b = 0; b < columns * to_width; b++)
                if (b < left * to_width) q[b] = uint8_t(out[b / 4] >> b % 4 * 8);
        }
    }
}

using combine_t = void (*)(permute_args_t, int64_t, int64_t, int);

template <typename from_t, bool one_row>
combine_t find(data_type_t to) {
    return to == mxdnn_bf16  ? combine<from_t, bf16_words_t, one_row>
           : to == mxdnn_f16 ? combine<from_t, f16_words_t, one_row>
                             : combine<from_t, f32_words_t, one_row>;
}
template <bool one_row>
combine_t find(data_type_t from, data_type_t to) {
    return from == mxdnn_bf16  ? find<bf16_words_t, one_row>(to)
           : from == mxdnn_f16 ? find<f16_words_t, one_row>(to)
                               : find<f32_words_t, one_row>(to);
}
combine_t find(data_type_t from, data_type_t to, bool one_row) {
    return one_row ? find<true>(from, to) : find<false>(from, to);
}

cudaError_t prepare_unpermute(const void *args) {
    const auto *a = static_cast<const permute_args_t *>(args);
    for (data_type_t from : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
        for (data_type_t to : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
            for (bool one_row : {false, true})
                if (!a || (!a->dst.quantised && a->src.dt == from && a->dst.dt == to))
                    if (const cudaError_t e = load_kernel(find(from, to, one_row))) return e;
    if (const cudaError_t e = load_kernel(forget)) return e;
    if (const cudaError_t e = load_kernel(invert)) return e;
    return !a || a->dst.quantised ? load_kernel(move_back) : cudaSuccess;
}

cudaError_t launch_combine(const launch_t &at, const permute_args_t &a, int64_t first, int64_t tokens) {
    // Enough warps for the device, each with a piece of a row that is large enough.
    const int64_t groups = div_up(a.columns, columns), wanted = div_up(int64_t(at.sm_count) * 64, tokens);
    const int64_t most = div_up(groups, 32), parts = wanted < most ? wanted : most;
    const int64_t groups_of_part = round_up(div_up(groups, parts), 32);
    const dim3 grid(unsigned(div_up(tokens, warps)), unsigned(div_up(groups, groups_of_part)));
    return launch_kernel(at, find(a.src.dt, a.dst.dt, a.k == 1), {grid, threads, 0, early}, a, first, tokens,
            int(groups_of_part));
}

cudaError_t launch_unpermute(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const permute_args_t *>(args);
    const auto ctas = [](int64_t items, int each) { return unsigned(div_up(items, each)); };
    for (int64_t first = 0; first < a.dst_rows; first += a.part_tokens) {
        const int64_t tokens = a.dst_rows - first < a.part_tokens ? a.dst_rows - first : a.part_tokens;
        cudaError_t e =
                launch_kernel(at, forget, {ctas(tokens * a.k, threads), threads, 0, early}, a, tokens * a.k);
        if (e == cudaSuccess && a.src_rows > 0)
            e = launch_kernel(at, invert, {ctas(a.src_rows, threads), threads, 0, early}, a, first);
        if (e == cudaSuccess && a.dst.quantised) {
            const int64_t all = a.dst.swizzled && first + tokens == a.dst_rows
                                        ? round_up(a.dst_rows, swizzle_128x4::tile_rows) - first
                                        : tokens;
            e = launch_kernel(at, move_back, {ctas(all, warps), threads, 0, early}, a, first, tokens);
        } else if (e == cudaSuccess && a.columns > 0) {
            e = launch_combine(at, a, first, tokens);
        }
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}

} // namespace

const kernel_entry_t moe_permute_kernel = {sizeof(permute_args_t), prepare_permute, launch_permute};
const kernel_entry_t moe_unpermute_kernel = {sizeof(permute_args_t), prepare_unpermute, launch_unpermute};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
