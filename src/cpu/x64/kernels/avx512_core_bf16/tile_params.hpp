// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of a tile, converted once per tile to what the inner loops want and left
// in memory that stays in the first-level cache: 64 bytes (16 columns) for each row block.
#pragma once

#include "cpu/x64/jit/jit_base.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class tile_params_t {
public:
    static constexpr int temps = 4;
    // The number of blocks that converted scales need room for: a multiple of four.
    static constexpr int room(int blocks) { return int(round_up(blocks, 4)); }

    // t: registers that the calls below may overwrite. mask: an opmask register for this class alone.
    tile_params_t(jit_base_t &j, const Xbyak::Zmm *t, const Xbyak::Opmask &mask)
        : j_(j), t_(t), mask_(mask) {}

    // Called before the first conversion of scales of that type.
    void prepare(data_type_t dt, const Xbyak::Reg64 &temp);

    // Converts [blocks][16] of type dt at src to f32 at dst. e8m0: 0 is 2^-127, 255 is NaN.
    void to_f32(data_type_t dt, const Xbyak::RegExp &src, const Xbyak::RegExp &dst, int blocks);
    // Converts one block into a register; any type but f8_e4m3.
    void load_f32(data_type_t dt, const Xbyak::Zmm &d, const Xbyak::RegExp &src);

private:
    void e4m3_to_f32(const Xbyak::RegExp &src, const Xbyak::RegExp &dst, int blocks);

    jit_base_t &j_;
    const Xbyak::Zmm *t_;
    const Xbyak::Opmask mask_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
