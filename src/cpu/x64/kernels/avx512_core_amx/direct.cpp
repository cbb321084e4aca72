// SPDX-License-Identifier: Apache-2.0
// Direct kernels on AMX tiles: up to 96 rows of source times packed weights. Vector instructions decode
// weights, 32 rows of a panel at a time, into a small ring in the first-level cache, while tiles multiply
// what was decoded a little earlier; the two are woven together instruction by instruction, since the
// processor does not look far ahead. Sums stay in tiles for the whole of K. With fewer rows configured, tile
// instructions take less time, so that one row runs at the speed of decoding.
//
// A sum is one chain of additions along k, whatever the number of panels or rows. tdpbf16ps takes
// subnormal numbers for zero and flushes subnormal sums to zero.
#include <cstddef>
#include <deque>

#include "cpu/x64/kernels/avx512_core_amx/rows.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_config.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/panel_decoder.hpp"
#include "cpu/x64/panel_parts.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

using Xbyak::Label;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Tmm;
using Xbyak::Zmm;

class amx_direct_t : public jit_base_t {
public:
    explicit amx_direct_t(const kernel_params_t &p)
        : panels_(p.panels), row_tiles_(int(div_up(p.rows, amx_tile_rows))),
          group_(std::min(p.panels, walked_panels(p.rows))), decoder_(*this, p) {
        zmm_pool_t pool;
        decoder_.take_registers(pool);
    }

private:
    const int panels_;
    const int row_tiles_; // of the source
    const int group_;     // panels that are walked at once
    panel_decoder_t decoder_;
    const packed_shape_t &shape_ = decoder_.shape();
    const int64_t whole_tiles_ = shape_.K / decoder_.tile_rows();
    const int tail_rows_ = int(shape_.K % decoder_.tile_rows());
    const int64_t tile_bytes_ = n16_frame_t::tile_bytes(shape_, decoder_.tile_rows());

    // Steps of 32 rows that are decoded before one is multiplied: stores take a while to arrive in the cache,
    // and loads of a tile are not served from the store buffer. A step of more products, or of four panels,
    // takes as long itself.
    const int lag_steps_ = group_ == 1 || (group_ == 2 && row_tiles_ == 2) ? 2 : 1;
    const int ring_steps_ = 2 * lag_steps_;

    // Sums first, weights last, tiles of the source between them.
    const int sums_ = row_tiles_ * group_;
    const int wei_tiles_ = sums_ <= 4 ? 2 : 1, src_tiles_ = 8 - sums_ - wei_tiles_;
    Tmm sum(int row_tile, int panel) const { return Tmm(row_tile * group_ + panel); }
    Tmm src(int row_tile) const { return Tmm(sums_ + row_tile % src_tiles_); }
    Tmm wei(int panel) const { return Tmm(8 - wei_tiles_ + panel % wei_tiles_); }

    const Reg64 src_ = rsi, src_stride_ = rax, src_step_ = r11, codes_ = r8, wei_stride_ = r9,
                wei_stride3_ = r10;
    const Reg64 row_bytes_ = rcx, tiles_ = rdx, temp_ = r15;
    const Reg64 params_ = r12, steps_ = r13; // in the slow way, and where results are stored
    const Reg64 groups_ = r14;
    const Reg64 ahead_ = rdi; // the first panel's codes that are fetched into the cache
    const Reg64 result_ = rbx;

    // Stack: tile configuration, variables, ring, converted parameters of the panels.
    enum slot_t { args, acc, acc_stride, dst, dst_stride, dst_rows, rows_before, slots };
    static constexpr int slots_offset = 64, ring_offset = slots_offset + 64;
    static_assert(slots * 8 <= 64, "");
    const int params_offset_ = ring_offset + ring_steps_ * group_ * amx_tile_bytes;
    int stack_bytes() const { return params_offset_ + group_ * decoder_.param_bytes(); }
    RegExp tile_params(int panel) const { return rsp + params_offset_ + panel * decoder_.param_bytes(); }
    Xbyak::Address var(int s) { return qword[rsp + slots_offset + s * 8]; }

    Zmm scale() const { return decoder_.spare(0); }
    Zmm result(int i) const { return decoder_.spare(1 + i); }

    // 32 rows of a panel.
    struct unit_t {
        int step, panel;
    };
    RegExp place_of(const unit_t &u) const {
        return rsp + ring_offset + (u.step % ring_steps_ * group_ + u.panel) * amx_tile_bytes;
    }
    std::deque<unit_t> decoded_; // and not multiplied yet, where code is being generated

    void load_arg(const Reg64 &r, size_t offset) {
        mov(r, var(args));
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
        Label only_results;
        preamble(stack_bytes());
        mov(var(args), abi_param);
        const auto keep = [&](int slot, size_t offset) {
            load_arg(temp_, offset);
            mov(var(slot), temp_);
        };
        keep(acc, offsetof(direct_args_t, acc));
        keep(acc_stride, offsetof(direct_args_t, acc_stride));
        keep(dst, offsetof(direct_args_t, dst));
        keep(dst_stride, offsetof(direct_args_t, dst_stride));
        keep(rows_before, offsetof(direct_args_t, before) + offsetof(direct_args_t::stored_t, rows));
        load_arg(temp_, offsetof(direct_args_t, rows));
        test(temp_, temp_);
        jz(only_results, T_NEAR);
        configure();
        decoder_.load_constants(rax);
        load_arg(src_stride_, offsetof(direct_args_t, src_stride));
        load_arg(src_step_, offsetof(direct_args_t, src_step));
        load_arg(wei_stride_, offsetof(direct_args_t, wei_stride));
        if (group_ > 2) lea(wei_stride3_, ptr[wei_stride_ + wei_stride_ * 2]);
        mov(row_bytes_, amx_row_bytes);
        load_arg(codes_, offsetof(direct_args_t, wei));
        loop(groups_, panels_ / group_, [&] {
            group();
            if (panels_ == group_) return;
            // From the end of this group's first panel to the next group's.
            lea(temp_, ptr[wei_stride_ * group_]);
            add(codes_, temp_);
            mov(temp_, n16_frame_t::panel_bytes(shape_));
            sub(codes_, temp_);
            add(var(acc), group_ * amx_row_bytes);
            add(var(dst), group_ * amx_row_bytes / 2);
        });
        tilerelease();
        postamble();
        L(only_results);
        store_before();
        postamble();
    }

    // The last tile of rows has those that are left, where tiles have registers of their own; elsewhere rows
    // that are not there are multiplied too.
    void configure() {
        const tile_config_t whole = whole_tiles();
        const int last = row_tiles_ - 1;
        const auto rows_of = [&](const Tmm &t) {
            return byte[rsp + int(offsetof(tile_config_t, rows)) + t.getIdx()];
        };
        vmovdqa64(Zmm(0), constant(&whole, sizeof(whole)));
        vmovdqa64(ptr[rsp], Zmm(0));
        if (row_tiles_ <= src_tiles_) {
            load_arg(temp_, offsetof(direct_args_t, rows));
            if (last) sub(temp_, last * amx_tile_rows);
            mov(rows_of(src(last)), temp_.cvt8());
            for (int p = 0; p < group_; p++) mov(rows_of(sum(last, p)), temp_.cvt8());
        }
        ldtilecfg(ptr[rsp]);
    }

    void group() {
        load_arg(src_, offsetof(direct_args_t, src));
        for (int i = 0; i < sums_; i++) tilezero(Tmm(i));
        const int tile_rows = decoder_.tile_rows();
        if (whole_tiles_ > 0) {
            tile(tile_rows, whole_tiles_ == 1 && !tail_rows_);
            store_before();
            begin_destination();
        }
        // Every tile leaves as many units to the next one.
        loop(tiles_, whole_tiles_ - 1, [&] {
            fetch_destination();
            tile(tile_rows, false);
        });
        if (tail_rows_) tile(tail_rows_, true);
        if (whole_tiles_ == 0) store_before();
        while (!decoded_.empty()) multiply_next();
        store_sums();
    }

    void tile(int rows, bool last) {
        look_ahead(last);
        Label slow, done;
        if (decoder_.has_fast()) {
            for (int p = 0; p < group_; p++) decoder_.check(panel_at(codes_, p), rows, slow, temp_);
            const std::deque<unit_t> before = decoded_;
            woven_tile(rows, last, true);
            jmp(done, T_NEAR);
            L(slow);
            decoded_ = before;
            slow_tile(rows, last);
        } else {
            woven_tile(rows, last, false);
        }
        L(done);
        add(codes_, int(n16_frame_t::tile_bytes(shape_, rows)));
    }

    // A tile ahead; in the last tile the first of the next group of panels, which the next call
    // starts with if not this one.
    void look_ahead(bool last) {
        const int64_t last_tile = whole_tiles_ - (tail_rows_ == 0);
        const int64_t to_next = group_ * n16_frame_t::panel_bytes(shape_) - last_tile * tile_bytes_;
        mov(ahead_, last ? to_next : tile_bytes_);
        if (!decoded_.empty() && !tail_rows_ && whole_tiles_ > 1) { // in the loop
            if (whole_tiles_ == 2) {
                mov(ahead_, to_next);
            } else {
                mov(temp_, to_next);
                cmp(tiles_, 1);
                cmove(ahead_, temp_);
            }
        }
        add(ahead_, codes_);
    }

    void convert(int rows, bool fast) {
        for (int p = 0; p < group_; p++) decoder_.convert(panel_at(codes_, p), tile_params(p), rows, fast);
    }

    // Straight code.
    void woven_tile(int rows, bool last, bool fast) {
        convert(rows, fast);
        const int header = decoder_.header_bytes(rows), fetches = decoder_.fetches(fast);
        const int units = int(div_up(rows, k_step)) * group_;
        for (int u = 0; u < units; u++) {
            const unit_t unit = {u / group_, u % group_};
            const bool multiplies = int(decoded_.size()) == lag_steps_ * group_;
            int done = 0;
            for (int i = 0; i < 2 * fetches; i++) {
                const int half = i / fetches, at = (unit.step * 2 + half) * decoder_.half_bytes();
                if (i % fetches == 0) {
                    prefetch(panel_at(ahead_, unit.panel) + at, u == 0 && half == 0);
                    load_params(tile_params(unit.panel) + unit.step * k_step / int(shape_.block) * 64, half,
                            fast);
                }
                decoder_.fetch(i % fetches, panel_at(codes_, unit.panel) + header + at,
                        place_of(unit) + half * amx_tile_bytes / 2,
                        rows - unit.step * k_step - half * k_step / 2, fast);
                for (; multiplies && done < pieces() * (i + 1) / (2 * fetches); done++)
                    multiply_piece(decoded_.front(), done);
            }
            if (multiplies) decoded_.pop_front();
            decoded_.push_back(unit);
        }
        while (last && !decoded_.empty()) multiply_next();
    }

    // Scales out of the ordinary: a loop over the steps, which have a block or two each, but for those that
    // are left to the next tile.
    void slow_tile(int rows, bool last) {
        const int steps = int(div_up(rows, k_step)), left = last ? 0 : lag_steps_;
        while (!decoded_.empty()) multiply_next();
        convert(rows, false);
        lea(params_, ptr[tile_params(0)]);
        add(codes_, decoder_.header_bytes(rows));
        const auto step = [&](int at, int step_rows) {
            for (int p = 0; p < group_; p++)
                for (int half = 0; half < 2; half++) {
                    prefetch(panel_at(ahead_, p) + half * decoder_.half_bytes(), false);
                    load_params(params_ + p * decoder_.param_bytes(), half, false);
                    decoder_.half_step(panel_at(codes_, p) + half * decoder_.half_bytes(),
                            place_of({at, p}) + half * amx_tile_bytes / 2, step_rows - half * k_step / 2,
                            false);
                }
            for (int p = 0; p < group_; p++) decoded_.push_back({at, p});
            add(params_, (1 + decoder_.two_blocks()) * 64);
            add(codes_, 2 * decoder_.half_bytes());
            add(ahead_, 2 * decoder_.half_bytes());
        };
        const auto step_and_multiply = [&](int step_rows) {
            step(0, step_rows);
            while (!decoded_.empty()) multiply_next();
        };
        loop(steps_, rows / k_step - left, [&] { step_and_multiply(k_step); });
        if (rows % k_step) step_and_multiply(rows % k_step);
        for (int s = steps - left; s < steps; s++) step(s, k_step);
        sub(codes_, steps * 2 * decoder_.half_bytes() + decoder_.header_bytes(rows));
    }

    // Of a block, or of two that a step has.
    void load_params(const RegExp &at, int half, bool fast) {
        if (half == 0 || decoder_.two_blocks()) decoder_.load_params(at + half * 64, fast);
    }

    // What a half step reads; the header goes with the first one.
    void prefetch(const RegExp &at, bool first) {
        const int header = decoder_.header_bytes(decoder_.tile_rows());
        for (int b = 0; b < decoder_.half_bytes(); b += 64) prefetcht0(ptr[at + header + b]);
        for (int b = 0; first && b < header; b += 64)
            for (int p = 0; p < group_; p++) prefetcht0(ptr[panel_at(ahead_, p) + b]);
    }

    void multiply_next() {
        for (int i = 0; i < pieces(); i++) multiply_piece(decoded_.front(), i);
        decoded_.pop_front();
    }
    // A unit is multiplied in pieces: its tile of weights, then a tile of rows and the product for each.
    int pieces() const { return 1 + row_tiles_; }
    void multiply_piece(const unit_t &u, int i) {
        if (i == 0) return tileloadd(wei(u.panel), ptr[place_of(u) + row_bytes_]);
        // Where tiles of rows share a register: there and back.
        const bool shared = row_tiles_ > src_tiles_, back = shared && u.panel % 2;
        const int row_tile = back ? row_tiles_ - i : i - 1;
        if (u.panel == 0 || (shared && i > 1))
            tileloadd(src(row_tile), ptr[src_ + src_stride_ + row_tile * amx_tile_bytes]);
        if (u.panel == 0) fetch_source(row_tile);
        tdpbf16ps(sum(row_tile, u.panel), src(row_tile), wei(u.panel));
        if (u.panel == group_ - 1 && i == row_tiles_) add(src_, src_step_);
    }

    // The same tile of the next step, where rows are a stream: the second-level cache is slow. With one panel
    // every product reads a tile, and that cache cannot give more lines.
    void fetch_source(int row_tile) {
        if (row_tiles_ == 1 || group_ == 1) return;
        for (int b = 0; b < amx_tile_bytes; b += 64)
            prefetcht0(ptr[src_ + src_step_ + row_tile * amx_tile_bytes + b]);
    }

    // ---- results ----

    // The results follow later, and storing them would wait for memory: lines of a few rows are fetched in
    // every tile, since all at once would hold up the source.
    void begin_destination() {
        Label none;
        mov(var(dst_rows), 0);
        mov(result_, var(dst));
        load_arg(temp_, offsetof(direct_args_t, dst));
        test(temp_, temp_);
        jz(none);
        load_arg(temp_, offsetof(direct_args_t, rows));
        mov(var(dst_rows), temp_);
        L(none);
    }
    void fetch_destination() {
        Label none;
        const int rows = int(div_up(row_tiles_ * amx_tile_rows, whole_tiles_ - 1));
        cmp(var(dst_rows), 0);
        jle(none, T_NEAR);
        for (int r = 0; r < rows; r++) {
            for (int b = 0; b < group_ * panel_columns * 2; b += 64) prefetchw(ptr[result_ + b]);
            add(result_, var(dst_stride));
        }
        sub(var(dst_rows), rows);
        L(none);
    }

    void store_sums() {
        mov(result_, var(acc));
        load_arg(temp_, offsetof(direct_args_t, acc_stride));
        mov(steps_, temp_);
        shl(steps_, 4);
        for (int t = 0; t < row_tiles_; t++) {
            for (int p = 0; p < group_; p++) tilestored(ptr[result_ + temp_ + p * amx_row_bytes], sum(t, p));
            add(result_, steps_);
        }
    }

    // Results of the call before this one, whose sums have arrived in the first-level cache by now: reading
    // them right after tiles were stored would wait for that.
    void store_before() {
        Label none, two_pairs, done;
        const Reg64 &rows = temp_, &from = steps_, &bias = params_, &stride = ahead_;
        const auto of_before = [&](size_t offset) {
            return qword[ahead_ + int(offsetof(direct_args_t, before) + offset)];
        };
        mov(rows, var(rows_before));
        test(rows, rows);
        jz(none, T_NEAR);
        mov(var(rows_before), 0);
        mov(ahead_, var(args));
        // Masks of 32 columns each.
        mov(from, of_before(offsetof(direct_args_t::stored_t, columns)));
        mov(bias, -1);
        bzhi(result_, bias, from);
        kmovd(k5, result_.cvt32());
        sub(from, 2 * panel_columns);
        bzhi(result_, bias, from);
        kmovd(k6, result_.cvt32());
        vbroadcastss(scale(), dword[ahead_ + int(offsetof(direct_args_t, scale))]);
        mov(bias, of_before(offsetof(direct_args_t::stored_t, bias)));
        mov(result_, of_before(offsetof(direct_args_t::stored_t, dst)));
        cmp(from, 0);
        mov(from, qword[ahead_ + int(offsetof(direct_args_t, acc))]);
        const auto all_rows = [&](int pairs) {
            loop_down(rows, [&] {
                for (int pair = 0; pair < pairs; pair++) {
                    for (int i = 0; i < 2; i++) {
                        const int at = (2 * pair + i) * amx_row_bytes;
                        vmulps(result(i), scale(), ptr[from + at]);
                        vaddps(result(i), result(i), ptr[bias + at]);
                    }
                    vcvtne2ps2bf16(result(0), result(1), result(0));
                    vmovdqu16(ptr[result_ + pair * amx_row_bytes] | (pair ? k6 : k5), result(0));
                }
                add(from, var(acc_stride));
                add(result_, stride);
            });
        };
        mov(stride, qword[ahead_ + int(offsetof(direct_args_t, dst_stride))]);
        jg(two_pairs, T_NEAR);
        all_rows(1);
        jmp(done, T_NEAR);
        L(two_pairs);
        all_rows(2);
        L(done);
        L(none);
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
