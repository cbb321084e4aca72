// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/reorder/reorder_conf.hpp"

#include <algorithm>

#include "common/problem_reorder.hpp"
#include "common/problem_util.hpp"
#include "cpu/cpu_backend.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// Positions that are processed together if codes have to be transposed, for as many lines as there is room
// for. Rows of 4-bit codes are whole cache lines then.
constexpr int turned_length = 256;
// Positions of codes that are moved with their parameters, which need few bytes.
constexpr int moved_length = 4 * reorder_max_length;
constexpr int wide_moved_length = 2 * reorder_max_length; // of 64 lines
static_assert(
        moved_length <= reorder_max_lines * reorder_max_block / reorder_lines, "there is room for as many");
// Positions of lines of values to panels of 64 columns, which need no buffer for codes.
constexpr int most_run = 2048, least_items = 128;
// Lines of codes that become rows of values through tiles, which stay in the first-level cache.
constexpr int lines_to_rows = 128;

bool is_high_precision(data_type_t dt) { return has_role(dt, role_high_precision); }

// Whether there are kernels from values to packed panels, or from panels to values.
bool has_panel_kernels(const reorder_conf_t &c) {
    if (c.moves || c.given || !c.kernels->quantise_panels) return false;
    const reorder_side_conf_t &codes = c.dst.quantised ? c.dst : c.src;
    const reorder_side_conf_t &values = c.dst.quantised ? c.src : c.dst;
    if (values.quantised || (c.dst.quantised && codes.format.zp == zero_point_kind_t::minimum)) return false;
    if (values.dt != mxdnn_bf16)
        return c.dst.quantised ? rounds_as_words(codes.format) : becomes_words(codes.format);
    return !c.dst.quantised || codes.format.family != quant_family_t::affine || codes.format.scale_bytes == 2;
}

// Integers of 4 bits for which there are tables.
bool are_tabled_integers(const block_format_t &f) {
    return f.elem == mxdnn_s4 && f.scale_dt == mxdnn_bf16 && f.zp == zero_point_kind_t::none;
}

// Whether lines of codes are stored as kernels read and write them.
bool are_plain_lines(const reorder_side_conf_t &codes) {
    return !codes.packed && codes.along_line && codes.storage != code_storage_t::dense_6;
}

} // namespace

reason_t configure(reorder_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    if (!mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    // A CPU target that runs here uses no ISA above its own.
    const bool capped =
            p.engine->kind() == mxdnn_cpu && p.engine->executes && !includes(isa_of(*p.engine), isa);
    if (capped) return no("engine", p.engine->target->name, isa_name(isa));
    if (is_high_precision(p.src.dt) && is_high_precision(p.dst.dt))
        return no("src and dst", "high precision on both sides", "a quantised type on at least one");
    quant_t q, codes_quant;
    int axis[2] = {0, 0};
    for (bool is_src : {true, false}) {
        const memory_desc_t &md = is_src ? p.src : p.dst;
        if (is_high_precision(md.dt)) continue;
        if (quant_of(is_src ? "src" : "dst", md, is_src ? p.attr.src : p.attr.dst, q, &axis[is_src])
                != mxdnn_success)
            return no(is_src ? "src" : "dst", to_string(md).c_str(), "known scales");
        codes_quant = q;
    }
    if (axis[0] && axis[1] && axis[0] != axis[1])
        return no("blocks", "src and dst blocked along different dims", "the same dim");
    if (const reason_t known = check_decoders(p); !known.ok()) return known;
    const int blocked = axis[0] ? axis[0] : axis[1];
    c.kernels = isa == cpu_isa_t::avx2 ? &reorder_kernels_avx2 : &reorder_kernels_avx512;
    reason_t r = configure_side(c.src, *c.kernels, p, true, blocked);
    if (r.ok()) r = configure_side(c.dst, *c.kernels, p, false, blocked);
    if (!r.ok()) return r;

    c.moves = moves_codes(p);
    c.given = c.dst.quantised && !c.moves && !p.attr.dst.is_dynamic();
    c.measures = c.dst.quantised && !c.moves && c.dst.format.has_global
                 && c.dst.global_mode != mxdnn_quantization_mode_static_sazp;

    // Values are processed in place. Codes are transposed if necessary, since they are smaller.
    const reorder_side_conf_t &values = c.dst.quantised ? c.src : c.dst;
    if (!values.quantised)
        c.by_rows = values.by_rows();
    else if (c.moves)
        c.by_rows = (c.src.packed || c.src.by_rows()) && (c.dst.packed || c.dst.by_rows())
                    && !(c.src.packed && c.dst.packed);
    c.tables = !c.dst.quantised && !c.by_rows && c.dst.dt == mxdnn_bf16
               && (c.src.dt == mxdnn_f4_e2m1 || (are_tabled_integers(c.src.format) && !has_panel_kernels(c)));
    const auto is_turned = [&](const reorder_side_conf_t &s) {
        return !s.packed && s.by_rows() != c.by_rows;
    };
    const bool turned = is_turned(c.src) || is_turned(c.dst);
    const int64_t tile = std::max<int64_t>({c.src.tile_rows(), c.dst.tile_rows(), n16_frame_t::min_tile_rows,
            c.src.format.block, c.dst.format.block});
    const int columns = std::max({reorder_lines, c.src.panels.columns, c.dst.panels.columns});
    c.group = c.by_rows || turned ? reorder_max_lines : columns;
    c.chunk = int(turned ? turned_length : c.by_rows ? tile : c.moves ? moved_length : reorder_max_length);
    if (!c.by_rows && !turned && columns > reorder_lines)
        c.chunk = c.moves           ? wide_moved_length
                  : c.dst.quantised ? reorder_max_length
                                    : reorder_max_block; // a byte for each code stays in cache
    const reorder_side_conf_t &codes = c.dst.quantised ? c.dst : c.src;
    // The tiles of these kernels are those of n16.
    const bool other_panels = codes.packed && codes.panels.columns != reorder_lines;
    c.lines_to_panels = has_panel_kernels(c) && !c.by_rows && other_panels;
    c.turns_tiles = has_panel_kernels(c) && c.by_rows && (other_panels || are_plain_lines(codes));
    c.codes_in_lines = has_panel_kernels(c) && !c.by_rows && are_plain_lines(codes);
    if (c.codes_in_lines) {
        c.panel_lines = 2 * reorder_lines;
        c.tables = false;
    }
    if (c.turns_tiles) {
        c.group = reorder_max_lines;
        c.tile = make_packed_shape(tile, reorder_lines, codes.bits, codes_quant);
        for (const layout_t &l : layout_list)
            if (l.family == target_family_t::cpu_x64 && l.bits == codes.bits)
                c.tile_codec = find_codec(*c.kernels, l.family, l.id);
    }
    if (has_panel_kernels(c) && (codes.packed || c.turns_tiles)) {
        const int block = codes.format.block;
        c.panel_lines = c.by_rows ? panel_lines_of(block) : std::max(2 * reorder_lines, codes.panels.columns);
        if (c.turns_tiles && !c.dst.quantised) c.panel_lines = std::min(c.panel_lines, lines_to_rows);
        c.chunk = c.lines_to_panels ? reorder_max_block : int(tile);
    }
    c.quantises_panels = !c.by_rows && !turned && !c.moves && !c.given && c.dst.packed
                         && c.dst.codec->quantise && c.group == c.dst.panels.columns;
    c.run = c.chunk;
    if (c.quantises_panels && !c.src.quantised) {
        // There is room for the parameters of so many blocks, and all threads shall have work.
        const block_format_t &f = c.dst.format;
        constexpr int room = 4 * (reorder_max_block / int(nvfp4_block)) * reorder_max_lines;
        const int most = room / c.group / std::max(f.scale_bytes, f.zp_bytes) * f.block;
        double groups = 1. / c.group;
        for (int d = 0; d < p.src.ndims; d++) groups *= double(p.src.dims[d]);
        while (2 * c.run <= std::min(most, most_run) && groups / (2 * c.run) >= least_items) c.run *= 2;
    }
    c.along_lines = !c.by_rows || (c.turns_tiles && !codes.packed && !c.dst.quantised);
    return yes();
}

// ---- codes to codes ----

namespace {

// Values in cache, of the shape of `md`: rows of lines, or lines.
memory_desc_t values_between(const memory_desc_t &md, data_type_t dt, int inner, int outer) {
    memory_desc_t values;
    values.ndims = md.ndims;
    values.dt = dt;
    values.kind = mxdnn_blocked;
    for (int d = 0; d < md.ndims; d++) {
        values.dims[d] = md.dims[d];
        values.strides[d] = d == inner ? 1 : d == outer ? requantise_conf_t::most_length : 1 << 16;
    }
    return values;
}

// Less at a time than elsewhere, because there is a buffer for values.
void keep_small(reorder_conf_t &c) {
    c.group = std::min(c.group, requantise_conf_t::most_lines);
    c.panel_lines = std::min(c.panel_lines, requantise_conf_t::most_lines);
    c.chunk = std::min(c.chunk, requantise_conf_t::most_length);
    c.run = c.chunk;
}

// The least scale under which bf16 holds all values of an MX type.
int least_scale_of_bf16(data_type_t dt) {
    constexpr int least_exponent = -133, bias = 127; // of bf16, of e8m0
    int least = 0;
    visit_type(mx_element_types(), dt, [&](auto e) {
        using E = decltype(e);
        if constexpr (E::is_float) least = least_exponent + bias - (1 - E::bias - E::mantissa_bits);
    });
    return std::max(least, 0);
}

// Whether tiles of packed codes may become those of other packed codes.
bool may_recode(const reorder_conf_t &c) {
    const auto is_n16 = [](const reorder_side_conf_t &s) {
        return s.packed && s.panels.columns == reorder_lines && s.panels.tile_rows == recode_t::most_rows;
    };
    return !c.given && is_n16(c.src) && is_n16(c.dst);
}
// Whether the kernels of AVX-512 that do so have the instructions that they need.
bool may_use_vbmi(const reorder_conf_t &c, const problem_t &p) {
    constexpr cpu_isa_t isa = cpu_isa_t::avx512_core_bf16; // the named set with VBMI
    const bool is_capped =
            p.engine->kind() == mxdnn_cpu && p.engine->executes && !includes(isa_of(*p.engine), isa);
    return c.kernels == &reorder_kernels_avx512 && mayiuse(isa) && !is_capped;
}
bool recodes_nibbles(const reorder_conf_t &c) {
    return recode_t::takes(c.src.format) && recode_t::takes(c.dst.format)
           && (c.src.dt == mxdnn_f4_e2m1 || c.src.dt == mxdnn_s4);
}

} // namespace

reason_t configure(requantise_conf_t &c, const reorder_conf_t &conf, const problem_t &p, cpu_isa_t isa) {
    // Kernels for panels take n16 in rows in less time; without them lines take less.
    const auto is_n16 = [&](const reorder_side_conf_t &side) {
        return side.packed && side.panels.columns == reorder_lines && conf.kernels->quantise_panels;
    };
    const bool by_rows = is_n16(conf.src) || is_n16(conf.dst) || conf.src.by_rows() || conf.dst.by_rows();
    const int inner = by_rows ? conf.dst.line_dim : conf.dst.pos_dim,
              outer = by_rows ? conf.dst.pos_dim : conf.dst.line_dim;
    for (data_type_t dt : {mxdnn_bf16, mxdnn_f32}) {
        requantise_conf_t::way_t &way = dt == mxdnn_bf16 ? c.by_bf16 : c.by_f32;
        problem_t half = p;
        half.dst = values_between(p.dst, dt, inner, outer);
        half.attr.dst = {};
        reason_t r = configure(way.decode, half, isa);
        half = p;
        half.src = values_between(p.src, dt, inner, outer);
        half.attr.src = {};
        if (r.ok()) r = configure(way.encode, half, isa);
        if (!r.ok()) return r;
        for (reorder_conf_t *w : {&way.decode, &way.encode}) {
            keep_small(*w);
            c.lines = std::max(c.lines, w->item_lines());
            c.length = std::max(c.length, w->item_length());
        }
    }
    c.is_bf16 = becomes_words(conf.src.format);
    if (may_recode(conf)) {
        const bool with_vbmi = may_use_vbmi(conf, p);
        const auto takes = [&](bool vbmi) {
            return recode_bytes_t::takes(conf.src.format, conf.dst.format, vbmi);
        };
        // With VBMI, tables by pairs of scales take less time, but NVFP4 has too many pairs.
        const bool is_nvfp4 =
                conf.src.format.scale_dt == mxdnn_f8_e4m3 || conf.dst.format.scale_dt == mxdnn_f8_e4m3;
        const bool by_avx512 = with_vbmi && takes(true);
        if (by_avx512 || ((!with_vbmi || is_nvfp4) && takes(false))) {
            c.bytes = std::make_shared<const recode_bytes_t>(conf.src.format, conf.dst.format);
            c.recode_bytes = by_avx512 ? recode_bytes_of_panels_avx512 : recode_bytes_of_panels_avx2;
        } else if (recodes_nibbles(conf)) {
            // Without VBMI, values of f4_e2m1 take less time as words of AVX-512.
            const bool by_words = conf.kernels == &reorder_kernels_avx512 && conf.src.dt == mxdnn_f4_e2m1;
            if (with_vbmi)
                c.recode_panels = reorder_kernels_avx512.recode_panels;
            else if (!by_words)
                c.recode_panels = reorder_kernels_avx2.recode_panels;
        }
    }
    c.least_scale = conf.src.format.family == quant_family_t::mx ? least_scale_of_bf16(conf.src.dt) : 0;
    c.along_lines = !(conf.src.by_rows() || conf.dst.by_rows());
    return yes();
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
