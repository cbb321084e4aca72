// SPDX-License-Identifier: Apache-2.0
// What quantise_both_axes.cu does, where nothing has an edge: a CTA keeps a square of 128 x 128 values in
// shared memory, from which a lane takes half a block of either side at a time, ldmatrix transposing those of
// one side; codes leave from registers, and scales by whole words.
#include "gpu/cuda/device/kernels/quantise_squares.cuh"

#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/matrix.cuh"
#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;
using words_t = bf16_words_t;

constexpr int side = both_axes_rows, cta_threads = 256, blocks = side / 32;

// Lines of 16 pieces of 16 bytes. The position of a piece in its line depends on the line, so that eight
// pieces that are read together are in different banks: neighbours of two lines, and the same piece of lines
// 0, 1, 16, 17, 32, 33, 48 and 49 from an even line of the first 16 on.
struct square_t {
    static constexpr int line = side * 2, pieces = line / 16;
    alignas(128) uint8_t values[side * line];

    __device__ static int offset(int l, int piece) {
        return l * line + ((piece ^ (l & 1) ^ (l >> 3 & 6)) * 16);
    }
};
struct shared_t {
    square_t square;
    alignas(16) uint8_t scales[2][side * blocks];
};

__host__ __device__ __forceinline__ bool scales_are_lines(const tile_args_t &a) {
    return a.dst.scales.k_step == 1;
}

// Codes of 16 values under a scale. The factor is a power of two. Its product with a bf16 is a bf16, except
// for negligibly small values. So half as many products suffice.
template <typename element_t>
struct squares_quantiser_t {
    using group_t = code_group_t<element_t>;
    mx_of_bf16_t<std::conditional_t<is_of_three_lines<element_t>(), element_t, f6_e2m3_t>> of_pairs;
    mx_scale_t<element_t> scale_of;

    __device__ explicit squares_quantiser_t(scale_rounding_t rounding)
        : of_pairs(rounding, 1.f), scale_of(rounding) {}
    __device__ __forceinline__ uint4 codes(uint32_t scale, const uint32_t (&w)[8]) const {
        const uint32_t factor = bits_of(e8m0_t::decode_inverse(scale)) >> 16;
        group_t g[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if constexpr (is_of_three_lines<element_t>()) {
                const typename decltype(of_pairs)::block_t block{scale, factor};
                g[h] = of_pairs.template encode_row<words_t>(block, w + 4 * h);
            } else {
                float x[8];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    words_t::values(bf16x2_t::mul(w[4 * h + i], factor * 0x10001), x + 2 * i);
                g[h] = encode_group<element_t>(x);
                if (scale == e8m0_poison) g[h].fill(element_t::poisoned_code);
            }
        }
        return make_uint4(g[0].w[0], g[0].w[1], g[1].w[0], g[1].w[1]);
    }
};

// One side of the square. Its columns are the lines of the square, or pieces of all lines. at_k, at_n: where
// it begins.
template <bool columns_are_lines, typename element_t>
__device__ __forceinline__ void quantise_side(const square_t &square, uint8_t *scales, const tile_args_t &a,
        int64_t matrix, int64_t at_k, int64_t at_n) {
    const squares_quantiser_t<element_t> q(a.rounding);
    // A lane has 16 values of each half of a column. One of two lanes has the scale of the first half's
    // block.
    const int lane = threadIdx.x % 32, row = lane % 4 * 16, odd = lane % 2;
    const int first = threadIdx.x / 32 * 8 + lane / 4; // column; the next one is 64 further
    const uint32_t from = uint32_t(__cvta_generic_to_shared(square.values));
    // Row r of matrix m is line 2m + r % 2 of those of the lanes r / 2, so that each lane gets neighbouring
    // lines.
    const int r = lane % 8;
    const uint32_t at = from
                        + (columns_are_lines ? square_t::offset(first, row / 8)
                                             : square_t::offset(r / 2 * 16 + lane / 8 * 2 + r % 2,
                                                     int(threadIdx.x) / 32));
    const bool lines = scales_are_lines(a);
    uint8_t *scale_at = scales + (lines ? first * blocks : first) + (odd * 2 + row / 32) * (lines ? 1 : side);
    uint8_t *to = a.dst.data + matrix * a.dst.batch_step + (at_n + first) * a.dst.line_step + at_k + row;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t w[2][8];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t(&part)[4] = *reinterpret_cast<uint32_t(*)[4]>(w[j / 2] + j % 2 * 4);
            if constexpr (columns_are_lines) {
                const uint4 v =
                        ptx::shared_reader_t{(at ^ (j % 2 * 16)) + i * (side / 2) * square_t::line}.read_16(
                                j / 2 * square_t::line / 2);
                part[0] = v.x, part[1] = v.y, part[2] = v.z, part[3] = v.w;
            } else {
                ptx::load_matrix_4_transposed(
                        part, at + i * 128 + (j / 2 * side / 2 + j % 2 * 8) * square_t::line);
            }
        }
        const uint32_t m[2] = {largest<words_t, 8>(w[0]), largest<words_t, 8>(w[1])};
        uint32_t both = words_t::larger(0, __byte_perm(m[0], m[1], 0x5410), __byte_perm(m[0], m[1], 0x7632));
        both = words_t::larger(both, __shfl_xor_sync(~0u, both, 1), 0);
        const uint32_t own = q.scale_of(odd ? both & 0x7fff0000u : both << 16),
                       other = __shfl_xor_sync(~0u, own, 1);
        scale_at[i * (side / 2) * (lines ? blocks : 1)] = uint8_t(own);
        auto *codes = reinterpret_cast<uint4 *>(to + i * (side / 2) * a.dst.line_step);
        codes[0] = q.codes(odd ? other : own, w[0]);
        codes[side / 2 / 16] = q.codes(odd ? own : other, w[1]);
    }
}

// By 128 threads.
__device__ __forceinline__ void store_scales(
        const uint8_t *scales, const tile_args_t &a, int64_t matrix, int64_t at_k, int64_t at_n) {
    const tile_params_t &s = a.dst.scales;
    const int t = threadIdx.x % 128;
    uint8_t *p = s.data + matrix * s.batch_step + at_n * s.n_step + at_k / 32 * s.k_step;
    if (scales_are_lines(a))
        *reinterpret_cast<uint32_t *>(p + t * s.n_step) = reinterpret_cast<const uint32_t *>(scales)[t];
    else if (t < side * blocks / 16)
        *reinterpret_cast<uint4 *>(p + t / 8 * s.k_step + t % 8 * 16) =
                reinterpret_cast<const uint4 *>(scales)[t];
}

template <typename element_t>
__global__ void __launch_bounds__(cta_threads, 4)
        quantise_squares(const __grid_constant__ both_axes_args_t args) {
    __shared__ shared_t s;
    const tile_args_t &a = args.first;
    const uint32_t columns = uint32_t(a.N / side), column = blockIdx.z * max_grid_y + blockIdx.y,
                   matrix = column / columns;
    if (matrix >= a.batch) return;
    start_of_early_kernel();
    const int64_t k = int64_t(blockIdx.x) * side, n = int64_t(column - matrix * columns) * side;
    const bool along_k = a.src.lines_along_k;
    const tile_args_t &lines = along_k ? args.first : args.second,
                      &pieces = along_k ? args.second : args.first;
    // Where the square begins: the first line, and the position along lines.
    const int64_t line = along_k ? n : k, along = along_k ? k : n;
    {
        constexpr int at_once = cta_threads / square_t::pieces;
        const int piece = threadIdx.x % square_t::pieces, first = threadIdx.x / square_t::pieces;
        const uint8_t *p = a.src.data + matrix * a.src.batch_step + (line + first) * a.src.line_step
                           + along * 2 + piece * 16;
        const uint32_t to = uint32_t(__cvta_generic_to_shared(s.square.values));
#pragma unroll
        for (int i = 0; i < side; i += at_once)
            ptx::copy_16(to + square_t::offset(first + i, piece), p + i * a.src.line_step, true);
        ptx::copies_wait();
    }
    __syncthreads();
    quantise_side<true, element_t>(s.square, s.scales[0], lines, matrix, along, line);
    quantise_side<false, element_t>(s.square, s.scales[1], pieces, matrix, line, along);
    __syncthreads();
    if (threadIdx.x < 128)
        store_scales(s.scales[0], lines, matrix, along, line);
    else
        store_scales(s.scales[1], pieces, matrix, line, along);
}

using kernel_t = void (*)(both_axes_args_t);

kernel_t find(data_type_t dt) {
    kernel_t k = nullptr;
    visit_type(mx_element_types(), dt, [&](auto e) {
        if constexpr (decltype(e)::bits != 4) k = quantise_squares<decltype(e)>;
    });
    return k;
}

bool is_of_squares(const tile_args_t &a) {
    const tile_params_t &s = a.dst.scales;
    const uint64_t all = reinterpret_cast<uintptr_t>(s.data) | uint64_t(s.batch_step);
    return !a.dst.packed && a.dst.lines_along_k && a.dst.aligned && a.K % side == 0 && a.N % side == 0
           && !s.swizzle_cols && a.clear_bytes == 0
           && (s.k_step == 1 ? (all | uint64_t(s.n_step)) % 4 == 0
                             : s.n_step == 1 && (all | uint64_t(s.k_step)) % 16 == 0);
}

} // namespace

bool is_of_squares(const both_axes_args_t &a) {
    return a.first.src.dt == mxdnn_bf16 && a.first.src.aligned && is_of_squares(a.first)
           && is_of_squares(a.second);
}

cudaError_t prepare_quantise_squares(const both_axes_args_t *a) {
    if (a) return a->first.src.dt == mxdnn_bf16 ? load_kernel(find(a->first.dst.dt)) : cudaSuccess;
    cudaError_t e = cudaSuccess;
    for_each_type(mx_element_types(), [&](auto t) {
        const kernel_t k = find(decltype(t)::id);
        if (k && e == cudaSuccess) e = load_kernel(k);
    });
    return e;
}

cudaError_t launch_quantise_squares(const launch_t &at, const both_axes_args_t &a) {
    const tile_args_t &first = a.first;
    const dim3 grid = tile_grid(first.K / side, first.N / side * first.batch);
    return launch_kernel(at, find(first.dst.dt), {grid, cta_threads, 0, early}, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
