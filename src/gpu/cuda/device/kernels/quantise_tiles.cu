// SPDX-License-Identifier: Apache-2.0
// mx_reorder from high precision to MX and NVFP4, plain or packed, whatever the order of either side.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/tiles/params.cuh"
#include "gpu/cuda/device/tiles/quantise.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

// Many CTAs keep many loads in flight.
template <typename quantiser_t>
__global__ void __launch_bounds__(threads, 8) quantise_tiles(const __grid_constant__ tile_args_t a) {
    constexpr int bits = quantiser_t::element::bits, width = bits == 4 ? 4 : 8;
    __shared__ code_tile_t<width> t;
    tile_place_t at;
    if (!find_place<width>(a, at)) return;
    float global = 1.f;
    if (a.two_levels)
        global =
                a.given ? a.given[at.matrix * a.given_step] : nvfp4_global_scale(float_of(a.amax[at.matrix]));
    const auto quantise_words = [&](auto words) {
        using words_t = decltype(words);
        quantise_tile<quantiser_t, words_t>(t, a, side_source_t{a.src, at}, at, global);
    };
    switch (a.src.dt) {
    case mxdnn_bf16: quantise_words(bf16_words_t()); break;
    case mxdnn_f16: quantise_words(f16_words_t()); break;
    default: quantise_words(f32_words_t()); break;
    }
    __syncthreads();
    store_tile<bits>(t, a, a.dst, at, global);
}

// The largest finite magnitude of each matrix, as bits, in a.amax, which is zero before.
constexpr int amax_threads = 256, amax_ctas = 2048;

template <typename words_t>
__device__ uint32_t largest_of(const tile_args_t &a, int64_t matrix) {
    constexpr int width = 4 / words_t::per_word;
    const int64_t lines = a.src.lines_along_k ? a.N : a.K, length = a.src.lines_along_k ? a.K : a.N;
    // A warp takes 4 KB of a line at a time.
    constexpr int loads = 8, piece = 32 * 16 * loads / width;
    const int64_t pieces = div_up(length, piece), warps = int64_t(gridDim.x) * (amax_threads / 32);
    const uint8_t *p = a.src.data + matrix * a.src.batch_step;
    uint32_t m = 0;
    for (int64_t i = blockIdx.x * (amax_threads / 32) + threadIdx.x / 32; i < lines * pieces; i += warps) {
        const int64_t first = i % pieces * piece + threadIdx.x % 32 * (16 / width);
        const uint8_t *q = p + i / pieces * a.src.line_step + first * width;
        uint4 v[loads];
#pragma unroll
        for (int j = 0; j < loads; j++) {
            const int64_t left = (length - first) * width - j * 512;
            v[j] = left >= 16 && a.src.aligned ? *reinterpret_cast<const uint4 *>(q + j * 512)
                                               : load_some(q + j * 512, int(left < 0        ? 0
                                                                                : left > 16 ? 16
                                                                                            : left));
        }
#pragma unroll
        for (int j = 0; j < loads; j++)
            for (uint32_t w : {v[j].x, v[j].y, v[j].z, v[j].w}) {
                float x[2];
                words_t::values(w, x);
#pragma unroll
                for (int c = 0; c < words_t::per_word; c++)
                    if (magnitude_bits(x[c]) < f32_inf_bits) m = max(m, magnitude_bits(x[c]));
            }
    }
    return m;
}

__global__ void __launch_bounds__(amax_threads) find_largest(const __grid_constant__ tile_args_t a) {
    const int64_t matrix = blockIdx.y;
    uint32_t m = a.src.dt == mxdnn_bf16  ? largest_of<bf16_words_t>(a, matrix)
                 : a.src.dt == mxdnn_f16 ? largest_of<f16_words_t>(a, matrix)
                                         : largest_of<f32_words_t>(a, matrix);
    m = __reduce_max_sync(~0u, m);
    if (threadIdx.x % 32 == 0 && m) atomicMax(const_cast<unsigned *>(a.amax) + matrix, m);
}

using kernel_t = void (*)(tile_args_t);

kernel_t find(data_type_t dt, bool nvfp4, bool two_levels) {
    if (nvfp4) return two_levels ? quantise_tiles<nvfp4_two_levels_t> : quantise_tiles<nvfp4_quantiser_t>;
    kernel_t k = nullptr;
    visit_type(mx_element_types(), dt, [&](auto e) { k = quantise_tiles<mx_quantiser_t<decltype(e)>>; });
    return k;
}

cudaError_t prepare() {
    cudaError_t e = load_kernel(find_largest);
    for (bool two_levels : {false, true})
        if (e == cudaSuccess) e = load_kernel(find(mxdnn_f4_e2m1, true, two_levels));
    for_each_type(mx_element_types(), [&](auto t) {
        if (e == cudaSuccess) e = load_kernel(find(decltype(t)::id, false, false));
    });
    return e;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const tile_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    if (a.clear_bytes > 0)
        if (const cudaError_t e = cudaMemsetAsync(a.clear, 0, size_t(a.clear_bytes), s)) return e;
    if (a.two_levels && !a.given) {
        if (const cudaError_t e = cudaMemsetAsync(const_cast<uint32_t *>(a.amax), 0, size_t(a.batch) * 4, s))
            return e;
        const int64_t per_matrix = div_up(amax_ctas, a.batch);
        find_largest<<<dim3(unsigned(per_matrix), unsigned(a.batch)), amax_threads, 0, s>>>(a);
    }
    find(a.dst.dt, a.block_shift == nvfp4_quantiser_t::block_shift,
            a.two_levels)<<<tile_grid(a), threads, 0, s>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t quantise_tiles_kernel = {
        kernel_id_t::quantise_tiles, sizeof(tile_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
