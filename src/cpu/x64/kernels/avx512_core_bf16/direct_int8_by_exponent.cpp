// SPDX-License-Identifier: Apache-2.0
// Direct kernels on vpdpbusd for Zen and weights whose scales are powers of two: one panel after the other.
// Sums are those of direct_int8.cpp. A step's sum is scaled once, by the sum of the exponents of both scales,
// which is exact unless the result is subnormal, as there.
//
// On Zen 4 dot products share two of four vector pipes with multiplications, while additions have the others.
// So a sum s becomes s * 2^e by additions alone: 1.5 * 2^(23 + e) is a float whose last bit is worth 2^e, and
// adding s to its bits as to an integer adds s * 2^e, since |s| is below 2^22. Less that float, the rest is
// exact. This needs 1.5 * 2^(23 + e) to be a normal number. Tiles with scales for which it might not be, NaN
// among them, are scaled by vscalefps instead, and get the same bits.
#include <algorithm>
#include <cmath>
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
using Xbyak::Zmm;

constexpr int dots = k_step / 4;          // of a step, for each row
constexpr int tile_steps = 4;             // steps that share a header
constexpr int bias = 127;                 // of exponents
constexpr int most_exponent = 254;        // of a normal number, with its bias
constexpr float last_bit_one = 0x1.8p23f; // 1.5 * 2^23

class direct_int8_by_exponent_t : public jit_base_t {
public:
    explicit direct_int8_by_exponent_t(const kernel_params_t &p)
        : rows_(p.rows), panels_(p.panels), row_scaled_(p.row_scaled), fetch_ahead_(p.fetch_ahead),
          shape_(make_packed_shape(p.K, panel_columns, bits(p.wei_dt), p.quant)),
          unit_(int8_weights(p.wei_dt, p.quant).unit), decoder_(*this, p.wei_dt, p.quant, table_, flip_) {}

private:
    static int bits(data_type_t dt) { return data_type_info(dt)->bits; }

    const int rows_, panels_;
    const bool row_scaled_;
    const int fetch_ahead_;
    const packed_shape_t shape_;
    const float unit_; // the scale of every block, if row_scaled_
    const int step_bytes_ = k_step * panel_columns * int(shape_.bits) / 8;
    // Two rows and more wait less if weights are prefetched.
    const held_rows_t held_{rows_, rows_ == 1 ? shape_.K : 0, held_rows_t::lines_of_int8(shape_)};

    const Zmm table_{0}, flip_{1}, scale_{2}, temp_{3};
    Zmm wei(int i) const { return Zmm(4 + i % 2); }
    Zmm acc(int row) const { return Zmm(6 + row); }
    Zmm sum(int row) const { return Zmm(6 + rows_ + row); }
    // The float for a row: that of the columns, or scaled as the row's block is.
    Zmm row_float(int row) const { return row_scaled_ ? scale_ : Zmm(6 + 2 * rows_ + row); }
    int8_decoder_t decoder_;

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const row_addr_t scale_at_ = {
            {r15, rdi}, rax, rbx, r12, r13}; // of the source: scale of the current block
    const Reg64 codes_ = r8, params_ = rcx, steps_ = rdx, left_ = r14, fetch_ = r9;
    const Xbyak::Opmask always_{2}; // all ones: scales of the source are too small for additions

    // Stack: arguments, addresses of weights and sums of the panel, remaining panels, fetch_step; the least
    // scale of a column for which a tile is scaled by additions, and the difference of the largest one, in 64
    // bytes each.
    enum slot_t {
        args_slot = 0,
        wei_slot = 8,
        acc_slot = 16,
        panels_slot = 24,
        fetch_slot = 32,
        least_slot = 64,
        range_slot = 128,
        stack_bytes = 192
    };
    Xbyak::Address slot(slot_t s) const { return qword[rsp + int(s)]; }
    void load_arg(const Reg64 &r, size_t offset) {
        mov(r, slot(args_slot));
        mov(r, qword[r + int(offset)]);
    }

    void generate() override {
        preamble(stack_bytes);
        mov(slot(args_slot), abi_param);
        for (const auto &[to, from] : {std::pair{wei_slot, offsetof(direct_args_t, wei)},
                     std::pair{acc_slot, offsetof(direct_args_t, acc)}}) {
            load_arg(rax, from);
            mov(slot(to), rax);
        }
        mov(slot(panels_slot), panels_);
        decoder_.load_constants();
        load_arg(fetch_, offsetof(direct_args_t, fetch_step));
        mov(slot(fetch_slot), fetch_);
        load_arg(fetch_, offsetof(direct_args_t, fetch));
        load_arg(src_at_.stride, offsetof(direct_args_t, src_stride));
        src_at_.set_multiples(*this, rows_);
        limit_scales();
        fetch_next_pages();
        if (rows_ > 2) {
            load_arg(codes_, offsetof(direct_args_t, dst));
            load_arg(params_, offsetof(direct_args_t, dst_stride));
            fetch_results(codes_, params_, rows_, panels_ * panel_columns);
        }
        if (held_.any()) {
            mov(codes_, slot(args_slot));
            held_.begin(*this, qword[codes_ + int(offsetof(direct_args_t, src))],
                    qword[codes_ + int(offsetof(direct_args_t, src_stride))]);
        }
        Xbyak::Label again;
        L(again);
        panel();
        load_arg(params_, offsetof(direct_args_t, wei_stride));
        add(slot(wei_slot), params_);
        add(slot(acc_slot), panel_columns * int(sizeof(float)));
        dec(slot(panels_slot));
        jnz(again, T_NEAR);
        postamble();
    }

    void zero(const Zmm &z) { vpxord(z, z, z); }
    int scales_at() const { return int(int8_row_t::scales_at(shape_.K)); }
    int starts_behind_scales() const { return int(int8_row_t::starts_at(shape_.K)) - scales_at(); }

    void begin_rows() {
        load_arg(src_at_.base[0], offsetof(direct_args_t, src));
        lea(scale_at_.base[0], ptr[src_at_.base[0] + scales_at()]);
        src_at_.set_second_base(*this, rows_);
        scale_at_.set_second_base(*this, rows_);
    }

    // ---- which tiles are scaled by additions ----

    // With a biased exponent c of the column's scale and r of the row's (its unit included), that of the
    // float is c + r + at(). It has to be 1 to 254. r is at most that of unit_.
    static int at() { return 23 + bias - 2 * bias; }
    int exponent_of_unit() const { return int(bits_of(unit_) >> 23); }
    int most_scale() const { return most_exponent - exponent_of_unit() - at(); }

    void limit_scales() {
        kxorq(always_, always_, always_);
        const Xbyak::Reg32 &least = ecx, &below_one = edx;
        if (row_scaled_) {
            mov(least, std::max(1 - at() - exponent_of_unit(), 0));
        } else {
            farthest_below_one();
            vmovd(below_one, Xbyak::Xmm(temp_.getIdx()));
            Xbyak::Label normal;
            cmp(below_one, (bias - 1) << 23);
            jbe(normal);
            kxnorq(always_, always_, always_);
            L(normal);
            shr(below_one, 23); // r is bias less that
            xor_(least, least);
            sub(below_one, bias - 1 + at());
            cmovns(least, below_one);
        }
        vpbroadcastb(temp_, cl);
        vmovdqa64(ptr[rsp + int(least_slot)], temp_);
        neg(least);
        add(least, most_scale());
        vpbroadcastb(temp_, cl);
        vmovdqa64(ptr[rsp + int(range_slot)], temp_);
    }

    // The largest difference of the bits of 1 and of a scale of the rows. Scales are powers of two up to 1;
    // the difference is large for what is subnormal, 0 or NaN.
    void farthest_below_one() {
        begin_rows();
        const int64_t blocks = div_up(shape_.K, int8_row_t::block), vector = vec_bytes / sizeof(float);
        const Zmm &one = scale_, &other = sum(0);
        vmovdqa64(one, constant(1.f));
        zero(temp_);
        const auto see = [&](const Zmm &to) {
            for (int r = 0; r < rows_; r++) {
                vpsubd(to, one, ptr[scale_at_(r)]);
                vpmaxud(temp_, temp_, other);
            }
        };
        loop(steps_, blocks / vector, [&] {
            see(other);
            scale_at_.advance(*this, rows_, vec_bytes);
        });
        if (const int rest = int(blocks % vector)) {
            mov(edx, (1 << rest) - 1);
            kmovw(k1, edx);
            see(other | k1 | T_z);
        }
        for (const uint8_t lanes : {0x4e, 0xb1}) { // of 128 bits: the other half, the neighbour
            vshufi64x2(other, temp_, temp_, lanes);
            vpmaxud(temp_, temp_, other);
        }
        for (const uint8_t dwords : {0x4e, 0xb1}) {
            vpshufd(other, temp_, dwords);
            vpmaxud(temp_, temp_, other);
        }
    }

    // ---- products ----

    void panel() {
        mov(codes_, slot(wei_slot));
        begin_rows();
        for (int r = 0; r < rows_; r++) zero(acc(r));
        mov(left_, div_up(shape_.K, int64_t(k_step)));
        Xbyak::Label tile, slow, next;
        L(tile);
        mov(steps_, tile_steps);
        cmp(left_, steps_);
        cmovl(steps_, left_);
        mov(params_, codes_);
        fetch(params_);
        vmovdqu64(temp_, ptr[params_]); // the header; scales of steps that do not exist are 0
        vpsubb(temp_, temp_, ptr[rsp + int(least_slot)]);
        vpcmpub(k1, temp_, ptr[rsp + int(range_slot)], 6); // greater
        add(codes_, vec_bytes);
        kortestq(k1, always_);
        jnz(slow, T_NEAR);
        loop_down(steps_, [&] { step(true); });
        L(next);
        sub(left_, tile_steps);
        jg(tile, T_NEAR);
        Xbyak::Label done;
        store();
        jmp(done, T_NEAR);
        L(slow);
        loop_down(steps_, [&] { step(false); });
        jmp(next, T_NEAR);
        L(done);
    }

    // Of all panels of this call but the first one, and of one more, the first of the next call.
    void fetch_next_pages() {
        load_arg(codes_, offsetof(direct_args_t, wei_stride));
        mov(params_, slot(wei_slot));
        add(params_, codes_);
        fetch_pages(params_, steps_, panels_ * n16_frame_t::panel_bytes(shape_));
    }

    // It is better if weights come to the second-level cache long before. Beside a row that is held the
    // processor fetches them by itself.
    void fetch(const Xbyak::RegExp &at) {
        if (rows_ == 1) return;
        prefetcht0(ptr[at + fetch_ahead_ / 2]);
        prefetcht1(ptr[at + fetch_ahead_ * 8]);
    }

    void step(bool by_additions) {
        if (held_.any()) held_.step(*this);
        for (int b = 0; b < step_bytes_; b += vec_bytes) fetch(codes_ + b);
        prefetcht1(ptr[fetch_]);
        add(fetch_, slot(fetch_slot));
        by_additions ? load_float() : load_exponent();
        for (int r = 0; r < rows_; r++) {
            const Xbyak::RegExp start = scale_at_(r) + starts_behind_scales();
            if (!by_additions) {
                vpbroadcastd(sum(r), ptr[start]);
                continue;
            }
            if (!row_scaled_) vpaddd(row_float(r), scale_, ptr_b[scale_at_(r)]);
            vpaddd(sum(r), row_float(r), ptr_b[start]);
        }
        for (int i = 0; i < dots; i++) {
            decoder_.decode(wei(i), codes_, 4 * i);
            for (int r = 0; r < rows_; r++) vpdpbusd(sum(r), wei(i), ptr_b[src_at_(r) + 4 * i]);
        }
        for (int r = 0; r < rows_; r++) by_additions ? add_scaled(r) : add_scaled_by_exponent(r);
        add(codes_, step_bytes_);
        src_at_.advance(*this, rows_, k_step);
        scale_at_.advance(*this, rows_, int(sizeof(float)));
    }

    // The float for columns: that of a row has the exponent of its scale added.
    void load_float() {
        const uint32_t unscaled =
                bits_of(last_bit_one) - (uint32_t(bias) << 23)
                - (row_scaled_ ? uint32_t(bias - exponent_of_unit()) << 23 : uint32_t(bias) << 23);
        vpmovzxbd(scale_, ptr[params_]);
        vpslld(scale_, scale_, 23);
        vpaddd(scale_, scale_, constant(unscaled));
        add(params_, panel_columns);
    }
    void add_scaled(int r) {
        vsubps(sum(r), sum(r), row_float(r));
        vaddps(acc(r), acc(r), sum(r));
    }

    void load_exponent() {
        tile_params_t(*this, &temp_, k1).load_f32(mxdnn_e8m0, scale_, params_);
        vgetexpps(scale_, scale_);
        if (row_scaled_) vaddps(scale_, scale_, constant(std::log2(unit_)));
        add(params_, panel_columns);
    }
    void add_scaled_by_exponent(int r) {
        vcvtdq2ps(sum(r), sum(r));
        if (!row_scaled_) {
            vgetexpps(temp_, ptr_b[scale_at_(r)]);
            vaddps(temp_, temp_, scale_);
        }
        vscalefps(sum(r), sum(r), row_scaled_ ? scale_ : temp_);
        vaddps(acc(r), acc(r), sum(r));
    }

    void store() {
        const Reg64 &dst = codes_, &stride = params_;
        mov(dst, slot(acc_slot));
        load_arg(stride, offsetof(direct_args_t, acc_stride));
        for (int r = 0; r < rows_; r++) {
            vmovups(ptr[dst], acc(r));
            if (r + 1 < rows_) add(dst, stride);
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_direct_int8_by_exponent(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<direct_int8_by_exponent_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
