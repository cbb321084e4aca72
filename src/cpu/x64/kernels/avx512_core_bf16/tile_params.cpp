// SPDX-License-Identifier: Apache-2.0
// Conversion of scales and zero points to f32.
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"

#include "common/formats/format_list.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

using Xbyak::Zmm;

namespace {

// The two upper bytes of the f32 of a code without its sign.
struct e4m3_table_t {
    uint8_t low[128], high[128];
    uint8_t index[4][64] = {}; // positions for block i of four: the upper bytes of dwords
    e4m3_table_t() {
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t bits = bits_of(f8_e4m3_t::decode(i));
            low[i] = uint8_t(bits >> 16);
            high[i] = uint8_t(bits >> 24);
        }
        for (int i = 0; i < 4; i++)
            for (int c = 0; c < panel_columns; c++) {
                index[i][c * 4 + 2] = uint8_t(i * panel_columns + c);
                index[i][c * 4 + 3] = uint8_t(64 + i * panel_columns + c);
            }
    }
};

} // namespace

void tile_params_t::prepare(data_type_t dt, const Xbyak::Reg64 &temp) {
    if (dt != mxdnn_f8_e4m3) return;
    j_.mov(temp, 0xccccccccccccccccull); // the upper half of every dword
    j_.kmovq(mask_, temp);
}

void tile_params_t::load_f32(data_type_t dt, const Zmm &d, const Xbyak::RegExp &src) {
    switch (dt) {
    case mxdnn_e8m0: {
        // As an exponent field, 1 to 254 are right. 0 has to become 2^-127, which is subnormal, and 255,
        // which would be Inf, NaN. There is a response for each class of number, four bits each. 0: the
        // previous contents; 1: the number; 3: NaN. Classes 2, 3, 5, 7: zero, one, Inf, positive.
        constexpr uint32_t responses = 0u << 2 * 4 | 1u << 3 * 4 | 3u << 5 * 4 | 1u << 7 * 4;
        constexpr uint32_t least = 0x00400000;
        const Zmm &t = t_[0];
        j_.vpmovzxbd(t, j_.ptr[src]);
        j_.vpslld(t, t, 23);
        j_.vmovdqa64(d, j_.constant(least));
        j_.vfixupimmps(d, t, j_.constant(responses), 0);
        break;
    }
    case mxdnn_bf16:
        j_.vpmovzxwd(d, j_.ptr[src]);
        j_.vpslld(d, d, 16);
        break;
    case mxdnn_f16: j_.vcvtph2ps(d, j_.ptr[src]); break;
    case mxdnn_u8:
        j_.vpmovzxbd(d, j_.ptr[src]);
        j_.vcvtdq2ps(d, d);
        break;
    default: j_.vmovups(d, j_.ptr[src]); break;
    }
}

void tile_params_t::to_f32(data_type_t dt, const Xbyak::RegExp &src, const Xbyak::RegExp &dst, int blocks) {
    if (dt == mxdnn_f8_e4m3) return e4m3_to_f32(src, dst, blocks);
    for (int b = 0; b < blocks; b++) {
        load_f32(dt, t_[1], src + b * panel_columns * bytes_of_scale_type(dt));
        j_.vmovaps(j_.ptr[dst + b * 64], t_[1]);
    }
}

// Four blocks at a time. Tables give the two upper bytes of the f32 of all 64 codes. A permute for each block
// moves them to their dwords. A header is whole cache lines, so reading 64 bytes is safe. Blocks that do not
// exist are zeros there.
void tile_params_t::e4m3_to_f32(const Xbyak::RegExp &src, const Xbyak::RegExp &dst, int blocks) {
    static const e4m3_table_t table;
    const uint32_t signs = 0x80808080;
    const Zmm &codes = t_[0], &l = t_[1], &h = t_[2], &out = t_[3];
    for (int b = 0; b < blocks; b += 4) {
        j_.vmovdqu64(codes, j_.ptr[src + b * panel_columns]);
        j_.vmovdqa64(l, j_.constant(table.low, 64));
        j_.vpermt2b(l, codes, j_.constant(table.low + 64, 64));
        j_.vmovdqa64(h, j_.constant(table.high, 64));
        j_.vpermt2b(h, codes, j_.constant(table.high + 64, 64));
        j_.vpternlogd(h, codes, j_.constant(signs), 0xf8); // h |= codes & signs
        for (int i = 0; i < 4; i++) {
            j_.vmovdqa64(out, j_.constant(table.index[i], 64));
            j_.vpermi2b(out | mask_ | Xbyak::util::T_z, l, h);
            j_.vmovaps(j_.ptr[dst + (b + i) * 64], out);
        }
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
