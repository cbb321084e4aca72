// SPDX-License-Identifier: Apache-2.0
// Decode kernels: a panel of packed weights to bf16 pairs in memory that stays in cache.
#include <cstddef>

#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

constexpr int vec_bytes = 64;

class decode_t : public jit_base_t {
public:
    explicit decode_t(const kernel_params_t &p) : decoder_(*this, p) {
        zmm_pool_t pool;
        decoder_.take_registers(pool);
    }

private:
    panel_decoder_t decoder_;
    const packed_shape_t &shape_ = decoder_.shape();
    const int prefetch_ahead_ = int(n16_frame_t::tile_bytes(shape_, decoder_.tile_rows()));
    const int unit_rows_ = std::max(int(shape_.block), k_step);

    const Xbyak::Reg64 codes_ = r8, dst_ = r9, params_ = rcx, tiles_ = rdx, units_ = r14, steps_ = r15;
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    void generate() override {
        preamble(decoder_.param_bytes());
        mov(codes_, arg(offsetof(decode_args_t, wei)));
        mov(dst_, arg(offsetof(decode_args_t, dst)));
        mov(tiles_, arg(offsetof(decode_args_t, tiles)));
        decoder_.load_constants(rax);

        Xbyak::Label no_tiles, done;
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { tile(decoder_.tile_rows()); });
        L(no_tiles);
        if (const int tail = int(shape_.K % decoder_.tile_rows())) {
            cmp(arg(offsetof(decode_args_t, tail)), 0);
            je(done, T_NEAR);
            tile(tail);
        }
        L(done);
        postamble();
    }

    void tile(int rows) {
        if (!decoder_.has_fast()) return tile(rows, false);
        Xbyak::Label slow, done;
        decoder_.check(codes_, rows, slow, rax);
        tile(rows, true);
        jmp(done, T_NEAR);
        L(slow);
        tile(rows, false);
        L(done);
    }

    void tile(int rows, bool fast) {
        decoder_.convert(codes_, rsp, rows, fast);
        add(codes_, decoder_.header_bytes(rows));
        mov(params_, rsp);
        // The last rows of a tail are written apart: padding is zeros, whatever the codes there say.
        loop(units_, rows / unit_rows_, [&] { unit(unit_rows_, fast); });
        if (rows % unit_rows_) unit(rows % unit_rows_, fast);
    }

    // Steps that share a block, or one step of two blocks.
    void unit(int rows, bool fast) {
        const bool two_blocks = decoder_.two_blocks();
        if (!two_blocks) decoder_.load_params(params_, fast);
        const auto step = [&](int step_rows) {
            for (int b = 0; b < 2 * decoder_.half_bytes(); b += 64)
                prefetcht0(ptr[codes_ + prefetch_ahead_ + b]);
            for (int half = 0; half < 2; half++) {
                if (two_blocks) decoder_.load_params(params_ + half * vec_bytes, fast);
                decoder_.half_step(codes_ + half * decoder_.half_bytes(), dst_ + half * 8 * vec_bytes,
                        step_rows - half * k_step / 2, fast);
            }
            add(codes_, 2 * decoder_.half_bytes());
            add(dst_, k_step / 2 * vec_bytes);
        };
        loop(steps_, rows / k_step, [&] { step(k_step); });
        if (rows % k_step) step(rows % k_step);
        add(params_, (1 + two_blocks) * vec_bytes);
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
