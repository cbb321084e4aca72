// SPDX-License-Identifier: Apache-2.0
// From bytes to descriptor. The bytes come from strangers: each value passes its field's range, then the
// values are held against one another, and only then is a descriptor made and anything allocated.
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "common/blob/blob.hpp"
#include "common/blob/little_endian.hpp"
#include "common/blob/options.hpp"
#include "common/blob/xxh64.hpp"
#include "common/error.hpp"
#include "common/formats/format_list.hpp"
#include "common/packed_desc.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Called once: whoever sees a fault reads no further.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
bool refuse_as(blob_fault_t &fault, blob_class_t kind, const char *format, ...) {
    fault.kind = kind;
    va_list args;
    va_start(args, format);
    vsnprintf(fault.text, sizeof(fault.text), format, args);
    va_end(args);
    return false;
}

// All reading of the blob's bytes. Bounds are checked by subtraction, ranges by the table.
struct cursor_t {
    const uint8_t *p;
    size_t left;
    blob_fault_t &fault;

    uint64_t take(const field_t &f) {
        if (fault.kind != blob_class_t::ok) return 0;
        if (size_t(f.bytes) > left) {
            refuse_as(fault, blob_class_t::corrupt,
                    "%s: %zu bytes are left of the blob, and the field has %d", f.name, left, f.bytes);
            return 0;
        }
        const uint64_t v = load_le(p, f.bytes);
        p += f.bytes;
        left -= size_t(f.bytes);
        const bool runtime = f.list && v == uint64_t(runtime_dim);
        if (f.lowest == f.highest && v != f.lowest)
            refuse_as(fault, blob_class_t::corrupt,
                    "%s is %" PRIu64 " (0x%" PRIx64 "); in every blob of mxdnn it is %" PRIu64 " (0x%" PRIx64
                    ")",
                    f.name, v, v, f.lowest, f.lowest);
        else if (!runtime && (v < f.lowest || v > f.highest))
            refuse_as(fault, blob_class_t::corrupt,
                    "%s is %" PRIu64 " (0x%" PRIx64 "); it is %" PRIu64 " to %" PRIu64 "%s", f.name, v, v,
                    f.lowest, f.highest, f.list ? " or a runtime value" : "");
        return v;
    }
    void take(const field_t &f, blob_fields_t &values) {
        if (f.one) {
            values.*f.one = take(f);
            return;
        }
        for (uint64_t i = 0; i < values.ndims && fault.kind == blob_class_t::ok; i++)
            (values.*f.list)[i] = take(f);
    }
};

// Compares a value of the blob with the only value that it can have.
bool expect(blob_fault_t &fault, const char *name, uint64_t found, uint64_t needed, const char *why) {
    if (found == needed) return true;
    return refuse_as(fault, blob_class_t::corrupt, "%s is %" PRIu64 "; %s, so it must be %" PRIu64, name,
            found, why, needed);
}

// An integer that is not an enumerator must not become an enum. It is compared as an integer.
bool is_data_type(uint64_t value) {
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows)
        if (uint64_t(row.id) == value) return true;
    return false;
}

bool known_type(blob_fault_t &fault, const char *name, uint64_t value) {
    if (is_data_type(value)) return true;
    return refuse_as(fault, blob_class_t::unknown_layout,
            "%s is %" PRIu64 " (0x%" PRIx64 "), which is no data type of this release", name, value, value);
}

bool read_envelope(const uint8_t *blob, size_t size, blob_fields_t &values, blob_fault_t &fault) {
    if (size < min_blob_bytes)
        return refuse_as(fault, blob_class_t::corrupt, "the blob has %zu bytes; the shortest has %zu", size,
                min_blob_bytes);
    cursor_t cursor{blob, size, fault};
    for (const field_t &f : blob_fields)
        if (f.section == section_t::envelope) cursor.take(f, values);
    if (fault.kind != blob_class_t::ok) return false;
    if (values.total_length != size)
        return refuse_as(fault, blob_class_t::corrupt,
                "total_length is %" PRIu64 ", and the blob has %zu bytes", values.total_length, size);
    const uint64_t stored = load_le(blob + size - checksum_bytes, checksum_bytes);
    const uint64_t computed = xxh64(blob, size - checksum_bytes, 0);
    if (stored != computed)
        return refuse_as(fault, blob_class_t::corrupt,
                "the checksum is %016" PRIx64 ", and that of the bytes is %016" PRIx64, stored, computed);
    if (values.oldest_reader > values.format_version)
        return refuse_as(fault, blob_class_t::corrupt,
                "oldest_reader is %" PRIu64 ", beyond the format_version of %" PRIu64, values.oldest_reader,
                values.format_version);
    if (values.oldest_reader > blob_format_version)
        return refuse_as(fault, blob_class_t::newer_format,
                "the blob needs a reader of format version %" PRIu64
                " or later; this release reads version %" PRIu64 " and those before",
                values.oldest_reader, blob_format_version);
    return true;
}

// Options point into the blob. Nothing is copied before all else has been checked.
struct options_t {
    const uint8_t *begin = nullptr;
    size_t bytes = 0;
    data_type_t original_dt = mxdnn_data_type_undef;
    option_t recipe;
    size_t unknown_bytes = 0;
};

// An original type that only a newer release knows is kept as an unknown field.
bool is_understood(const option_t &o) {
    if (o.tag == option_original_type) return is_data_type(load_le(o.value, 2));
    return o.tag == option_recipe;
}

bool read_options(options_t &options, blob_fault_t &fault) {
    const uint8_t *p = options.begin;
    size_t left = options.bytes;
    uint32_t last = 0;
    while (left > 0) {
        option_t o;
        if (!take_option(p, left, o))
            return refuse_as(fault, blob_class_t::corrupt,
                    "optional field 0x%04" PRIx32 ": %zu bytes are left of the blob, and the field has %zu",
                    o.tag, left, o.bytes + option_header_bytes);
        if (o.tag <= last)
            return refuse_as(fault, blob_class_t::corrupt,
                    "optional field 0x%04" PRIx32 " comes after 0x%04" PRIx32 "; tags ascend from 1", o.tag,
                    last);
        last = o.tag;
        if (o.tag == option_original_type && o.bytes != 2)
            return refuse_as(fault, blob_class_t::corrupt, "original_type has %zu bytes; it has 2", o.bytes);
        if (o.tag == option_recipe) {
            const char *wrong = o.bytes == 0 ? "is empty; it is left out then"
                                             : check_recipe(reinterpret_cast<const char *>(o.value), o.bytes);
            if (wrong) return refuse_as(fault, blob_class_t::corrupt, "recipe %s", wrong);
        }
        if (!is_understood(o)) {
            if (o.tag & option_required)
                return refuse_as(fault, blob_class_t::newer_format,
                        "required field 0x%04" PRIx32
                        " is not known to this release; a newer one wrote the blob",
                        o.tag);
            options.unknown_bytes += option_header_bytes + o.bytes;
        } else if (o.tag == option_original_type) {
            options.original_dt = data_type_t(load_le(o.value, 2));
        } else {
            options.recipe = o;
        }
    }
    return true;
}

// Keeps the refusal of an init_ function, which checks what the range of one field cannot say.
bool carry_over(status_t status, blob_fault_t &fault) {
    return status == mxdnn_success || refuse_as(fault, blob_class_t::corrupt, "%s", last_error());
}

bool is_known(target_family_t f) { return std::strcmp(target_family_name(f), "none") != 0; }

// Text in a fixed buffer: hostile blobs cannot make the reader allocate.
struct known_families_t {
    char text[128] = "";
    known_families_t() {
        for (uint32_t i = 1, at = 0; is_known(target_family_t(i)) && at < sizeof(text); i++)
            at += uint32_t(std::snprintf(text + at, sizeof(text) - at, "%s%u (%s)", i > 1 ? " and " : "", i,
                    target_family_name(target_family_t(i))));
    }
};

bool make_packed(memory_desc_t &md, const blob_fields_t &f, const dim_t *dims, blob_fault_t &fault) {
    const target_family_t family = target_family_t(f.target_family);
    if (!is_known(family))
        return refuse_as(fault, blob_class_t::unknown_target,
                "target_family is %" PRIu64 "; this release knows %s", f.target_family,
                known_families_t().text);
    const layout_t *layout = find_layout(family, uint32_t(f.layout_id));
    if (!layout)
        return refuse_as(fault, blob_class_t::unknown_layout,
                "layout_id is %" PRIu64 ", which is no layout that this release has for %s", f.layout_id,
                target_family_name(family));
    if (layout->version != f.layout_version)
        return refuse_as(fault, blob_class_t::unknown_layout,
                "layout_version is %" PRIu64 "; of layout %s this release knows version %" PRIu32,
                f.layout_version, layout->name, layout->version);
    if (!known_type(fault, "scale_type", f.scale_type)) return false;
    if (f.zero_point_type != 0 && !known_type(fault, "zero_point_type", f.zero_point_type)) return false;
    if ((f.zero_point_kind == 0) != (f.zero_point_type == 0))
        return refuse_as(fault, blob_class_t::corrupt,
                "zero_point_type is %" PRIu64 " beside a zero_point_kind of %" PRIu64
                "; both or none of the two are 0",
                f.zero_point_type, f.zero_point_kind);
    const data_type_t dt = data_type_t(f.element_type);
    if (f.ndims < 2)
        return refuse_as(fault, blob_class_t::corrupt, "ndims is %" PRIu64 "; packed weights have 2 to %d",
                f.ndims, max_ndims);
    if (!expect(fault, "block_axis", f.block_axis, f.ndims - 2, "blocks run along K")
            || !expect(fault, "element_packing", f.element_packing, packing_of_layout,
                    "the layout orders its codes")
            || !expect(fault, "scale_swizzle", f.scale_swizzle, swizzle_of_layout,
                    "the layout orders its scales")
            || !expect(fault, "alignment", f.alignment, uint64_t(layout->align), "the layout has its own"))
        return false;

    quant_t quant;
    quant.scale_dt = data_type_t(f.scale_type);
    quant.block = dim_t(f.block);
    quant.zp = zero_point_kind_t(f.zero_point_kind);
    quant.zp_dt = data_type_t(f.zero_point_type);
    quant.global = global_scale_kind_t(f.global_scale);
    if (const char *wrong = check_quant(dt, quant))
        return refuse_as(fault, blob_class_t::unknown_layout,
                "element_type %s, scale_type %s, block %" PRIu64 ", zero_point_kind %" PRIu64
                " and global_scale %" PRIu64 " make no format of this release: %s",
                data_type_name(dt), data_type_name(quant.scale_dt), f.block, f.zero_point_kind,
                f.global_scale, wrong);
    return carry_over(init_packed_as(md, int(f.ndims), dims, dt, quant, *layout), fault)
           && expect(fault, "stride", f.stride, uint64_t(md.packed.stride), "the dims and the layout fix it")
           && expect(fault, "packed_size", f.packed_size, uint64_t(md.packed.size),
                   "the dims and the layout fix it");
}

bool make_desc(memory_desc_t &md, const blob_fields_t &f, blob_fault_t &fault) {
    if (!known_type(fault, "element_type", f.element_type)) return false;
    mxdnn_dims_t dims = {}, strides = {};
    for (uint64_t d = 0; d < f.ndims; d++) {
        dims[d] = dim_t(f.dims[d]);
        strides[d] = dim_t(f.strides[d]);
    }
    const int ndims = int(f.ndims);
    const data_type_t dt = data_type_t(f.element_type);
    switch (desc_kind_t(f.descriptor_kind)) {
    case desc_kind_t::strided: return carry_over(init_strided(md, ndims, dims, dt, strides), fault);
    case desc_kind_t::grouped:
        return known_type(fault, "offsets_type", f.offsets_type)
               && carry_over(init_grouped(md, ndims, dims, dt, int(f.variable_dim), dim_t(f.group_count),
                                     data_type_t(f.offsets_type)),
                       fault);
    case desc_kind_t::packed: return make_packed(md, f, dims, fault);
    }
    return refuse_as(fault, blob_class_t::corrupt, "descriptor_kind is %" PRIu64, f.descriptor_kind);
}

bool parse(const uint8_t *blob, size_t size, memory_desc_t &md, blob_fault_t &fault) {
    blob_fields_t values = {};
    if (!read_envelope(blob, size, values, fault)) return false;

    cursor_t cursor{blob + envelope_bytes, size - envelope_bytes - checksum_bytes, fault};
    // descriptor_kind comes first. It says which of the later fields exist.
    for (const field_t &f : blob_fields)
        if (has_section(f.section, desc_kind_t(values.descriptor_kind))) cursor.take(f, values);
    options_t options;
    options.begin = cursor.p;
    options.bytes = cursor.left;
    if (fault.kind != blob_class_t::ok || !read_options(options, fault) || !make_desc(md, values, fault))
        return false;

    const uint64_t lowest = lowest_blob_format(md);
    if (!expect(fault, "oldest_reader", values.oldest_reader, lowest,
                "the descriptor needs no other version"))
        return false;

    annotation_t &note = md.annotation;
    note.original_dt = options.original_dt;
    if (options.recipe.bytes > 0)
        note.recipe.assign(reinterpret_cast<const char *>(options.recipe.value), options.recipe.bytes);
    if (options.unknown_bytes == 0 && values.format_version == lowest) return true;
    note.unknown_fields.reserve(2 + options.unknown_bytes);
    note.unknown_fields.resize(2);
    store_le(note.unknown_fields.data(), 2, values.format_version);
    const uint8_t *p = options.begin;
    size_t left = options.bytes;
    for (option_t o; take_option(p, left, o);)
        if (!is_understood(o))
            note.unknown_fields.insert(note.unknown_fields.end(), o.value - option_header_bytes, p);
    return true;
}

status_t status_of(blob_class_t kind) {
    switch (kind) {
    case blob_class_t::ok: return mxdnn_success;
    case blob_class_t::corrupt: return mxdnn_corrupt_blob;
    case blob_class_t::unknown_target: return mxdnn_incompatible_target;
    case blob_class_t::unknown_layout:
    case blob_class_t::newer_format: return mxdnn_incompatible_version;
    }
    return mxdnn_corrupt_blob;
}

// The length of the UTF-8 character at p; 0 if it is not valid, or ends the text.
size_t text_character(const uint8_t *p, size_t left) {
    if (p[0] < 0x80) return p[0] != 0 ? 1 : 0;
    const size_t bytes = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                         : (p[0] & 0xf0) == 0xe0       ? 3
                         : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                       : 0;
    if (bytes == 0 || bytes > left) return 0;
    uint32_t code = p[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    const bool shortest = code >= (bytes == 2 ? 0x80u : bytes == 3 ? 0x800u : 0x10000u);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return shortest && !surrogate && code < 0x110000 ? bytes : 0;
}

} // namespace

const char *check_recipe(const char *recipe, size_t bytes) {
    if (bytes > max_recipe_bytes) return "is longer than 1024 bytes";
    const uint8_t *p = reinterpret_cast<const uint8_t *>(recipe);
    while (bytes > 0) {
        const size_t n = text_character(p, bytes);
        if (n == 0) return "is not UTF-8 text without zero bytes";
        p += n;
        bytes -= n;
    }
    return nullptr;
}

blob_class_t classify_blob(const uint8_t *blob, size_t size, memory_desc_t *md, blob_fault_t *fault) {
    blob_fault_t found;
    memory_desc_t parsed;
    parse(blob, size, parsed, found);
    if (fault) *fault = found;
    if (md && found.kind == blob_class_t::ok) *md = std::move(parsed);
    return found.kind;
}

status_t read_blob(memory_desc_t &md, const uint8_t *blob, size_t size) {
    if (!blob && size > 0) return fail(mxdnn_invalid_arguments, "create_with_blob: blob is null");
    blob_fault_t fault;
    const blob_class_t kind = classify_blob(blob, size, &md, &fault);
    if (kind == blob_class_t::ok) return mxdnn_success;
    return fail(status_of(kind), "create_with_blob: %s", fault.text);
}

status_t read_blob(memory_desc_t &md, const uint8_t *blob) {
    if (!blob) return fail(mxdnn_invalid_arguments, "create_with_blob: blob is null");
    // The magic number is checked first, so that bytes of another file are not taken for a length.
    blob_fault_t fault;
    blob_fields_t values = {};
    cursor_t cursor{blob, envelope_bytes, fault};
    for (const field_t &f : blob_fields)
        if (f.section == section_t::envelope && fault.kind == blob_class_t::ok) cursor.take(f, values);
    if (fault.kind != blob_class_t::ok) return fail(mxdnn_corrupt_blob, "create_with_blob: %s", fault.text);
    return read_blob(md, blob, size_t(values.total_length));
}

} // namespace impl
} // namespace mxdnn
