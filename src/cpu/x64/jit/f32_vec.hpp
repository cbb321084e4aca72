// SPDX-License-Identifier: Apache-2.0
// What the f32 generators share: vector widths, the register plan, and loading columns of scales
// and zero points as f32.
#pragma once

#include <cassert>

#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct avx2_vec_t {
    using reg_t = Xbyak::Ymm;
    using half_t = Xbyak::Xmm;
    static constexpr bool is_zmm = false;
    static constexpr int bytes = 32, lanes = 8, regs = 16;
};

struct avx512_vec_t {
    using reg_t = Xbyak::Zmm;
    using half_t = Xbyak::Ymm;
    static constexpr bool is_zmm = true;
    static constexpr int bytes = 64, lanes = 16, regs = 32;
};

// Allocates vector registers in ascending order while a generator is set up.
class vregs_t {
public:
    explicit vregs_t(int count) : count_(count) {}
    int take(int n = 1) {
        const int first = used_;
        used_ += n;
        assert(used_ <= count_);
        return first;
    }
    int left() const { return count_ - used_; }

private:
    int count_, used_ = 0;
};

template <class Vec>
class f32_base_t : public jit_base_t {
public:
    using reg_t = typename Vec::reg_t;
    using half_t = typename Vec::half_t;

    void set_zero(const reg_t &r) {
        const Xbyak::Xmm x(r.getIdx());
        vxorps(x, x, x);
    }

    // One value per lane, converted exactly. tmp may change, and on AVX-512 also k1.
    void load_columns(const reg_t &dst, const reg_t &tmp, data_type_t dt, const Xbyak::Address &from) {
        switch (dt) {
        case mxdnn_f32: vmovups(dst, from); break;
        case mxdnn_bf16:
            vpmovzxwd(dst, from);
            vpslld(dst, dst, 16);
            break;
        case mxdnn_f16: vcvtph2ps(dst, from); break;
        case mxdnn_u8:
            vpmovzxbd(dst, from);
            vcvtdq2ps(dst, dst);
            break;
        case mxdnn_e8m0: load_e8m0(dst, tmp, from); break;
        case mxdnn_f8_e4m3: load_e4m3(dst, tmp, from); break;
        default: Xbyak::local::SetError(Xbyak::ERR_BAD_PARAMETER);
        }
    }

    // Stores a register of f32 as bf16: to nearest even, NaN stays NaN. x and the others change, and on
    // AVX-512 also k1.
    void store_bf16(const Xbyak::Address &to, const reg_t &x, const reg_t &tmp, const reg_t &nan) {
        const half_t words(tmp.getIdx());
        vpsrld(nan, x, 16);
        if constexpr (Vec::is_zmm) {
            vpandd(tmp, nan, constant(uint32_t(1)));
            vpord(nan, nan, constant(uint32_t(0x40)));
            vcmpunordps(k1, x, x);
        } else {
            vpand(tmp, nan, constant(uint32_t(1)));
            vpor(nan, nan, constant(uint32_t(0x40)));
        }
        vpaddd(tmp, tmp, constant(uint32_t(0x7fff)));
        vpaddd(tmp, tmp, x);
        vpsrld(tmp, tmp, 16);
        if constexpr (Vec::is_zmm) {
            vmovdqa32(tmp | k1, nan);
            vpmovdw(words, tmp);
            vmovups(to, words);
        } else {
            vcmpunordps(x, x, x);
            vblendvps(tmp, tmp, nan, x);
            vpackusdw(tmp, tmp, tmp);
            vpermq(tmp, tmp, 0x08);
            vmovups(to, words);
        }
    }

private:
    // The byte is the exponent field, except for 0 (2^-127, the subnormal 0x00400000) and 255 (NaN, not Inf).
    void load_e8m0(const reg_t &dst, const reg_t &tmp, const Xbyak::Address &from) {
        if constexpr (Vec::is_zmm) {
            // A response for each class of number, four bits each. 0: the previous contents; 1: the number;
            // 3: NaN. Classes 2, 3, 5, 7: zero, one, Inf, positive.
            constexpr uint32_t responses = 0u << 2 * 4 | 1u << 3 * 4 | 3u << 5 * 4 | 1u << 7 * 4;
            vpmovzxbd(tmp, from);
            vpslld(tmp, tmp, 23);
            vmovaps(dst, constant(uint32_t(0x400000)));
            vfixupimmps(dst, tmp, constant(responses), 0);
        } else {
            // These are the bytes b for which (b + 1) & 0xfe is 0. They get the top bit of the mantissa.
            vpmovzxbd(dst, from);
            vpaddd(tmp, dst, constant(uint32_t(1)));
            vpslld(dst, dst, 23);
            vpand(tmp, tmp, constant(uint32_t(0xfe)));
            vpcmpeqd(tmp, tmp, constant(uint32_t(0)));
            vpand(tmp, tmp, constant(uint32_t(0x400000)));
            vpor(dst, dst, tmp);
        }
    }

    // Converted through f16, whose exponent bias is larger by 8. f16 subnormals are exact. All ones is NaN:
    // only there one more carries into the upper bit of the exponent, which then is all ones.
    void load_e4m3(const reg_t &dst, const reg_t &tmp, const Xbyak::Address &from) {
        const half_t w(dst.getIdx()), t(tmp.getIdx());
        const uint16_t upper = 0x4000, last = 0x0080; // bits of exponent and mantissa
        vpmovsxbw(w, from);
        vpsllw(w, w, 7);
        if constexpr (Vec::is_zmm) {
            vpandd(w, w, constant(uint16_t(~upper)));
            vpaddw(t, w, constant(last));
            vpternlogd(w, t, constant(upper), 0xf8); // w |= t & upper
        } else {
            vpand(w, w, constant(uint16_t(~upper)));
            vpaddw(t, w, constant(last));
            vpand(t, t, constant(upper));
            vpor(w, w, t);
        }
        vcvtph2ps(dst, w);
        vmulps(dst, dst, constant(256.f));
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
