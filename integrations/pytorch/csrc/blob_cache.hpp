// SPDX-License-Identifier: Apache-2.0
// Descriptors of packed weights. Operators get a descriptor as its blob in base64; each text is parsed once.
#pragma once

#include <memory>
#include <string>

#include <mxdnn/mxdnn.hpp>

#include "tensor.hpp"

namespace mxdnn_torch {

struct packed_desc_t {
    uint64_t id = 0; // a number that no other parsed blob of this process ever had
    mxdnn::memory::desc desc;
    dims_t dims;                                                       // [.., K, N]
    size_t size = 0;                                                   // bytes of the packed tensor
    dt element = dt::undef, scale = dt::undef, zero_point = dt::undef; // undef: without zero points
    bool minima = false;                                               // zero points are values of code 0
    int64_t block = 0;                                                 // elements along K that share a scale
    enum { no_global_scale, one_global_scale, global_scale_per_expert } global_scale = no_global_scale;
    std::string family; // "cpu:x64" or "cuda"
    std::string recipe; // of the activations; "" for none

    int64_t K() const { return dims[dims.size() - 2]; }
    int64_t N() const { return dims[dims.size() - 1]; }
    dims_t weight_shape() const; // [.., N, K], as torch has weights
    int64_t experts() const;     // product of the dimensions before K
};

// The descriptor of a blob that describes packed weights. Raises the library's sentence for other texts.
std::shared_ptr<const packed_desc_t> parse_blob(const std::string &blob);

// Refuses bytes that a descriptor does not fit: another type, shape, size or alignment.
void expect_packed(const view_t &packed, const packed_desc_t &desc);

// Refuses weights that were packed for another kind of device than the one where they are.
void expect_packed_for(const place_t &place, const packed_desc_t &desc);

std::string to_base64(const std::vector<uint8_t> &bytes);

} // namespace mxdnn_torch
