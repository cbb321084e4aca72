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

// Eight elements of a line, or those of them that it has.
template <typename words_t>
__device__ __forceinline__ void load_eight(const lines_t &src, int line, int first, float (&x)[8]) {
    constexpr int width = 4 / words_t::per_word, words = 8 / words_t::per_word;
    const uint8_t *p = src.p + line * src.step + first * width;
    const int left = line < src.lines ? src.length - first : 0;
#pragma unroll
    for (int j = 0; j < words / 4; j++) {
        const uint4 v = src.aligned && left >= 8 ? reinterpret_cast<const uint4 *>(p)[j]
                                                 : load_some(p + 16 * j, left * width - 16 * j);
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int c = 0; c < 4; c++) words_t::values(w[c], x + (4 * j + c) * words_t::per_word);
    }
}
template <typename to_t>
__device__ __forceinline__ void store_eight(const lines_t &dst, int line, int first, const float (&x)[8]) {
    const int left = dst.length - first;
    if (line < dst.lines && left > 0)
        store_values<to_t>(dst.p + line * dst.step + first * to_t::bytes, x, dst.aligned && left >= 8, left);
}

// Both sides in one order: a thread has eight elements at a time.
template <typename words_t, typename to_t>
__device__ __forceinline__ void cast_lines(const lines_t &src, const lines_t &dst, int units) {
#pragma unroll 4
    for (int i = threadIdx.x; i < tile_k * tile_n / 8; i += threads) {
        float x[8];
        load_eight<words_t>(src, i / units, i % units * 8, x);
        store_eight<to_t>(dst, i / units, i % units * 8, x);
    }
}

// A thread has eight lines of eight elements, four neighbours more of these lines, and eight more of them
// further lines: what they read and write together are whole sectors.
template <typename words_t, typename to_t>
__device__ __forceinline__ void transpose_lines(const lines_t &src, const lines_t &dst, int units) {
    static_assert(tile_k * tile_n == threads * 64);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, across = units / 4;
    const int first = (warp % across * 4 + lane % 4) * 8, line = (warp / across * 8 + lane / 4) * 8;
    float x[8][8];
#pragma unroll
    for (int i = 0; i < 8; i++) load_eight<words_t>(src, line + i, first, x[i]);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float y[8] = {x[0][i], x[1][i], x[2][i], x[3][i], x[4][i], x[5][i], x[6][i], x[7][i]};
        store_eight<to_t>(dst, first + i, line, y);
    }
}

template <typename words_t, typename to_t>
__global__ void __launch_bounds__(threads) cast_tiles(const __grid_constant__ tile_args_t a) {
    tile_place_t at;
    if (!find_place<8>(a, at)) return;
    start_of_early_kernel();
    const lines_t src(a.src, at, 4 / words_t::per_word), dst(a.dst, at, to_t::bytes);
    const int units = (a.src.lines_along_k ? tile_k : tile_n) / 8;
    if (a.src.lines_along_k == a.dst.lines_along_k)
        cast_lines<words_t, to_t>(src, dst, units);
    else
        transpose_lines<words_t, to_t>(src, dst, units);
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
    switch (from) {
    case mxdnn_bf16: return find<bf16_words_t>(to);
    case mxdnn_f16: return find<f16_words_t>(to);
    default: return find<f32_words_t>(to);
    }
}

} // namespace

bool is_of_values(const tile_args_t &a) {
    return has_role(a.src.dt, role_high_precision) && has_role(a.dst.dt, role_high_precision);
}

cudaError_t prepare_cast_tiles() {
    for (const data_type_t from : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
        for (const data_type_t to : {mxdnn_bf16, mxdnn_f16, mxdnn_f32})
            if (const cudaError_t e = load_kernel(find(from, to))) return e;
    return cudaSuccess;
}

cudaError_t launch_cast_tiles(const launch_t &at, const tile_args_t &a) {
    return launch_kernel(at, find(a.src.dt, a.dst.dt), {tile_grid(a), threads, 0, true}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
