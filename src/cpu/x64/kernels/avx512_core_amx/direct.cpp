// SPDX-License-Identifier: Apache-2.0
// Direct kernels on AMX tiles: up to 32 rows of source times packed weights. Vector instructions
// decode 32 rows of a panel into a small ring in the first-level cache while tiles multiply what
// was decoded a little earlier; the sums stay in tiles for the whole of K. With fewer rows
// configured, tile instructions take less time, so that one row runs at the speed of decoding.
//
// A sum is one chain of additions along k, whatever the number of panels or rows. tdpbf16ps takes
// subnormal numbers for zero and flushes subnormal sums to zero.
#include <cstddef>

#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Tmm;
using Xbyak::Zmm;

constexpr int sum_tiles = 4;

class amx_direct_t : public jit_base_t {
public:
    explicit amx_direct_t(const kernel_params_t &p)
        : panels_(p.panels), halves_(p.rows > amx_tile_rows ? 2 : 1),
          group_(std::min(p.panels, sum_tiles / halves_)), decoder_(*this, p) {
        zmm_pool_t pool;
        decoder_.take_registers(pool);
    }

private:
    const int panels_;
    const int halves_; // tiles of source rows
    const int group_;  // panels that are walked at once
    panel_decoder_t decoder_;
    const packed_shape_t &shape_ = decoder_.shape();
    const int64_t whole_tiles_ = shape_.K / decoder_.tile_rows();
    const int tail_rows_ = int(shape_.K % decoder_.tile_rows());
    const int64_t tile_bytes_ = n16_frame_t::tile_bytes(shape_, decoder_.tile_rows());

    // Units (a step of one panel) that are decoded before one is multiplied: stores take a while to
    // arrive in the cache, and loads of a tile are not served from the store buffer. With two tiles of rows
    // a unit's products take that long.
    const int lag_ = halves_ == 2 ? 1 : 3, ring_tiles_ = lag_ + 1;

    static Tmm wei(int panel) { return Tmm(sum_tiles + 2 + panel % 2); }
    static Tmm src(int half) { return Tmm(sum_tiles + half); }
    Tmm sum(int half, int panel) const { return Tmm(half * group_ + panel); }

    const Reg64 src_ = rsi, src_stride_ = rax, src16_ = r11, codes_ = r8, wei_stride_ = r9,
                wei_stride3_ = r10;
    const Reg64 row_bytes_ = rcx, tiles_ = rdx, temp_ = r15;
    const Reg64 params_ = r12, steps_ = r13; // in the slow way
    const Reg64 groups_ = r14, acc_ = rbx;
    const Reg64 ahead_ = rdi; // the first panel's codes that are fetched into the cache

    // Stack: tile configuration, arguments, ring, converted parameters of the panels.
    static constexpr int args_offset = 64, ring_offset = 128;
    const int params_offset_ = ring_offset + ring_tiles_ * amx_tile_bytes;
    int stack_bytes() const { return params_offset_ + group_ * decoder_.param_bytes(); }
    RegExp tile_params(int panel) const { return rsp + params_offset_ + panel * decoder_.param_bytes(); }
    // Where a unit is decoded to.
    RegExp unit_at(int step, int panel) const {
        return rsp + ring_offset + (step * group_ + panel) % ring_tiles_ * amx_tile_bytes;
    }

    void load_arg(const Reg64 &r, size_t offset) {
        mov(r, qword[rsp + args_offset]);
        mov(r, qword[r + int(offset)]);
    }
    RegExp panel_at(const Reg64 &base, int panel) const {
        switch (panel) {
        case 0: return base;
        case 1: return base + wei_stride_;
        case 2: return base + wei_stride_ * 2;
        default: return base + wei_stride3_;
        }
    }

    void generate() override {
        preamble(stack_bytes());
        mov(qword[rsp + args_offset], abi_param);
        configure();
        decoder_.load_constants(rax);
        load_arg(src_stride_, offsetof(direct_args_t, src_stride));
        load_arg(wei_stride_, offsetof(direct_args_t, wei_stride));
        if (group_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        mov(row_bytes_, amx_row_bytes);
        load_arg(codes_, offsetof(direct_args_t, wei));
        load_arg(acc_, offsetof(direct_args_t, acc));
        loop(groups_, panels_ / group_, [&] {
            group();
            if (panels_ == group_) return;
            // From the end of this group's first panel to the next group's.
            lea(temp_, ptr[wei_stride_ * group_]);
            add(codes_, temp_);
            mov(temp_, n16_frame_t::panel_bytes(shape_));
            sub(codes_, temp_);
            add(acc_, group_ * amx_row_bytes);
        });
        tilerelease();
        postamble();
    }

    // The last half has the rows that are left.
    void configure() {
        const tile_config_t whole = whole_tiles();
        const int last = halves_ - 1;
        const auto rows_of = [&](const Tmm &t) {
            return byte[rsp + int(offsetof(tile_config_t, rows)) + t.getIdx()];
        };
        vmovdqa64(Zmm(0), constant(&whole, sizeof(whole)));
        vmovdqa64(ptr[rsp], Zmm(0));
        load_arg(temp_, offsetof(direct_args_t, rows));
        if (last) sub(temp_, last * amx_tile_rows);
        mov(rows_of(src(last)), temp_.cvt8());
        for (int p = 0; p < group_; p++) mov(rows_of(sum(last, p)), temp_.cvt8());
        ldtilecfg(ptr[rsp]);
    }

    void group() {
        load_arg(src_, offsetof(direct_args_t, src));
        if (halves_ == 2) below(src16_, src_, src_stride_);
        for (int i = 0; i < halves_ * group_; i++) tilezero(Tmm(i));
        loop(tiles_, whole_tiles_, [&] { tile(decoder_.tile_rows()); });
        if (tail_rows_) tile(tail_rows_);
        load_arg(temp_, offsetof(direct_args_t, acc_stride));
        for (int h = 0; h < halves_; h++) {
            if (h) below(src16_, acc_, temp_);
            for (int p = 0; p < group_; p++)
                tilestored(ptr[(h ? src16_ : acc_) + temp_ + p * amx_row_bytes], sum(h, p));
        }
    }
    // d = base + a tile's rows
    void below(const Reg64 &d, const Reg64 &base, const Reg64 &stride) {
        mov(d, stride);
        shl(d, 4);
        add(d, base);
    }

    void tile(int rows) {
        look_ahead(rows);
        Xbyak::Label slow, done;
        if (decoder_.has_fast()) {
            for (int p = 0; p < group_; p++) decoder_.check(panel_at(codes_, p), rows, slow, temp_);
            fast_tile(rows);
            jmp(done, T_NEAR);
            L(slow);
        }
        slow_tile(rows);
        L(done);
    }

    // A tile ahead; in the last tile the first of the next group of panels, which the next call
    // starts with if not this one.
    void look_ahead(int rows) {
        const int64_t last_tile = whole_tiles_ - (tail_rows_ == 0);
        const int64_t to_next = group_ * n16_frame_t::panel_bytes(shape_) - last_tile * tile_bytes_;
        const bool in_loop = rows != tail_rows_ && whole_tiles_ > 1;
        const bool last = rows == tail_rows_ || (!tail_rows_ && !in_loop);
        mov(ahead_, last ? to_next : tile_bytes_);
        if (in_loop && !tail_rows_) {
            mov(temp_, to_next);
            cmp(tiles_, 1);
            cmove(ahead_, temp_);
        }
        add(ahead_, codes_);
    }

    void convert(int rows, bool fast) {
        for (int p = 0; p < group_; p++) decoder_.convert(panel_at(codes_, p), tile_params(p), rows, fast);
    }

    // Straight code: decoding runs `lag_` units ahead.
    void fast_tile(int rows) {
        convert(rows, true);
        const int header = decoder_.header_bytes(rows), steps = int(div_up(rows, k_step));
        const int units = steps * group_;
        for (int u = 0; u < units + lag_; u++) {
            if (u < units) {
                const int step = u / group_, panel = u % group_, at = step * 2 * decoder_.half_bytes();
                prefetch(panel_at(ahead_, panel) + at, panel == 0 && step == 0);
                decode(tile_params(panel) + step * k_step / int(shape_.block) * 64,
                        panel_at(codes_, panel) + header + at, unit_at(step, panel), rows - step * k_step,
                        true);
            }
            if (u >= lag_) multiply((u - lag_) / group_, (u - lag_) % group_);
        }
        add(codes_, int(n16_frame_t::tile_bytes(shape_, rows)));
        next_steps(steps);
    }

    // Scales out of the ordinary, and formats without a fast way: a loop over the steps.
    void slow_tile(int rows) {
        convert(rows, false);
        add(codes_, decoder_.header_bytes(rows));
        lea(params_, ptr[tile_params(0)]);
        const auto step = [&](int step_rows) {
            for (int p = 0; p < group_; p++) {
                prefetch(panel_at(ahead_, p), false);
                decode(params_ + p * decoder_.param_bytes(), panel_at(codes_, p), unit_at(0, p), step_rows,
                        false);
            }
            for (int p = 0; p < group_; p++) multiply(0, p);
            add(params_, (1 + decoder_.two_blocks()) * 64);
            add(codes_, 2 * decoder_.half_bytes());
            add(ahead_, 2 * decoder_.half_bytes());
            next_steps(1);
        };
        loop(steps_, rows / k_step, [&] { step(k_step); });
        if (rows % k_step) step(rows % k_step);
    }

    void next_steps(int steps) {
        add(src_, steps * amx_row_bytes);
        if (halves_ == 2) add(src16_, steps * amx_row_bytes);
    }

    // What a unit reads; the header goes with the first one.
    void prefetch(const RegExp &at, bool first) {
        const int header = decoder_.header_bytes(decoder_.tile_rows());
        for (int b = 0; b < 2 * decoder_.half_bytes(); b += 64) prefetcht0(ptr[at + header + b]);
        for (int b = 0; first && b < header; b += 64)
            for (int p = 0; p < group_; p++) prefetcht0(ptr[panel_at(ahead_, p) + b]);
    }

    // A step of a panel; `params` of its first block.
    void decode(const RegExp &params, const RegExp &codes, const RegExp &to, int rows, bool fast) {
        for (int half = 0; half < 2; half++) {
            if (half == 0 || decoder_.two_blocks()) decoder_.load_params(params + half * 64, fast);
            decoder_.half_step(codes + half * decoder_.half_bytes(), to + half * amx_tile_bytes / 2,
                    rows - half * k_step / 2, fast);
        }
    }

    void multiply(int step, int panel) {
        for (int h = 0; panel == 0 && h < halves_; h++)
            tileloadd(src(h), ptr[(h ? src16_ : src_) + src_stride_ + step * amx_row_bytes]);
        tileloadd(wei(panel), ptr[unit_at(step, panel) + row_bytes_]);
        for (int h = 0; h < halves_; h++) tdpbf16ps(sum(h, panel), src(h), wei(panel));
    }
};

} // namespace

status_t make_avx512_core_amx_direct(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<amx_direct_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
