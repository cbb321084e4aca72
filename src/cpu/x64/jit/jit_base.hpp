// SPDX-License-Identifier: Apache-2.0
// Base of all code generators: the only header that includes Xbyak. It owns the calling convention,
// loops, the pool of constants, and the way from a generator to a kernel.
#pragma once

// Errors are values here: Xbyak keeps the first one of a thread until it is cleared, which
// create_jit() does before and finish() checks.
#define XBYAK64
#define XBYAK_NO_EXCEPTION
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "common/types.hpp"
#include "cpu/x64/jit/jit_kernel.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Xbyak would make an expression of the number first, and merge the two: that takes longer than writing an
// instruction.
inline Xbyak::RegExp operator+(const Xbyak::RegExp &e, int disp) { return e - size_t(-int64_t(disp)); }

class jit_base_t : public Xbyak::CodeGenerator {
public:
    // Code is generated where the thread has generated before, in memory that is there and in cache, and
    // copied to pages of its own when it is complete: it refers to nothing but its own constants.
    status_t finish(const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

    // --- for generators ---

    const Xbyak::Reg64 abi_param = rdi; // System V: the pointer to the arguments

    // Saves every register that the caller owns and reserves stack_bytes of stack, aligned to 64,
    // at rsp.
    void preamble(int stack_bytes = 0) {
        push(rbp);
        mov(rbp, rsp);
        for (const Xbyak::Reg64 &r : {rbx, r12, r13, r14, r15}) push(r);
        if (stack_bytes) {
            sub(rsp, stack_bytes);
            and_(rsp, -64);
        }
    }
    void postamble() {
        vzeroupper();
        lea(rsp, ptr[rbp - 5 * 8]);
        for (const Xbyak::Reg64 &r : {r15, r14, r13, r12, rbx}) pop(r);
        pop(rbp);
        ret();
    }

    // body() n times; the counter is used only when there is something to count.
    template <typename F>
    void loop(const Xbyak::Reg64 &counter, int64_t n, F body) {
        if (n <= 0) return;
        if (n == 1) return body();
        mov(counter, n);
        loop_down(counter, body);
    }
    // body() as often as the counter says, at least once.
    template <typename F>
    void loop_down(const Xbyak::Reg64 &counter, F body) {
        Xbyak::Label again;
        align(16);
        L(again);
        body();
        dec(counter);
        jnz(again, T_NEAR);
    }

    // Adds a constant of any size.
    void add_imm(const Xbyak::Reg64 &r, int64_t value) {
        if (value) add(r, int(value));
    }

    // 64 bytes of constants before the code, aligned to 64: n bytes, a power of two, repeated. Equal
    // constants share their place.
    Xbyak::Address constant(const void *bytes, size_t n);
    template <typename T>
    Xbyak::Address constant(T value) {
        return constant(&value, sizeof(value));
    }

protected:
    jit_base_t();
    explicit jit_base_t(uint8_t *buffer);
    virtual void generate() = 0;

private:
    // Constants grow downwards from where the code begins.
    static constexpr int constant_bytes = 64, max_constants = 64;
    static uint8_t no_code[max_constants * constant_bytes];
    uint8_t *const begin_;
    int constants_ = 0;
    uint8_t *place_of_constant(int i) const { return begin_ - (i + 1) * constant_bytes; }
};

// Makes a kernel of generator class G, whose constructor takes the arguments after `reason`. On
// failure *kernel is untouched and *reason says why.
template <typename G, typename... A>
status_t create_jit(
        const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason, A &&...args) {
    Xbyak::ClearError();
    return G(std::forward<A>(args)...).finish(name, kernel, reason);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
