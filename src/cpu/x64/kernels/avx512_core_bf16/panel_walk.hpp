// SPDX-License-Identifier: Apache-2.0
// Emits the loops that decode tiles of a panel one after the other. Kernels choose the registers and may
// do something now and then.
#pragma once

#include "common/layouts/n16.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class panel_walk_t {
public:
    struct regs_t {
        Xbyak::Reg64 codes,
                dst; // addresses of the next tile and of the results of the next step; both advance
        Xbyak::Reg64 params, units, steps; // used while a tile is decoded
        Xbyak::Reg64 temp;                 // free while after_half() runs
    };
    // Codes are prefetched `tiles_ahead` whole tiles before they are decoded, unless p says otherwise.
    panel_walk_t(jit_base_t &j, const kernel_params_t &p, const regs_t &regs, int tiles_ahead)
        : j_(j), decoder_(j, p), regs_(regs),
          ahead_(p.fetch_ahead ? p.fetch_ahead
                               : tiles_ahead * int(n16_frame_t::tile_bytes(shape_, decoder_.tile_rows()))),
          unit_rows_(std::max(int(shape_.block), k_step)) {
        zmm_pool_t pool;
        decoder_.take_registers(pool);
    }

    const packed_shape_t &shape() const { return shape_; }
    int tile_rows() const { return decoder_.tile_rows(); }
    int tail_rows() const { return int(shape_.K % tile_rows()); } // rows of the partial last tile
    int param_bytes() const { return decoder_.param_bytes(); }
    void load_constants() { decoder_.load_constants(regs_.temp); }
    // Five registers that after_half() may use.
    Xbyak::Zmm spare(int i) const { return decoder_.spare(i); }

    // Decodes a tile of `rows` rows. Its converted parameters go to `params_at`. after_half() emits code that
    // runs after every 16 rows. It must not change zmm, opmask and other registers of regs except temp.
    template <typename F>
    void tile(const Xbyak::RegExp &params_at, int rows, F after_half) {
        for (int b = 0; b < decoder_.header_bytes(tile_rows()); b += vec_bytes)
            j_.prefetcht0(j_.ptr[regs_.codes + ahead_ + b]);
        if (!decoder_.has_fast()) return tile(params_at, rows, false, after_half);
        Xbyak::Label slow, done;
        decoder_.check(regs_.codes, rows, slow, regs_.temp);
        tile(params_at, rows, true, after_half);
        j_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
        j_.L(slow);
        tile(params_at, rows, false, after_half);
        j_.L(done);
    }

private:
    static constexpr int vec_bytes = 64;
    jit_base_t &j_;
    panel_decoder_t decoder_;
    const packed_shape_t &shape_ = decoder_.shape();
    const regs_t regs_;
    const int ahead_, unit_rows_;

    template <typename F>
    void tile(const Xbyak::RegExp &params_at, int rows, bool fast, F after_half) {
        decoder_.convert(regs_.codes, params_at, rows, fast);
        j_.add(regs_.codes, decoder_.header_bytes(rows));
        j_.lea(regs_.params, j_.ptr[params_at]);
        // The last rows of a tail are written separately. Padding is zero, whatever its codes are.
        j_.loop(regs_.units, rows / unit_rows_, [&] { unit(unit_rows_, fast, after_half); });
        if (rows % unit_rows_) unit(rows % unit_rows_, fast, after_half);
    }

    // Decodes steps of 32 rows that share a block, or one step of two blocks.
    template <typename F>
    void unit(int rows, bool fast, F after_half) {
        const bool two_blocks = decoder_.two_blocks();
        if (!two_blocks) decoder_.load_params(regs_.params, fast);
        const auto step = [&](int step_rows) {
            for (int b = 0; b < 2 * decoder_.half_bytes(); b += vec_bytes)
                j_.prefetcht0(j_.ptr[regs_.codes + ahead_ + b]);
            for (int half = 0; half < 2; half++) {
                if (two_blocks) decoder_.load_params(regs_.params + half * vec_bytes, fast);
                decoder_.half_step(regs_.codes + half * decoder_.half_bytes(),
                        regs_.dst + half * 8 * vec_bytes, step_rows - half * k_step / 2, fast);
                if (half == 1) {
                    j_.add(regs_.codes, 2 * decoder_.half_bytes());
                    j_.add(regs_.dst, k_step / 2 * vec_bytes);
                }
                after_half();
            }
        };
        j_.loop(regs_.steps, rows / k_step, [&] { step(k_step); });
        if (rows % k_step) step(rows % k_step);
        j_.add(regs_.params, (1 + two_blocks) * vec_bytes);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
