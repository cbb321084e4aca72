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

#include "gpu/cuda/device/mma/decode_f4_fp8.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Facts about a panel of a stage. Word l of its scales has columns c and c + 8.
struct fp8_scales_t {
    uint4 factors[32];   // for each word: the factors of the codes of the four blocks, as pairs
    float2 largest[32];  // for each word: the factors of the sums of a stage
    uint32_t one_by_one; // whether the blocks have to be multiplied one by one
    uint32_t unused[3];
};

struct fp8_unit_t {
    static constexpr int blocks = 4; // of 32 rows, in two tiles
    static constexpr int tile_bytes = mxfp4_t::max_header + 64 * 64 / 2, tiles = 2;
    // 2^(byte - 127 - highest), also below the normal range.
    __device__ static float scale(uint32_t byte, int highest) {
        const int e = int(byte) - highest;
        return __uint_as_float(byte == 255 ? 0x7FC00000u : e > 0 ? uint32_t(e) << 23 : 0x00400000u >> -e);
    }
    // The scales of columns c and c + 8 of block j in the halves of a word, from the words of two tiles.
    __device__ static __forceinline__ uint32_t block_scale(const uint32_t (&words)[tiles], int j) {
        return __byte_perm(words[j / 2], 0, j % 2 ? 0x4342 : 0x4140);
    }

    // A warp computes the facts about the panel at `panel`, with one tile or two.
    __device__ static void look_at_scales(fp8_scales_t &to, uint32_t panel, int lane, bool second) {
        const ptx::shared_reader_t header{panel + lane * 4};
        uint32_t words[tiles] = {header.read_4(), 0};
        words[1] = second ? header.read_4(tile_bytes) : words[0];
        uint32_t scales[blocks];
#pragma unroll
        for (int j = 0; j < blocks; j++) scales[j] = block_scale(words, j);
        const uint32_t largest = __vmaxu2(__vmaxu2(scales[0], scales[1]), __vmaxu2(scales[2], scales[3])),
                       least = __vminu2(__vminu2(scales[0], scales[1]), __vminu2(scales[2], scales[3]));
        // Bit 15 of a half: the scales are too far apart, or above the byte whose largest code f32 can
        // represent.
        const uint32_t apart = largest - least + (0x7FFFu - (fp8_highest - fp8_lowest)) * 0x00010001u,
                       beyond = largest + (0x7FFFu - 252) * 0x00010001u;
        to.factors[lane] = make_uint4(mxfp4_as_fp8_t::factors(scales[0], largest),
                mxfp4_as_fp8_t::factors(scales[1], largest), mxfp4_as_fp8_t::factors(scales[2], largest),
                mxfp4_as_fp8_t::factors(scales[3], largest));
        to.largest[lane] =
                make_float2(scale(largest & 0xFFFF, fp8_highest), scale(largest >> 16, fp8_highest));
        const bool any = __any_sync(~0u, ((apart | beyond) & 0x80008000u) != 0);
        if (lane == 0) to.one_by_one = any;
    }

    // The rows of a unit are multiplied in parts, so that few registers hold sums of FP8.
    static constexpr int part_rows = 80;
    using part_t = float[part_rows / 2];
    template <int rows>
    static constexpr int parts = (rows + part_rows - 1) / part_rows;
    // The rows of part i; all are multiples of 16.
    template <int rows>
    static constexpr int rows_of(int i) {
        return (rows / 16 + parts<rows> - 1 - i) / parts<rows> * 16;
    }
    template <int rows>
    static constexpr int first_of(int i) {
        return i == 0 ? 0 : first_of<rows>(i - 1) + rows_of<rows>(i - 1);
    }
    using unit_t = uint32_t[blocks][4];

    template <int rows>
    __device__ static __forceinline__ void add(float *sum, part_t &part, float2 f) {
#pragma unroll
        for (int i = 0; i < rows / 2; i++) {
            asm volatile("" : "+f"(part[i])); // not before the wait
            sum[i] = fmaf(part[i], i % 4 < 2 ? f.x : f.y, sum[i]);
        }
    }

    __device__ static __forceinline__ void decode(
            unit_t &a, const fp8_scales_t &scales, uint32_t panel, int thread) {
        const ptx::shared_reader_t words{panel + mxfp4_t::max_header + thread * 16};
        const uint4 codes[tiles] = {words.read_16(), words.read_16(tile_bytes)},
                    factors = scales.factors[thread / 4];
        mxfp4_as_fp8_t::decode_e4m3(a[0], codes[0].x, codes[0].y, factors.x);
        mxfp4_as_fp8_t::decode_e4m3(a[1], codes[0].z, codes[0].w, factors.y);
        mxfp4_as_fp8_t::decode_e4m3(a[2], codes[1].x, codes[1].y, factors.z);
        mxfp4_as_fp8_t::decode_e4m3(a[3], codes[1].z, codes[1].w, factors.w);
    }

    // One part after the other.
    template <int rows, int i = 0>
    __device__ static __forceinline__ void multiply(
            float *sum, part_t &part, const unit_t &a, uint32_t b, float2 f) {
        wgmma::fence();
#pragma unroll
        for (int j = 0; j < blocks; j++)
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
            mxfp4_as_fp8_t::decode_e5m2(a, codes.x, codes.y, scale_pair);
            multiply_block<rows>(sum, part, a, b + j * wgmma::b_step,
                    make_float2(scale(scale_pair & 0xFFFF, 0), scale(scale_pair >> 16, 0)));
        }
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
