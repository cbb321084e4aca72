// SPDX-License-Identifier: Apache-2.0
// Direct kernels on AMX tiles: up to 96 rows of source times packed weights. Vector instructions decode
// weights, 32 rows of a panel at a time, into a small ring in the first-level cache (or, for more rows, to
// where all decoded panels are kept), while tiles multiply what was decoded a little earlier; the two are
// woven together instruction by instruction, since the processor does not look far ahead. One step of K is
// generated, and called: what a kernel costs to make is its instructions. Sums stay in tiles for the whole of
// K. With fewer rows configured, tile instructions take less time, so that one row runs at the speed of
// decoding.
//
// A sum is one chain of additions along k, whatever the number of panels or rows. tdpbf16ps takes
// subnormal numbers for zero and flushes subnormal sums to zero.
#include <algorithm>

#include "common/layouts/n16.hpp"
#include "cpu/x64/kernels/avx512_core_amx/list.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_sums.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Label;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Zmm;

class amx_direct_t : public tile_sums_t {
public:
    explicit amx_direct_t(const kernel_params_t &p)
        : tile_sums_t(p), k_rows_(p.k_rows ? p.k_rows : p.K), keeps_(p.decoded == decoded_t::kept),
          decoder_(*this, p),
          next_lines_(keeps_ || group_ > 2
                              ? 0
                              : next_panel_lines(group_ * walked_bytes() / all_steps_, p.rows, p.calls)) {
        zmm_pool_t pool;
        if (loads_scales_) decoder_.take_scale_registers(pool);
        decoder_.take_registers(pool);
    }

private:
    const int64_t k_rows_; // rows of the weights that a call multiplies
    const bool keeps_;     // stores decoded panels for further rows
    panel_decoder_t decoder_;
    const bool loads_scales_ = decoder_.loads_scales(); // of tiles that are decoded in the fast way
    const packed_shape_t &shape_ = decoder_.shape();
    const int64_t whole_tiles_ = k_rows_ / decoder_.tile_rows();
    const int tail_rows_ = int(k_rows_ % decoder_.tile_rows());
    const int64_t tile_bytes_ = n16_frame_t::tile_bytes(shape_, decoder_.tile_rows());
    const int64_t all_steps_ = div_up(k_rows_, int64_t(k_step));
    const int next_lines_; // cache lines of later panels that a step fetches

    // The number of steps of 32 rows between decoding and multiplying. Stores take a while to reach the
    // cache, and tile loads are not served from the store buffer. A step with more products, or of four
    // panels, takes that long by itself.
    const int lag_steps_ = group_ == 1 || (group_ == 2 && row_tiles_ == 2) ? 2 : 1;
    const int step_bytes_ = group_ * amx_tile_bytes, lag_bytes_ = lag_steps_ * step_bytes_;
    const int ring_bytes_ = 2 * lag_bytes_; // a power of two, and the alignment of the ring

    const Reg64 codes_ = r8, wei_stride_ = r9, wei_stride3_ = r10;
    const Reg64 next_ = wei_stride3_;       // with at most two panels: what is fetched of later ones
    const Reg64 place_ = r14;               // where the step that is decoded next goes
    const Reg64 params_ = a_, block_ = rdx; // parameters of the step, or its scales; parameters of its block
    const Reg64 steps_ = b_, ahead_ = c_;   // ahead_: codes of the first panel that are fetched

    // Stack: the ring and room to align it, unless panels are stored; converted parameters of the panels.
    enum { tiles = own_slot, step_routine, first_routine };
    const int params_offset_ = own_offset + (keeps_ ? 0 : 2 * ring_bytes_);
    int own_stack_bytes() const override {
        return params_offset_ - own_offset + group_ * decoder_.param_bytes();
    }
    Zmm spare(int i) const override { return decoder_.spare(i); }

    // Routines. `begin` chooses the ones that decode a tile, which depends on its scales.
    struct way_t {
        Label step;  // decodes a step and multiplies an earlier one
        Label first; // without products
    };
    way_t exact_, fast_;
    Label begin_;

    RegExp panel_at(const Reg64 &base, int panel) const {
        switch (panel) {
        case 0: return base;
        case 1: return base + wei_stride_;
        case 2: return base + wei_stride_ * 2;
        default: return base + wei_stride3_;
        }
    }

    void load_own() override {
        decoder_.load_constants(rax);
        load_arg(wei_stride_, offsetof(direct_args_t, wei_stride));
        if (group_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        if (keeps_) {
            load_arg(place_, offsetof(direct_args_t, panels));
        } else {
            lea(place_, ptr[rsp + own_offset + ring_bytes_]);
            and_(place_, -ring_bytes_);
        }
        load_arg(codes_, offsetof(direct_args_t, wei));
        if (next_lines_ > 0) load_arg(next_, offsetof(direct_args_t, fetch));
    }

    // The bytes of a panel that a call reads.
    int64_t walked_bytes() const {
        return whole_tiles_ * tile_bytes_ + (tail_rows_ ? n16_frame_t::tile_bytes(shape_, tail_rows_) : 0);
    }
    // From the end of the first panel of this group to that of the next group.
    void next_group() override {
        lea(temp_, ptr[wei_stride_ * group_]);
        add(codes_, temp_);
        mov(temp_, walked_bytes());
        sub(codes_, temp_);
    }

    void routines() override {
        if (whole_tiles_ > 0) {
            align(16);
            L(begin_);
            begin(decoder_.tile_rows(), decoder_.has_fast());
            ret();
        }
        for (bool fast : {true, false}) {
            if (fast && !decoder_.has_fast()) continue;
            way_t &way = fast ? fast_ : exact_;
            align(16);
            L(way.first);
            step(k_step, fast, false);
            ret();
            align(16);
            L(way.step);
            step(k_step, fast, true);
            ret();
        }
    }

    void walk() override {
        const int tile_rows = decoder_.tile_rows();
        int64_t steps = 0; // number of steps so far
        const auto tile = [&](int rows) {
            look_ahead(rows < tile_rows || (whole_tiles_ == 1 && !tail_rows_), steps > 0);
            lea(params_, ptr[rsp + params_offset_]);
            const int header = decoder_.header_bytes(rows), left = rows % k_step;
            const bool fast = decoder_.has_fast() && !left;
            if (rows == tile_rows)
                call(begin_);
            else
                begin(rows, fast, false);
            add(codes_, header);
            const int whole = rows / k_step,
                      firsts = int(std::min<int64_t>(whole, std::max<int64_t>(lag_steps_ - steps, 0)));
            for (int i = 0; i < firsts; i++) fast ? call(var(first_routine)) : call(exact_.first);
            loop(steps_, whole - firsts, [&] { fast ? call(var(step_routine)) : call(exact_.step); });
            if (left) step(left, false, steps + whole >= lag_steps_);
            steps += div_up(rows, k_step);
            add(codes_, int(n16_frame_t::tile_bytes(shape_, rows)) - header
                                - int(div_up(rows, k_step)) * 2 * decoder_.half_bytes());
        };
        if (whole_tiles_ > 0) {
            tile(tile_rows);
            store_before();
            begin_destination();
        }
        loop_over(tiles, whole_tiles_ - 1, [&] {
            fetch_destination(whole_tiles_ - 1);
            tile(tile_rows);
        });
        if (tail_rows_) tile(tail_rows_);
        if (whole_tiles_ == 0) store_before();
        // The steps that are decoded and not multiplied yet.
        for (int64_t i = steps; i < lag_steps_; i++) next_place();
        for (int64_t i = std::min<int64_t>(steps, lag_steps_); i > 0; i--) {
            products_place();
            for (int p = 0; p < group_; p++)
                for (int piece = 0; piece < pieces(); piece++)
                    multiply_piece(temp_ + p * amx_tile_bytes, p, piece);
            next_place();
        }
        if (keeps_) sub(place_, lag_bytes_);
    }

    // One tile ahead. In the last tile: the first tile of the next group of panels, which this call or the
    // next one begins with.
    void look_ahead(bool last, bool in_loop) {
        const int64_t last_tile = whole_tiles_ - (tail_rows_ == 0);
        const int64_t to_next = group_ * n16_frame_t::panel_bytes(shape_) - last_tile * tile_bytes_;
        mov(ahead_, last ? to_next : tile_bytes_);
        if (!last && in_loop && !tail_rows_) {
            if (whole_tiles_ == 2) {
                mov(ahead_, to_next);
            } else {
                mov(temp_, to_next);
                cmp(var(tiles), 1);
                cmove(ahead_, temp_);
            }
        }
        add(ahead_, codes_);
    }

    // Converts the parameters of a tile, to params_.
    void begin(int rows, bool fast, bool in_routine = true) {
        Label exact, done;
        const auto convert = [&](bool fast_way) {
            if (fast_way && loads_scales_) mov(params_, codes_);
            for (int p = 0; p < group_ && !(fast_way && loads_scales_); p++)
                decoder_.convert(panel_at(codes_, p), params_ + p * decoder_.param_bytes(), rows, fast_way);
            if (!fast) return;
            way_t &way = fast_way ? fast_ : exact_;
            lea(temp_, ptr[rip + way.step]);
            mov(var(step_routine, in_routine), temp_);
            lea(temp_, ptr[rip + way.first]);
            mov(var(first_routine, in_routine), temp_);
        };
        if (fast) {
            for (int p = 0; p < group_; p++) decoder_.check(panel_at(codes_, p), rows, exact, temp_);
            convert(true);
            jmp(done, T_NEAR);
            L(exact);
        }
        convert(false);
        L(done);
        const int header = decoder_.header_bytes(decoder_.tile_rows());
        for (int b = 0; b < header; b += 64)
            for (int p = 0; p < group_; p++) prefetcht0(ptr[panel_at(ahead_, p) + b]);
        add(ahead_, header);
    }

    // Decodes a step of `rows` rows, and multiplies the step that was decoded lag_steps_ earlier.
    void step(int rows, bool fast, bool multiplies) {
        const int fetches = decoder_.fetches(fast), half_bytes = decoder_.half_bytes();
        const bool loads_scales = fast && loads_scales_;
        if (multiplies) products_place();
        if (!loads_scales) mov(block_, params_);
        if (shape_.block > k_step) and_(block_, -64); // params_ is within the parameters of the block
        for (int i = 0; i < next_lines_; i++) prefetcht1(ptr[next_ + i * 64]);
        if (next_lines_ > 0) add(next_, next_lines_ * 64);
        for (int p = 0; p < group_; p++) {
            int done = 0;
            for (int i = 0; i < 2 * fetches; i++) {
                const int half = i / fetches;
                if (i % fetches == 0) {
                    for (int b = 0; b < half_bytes; b += 64)
                        prefetcht0(ptr[panel_at(ahead_, p) + half * half_bytes + b]);
                    if (loads_scales && half == 0) decoder_.load_scales(panel_at(params_, p));
                    if (!loads_scales && (half == 0 || decoder_.two_blocks()))
                        decoder_.load_params(block_ + p * decoder_.param_bytes() + half * 64, fast);
                }
                decoder_.fetch(i % fetches, panel_at(codes_, p) + half * half_bytes,
                        place_ + p * amx_tile_bytes + half * amx_tile_bytes / 2, rows - half * k_step / 2,
                        fast);
                for (; multiplies && done < pieces() * (i + 1) / (2 * fetches); done++)
                    multiply_piece(temp_ + p * amx_tile_bytes, p, done);
            }
        }
        add(codes_, 2 * half_bytes);
        add(ahead_, 2 * half_bytes);
        add(params_, loads_scales ? panel_columns : 64 * k_step / int(shape_.block));
        next_place();
    }

    // temp_ is the address of the step that is multiplied next.
    void products_place() {
        if (keeps_) return lea(temp_, ptr[place_ - lag_bytes_]);
        mov(temp_, place_);
        xor_(temp_, lag_bytes_); // half of the ring
    }
    void next_place() {
        Label inside;
        add(place_, step_bytes_);
        if (keeps_) return;
        test(place_, ring_bytes_ - 1);
        jnz(inside);
        sub(place_, ring_bytes_);
        L(inside);
    }
};

} // namespace

status_t make_avx512_core_amx_direct(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    if (p.decoded == decoded_t::found) return make_avx512_core_amx_kept(name, p, kernel, reason);
    return create_jit<amx_direct_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
