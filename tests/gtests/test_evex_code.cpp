// SPDX-License-Identifier: Apache-2.0
// Instructions that are written without Xbyak are the same bytes as Xbyak's.
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cpu/x64/jit/evex_code.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Zmm;

// Both write to the same place: addresses relative to the instruction are equal.
alignas(64) uint8_t buffer[4096];
const size_t instruction_at = 64;

template <typename Code, typename F>
std::vector<uint8_t> bytes_of(F instruction) {
    std::memset(buffer, 0, sizeof(buffer));
    Code code(sizeof(buffer), buffer);
    code.setSize(instruction_at);
    instruction(code);
    return std::vector<uint8_t>(buffer + instruction_at, buffer + code.getSize());
}

// `instruction` is generic: of evex_code_t it takes ours.
template <typename F>
void expect_same(const char *name, F instruction) {
    Xbyak::ClearError();
    const std::vector<uint8_t> ours = bytes_of<evex_code_t>(instruction);
    EXPECT_EQ(Xbyak::GetError(), 0) << name;
    const std::vector<uint8_t> theirs = bytes_of<Xbyak::CodeGenerator>(instruction);
    ASSERT_EQ(Xbyak::GetError(), 0) << name;
    EXPECT_FALSE(ours.empty()) << name;
    if (ours == theirs) return;
    const auto text = [](const std::vector<uint8_t> &bytes) {
        std::string s;
        char hex[4];
        for (const uint8_t b : bytes) s += (std::snprintf(hex, sizeof(hex), "%02x ", b), hex);
        return s;
    };
    ADD_FAILURE() << name << ": " << text(ours) << "instead of " << text(theirs);
}

std::vector<Address> addresses(bool broadcast) {
    const Xbyak::AddressFrame &frame = broadcast ? Xbyak::util::ptr_b : Xbyak::util::ptr;
    std::vector<Address> all;
    for (const int base : {Operand::RAX, Operand::RSP, Operand::RBP, Operand::R8, Operand::R12, Operand::R13})
        for (const int64_t disp : {0, 1, 4, 8, 60, 64, -64, 127, 127 * 4, 127 * 64, -128 * 64, 128 * 4,
                     128 * 64, -129 * 64, 1 << 20}) {
            all.push_back(frame[Reg64(base) + disp]);
            for (const int index : {Operand::RCX, Operand::RBP, Operand::R9, Operand::R12})
                for (const int scale : {1, 2, 4, 8})
                    all.push_back(frame[Reg64(base) + Reg64(index) * scale + disp]);
        }
    for (const int at : {0, 63, 1024})
        all.push_back(frame[Xbyak::util::rip + static_cast<const void *>(buffer + at)]);
    return all;
}

const std::vector<Zmm> registers = {Zmm(0), Zmm(7), Zmm(8), Zmm(15), Zmm(16), Zmm(23), Zmm(24), Zmm(31)};
std::vector<Zmm> destinations() {
    std::vector<Zmm> all = registers;
    for (int k = 1; k < 8; k++) {
        all.push_back(Zmm(9) | Xbyak::Opmask(k));
        all.push_back(Zmm(30) | Xbyak::Opmask(k) | Xbyak::util::T_z);
    }
    return all;
}

// instruction(code, destination, a, b) with b a register or memory.
template <typename F>
void expect_same_three(const char *name, bool broadcasts, F instruction) {
    for (const Zmm &d : destinations())
        for (const Zmm &a : registers)
            for (const Zmm &b : registers) expect_same(name, [&](auto &c) { instruction(c, d, a, b); });
    for (const bool broadcast : {false, true})
        for (const Address &b : addresses(broadcast)) {
            if (broadcast && !broadcasts) continue;
            for (const Zmm &d : destinations())
                expect_same(name, [&](auto &c) { instruction(c, d, Zmm(d.getIdx() ^ 25), b); });
        }
}
template <typename F>
void expect_same_two(const char *name, bool broadcasts, F instruction) {
    expect_same_three(name, broadcasts,
            [&](auto &c, const Zmm &d, const Zmm &, const auto &s) { instruction(c, d, s); });
}
template <typename F>
void expect_same_store(const char *name, F instruction) {
    for (const Address &d : addresses(false))
        for (const Zmm &s : registers) expect_same(name, [&](auto &c) { instruction(c, d, s); });
}

#define THREE(name, broadcasts)                                                                              \
    expect_same_three(                                                                                       \
            #name, broadcasts, [](auto &c, const Zmm &d, const Zmm &a, const auto &b) { c.name(d, a, b); })
#define TWO(name) expect_same_two(#name, false, [](auto &c, const Zmm &d, const auto &s) { c.name(d, s); })
#define STORE(name) expect_same_store(#name, [](auto &c, const Address &d, const Zmm &s) { c.name(d, s); })

TEST(evex_code, moves) {
    TWO(vmovaps);
    TWO(vmovups);
    TWO(vmovdqa64);
    TWO(vmovdqu64);
    STORE(vmovaps);
    STORE(vmovups);
    STORE(vmovdqa64);
    STORE(vmovdqu64);
    for (const Address &a : addresses(false)) {
        for (const Zmm &d : destinations())
            expect_same("vpbroadcastd", [&](auto &c) { c.vpbroadcastd(d, a); });
        expect_same("prefetcht0", [&](auto &c) { c.prefetcht0(a); });
    }
}

TEST(evex_code, integers) {
    THREE(vpandd, true);
    THREE(vpord, true);
    THREE(vpxord, true);
    THREE(vpsubusw, false);
    THREE(vpaddusw, false);
    for (const int imm : {0, 1, 16, 0xf8, 0xff}) {
        expect_same_three("vpternlogd", true, [&](auto &c, const Zmm &d, const Zmm &a, const auto &b) {
            c.vpternlogd(d, a, b, uint8_t(imm));
        });
        expect_same_two(
                "vpslld", true, [&](auto &c, const Zmm &d, const auto &s) { c.vpslld(d, s, uint8_t(imm)); });
        expect_same_two(
                "vpsrlw", false, [&](auto &c, const Zmm &d, const auto &s) { c.vpsrlw(d, s, uint8_t(imm)); });
    }
}

TEST(evex_code, floats) {
    THREE(vmulps, true);
    THREE(vaddps, true);
    THREE(vfmadd231ps, true);
    THREE(vfmadd213ps, true);
    THREE(vdpbf16ps, true);
    THREE(vcvtne2ps2bf16, true);
}

TEST(evex_code, permutes) {
    THREE(vpermb, false);
    THREE(vpermw, false);
    THREE(vpermps, true);
    THREE(vpermi2b, false);
    THREE(vpermt2w, false);
    THREE(vpmultishiftqb, true);
    THREE(vpsrlvd, true);
    THREE(vpunpcklbw, false);
    THREE(vpunpckhbw, false);
}

TEST(evex_code, no_room_is_an_error) {
    Xbyak::ClearError();
    evex_code_t code(sizeof(buffer), buffer);
    code.setSize(sizeof(buffer) - 8);
    code.vpermw(Zmm(0), Zmm(1), Zmm(2));
    EXPECT_EQ(Xbyak::GetError(), Xbyak::ERR_CODE_IS_TOO_BIG);
    EXPECT_EQ(code.getSize(), sizeof(buffer) - 8);
    Xbyak::ClearError();
}

TEST(evex_code, an_address_without_a_base_is_an_error) {
    Xbyak::ClearError();
    evex_code_t code(sizeof(buffer), buffer);
    code.vmovups(Zmm(0), Xbyak::util::ptr[Reg64(Operand::RAX) * 2]);
    EXPECT_EQ(Xbyak::GetError(), Xbyak::ERR_BAD_ADDRESSING);
    Xbyak::ClearError();
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
