// SPDX-License-Identifier: Apache-2.0
// mx_reorder of rows in groups, from 16-bit values to MX with codes of a byte: blocks along the columns,
// along the rows of each group, or both in one pass. A CTA finds its group, keeps a square of its rows in
// shared memory, and makes the codes of each destination in registers. Squares begin with the groups, so that
// each has a tile of 128x4 scales to itself.
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"
#include "gpu/cuda/interface/quantise_groups_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

using namespace tiles;

constexpr int side = group_square, threads = 256, line = side * 2, blocks = side / 32;
constexpr int each = 16; // values that a thread takes of a row

// The rows of a CTA.
struct square_t {
    int64_t first; // of the group
    int rows, cols;
    int64_t row, col; // the first of the square in its group
    int64_t group_squares, squares,
            blocks_; // of the group; of all groups before it, with their blocks of rows
    int64_t group_rows;
};

// The group that has the square of rows with this number among those of all groups; false: none has. Called
// by whole warps.
__device__ __forceinline__ bool find_group(const row_groups_t &groups, int64_t number, square_t &s) {
    const int lane = threadIdx.x % 32;
    int64_t squares = 0, blocks_before = 0; // of groups before `from`
    for (int64_t from = 0; from < groups.groups; from += 32) {
        row_group_t of{0, 0, -1};
        if (from + lane < groups.groups) of = groups.group(from + lane);
        const int64_t own = div_up(of.count, int64_t(side)), own_blocks = div_up(of.count, int64_t(32));
        int64_t end = own, blocks_end = own_blocks; // with the lanes before
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int64_t a = __shfl_up_sync(~0u, end, d), b = __shfl_up_sync(~0u, blocks_end, d);
            if (lane >= d) end += a, blocks_end += b;
        }
        const uint32_t after = __ballot_sync(~0u, number < squares + end);
        if (after) {
            const int l = __ffs(int(after)) - 1;
            s.first = __shfl_sync(~0u, of.first, l);
            s.group_rows = __shfl_sync(~0u, of.count, l);
            s.group_squares = __shfl_sync(~0u, own, l);
            s.squares = squares + __shfl_sync(~0u, end - own, l);
            s.blocks_ = blocks_before + __shfl_sync(~0u, blocks_end - own_blocks, l);
            s.row = (number - s.squares) * side;
            s.rows = int(min(s.group_rows - s.row, int64_t(side)));
            return true;
        }
        squares += __shfl_sync(~0u, end, 31);
        blocks_before += __shfl_sync(~0u, blocks_end, 31);
    }
    return false;
}

// Whether there is room for the scales of a group.
__device__ __forceinline__ bool fits(
        const quantised_groups_t &d, const square_t &s, int64_t across, bool of_rows) {
    if (!d.codes) return true;
    const int64_t end = d.swizzled ? (s.squares + s.group_squares) * across * swizzle_128x4::tile
                        : of_rows  ? s.blocks_ + div_up(s.group_rows, int64_t(32))
                                   : s.first + s.group_rows;
    return end <= d.limit;
}

// The tile of a square in the 128x4 order; of_rows: in that of the matrix of columns by blocks of rows.
__device__ __forceinline__ uint8_t *tile_of(
        const quantised_groups_t &d, const square_t &s, int64_t across, bool of_rows) {
    const int64_t row = s.row / side, col = s.col / side;
    const int64_t in_group = of_rows ? col * s.group_squares + row : row * across + col;
    return d.scales + (s.squares * across + in_group) * swizzle_128x4::tile;
}

template <typename element_t, typename words_t>
__device__ __forceinline__ void quantise_along_columns(
        const uint8_t *values, const quantise_groups_args_t &a, const square_t &s, int64_t across) {
    using quantiser_t = typename best_quantiser_t<mx_quantiser_t<element_t>, words_t>::type;
    const quantised_groups_t &d = a.along_columns;
    const quantiser_t q(d.rounding, 1.f);
    constexpr int parts = side / each, at_once = threads / parts;
    const int part = threadIdx.x % parts, col = part * each, block = part / 2;
    // Eight threads read a line, 16 bytes at a time. Four of them begin with their second 16 bytes, so that
    // all read from different banks.
    const int turn = part / 4 % 2;
    uint8_t *const tile = d.swizzled ? tile_of(d, s, across, false) : nullptr;
#pragma unroll
    for (int pass = 0; pass < side / at_once; pass++) {
        const int row = pass * at_once + threadIdx.x / parts;
        const auto *from = reinterpret_cast<const uint4 *>(values + row * line + col * 2);
        const uint4 v = from[turn], u = from[turn ^ 1];
        const uint4 x = turn ? u : v, y = turn ? v : u;
        const uint32_t w[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
        uint32_t m = largest<words_t, 8>(w);
        m = words_t::larger(m, __shfl_xor_sync(~0u, m, 1), 0);
        const auto b = q.template block<words_t>(amax_of<words_t>(m));
        const bool is_there = row < s.rows && col < s.cols;
        if (is_there) {
            const code_group_t<element_t> g[2] = {
                    q.template encode_row<words_t>(b, w), q.template encode_row<words_t>(b, w + 4)};
            *reinterpret_cast<uint4 *>(d.codes + (s.first + s.row + row) * a.columns + s.col + col) =
                    make_uint4(g[0].w[0], g[0].w[1], g[1].w[0], g[1].w[1]);
        }
        if (part % 2) continue;
        if (d.swizzled)
            tile[swizzle_128x4::offset(row, block, blocks)] = is_there ? uint8_t(b.scale) : 0;
        else if (is_there)
            d.scales[(s.first + s.row + row) * d.scale_row_step + (s.col / 32 + block) * d.scale_col_step] =
                    uint8_t(b.scale);
    }
}

template <typename element_t, typename words_t>
__device__ __forceinline__ void quantise_along_rows(
        const uint8_t *values, const quantise_groups_args_t &a, const square_t &s, int64_t across) {
    using quantiser_t = typename best_quantiser_t<mx_quantiser_t<element_t>, words_t>::type;
    const quantised_groups_t &d = a.along_rows;
    const quantiser_t q(d.rounding, 1.f);
    // A thread has two columns of a block.
    static_assert(threads == side / 2 * blocks, "a block of two columns for each thread");
    const int pair = threadIdx.x % (side / 2), col = pair * 2, block = threadIdx.x / (side / 2),
              row = block * 32;
    uint32_t w[32];
#pragma unroll
    for (int i = 0; i < 32; i++)
        w[i] = *reinterpret_cast<const uint32_t *>(values + (row + i) * line + pair * 4);
    const uint32_t m = largest<words_t, 32>(w);
    typename quantiser_t::block_t b[2];
    const bool is_there = row < s.rows && col < s.cols;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        b[c] = q.template block<words_t>(words_t::f32_bits(m, c));
        if (d.swizzled)
            tile_of(d, s, across, true)[swizzle_128x4::offset(col + c, block, blocks)] =
                    is_there ? uint8_t(b[c].scale) : 0;
        else if (is_there)
            d.scales[(s.blocks_ + s.row / 32 + block) * d.scale_row_step
                     + (s.col + col + c) * d.scale_col_step] = uint8_t(b[c].scale);
    }
    // Of two rows, two neighbouring threads store one each, of their four columns.
    const int odd = threadIdx.x % 2;
    uint8_t *to = d.codes + (s.first + s.row + row + odd) * a.columns + s.col + col - odd * 2;
    const int rows = col < s.cols ? s.rows - row - odd : 0;
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
        code_group_t<element_t> g[2];
        q.template encode_columns<words_t>(b, w + i, g);
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            const uint32_t two = __byte_perm(g[0].w[j / 4], g[1].w[j / 4], j % 4 ? 0x7362 : 0x5140);
            const uint32_t four = __byte_perm(two, __shfl_xor_sync(~0u, two, 1), odd ? 0x3276 : 0x5410);
            if (i + j < rows) *reinterpret_cast<uint32_t *>(to + (i + j) * a.columns) = four;
        }
    }
}

template <typename element_t, typename words_t>
__global__ void __launch_bounds__(threads, 4)
        quantise_groups(const __grid_constant__ quantise_groups_args_t a) {
    __shared__ __align__(128) uint8_t values[side * line];
    start_of_early_kernel();
    const int64_t across = div_up(a.columns, int64_t(side));
    square_t s;
    if (!find_group(a.groups, blockIdx.x / uint32_t(across), s)) return;
    s.col = int64_t(blockIdx.x % uint32_t(across)) * side;
    s.cols = int(min(a.columns - s.col, int64_t(side)));
    if (!fits(a.along_columns, s, across, false) || !fits(a.along_rows, s, across, true)) return;
    {
        constexpr int pieces = line / 16, at_once = threads / pieces;
        const int piece = threadIdx.x % pieces, first = threadIdx.x / pieces;
        const uint8_t *p = a.src + ((s.first + s.row + first) * a.columns + s.col) * 2 + piece * 16;
        const uint32_t to = uint32_t(__cvta_generic_to_shared(values)) + first * line + piece * 16;
#pragma unroll
        for (int i = 0; i < side; i += at_once)
            ptx::copy_16(to + i * line, p + i * a.columns * 2, first + i < s.rows && piece * 8 < s.cols);
        ptx::copies_wait();
    }
    __syncthreads();
    if (a.along_columns.codes) quantise_along_columns<element_t, words_t>(values, a, s, across);
    if (a.along_rows.codes) quantise_along_rows<element_t, words_t>(values, a, s, across);
}

using kernel_t = void (*)(quantise_groups_args_t);

kernel_t find(data_type_t dt, data_type_t src_dt) {
    kernel_t k = nullptr;
    visit_type(mx_element_types(), dt, [&](auto e) {
        using element_t = decltype(e);
        if constexpr (element_t::bits != 4)
            k = src_dt == mxdnn_bf16 ? quantise_groups<element_t, bf16_words_t>
                                     : quantise_groups<element_t, f16_words_t>;
    });
    return k;
}

cudaError_t prepare(const void *args) {
    if (const auto *a = static_cast<const quantise_groups_args_t *>(args))
        return load_kernel(find(a->dst_dt, a->src_dt));
    cudaError_t e = cudaSuccess;
    for_each_type(mx_element_types(), [&](auto t) {
        for (const data_type_t src : {mxdnn_bf16, mxdnn_f16})
            if (const kernel_t k = find(decltype(t)::id, src))
                if (e == cudaSuccess) e = load_kernel(k);
    });
    return e;
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const quantise_groups_args_t *>(args);
    const int64_t ctas = most_group_squares(a.groups) * div_up(a.columns, int64_t(side));
    if (ctas == 0) return cudaSuccess;
    return launch_kernel(at, find(a.dst_dt, a.src_dt), {dim3(unsigned(ctas)), threads, 0, early}, a);
}

} // namespace

const kernel_entry_t quantise_groups_kernel = {sizeof(quantise_groups_args_t), prepare, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
