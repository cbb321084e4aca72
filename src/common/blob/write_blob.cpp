// SPDX-License-Identifier: Apache-2.0
// From descriptor to bytes. Equal descriptors with equal annotations give equal bytes, for ever: only what
// a descriptor says is written, by the oldest format version that can say it.
#include <cstring>

#include "common/blob/blob.hpp"
#include "common/blob/little_endian.hpp"
#include "common/blob/options.hpp"
#include "common/blob/xxh64.hpp"
#include "common/error.hpp"
#include "common/formats/format_list.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Appends bytes. Bytes that do not fit are counted, not written.
struct byte_sink_t {
    uint8_t *at;
    size_t capacity;
    size_t used = 0;

    void put(int bytes, uint64_t value) {
        if (used <= capacity && size_t(bytes) <= capacity - used) store_le(at + used, bytes, value);
        used += size_t(bytes);
    }
    void put(const void *data, size_t bytes) {
        if (used <= capacity && bytes <= capacity - used) std::memcpy(at + used, data, bytes);
        used += bytes;
    }
    void put(const field_t &f, const blob_fields_t &values) {
        if (f.one) return put(f.bytes, values.*f.one);
        for (uint64_t i = 0; i < values.ndims; i++) put(f.bytes, (values.*f.list)[i]);
    }
    void put_option(uint32_t tag, const void *value, size_t bytes) {
        put(2, tag);
        put(2, bytes);
        put(value, bytes);
    }
};

desc_kind_t kind_of(const memory_desc_t &md) {
    return is_packed(md) ? desc_kind_t::packed : is_strided(md) ? desc_kind_t::strided : desc_kind_t::grouped;
}

blob_fields_t fields_of(const memory_desc_t &md) {
    blob_fields_t f = {};
    f.magic = blob_magic;
    f.format_version = lowest_blob_format(md);
    f.oldest_reader = f.format_version;
    f.descriptor_kind = uint64_t(kind_of(md));
    f.ndims = uint64_t(md.ndims);
    f.element_type = md.dt;
    for (int d = 0; d < md.ndims; d++) {
        f.dims[d] = uint64_t(md.dims[d]);
        f.strides[d] = uint64_t(md.strides[d]);
    }
    f.variable_dim = uint64_t(md.grouped.variable_dim);
    f.offsets_type = md.grouped.offsets_dt;
    f.group_count = uint64_t(md.grouped.group_count);
    if (is_packed(md)) {
        const packed_desc_t &p = md.packed;
        f.target_family = uint64_t(p.family);
        f.layout_id = p.layout_id;
        f.layout_version = p.layout_version;
        f.scale_type = p.quant.scale_dt;
        f.zero_point_type = p.quant.zp_dt;
        f.zero_point_kind = uint64_t(p.quant.zp);
        f.global_scale = uint64_t(p.quant.global);
        f.block_axis = uint64_t(md.ndims - 2);
        f.element_packing = packing_of_layout;
        f.scale_swizzle = swizzle_of_layout;
        f.alignment = uint64_t(p.align);
        f.block = uint64_t(p.quant.block);
        f.packed_size = uint64_t(p.size);
        f.stride = uint64_t(p.stride);
    }
    return f;
}

// Fields of this release and kept fields, merged by tag. A value of the annotation replaces the kept one with
// the same tag.
void put_options(byte_sink_t &sink, const annotation_t &note) {
    const bool has_type = note.original_dt != mxdnn_data_type_undef;
    const auto put_own = [&](uint32_t tag) {
        if (tag == option_original_type && has_type) {
            uint8_t value[2];
            store_le(value, 2, note.original_dt);
            sink.put_option(tag, value, sizeof(value));
        }
        if (tag == option_recipe && !note.recipe.empty())
            sink.put_option(tag, note.recipe.data(), note.recipe.size());
    };
    uint32_t own = option_original_type; // the next tag of this release
    kept_options_t kept(note.unknown_fields, first_blob_format);
    for (option_t o; kept.next(o);) {
        for (; own <= option_recipe && own < o.tag; own++) put_own(own);
        const bool replaced = (o.tag == option_original_type && has_type)
                              || (o.tag == option_recipe && !note.recipe.empty());
        if (replaced) continue;
        sink.put_option(o.tag, o.value, o.bytes);
        if (own == o.tag) own++;
    }
    for (; own <= option_recipe; own++) put_own(own);
}

// The length of the blob. The bytes are in `buffer` if the length is at most max_blob_bytes.
size_t encode(const memory_desc_t &md, bool annotate, uint8_t *buffer) {
    blob_fields_t values = fields_of(md);
    if (annotate)
        values.format_version =
                kept_options_t(md.annotation.unknown_fields, values.format_version).format_version;
    byte_sink_t sink{buffer, max_blob_bytes};
    for (const field_t &f : blob_fields)
        if (f.section == section_t::envelope || has_section(f.section, kind_of(md))) sink.put(f, values);
    if (annotate) put_options(sink, md.annotation);
    const size_t total = sink.used + checksum_bytes;
    if (total > max_blob_bytes) return total;

    // The length is known only now. Its field is the last one of the envelope.
    store_le(buffer + envelope_bytes - 4, 4, total);
    sink.put(checksum_bytes, xxh64(buffer, sink.used, 0));
    return total;
}

} // namespace

status_t write_blob(const memory_desc_t &md, uint8_t *blob, size_t *size) {
    if (!size) return fail(mxdnn_invalid_arguments, "get_blob: size is null");
    if (is_zero(md)) return fail(mxdnn_invalid_arguments, "get_blob: the descriptor describes no tensor");
    if (is_any(md))
        return fail(mxdnn_invalid_arguments,
                "get_blob: a descriptor with tag any has no layout yet; take the one that a primitive "
                "descriptor chose");
    const annotation_t &note = md.annotation;
    if (const char *wrong = check_recipe(note.recipe.data(), note.recipe.size()))
        return fail(mxdnn_invalid_arguments, "get_blob: the recipe of the annotation %s", wrong);
    if (note.original_dt != mxdnn_data_type_undef && !data_type_info(note.original_dt))
        return fail(mxdnn_invalid_arguments, "get_blob: the annotation's original type %d is no data type",
                int(note.original_dt));

    uint8_t buffer[max_blob_bytes];
    const size_t total = encode(md, true, buffer);
    if (total > max_blob_bytes)
        return fail(mxdnn_invalid_arguments,
                "get_blob: the blob would have %zu bytes, and at most %zu are allowed; fields of a newer "
                "release leave too little room for the recipe of %zu bytes",
                total, max_blob_bytes, note.recipe.size());
    if (blob && *size < total)
        return fail(mxdnn_invalid_arguments, "get_blob: the buffer has %zu bytes, and the blob has %zu",
                *size, total);
    if (blob) std::memcpy(blob, buffer, total);
    *size = total;
    return mxdnn_success;
}

xxh64_t packed_checksum(const memory_desc_t &md) {
    uint8_t identity[max_blob_bytes];
    const size_t bytes = encode(md, false, identity);
    return xxh64_t(xxh64(identity, bytes, 0));
}

uint64_t packed_checksum(const memory_desc_t &md, const void *data) {
    xxh64_t sum = packed_checksum(md);
    sum.add(data, size_t(size_of(md)));
    return sum.value();
}

} // namespace impl
} // namespace mxdnn
