// SPDX-License-Identifier: Apache-2.0
// Direct kernels on vdpbf16ps: a few rows of source times packed weights. The dot product of every
// row block is summed on its own, then multiplied by the block's scale in f32, so weights are
// exact, and codes are never scaled.
//
// vdpbf16ps takes subnormal bf16 numbers for zero and flushes subnormal sums to zero. No value of
// a code is subnormal, so what is lost is source values below 2^-126 and, per block and step,
// sums below 2^-126 before they are scaled.
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::RegExp;
using Xbyak::Zmm;

constexpr int step_rows = 16; // rows of K that are unrolled; more take longer to generate, not less to run

class direct_t : public jit_base_t {
public:
    explicit direct_t(const kernel_params_t &p)
        : rows_(p.rows), quant_(p.quant), shape_(shape_of(p)), panels_(p.panels),
          prefetch_ahead_(p.fetch_ahead ? p.fetch_ahead : prefetch_ahead()) {
        pair_values_t v;
        v.wei_dt = p.wei_dt;
        v.beside_dots = true;
        v.zero_points = byte_zero_points();
        v.subtract = code_of_added(quant_.zp);
        v.exponent_shift = exponent_shift_of(p.wei_dt, quant_);
        decoder_ = make_pair_decoder(*this, v);
        plan();
    }

private:
    static packed_shape_t shape_of(const kernel_params_t &p) {
        const int64_t any_n = panel_columns;
        return make_packed_shape(p.K, any_n, data_type_info(p.wei_dt)->bits, p.quant);
    }
    bool byte_zero_points() const { return quant_.zp == zero_point_kind_t::u8; }
    bool adds_zeros() const { return is_added(quant_.zp); }

    // --- Sizes, all known when code is generated ---

    const int rows_;
    const quant_t quant_;
    const packed_shape_t shape_;
    const int panels_;
    const int block_ = int(shape_.block);
    const int tile_rows_ = int(n16_frame_t::tile_rows(shape_));
    const int step_bytes_ = step_rows * panel_columns * shape_.bits / 8;
    const int tail_rows_ = int(shape_.K % tile_rows_); // rows of a partial last tile
    // About a thousand cycles ahead. Hardware prefetching stops at the end of a page and is late with several
    // streams. Data that is fetched too early has left the first-level cache again.
    int prefetch_ahead() const {
        return int(n16_frame_t::tile_bytes(shape_, n16_frame_t::tile_rows(shape_))) / (rows_ <= 2 ? 2 : 4);
    }
    const int prefetch_ahead_;
    int header_bytes(int rows) const { return int(n16_frame_t::header_bytes(shape_, rows)); }
    int blocks(int rows) const { return int(div_up(rows, block_)); }
    int steps(int rows) const { return int(div_up(rows, step_rows)); } // there are codes for whole steps

    // --- registers ---

    // Panels that are processed together. A call with more panels processes one group after the other.
    int group_ = 1;
    int parts_ = 1; // chains of sums per row and panel
    bool acc_in_regs_ = false;
    Zmm part_[32], acc_[32], wei_[8], keep_[4], temp_, src_;
    Zmm temps_[tile_params_t::temps]; // outside the inner loop
    bool has_keep_ = false;
    std::unique_ptr<pair_decoder_t> decoder_;

    const Zmm &part(int row, int panel, int chain) const {
        return part_[(row * group_ + panel) * parts_ + chain];
    }
    const Zmm &acc(int row, int panel) const { return acc_[row * group_ + panel]; }
    const Zmm &wei(int panel, int i) const { return wei_[panel * decoder_->pairs() + i]; }

    void plan() {
        // Few sums are few chains of dependent dot products. Two chains for each sum hide their latency. This
        // does not depend on the number of panels, which must not change results.
        parts_ = rows_ <= 2 ? 2 : 1;
        for (group_ = 4; group_ > 1; group_ /= 2)
            if (panels_ % group_ == 0 && needed(group_) <= 32) break;
        const int sums = rows_ * group_;

        zmm_pool_t pool;
        for (int i = 0; i < sums * parts_; i++) part_[i] = pool.take();
        for (int i = 0; i < group_ * decoder_->pairs(); i++) wei_[i] = pool.take();
        if (needs_temp()) temp_ = pool.take();
        if (group_ > 1) src_ = pool.take();
        acc_in_regs_ = pool.left() >= sums + decoder_->required_constants() + 1;
        const int spare = acc_in_regs_ ? sums : 0;
        decoder_->take_constants(pool, spare + (decoder_->can_keep() ? group_ : 0));
        has_keep_ = decoder_->can_keep() && pool.left() >= spare + group_;
        if (has_keep_)
            for (int i = 0; i < group_; i++) keep_[i] = pool.take();
        if (acc_in_regs_)
            for (int i = 0; i < sums; i++) acc_[i] = pool.take();
        decoder_->take_constants(pool, 0);

        // Converting the scales of a tile may overwrite registers whose contents are needed within one block
        // only.
        int n = 0;
        const auto reuse = [&](const Zmm &z) {
            if (n < tile_params_t::temps) temps_[n++] = z;
        };
        for (int i = 0; i < sums * parts_; i++) reuse(part_[i]);
        for (int i = 0; i < group_ * decoder_->pairs(); i++) reuse(wei_[i]);
        while (n < tile_params_t::temps) reuse(pool.take());
    }
    bool needs_temp() const { return decoder_->has_temp() || byte_zero_points(); }
    int needed(int group) const {
        return rows_ * group * parts_ + group * decoder_->pairs() + needs_temp() + (group > 1)
               + decoder_->required_constants();
    }

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const Xbyak::Reg64 codes_ = r8; // address of the next codes, or of the header of the next tile
    const Xbyak::Reg64 wei_stride_ = r9, wei_stride3_ = r10;
    const Xbyak::Reg64 params_ = rcx;                             // of the current block
    const Xbyak::Reg64 tiles_ = rdx, blocks_ = r14, steps_ = r15; // remaining tiles and blocks

    RegExp panel_at(const Xbyak::Reg64 &base, int panel) const {
        switch (panel) {
        case 0: return base;
        case 1: return base + wei_stride_;
        case 2: return base + wei_stride_ * 2;
        default: return base + wei_stride3_;
        }
    }

    // --- Stack: rarely used data, sums without a register, converted parameters of a tile ---

    enum param_kind_t { scales, zero_points, rest_of_zero_points };
    const int param_kinds_ = byte_zero_points() ? 3 : 1;
    const int param_bytes_ = tile_params_t::room(blocks(tile_rows_)) * vec_bytes; // of one kind and one panel
    int acc_offset() const { return 64; }
    int params_offset() const { return acc_offset() + (acc_in_regs_ ? 0 : rows_ * group_ * vec_bytes); }
    int stack_bytes() const { return params_offset() + group_ * param_kinds_ * param_bytes_; }

    Xbyak::Address acc_mem(int row, int panel) const {
        return ptr[rsp + acc_offset() + (row * group_ + panel) * vec_bytes];
    }
    RegExp params_of(const RegExp &first, int panel, param_kind_t kind) const {
        return first + (panel * param_kinds_ + int(kind)) * param_bytes_;
    }
    RegExp tile_params(int panel, param_kind_t kind) const {
        return params_of(rsp + params_offset(), panel, kind);
    }
    RegExp block_params(int panel, param_kind_t kind) const { return params_of(params_, panel, kind); }
    // Addresses of weights and sums of the current group, number of remaining groups.
    Xbyak::Address wei_slot() const { return qword[rsp]; }
    Xbyak::Address acc_slot() const { return qword[rsp + 8]; }
    Xbyak::Address groups_slot() const { return qword[rsp + 16]; }

    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    // --- code ---

    void generate() override {
        preamble(stack_bytes());
        mov(wei_stride_, arg(offsetof(direct_args_t, wei_stride)));
        if (group_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        decoder_->load_constants();
        tile_params_t(*this, temps_, k1).prepare(quant_.scale_dt, rax);

        if (panels_ == group_) {
            group();
        } else {
            mov(rax, arg(offsetof(direct_args_t, wei)));
            mov(wei_slot(), rax);
            mov(rax, arg(offsetof(direct_args_t, acc)));
            mov(acc_slot(), rax);
            mov(groups_slot(), panels_ / group_);
            Xbyak::Label again;
            L(again);
            group();
            lea(rax, ptr[wei_stride_ * group_]);
            add(wei_slot(), rax);
            add(acc_slot(), group_ * vec_bytes);
            dec(groups_slot());
            jnz(again, T_NEAR);
        }
        postamble();
    }

    void load_wei(const Xbyak::Reg64 &r) {
        mov(r, panels_ == group_ ? arg(offsetof(direct_args_t, wei)) : wei_slot());
    }

    void group() {
        load_wei(codes_);
        mov(src_at_.base[0], arg(offsetof(direct_args_t, src)));
        mov(src_at_.stride, arg(offsetof(direct_args_t, src_stride)));
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        zero_acc();
        tiles();
        if (adds_zeros()) add_zeros();
        store();
    }

    void zero(const Zmm &z) { vpxord(z, z, z); }

    void zero_acc() {
        if (!acc_in_regs_) zero(part_[0]);
        for (int r = 0; r < rows_; r++)
            for (int p = 0; p < group_; p++) {
                if (acc_in_regs_)
                    zero(acc(r, p));
                else
                    vmovaps(acc_mem(r, p), part_[0]);
            }
    }

    // The last tile has the remaining rows. The code that multiplies is the same.
    void tiles() {
        const int64_t whole = shape_.K / tile_rows_;
        Xbyak::Label again, tail, codes, large;
        mov(tiles_, whole + (tail_rows_ > 0));
        align(16);
        L(again);
        if (whole && tail_rows_) {
            cmp(tiles_, 1);
            je(tail, T_NEAR);
        }
        if (whole) begin_tile(tile_rows_, large);
        if (whole && tail_rows_) {
            jmp(codes, T_NEAR);
            L(tail);
        }
        if (tail_rows_) begin_tile(tail_rows_, large);
        L(codes);
        codes_of_tile(false);
        dec(tiles_);
        jnz(again, T_NEAR);
        if (!byte_zero_points()) return;
        Xbyak::Label done;
        jmp(done, T_NEAR);
        L(large);
        codes_of_tile(true);
        dec(tiles_);
        jnz(again, T_NEAR);
        L(done);
    }

    // Converts the parameters of a tile, sets the address of its codes and counts its blocks. Jumps to
    // `large` if a zero point is above 15, because the decoder does not take these. Encoders do not produce
    // them, but the type has them.
    void begin_tile(int rows, Xbyak::Label &large) {
        const int n = blocks(rows);
        tile_params_t convert(*this, temps_, k1);
        for (int p = 0; p < group_; p++)
            convert.to_f32(quant_.scale_dt, panel_at(codes_, p), tile_params(p, scales), n);
        const auto first_codes = [&] {
            fetch_ahead(header_bytes(tile_rows_));
            add(codes_, header_bytes(rows));
            lea(params_, ptr[rsp + params_offset()]);
            mov(blocks_, n);
        };
        if (!byte_zero_points()) return first_codes();

        Xbyak::Label small;
        zero(temps_[3]);
        for_zero_points(n, [&](const RegExp &dst) { small_zero_points(dst); });
        vptestmd(k2, temps_[3], temps_[3]);
        kortestw(k2, k2);
        jz(small, T_NEAR);
        for_zero_points(n, [&](const RegExp &dst) { large_zero_points(dst); });
        first_codes();
        jmp(large, T_NEAR);
        L(small);
        first_codes();
    }

    // Calls f(address for the block's parameters of kind 0). temps_[0] has the zero points of the block as
    // dwords, temps_[1] the same limited to 15.
    template <typename F>
    void for_zero_points(int n, F f) {
        const uint32_t highest = 15;
        const int first = n * panel_columns * shape_.scale_bytes;
        for (int p = 0; p < group_; p++)
            for (int b = 0; b < n; b++) {
                vpmovzxbd(temps_[0], ptr[panel_at(codes_, p) + first + b * panel_columns]);
                vpminud(temps_[1], temps_[0], constant(highest));
                f(tile_params(p, scales) + b * vec_bytes);
            }
    }
    // 16 - zero point, in all bytes of a dword. temps_[3] collects zero points above 15.
    void small_zero_points(const RegExp &dst) {
        const uint32_t base = 16;
        uint8_t low_bytes[16];
        for (int i = 0; i < 16; i++) low_bytes[i] = uint8_t(i / 4 * 4);
        vpsubd(temps_[0], temps_[0], temps_[1]);
        vpord(temps_[3], temps_[3], temps_[0]);
        vmovdqa64(temps_[2], constant(base));
        vpsubd(temps_[2], temps_[2], temps_[1]);
        vpshufb(temps_[2], temps_[2], constant(low_bytes, sizeof(low_bytes)));
        vmovdqa64(ptr[dst + int(zero_points) * param_bytes_], temps_[2]);
    }
    // Zero points that the decoder does not subtract.
    void large_zero_points(const RegExp &dst) {
        vpsubd(temps_[0], temps_[0], temps_[1]);
        vcvtdq2ps(temps_[0], temps_[0]);
        vmovaps(ptr[dst + int(rest_of_zero_points) * param_bytes_], temps_[0]);
    }

    void codes_of_tile(bool large) {
        const int n = steps(block_), last = block_ > k_step ? steps(int(shape_.K % block_)) : 0;
        loop_down(blocks_, [&] {
            zero_parts();
            if (n > 1) {
                if (last) lea(steps_, ptr[tiles_ + blocks_]);
                if (last) cmp(steps_, 2); // the last block of the last tile
                mov(steps_, n);
                Xbyak::Label whole;
                if (last) jne(whole);
                if (last) mov(steps_, last);
                L(whole);
                loop_down(steps_, [&] { step(large); });
            } else {
                step(large);
            }
            scale();
            add(params_, vec_bytes);
        });
    }
    void zero_parts() {
        for (int i = 0; i < rows_ * group_ * parts_; i++) zero(part_[i]);
    }

    // Prefetches what is so far ahead of the bytes that are being read.
    void fetch_ahead(int bytes) {
        for (int p = 0; p < group_; p++)
            for (int b = 0; b < bytes; b += 64) prefetcht0(ptr[panel_at(codes_, p) + b + prefetch_ahead_]);
    }

    // Sixteen rows of the weights.
    void step(bool large) {
        fetch_ahead(step_bytes_);
        for (int f = 0; f < decoder_->fetches(); f++) {
            for (int p = 0; p < group_; p++)
                decoder_->emit(f, {panel_at(codes_, p), block_params(p, zero_points)}, &wei(p, 0), temp_,
                        has_keep_ ? &keep_[p] : nullptr);
            for (int p = 0; large && p < group_; p++)
                for (int i = 0; i < decoder_->pairs(); i++) subtract_rest(p, wei(p, i));
            for (int i = 0; i < decoder_->pairs(); i++) dot(f, i);
        }
        add(codes_, step_bytes_);
        src_at_.advance(*this, rows_, step_rows * 2);
    }
    // Computes the pair in f32, where the difference is exact, as it is in bf16. It must be one number before
    // it is multiplied: with an Inf in the source, products of its parts would give NaN.
    void subtract_rest(int panel, const Zmm &w) {
        const uint32_t high = 0xffff0000;
        const Xbyak::Address rest = ptr[block_params(panel, rest_of_zero_points)];
        vpslld(temp_, w, 16);
        vpandd(w, w, constant(high));
        vsubps(temp_, temp_, rest);
        vsubps(w, w, rest);
        vpsrld(temp_, temp_, 16);
        vpord(w, w, temp_);
    }
    // Pair i of the fetch, of every panel.
    void dot(int fetch, int i) {
        const int pair = decoder_->pair(fetch, i);
        const int chain = parts_ > 1 ? pair % 2 : 0;
        for (int r = 0; r < rows_; r++) {
            const RegExp src = src_at_(r) + pair * 4;
            if (group_ == 1) {
                vdpbf16ps(part(r, 0, chain), wei(0, i), ptr_b[src]);
                continue;
            }
            vpbroadcastd(src_, ptr[src]);
            for (int p = 0; p < group_; p++) vdpbf16ps(part(r, p, chain), wei(p, i), src_);
        }
    }

    // Adds the finished sums of a block to the result. A NaN scale gives NaN even if the sum is 0.
    void scale() {
        for (int p = 0; p < group_; p++) {
            const Xbyak::Address s = ptr[block_params(p, scales)];
            if (rows_ > 1) vmovaps(wei(p, 0), s);
            for (int r = 0; r < rows_; r++) {
                const Zmm &sum = part(r, p, 0);
                if (parts_ > 1) vaddps(sum, sum, part(r, p, 1));
                if (acc_in_regs_) {
                    if (rows_ > 1)
                        vfmadd231ps(acc(r, p), sum, wei(p, 0));
                    else
                        vfmadd231ps(acc(r, p), sum, s);
                } else {
                    vfmadd213ps(sum, wei(p, 0), acc_mem(r, p));
                    vmovaps(acc_mem(r, p), sum);
                }
            }
        }
    }

    // Added zeros contribute zero * (sum of the block's source).
    void add_zeros() {
        load_wei(codes_);
        mov(src_at_.base[0], arg(offsetof(direct_args_t, xsum)));
        mov(src_at_.stride, arg(offsetof(direct_args_t, xsum_stride)));
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        tile_params_t convert(*this, temps_, k1);
        const Zmm &sum = temps_[2], &zeros = temps_[3];
        const auto tile = [&](int rows) {
            const int n = blocks(rows);
            const int first = n * panel_columns * shape_.scale_bytes;
            for (int p = 0; p < group_; p++)
                for (int b = 0; b < n; b++) {
                    convert.load_f32(quant_.zp_dt, zeros,
                            panel_at(codes_, p) + first + b * panel_columns * shape_.zp_bytes);
                    for (int r = 0; r < rows_; r++) {
                        const Xbyak::Address x = ptr_b[src_at_(r) + b * 4];
                        if (acc_in_regs_) {
                            vfmadd231ps(acc(r, p), zeros, x);
                        } else {
                            vmovaps(sum, acc_mem(r, p));
                            vfmadd231ps(sum, zeros, x);
                            vmovaps(acc_mem(r, p), sum);
                        }
                    }
                }
            add(codes_, int(n16_frame_t::tile_bytes(shape_, rows)));
            src_at_.advance(*this, rows_, n * 4);
        };
        loop(tiles_, shape_.K / tile_rows_, [&] { tile(tile_rows_); });
        if (tail_rows_) tile(tail_rows_);
    }

    void store() {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        mov(dst, panels_ == group_ ? arg(offsetof(direct_args_t, acc)) : acc_slot());
        mov(stride, arg(offsetof(direct_args_t, acc_stride)));
        for (int r = 0; r < rows_; r++) {
            for (int p = 0; p < group_; p++) {
                if (!acc_in_regs_) vmovaps(part_[0], acc_mem(r, p));
                vmovups(ptr[dst + p * vec_bytes], acc_in_regs_ ? acc(r, p) : part_[0]);
            }
            if (r + 1 < rows_) add(dst, stride);
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_direct(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<direct_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
