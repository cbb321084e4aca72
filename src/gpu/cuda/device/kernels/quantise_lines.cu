// SPDX-License-Identifier: Apache-2.0
// What quantise_tiles.cu does, where codes leave in the order in which values come and nothing has an edge:
// without shared memory, and without warps that wait for each other. A lane has two columns of a block, and
// of four neighbours each stores a row of their eight columns.
#include "gpu/cuda/device/kernels/quantise_lines.cuh"

#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/device/tiles/quad.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;
using words_t = bf16_words_t;

template <typename quantiser_t>
constexpr int block_of() {
    return 1 << quantiser_t::block_shift;
}
// A warp has one block.
template <typename quantiser_t>
constexpr int rows_of_cta() {
    return warps * block_of<quantiser_t>();
}
// As many as the registers for the values of a block allow.
template <typename quantiser_t>
constexpr int ctas_of() {
    return block_of<quantiser_t>() == 16 ? 11 : 9;
}

// Four rows of two columns: a byte of two codes for each row.
template <typename quantiser_t, typename factors_t>
__device__ __forceinline__ uint32_t pairs_of_rows(const uint32_t *w, const factors_t &factors) {
    uint32_t v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = quantiser_t::codes(w[i], factors);
    const halves_t codes = bytes_of_halves(v[0], v[1], v[2], v[3]),
                   signs = signs_of_halves(w[0], w[1], w[2], w[3]);
    // Other bits than the codes of a poisoned block may have any value.
    constexpr uint32_t magnitudes = 0x07070707u;
    const uint32_t low = (codes.lower & magnitudes) | (signs.lower & ~magnitudes),
                   high = (codes.upper & magnitudes) | (signs.upper & ~magnitudes);
    return (low & 0x0f0f0f0fu) | (high << 4 & 0xf0f0f0f0u);
}

template <typename quantiser_t>
__global__ void __launch_bounds__(threads, ctas_of<quantiser_t>())
        quantise_lines(const __grid_constant__ tile_args_t a) {
    using element_t = typename quantiser_t::element;
    constexpr int block = block_of<quantiser_t>();
    const uint32_t n_tiles = uint32_t(a.n_tiles), column = blockIdx.z * max_grid_y + blockIdx.y;
    const int64_t k = int64_t(blockIdx.x) * rows_of_cta<quantiser_t>() + threadIdx.x / 32 * block;
    if (column >= n_tiles * uint32_t(a.batch) || k >= a.K) return;
    start_of_early_kernel();
    const int lane = threadIdx.x % 32;
    const int64_t matrix = column / n_tiles, n = int64_t(column - matrix * n_tiles) * tile_n;
    const uint8_t *from = a.src.data + matrix * a.src.batch_step + k * a.src.line_step + (n + 2 * lane) * 2;
    uint32_t w[block];
#pragma unroll
    for (int i = 0; i < block; i++) w[i] = *reinterpret_cast<const uint32_t *>(from + i * a.src.line_step);
    const uint32_t m = largest<words_t, block>(w);
    const quantiser_t q(a.rounding, 1.f);
    typename quantiser_t::block_t b[2];
    uint32_t keep = ~0u, poison = 0;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        b[c] = q.template block<words_t>(words_t::f32_bits(m, c));
        if (b[c].scale != quantiser_t::poison) continue;
        keep &= 0xf0f0f0f0u >> 4 * c;
        poison |= element_t::poisoned_code * (0x01010101u << 4 * c);
    }
    const tile_params_t &scales = a.dst.scales;
    uint8_t *scale = scales.data + matrix * scales.batch_step + k / block * scales.k_step + n + 2 * lane;
    *reinterpret_cast<uint16_t *>(scale) = uint16_t(b[0].scale | b[1].scale << 8);
    const auto factors = quantiser_t::factors(b[0], b[1]);
    uint8_t *to =
            a.dst.data + matrix * a.dst.batch_step + (k + lane % 4) * a.dst.line_step + n / 2 + lane / 4 * 4;
#pragma unroll
    for (int i = 0; i < block; i += 4)
        *reinterpret_cast<uint32_t *>(to + i * a.dst.line_step) =
                transpose_bytes_of_quad((pairs_of_rows<quantiser_t>(w + i, factors) & keep) | poison);
}

using kernel_t = void (*)(tile_args_t);

kernel_t find(bool nvfp4) {
    return nvfp4 ? quantise_lines<nvfp4_of_bf16_t> : quantise_lines<mx_of_bf16_t<f4_e2m1_t>>;
}
bool is_nvfp4(const tile_args_t &a) { return a.block_shift == nvfp4_of_bf16_t::block_shift; }

} // namespace

bool may_be_of_lines(const tile_args_t &a) {
    return a.src.dt == mxdnn_bf16 && a.dst.dt == mxdnn_f4_e2m1 && !a.two_levels && !a.dst.packed;
}

bool is_of_lines(const tile_args_t &a) {
    const tile_params_t &s = a.dst.scales;
    const uint64_t scales = reinterpret_cast<uintptr_t>(s.data) | uint64_t(s.batch_step | s.k_step);
    return may_be_of_lines(a) && !a.src.lines_along_k && !a.dst.lines_along_k && a.src.aligned
           && a.dst.aligned && a.K % (int64_t(1) << a.block_shift) == 0 && a.N % tile_n == 0
           && !s.swizzle_cols && s.n_step == 1 && scales % 2 == 0;
}

cudaError_t prepare_quantise_lines(const tile_args_t *a) {
    for (const bool nvfp4 : {false, true})
        if (!a || nvfp4 == is_nvfp4(*a))
            if (const cudaError_t e = load_kernel(find(nvfp4))) return e;
    return cudaSuccess;
}

cudaError_t launch_quantise_lines(const launch_t &at, const tile_args_t &a) {
    const int rows = is_nvfp4(a) ? rows_of_cta<nvfp4_of_bf16_t>() : rows_of_cta<mx_of_bf16_t<f4_e2m1_t>>();
    return launch_kernel(at, find(is_nvfp4(a)),
            {tile_grid(div_up(a.K, int64_t(rows)), a.n_tiles * a.batch), threads, 0, early}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
