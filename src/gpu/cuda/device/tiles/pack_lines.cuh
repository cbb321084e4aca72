// SPDX-License-Identifier: Apache-2.0
// Codes of lines along k to and from packed bytes without shared memory: four neighbouring lanes have 64
// bytes of a column and of the one eight further in 16 bytes each, and exchange what the layout wants of
// them.
#pragma once

#include "gpu/cuda/device/tiles/packed.cuh"
#include "gpu/cuda/device/tiles/quad.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// The codes that four lanes have of two columns at a time, 64 bytes of each, and the steps that these become.
// A lane has 16 bytes of each column.
template <int bits>
struct quad_t {
    static constexpr int width = bits == 4 ? 4 : 8, rows = 512 / width;
    using step = step_t<bits>;
    static constexpr int steps = rows / step::rows, fragments = rows / 16;

    __device__ static __forceinline__ void pack(step (&to)[steps], const uint4 (&line)[2]) {
        uint32_t w[2][4] = {
                {line[0].x, line[0].y, line[0].z, line[0].w}, {line[1].x, line[1].y, line[1].z, line[1].w}};
        if constexpr (bits == 4) {
            // Byte q of all words: rows 2q and 2q + 1, 2q + 8 and 2q + 9 of fragments 2i and 2i + 1 of lane
            // i.
#pragma unroll
            for (int i = 0; i < 4; i++) {
                for (int c = 0; c < 2; c++) w[c][i] = transpose_bytes_of_quad(w[c][i]);
                exchange_nibbles(w[0][i], w[1][i]);
            }
            uint32_t even[4] = {w[0][0], w[0][1], w[1][0], w[1][1]},
                     odd[4] = {w[0][2], w[0][3], w[1][2], w[1][3]};
            transpose<8>(even);
            transpose<8>(odd);
#pragma unroll
            for (int i = 0; i < 2; i++)
                to[i].pack_registers({even[2 * i], odd[2 * i], even[2 * i + 1], odd[2 * i + 1]});
        } else {
            uint32_t f[2][4];
#pragma unroll
            for (int c = 0; c < 2; c++) {
                f[c][0] = __byte_perm(w[c][0], w[c][2], 0x5140);
                f[c][1] = __byte_perm(w[c][0], w[c][2], 0x7362);
                f[c][2] = __byte_perm(w[c][1], w[c][3], 0x5140);
                f[c][3] = __byte_perm(w[c][1], w[c][3], 0x7362);
                transpose_words_of_quad(f[c]);
            }
#pragma unroll
            for (int i = 0; i < steps; i++)
                to[i].pack(f[0] + i * step::fragments, f[1] + i * step::fragments);
        }
    }
    __device__ static __forceinline__ void unpack(uint4 (&line)[2], const step (&from)[steps]) {
        uint32_t w[2][4];
        if constexpr (bits == 4) {
            uint32_t even[4], odd[4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint32_t r[4];
                from[i].unpack_registers(r);
                even[2 * i] = r[0], odd[2 * i] = r[1], even[2 * i + 1] = r[2], odd[2 * i + 1] = r[3];
            }
            transpose<8>(even);
            transpose<8>(odd);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                w[0][i] = i < 2 ? even[i] : odd[i - 2], w[1][i] = i < 2 ? even[i + 2] : odd[i];
                exchange_nibbles(w[0][i], w[1][i]);
                for (int c = 0; c < 2; c++) w[c][i] = transpose_bytes_of_quad(w[c][i]);
            }
        } else {
            uint32_t f[2][4];
#pragma unroll
            for (int i = 0; i < steps; i++)
                from[i].unpack(f[0] + i * step::fragments, f[1] + i * step::fragments);
#pragma unroll
            for (int c = 0; c < 2; c++) {
                transpose_words_of_quad(f[c]);
                w[c][0] = __byte_perm(f[c][0], f[c][1], 0x6420);
                w[c][1] = __byte_perm(f[c][2], f[c][3], 0x6420);
                w[c][2] = __byte_perm(f[c][0], f[c][1], 0x7531);
                w[c][3] = __byte_perm(f[c][2], f[c][3], 0x7531);
            }
        }
        for (int c = 0; c < 2; c++) line[c] = make_uint4(w[c][0], w[c][1], w[c][2], w[c][3]);
    }
};

// ---- scales of a byte ----

// Four neighbouring lanes have four words of packed scales, each for two blocks of a pair of columns.
enum class scales_kind_t { none, along_n, along_k };

__host__ __device__ __forceinline__ scales_kind_t scales_kind(const tile_args_t &a, const tile_params_t &s) {
    const uint64_t all = reinterpret_cast<uintptr_t>(s.data) | uint64_t(s.batch_step);
    if (a.scale_bytes != 1 || a.zp_bytes || a.block_shift < 4 || a.block_shift > 5)
        return scales_kind_t::none;
    if ((s.swizzle_cols || s.k_step == 1) && (all | uint64_t(s.n_step)) % 2 == 0)
        return scales_kind_t::along_k;
    return s.n_step == 1 && (all | uint64_t(s.k_step)) % 4 == 0 ? scales_kind_t::along_n
                                                                : scales_kind_t::none;
}

// The scales of a warp's 16 columns and `tiles` n64 tiles of a whole tile, up to two packed words per lane.
// They are loaded before the codes, so that they arrive with these, and stored after them.
struct scale_words_t {
    static constexpr int most = 2; // blocks have at least 16 rows

    const tile_args_t &a;
    const tile_side_t &packed;
    const tile_params_t &plain;
    const tile_place_t &at;
    int tiles;
    bool along_k;
    uint32_t w[most];

    __device__ scale_words_t(const tile_args_t &args, const tile_side_t &packed_side,
            const tile_side_t &plain_side, const tile_place_t &place, int tiles_along_k)
        : a(args), packed(packed_side), plain(plain_side.scales), at(place), tiles(tiles_along_k),
          along_k(scales_kind(args, plain_side.scales) == scales_kind_t::along_k) {}

    __device__ __forceinline__ void load_plain() {
        each([](bool is, uint32_t &w, uint32_t *, const uint8_t *p, const uint8_t *p8) {
            w = 0;
            if (!is) return;
            if (p8)
                w = *reinterpret_cast<const uint16_t *>(p) | *reinterpret_cast<const uint16_t *>(p8) << 16;
            else
                w = *reinterpret_cast<const uint32_t *>(p);
        });
    }
    __device__ __forceinline__ void store_packed() {
        each([](bool is, uint32_t &w, uint32_t *word, const uint8_t *, const uint8_t *p8) {
            w = p8 ? __byte_perm(w, 0, 0x3120) : transpose_bytes_of_quad(w);
            if (is) *word = w;
        });
    }
    __device__ __forceinline__ void load_packed() {
        each([](bool is, uint32_t &w, const uint32_t *word, uint8_t *, uint8_t *) { w = is ? *word : 0; });
    }
    __device__ __forceinline__ void store_plain() {
        each([](bool is, uint32_t &w, uint32_t *, uint8_t *p, uint8_t *p8) {
            w = p8 ? __byte_perm(w, 0, 0x3120) : transpose_bytes_of_quad(w);
            if (!is) return;
            if (!p8) {
                *reinterpret_cast<uint32_t *>(p) = w;
                return;
            }
            *reinterpret_cast<uint16_t *>(p) = uint16_t(w);
            *reinterpret_cast<uint16_t *>(p8) = uint16_t(w >> 16);
        });
    }

private:
    // Calls fn(whether there is one, the word, its packed address, the address of its plain bytes, and that
    // of those of the column eight further; null if all are in one word along n).
    template <typename F>
    __device__ __forceinline__ void each(F &&fn) {
        const int lane = threadIdx.x % 32, pair = lane % 8, first_column = threadIdx.x / 32 * 16;
        const int words_shift = packed.tile_shift - a.block_shift - 1; // of a pair of columns in an n64 tile
        uint8_t *p = plain.data + at.matrix * plain.batch_step, *q = packed_tile(packed, at, at.k);
        const int64_t first_block = at.k >> a.block_shift;
        const int words = tiles << words_shift;
#pragma unroll
        for (int j = 0; j < most; j++) {
            if (j * 4 >= words) break;
            const int i = j * 4 + lane / 8, tile = i >> words_shift, of_tile = i & ((1 << words_shift) - 1);
            auto *word = reinterpret_cast<uint32_t *>(
                    q + tile * packed.tile_bytes + ((first_column / 2 + pair) << words_shift | of_tile) * 4);
            if (along_k) {
                const int64_t n = at.n + first_column + pair, k = first_block + 2 * i;
                const auto of = [&](int64_t column) {
                    return plain.swizzle_cols ? swizzle_128x4::offset(column, k, plain.swizzle_cols)
                                              : column * plain.n_step + k;
                };
                fn(i < words, w[j], word, p + of(n), p + of(n + 8));
            } else {
                const int column = first_column + lane / 4 % 2 * 4 + lane % 2 * 8,
                          block = 2 * i + lane / 2 % 2;
                fn(i < words, w[j], word, p + (first_block + block) * plain.k_step + at.n + column,
                        static_cast<uint8_t *>(nullptr));
            }
        }
    }
};

// Whether the whole tiles of a problem can take this route.
__host__ __device__ __forceinline__ bool packs_lines(const tile_args_t &a) {
    const tile_side_t &plain = a.src.packed ? a.dst : a.src, &packed = a.src.packed ? a.src : a.dst;
    return packed.packed && !plain.packed && plain.lines_along_k && plain.aligned && packed.tile_shift == 6
           && packed.nibbles != nibbles_t::f4 && scales_kind(a, plain.scales) != scales_kind_t::none;
}

// 4-bit codes are read as data that is read once, so the compiler starts all loads of a tile first.
template <int bits>
__device__ __forceinline__ uint4 load_line(const uint8_t *p) {
    const auto *line = reinterpret_cast<const uint4 *>(p);
    return bits == 4 ? __ldcs(line) : *line;
}

// A whole tile.
template <int bits>
__device__ __forceinline__ void pack_lines(const tile_args_t &a, const tile_place_t &at) {
    using quad = quad_t<bits>;
    constexpr int quads = tile_rows(quad::width) / quad::rows, quad_bytes = 64;
    const lane_place_t l = lane_place();
    const uint8_t *p = a.src.data + at.matrix * a.src.batch_step + (at.n + l.column) * a.src.line_step
                       + at.k * quad::width / 8 + l.q * 16;
    scale_words_t scales(a, a.dst, a.src, at, tile_rows(quad::width) / 64);
    scales.load_plain();
    uint4 line[quads][2];
#pragma unroll
    for (int i = 0; i < quads; i++)
#pragma unroll
        for (int c = 0; c < 2; c++)
            line[i][c] = load_line<bits>(p + c * 8 * a.src.line_step + i * quad_bytes);
#pragma unroll
    for (int i = 0; i < quads; i++) {
        typename quad::step step[quad::steps];
        quad::pack(step, line[i]);
#pragma unroll
        for (int j = 0; j < quad::steps; j++)
            step[j].store(packed_step<typename quad::step>(a.dst, at, i * quad::rows + j * quad::step::rows));
    }
    scales.store_packed();
}
template <int bits>
__device__ __forceinline__ void unpack_lines(const tile_args_t &a, const tile_place_t &at) {
    using quad = quad_t<bits>;
    constexpr int quads = tile_rows(quad::width) / quad::rows, quad_bytes = 64;
    const lane_place_t l = lane_place();
    scale_words_t scales(a, a.src, a.dst, at, tile_rows(quad::width) / 64);
    scales.load_packed();
    typename quad::step step[quads][quad::steps];
#pragma unroll
    for (int i = 0; i < quads * quad::steps; i++)
        step[i / quad::steps][i % quad::steps].load(
                packed_step<typename quad::step>(a.src, at, i * quad::step::rows));
    uint8_t *p = a.dst.data + at.matrix * a.dst.batch_step + (at.n + l.column) * a.dst.line_step
                 + at.k * quad::width / 8 + l.q * 16;
#pragma unroll
    for (int i = 0; i < quads; i++) {
        uint4 line[2];
        quad::unpack(line, step[i]);
#pragma unroll
        for (int c = 0; c < 2; c++)
            *reinterpret_cast<uint4 *>(p + c * 8 * a.dst.line_step + i * quad_bytes) = line[c];
    }
    scales.store_plain();
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
