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

// Both sides in one order: a thread has eight elements at a time.
template <typename words_t, typename to_t>
__device__ __forceinline__ void cast_lines(const lines_t &src, const lines_t &dst, int units) {
    constexpr int width = 4 / words_t::per_word, words = 8 / words_t::per_word;
#pragma unroll 4
    for (int i = threadIdx.x; i < tile_k * tile_n / 8; i += threads) {
        const int line = i / units, first = i % units * 8, left = src.length - first;
        if (line >= src.lines || left <= 0) continue;
        const uint8_t *p = src.p + line * src.step + first * width;
        float x[8];
#pragma unroll
        for (int j = 0; j < words / 4; j++) {
            const uint4 v = src.aligned && left >= 8 ? reinterpret_cast<const uint4 *>(p)[j]
                                                     : load_some(p + 16 * j, left * width - 16 * j);
            const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int c = 0; c < 4; c++) words_t::values(w[c], x + (4 * j + c) * words_t::per_word);
        }
        store_values<to_t>(dst.p + line * dst.step + first * to_t::bytes, x, dst.aligned && left >= 8, left);
    }
}

// Calls fn(line, element) for the words of a tile that are a thread's: neighbouring threads have neighbouring
// ones.
template <int per_word, typename F>
__device__ __forceinline__ void each_word(bool along_k, const F &fn) {
    const int across = (along_k ? tile_k : tile_n) / per_word;
#pragma unroll 8
    for (int i = threadIdx.x; i < tile_k * tile_n / per_word; i += threads)
        fn(i / across, i % across * per_word);
}

// Through shared memory, a row of it for each column, so that neighbours of either dim are in other banks.
template <typename words_t, typename to_t>
__device__ __forceinline__ void transpose_lines(const lines_t &src, const lines_t &dst, bool src_along_k) {
    constexpr int pitch = tile_k + 1, width = 4 / words_t::per_word, per_word = 4 / to_t::bytes;
    __shared__ float values[tile_n * pitch];
    const auto at = [&](bool along_k, int line, int element) -> float & {
        return values[along_k ? line * pitch + element : element * pitch + line];
    };
    each_word<words_t::per_word>(src_along_k, [&](int line, int element) {
        const int left = src.length - element;
        if (line >= src.lines || left <= 0) return;
        const uint8_t *p = src.p + line * src.step + element * width;
        const uint32_t w = src.aligned && left >= words_t::per_word ? *reinterpret_cast<const uint32_t *>(p)
                                                                    : load_some(p, min(left * width, 4)).x;
        float x[words_t::per_word];
        words_t::values(w, x);
#pragma unroll
        for (int c = 0; c < words_t::per_word; c++) at(src_along_k, line, element + c) = x[c];
    });
    __syncthreads();
    each_word<per_word>(!src_along_k, [&](int line, int element) {
        const int left = dst.length - element;
        if (line >= dst.lines || left <= 0) return;
        uint8_t *p = dst.p + line * dst.step + element * to_t::bytes;
        const float x = at(!src_along_k, line, element);
        if constexpr (per_word == 1) {
            *reinterpret_cast<float *>(p) = x;
        } else {
            const uint32_t w = to_t::pair(x, at(!src_along_k, line, element + 1));
            if (dst.aligned && left > 1) {
                *reinterpret_cast<uint32_t *>(p) = w;
            } else {
                for (int c = 0; c < 2 && c < left; c++)
                    reinterpret_cast<uint16_t *>(p)[c] = uint16_t(w >> 16 * c);
            }
        }
    });
}

template <typename words_t, typename to_t>
__global__ void __launch_bounds__(threads) cast_tiles(const __grid_constant__ tile_args_t a) {
    tile_place_t at;
    if (!find_place<8>(a, at)) return;
    start_of_early_kernel();
    const lines_t src(a.src, at, 4 / words_t::per_word), dst(a.dst, at, to_t::bytes);
    if (a.src.lines_along_k == a.dst.lines_along_k)
        cast_lines<words_t, to_t>(src, dst, (a.src.lines_along_k ? tile_k : tile_n) / 8);
    else
        transpose_lines<words_t, to_t>(src, dst, a.src.lines_along_k);
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
