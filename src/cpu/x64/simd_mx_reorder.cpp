// SPDX-License-Identifier: Apache-2.0
// A reorder streams: 16 lines (or a few times as many, where elements have to be transposed) and a few
// hundred positions go through buffers on the stack that stay in the first- and second-level cache.
#include "cpu/x64/simd_mx_reorder.hpp"

#include <algorithm>
#include <cstring>

#include "common/formats/quantize_block.hpp"
#include "cpu/ref/ref_mx_reorder.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// Fewer elements than this are not worth waking a thread for.
constexpr int64_t elements_per_thread = 1 << 14;
// Elements of a matrix for which it pays to decode a 4-bit type under every scale first.
constexpr int64_t least_for_tables = 1 << 18;
// Lines and positions that are worked on together where codes have to be transposed.
constexpr int turned_lines = 64, turned_length = 256;
constexpr int64_t codes_bytes = reorder_max_lines * reorder_max_block, values_bytes = codes_bytes;

bool is_high_precision(data_type_t dt) { return has_role(dt, role_high_precision); }

// Whether there are kernels from bf16 to packed panels, or from panels to bf16.
bool has_panel_kernels(const reorder_conf_t &c) {
    if (c.moves || c.given || !c.kernels->quantise_panels) return false;
    const reorder_side_conf_t &panels = c.dst.quantised ? c.dst : c.src;
    const reorder_side_conf_t &values = c.dst.quantised ? c.src : c.dst;
    if (!panels.packed || values.quantised || values.dt != mxdnn_bf16) return false;
    return !c.dst.quantised || panels.format.family != quant_family_t::affine
           || panels.format.scale_bytes == 2;
}

} // namespace

reason_t configure(reorder_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    if (!mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    // A CPU target that runs here is held to what it stands for.
    const bool capped = p.engine->kind() == mxdnn_cpu && p.engine->executes && p.engine->target->isa < isa;
    if (capped) return no("engine", p.engine->target->name, isa_name(isa));
    if (is_high_precision(p.src.dt) && is_high_precision(p.dst.dt))
        return no("src and dst", "high precision on both sides", "a quantised type on at least one");
    quant_t q;
    int axis[2] = {0, 0};
    for (bool is_src : {true, false}) {
        const memory_desc_t &md = is_src ? p.src : p.dst;
        if (is_high_precision(md.dt)) continue;
        if (quant_of(is_src ? "src" : "dst", md, is_src ? p.attr.src : p.attr.dst, q, &axis[is_src])
                != mxdnn_success)
            return no(is_src ? "src" : "dst", to_string(md).c_str(), "known scales");
    }
    if (axis[0] && axis[1] && axis[0] != axis[1])
        return no("blocks", "src and dst blocked along different dims", "the same dim");
    const int blocked = axis[0] ? axis[0] : axis[1];
    reason_t r = configure_side(c.src, p, true, blocked);
    if (r.ok()) r = configure_side(c.dst, p, false, blocked);
    if (!r.ok()) return r;

    c.kernels = isa == cpu_isa_t::avx2 ? &reorder_kernels_avx2 : &reorder_kernels_avx512;
    c.moves = moves_codes(p);
    c.given = c.dst.quantised && !c.moves && !p.attr.dst.is_dynamic();
    c.measures = c.dst.quantised && !c.moves && c.dst.format.has_global
                 && c.dst.global_mode != mxdnn_quantization_mode_static_sazp;

    // Values are worked on where they are, and codes turned if need be, which are smaller.
    const reorder_side_conf_t &values = c.dst.quantised ? c.src : c.dst;
    if (!values.quantised)
        c.by_rows = values.by_rows();
    else if (c.moves)
        c.by_rows = (c.src.packed || c.src.by_rows()) && (c.dst.packed || c.dst.by_rows())
                    && !(c.src.packed && c.dst.packed);
    c.tables = !c.dst.quantised && !c.by_rows && c.dst.dt == mxdnn_bf16 && c.src.dt == mxdnn_f4_e2m1;
    const auto is_turned = [&](const reorder_side_conf_t &s) {
        return !s.packed && s.by_rows() != c.by_rows;
    };
    const bool turned = is_turned(c.src) || is_turned(c.dst);
    const int64_t tile =
            std::max<int64_t>({c.src.packed ? c.src.tile_rows() : 0, c.dst.packed ? c.dst.tile_rows() : 0,
                    n16_frame_t::min_tile_rows, c.src.format.block, c.dst.format.block});
    c.group = c.by_rows ? reorder_max_lines : turned ? turned_lines : reorder_lines;
    c.chunk = int(turned ? turned_length : c.by_rows ? tile : reorder_max_length);
    if (has_panel_kernels(c)) {
        const int block = (c.dst.quantised ? c.dst : c.src).format.block;
        c.panel_lines = c.by_rows ? panel_lines_of(block) : 2 * reorder_lines;
        c.chunk = int(tile);
    }
    return yes();
}

namespace {

// Part of a matrix that is worked on at a time: conf.item_lines() lines and conf.chunk positions from here
// on.
struct item_t {
    dim_t line, pos;
};

// One thread's part of an execution.
class reorder_worker_t {
public:
    reorder_worker_t(const reorder_conf_t &conf, const exec_ctx_t &ctx, write_t how)
        : c_(conf), k_(*conf.kernels), how_(how), src_(conf.src, ctx), dst_(conf.dst, ctx) {}
    ~reorder_worker_t() {
        if (how_ == write_t::around) k_.fence();
    }

    void set_batch(const dim_t *idx) {
        src_.set_batch(idx);
        dst_.set_batch(idx);
        has_tables_ = c_.tables && src_.lines() * src_.length() >= least_for_tables;
        if (has_tables_) k_.fill_tables(c_.src.format, src_.global(), tables_);
    }
    const reorder_side_t &src() const { return src_; }
    const reorder_side_t &dst() const { return dst_; }

    // Up to conf.item_lines() lines and conf.chunk positions from (line, pos) on.
    void reorder(dim_t line, dim_t pos, const item_t &next) {
        const dim_t end = std::min(line + c_.item_lines(), src_.lines());
        for (line += reorder_panels(line, pos, next); line < end; line += c_.group) reorder_group(line, pos);
    }

    // The largest finite magnitude of the same part of the source, as f32 bits.
    uint32_t amax(dim_t line, dim_t pos) {
        uint32_t most = 0;
        const dim_t end = std::min(line + c_.item_lines(), src_.lines());
        for (; line < end; line += c_.group) most = std::max(most, amax_of_group(line, pos));
        return most;
    }

private:
    const reorder_conf_t &c_;
    const reorder_kernels_t &k_;
    const write_t how_;
    reorder_side_t src_, dst_;
    // What is worked on, and where:
    dim_t line_ = 0, pos_ = 0;
    int lines_ = 0, length_ = 0;
    // Codes, a byte each: lines c_.chunk apart, or rows c_.group apart.
    alignas(64) uint8_t codes_[codes_bytes];
    // Codes before or after they are transposed, or 16 lines of f32.
    alignas(64) uint8_t values_[values_bytes];
    alignas(32) nibble_tables_t tables_;
    bool has_tables_ = false;
    // [block][c_.group], at most 4 bytes each.
    static constexpr int most_params = 4 * (reorder_max_block / int(nvfp4_block)) * reorder_max_lines;
    alignas(64) uint8_t src_scales_[most_params], src_zps_[most_params],
            dst_scales_[most_params], dst_zps_[most_params];

    void reorder_group(dim_t line, dim_t pos) {
        locate(line, pos);
        if (c_.moves)
            move();
        else if (!c_.dst.quantised)
            dequantise();
        else if (c_.by_rows)
            quantise_rows();
        else
            quantise();
    }

    uint32_t amax_of_group(dim_t line, dim_t pos) {
        locate(line, pos);
        if (c_.by_rows) return k_.finite_amax(source_rows());
        if (c_.src.quantised) load_codes();
        uint32_t most = 0;
        for (int l = 0; l < lines_; l += reorder_lines)
            most = std::max(most, k_.finite_amax(source_values(l)));
        return most;
    }

    // Lines from `line` on that are done by the kernels for panels.
    int reorder_panels(dim_t line, dim_t pos, const item_t &next) {
        if (!c_.panel_lines) return 0;
        const reorder_side_t &values = c_.dst.quantised ? src_ : dst_,
                             &panels = c_.dst.quantised ? dst_ : src_;
        const block_format_t &f = panels.conf().format;
        const int length = int(std::min<dim_t>(c_.chunk, values.length() - pos));
        const int lines = int(std::min<dim_t>(c_.panel_lines, values.lines() - line)) / (2 * reorder_lines)
                          * (2 * reorder_lines);
        if (lines == 0 || length % std::max(f.block, 32) != 0) return 0;
        const panels_values_t v = {values.at(line, pos), values.line_bytes(), values.pos_bytes(), lines,
                length, values.at(next.line, next.pos)};
        const packed_shape_t &shape = panels.conf().shape;
        const int64_t panel_bytes = n16_frame_t::panel_bytes(shape);
        const int header_bytes = int(n16_frame_t::header_bytes(shape, length));
        uint8_t *tile = panels.tile(line, pos);
        if (c_.dst.quantised)
            k_.quantise_panels(f, v, panels.global(), tile, panel_bytes, header_bytes, how_);
        else
            k_.dequantise_panels(f, tile, panel_bytes, header_bytes, panels.tile(next.line, next.pos) - tile,
                    panels.global(), v, how_);
        return lines;
    }

    line_params_t src_params(int l = 0) { return params(c_.src.format, src_scales_, src_zps_, l); }
    line_params_t dst_params(int l = 0) { return params(c_.dst.format, dst_scales_, dst_zps_, l); }
    line_params_t params(const block_format_t &f, uint8_t *scales, uint8_t *zps, int l) const {
        return {scales + l * f.scale_bytes, f.zp_bytes ? zps + l * f.zp_bytes : nullptr, c_.group};
    }
    int code_pitch() const { return c_.by_rows ? c_.group : c_.chunk; }
    uint8_t *codes(int l) { return codes_ + l * c_.chunk; }
    int some_of(int l) const { return std::min(reorder_lines, lines_ - l); }

    void locate(dim_t line, dim_t pos) {
        line_ = line;
        pos_ = pos;
        lines_ = int(std::min<dim_t>(c_.group, src_.lines() - line));
        length_ = int(std::min<dim_t>(c_.chunk, src_.length() - pos));
    }

    // ---- codes, between a side and codes_ ----

    void load_codes() {
        const reorder_side_conf_t &s = c_.src;
        if (s.packed) {
            for_tiles(s, src_, [&](int l, int i, int rows, const uint8_t *from) {
                if (c_.by_rows)
                    k_.n16_unpack_rows(s.bits, from, rows, codes_ + i * c_.group + l, c_.group);
                else
                    k_.n16_unpack(s.bits, from, rows, codes(l) + i, c_.chunk, write_t::cached);
            });
            return;
        }
        const bool turned = s.by_rows() != c_.by_rows;
        const int runs = s.by_rows() ? length_ : lines_, n = s.by_rows() ? lines_ : length_;
        const int pitch = s.by_rows() ? c_.group : c_.chunk;
        uint8_t *to = turned ? values_ : codes_;
        for (int i = 0; i < runs; i++) k_.unpack_row(s.storage, run_at(src_, s, i), n, to + i * pitch);
        if (turned) k_.transpose(1, values_, pitch, runs, n, codes_, code_pitch());
    }

    void store_codes() {
        const reorder_side_conf_t &s = c_.dst;
        if (s.packed) {
            clear_padding(length_);
            for_tiles(s, dst_, [&](int l, int i, int rows, uint8_t *to) {
                if (c_.by_rows)
                    k_.n16_pack_rows(s.bits, codes_ + i * c_.group + l, c_.group, rows, to, how_);
                else
                    k_.n16_pack(s.bits, codes(l) + i, c_.chunk, rows, to, how_);
            });
            return;
        }
        const bool turned = s.by_rows() != c_.by_rows;
        const int runs = s.by_rows() ? length_ : lines_, n = s.by_rows() ? lines_ : length_;
        const int pitch = s.by_rows() ? c_.group : c_.chunk;
        if (turned) k_.transpose(1, codes_, code_pitch(), n, runs, values_, pitch);
        const uint8_t *from = turned ? values_ : codes_;
        for (int i = 0; i < runs; i++) {
            k_.pack_row(s.storage, from + i * pitch, n, run_at(dst_, s, i), how_);
            fetch_tiles(i, runs);
        }
    }

    // ---- what comes next is fetched bit by bit, while results are written ----

    static void fetch(const uint8_t *p, int64_t bytes) {
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + b, 0, 2);
    }
    // Part i of n of the packed tiles behind those at hand.
    void fetch_tiles(int i, int n) const {
        const reorder_side_conf_t &s = c_.src;
        if (!s.packed || c_.by_rows) return;
        const int64_t bytes = n16_frame_t::tile_bytes(s.shape, s.tile_rows()) * c_.chunk / s.tile_rows();
        const int64_t part = div_up(bytes / 64, n) * 64;
        fetch(src_.tile(line_, pos_) + bytes + i * part, part);
    }

    // A line, or the lines at a position.
    uint8_t *run_at(const reorder_side_t &side, const reorder_side_conf_t &s, int i) const {
        return s.by_rows() ? side.at(line_, pos_ + i) : side.at(line_ + i, pos_);
    }

    // What is no element of a packed tile is zero.
    void clear_padding(int rows) {
        const int lines = int(round_up(lines_, reorder_lines)), length = int(round_up(rows, 32));
        const int runs = c_.by_rows ? rows : lines_, n = c_.by_rows ? lines_ : rows;
        const int padded_runs = c_.by_rows ? length : lines, padded = c_.by_rows ? lines : length;
        for (int i = 0; i < padded_runs; i++) {
            const int used = i < runs ? n : 0;
            if (used < padded) std::memset(codes_ + i * code_pitch() + used, 0, size_t(padded - used));
        }
    }

    // body(line, position, rows of codes, codes) for the packed tiles.
    template <typename S, typename F>
    void for_tiles(const reorder_side_conf_t &conf, const S &side, F &&body) {
        for (int l = 0; l < lines_; l += reorder_lines) for_tiles_of_panel(conf, side, l, body);
    }
    template <typename S, typename F>
    void for_tiles_of_panel(const reorder_side_conf_t &conf, const S &side, int l, F &&body) {
        for (int i = 0; i < length_; i += int(conf.tile_rows())) {
            const int rows = std::min(int(conf.tile_rows()), length_ - i);
            body(l, i, int(round_up(rows, 32)),
                    side.tile(line_ + l, pos_ + i) + n16_frame_t::header_bytes(conf.shape, rows));
        }
    }

    // ---- a tile in rows: some blocks at a time, whose codes stay in the first-level cache ----

    static int row_step(const reorder_side_conf_t &s) { return std::max(s.format.block, 32); }
    uint8_t *codes_of_tile(const reorder_side_conf_t &s, const reorder_side_t &side, int l) const {
        return side.tile(line_ + l, pos_) + n16_frame_t::header_bytes(s.shape, length_);
    }
    line_params_t params_from(const reorder_side_conf_t &s, line_params_t p, int i) const {
        const int at = i / s.format.block * p.pitch;
        p.scales += at * s.format.scale_bytes;
        if (p.zero_points) p.zero_points += at * s.format.zp_bytes;
        return p;
    }

    // ---- quantising ----

    // Values of 16 lines: where they are, or, of codes, in values_.
    source_lines_t source_values(int l) {
        const int n = some_of(l);
        if (c_.src.quantised) {
            if (l == 0) src_.read_params(k_, line_, lines_, pos_, length_, src_params());
            const int64_t pitch = c_.chunk * int(sizeof(float));
            k_.dequantise(c_.src.format, codes(l), c_.chunk, n, length_, src_.global(), src_params(l),
                    nullptr, mxdnn_f32, values_, pitch, write_t::cached);
            return {values_, mxdnn_f32, pitch, n, length_, nullptr};
        }
        const void *next = nullptr;
        if (l + reorder_lines < lines_)
            next = src_.at(line_ + l + reorder_lines, pos_);
        else if (pos_ + c_.chunk < src_.length())
            next = src_.at(line_, pos_ + c_.chunk);
        else if (line_ + c_.group < src_.lines())
            next = src_.at(line_ + c_.group, 0);
        return {src_.at(line_ + l, pos_), c_.src.dt, src_.line_bytes(), n, length_, next};
    }
    source_lines_t source_rows() {
        return {src_.at(line_, pos_), c_.src.dt, src_.pos_bytes(), length_, lines_, nullptr};
    }

    void quantise_rows() {
        const reorder_side_conf_t &dst = c_.dst;
        if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, dst_params());
        if (!dst.packed) {
            k_.quantise_rows(
                    dst.format, c_.given, source_rows(), dst_.global(), dst_params(), codes_, c_.group);
            store_codes();
        }
        for (int i = 0; dst.packed && i < length_; i += row_step(dst)) {
            source_lines_t rows = source_rows();
            rows.data = src_.at(line_, pos_ + i);
            rows.lines = std::min(row_step(dst), length_ - i);
            k_.quantise_rows(dst.format, c_.given, rows, dst_.global(), params_from(dst, dst_params(), i),
                    codes_, c_.group);
            clear_padding(rows.lines);
            for (int l = 0; l < lines_; l += reorder_lines)
                k_.n16_pack_rows(dst.bits, codes_ + l, c_.group, int(round_up(rows.lines, 32)),
                        codes_of_tile(dst, dst_, l) + i * reorder_lines * dst.bits / 8, how_);
        }
        if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, dst_params(), how_);
    }

    void quantise() {
        const reorder_side_conf_t &dst = c_.dst;
        if (c_.src.quantised) load_codes();
        if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, dst_params());
        const bool whole = length_ % reorder_max_block == 0, nibbles = dst.bits == 4;
        const bool in_place = whole && is_direct(dst);
        const bool to_tiles =
                whole && nibbles && dst.packed && c_.group == reorder_lines && lines_ == reorder_lines;
        for (int l = 0; l < lines_; l += reorder_lines) {
            const source_lines_t values = source_values(l);
            const auto encode = [&](uint8_t *to, int64_t pitch, bool halves, write_t how) {
                k_.quantise(
                        dst.format, c_.given, values, dst_.global(), dst_params(l), to, pitch, halves, how);
            };
            if (in_place) {
                encode(dst_.at(line_ + l, pos_), dst_.line_bytes(), nibbles, how_);
            } else if (to_tiles) {
                encode(codes_, c_.chunk / 2, true, write_t::cached);
                for_tiles_of_panel(dst, dst_, l, [&](int, int i, int rows, uint8_t *to) {
                    k_.n16_pack_nibbles(codes_ + i / 2, c_.chunk / 2, rows, to, how_);
                });
            } else {
                encode(codes(l), c_.chunk, false, write_t::cached);
            }
        }
        if (!in_place && !to_tiles) store_codes();
        if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, dst_params(), how_);
    }

    // ---- dequantising ----

    void dequantise() {
        const reorder_side_conf_t &src = c_.src;
        src_.read_params(k_, line_, lines_, pos_, length_, src_params());
        if (c_.by_rows && src.packed) {
            for (int i = 0; i < length_; i += row_step(src)) {
                const int rows = std::min(row_step(src), length_ - i);
                for (int l = 0; l < lines_; l += reorder_lines)
                    k_.n16_unpack_rows(src.bits,
                            codes_of_tile(src, src_, l) + i * reorder_lines * src.bits / 8,
                            int(round_up(rows, 32)), codes_ + l, c_.group);
                k_.dequantise_rows(src.format, codes_, c_.group, rows, lines_, src_.global(),
                        params_from(src, src_params(), i), c_.dst.dt, dst_.at(line_, pos_ + i),
                        dst_.pos_bytes(), how_);
            }
            return;
        }
        load_codes();
        if (c_.by_rows)
            k_.dequantise_rows(c_.src.format, codes_, c_.group, length_, lines_, src_.global(), src_params(),
                    c_.dst.dt, dst_.at(line_, pos_), dst_.pos_bytes(), how_);
        else
            k_.dequantise(c_.src.format, codes_, c_.chunk, lines_, length_, src_.global(), src_params(),
                    has_tables_ ? &tables_ : nullptr, c_.dst.dt, dst_.at(line_, pos_), dst_.line_bytes(),
                    how_);
    }

    // ---- codes, scales and zero points as they are ----

    void move() {
        src_.read_params(k_, line_, lines_, pos_, length_, dst_params());
        if (!move_directly()) {
            load_codes();
            store_codes();
        }
        dst_.write_params(k_, line_, lines_, pos_, length_, dst_params(), how_);
    }

    // Between a packed and a plain side without taking bytes apart.
    bool move_directly() {
        if (lines_ != reorder_lines || length_ % 64 != 0) return false;
        const bool nibbles = c_.src.bits == 4;
        if (c_.dst.packed && is_direct(c_.src)) {
            for_tiles(c_.dst, dst_, [&](int l, int i, int rows, uint8_t *to) {
                const uint8_t *from = src_.at(line_ + l, pos_ + i);
                for (int line = 0; line < reorder_lines; line++)
                    fetch(from + line * src_.line_bytes() + (nibbles ? c_.chunk / 2 : c_.chunk),
                            nibbles ? rows / 2 : rows);
                if (nibbles)
                    k_.n16_pack_nibbles(from, src_.line_bytes(), rows, to, how_);
                else
                    k_.n16_pack(c_.src.bits, from, src_.line_bytes(), rows, to, how_);
            });
            return true;
        }
        if (c_.src.packed && is_direct(c_.dst)) {
            for_tiles(c_.src, src_, [&](int l, int i, int rows, const uint8_t *from) {
                uint8_t *to = dst_.at(line_ + l, pos_ + i);
                if (nibbles)
                    k_.n16_unpack_nibbles(from, rows, to, dst_.line_bytes(), how_);
                else
                    k_.n16_unpack(c_.src.bits, from, rows, to, dst_.line_bytes(), how_);
            });
            return true;
        }
        return false;
    }

    // Plain lines of codes that stand as kernels take and leave them.
    bool is_direct(const reorder_side_conf_t &side) const {
        return !side.packed && side.along_line && side.storage != code_storage_t::dense_6;
    }
};

} // namespace

namespace {

// What one execution is divided into. Threads share all items of a batch, so that neither many small matrices
// nor a few large ones leave a thread idle.
class items_t {
public:
    items_t(const reorder_conf_t &c, const exec_ctx_t &ctx)
        : c_(c), ctx_(ctx), md_(ctx.memory(MXDNN_ARG_DST)->md) {
        lines_ = md_.dims[c.dst.line_dim];
        length_ = md_.dims[c.dst.pos_dim];
        batch_ = batch_of(md_);
        chunks_ = div_up(length_, c.chunk);
        groups_ = div_up(lines_, c.item_lines());
        per_entry_ = groups_ * chunks_;
    }

    bool empty() const { return batch_ == 0 || lines_ == 0 || length_ == 0; }
    int64_t batch() const { return batch_; }

    int threads() const {
        const int64_t useful = div_up(batch_ * lines_ * length_, elements_per_thread);
        const int most = threads_of(ctx_.stream, ctx_.pd.problem.max_concurrency);
        return int(std::min<int64_t>({most, useful, batch_ * per_entry_}));
    }

    void index_of(int64_t entry, dim_t *idx) const { batch_index(md_, entry, idx); }

    // Runs body(worker, item, next) for all, in parallel. The last one of a matrix is next to itself.
    template <typename F>
    void run(write_t how, F &&body) const {
        const int64_t n = batch_ * per_entry_;
        parallel(ctx_.stream, threads(), [&](int ithr, int nthr) {
            reorder_worker_t worker(c_, ctx_, how);
            int64_t begin, end, entry = -1;
            balance(n, nthr, ithr, begin, end);
            for (int64_t i = begin; i < end; i++) {
                if (i / per_entry_ != entry) {
                    entry = i / per_entry_;
                    dim_t idx[max_ndims] = {};
                    index_of(entry, idx);
                    worker.set_batch(idx);
                }
                const int64_t n_in_entry = i % per_entry_;
                body(worker, item(n_in_entry), item(std::min(n_in_entry + 1, per_entry_ - 1)));
            }
        });
    }

private:
    const reorder_conf_t &c_;
    const exec_ctx_t &ctx_;
    const memory_desc_t &md_;
    dim_t lines_, length_, batch_;
    int64_t chunks_, groups_, per_entry_; // of positions, of lines

    // Along what is contiguous first: where lines stand side by side, a position is on another page.
    item_t item(int64_t i) const {
        const int64_t group = c_.by_rows ? i % groups_ : i / chunks_,
                      chunk = c_.by_rows ? i / groups_ : i % chunks_;
        return {group * c_.item_lines(), chunk * c_.chunk};
    }
};

void raise_to(uint32_t *most, uint32_t value) {
    uint32_t so_far = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (so_far < value
            && !__atomic_compare_exchange_n(most, &so_far, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

// The destination's global scales, before anything is written under them.
void make_global_scales(const reorder_conf_t &c, const exec_ctx_t &ctx, const items_t &items) {
    const memory_t *given =
            c.moves || c.measures ? nullptr : ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    const auto for_entries = [&](auto &&body) {
        for (int64_t entry = 0; entry < items.batch(); entry++) {
            dim_t idx[max_ndims] = {};
            items.index_of(entry, idx);
            reorder_side_t dst(c.dst, ctx);
            dst.set_batch(idx);
            body(entry, idx, dst);
            if (c.measures && !dst.has_global_of_its_own()) break;
        }
    };
    if (!c.measures) {
        for_entries([&](int64_t entry, const dim_t *idx, reorder_side_t &dst) {
            if (c.moves) {
                reorder_side_t src(c.src, ctx);
                src.set_batch(idx);
                dst.set_global(src.global());
            } else if (c.dst.packed) { // else it is where the caller put it
                dst.set_global(static_cast<const float *>(given->handle)[given->md.dims[0] == 1 ? 0 : entry]);
            }
        });
        return;
    }
    // The largest magnitude, as bits, gathers where the scale will be.
    for_entries([](int64_t, const dim_t *, reorder_side_t &dst) { dst.set_global(0.f); });
    items.run(write_t::cached, [](reorder_worker_t &worker, const item_t &i, const item_t &) {
        raise_to(worker.dst().global_bits(), worker.amax(i.line, i.pos));
    });
    for_entries([](int64_t, const dim_t *, reorder_side_t &dst) {
        dst.set_global(nvfp4_global_scale(dst.global()));
    });
}

} // namespace

status_t simd_mx_reorder_base_t::execute(const exec_ctx_t &ctx) const {
    const reorder_conf_t &c = conf_;
    const memory_t &to = *ctx.memory(MXDNN_ARG_DST);
    const memory_desc_t &md = to.md;
    const items_t items(c, ctx);
    // What is no element of a swizzled destination is zero; packed tiles are written whole.
    if (c.dst.swizzled && !c.given) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        std::memset(scales.handle, 0, size_t(size_of(scales.md)));
    }
    if (items.empty()) {
        if (c.dst.packed) std::memset(to.handle, 0, size_t(size_of(md)));
        return mxdnn_success;
    }
    if (c.dst.quantised && c.dst.format.has_global) make_global_scales(c, ctx, items);

    // What a thread's own cache does not hold anyhow is written around it. Neighbouring items share no byte:
    // groups are 16 lines or a multiple, chunks whole blocks.
    const int64_t bytes = size_of(ctx.memory(MXDNN_ARG_SRC)->md) + size_of(md);
    const write_t how = bytes / items.threads() > 2 * cache_sizes().l2 ? write_t::around : write_t::cached;
    items.run(how, [](reorder_worker_t &worker, const item_t &i, const item_t &next) {
        worker.reorder(i.line, i.pos, next);
    });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
