// SPDX-License-Identifier: Apache-2.0
// The instructions on whole zmm registers that kernels mostly consist of, written in one go. Xbyak's general
// way, byte by byte from descriptions of operands, takes several times as long, and generating code is
// what creating a primitive takes. All other instructions, and these with other operands, are Xbyak's.
//
// The only header that includes Xbyak.
#pragma once

// Errors are values here: Xbyak keeps the first one of a thread until it is cleared, which
// create_jit() does before and jit_base_t::finish() checks.
#define XBYAK64
#define XBYAK_NO_EXCEPTION
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include <cstdint>
#include <cstring>

namespace mxdnn {
namespace impl {
namespace x64 {

// Xbyak would make an expression of the number first, and merge the two.
inline Xbyak::RegExp operator+(const Xbyak::RegExp &e, int disp) { return e - size_t(-int64_t(disp)); }

class evex_code_t : public Xbyak::CodeGenerator {
    using base_t = Xbyak::CodeGenerator;

public:
    using Zmm = Xbyak::Zmm;
    using Operand = Xbyak::Operand;
    using Address = Xbyak::Address;
    using base_t::base_t;

    // clang-format off
    using base_t::vmovaps, base_t::vmovups, base_t::vmovdqa64, base_t::vmovdqu64;
    void vmovaps(const Zmm &d, const Operand &s) { two({0, 0, 0, 0x28}, d, s); }
    void vmovups(const Zmm &d, const Operand &s) { two({0, 0, 0, 0x10}, d, s); }
    void vmovdqa64(const Zmm &d, const Operand &s) { two({1, 0, 1, 0x6f}, d, s); }
    void vmovdqu64(const Zmm &d, const Operand &s) { two({2, 0, 1, 0x6f}, d, s); }
    void vmovaps(const Address &d, const Zmm &s) { two({0, 0, 0, 0x29}, s, d); }
    void vmovups(const Address &d, const Zmm &s) { two({0, 0, 0, 0x11}, s, d); }
    void vmovdqa64(const Address &d, const Zmm &s) { two({1, 0, 1, 0x7f}, s, d); }
    void vmovdqu64(const Address &d, const Zmm &s) { two({2, 0, 1, 0x7f}, s, d); }

    using base_t::vpandd, base_t::vpord, base_t::vpxord, base_t::vpsubusw, base_t::vpaddusw;
    void vpandd(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0xdb}, d, a, b); }
    void vpord(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0xeb}, d, a, b); }
    void vpxord(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0xef}, d, a, b); }
    void vpsubusw(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0xd9}, d, a, b); }
    void vpaddusw(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0xdd}, d, a, b); }

    using base_t::vmulps, base_t::vaddps, base_t::vfmadd231ps, base_t::vfmadd213ps, base_t::vdpbf16ps, base_t::vcvtne2ps2bf16;
    void vmulps(const Zmm &d, const Zmm &a, const Operand &b) { three({0, 0, 0, 0x59}, d, a, b); }
    void vaddps(const Zmm &d, const Zmm &a, const Operand &b) { three({0, 0, 0, 0x58}, d, a, b); }
    void vfmadd231ps(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0xb8}, d, a, b); }
    void vfmadd213ps(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0xa8}, d, a, b); }
    void vdpbf16ps(const Zmm &d, const Zmm &a, const Operand &b) { three({2, 1, 0, 0x52}, d, a, b); }
    void vcvtne2ps2bf16(const Zmm &d, const Zmm &a, const Operand &b) { three({3, 1, 0, 0x72}, d, a, b); }

    using base_t::vpermb, base_t::vpermw, base_t::vpermps, base_t::vpermi2b, base_t::vpermt2w, base_t::vpmultishiftqb, base_t::vpsrlvd,
            base_t::vpunpcklbw, base_t::vpunpckhbw;
    void vpermb(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0x8d}, d, a, b); }
    void vpermw(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 1, 0x8d}, d, a, b); }
    void vpermps(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0x16}, d, a, b); }
    void vpermi2b(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0x75}, d, a, b); }
    void vpermt2w(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 1, 0x7d}, d, a, b); }
    void vpmultishiftqb(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 1, 0x83}, d, a, b); }
    void vpsrlvd(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 1, 0, 0x45}, d, a, b); }
    void vpunpcklbw(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0x60}, d, a, b); }
    void vpunpckhbw(const Zmm &d, const Zmm &a, const Operand &b) { three({1, 0, 0, 0x68}, d, a, b); }

    using base_t::vpternlogd, base_t::vpslld, base_t::vpsrlw, base_t::vpbroadcastd;
    void vpternlogd(const Zmm &d, const Zmm &a, const Operand &b, uint8_t imm) { three({1, 2, 0, 0x25}, d, a, b, imm); }
    void vpslld(const Zmm &d, const Operand &s, uint8_t imm) { shift({1, 0, 0, 0x72}, 6, d, s, imm); }
    void vpsrlw(const Zmm &d, const Operand &s, uint8_t imm) { shift({1, 0, 0, 0x71}, 2, d, s, imm); }
    void vpbroadcastd(const Zmm &d, const Address &s) { evex({1, 1, 0, 0x58}, d.getIdx(), d, s, 0, -1, 4); }
    // clang-format on

    void prefetcht0(const Address &a) {
        if (!begin()) return;
        const Xbyak::RegExp &e = a.getRegExp(false);
        const int rex = (e.getIndex().getIdx() & 8) >> 2 | (e.getBase().getIdx() & 8) >> 3;
        if (rex) put(0x40 | rex);
        put(0x0f);
        put(0x18);
        memory(a, 1, 1, 0);
        end();
    }

private:
    struct op_t {
        int prefix; // none, 66, f3, f2
        int map;    // 0f, 0f38, 0f3a
        int w, code;
    };
    static constexpr size_t longest = 16;
    uint8_t *at_ = nullptr;

    bool begin() {
        at_ = top_ + size_;
        if (size_ + longest <= maxSize_) return true;
        Xbyak::local::SetError(Xbyak::ERR_CODE_IS_TOO_BIG);
        return false;
    }
    void end() { size_ = size_t(at_ - top_); }
    void put(int b) { *at_++ = uint8_t(b); }
    void put_dword(int64_t d) {
        const uint32_t bits = uint32_t(d);
        std::memcpy(at_, &bits, 4);
        at_ += 4;
    }

    void two(const op_t &op, const Zmm &r, const Operand &rm) { evex(op, r.getIdx(), r, rm, 0); }
    void three(const op_t &op, const Zmm &d, const Zmm &a, const Operand &b, int imm = -1) {
        evex(op, d.getIdx(), d, b, a.getIdx(), imm);
    }
    void shift(const op_t &op, int extension, const Zmm &d, const Operand &s, int imm) {
        evex(op, extension, d, s, d.getIdx(), imm);
    }

    // reg: the register that the ModRM byte names, or an extension of the opcode. d: which has the mask. v:
    // the register that the prefix names. Displacements of one byte count `bytes` of memory.
    void evex(const op_t &op, int reg, const Zmm &d, const Operand &rm, int v, int imm = -1, int bytes = 64) {
        if (!begin()) return;
        bool broadcast = false;
        int high = (op.map + 1) | (~reg & 8) << 4 | (~reg & 16);
        if (rm.isMEM()) {
            const Address &a = rm.getAddress();
            const Xbyak::RegExp &e = a.getRegExp(false);
            broadcast = a.isBroadcast();
            if (broadcast) bytes = op.w ? 8 : 4;
            high |= (~e.getIndex().getIdx() & 8) << 3 | (~e.getBase().getIdx() & 8) << 2;
        } else {
            high |= (~rm.getIdx() & 16) << 2 | (~rm.getIdx() & 8) << 2;
        }
        put(0x62);
        put(high);
        put(op.w << 7 | (~v & 15) << 3 | 4 | op.prefix);
        const int mask = d.getOpmaskIdx() | rm.getOpmaskIdx();
        put((mask && d.hasZero()) << 7 | 2 << 5 | broadcast << 4 | (~v & 16) >> 1 | mask);
        put(op.code);
        if (rm.isMEM())
            memory(rm.getAddress(), reg, bytes, imm >= 0);
        else
            put(3 << 6 | (reg & 7) << 3 | (rm.getIdx() & 7));
        if (imm >= 0) put(imm);
        end();
    }

    // ModRM and what belongs to it; `more` bytes of the instruction follow.
    void memory(const Address &a, int reg, int bytes, int more) {
        constexpr int sib = 4, no_base = 5;
        reg = (reg & 7) << 3;
        int64_t disp = int64_t(a.getDisp());
        if (a.getMode() == Address::M_ripAddr) {
            put(reg | no_base);
            return put_dword(disp - reinterpret_cast<int64_t>(at_ + 4) - more);
        }
        const Xbyak::RegExp &e = a.getRegExp(false);
        if (a.getMode() != Address::M_ModRM || !e.getBase().getBit() || disp != int32_t(disp))
            return Xbyak::local::SetError(Xbyak::ERR_BAD_ADDRESSING);
        const int base = e.getBase().getIdx() & 7;
        const bool indexed = e.getIndex().getBit() != 0;
        const int64_t times = disp / bytes;
        const bool none = disp == 0 && base != no_base;
        const bool small = !none && disp % bytes == 0 && times == int8_t(times);
        put((none ? 0 : small ? 1 : 2) << 6 | reg | (indexed || base == sib ? sib : base));
        if (indexed)
            put((e.getScale() == 8 ? 3 : e.getScale() >> 1) << 6 | (e.getIndex().getIdx() & 7) << 3 | base);
        else if (base == sib)
            put(sib << 3 | base);
        if (small)
            put(int(times));
        else if (!none)
            put_dword(disp);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
