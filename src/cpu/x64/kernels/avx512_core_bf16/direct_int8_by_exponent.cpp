// SPDX-License-Identifier: Apache-2.0
// Direct kernels on vpdpbusd for Zen and weights whose scales are powers of two: one panel after the other.
// Sums are those of direct_int8.cpp. A step's sum is scaled once, by the sum of the exponents of both scales,
// which is exact unless the result is subnormal, as there.
//
// On Zen 4 dot products share two of four vector pipes with multiplications, while conversions, exponents,
// vscalefps and additions have the others. Half of the rows are scaled while the other half is multiplied, so
// that both kinds of pipes are busy: the scheduler could not look far enough ahead if all were scaled at the
// end of a step.
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/int8_row.hpp"
#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/int8_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::Zmm;

constexpr int vec_bytes = 64;
constexpr int dots = k_step / 4; // of a step, for each row

class direct_int8_by_exponent_t : public jit_base_t {
public:
    explicit direct_int8_by_exponent_t(const kernel_params_t &p)
        : rows_(p.rows), early_((p.rows + 1) / 2), panels_(p.panels), row_scaled_(p.row_scaled),
          fetch_ahead_(p.fetch_ahead), shape_(make_packed_shape(p.K, panel_columns, bits(p.wei_dt), p.quant)),
          unit_(int8_weights(p.wei_dt, p.quant).unit), decoder_(*this, p.wei_dt, p.quant, table_, flip_) {}

private:
    static int bits(data_type_t dt) { return data_type_info(dt)->bits; }

    // Rows [0, early_) are scaled while the others are multiplied. These are scaled in the next step.
    const int rows_, early_, panels_;
    const bool row_scaled_;
    const int fetch_ahead_;
    const packed_shape_t shape_;
    const float unit_; // the scale of every block, if row_scaled_
    const int step_bytes_ = k_step * panel_columns * int(shape_.bits) / 8;

    const Zmm table_{0}, flip_{1}, scale_{2}, temp_{3}; // scale_: exponents of the columns
    Zmm wei(int i) const { return Zmm(4 + i); }
    Zmm acc(int row) const { return Zmm(4 + dots + row); }
    Zmm sum(int row) const { return Zmm(4 + dots + rows_ + row); }
    // Exponents of a late row, which are needed when scale_ has those of the next step.
    Zmm late_scale(int row) const { return Zmm(4 + dots + 2 * rows_ + (row_scaled_ ? 0 : row - early_)); }
    int8_decoder_t decoder_;

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const row_addr_t scale_at_ = {
            {r15, rdi}, rax, rbx, r12, r13}; // of the source: scale of the current block
    const Reg64 codes_ = r8, params_ = rcx, steps_ = rdx, tiles_ = r14;

    // Stack: arguments, addresses of weights and sums of the panel, remaining panels.
    enum slot_t { args_slot = 0, wei_slot = 8, acc_slot = 16, panels_slot = 24, stack_bytes = 64 };
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
        Xbyak::Label again;
        L(again);
        panel();
        load_arg(rax, offsetof(direct_args_t, wei_stride));
        add(slot(wei_slot), rax);
        add(slot(acc_slot), panel_columns * int(sizeof(float)));
        dec(slot(panels_slot));
        jnz(again, T_NEAR);
        postamble();
    }

    void zero(const Zmm &z) { vpxord(z, z, z); }

    void panel() {
        mov(codes_, slot(wei_slot));
        load_arg(src_at_.base[0], offsetof(direct_args_t, src));
        load_arg(src_at_.stride, offsetof(direct_args_t, src_stride));
        lea(scale_at_.base[0], ptr[src_at_.base[0] + int(int8_row_t::scales_at(shape_.K))]);
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        scale_at_.set_second_base(*this, rows_);
        for (int r = 0; r < rows_; r++) zero(acc(r));
        // The first step adds zeros to the late rows.
        zero(scale_);
        for (int r = early_; r < rows_; r++) {
            zero(sum(r));
            zero(late_scale(r));
        }
        const int tile_rows = int(n16_frame_t::tile_rows(shape_));
        loop(tiles_, shape_.K / tile_rows, [&] { tile(tile_rows); });
        if (const int tail = int(shape_.K % tile_rows)) tile(tail);
        keep_scale();
        for (const op_t &op : finish_late()) op();
        store();
    }

    void tile(int rows) {
        mov(params_, codes_);
        add(codes_, int(n16_frame_t::header_bytes(shape_, rows)));
        loop(steps_, div_up(rows, k_step), [&] { step(); });
    }

    using op_t = std::function<void()>;
    using ops_t = std::vector<op_t>;

    void step() {
        for (int b = 0; b < step_bytes_; b += vec_bytes) prefetcht0(ptr[codes_ + b + fetch_ahead_]);
        load_scale();
        start(0, early_);
        multiply(0, early_, finish_late());
        start(early_, rows_);
        multiply(early_, rows_, finish_early());
        add(codes_, step_bytes_);
        src_at_.advance(*this, rows_, k_step);
        scale_at_.advance(*this, rows_, int(sizeof(float)));
    }

    // Converted before the products, as in direct_one_stream.cpp.
    void load_scale() {
        keep_scale();
        tile_params_t(*this, &temp_, k1).load_f32(mxdnn_e8m0, scale_, params_);
        vgetexpps(scale_, scale_);
        if (row_scaled_) vaddps(scale_, scale_, constant(std::log2(unit_)));
        add(params_, panel_columns);
    }

    // Late rows without exponents of their own need those of the columns when these are replaced.
    void keep_scale() {
        if (row_scaled_ && early_ < rows_) vmovaps(late_scale(early_), scale_);
    }

    void start(int first, int end) {
        const int starts = int(int8_row_t::starts_at(shape_.K) - int8_row_t::scales_at(shape_.K));
        for (int r = first; r < end; r++) vpbroadcastd(sum(r), ptr[scale_at_(r) + starts]);
    }

    // The dot products of some rows, with `beside` spread among them. The early rows decode.
    void multiply(int first, int end, const ops_t &beside) {
        size_t n = 0;
        const size_t all = size_t(dots * (end - first));
        for (int i = 0; i < dots; i++) {
            if (first == 0) decoder_.decode(wei(i), codes_, 4 * i);
            for (int r = first; r < end; r++) {
                vpdpbusd(sum(r), wei(i), ptr_b[src_at_(r) + 4 * i]);
                const size_t done = size_t(i * (end - first) + r - first + 1);
                for (; n < beside.size() * done / all; n++) beside[n]();
            }
        }
        for (; n < beside.size(); n++) beside[n]();
    }

    // What remains of a step's sums: conversion, scaling, adding to the results.
    ops_t finish_early() {
        ops_t ops;
        for (int r = 0; r < early_; r++) ops.push_back([=] { vcvtdq2ps(sum(r), sum(r)); });
        for (int r = 0; r < early_; r++) {
            if (!row_scaled_) {
                ops.push_back([=] { vgetexpps(temp_, ptr_b[scale_at_(r)]); });
                ops.push_back([=] { vaddps(temp_, temp_, scale_); });
            }
            ops.push_back([=] { vscalefps(sum(r), sum(r), row_scaled_ ? scale_ : temp_); });
        }
        for (int r = 0; r < early_; r++) ops.push_back([=] { vaddps(acc(r), acc(r), sum(r)); });
        for (int r = early_; r < rows_ && !row_scaled_; r++) {
            ops.push_back([=] { vgetexpps(late_scale(r), ptr_b[scale_at_(r)]); });
            ops.push_back([=] { vaddps(late_scale(r), late_scale(r), scale_); });
        }
        return ops;
    }
    ops_t finish_late() {
        ops_t ops;
        for (int r = early_; r < rows_; r++) ops.push_back([=] { vcvtdq2ps(sum(r), sum(r)); });
        for (int r = early_; r < rows_; r++) ops.push_back([=] { vscalefps(sum(r), sum(r), late_scale(r)); });
        for (int r = early_; r < rows_; r++) ops.push_back([=] { vaddps(acc(r), acc(r), sum(r)); });
        return ops;
    }

    void store() {
        const Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
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
