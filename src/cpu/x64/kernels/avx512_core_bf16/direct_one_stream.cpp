// SPDX-License-Identifier: Apache-2.0
// Direct kernels on vdpbf16ps for Zen: one stream of weights at a time, panel after panel. Sums as in
// direct.cpp: those of a row block on their own, then scaled in f32.
//
// Zen 4 has four vector pipes. Dot products, fused and other products, and saturating sums share two of
// them; permutes, shifts and additions have the others. So decoding takes no time beside three rows and more,
// and a sum is scaled by a power of two with vscalefps, which rounds only what becomes subnormal, and added
// with vaddps: an FMA would take the place of a dot product.
#include <cstddef>

#include "common/formats/format_list.hpp"
#include "common/layouts/n16.hpp"
#include "cpu/x64/jit/held_rows.hpp"
#include "cpu/x64/jit/row_addr.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/list.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/tile_params.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/vector.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Zmm;

constexpr int decoded_rows = 16; // rows of K that are decoded together
constexpr int held_lines = 3;    // of each row of the source that are read for so many rows of K
constexpr int latency = 8;       // number of sums that hides the latency of a dot product

class direct_one_stream_t : public jit_base_t {
public:
    explicit direct_one_stream_t(const kernel_params_t &p)
        : rows_(p.rows), panels_(p.panels), fetch_ahead_(p.fetch_ahead), quant_(p.quant),
          shape_(make_packed_shape(p.K, panel_columns, data_type_info(p.wei_dt)->bits, p.quant)) {
        pair_values_t v;
        v.wei_dt = p.wei_dt;
        v.beside_dots = true;
        v.exponent_shift = exponent_shift_of(p.wei_dt, quant_);
        decoder_ = make_pair_decoder(*this, v);
        plan();
    }

private:
    const int rows_, panels_, fetch_ahead_;
    const quant_t quant_;
    const packed_shape_t shape_;
    const int block_ = int(shape_.block);
    const int tile_rows_ = int(n16_frame_t::tile_rows(shape_));
    // Rows of K that are unrolled. With one or two rows of the source other work counts.
    const int step_rows_ = rows_ <= 2 && block_ % (2 * decoded_rows) == 0 ? 2 * decoded_rows : decoded_rows;
    const int decoded_bytes_ = decoded_rows * panel_columns * shape_.bits / 8;
    const held_rows_t held_{rows_, shape_.K * 2, held_lines *step_rows_ / decoded_rows};

    // --- registers ---

    int chains_ = 1; // chains of dependent dot products for each sum
    Zmm sum_[32], acc_[32], wei_[2], keep_, scale_, temp_;
    bool has_keep_ = false;
    std::unique_ptr<pair_decoder_t> decoder_;

    const Zmm &sum(int row, int chain) const { return sum_[row * chains_ + chain]; }

    // Scales that are powers of two are applied by other execution pipes than those of dot products, which
    // are the limit with a row or two.
    bool by_exponent() const { return quant_.scale_dt == mxdnn_e8m0 && rows_ > 2; }
    // Other scales are converted when they are needed.
    bool converts_tiles() const { return quant_.scale_dt == mxdnn_f8_e4m3; }

    void plan() {
        chains_ = rows_ == 1 ? 4 : rows_ < latency ? 2 : 1;
        zmm_pool_t pool;
        for (int i = 0; i < rows_ * chains_; i++) sum_[i] = pool.take();
        for (int i = 0; i < rows_; i++) acc_[i] = pool.take();
        for (int i = 0; i < decoder_->pairs(); i++) wei_[i] = pool.take();
        scale_ = pool.take();
        temp_ = pool.take();
        has_keep_ = decoder_->can_keep();
        if (has_keep_) keep_ = pool.take();
        decoder_->take_constants(pool, 0);
    }

    const row_addr_t src_at_ = {{rsi, r11}, rax, rbx, r12, r13};
    const Xbyak::Reg64 codes_ = r8;
    const Xbyak::Reg64 params_ = rcx;                             // scales of the current block
    const Xbyak::Reg64 tiles_ = rdx, blocks_ = r14, steps_ = r15; // remaining tiles and blocks

    // --- Stack: addresses of weights and sums of the panel, remaining panels, converted scales of a tile ---

    static constexpr int params_offset = 64;
    int stack_bytes() const {
        return params_offset
               + (converts_tiles() ? tile_params_t::room(int(div_up(tile_rows_, block_))) * vec_bytes : 0);
    }
    int param_bytes() const { return converts_tiles() ? vec_bytes : panel_columns * int(shape_.scale_bytes); }
    Xbyak::Address wei_slot() const { return qword[rsp]; }
    Xbyak::Address acc_slot() const { return qword[rsp + 8]; }
    Xbyak::Address panels_slot() const { return qword[rsp + 16]; }
    Xbyak::Address arg(size_t offset) const { return qword[abi_param + int(offset)]; }

    // --- code ---

    void generate() override {
        preamble(stack_bytes());
        decoder_->load_constants();
        tile_params_t(*this, sum_, k1).prepare(quant_.scale_dt, rax);
        for (const auto &[to, from] : {std::pair{wei_slot(), offsetof(direct_args_t, wei)},
                     std::pair{acc_slot(), offsetof(direct_args_t, acc)}}) {
            mov(rax, arg(from));
            mov(to, rax);
        }
        if (waits_for_weights()) fetch_next_pages();
        if (rows_ > 2) {
            mov(rax, arg(offsetof(direct_args_t, dst)));
            fetch_results(rax, arg(offsetof(direct_args_t, dst_stride)), rows_, panels_ * panel_columns);
        }
        if (held_.any())
            held_.begin(*this, arg(offsetof(direct_args_t, src)), arg(offsetof(direct_args_t, src_stride)));
        mov(panels_slot(), panels_);
        Xbyak::Label again;
        L(again);
        panel();
        mov(rax, arg(offsetof(direct_args_t, wei_stride)));
        add(wei_slot(), rax);
        add(acc_slot(), vec_bytes);
        dec(panels_slot());
        jnz(again, T_NEAR);
        postamble();
    }

    void zero(const Zmm &z) { vpxord(z, z, z); }

    // One or two rows wait for the weights all the time, many rows never do.
    bool waits_for_weights() const { return rows_ <= 2; }

    // Of all panels of this call but the first one, and of one more, the first of the next call.
    void fetch_next_pages() {
        mov(rax, wei_slot());
        add(rax, arg(offsetof(direct_args_t, wei_stride)));
        fetch_pages(rax, steps_, panels_ * n16_frame_t::panel_bytes(shape_));
    }

    void panel() {
        mov(codes_, wei_slot());
        mov(src_at_.base[0], arg(offsetof(direct_args_t, src)));
        mov(src_at_.stride, arg(offsetof(direct_args_t, src_stride)));
        src_at_.set_multiples(*this, rows_);
        src_at_.set_second_base(*this, rows_);
        for (int r = 0; r < rows_; r++) zero(acc_[r]);
        loop(tiles_, shape_.K / tile_rows_, [&] { tile(tile_rows_); });
        if (const int tail = int(shape_.K % tile_rows_)) tile(tail);
        store();
    }

    void tile(int rows) {
        if (converts_tiles()) {
            const Zmm temps[tile_params_t::temps] = {wei_[0], scale_, temp_, sum_[0]};
            tile_params_t(*this, temps, k1)
                    .to_f32(quant_.scale_dt, codes_, rsp + params_offset, int(div_up(rows, block_)));
            lea(params_, ptr[rsp + params_offset]);
        } else {
            mov(params_, codes_);
        }
        add(codes_, int(n16_frame_t::header_bytes(shape_, rows)));
        loop(blocks_, rows / block_, [&] { block(block_); });
        if (rows % block_) block(rows % block_);
    }

    void block(int rows) {
        load_scale();
        for (int i = 0; i < rows_ * chains_; i++) zero(sum_[i]);
        loop(steps_, div_up(rows, step_rows_), [&] { step(); });
        apply_scale();
    }

    // Where rows neither wait all the time nor never, it is better if weights come to the second-level cache
    // long before.
    void fetch(const Xbyak::RegExp &at) {
        const bool some_rows = !waits_for_weights() && rows_ <= 3 * shape_.bits / 2;
        prefetcht0(ptr[at + (some_rows ? fetch_ahead_ / 2 : fetch_ahead_)]);
        if (some_rows) prefetcht1(ptr[at + fetch_ahead_ * 8]);
    }

    void step() {
        const int halves = step_rows_ / decoded_rows;
        if (held_.any())
            held_.step(*this);
        else
            for (int b = 0; b < halves * decoded_bytes_; b += 64) fetch(codes_ + b);
        for (int h = 0; h < halves; h++) {
            const Xbyak::RegExp codes = codes_ + h * decoded_bytes_;
            for (int f = 0; f < decoder_->fetches(); f++) {
                decoder_->emit(f, {codes, codes /* nobody reads zero points */}, wei_, temp_,
                        has_keep_ ? &keep_ : nullptr);
                for (int i = 0; i < decoder_->pairs(); i++) {
                    const int pair = decoder_->pair(f, i), at = h * decoded_rows * 2 + pair * 4;
                    for (int r = 0; r < rows_; r++)
                        vdpbf16ps(sum(r, pair % chains_), wei_[i], ptr_b[src_at_(r) + at]);
                }
            }
        }
        add(codes_, halves * decoded_bytes_);
        src_at_.advance(*this, rows_, step_rows_ * 2);
    }

    // Done before the block is multiplied. Later it would wait for the dot products, and the next sums for
    // it.
    void load_scale() {
        if (converts_tiles())
            vmovaps(scale_, ptr[params_]);
        else
            tile_params_t(*this, &temp_, k1).load_f32(quant_.scale_dt, scale_, params_);
        if (by_exponent()) vgetexpps(scale_, scale_);
        add(params_, param_bytes());
    }

    // Adds the finished sums of a block to the result. A NaN scale gives NaN even if the sum is 0.
    void apply_scale() {
        for (int r = 0; r < rows_; r++) {
            for (int n = chains_ / 2; n > 0; n /= 2)
                for (int c = 0; c < n; c++) vaddps(sum(r, c), sum(r, c), sum(r, c + n));
            if (by_exponent()) {
                vscalefps(sum(r, 0), sum(r, 0), scale_);
                vaddps(acc_[r], acc_[r], sum(r, 0));
            } else {
                vfmadd231ps(acc_[r], sum(r, 0), scale_);
            }
        }
    }

    void store() {
        const Xbyak::Reg64 &dst = src_at_.base[0], &stride = src_at_.stride;
        mov(dst, acc_slot());
        mov(stride, arg(offsetof(direct_args_t, acc_stride)));
        for (int r = 0; r < rows_; r++) {
            vmovups(ptr[dst], acc_[r]);
            if (r + 1 < rows_) add(dst, stride);
        }
    }
};

} // namespace

status_t make_avx512_core_bf16_direct_one_stream(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<direct_one_stream_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
