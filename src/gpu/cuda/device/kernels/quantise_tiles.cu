// SPDX-License-Identifier: Apache-2.0
// mx_reorder from high precision to MX and NVFP4, plain or packed, whatever the order of either side. Where
// the lines of both run across the blocks, codes of four bits have a kernel of their own, quantise_lines.cu,
// and so has int4, quantise_int4.cu.
#include "gpu/cuda/device/kernels/quantise_int4.cuh"
#include "gpu/cuda/device/kernels/quantise_lines.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/packed_image.cuh"
#include "gpu/cuda/device/tiles/params.cuh"
#include "gpu/cuda/device/tiles/quantisers.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// The largest of the values that find_largest() wrote for each part of a matrix. Every warp calls it.
__device__ __forceinline__ float largest_of_matrix(const tile_args_t &a, int64_t matrix) {
    const uint32_t *parts = a.amax + matrix * a.amax_parts;
    uint32_t m = 0;
#pragma unroll 16
    for (int i = threadIdx.x % 32; i < a.amax_parts; i += 32) m = max(m, parts[i]);
    return float_of(__reduce_max_sync(~0u, m));
}

// Many CTAs keep many loads in flight.
template <typename quantiser_t>
__global__ void __launch_bounds__(threads, 8) quantise_tiles(const __grid_constant__ tile_args_t a) {
    constexpr int bits = quantiser_t::element::bits, width = bits == 4 ? 4 : 8;
    __shared__ union {
        code_tile_t<width> tile;
        packed_image_t<bits, 1 << quantiser_t::block_shift> image;
    } s;
    tile_place_t at;
    // What find_largest() read last is still in L2.
    if (!find_place<width>(a, at, a.two_levels && !a.given)) return;
    start_of_early_kernel();
    float global = 1.f;
    if (a.two_levels)
        global = a.given ? a.given[at.matrix * a.given_step]
                         : nvfp4_global_scale(largest_of_matrix(a, at.matrix));
    const bool as_image =
            a.dst.packed && a.dst.nibbles != nibbles_t::f4 && !a.src.lines_along_k && a.src.dt != mxdnn_f32;
    const auto quantise_words = [&](auto words) {
        using words_t = decltype(words);
        if constexpr (words_t::per_word == 2)
            if (as_image) return quantise_to_image<quantiser_t, words_t>(s.image, a, {a.src, at}, at, global);
        quantise_tile<quantiser_t, words_t>(s.tile, a, side_source_t{a.src, at}, at, global);
    };
    switch (a.src.dt) {
    case mxdnn_bf16: quantise_words(bf16_words_t()); break;
    case mxdnn_f16: quantise_words(f16_words_t()); break;
    default: quantise_words(f32_words_t()); break;
    }
    __syncthreads();
    if (as_image)
        s.image.store(a.dst, at);
    else
        store_tile<bits>(s.tile, a, a.dst, at);
    if (a.two_levels) store_global(a.dst, at, global);
}

constexpr int amax_threads = 256;

// The largest number of all threads, for the first thread.
__device__ __forceinline__ uint32_t largest_of_cta(uint32_t m) {
    __shared__ uint32_t of_warp[amax_threads / 32];
    m = __reduce_max_sync(~0u, m);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
    __syncthreads();
    return threadIdx.x < 32 ? __reduce_max_sync(~0u, of_warp[threadIdx.x % (amax_threads / 32)]) : 0;
}

// The largest finite magnitude of the lines that a CTA reads, as bits of an f32.
template <typename words_t>
__device__ uint32_t largest_of_lines(const tile_args_t &a, int64_t matrix) {
    constexpr int width = 4 / words_t::per_word;
    int64_t lines = a.src.lines_along_k ? a.N : a.K, bytes = (a.src.lines_along_k ? a.K : a.N) * width;
    if (a.src.line_step == bytes) bytes *= lines, lines = 1; // lines are contiguous
    // A warp takes 4 KB of a line at a time.
    constexpr int loads = 8, piece = 32 * 16 * loads;
    const int64_t pieces = div_up(bytes, int64_t(piece)), warps = int64_t(gridDim.x) * (amax_threads / 32);
    const uint8_t *p = a.src.data + matrix * a.src.batch_step;
    uint32_t all = 0;
    const auto look = [&](const auto &v) {
        const auto largest_of_all = [&](auto &&f) {
            uint32_t m = 0;
#pragma unroll
            for (const uint4 &w : v) {
                m = words_t::larger(m, f(w.x), f(w.y));
                m = words_t::larger(m, f(w.z), f(w.w));
            }
            return amax_of<words_t>(m);
        };
        uint32_t m = largest_of_all([](uint32_t w) { return w; });
        if (m >= f32_inf_bits) m = largest_of_all(words_t::finite);
        all = max(all, m);
    };
    for (int64_t i = blockIdx.x * (amax_threads / 32) + threadIdx.x / 32; i < lines * pieces; i += warps) {
        const int64_t line = lines == 1 ? 0 : i / pieces, first = (i - line * pieces) * piece;
        const int own = threadIdx.x % 32 * 16;
        const uint8_t *q = p + line * a.src.line_step + first + own;
        if (a.src.aligned && bytes - first >= piece) {
            uint4 v[loads];
#pragma unroll
            for (int j = 0; j < loads; j++) v[j] = *reinterpret_cast<const uint4 *>(q + j * 512);
            look(v);
        } else {
#pragma unroll 1
            for (int64_t left = bytes - first - own; left > 0; left -= 512, q += 512) {
                const uint4 v[1] = {load_some(q, left < 16 ? int(left) : 16)};
                look(v);
            }
        }
    }
    return all;
}

__global__ void __launch_bounds__(amax_threads, 4) find_largest(const __grid_constant__ tile_args_t a) {
    start_of_early_kernel();
    const int64_t matrix = blockIdx.y;
    const uint32_t m = largest_of_cta(a.src.dt == mxdnn_bf16  ? largest_of_lines<bf16_words_t>(a, matrix)
                                      : a.src.dt == mxdnn_f16 ? largest_of_lines<f16_words_t>(a, matrix)
                                                              : largest_of_lines<f32_words_t>(a, matrix));
    if (threadIdx.x == 0) a.amax[matrix * gridDim.x + blockIdx.x] = m;
}

struct kernels_t {
    using kernel_t = void (*)(tile_args_t);
    template <typename quantiser_t>
    static kernel_t of() {
        return quantise_tiles<quantiser_t>;
    }
};

bool is_of_nvfp4(const tile_args_t &a) { return a.block_shift == nvfp4_quantiser_t::block_shift; }

cudaError_t prepare(const void *args) {
    const auto *a = static_cast<const tile_args_t *>(args);
    cudaError_t e = cudaSuccess;
    if (!a || is_of_int4(*a)) e = prepare_quantise_int4(a);
    if (e != cudaSuccess || (a && is_of_int4(*a))) return e;
    if (!a || a->two_levels) e = load_kernel(find_largest);
    if (e == cudaSuccess && (!a || may_be_of_lines(*a))) e = prepare_quantise_lines(a);
    if (e != cudaSuccess) return e;
    return a ? load_kernel(quantiser_kernel<kernels_t>(a->dst.dt, is_of_nvfp4(*a), a->two_levels))
             : load_quantiser_kernels<kernels_t>();
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const tile_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    if (a.clear_bytes > 0)
        if (const cudaError_t e = cudaMemsetAsync(a.clear, 0, size_t(a.clear_bytes), s)) return e;
    if (a.two_levels && !a.given) {
        const dim3 parts(unsigned(a.amax_parts), unsigned(a.batch));
        if (const cudaError_t e = launch_kernel(at, find_largest, {parts, amax_threads, 0, early}, a))
            return e;
    }
    if (is_of_int4(a)) return launch_quantise_int4(at, a);
    if (is_of_lines(a)) return launch_quantise_lines(at, a);
    return launch_kernel(at, quantiser_kernel<kernels_t>(a.dst.dt, is_of_nvfp4(a), a.two_levels),
            {tile_grid(a), threads, 0, early}, a);
}

} // namespace

const kernel_entry_t quantise_tiles_kernel = {sizeof(tile_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
