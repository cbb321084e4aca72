// SPDX-License-Identifier: Apache-2.0
// The optional fields at the end of a blob, and those of newer releases that a descriptor carries along.
#pragma once

#include <vector>

#include "common/blob/fields.hpp"
#include "common/blob/little_endian.hpp"

namespace mxdnn {
namespace impl {

struct option_t {
    uint32_t tag = 0;
    const uint8_t *value = nullptr;
    size_t bytes = 0;
};

// Removes one option from the front of `left` bytes. False if these do not contain a complete one.
inline bool take_option(const uint8_t *&p, size_t &left, option_t &option) {
    if (left < option_header_bytes) return false;
    option.tag = uint32_t(load_le(p, 2));
    option.bytes = size_t(load_le(p + 2, 2));
    if (option.bytes > left - option_header_bytes) return false;
    option.value = p + option_header_bytes;
    p += option_header_bytes + option.bytes;
    left -= option_header_bytes + option.bytes;
    return true;
}

// The contents of annotation_t::unknown_fields: nothing, or the format version of the blob (2 bytes) and its
// unknown options, unchanged. The version is kept because it is part of the bytes to write back.
struct kept_options_t {
    uint64_t format_version; // `otherwise` if none was kept

    kept_options_t(const std::vector<uint8_t> &kept, uint64_t otherwise)
        : format_version(otherwise), p_(kept.data()), left_(kept.size()) {
        if (left_ < 2) return;
        format_version = load_le(p_, 2);
        p_ += 2;
        left_ -= 2;
    }
    bool next(option_t &option) { return take_option(p_, left_, option); }

private:
    const uint8_t *p_;
    size_t left_;
};

} // namespace impl
} // namespace mxdnn
