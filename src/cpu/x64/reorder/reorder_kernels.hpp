// SPDX-License-Identifier: Apache-2.0
// Operations on up to 16 lines in cache: what mx_reorder is made of. A line runs along the blocked axis;
// codes in flight take a byte each. Compiled once per vector ISA from the body_*.hpp of this folder.
#pragma once

#include "common/formats/named_formats.hpp"
#include "common/layouts/layout_list.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Lines that kernels process together, and columns of a packed panel of the n16 layouts.
constexpr int reorder_lines = 16;
// The largest number of lines that are processed together.
constexpr int reorder_max_lines = 128;
// The largest number of positions of a line in one call: whole blocks of any format.
constexpr int reorder_max_length = 512;
constexpr int reorder_max_block = 256;

// A quantised format as kernels see it.
struct block_format_t {
    data_type_t elem = mxdnn_data_type_undef;
    quant_family_t family = quant_family_t::none;
    int block = 0;
    data_type_t scale_dt = mxdnn_data_type_undef, zp_dt = mxdnn_data_type_undef;
    int scale_bytes = 0, zp_bytes = 0;
    zero_point_kind_t zp = zero_point_kind_t::none;
    bool has_global = false;
    scale_rounding_t rounding = mxdnn_scale_rounding_floor;
};

// How codes of a row are stored in plain memory.
enum class code_storage_t { bytes, low_6_bits, dense_6, nibbles };

// Scales and zero points of lines: [block][pitch] in the scale's own type. Those of lines that do not exist
// are neither read nor written.
struct line_params_t {
    uint8_t *scales = nullptr;
    uint8_t *zero_points = nullptr; // null if there are none
    int pitch = 0;
};

// The bf16 values of the 16 codes of a 4-bit type: the low bytes, then the high bytes. Under each scale of
// one byte, or under each sign and mantissa of a bf16 scale.
struct nibble_tables_t {
    uint8_t bytes[256][32];
};

// What is prefetched while something else is processed: runs of so many bytes.
struct ahead_t {
    const uint8_t *data = nullptr;
    int64_t apart = 0; // from run to run
    int bytes = 0, runs = 0;
};

// `n` positions of `lines` lines that are line_bytes apart.
struct source_lines_t {
    const void *data = nullptr;
    data_type_t dt = mxdnn_data_type_undef; // f32, bf16, f16
    int64_t line_bytes = 0;
    int lines = 0, n = 0;
    // The lines of the next call, which are prefetched meanwhile; null if there are none.
    const void *next = nullptr;
};

// Values in plain memory, to or from packed tiles of some panels: `rows` positions, whole blocks and a
// multiple of 32, of `lines` lines, in whole pairs of panels. Either positions are contiguous, with one pair
// of panels, or lines are.
struct panels_values_t {
    void *data = nullptr;
    data_type_t dt = mxdnn_data_type_undef; // f32, bf16, f16
    int64_t line_bytes = 0, pos_bytes = 0;  // one of them is size()
    int lines = 0, rows = 0;
    const void *next = nullptr; // the values of the next call

    int size() const { return dt == mxdnn_f32 ? 4 : 2; }
    // Whether positions are contiguous.
    bool lines_apart() const { return pos_bytes == size(); }
};
// Contiguous lines are processed in runs of some cache lines, because the next position may be on another
// page.
constexpr int most_panel_lines = 256, most_panel_bytes = 1 << 15;
constexpr int most_panels = most_panel_lines / reorder_lines;
constexpr int panel_lines_of(int block) {
    const int lines = most_panel_bytes / 2 / (block < 32 ? 32 : block);
    return lines < most_panel_lines ? lines : most_panel_lines;
}

// Writes results. If they do not fit in the caches, stores bypass these, which saves reading the lines first.
// The writer calls finish() before anyone else reads.
enum class write_t { cached, around };

// Data that is written while other data is processed, some runs at a time. All at once it would be waited
// for.
struct written_later_t {
    alignas(64) uint8_t x[2][most_panel_bytes]; // one of them is being written
    int free = 0;                               // the other buffer
    const uint8_t *from = nullptr;              // contiguous runs
    uint8_t *to = nullptr;
    int64_t apart = 0;     // bytes from run to run
    int run = 0, runs = 0; // bytes of a run; remaining runs
    write_t how = write_t::cached;

    uint8_t *buffer() { return x[free]; }
};

// Whether f32 and f16 may be truncated to 16 bits before they are encoded. The last bit tells whether
// truncation lost something. Minifloats have fewer bits, and powers of two and their choice only involve
// exponents. But rceil divides the largest magnitude.
constexpr bool rounds_as_words(const block_format_t &f) {
    return f.family == quant_family_t::mx && f.elem != mxdnn_s8 && f.rounding != mxdnn_scale_rounding_rceil;
}
// Whether bf16 can represent all values under ordinary scales.
constexpr bool becomes_words(const block_format_t &f) {
    return f.family != quant_family_t::affine && !f.has_global;
}

// The codes of packed tiles of a panel, one tile behind the other.
struct code_tiles_t {
    uint8_t *codes = nullptr; // of the first tile
    int rows = 0;             // of all tiles, a multiple of the layout's row_step
    int tile_rows = 0;        // of one
    int64_t tile_bytes = 0;   // from one to the next
};

// What codes of 4 bits become in another format, by the scales of both sides: for formats without zero points
// whose scales have up to two bytes. A factor of two in both scales changes nothing.
struct recode_t {
    static constexpr int codes = 16, most_block = 128, most_rows = 128;
    static constexpr int bits = 12, places = 1 << bits;
    static constexpr uint32_t no_key = ~0u;
    // With more pairs of scales, entries would not find a place.
    static constexpr int most_entries = places * 2 / 5;

    block_format_t from, to;
    float from_global = 1, to_global = 1;
    int entries = 0;
    // An entry is in one of two places.
    alignas(64) uint32_t key[places];
    alignas(64) uint8_t entry[places][codes];

    void forget() {
        for (uint32_t &k : key) k = no_key;
        entries = 0;
    }
    static bool takes(const block_format_t &f) {
        return f.zp == zero_point_kind_t::none && f.scale_bytes <= 2 && f.block <= most_block;
    }
    static bool takes_global(float g) { return g >= 0x1p-60f && g <= 0x1p60f; }
    // Of a tile in one of the n16 layouts.
    static int header_bytes(const block_format_t &f, int rows) {
        return (rows / f.block * reorder_lines * f.scale_bytes + 63) / 64 * 64;
    }
};

// Packed tiles of f4_e2m1 or s4 to those of another format, of some panels: whole blocks on both sides.
// `ahead`: bytes to the next tile. False where a scale is none; tiles are then not complete. Not to be called
// again once there are most_entries.
using recode_panels_t = bool(recode_t &r, const uint8_t *from, int64_t from_panel, uint8_t *to,
        int64_t to_panel, int panels, int rows, int64_t ahead, write_t how);

// The order of codes in a panel of a layout. `rows` is a multiple of `row_step`. The codes of `row_step` rows
// are contiguous in a tile.
struct panel_codec_t {
    target_family_t family;
    uint32_t id;
    int bits, columns, row_step;

    // Copies columns of codes, a byte each, to and from tiles. For 6-bit codes the upper bits of a byte are
    // ignored. `ahead`: bytes from what is read to what is read next, which is prefetched; 0: nothing is.
    void (*pack)(const uint8_t *codes, int64_t pitch, const code_tiles_t &to, int64_t ahead, write_t how);
    void (*unpack)(const code_tiles_t &from, int64_t ahead, uint8_t *codes, int64_t pitch);
    // The same for rows of codes.
    void (*pack_rows)(const uint8_t *codes, int64_t pitch, int rows, uint8_t *panel, write_t how);
    void (*unpack_rows)(const uint8_t *panel, int rows, uint8_t *codes, int64_t pitch);
    // The same for columns with two codes in a byte, as in plain memory; null unless codes have 4 bits.
    void (*pack_nibbles)(
            const uint8_t *nibbles, int64_t pitch, const code_tiles_t &to, int64_t ahead, write_t how);
    void (*unpack_nibbles)(const code_tiles_t &from, int64_t ahead, uint8_t *nibbles, int64_t pitch);
    // Copies scales or zero points, [block][columns] of so many bytes each, with rows `pitch` bytes apart, to
    // and from their order in a tile.
    void (*pack_params)(int bytes, const uint8_t *rows, int64_t pitch, int blocks, uint8_t *params);
    void (*unpack_params)(int bytes, const uint8_t *params, int blocks, uint8_t *rows, int64_t pitch);
    // Quantises 16 lines, of whole blocks and a multiple of row_step, with computed scales: the codes of
    // columns from `column` on, of which the first tile is `to`. Global scales are positive. May be null.
    void (*quantise)(const block_format_t &f, const source_lines_t &src, float global,
            const line_params_t &params, const code_tiles_t &to, int column, write_t how);
};

struct reorder_kernels_t {
    // Quantises to codes, a byte each, with lines `pitch` apart. A line is filled with zeros to a multiple of
    // 32, and there is room for whole blocks. With `nibbles` (4-bit codes, whole blocks and a multiple of 64
    // codes) they have half a byte each, as in plain memory. Scales and zero points are computed unless they
    // are `given`.
    void (*quantise)(const block_format_t &f, bool given, const source_lines_t &src, float global,
            const line_params_t &params, uint8_t *codes, int64_t pitch, bool nibbles, write_t how);
    // The same for rows. In `src` lines and positions are exchanged: it has positions as lines, and lines, up
    // to reorder_max_lines, as positions. So have the codes, a byte each. There is room for a multiple of 32
    // lines.
    void (*quantise_rows)(const block_format_t &f, bool given, const source_lines_t &src, float global,
            const line_params_t &params, uint8_t *codes, int64_t pitch);
    // Computes the values of codes as f32, bf16 or f16. `tables` may be null.
    void (*dequantise)(const block_format_t &f, const uint8_t *codes, int64_t pitch, int lines, int n,
            float global, const line_params_t &params, const nibble_tables_t *tables, data_type_t dt,
            void *dst, int64_t line_bytes, const ahead_t &ahead, write_t how);
    // Tables for dequantise() to bf16 with this global scale: of f4_e2m1, or of s4 with bf16 scales.
    void (*fill_tables)(const block_format_t &f, float global, nibble_tables_t &tables);
    // The same for rows, as quantise_rows() has them.
    void (*dequantise_rows)(const block_format_t &f, const uint8_t *codes, int64_t pitch, int rows, int lines,
            float global, const line_params_t &params, data_type_t dt, void *dst, int64_t row_bytes,
            const ahead_t &ahead, write_t how);
    // The largest finite magnitude, as f32 bits.
    uint32_t (*finite_amax)(const source_lines_t &src);

    // out[c][r] = in[r][c] for elements of 1, 2 or 4 bytes; pitches in bytes.
    void (*transpose)(
            int bytes, const void *in, int64_t in_pitch, int rows, int cols, void *out, int64_t out_pitch);
    // Converts a row of plain codes from and to a byte each. Other bits of the last byte do not change.
    void (*unpack_row)(code_storage_t storage, const uint8_t *row, int n, uint8_t *codes);
    void (*pack_row)(code_storage_t storage, const uint8_t *codes, int n, uint8_t *row, write_t how);

    // The layouts that packed sides may have.
    const panel_codec_t *codecs;
    int ncodecs;

    // Writes some bytes; the contents of its buffer(), after all others; and all that remains, before anyone
    // else reads.
    void (*write_some)(written_later_t &later, int bytes);
    void (*write_later)(written_later_t &later, write_t how, uint8_t *to, int64_t apart, int run, int runs);
    void (*finish)(written_later_t &later);

    // Converts values to codes, scales and zero points, which are computed, of a packed tile of each panel,
    // and back. f32 and f16 need rounds_as_words() and becomes_words(); affine formats have scales of 16
    // bits. Null if an ISA has no such kernels.
    void (*quantise_panels)(const block_format_t &f, const panels_values_t &src, float global, uint8_t *tile,
            int64_t panel_bytes, int header_bytes, write_t how, written_later_t &later);
    // The same for 32 lines, whose positions are a multiple of 64, to lines of plain codes: a byte each, or 4
    // bits. Without `later` they are written at once.
    void (*quantise_code_lines)(const block_format_t &f, const panels_values_t &src, float global,
            const line_params_t &params, uint8_t *codes, int64_t line_bytes, write_t how,
            written_later_t *later);
    // `ahead`: bytes to the next tile.
    void (*dequantise_panels)(const block_format_t &f, const uint8_t *tile, int64_t panel_bytes,
            int header_bytes, int64_t ahead, float global, const panels_values_t &dst, write_t how,
            written_later_t &later);
    // `next`: the next lines.
    void (*dequantise_code_lines)(const block_format_t &f, const uint8_t *codes, int64_t line_bytes,
            const uint8_t *next, const line_params_t &params, float global, const panels_values_t &dst,
            write_t how);

    // Needs VBMI if it is that of AVX-512.
    recode_panels_t *recode_panels;
};

extern const reorder_kernels_t reorder_kernels_avx2, reorder_kernels_avx512;

inline const panel_codec_t *find_codec(const reorder_kernels_t &k, target_family_t family, uint32_t id) {
    for (int i = 0; i < k.ncodecs; i++)
        if (k.codecs[i].family == family && k.codecs[i].id == id) return &k.codecs[i];
    return nullptr;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
