// SPDX-License-Identifier: Apache-2.0
// Base of all code generators: the only header that includes Xbyak. It owns the calling convention,
// loops, the pool of constants, and the way from a generator to a kernel.
#pragma once

// Errors are values here. Xbyak keeps the first error of a thread until it is cleared. create_jit() clears
// it, and finish() checks it.
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

// Xbyak would first build an expression of the number and combine both, which takes longer than encoding an
// instruction.
inline Xbyak::RegExp operator+(const Xbyak::RegExp &e, int disp) { return e - size_t(-int64_t(disp)); }

class jit_base_t : public Xbyak::CodeGenerator {
public:
    // Code is generated in a buffer that the thread uses again and again, and which is therefore in cache.
    // The finished code is copied to pages of its own. It refers to nothing but its own constants.
    status_t finish(const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason);

    // --- For generators ---

    const Xbyak::Reg64 abi_param = rdi; // System V: the pointer to the arguments

    // Saves all registers that belong to the caller, and reserves stack_bytes at rsp, aligned to 64.
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

    // Repeats body() n times. The counter is used only if n is larger than 1.
    template <typename F>
    void loop(const Xbyak::Reg64 &counter, int64_t n, F body) {
        if (n <= 0) return;
        if (n == 1) return body();
        mov(counter, n);
        loop_down(counter, body);
    }
    // Repeats body() as often as the counter says, at least once.
    template <typename F>
    void loop_down(const Xbyak::Reg64 &counter, F body) {
        Xbyak::Label again;
        align(16);
        L(again);
        body();
        dec(counter);
        jnz(again, T_NEAR);
    }

    // Prefetches a line of each page of 4 KB of `bytes` bytes from `at` on, to the second-level cache. `at`
    // and `counter` change. Their addresses are translated beside each other, before weights are read there.
    void fetch_pages(const Xbyak::Reg64 &at, const Xbyak::Reg64 &counter, int64_t bytes) {
        constexpr int page = 4096, at_once = 8;
        const int64_t pages = div_up(bytes, int64_t(page));
        const auto fetch = [&](int64_t n) {
            for (int i = 0; i < int(n); i++) prefetcht1(ptr[at + i * page]);
        };
        loop(counter, pages / at_once, [&] {
            fetch(at_once);
            add(at, at_once * page);
        });
        fetch(pages % at_once);
    }

    // Prefetches the lines of results, of bf16, that are written later: so many columns of each row from `at`
    // on, which changes. Nothing is lost if there are none.
    void fetch_results(const Xbyak::Reg64 &at, const Xbyak::Operand &stride, int rows, int columns) {
        constexpr int line = 64, bytes = 2;
        for (int r = 0; r < rows; r++) {
            for (int b = 0; b < columns * bytes; b += line) prefetchw(ptr[at + b]);
            if (r + 1 < rows) add(at, stride);
        }
    }

    // Adds a constant of any size.
    void add_imm(const Xbyak::Reg64 &r, int64_t value) {
        if (value) add(r, int(value));
    }

    // 64 bytes of constants before the code, aligned to 64: n bytes, a power of two, repeated. Equal
    // constants are stored once.
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
    // Constants grow downwards from the beginning of the code.
    static constexpr int constant_bytes = 64, max_constants = 64;
    static uint8_t no_code[max_constants * constant_bytes];
    uint8_t *const begin_;
    int constants_ = 0;
    uint8_t *place_of_constant(int i) const { return begin_ - (i + 1) * constant_bytes; }
};

// Creates a kernel with generator class G, whose constructor takes the arguments after `reason`. On failure
// *kernel does not change and *reason says why.
template <typename G, typename... A>
status_t create_jit(
        const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason, A &&...args) {
    Xbyak::ClearError();
    return G(std::forward<A>(args)...).finish(name, kernel, reason);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
