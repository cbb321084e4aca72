// SPDX-License-Identifier: Apache-2.0
// Values to values, in the order of the source or in the other one; tiles as those of codes of eight bits.
#include "gpu/cuda/device/kernels/cast_tiles.cuh"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/dequantise.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

constexpr int tile_k = tile_rows(8);

// A side's part of a tile: lines, and elements of each.
struct lines_t {
    uint8_t *p;
    int64_t step;
    int lines, length;
    bool aligned;

    __device__ lines_t(const tile_side_t &s, const tile_place_t &at, int bytes)
        : p(s.data + at.matrix * s.batch_step + (s.lines_along_k ? at.n : at.k) * s.line_step
                + (s.lines_along_k ? at.k : at.n) * bytes),
          step(s.line_step), lines(s.lines_along_k ? at.columns : at.rows),
          length(s.lines_along_k ? at.rows : at.columns), aligned(s.aligned) {}
};

// Contiguous elements of a thread: 16 bytes of the wider side.
template <typename words_t, typename to_t>
constexpr int unit_of() {
    return words_t::per_word == 1 || to_t::bytes == 4 ? 4 : 8;
}

template <int bytes>
using vector_t = std::conditional_t<bytes == 8, uint2, uint4>;

// Reads `n` elements of a line, or as many as it has.
template <typename words_t, int n>
__device__ __forceinline__ void load_unit(const lines_t &src, int line, int first, float (&x)[n]) {
    constexpr int width = 4 / words_t::per_word, bytes = n * width;
    const uint8_t *p = src.p + line * src.step + first * width;
    const int left = line < src.lines ? src.length - first : 0;
    alignas(16) uint32_t w[4];
    if (src.aligned && left >= n) {
        *reinterpret_cast<vector_t<bytes> *>(w) = *reinterpret_cast<const vector_t<bytes> *>(p);
    } else {
        const uint4 v = load_some(p, left * width);
        w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
    }
#pragma unroll
    for (int i = 0; i < bytes / 4; i++) words_t::values(w[i], x + i * words_t::per_word);
}
template <typename to_t, int n>
__device__ __forceinline__ void store_unit(const lines_t &dst, int line, int first, const float (&x)[n]) {
    constexpr int bytes = n * to_t::bytes, per_word = 4 / to_t::bytes;
    const int left = dst.length - first;
    if (line >= dst.lines || left <= 0) return;
    alignas(16) uint32_t w[4];
#pragma unroll
    for (int i = 0; i < bytes / 4; i++)
        if constexpr (per_word == 2)
            w[i] = to_t::pair(x[2 * i], x[2 * i + 1]);
        else
            w[i] = bits_of(x[i]);
    uint8_t *p = dst.p + line * dst.step + first * to_t::bytes;
    if (dst.aligned && left >= n) {
        *reinterpret_cast<vector_t<bytes> *>(p) = *reinterpret_cast<const vector_t<bytes> *>(w);
        return;
    }
#pragma unroll
    for (int i = 0; i < n; i++) {
        if (i >= left) continue;
        if constexpr (per_word == 2)
            reinterpret_cast<uint16_t *>(p)[i] = uint16_t(w[i / 2] >> i % 2 * 16);
        else
            reinterpret_cast<uint32_t *>(p)[i] = w[i];
    }
}

// If both sides have the same order.
template <typename words_t, typename to_t>
__device__ __forceinline__ void cast_lines(const lines_t &src, const lines_t &dst, int length) {
    constexpr int unit = unit_of<words_t, to_t>();
    const int units = length / unit;
#pragma unroll 4
    for (int i = threadIdx.x; i < tile_k * tile_n / unit; i += threads) {
        float x[unit];
        load_unit<words_t>(src, i / units, i % units * unit, x);
        store_unit<to_t>(dst, i / units, i % units * unit, x);
    }
}

// A thread has squares of the size of a unit. Four neighbouring threads have further lines of a square, and
// eight more have further lines of these. So what they read and write together is whole sectors.
template <typename words_t, typename to_t>
__device__ __forceinline__ void transpose_lines(const lines_t &src, const lines_t &dst, int length) {
    constexpr int unit = unit_of<words_t, to_t>(), squares = tile_k * tile_n / (unit * unit) / threads;
    const int lane = threadIdx.x % 32, across = length / unit / 4;
#pragma unroll 2
    for (int i = 0; i < squares; i++) {
        const int warp = i * warps + threadIdx.x / 32;
        const int first = (warp % across * 4 + lane % 4) * unit, line = (warp / across * 8 + lane / 4) * unit;
        float x[unit][unit];
#pragma unroll
        for (int j = 0; j < unit; j++) load_unit<words_t>(src, line + j, first, x[j]);
#pragma unroll
        for (int j = 0; j < unit; j++) {
            float y[unit];
#pragma unroll
            for (int c = 0; c < unit; c++) y[c] = x[c][j];
            store_unit<to_t>(dst, first + j, line, y);
        }
    }
}

template <typename words_t, typename to_t>
__global__ void __launch_bounds__(threads) cast_tiles(const __grid_constant__ tile_args_t a) {
    tile_place_t at;
    if (!find_place<8>(a, at)) return;
    start_of_early_kernel();
    const lines_t src(a.src, at, 4 / words_t::per_word), dst(a.dst, at, to_t::bytes);
    const int length = a.src.lines_along_k ? tile_k : tile_n;
    if (a.src.lines_along_k == a.dst.lines_along_k)
        cast_lines<words_t, to_t>(src, dst, length);
    else
        transpose_lines<words_t, to_t>(src, dst, length);
}

using kernel_t = void (*)(tile_args_t);

template <typename words_t>
kernel_t find(data_type_t to) {
    switch (to) {
    case mxdnn_bf16: return cast_tiles<words_t, to_bf16_t>;
    case mxdnn_f16: return cast_tiles<words_t, to_f16_t>;
    default: return cast_tiles<words_t, to_f32_t>;
    }
}
kernel_t find(data_type_t from, data_type_t to) {
    return visit_words(from, [&](auto words) { return find<decltype(words)>(to); });
}

} // namespace

bool is_of_values(const tile_args_t &a) {
    return has_role(a.src.dt, role_high_precision) && has_role(a.dst.dt, role_high_precision);
}

cudaError_t prepare_cast_tiles(const tile_args_t *a) {
    if (a) return load_kernel(find(a->src.dt, a->dst.dt));
    for (const data_type_t from : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
        for (const data_type_t to : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
            if (const cudaError_t e = load_kernel(find(from, to))) return e;
    return cudaSuccess;
}

cudaError_t launch_cast_tiles(const launch_t &at, const tile_args_t &a) {
    return launch_kernel(at, find(a.src.dt, a.dst.dt), {tile_grid(a), threads, 0, early}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
