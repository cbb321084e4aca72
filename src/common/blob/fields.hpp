// SPDX-License-Identifier: Apache-2.0
// The fields of a blob in the order of its bytes. The writer, the reader, the tests, the fuzzer and the
// table in doc/reference/blob.md all walk this one list.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

constexpr size_t max_blob_bytes = 4096;
constexpr uint64_t blob_magic = 0x0a0d6e6e64786d89u; // the bytes 89 'm' 'x' 'd' 'n' 'n' '\r' '\n'
constexpr uint64_t blob_format_version = 2;          // the newest that this release reads
// What every reader reads, and what has minima as zero points.
constexpr uint64_t first_blob_format = 1, blob_format_with_minimum = 2;

// The first 16 and the last 8 bytes are the same in every format version. So every reader can distinguish
// damage from a newer blob.
constexpr size_t envelope_bytes = 16, checksum_bytes = 8;
constexpr size_t min_blob_bytes = envelope_bytes + checksum_bytes;

enum class desc_kind_t : uint64_t { strided = 1, grouped = 2, packed = 3 };

// Element packings and scale orders. 0: the map of the layout says it.
constexpr uint64_t packing_of_layout = 0, swizzle_of_layout = 0;

// Every value of a blob, as read and before it is interpreted.
struct blob_fields_t {
    uint64_t magic, format_version, oldest_reader, total_length;
    uint64_t descriptor_kind, ndims, element_type;
    uint64_t variable_dim, offsets_type, group_count;
    uint64_t target_family, layout_id, layout_version, scale_type, zero_point_type, zero_point_kind,
            global_scale, block_axis, element_packing, scale_swizzle, alignment, block, packed_size, stride;
    uint64_t dims[max_ndims], strides[max_ndims];
};

// Which descriptors have the field.
enum class section_t { envelope, every, strided, grouped, packed };

constexpr bool has_section(section_t section, desc_kind_t kind) {
    switch (section) {
    case section_t::envelope: return false; // read before the others, by itself
    case section_t::every: return true;
    case section_t::strided: return kind == desc_kind_t::strided;
    case section_t::grouped: return kind == desc_kind_t::grouped;
    case section_t::packed: return kind == desc_kind_t::packed;
    }
    return false;
}

struct field_t {
    const char *name;
    int bytes;
    uint64_t lowest, highest;
    section_t section;
    uint64_t blob_fields_t::*one;               // the member for the value,
    uint64_t (blob_fields_t::*list)[max_ndims]; // or for ndims values, which may be runtime_dim
    const char *meaning;                        // for the documentation
};

inline constexpr field_t blob_fields[] = {
        {"magic", 8, blob_magic, blob_magic, section_t::envelope, &blob_fields_t::magic, nullptr,
                "`89 6D 78 64 6E 6E 0D 0A`"},
        {"format_version", 2, 1, 0xffff, section_t::envelope, &blob_fields_t::format_version, nullptr,
                "lowest format version that has everything in this blob"},
        {"oldest_reader", 2, 1, 0xffff, section_t::envelope, &blob_fields_t::oldest_reader, nullptr,
                "lowest format version whose readers may read it"},
        {"total_length", 4, min_blob_bytes, max_blob_bytes, section_t::envelope, &blob_fields_t::total_length,
                nullptr, "bytes of the whole blob"},

        {"descriptor_kind", 2, 1, 3, section_t::every, &blob_fields_t::descriptor_kind, nullptr,
                "1 strided, 2 grouped, 3 packed"},
        {"ndims", 2, 1, max_ndims, section_t::every, &blob_fields_t::ndims, nullptr, "number of dimensions"},
        {"element_type", 4, 1, 0xffff, section_t::every, &blob_fields_t::element_type, nullptr,
                "`mxdnn_data_type_t` of the elements"},

        {"variable_dim", 4, 0, 0, section_t::grouped, &blob_fields_t::variable_dim, nullptr,
                "dimension that the groups divide"},
        {"offsets_type", 4, 1, 0xffff, section_t::grouped, &blob_fields_t::offsets_type, nullptr,
                "`mxdnn_data_type_t` of the offsets"},
        {"group_count", 8, 1, 0x7fffffff, section_t::grouped, &blob_fields_t::group_count, nullptr,
                "number of groups"},

        {"target_family", 4, 1, 0xffff, section_t::packed, &blob_fields_t::target_family, nullptr,
                "1 `cpu:x64`, 2 `cuda`"},
        {"layout_id", 4, 1, 0xffff, section_t::packed, &blob_fields_t::layout_id, nullptr,
                "layout, counted within its family"},
        {"layout_version", 4, 1, 0xffff, section_t::packed, &blob_fields_t::layout_version, nullptr,
                "version of the layout"},
        {"scale_type", 4, 1, 0xffff, section_t::packed, &blob_fields_t::scale_type, nullptr,
                "`mxdnn_data_type_t` of the scales"},
        {"zero_point_type", 4, 0, 0xffff, section_t::packed, &blob_fields_t::zero_point_type, nullptr,
                "`mxdnn_data_type_t` of the zero points, 0 without"},
        {"zero_point_kind", 1, 0, 3, section_t::packed, &blob_fields_t::zero_point_kind, nullptr,
                "0 none, 1 u8: (code - zp) * scale, 2 float-zero: (code - 8) * scale + zero, 3 minimum: "
                "code * scale + minimum, from format version 2 on"},
        {"global_scale", 1, 0, 2, section_t::packed, &blob_fields_t::global_scale, nullptr,
                "0 none, 1 one, 2 one per expert"},
        {"block_axis", 2, 0, max_ndims - 1, section_t::packed, &blob_fields_t::block_axis, nullptr,
                "dimension that blocks run along: ndims - 2, which is K"},
        {"element_packing", 2, 0, 0xffff, section_t::packed, &blob_fields_t::element_packing, nullptr,
                "0: the layout's own order of code bits"},
        {"scale_swizzle", 2, 0, 0xffff, section_t::packed, &blob_fields_t::scale_swizzle, nullptr,
                "0: the layout's own order of scales"},
        {"alignment", 4, 1, 4096, section_t::packed, &blob_fields_t::alignment, nullptr,
                "preferred alignment of the packed bytes"},
        {"block", 8, 1, uint64_t(max_dim), section_t::packed, &blob_fields_t::block, nullptr,
                "elements along K that share a scale"},
        {"packed_size", 8, 0, uint64_t(max_bytes), section_t::packed, &blob_fields_t::packed_size, nullptr,
                "bytes of the packed tensor"},
        {"stride", 8, 0, uint64_t(max_bytes), section_t::packed, &blob_fields_t::stride, nullptr,
                "bytes from one matrix (expert) to the next"},

        {"dims", 8, 0, uint64_t(max_dim), section_t::every, nullptr, &blob_fields_t::dims,
                "logical dimensions; 2^63 stands for a runtime value"},
        {"strides", 8, 0, uint64_t(max_bytes), section_t::strided, nullptr, &blob_fields_t::strides,
                "in elements; 2^63 stands for a runtime value"},
};

// Optional fields follow: tag (2 bytes), length (2 bytes), value; in ascending order of tags. A reader keeps
// a field whose tag it does not know. If the tag has the required bit, it refuses the blob.
constexpr size_t option_header_bytes = 4;
constexpr uint32_t option_required = 0x8000;
constexpr uint32_t option_original_type = 1; // 2 bytes: mxdnn_data_type_t before quantisation
constexpr uint32_t option_recipe = 2;        // UTF-8 text: the activation recipe

} // namespace impl
} // namespace mxdnn
