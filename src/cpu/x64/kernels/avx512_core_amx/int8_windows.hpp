// SPDX-License-Identifier: Apache-2.0
// MXFP4 panels as s8 for kernels that multiply integers. Tiles know no scales along K, so those of the
// weights become part of the integers: a doubled code has at most 4 bits without its sign, an s8 leaves room
// for three more, so blocks whose exponents are at most 3 below the largest one of their column keep their
// codes shifted left by what they have above the least exponent of that window. What lies further below is
// multiplied by another pass over the tiles that have such blocks, with the window below, and so on until
// nothing is left.
#pragma once

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/jit_base.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/avx512_core_amx/weave.hpp"
#include "cpu/x64/kernels/kernel_types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class int8_windows_t : public jit_base_t {
public:
    explicit int8_windows_t(const kernel_params_t &p)
        : shape_(make_packed_shape(p.K, panel_columns, 4, p.quant)) {}

protected:
    using Label = Xbyak::Label;
    using Reg64 = Xbyak::Reg64;
    using Zmm = Xbyak::Zmm;
    using Opmask = Xbyak::Opmask;

    static constexpr int panels = 2;
    static constexpr int step = 64; // rows of the weights that are multiplied at once
    static constexpr int tile_rows = int(n16_frame_t::min_tile_rows);
    static constexpr int steps_of(int rows) { return div_up(rows, step); }
    static constexpr int panel_bytes = tile_rows / step * amx_tile_bytes; // of a decoded tile

    const packed_shape_t shape_;
    const int whole_tiles_ = int(shape_.K / tile_rows), tail_rows_ = int(shape_.K % tile_rows);

    const Reg64 temp_ = rax, codes_ = r8, codes1_ = r9, dst_ = r11, tiles_ = r10;
    int tile_bytes(int rows) const { return int(n16_frame_t::tile_bytes(shape_, rows)); }
    const Reg64 &codes_of(int panel) const { return panel ? codes1_ : codes_; }

    const Zmm nan_bytes_ = Zmm(20);
    const Zmm any_ = Zmm(10);                               // all codes of a tile, combined by OR
    static Zmm limit(int panel) { return Zmm(11 + panel); } // remaining exponents are below this
    static Zmm scale(int panel) { return Zmm(14 + panel); } // factor of the sums of this pass
    static Zmm base(int panel) { return Zmm(28 + panel); }  // the smallest exponent of this pass
    const Opmask some_ = k1;

    // The beginning of the stack.
    enum {
        args,
        codes, // of both panels
        codes1,
        wanted,  // panels that need another pass
        own_slot // the first slot that belongs to the kernel
    };
    // Within a routine, the return address is below these.
    Xbyak::Address var(int s, bool in_routine = false) { return qword[rsp + s * 8 + (in_routine ? 8 : 0)]; }
    void load_arg(const Reg64 &r, size_t offset, bool in_routine = false) {
        mov(r, var(args, in_routine));
        mov(r, qword[r + int(offset)]);
    }

    void load_constants() {
        uint8_t table[64];
        for (uint32_t i = 0; i < 64; i++)
            table[i] = uint8_t(int8_t(f4_e2m1_t::decode(i % 16) / unit) * (1 << i / 16));
        vmovdqa64(table_, constant(table, sizeof(table)));
        vmovdqa64(low_, constant(uint8_t(0x0f)));
        vmovdqa64(nan_bytes_, constant(uint8_t(e8m0_t::nan_code)));
        for (int b = 0; b < tile_blocks; b++) {
            uint8_t index[64];
            for (int i = 0; i < 64; i++) index[i] = uint8_t(b * panel_columns + i / 4);
            vmovdqa64(spread(b), constant(index, sizeof(index)));
        }
    }

    // Routines of find_windows(), placed anywhere in the kernel.
    void emit_find_windows() {
        for (int p = 0; p < panels; p++) emit_find_window(p);
    }

    // Finds base() and scale() of the next pass below limit(), and counts panels that need another one in
    // `wanted`.
    void find_windows() {
        for (int p = 0; p < panels; p++) call(find_window_[p]);
    }

    // Decodes a tile of both panels to dst_. any_ gets all codes if this is wanted.
    pieces_t decoding(int rows, bool sees_any) {
        const int header = int(n16_frame_t::header_bytes(shape_, rows)), blocks = int(div_up(rows, block));
        pieces_t pieces;
        for (int p = 0; p < panels; p++) {
            const Reg64 &at = codes_of(p);
            pieces.push_back([=, &at] {
                vmovdqu64(header_, ptr[at]);
                vpcmpub(some_, header_, limit(p), not_less);
                vpsubb(header_, header_, base(p));
                vmovdqu8(header_ | some_, nan_bytes_);
            });
            for (int u = 0; u < blocks * block / unit_rows; u++)
                pieces.push_back([=, &at] {
                    if (u % (block / unit_rows) == 0) {
                        vpermb(shift_, spread(u / (block / unit_rows)), header_);
                        vpcmpub(some_, shift_, constant(uint8_t(shifts)), less);
                        vpsllw(shift_, shift_, 4); // bits that leave a byte are not in `some_`
                    }
                    const int to = p * panel_bytes + 2 * u * amx_row_bytes;
                    vmovdqu64(raw_, ptr[at + header + u * amx_row_bytes]);
                    vpsrlw(high_, raw_, 4);
                    for (const Zmm &w : {raw_, high_}) {
                        vpternlogd(w, low_, shift_, 0xea); // (w & low) | shift
                        vpermb(w | some_ | T_z, w, table_);
                    }
                    vmovdqu64(ptr[dst_ + to], raw_);
                    vmovdqu64(ptr[dst_ + to + amx_row_bytes], high_);
                    if (sees_any) vpternlogd(any_, raw_, high_, 0xfe); // or
                });
            pieces.push_back([=, &at] { add(at, tile_bytes(rows)); });
        }
        return pieces;
    }

    // Leaves flags: not zero if a tile of either panel has blocks below limit().
    void see_below(int rows) {
        const Opmask below[panels] = {some_, nan_};
        for (int p = 0; p < panels; p++) {
            load_scales(codes_of(p), rows);
            vpcmpub(below[p], header_, limit(p), less);
        }
        kortestq(below[0], below[1]);
    }

private:
    static constexpr int block = 32, tile_blocks = tile_rows / block;
    static constexpr int shifts = 4;    // number of possible shifts of a code
    static constexpr int unit_rows = 8; // of K: a dword of codes per column
    static constexpr float unit = int8_weights(mxdnn_f4_e2m1, mx_quant).unit;
    static constexpr uint8_t less = 1, not_less = 5; // comparisons of unsigned bytes

    const Zmm table_ = Zmm(0), low_ = Zmm(1), header_ = Zmm(6), shift_ = Zmm(7), raw_ = Zmm(8),
              high_ = Zmm(9);
    static Zmm spread(int block) { return Zmm(2 + block); }
    const Zmm most_ = Zmm(18), least_ = Zmm(19);
    const Opmask valid_ = k2, nan_ = k3;

    Label find_window_[panels];

    static constexpr bool all_blocks_of(int rows) { return div_up(rows, block) == tile_blocks; }

    // Loads header_. Bytes after the last scale become NaN, which is below no limit. valid_ says which bytes
    // of a partial tile are scales.
    void load_scales(const Reg64 &at, int rows) {
        if (all_blocks_of(rows)) return vmovdqu64(header_, ptr[at]);
        mov(temp_, (uint64_t(1) << div_up(rows, block) * panel_columns) - 1);
        kmovq(valid_, temp_);
        vmovdqa64(header_, nan_bytes_);
        vmovdqu8(header_ | valid_, ptr[at]);
    }

    // Finds the exponents of the pass (base to base + 3 of each column), the factor of its sums, and whether
    // there are smaller ones.
    void emit_find_window(int panel) {
        Label last;
        align(16);
        L(find_window_[panel]);
        mov(codes_, var(codes + panel, true));
        vpxord(most_, most_, most_);
        vmovdqa64(least_, nan_bytes_);
        kxorq(nan_, nan_, nan_);
        const auto see = [&](int rows) {
            load_scales(codes_, rows);
            vpminub(least_, least_, header_);
            vpcmpub(some_, header_, limit(panel), less);
            vpmaxub(most_ | some_, most_, header_);
            if (all_blocks_of(rows))
                vpcmpeqb(some_, header_, nan_bytes_);
            else
                vpcmpeqb(some_ | valid_, header_, nan_bytes_);
            korq(nan_, nan_, some_);
            add(codes_, tile_bytes(rows));
        };
        loop(tiles_, whole_tiles_, [&] { see(tile_rows); });
        if (tail_rows_) see(tail_rows_);
        // For the four blocks of a tile.
        for (const uint8_t order : {uint8_t(0x4e), uint8_t(0xb1)}) {
            vshufi32x4(header_, most_, most_, order);
            vpmaxub(most_, most_, header_);
            vshufi32x4(header_, least_, least_, order);
            vpminub(least_, least_, header_);
        }
        vpsubusb(base(panel), most_, constant(uint8_t(shifts - 1)));
        vpmovzxbd(scale(panel), Xbyak::Xmm(base(panel).getIdx()));
        vpsubd(scale(panel), scale(panel), constant(uint32_t(e8m0_t::bias)));
        vcvtdq2ps(scale(panel), scale(panel));
        vmovaps(header_, constant(unit));
        vscalefps(scale(panel), header_, scale(panel));
        // In the first pass, where exponents have no limit, a column with a NaN scale gets NaN.
        vpcmpeqb(some_, limit(panel), nan_bytes_);
        kandq(nan_, nan_, some_);
        kmovq(temp_, nan_);
        for (const int by : {32, 16}) {
            mov(codes_, temp_);
            shr(codes_, by);
            or_(temp_, codes_);
        }
        kmovd(some_, temp_.cvt32());
        vmovaps(scale(panel) | some_, constant(f32_nan_bits));
        vpcmpub(some_, least_, base(panel), less);
        kortestq(some_, some_);
        jz(last);
        inc(var(wanted, true));
        L(last);
        ret();
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
