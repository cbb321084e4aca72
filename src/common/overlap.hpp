// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/memory_desc.hpp"

namespace mxdnn {
namespace impl {

// A tensor without runtime dims, and its address.
struct tensor_bytes_t {
    const memory_desc_t *md;
    const char *begin;
    mxdnn_element_packing_t packing;
};

// Whether two tensors may share a byte. Neighbouring column ranges of one matrix do not.
bool overlap(const tensor_bytes_t &x, const tensor_bytes_t &y);

} // namespace impl
} // namespace mxdnn
