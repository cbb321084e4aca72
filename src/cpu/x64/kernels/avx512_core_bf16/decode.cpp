// SPDX-License-Identifier: Apache-2.0
// Decode kernels: a panel of packed weights to bf16 pairs in memory that stays in cache.
#include <cstddef>

#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_walk.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

class decode_t : public jit_base_t {
public:
    explicit decode_t(const kernel_params_t &p) : walk_(*this, p, {r8, r9, rcx, r14, r15, rax}, 1) {}

private:
    panel_walk_t walk_;
    const Xbyak::Reg64 codes_ = r8, dst_ = r9, tiles_ = rdx;
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble(walk_.param_bytes());
        mov(codes_, arg(offsetof(decode_args_t, wei)));
        mov(dst_, arg(offsetof(decode_args_t, dst)));
        mov(tiles_, arg(offsetof(decode_args_t, tiles)));
        walk_.load_constants();

        Xbyak::Label no_tiles, done;
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { walk_.tile(rsp, walk_.tile_rows(), [] {}); });
        L(no_tiles);
        if (const int tail = walk_.tail_rows()) {
            cmp(arg(offsetof(decode_args_t, tail)), 0);
            je(done, T_NEAR);
            walk_.tile(rsp, tail, [] {});
        }
        L(done);
        postamble();
    }
};

} // namespace

status_t make_avx512_core_bf16_decode(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<decode_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
