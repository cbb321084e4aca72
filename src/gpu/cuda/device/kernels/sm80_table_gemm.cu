// SPDX-License-Identifier: Apache-2.0
// mx_matmul with mma.sync, which every device from sm_80 on has: the kernel that takes what faster ones
// decline. It asks for packed weights and a source of 16-bit or MX values, and is one kernel for all formats:
// codes become 16-bit values by a table in shared memory, exactly, and scales meet the f32 sums of their
// blocks.
//
// A CTA makes 32 rows x 64 columns of results. Its four teams of four warps take turns along K, 64 at a time,
// and add up what they have, always in one order, at the end: with few rows it is the loads in flight that
// count. Weights are the A operand, read by each thread straight from the packed bytes, whose order is that
// of fragments; rows of the source are the B operand, in shared memory. The results meet there, too, so that
// gates find their partners and blocks their neighbours.
#include <type_traits>

#include "common/post_op_formulas.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/matrix_view.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"
#include "gpu/cuda/device/tiles/packed.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int teams = 4, team_threads = 128, threads = teams * team_threads;
constexpr int tile_m = 32, tile_n = 64, tile_k = 64; // of a CTA
constexpr int k16_steps = tile_k / 16, n8_tiles = tile_m / 8;
// Rows of shared memory are 16 bytes longer than their values, so that eight of them use all banks.
constexpr int src_pitch = tile_k + 8, out_pitch = tile_n + 4;
constexpr int max_src_blocks = tile_k / 16;

// The 16-bit type of the products. Both types represent every code of every format exactly.
struct bf16_operand_t {
    using pair_t = bf16x2_t;
    __device__ static void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};
struct f16_operand_t {
    using pair_t = f16x2_t;
    __device__ static void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

// The value of a code before scale and zero point. Codes of u4 count from the one that an added zero point
// stands for. Those of s8 with floating-point scales are integers.
__device__ float code_value(data_type_t dt, const quant_t &q, uint32_t code) {
    if (dt == mxdnn_s8 && quant_family(dt, q) == quant_family_t::affine) return float(int8_t(code));
    const float v = decode(dt, code);
    return v - float(code_of_added(q.zp));
}

// Elements along K that share a scale of the source; at most those of a tile.
__device__ int block_of_source(const matmul_args_t &a) {
    const bool long_blocks =
            !a.src.quantised || a.src.quant.block >= tile_k || has_row_scale(a.src.dt, a.src.quant);
    return long_blocks ? tile_k : int(a.src.quant.block);
}

// Scales and zero points: few types, read once per block.
__device__ __forceinline__ float scale_value(data_type_t dt, const uint8_t *p) {
    switch (dt) {
    case mxdnn_e8m0: return e8m0_t::decode(*p);
    case mxdnn_bf16: return float_of(uint32_t(*reinterpret_cast<const uint16_t *>(p)) << 16);
    case mxdnn_f32: return *reinterpret_cast<const float *>(p);
    case mxdnn_f16: return f16_to_float(*reinterpret_cast<const uint16_t *>(p));
    case mxdnn_u8: return float(*p);
    default: return f8_e4m3_t::decode(*p);
    }
}

// ---- codes of the packed layouts: the four registers of a fragment, two codes each ----

// The position of bit b of the code in one half of register reg, in the word of a thread, by the map of
// n64_i4.
constexpr int n64_i4_bit(int reg, int half, int b) {
    const packed_shape_t s = {64, 64, 64, 4, 2};
    const int64_t k = reg / 2 * 8 + half, n = reg % 2 * 8; // of the first thread and word
    const bit_pos_t p = n64_i4_t::elem_bit(s, k, n, b);
    return int(p.byte - n64_i4_t::codes(s, k, n)) * 8 + p.bit;
}
constexpr bool n64_i4_is_in_order() {
    for (int i = 0; i < 32; i++)
        if (n64_i4_bit(i / 4 % 4, i / 16, i % 4) != i) return false;
    return true;
}

// The words of a thread for 64 rows of K. Those of the next 16 rows are always in front, so that a loop need
// not be unrolled.
template <int bits>
struct words_t {
    uint32_t w[2 * bits];

    __device__ void load(const uint8_t *codes, int thread, bool upper_half) {
        load_16(0, codes + thread * 16);
        if constexpr (bits == 6) {
            const uint2 v = *reinterpret_cast<const uint2 *>(codes + team_threads * 16 + thread * 8);
            w[4] = v.x, w[5] = v.y;
        }
        if constexpr (bits == 8) {
            // Steps of 32 rows. The second one is missing if K ends before it.
            for (int i = 4; i < 8; i++) w[i] = 0;
            if (upper_half) load_16(4, codes + team_threads * 16 + thread * 16);
        }
    }
    // Called before code() of 16 rows: four bits of n64_b4 become those of n64_i4.
    __device__ __forceinline__ void put_in_order([[maybe_unused]] bool in_order) {
        if constexpr (bits == 4)
            if (!in_order) w[0] = tiles::gather_bits<tiles::b4_word_t>(w[0]);
    }
    // The code in one half of register `reg`: the inverse of the maps in common/layouts/n64_*.hpp.
    __device__ __forceinline__ uint32_t code(int reg, int half) const {
        if constexpr (bits == 4) {
            static_assert(n64_i4_is_in_order(), "registers are one after the other");
            return w[0] >> (4 * reg + 16 * half) & 15;
        } else if constexpr (bits == 6) {
            const int first = reg == 0 ? 4 : reg == 1 ? 0 : reg == 2 ? 8 : 12;
            const uint32_t low = w[0] >> (first + 16 * half) & 15,
                           top = rotate_right(w[4], 2 * reg + 16 * half);
            return low | (top >> 8 & 1) << 4 | (top >> 15 & 1) << 5;
        } else {
            return w[reg / 2] >> (16 * half + 8 * (reg % 2)) & 255;
        }
    }
    // Moves to the 16 rows after those of step `step`.
    __device__ __forceinline__ void advance(int step) {
        if constexpr (bits == 8) {
            for (int i = 0; i < 6; i++) w[i] = w[i + 2];
        } else {
            for (int i = 0; i < 3; i++) w[i] = w[i + 1];
            if (bits == 6) w[4] = step % 2 == 0 ? rotate_right(w[4], 8) : w[5];
        }
    }

private:
    __device__ static __forceinline__ uint32_t rotate_right(uint32_t v, int by) {
        return __funnelshift_r(v, v, by);
    }
    __device__ __forceinline__ void load_16(int first, const uint8_t *p) {
        const uint4 v = *reinterpret_cast<const uint4 *>(p);
        w[first] = v.x, w[first + 1] = v.y, w[first + 2] = v.z, w[first + 3] = v.w;
    }
};

// ---- the source: 32 rows x 64 of K as 16-bit values, and the scales of its blocks ----

struct source_tile_t {
    uint16_t values[tile_m][src_pitch];
    float scales[tile_m][max_src_blocks];
};

struct place_t {
    int64_t idx[max_ndims]; // of the matrix; the last two are free
    int64_t m0;
};

// `rows` are read, a multiple of 8.
__device__ __noinline__ void load_source(source_tile_t &t, const matmul_args_t &a, const matrix_view_t &src,
        const place_t &at, const uint16_t *table, int64_t k0, int rows) {
    const int thread = threadIdx.x % team_threads;
    const plain_args_t &e = a.src.elements;
    const int nd = e.ndims;
    const uint8_t *base = e.data;
    for (int i = 0; i < nd - 2; i++) base += at.idx[i] * e.step[i];
    const int64_t row_step = e.step[nd - 2], col_step = e.step[nd - 1];
    if (!a.src.quantised && col_step == 2 && a.K - k0 >= tile_k
            && ((reinterpret_cast<uintptr_t>(base) | uintptr_t(row_step)) & 15) == 0) {
        for (int i = thread; i < rows * tile_k / 8; i += team_threads) {
            const int m = i / (tile_k / 8), k = i % (tile_k / 8) * 8;
            uint4 v = {0, 0, 0, 0};
            if (at.m0 + m < a.M)
                v = *reinterpret_cast<const uint4 *>(base + (at.m0 + m) * row_step + (k0 + k) * 2);
            *reinterpret_cast<uint4 *>(&t.values[m][k]) = v;
        }
        return;
    }
    for (int i = thread; i < rows * tile_k; i += team_threads) {
        const int m = i / tile_k, k = i % tile_k;
        uint16_t v = 0;
        if (at.m0 + m < a.M && k0 + k < a.K) {
            const uint8_t *row = base + (at.m0 + m) * row_step;
            if (!a.src.quantised)
                v = *reinterpret_cast<const uint16_t *>(row + (k0 + k) * col_step);
            else if (e.inner < 0)
                v = table[row[(k0 + k) * col_step]];
            else
                v = table[get_code(row, k0 + k, e.bits, e.packing)];
        }
        t.values[m][k] = v;
    }
    if (!a.src.quantised) return;
    const int block = block_of_source(a), blocks = tile_k / block;
    for (int i = thread; i < rows * blocks; i += team_threads) {
        const int m = i / blocks, b = i % blocks;
        const int64_t k = k0 + b * block;
        float s = 0;
        if (at.m0 + m < a.M && k < a.K) s = decode(a.src.quant.scale_dt, src.params(at.m0 + m, k).scale);
        t.scales[m][b] = s;
    }
}

// ---- results: 32 rows x 64 columns before a gate, 32 after ----

struct results_t {
    float v[tile_m][out_pitch];
};

__device__ float apply(const matmul_args_t &a, const post_op_args_t &o, float x, int64_t *idx, int64_t n) {
    const int nd = a.dst.ndims;
    idx[nd - 1] = n;
    switch (o.kind) {
    case mxdnn_eltwise: return ref_eltwise<float>(o.alg, x, o.alpha, o.beta);
    case mxdnn_binary: return ref_binary<float>(o.alg, x, load_value(o.src1, idx, nd));
    case mxdnn_sum:
        return x + o.scale * (decode(o.dt, load_code(a.dst.elements, idx, nd)) - float(o.zero_point));
    default: return x;
    }
}

// The column of the results, before the gate, at position c of the tile. n0 counts columns after the gate.
__device__ int64_t column_of(const matmul_args_t &a, bool halves, int64_t n0, int c) {
    return !halves ? n0 + c : c < tile_n / 2 ? n0 + c : a.N / 2 + n0 + c - tile_n / 2;
}

__device__ __noinline__ void finish(results_t &r, const matmul_args_t &a, const matrix_view_t &dst,
        const place_t &at, int64_t first, bool halves, int gate) {
    int64_t idx[max_ndims];
    const int nd = a.dst.ndims;
    for (int i = 0; i < nd; i++) idx[i] = at.idx[i];
    const bool gated = gate < a.post_ops;
    const int columns = gated ? tile_n / 2 : tile_n;         // of dst
    const int64_t n0 = gated && !halves ? first / 2 : first; // in dst
    for (int i = threadIdx.x; i < tile_m * tile_n; i += threads) {
        const int m = i / tile_n, c = i % tile_n;
        const int64_t n = column_of(a, halves, first, c);
        if (at.m0 + m >= a.M || n >= a.N) continue;
        idx[nd - 2] = at.m0 + m;
        float x = r.v[m][c];
        if (a.bias.data) {
            idx[nd - 1] = n;
            x += load_value(a.bias, idx, nd);
        }
        for (int o = 0; o < gate; o++) x = apply(a, a.ops[o], x, idx, n);
        r.v[m][c] = x;
    }
    __syncthreads();
    const auto result = [&](int m, int c) {
        float x = r.v[m][c];
        if (gated) {
            const post_op_args_t &o = a.ops[gate];
            x = ref_gated<float>(o.alg, r.v[m][halves ? c : 2 * c], r.v[m][halves ? c + columns : 2 * c + 1],
                    o.alpha, o.beta);
            idx[nd - 2] = at.m0 + m;
            for (int p = gate + 1; p < a.post_ops; p++) x = apply(a, a.ops[p], x, idx, n0 + c);
        }
        return x;
    };
    const int block = a.dst.quantised ? int(a.dst.quant.block) : 1, blocks = columns / block;
    for (int i = threadIdx.x; i < tile_m * blocks; i += threads) {
        const int m = i / blocks, c = i % blocks * block;
        if (at.m0 + m >= a.M || n0 + c >= a.columns) continue;
        const int64_t rest = a.columns - n0 - c;
        const int count = int(rest < block ? rest : block);
        float x[tile_n];
        for (int j = 0; j < count; j++) x[j] = result(m, c + j);
        store_block(a, dst, at.m0 + m, n0 + c, count, x);
    }
}

// ---- the kernel ----

// Teams write one half of their tiles while the other half is read, so that one barrier per step suffices.
union tiles_t {
    source_tile_t src[2][teams];
    results_t out[teams];
};

// The products of a warp: 16 columns and all rows of the tile, over its team's share of K.
template <int bits, typename operand_t>
__device__ __forceinline__ void multiply(float (&acc)[n8_tiles][4], tiles_t &tiles, const matmul_args_t &a,
        const place_t &at, const matrix_view_t &src, const uint8_t *packed, int64_t column,
        const uint16_t *wei_table, const uint16_t *src_table) {
    using layout_t = n64_frame_t;
    const int lane = threadIdx.x % 32, team = threadIdx.x / team_threads;
    const packed_shape_t &s = a.wei.shape;
    const bool in_order = a.wei.layout_id == n64_i4_t::id;
    const bool active = column < a.N;
    const int slot = int(column % tile_n / 16), thread = slot * 32 + lane, pair = slot * 8 + lane / 4;

    const int block = int(s.block < tile_k ? s.block : tile_k);
    const int src_block = block_of_source(a);
    const int steps_per_sum = (block < src_block ? block : src_block) / 16; // k16 steps between scales
    const bool u8_zp = a.wei.quant.zp == zero_point_kind_t::u8, float_zp = s.zp_bytes != 0 && !u8_zp;
    const uint32_t ones2 = operand_t::pair_t::of(1), ones[4] = {ones2, ones2, ones2, ones2};

    float sum[n8_tiles][4], x_sum[n8_tiles][4];
    // Blocks and tiles are powers of two, and tiles of a panel are consecutive, so the loop over K needs no
    // division.
    const int tile_shift = __ffsll(layout_t::tile_rows(s)) - 1, block_shift = __ffsll(s.block) - 1;
    const int tile_mask = (1 << tile_shift) - 1, blocks_of_tile = 1 << (tile_shift - block_shift);
    const int64_t tile_bytes = layout_t::tile_bytes(s, layout_t::tile_rows(s)),
                  header_bytes = layout_t::header_bytes(s);
    const uint8_t *panel = packed + layout_t::tile(s, 0, column);
    const int steps_mask = steps_per_sum - 1, src_shift = __ffs(src_block) - 1;
    const int rows = int(a.M - at.m0 < tile_m ? (a.M - at.m0 + 7) / 8 * 8 : tile_m);
    const auto load_words = [&](int64_t k0) {
        const uint8_t *codes = panel + (k0 >> tile_shift) * tile_bytes + header_bytes
                               + (int(k0) & tile_mask) * (tile_n * bits / 8);
        words_t<bits> w;
        w.load(codes, thread, a.K - k0 > 32);
        return w;
    };
    words_t<bits> next;
    if (active && team * tile_k < a.K) next = load_words(team * tile_k);
    __syncthreads(); // the tables have been written
    int half = 0;
    for (int64_t first_k = 0; first_k < a.K; first_k += teams * tile_k, half ^= 1) {
        const int64_t k0 = first_k + team * tile_k;
        source_tile_t &source = tiles.src[half][team];
        words_t<bits> words = next;
        if (active && k0 + teams * tile_k < a.K) next = load_words(k0 + teams * tile_k);
        if (k0 < a.K) load_source(source, a, src, at, src_table, k0, rows);
        __syncthreads();
        if (!active || k0 >= a.K) continue;
        const uint8_t *tile = panel + (k0 >> tile_shift) * tile_bytes;
        const uint8_t *zero_points = tile + blocks_of_tile * layout_t::columns * s.scale_bytes;
#pragma unroll 1
        for (int step = 0; step < k16_steps; step++) {
            if ((step & steps_mask) == 0)
                for (int t = 0; t < n8_tiles; t++)
                    for (int i = 0; i < 4; i++) sum[t][i] = x_sum[t][i] = 0;
            const int b = ((int(k0) & tile_mask) + step * 16) >> block_shift;
            const int place = (pair * blocks_of_tile + b) * 2; // of columns c and c + 8
            uint32_t fragment[4];
            words.put_in_order(in_order);
#pragma unroll
            for (int r = 0; r < 4; r++)
                fragment[r] = wei_table[words.code(r, 0)] | uint32_t(wei_table[words.code(r, 1)]) << 16;
            words.advance(step);
            if (u8_zp) { // exact in both types
                const uint8_t *of = zero_points + place;
                for (int r = 0; r < 4; r++)
                    fragment[r] = operand_t::pair_t::fma(
                            ones2, fragment[r], operand_t::pair_t::of(float(-int(of[r % 2]))));
            }
#pragma unroll
            for (int t = 0; t < n8_tiles; t++) {
                if (t * 8 >= rows) break;
                const auto *row = reinterpret_cast<const uint32_t *>(source.values[t * 8 + lane / 4])
                                  + step * 8 + lane % 4;
                operand_t::mma(sum[t], fragment, row[0], row[4]);
                if (float_zp) operand_t::mma(x_sum[t], ones, row[0], row[4]);
            }
            if (((step + 1) & steps_mask) != 0) continue;

            float scale[2], zero[2] = {0, 0};
            for (int h = 0; h < 2; h++) {
                scale[h] = scale_value(a.wei.quant.scale_dt, tile + (place + h) * s.scale_bytes);
                if (float_zp)
                    zero[h] = scale_value(a.wei.quant.zp_dt, zero_points + (place + h) * s.zp_bytes);
            }
#pragma unroll
            for (int t = 0; t < n8_tiles; t++) {
                if (t * 8 >= rows) break;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int h = i / 2;
                    // (code - zp) scale, or (code - 8) scale + zero. Such a zero is multiplied by sums of x.
                    const float v = sum[t][i];
                    if (!a.src.quantised) {
                        acc[t][i] += v * scale[h];
                        if (float_zp) acc[t][i] += x_sum[t][i] * zero[h];
                        continue;
                    }
                    // Two scales may leave the range of f32 one after the other although their product does
                    // not.
                    const double x_scale =
                            source.scales[t * 8 + lane % 4 * 2 + i % 2][step * 16 >> src_shift];
                    double d = double(v) * double(scale[h]);
                    if (float_zp) d += double(x_sum[t][i]) * double(zero[h]);
                    acc[t][i] += float(d * x_scale);
                }
            }
        }
    }
}

// One kernel for all formats, because the code before and after the products is large and the same.
__global__ void __launch_bounds__(threads) mma_matmul(const __grid_constant__ matmul_args_t a) {
    __shared__ uint16_t wei_table[256], src_table[256];
    __shared__ tiles_t tiles;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, team = threadIdx.x / team_threads;
    const int bits = a.wei.shape.bits;
    const bool f16 = a.src.dt == mxdnn_f16;
    int gate = 0;
    while (gate < a.post_ops && a.ops[gate].kind != mxdnn_gated) gate++;
    const bool gated = gate < a.post_ops, halves = gated && a.ops[gate].halves;

    const auto encoded = [&](float v) { return uint16_t(f16 ? f16_t::encode(v) : bf16_t::encode(v)); };
#pragma unroll 1
    for (int i = threadIdx.x; i < 256; i += threads) {
        if (i < 1 << bits) wei_table[i] = encoded(code_value(a.wei.dt, a.wei.quant, uint32_t(i)));
        if (a.src.quantised && i < 1 << a.src.elements.bits)
            src_table[i] = encoded(code_value(a.src.dt, a.src.quant, uint32_t(i)));
    }

    const int64_t column_tiles = halves ? div_up(a.N / 2, tile_n / 2) : div_up(a.N, tile_n),
                  m_tiles = div_up(a.M, tile_m);
    const int64_t column_tile = blockIdx.x % column_tiles, row_tile = blockIdx.x / column_tiles;
    place_t at = {};
    batch_index(row_tile / m_tiles, a.dst.ndims, a.dims, at.idx);
    at.m0 = row_tile % m_tiles * tile_m;
    const matrix_view_t src(a.src, at.idx), wei(a.wei, at.idx), dst(a.dst, at.idx);

    // The 16 columns of this warp. With halves, two warps have gates and two have ups.
    const int64_t first = column_tile * (halves ? tile_n / 2 : tile_n);
    const int64_t column = column_of(a, halves, first, warp * 16);
    float acc[n8_tiles][4] = {};
    const auto multiply_by = [&](auto b, auto operand) {
        multiply<decltype(b)::value, decltype(operand)>(
                acc, tiles, a, at, src, wei.packed_data(), column, wei_table, src_table);
    };
    const auto multiply_bits = [&](auto b) {
        if (f16)
            multiply_by(b, f16_operand_t());
        else
            multiply_by(b, bf16_operand_t());
    };
    switch (bits) {
    case 4: multiply_bits(std::integral_constant<int, 4>()); break;
    case 6: multiply_bits(std::integral_constant<int, 6>()); break;
    default: multiply_bits(std::integral_constant<int, 8>()); break;
    }

    const float global = wei.global() * (a.src.quantised ? src.global() : 1.f);
    __syncthreads();
    for (int t = 0; t < n8_tiles; t++)
        for (int i = 0; i < 4; i++)
            tiles.out[team].v[t * 8 + lane % 4 * 2 + i % 2][warp * 16 + lane / 4 + i / 2 * 8] = acc[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < tile_m * tile_n; i += threads) {
        float &v = tiles.out[0].v[i / tile_n][i % tile_n];
        for (int other = 1; other < teams; other++) v += tiles.out[other].v[i / tile_n][i % tile_n];
        v *= global;
    }
    __syncthreads();
    finish(tiles.out[0], a, dst, at, first, halves, gate);
}

cudaError_t launch(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const matmul_args_t *>(args);
    bool halves = false;
    for (int i = 0; i < a.post_ops; i++) halves = halves || (a.ops[i].kind == mxdnn_gated && a.ops[i].halves);
    const int64_t columns = halves ? div_up(a.N / 2, tile_n / 2) : div_up(a.N, tile_n);
    const unsigned grid = unsigned(columns * div_up(a.M, tile_m) * (a.rows / a.M));
    mma_matmul<<<grid, threads, 0, stream_of(at)>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t sm80_table_gemm_kernel = {
        sizeof(matmul_args_t), [](const void *) { return load_kernel(mma_matmul); }, launch};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
