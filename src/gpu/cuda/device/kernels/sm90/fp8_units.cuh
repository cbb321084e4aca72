// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8: MXFP4 weights and rows of f8_e4m3, in stages of 128 rows of K.
//
// The four blocks of a column in a stage are taken relative to the one with the largest scale: exactly, where
// f8_e4m3 has them all. The tensor cores keep sums of FP8 products to about 14 bits; those of a stage are
// added in f32, times that largest scale. Where a panel has a column whose blocks lie further apart, or one
// with weights beyond f32, the blocks of its stage are multiplied and added one by one, as f8_e5m2 under
// their own scales, and are exact as well.
//
// A warp of the producer looks at the scales of a stage when it has been copied, so that consumers find what
// they multiply by, and agree on what they do.
#pragma once

#include <cstddef>

#include "gpu/cuda/device/mma/decode_f4_fp8.cuh"
#include "gpu/cuda/device/mma/decode_f4_lookup.cuh"
#include "gpu/cuda/device/mma/decode_f4_products.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// 2^(byte - 127 - highest), also below the normal range.
__device__ inline float fp8_scale(uint32_t byte, int highest) {
    const int e = int(byte) - highest;
    return __uint_as_float(byte == 255 ? 0x7FC00000u : e > 0 ? uint32_t(e) << 23 : 0x00400000u >> -e);
}

// The scales of a panel of a stage: of columns c and c + 8 in the halves of a word, for each of four blocks.
struct fp8_block_scales_t {
    static constexpr int blocks = 4; // of 32 rows, in two tiles
    static constexpr int tile_bytes = mxfp4_t::max_header + 64 * 64 / 2, tiles = 2;
    uint32_t scales[blocks], largest;

    fp8_block_scales_t() = default;
    // Word l of a tile's scales has columns c and c + 8.
    __device__ fp8_block_scales_t(uint32_t panel, int lane, bool second) {
        const ptx::shared_reader_t header{panel + lane * 4};
        uint32_t words[tiles] = {header.read_4(), 0};
        words[1] = second ? header.read_4(tile_bytes) : words[0];
#pragma unroll
        for (int j = 0; j < blocks; j++) scales[j] = __byte_perm(words[j / 2], 0, j % 2 ? 0x4342 : 0x4140);
        largest = __vmaxu2(__vmaxu2(scales[0], scales[1]), __vmaxu2(scales[2], scales[3]));
    }
    // Whether they are too far apart, or above the byte whose largest code f32 can represent.
    __device__ bool special() const {
        const uint32_t least = __vminu2(__vminu2(scales[0], scales[1]), __vminu2(scales[2], scales[3]));
        const uint32_t apart = largest - least + (0x7FFFu - (fp8_highest - fp8_lowest)) * 0x00010001u,
                       beyond = largest + (0x7FFFu - 252) * 0x00010001u;
        return ((apart | beyond) & 0x80008000u) != 0;
    }
    // What sums are multiplied by if the largest block is e2m1 * 2^highest.
    __device__ float2 factors(int highest) const {
        return make_float2(fp8_scale(largest & 0xFFFF, highest), fp8_scale(largest >> 16, highest));
    }
};

// A stage, among those of an item.
struct fp8_stage_t {
    bool has_second_tile, is_first, is_last;
};

// A unit: 64 columns of the weights and 128 rows of K. `codes_t` says what consumers need to know of its
// scales (the facts about it), and how they decode it. The largest block is e2m1 * 2^highest. is_e5m2: it
// becomes f8_e5m2, not f8_e4m3. apart: see begin().
struct fp8_unit_base_t {
    static constexpr int blocks = fp8_block_scales_t::blocks, tile_bytes = fp8_block_scales_t::tile_bytes,
                         tiles = fp8_block_scales_t::tiles, highest = fp8_highest;
    static constexpr bool is_e5m2 = false;
    using unit_t = uint32_t[blocks][4];
};

// Blocks meet a factor when they are decoded: decoder_t has factors() and decode_fp8(). facts_t has the
// factors of the four blocks for each word, as pairs.
template <typename decoder_t, typename facts_t_>
struct fp8_factors_t : fp8_unit_base_t {
    using facts_t = facts_t_;
    __device__ static __forceinline__ void note(facts_t &to, const fp8_block_scales_t &s, int lane) {
        to.factors[lane] = make_uint4(decoder_t::factors(s.scales[0], s.largest),
                decoder_t::factors(s.scales[1], s.largest), decoder_t::factors(s.scales[2], s.largest),
                decoder_t::factors(s.scales[3], s.largest));
    }
    struct raw_t {
        uint4 codes[tiles], factors;
    };
    // facts: the shared address.
    __device__ static __forceinline__ raw_t read(uint32_t facts, uint32_t, uint32_t panel, int thread) {
        const ptx::shared_reader_t words{panel + mxfp4_t::max_header + thread * 16},
                factors{facts + uint32_t(offsetof(facts_t, factors)) + thread / 4 * 16};
        return {{words.read_16(), words.read_16(tile_bytes)}, factors.read_16()};
    }
    template <int j>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &raw) {
        const uint4 c = raw.codes[j / 2];
        decoder_t::decode_fp8(a, j % 2 ? c.z : c.x, j % 2 ? c.w : c.y,
                j == 0   ? raw.factors.x
                : j == 1 ? raw.factors.y
                : j == 2 ? raw.factors.z
                         : raw.factors.w);
    }
};

// The layout n64_b4.
struct fp8_b4_facts_t {
    uint4 factors[32];
    float2 largest[32];  // for each word: the factors of the sums of a stage
    uint32_t one_by_one; // whether the blocks have to be multiplied one by one
    uint32_t unused[3];
    __device__ void set_one_by_one(int lane, bool v) {
        if (lane == 0) one_by_one = v;
    }
    __device__ void is_unused() { one_by_one = 0; }
    __device__ static __forceinline__ bool is_one_by_one(uint32_t facts) {
        return ptx::shared_reader_t{facts + uint32_t(offsetof(fp8_b4_facts_t, one_by_one))}.read_4();
    }
};
struct fp8_b4_t : fp8_factors_t<mxfp4_as_fp8_t, fp8_b4_facts_t> {
    static constexpr bool apart = false;
    __device__ static __forceinline__ void decode_e5m2(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t scales) {
        mxfp4_as_fp8_t::decode_e5m2(a, first, second, scales);
    }
};

// The layout n64_f4. A negative factor of sums says that blocks have to be multiplied one by one: with a word
// of its own for that, a stage of 96 rows would take more shared memory, and the ring had one stage less.
struct fp8_products_facts_t {
    uint4 factors[32];
    float2 largest[32];
    __device__ void set_one_by_one(int lane, bool v) {
        if (lane == 0 && v) largest[0].x = -1.f;
    }
    __device__ void is_unused() { largest[0].x = 0.f; }
    __device__ static __forceinline__ bool is_one_by_one(uint32_t facts) {
        return int(ptx::shared_reader_t{facts + uint32_t(offsetof(fp8_products_facts_t, largest))}.read_4())
               < 0;
    }
};
struct fp8_f4_products_t : fp8_factors_t<f4_by_products_t, fp8_products_facts_t> {
    static constexpr int highest = f4_by_products_t::highest;
    static constexpr bool is_e5m2 = true, apart = true;
    __device__ static __forceinline__ void decode_e5m2(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t scales) {
        f4_lookup_t::decode_e5m2(a, first, second, scales);
    }
};

// The same by tables.
struct fp8_f4_tables_t : fp8_unit_base_t {
    static constexpr bool apart = true;
    struct facts_t {
        uint2 places[32]; // for each word: a byte for each block and column, where its table is
        float2 largest[32];
        uint32_t one_by_one;
        uint32_t unused[3];
        __device__ void set_one_by_one(int lane, bool v) {
            if (lane == 0) one_by_one = v;
        }
        __device__ void is_unused() { one_by_one = 0; }
        __device__ static __forceinline__ bool is_one_by_one(uint32_t facts) {
            return ptx::shared_reader_t{facts + uint32_t(offsetof(facts_t, one_by_one))}.read_4();
        }
    };
    __device__ static __forceinline__ void note(facts_t &to, const fp8_block_scales_t &s, int lane) {
        uint32_t at[blocks];
#pragma unroll
        for (int j = 0; j < blocks; j++)
            at[j] = ((s.largest - s.scales[j]) & 0x000F000Fu) * uint32_t(sizeof(uint2));
        to.places[lane] = make_uint2(__byte_perm(at[0], at[1], 0x6420), __byte_perm(at[2], at[3], 0x6420));
    }
    struct raw_t {
        uint4 codes[tiles];
        uint2 places;
        uint32_t all;
    };
    __device__ static __forceinline__ raw_t read(uint32_t facts, uint32_t all, uint32_t panel, int thread) {
        const ptx::shared_reader_t words{panel + mxfp4_t::max_header + thread * 16},
                places{facts + uint32_t(offsetof(facts_t, places)) + thread / 4 * 8};
        return {{words.read_16(), words.read_16(tile_bytes)}, places.read_8(), all};
    }
    template <int j>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &raw) {
        const uint4 c = raw.codes[j / 2];
        const uint32_t places = (j / 2 ? raw.places.y : raw.places.x) >> j % 2 * 16;
        const ptx::shared_reader_t tables{raw.all};
        f4_lookup_t::decode(a, j % 2 ? c.z : c.x, j % 2 ? c.w : c.y, tables.read_8(places & 0xFF),
                tables.read_8(places >> 8 & 0xFF));
    }
    __device__ static __forceinline__ void decode_e5m2(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t scales) {
        f4_lookup_t::decode_e5m2(a, first, second, scales);
    }
};

// most_rows: the rows that are multiplied at a time, at most.
template <typename codes_t, int most_rows>
struct fp8_unit_t : codes_t {
    using codes_t::blocks, codes_t::tile_bytes;
    using typename codes_t::facts_t;
    using typename codes_t::unit_t;

    struct memory_t {}; // nothing is remembered from stage to stage
    // A warp computes the facts about `count` panels, from `first` of `panels` on.
    template <int count, typename facts_of_t>
    __device__ static __forceinline__ void look_at_scales(const facts_of_t &facts_of,
            const uint32_t (&panel)[count], int first, int panels, int lane, const fp8_stage_t &stage,
            memory_t &) {
        fp8_block_scales_t s[count];
#pragma unroll
        for (int p = 0; p < count; p++) s[p] = fp8_block_scales_t(panel[p], lane, stage.has_second_tile);
#pragma unroll
        for (int p = 0; p < count; p++) {
            facts_t &to = facts_of(panel[p]);
            codes_t::note(to, s[p], lane);
            to.largest[lane] = s[p].factors(codes_t::highest);
            to.set_one_by_one(lane, __any_sync(~0u, s[p].special()));
        }
        if (lane == 0)
            for (int p = 0; p < count; p++)
                if (first + p >= panels) facts_of(panel[p]).is_unused();
    }

    // ptxas serialises products (C7511) unless, for three consumers, sums begin with a value, and code for so
    // many rows is not shared with that for others; and unless, for pairs of CTAs, neither is said.
    template <size_t n>
    __device__ static __forceinline__ void begin(float (&part)[n]) {
        if constexpr (codes_t::apart)
            for (size_t i = 0; i < n; i++) part[i] = 0.f;
    }
    template <int rows>
    __device__ static __forceinline__ void keep_apart() {
        if constexpr (codes_t::apart) asm volatile("// %0 rows" ::"n"(rows));
    }

    // The rows of a unit are multiplied in parts, so that few registers hold sums of FP8.
    static constexpr int part_rows = most_rows;
    using part_t = float[part_rows / 2];
    template <int rows>
    static constexpr int parts = (rows + part_rows - 1) / part_rows;
    template <int rows>
    static constexpr int rows_of(int i) { // of part i
        return (rows / 8 + parts<rows> - 1 - i) / parts<rows> * 8;
    }
    template <int rows>
    static constexpr int first_of(int i) {
        return i == 0 ? 0 : first_of<rows>(i - 1) + rows_of<rows>(i - 1);
    }

    template <int rows>
    __device__ static __forceinline__ void add(float *sum, part_t &part, float2 f) {
#pragma unroll
        for (int i = 0; i < rows / 2; i++) {
            asm volatile("" : "+f"(part[i])); // not before the wait
            sum[i] = fmaf(part[i], i % 4 < 2 ? f.x : f.y, sum[i]);
        }
    }

    template <int j = 0>
    __device__ static __forceinline__ void decode_all(unit_t &a, const typename codes_t::raw_t &raw) {
        codes_t::template decode<j>(a[j], raw);
        if constexpr (j + 1 < blocks) decode_all<j + 1>(a, raw);
    }
    template <int rows>
    __device__ static __forceinline__ void decode_and_multiply_all(float *sum, part_t &part, unit_t &a,
            uint32_t facts, uint32_t all, uint32_t panel, uint32_t b, int thread) {
        const typename codes_t::raw_t raw = codes_t::read(facts, all, panel, thread);
        const uint2 largest =
                ptx::shared_reader_t{facts + uint32_t(offsetof(facts_t, largest)) + thread / 4 * 8}.read_8();
        const float2 f = make_float2(__uint_as_float(largest.x), __uint_as_float(largest.y));
        decode_all(a, raw);
        multiply<rows>(sum, part, a, b, f);
    }

    // One part after the other.
    template <int rows, int i = 0>
    __device__ static __forceinline__ void multiply(
            float *sum, part_t &part, const unit_t &a, uint32_t b, float2 f) {
        wgmma::fence();
#pragma unroll
        for (int j = 0; j < blocks; j++)
            if constexpr (codes_t::is_e5m2)
                wgmma::mma_e5m2<rows_of<rows>(i)>(
                        part, a[j], b + first_of<rows>(i) * (128 / 16) + j * wgmma::b_step, j != 0);
            else
                wgmma::mma_e4m3<rows_of<rows>(i)>(
                        part, a[j], b + first_of<rows>(i) * (128 / 16) + j * wgmma::b_step, j != 0);
        wgmma::commit();
        wgmma::wait<0>();
        add<rows_of<rows>(i)>(sum + first_of<rows>(i) / 2, part, f);
        if constexpr (i + 1 < parts<rows>) multiply<rows, i + 1>(sum, part, a, b, f);
    }

    // A block of all parts, one after the other.
    template <int rows, int i = 0>
    __device__ static __forceinline__ void multiply_block(
            float *sum, part_t &part, const uint32_t (&a)[4], uint32_t b, float2 f) {
        wgmma::fence();
        wgmma::mma_e5m2<rows_of<rows>(i)>(part, a, b + first_of<rows>(i) * (128 / 16), false);
        wgmma::commit();
        wgmma::wait<0>();
        add<rows_of<rows>(i)>(sum + first_of<rows>(i) / 2, part, f);
        if constexpr (i + 1 < parts<rows>) multiply_block<rows, i + 1>(sum, part, a, b, f);
    }
    template <int rows>
    __device__ static __forceinline__ void multiply_one_by_one(
            float *sum, part_t &part, uint32_t panel, uint32_t b, int thread, bool second) {
        const ptx::shared_reader_t words{panel + mxfp4_t::max_header + thread * 16};
#pragma unroll 1
        for (int j = 0; j < (second ? blocks : blocks / 2); j++) {
            const uint32_t tile = j / 2 * tile_bytes;
            const uint32_t word = ptx::shared_reader_t{panel + tile + thread / 4 * 4}.read_4(),
                           scale_pair = __byte_perm(word, 0, j % 2 ? 0x4342 : 0x4140);
            const uint2 codes = words.read_8(tile + j % 2 * 8);
            uint32_t a[4];
            codes_t::decode_e5m2(a, codes.x, codes.y, scale_pair);
            multiply_block<rows>(sum, part, a, b + j * wgmma::b_step,
                    make_float2(fp8_scale(scale_pair & 0xFFFF, 0), fp8_scale(scale_pair >> 16, 0)));
        }
    }
};

// The units of a format in blocks of so many rows; void: it is not multiplied in FP8.
template <typename format, int width>
struct fp8_units_of {
    using type = void;
};
template <int width>
struct fp8_units_of<mxfp4_as_fp8_t, width> {
    using type = fp8_unit_t<fp8_b4_t, 80>;
};
template <int width>
struct fp8_units_of<f4_by_products_t, width> {
    using type = fp8_unit_t<fp8_f4_products_t, (width > 96 ? 64 : 72)>;
};
template <int width>
struct fp8_units_of<f4_by_tables_t, width> {
    using type = fp8_unit_t<fp8_f4_tables_t, (width > 144 ? 64 : 72)>;
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
