// SPDX-License-Identifier: Apache-2.0
// Direct kernels on vpdpbusd: rows of int8 source (int8_row.hpp) times packed weights that are
// integers but for their scale. The sum over 32 rows of K, a step, is exact; it is converted to f32
// (exact below 2^24, which 32 products of seven and eight bits stay under), less a zero point exact too,
// multiplied by the row's scale, a power of two or 1, and added to the result times the weights' scale:
// one rounding per step, and one more for a zero that is floating-point.
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/held_rows.hpp"
#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/int8_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Zmm;

class direct_int8_t : public jit_base_t {
public:
    // `one_stream`: panels are processed one after the other.
    explicit direct_int8_t(const kernel_params_t &p, bool one_stream)
        : rows_(p.rows), panels_(p.panels), wei_dt_(p.wei_dt), quant_(p.quant), row_scaled_(p.row_scaled),
          shape_(make_packed_shape(p.K, panel_columns, data_type_info(p.wei_dt)->bits, p.quant)),
          one_stream_(one_stream), fetch_ahead_(p.fetch_ahead ? p.fetch_ahead : tile_bytes()) {
        for (group_ = one_stream ? 1 : 4; group_ > 1; group_ /= 2)
            if (panels_ % group_ == 0 && 2 * rows_ * group_ + group_ + constants <= 32) break;
    }

private:
    static constexpr int constants = 3; // with the source
    const int rows_, panels_;
    const data_type_t wei_dt_;
    const quant_t quant_;
    const bool row_scaled_;
    const packed_shape_t shape_;
    int group_ = 1; // panels that are processed together
    const int tile_rows_ = int(n16_frame_t::tile_rows(shape_));
    const int step_bytes_ = k_step * panel_columns * shape_.bits / 8;
    int tile_bytes() const { return int(n16_frame_t::tile_bytes(shape_, n16_frame_t::tile_rows(shape_))); }
    const bool one_stream_;
    const int fetch_ahead_;
    const held_rows_t held_{
            rows_, one_stream_ &&rows_ == 1 ? shape_.K : 0, held_rows_t::lines_of_int8(shape_)};

    Zmm src() const { return Zmm(0); }
    int8_decoder_t decoder_{*this, wei_dt_, quant_, Zmm(1), Zmm(2)};
    Zmm wei(int panel) const { return Zmm(constants + panel); }
    Zmm sum(int row, int panel) const { return Zmm(constants + group_ + row * group_ + panel); }
    Zmm acc(int row, int panel) const { return Zmm(constants + group_ + (rows_ + row) * group_ + panel); }

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const row_addr_t scale_at_ = {{r15, rdi}, rax, rbx, r12, r13}; // scale of the current block
    const Reg64 codes_ = r8, wei_stride_ = r9, wei_stride3_ = r10, params_ = rcx, steps_ = rdx, blocks_ = r14;

    // Stack: arguments, addresses of weights and sums of the group, remaining groups and tiles, the scales of
    // a tile as f32, with zero points behind those of each panel.
    enum slot_t {
        args_slot = 0,
        wei_slot = 8,
        acc_slot = 16,
        groups_slot = 24,
        tiles_slot = 32,
        scales_slot = 64
    };
    const int kind_bytes_ = tile_params_t::room(int(div_up(tile_rows_, shape_.block))) * vec_bytes;
    const int param_bytes_ = kind_bytes_ * (has_zeros() ? 2 : 1); // of one panel
    bool has_zeros() const { return quant_.zp != zero_point_kind_t::none; }
    bool adds_zeros() const { return is_added(quant_.zp); }
    // Otherwise all blocks of the source have the scale 1, or that of the weights contains it.
    bool scales_blocks() const { return !row_scaled_ || (has_zeros() && unit() != 1.f); }
    float unit() const { return int8_weights(wei_dt_, quant_).unit; }
    // Sums of u4 codes begin at 0, unless codes count from the middle. Zero points are subtracted at the end.
    bool begins_at_zero() const { return wei_dt_ == mxdnn_u4 && code_of_added(quant_.zp) == 0; }
    Xbyak::Address slot(slot_t s) const { return qword[rsp + int(s)]; }
    void load_arg(const Reg64 &r, size_t offset) {
        mov(r, slot(args_slot));
        mov(r, qword[r + int(offset)]);
    }

    RegExp panel_at(int panel) const {
        switch (panel) {
        case 0: return codes_;
        case 1: return codes_ + wei_stride_;
        case 2: return codes_ + wei_stride_ * 2;
        default: return codes_ + wei_stride3_;
        }
    }

    void generate() override {
        preamble(scales_slot + group_ * param_bytes_);
        mov(slot(args_slot), abi_param);
        load_arg(wei_stride_, offsetof(direct_args_t, wei_stride));
        if (group_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        for (const auto &[to, from] : {std::pair{wei_slot, offsetof(direct_args_t, wei)},
                     std::pair{acc_slot, offsetof(direct_args_t, acc)}}) {
            load_arg(rax, from);
            mov(slot(to), rax);
        }
        mov(slot(groups_slot), panels_ / group_);
        decoder_.load_constants();
        if (one_stream_) fetch_next_pages();
        if (held_.any()) {
            mov(codes_, slot(args_slot));
            held_.begin(*this, qword[codes_ + int(offsetof(direct_args_t, src))],
                    qword[codes_ + int(offsetof(direct_args_t, src_stride))]);
        }
        Xbyak::Label again;
        L(again);
        group();
        lea(rax, ptr[wei_stride_ * group_]);
        add(slot(wei_slot), rax);
        add(slot(acc_slot), group_ * vec_bytes);
        dec(slot(groups_slot));
        jnz(again, T_NEAR);
        postamble();
    }

    // Of all panels of this call but the first one, and of one more, the first of the next call.
    void fetch_next_pages() {
        mov(codes_, slot(wei_slot));
        add(codes_, wei_stride_);
        fetch_pages(codes_, steps_, panels_ * n16_frame_t::panel_bytes(shape_));
    }

    void group() {
        mov(codes_, slot(wei_slot));
        load_arg(src_at_.base[0], offsetof(direct_args_t, src));
        load_arg(src_at_.stride, offsetof(direct_args_t, src_stride));
        lea(scale_at_.base[0], ptr[src_at_.base[0] + int(int8_row_t::scales_at(shape_.K))]);
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        scale_at_.set_second_base(*this, rows_);
        for (int i = 0; i < rows_ * group_; i++) vpxord(acc(0, i), acc(0, i), acc(0, i));
        if (const int tiles = int(shape_.K / tile_rows_)) {
            Xbyak::Label again;
            mov(slot(tiles_slot), tiles);
            L(again);
            tile(tile_rows_);
            dec(slot(tiles_slot));
            jnz(again, T_NEAR);
        }
        if (const int tail = int(shape_.K % tile_rows_)) tile(tail);

        const Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        mov(dst, slot(acc_slot));
        load_arg(stride, offsetof(direct_args_t, acc_stride));
        for (int r = 0; r < rows_; r++) {
            for (int p = 0; p < group_; p++) vmovups(ptr[dst + p * vec_bytes], acc(r, p));
            if (r + 1 < rows_) add(dst, stride);
        }
    }

    void tile(int rows) {
        const int block = int(shape_.block), blocks = int(div_up(rows, block));
        const Zmm temps[tile_params_t::temps] = {
                sum(0, 0), rows_ * group_ > 1 ? sum(0, 1) : wei(0), src(), wei(0)};
        tile_params_t convert(*this, temps, k1);
        for (int p = 0; p < group_; p++) {
            const RegExp to = rsp + scales_slot + p * param_bytes_;
            convert.to_f32(quant_.scale_dt, panel_at(p), to, blocks);
            for (int b = 0; b < blocks && row_scaled_ && !scales_blocks() && unit() != 1.f; b++) {
                vmovaps(wei(0), constant(unit()));
                vmulps(wei(0), wei(0), ptr[to + b * vec_bytes]);
                vmovaps(ptr[to + b * vec_bytes], wei(0));
            }
            if (!has_zeros()) continue;
            convert.to_f32(quant_.zp_dt, panel_at(p) + blocks * panel_columns * shape_.scale_bytes,
                    to + kind_bytes_, blocks);
            // As multiples of the negative sums of the rows.
            vmovaps(src(),
                    constant((adds_zeros() ? -1.f : 1.f) / float(int8_weights(wei_dt_, quant_).offset)));
            for (int b = 0; b < blocks; b++) {
                vmulps(wei(0), src(), ptr[to + kind_bytes_ + b * vec_bytes]);
                vmovaps(ptr[to + kind_bytes_ + b * vec_bytes], wei(0));
            }
        }
        lea(params_, ptr[rsp + scales_slot]);
        add(codes_, int(n16_frame_t::header_bytes(shape_, rows)));
        const auto steps = [&](int of) {
            loop(steps_, div_up(of, k_step), [&] { step(); });
            add(params_, vec_bytes);
        };
        const bool short_blocks = block <= k_step; // the last one has codes for a whole step, too
        loop(blocks_, short_blocks ? blocks : rows / block, [&] { steps(block); });
        if (!short_blocks && rows % block) steps(rows % block);
    }

    void step() {
        const int starts = int(int8_row_t::starts_at(shape_.K) - int8_row_t::scales_at(shape_.K));
        if (held_.any()) held_.step(*this);
        for (int p = 0; p < group_ && !held_.any(); p++)
            for (int b = 0; b < step_bytes_; b += 64) prefetcht0(ptr[panel_at(p) + b + fetch_ahead_]);
        for (int r = 0; r < rows_; r++) {
            if (begins_at_zero())
                vpxord(sum(r, 0), sum(r, 0), sum(r, 0));
            else
                vpbroadcastd(sum(r, 0), ptr[scale_at_(r) + starts]);
            for (int p = 1; p < group_; p++) vmovdqa64(sum(r, p), sum(r, 0));
        }
        for (int k = 0; k < k_step; k += 4) {
            for (int p = 0; p < group_; p++) decoder_.decode(wei(p), panel_at(p), k);
            for (int r = 0; r < rows_; r++) {
                if (group_ == 1) {
                    vpdpbusd(sum(r, 0), wei(0), ptr_b[src_at_(r) + k]);
                    continue;
                }
                vpbroadcastd(src(), ptr[src_at_(r) + k]);
                for (int p = 0; p < group_; p++) vpdpbusd(sum(r, p), wei(p), src());
            }
        }
        add_scaled(starts);
        add(codes_, step_bytes_);
        src_at_.advance(*this, rows_, k_step);
        scale_at_.advance(*this, rows_, 4);
    }

    void add_scaled(int starts) {
        for (int p = 0; p < group_; p++) vmovaps(wei(p), ptr[params_ + p * param_bytes_]);
        for (int r = 0; r < rows_; r++) {
            if (has_zeros()) vcvtdq2ps(src(), ptr_b[scale_at_(r) + starts]);
            if (adds_zeros() && scales_blocks()) vmulps(src(), src(), ptr_b[scale_at_(r)]);
            for (int p = 0; p < group_; p++) {
                const Xbyak::Address zeros = ptr[params_ + p * param_bytes_ + kind_bytes_];
                vcvtdq2ps(sum(r, p), sum(r, p));
                if (has_zeros() && !adds_zeros()) vfmadd231ps(sum(r, p), src(), zeros);
                if (scales_blocks()) vmulps(sum(r, p), sum(r, p), ptr_b[scale_at_(r)]);
                vfmadd231ps(acc(r, p), sum(r, p), wei(p));
                if (adds_zeros()) vfmadd231ps(acc(r, p), src(), zeros);
            }
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_direct_int8(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<direct_int8_t>(name, kernel, reason, p, false);
}

status_t make_avx512_core_bf16_direct_int8_one_stream(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<direct_int8_t>(name, kernel, reason, p, true);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
