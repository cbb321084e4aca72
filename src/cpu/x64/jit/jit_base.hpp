// SPDX-License-Identifier: Apache-2.0
// Base of all code generators: the only file that includes Xbyak. It owns the calling convention,
// loops, the pool of constants, and the way from a generator to a kernel.
#pragma once

// Errors are values here: Xbyak keeps the first one of a thread until it is cleared, which
// create_jit() does before and checks after.
#define XBYAK64
#define XBYAK_NO_EXCEPTION
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

#include "common/types.hpp"
#include "cpu/x64/jit/jit_dump.hpp"
#include "cpu/x64/jit/jit_kernel.hpp"
#include "cpu/x64/jit/jit_profile.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class jit_base_t : public jit_kernel_t, public Xbyak::CodeGenerator {
public:
    // A fixed piece of address space: growing one would write past its end when memory runs out.
    // Only the pages that code is written to become memory.
    static constexpr size_t max_code_bytes = 256 << 10;

    jit_base_t() : Xbyak::CodeGenerator(max_code_bytes, Xbyak::DontSetProtectRWE) {}

    // Generates, then makes the pages executable and no longer writable.
    void finish(const char *name) {
        name_ = name;
        generate();
        emit_constants();
        ready();
        if (!setProtectModeRE(false)) return Xbyak::local::SetError(Xbyak::ERR_CANT_PROTECT);
        code_ = const_cast<uint8_t *>(getCode());
        code_size_ = getSize();
        jit_dump(name, code_, code_size_);
        jit_profile(name, code_, code_size_);
    }

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

    // 64 bytes of constants behind the code, aligned to 64: n bytes, a power of two, repeated. Equal
    // constants share their place.
    Xbyak::Address constant(const void *bytes, size_t n) {
        pool_entry_t e;
        for (size_t i = 0; i < sizeof(e.bytes); i += n) std::memcpy(e.bytes + i, bytes, n);
        for (const pool_entry_t &p : pool_)
            if (!std::memcmp(p.bytes, e.bytes, sizeof(e.bytes))) return ptr[rip + p.label];
        pool_.push_back(e);
        return ptr[rip + pool_.back().label];
    }
    template <typename T>
    Xbyak::Address constant(T value) {
        return constant(&value, sizeof(value));
    }

protected:
    virtual void generate() = 0;

private:
    struct pool_entry_t {
        uint8_t bytes[64];
        Xbyak::Label label;
    };
    std::deque<pool_entry_t> pool_; // labels must not move

    void emit_constants() {
        if (pool_.empty()) return;
        align(64);
        for (pool_entry_t &e : pool_) {
            L(e.label);
            db(e.bytes, sizeof(e.bytes));
        }
    }
};

// Makes a kernel of generator class G, whose constructor takes the arguments after `reason`. On
// failure *kernel is untouched and *reason says why.
template <typename G, typename... A>
status_t create_jit(
        const char *name, std::unique_ptr<jit_kernel_t> *kernel, const char **reason, A &&...args) {
    Xbyak::ClearError();
    std::unique_ptr<G> g(new (std::nothrow) G(std::forward<A>(args)...));
    if (g && !Xbyak::GetError()) g->finish(name);
    if (!g || Xbyak::GetError()) {
        const int error = g ? Xbyak::GetError() : int(Xbyak::ERR_CANT_ALLOC);
        *reason = Xbyak::ConvertErrorToString(error);
        Xbyak::ClearError();
        return error == Xbyak::ERR_CANT_ALLOC ? mxdnn_out_of_memory : mxdnn_runtime_error;
    }
    *kernel = std::move(g);
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
