// SPDX-License-Identifier: Apache-2.0
// Descriptors as bytes and back (doc/reference/blob.md), and the checksum of packed bytes.
#pragma once

#include "common/blob/fields.hpp"
#include "common/blob/xxh64.hpp"
#include "common/memory_desc.hpp"

namespace mxdnn {
namespace impl {

constexpr size_t max_recipe_bytes = 1024;

// The format version that a descriptor without unknown fields is written in, and that its readers need.
inline uint64_t lowest_blob_format(const memory_desc_t &md) {
    const bool has_minimum = is_packed(md) && md.packed.quant.zp == zero_point_kind_t::minimum;
    return has_minimum ? blob_format_with_minimum : first_blob_format;
}

// Two calls: with blob == nullptr only *size is set. Otherwise *size is the capacity, and becomes the number
// of bytes written. A failing call writes nothing.
status_t write_blob(const memory_desc_t &md, uint8_t *blob, size_t *size);

// md changes only on success. Nothing is allocated before all checks have passed.
status_t read_blob(memory_desc_t &md, const uint8_t *blob, size_t size);
// Without a size, the header of the blob says the length. At most max_blob_bytes are read.
status_t read_blob(memory_desc_t &md, const uint8_t *blob);

enum class blob_class_t {
    ok,
    corrupt,        // no release wrote these bytes
    unknown_target, // a target family that this release does not know
    unknown_layout, // a layout, layout version, type or format that this release does not know
    newer_format    // a format version that this release does not read
};

// Why a blob was refused: the field, its value and the values that it may have.
struct blob_fault_t {
    blob_class_t kind = blob_class_t::ok;
    char text[400] = "";
};

// As read_blob, but the result is an answer and not a failure. md may be null.
blob_class_t classify_blob(
        const uint8_t *blob, size_t size, memory_desc_t *md, blob_fault_t *fault = nullptr);

// Says what is wrong with the text as the recipe of an annotation; null if it is right.
const char *check_recipe(const char *recipe, size_t bytes);

// The checksum of packed bytes, before any byte was added: an XXH64 whose seed is the XXH64 of the
// descriptor's blob without annotation. The descriptor has no runtime dims and is not `any`.
xxh64_t packed_checksum(const memory_desc_t &md);
// The checksum of `data`, which has size_of(md) bytes.
uint64_t packed_checksum(const memory_desc_t &md, const void *data);

} // namespace impl
} // namespace mxdnn
