// SPDX-License-Identifier: Apache-2.0
// Decodes a panel of MXFP4 to integers: int8_panel.hpp. A tile of four blocks is one window, unless scales of
// a column differ by more than an s8 has room for, or are NaN. Then each of its blocks is one.
#include <algorithm>
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_panel.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::Zmm;

class decode_int8_t : public jit_base_t {
public:
    explicit decode_int8_t(const kernel_params_t &p)
        : shape_(make_packed_shape(p.K, panel_columns, 4, p.quant)),
          unit_(int8_weights(p.wei_dt, p.quant).unit),
          ahead_(p.fetch_ahead ? p.fetch_ahead : int(n16_frame_t::tile_bytes(shape_, tile_rows))) {}

private:
    static constexpr int block = k_step, tile_rows = int(n16_frame_t::min_tile_rows);
    static constexpr int unit_rows = 8; // of K: a dword of codes per column
    static constexpr int tile_blocks = tile_rows / block;
    static constexpr int shifts = 4; // a doubled code has at most 12: three bits are left
    const packed_shape_t shape_;
    const float unit_;
    const int ahead_;

    const Zmm table_{0}, low_{1}, source_offset_{2};
    static Zmm spread(int b) { return Zmm(3 + b); }
    const Zmm header_{7}, least_{8}, most_{9}, shift_{10}, scale_{12};
    const Zmm temps_[tile_params_t::temps] = {Zmm(13), Zmm(14), Zmm(15), Zmm(16)};
    const Zmm zero_{17};
    static Zmm wei(int i) { return Zmm(18 + i); }
    // The sum of a window's weights, in parts: one would wait for itself.
    static constexpr int sums = 4;
    static Zmm sum(int i) { return Zmm(22 + i % sums); }
    static constexpr uint8_t not_less = 5; // a comparison
    const Xbyak::Opmask far_ = k1, nan_ = k2, valid_ = k3;
    const Reg64 codes_ = rsi, dst_ = r8, tiles_ = r9, temp_ = rax;

    void generate() override {
        Xbyak::Label no_tiles, done;
        preamble(vec_bytes);
        load_constants();
        mov(codes_, qword[abi_param + int(offsetof(decode_args_t, wei))]);
        mov(dst_, qword[abi_param + int(offsetof(decode_args_t, dst))]);
        mov(tiles_, qword[abi_param + int(offsetof(decode_args_t, tiles))]);
        test(tiles_, tiles_);
        jz(no_tiles, T_NEAR);
        loop_down(tiles_, [&] { tile(tile_rows); });
        L(no_tiles);
        if (const int tail = int(shape_.K % tile_rows)) {
            cmp(qword[abi_param + int(offsetof(decode_args_t, tail))], 0);
            je(done, T_NEAR);
            tile(tail);
        }
        L(done);
        postamble();
    }

    void load_constants() {
        uint8_t bytes[64];
        for (uint32_t i = 0; i < 64; i++)
            bytes[i] = uint8_t(int8_t(f4_e2m1_t::decode(i % 16) / unit_) * (1 << i / 16));
        vmovdqa64(table_, constant(bytes, sizeof(bytes)));
        vpxord(zero_, zero_, zero_);
        vmovdqa64(low_, constant(uint8_t(0x0f)));
        vmovdqa64(source_offset_, constant(uint8_t(int8_panel_t::source_offset)));
        for (int b = 0; b < tile_blocks; b++) {
            for (int i = 0; i < 64; i++) bytes[i] = uint8_t(b * panel_columns + i / 4);
            vmovdqa64(spread(b), constant(bytes, sizeof(bytes)));
        }
    }

    void tile(int rows) {
        const int blocks = div_up(rows, block);
        Xbyak::Label apart, done;
        prefetcht0(ptr[codes_ + ahead_]);
        load_scales(blocks);
        vpsubb(header_, header_, least_);
        vpcmpub(far_, header_, constant(uint8_t(shifts)), not_less);
        kortestq(far_, nan_);
        jnz(apart, T_NEAR);
        vmovdqu(ptr[rsp], Xbyak::Xmm(least_.getIdx()));
        vpsllw(header_, header_, 4); // above the bits of a code
        windows(rows, blocks);
        jmp(done, T_NEAR);
        L(apart);
        vpxord(header_, header_, header_);
        windows(rows, 1);
        L(done);
        add(codes_, int(n16_frame_t::tile_bytes(shape_, rows)));
        add(dst_, blocks * int8_panel_t::block_bytes);
    }

    // Loads header_, the least scale of each column to all lanes of least_, and NaN scales to nan_. Blocks
    // that do not exist have the scale of the first one.
    void load_scales(int blocks) {
        if (blocks < tile_blocks) {
            mov(temp_, (uint64_t(1) << blocks * panel_columns) - 1);
            kmovq(valid_, temp_);
            vbroadcasti32x4(header_, ptr[codes_]);
            vmovdqu8(header_ | valid_, ptr[codes_]);
        } else {
            vmovdqu64(header_, ptr[codes_]);
        }
        vpcmpeqb(nan_, header_, constant(uint8_t(e8m0_t::nan_code)));
        vmovdqa64(least_, header_);
        for (const uint8_t order : {uint8_t(0x4e), uint8_t(0xb1)}) {
            vshufi32x4(most_, least_, least_, order);
            vpminub(least_, least_, most_);
        }
    }

    // Decodes a tile in windows of `of` blocks. If it is more than one, their scale is in the stack.
    void windows(int rows, int of) {
        const int header = int(n16_frame_t::header_bytes(shape_, rows)), blocks = div_up(rows, block);
        for (int b = 0; b < blocks; b++) {
            const int to = b * int8_panel_t::block_bytes, first = b / of * of,
                      last = std::min(first + of, blocks) - 1;
            if (of > 1) vpermb(shift_, spread(b), header_);
            for (int i = 0; i < sums && b == first; i++) vpxord(sum(i), sum(i), sum(i));
            for (int u = 0; u < block / unit_rows; u++) {
                const int unit = b * block / unit_rows + u;
                prefetcht0(ptr[codes_ + header + unit * vec_bytes + ahead_]);
                const Zmm &raw = wei(u % 2 * 2), &high = wei(u % 2 * 2 + 1);
                vmovdqu64(raw, ptr[codes_ + header + unit * vec_bytes]);
                vpsrlw(high, raw, 4);
                for (const Zmm *w : {&raw, &high}) {
                    const int i = 2 * u + (w == &high);
                    vpternlogd(*w, low_, shift_, of > 1 ? 0xea : 0xc0); // (w & low) | shift, or w & low
                    vpermb(*w, *w, table_);
                    vpdpbusd(sum(i), source_offset_, *w);
                    vmovdqu64(ptr[dst_ + to + i * vec_bytes], *w);
                }
            }
            if (b < last) {
                mov(dword[dst_ + to + int8_panel_t::scale], int(int8_panel_t::goes_on));
                continue;
            }
            for (int i = 1; i < sums; i++) vpaddd(sum(0), sum(0), sum(i));
            vpsubd(sum(0), zero_, sum(0));
            vmovdqu64(ptr[dst_ + first * int8_panel_t::block_bytes + int8_panel_t::start], sum(0));
            tile_params_t(*this, temps_, valid_)
                    .load_f32(mxdnn_e8m0, scale_, of > 1 ? Xbyak::RegExp(rsp) : codes_ + b * panel_columns);
            vmulps(scale_, scale_, constant(unit_));
            vmovups(ptr[dst_ + to + int8_panel_t::scale], scale_);
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_decode_int8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<decode_int8_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
