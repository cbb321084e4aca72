// SPDX-License-Identifier: Apache-2.0
// The rows that a product reads, quantised first where the weights' recipe says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "blob_cache.hpp"
#include "call.hpp"
#include "tensor.hpp"

namespace mxdnn_torch {

// A recipe of activations, which travels in the annotation of a blob.
struct recipe_t {
    enum kind_t { none, in_execute, codes } kind = none;
    // Quantised while the primitive executes, or to codes by a reorder before it.
    mxdnn::quantization_mode mode = mxdnn::quantization_mode::undef;
    dt element = dt::undef, scale = dt::undef;
    int64_t block = 0; // elements that share a scale; 0: a row
    mxdnn::scale_rounding rounding = mxdnn::scale_rounding::floor;
    enum global_t { no_global, computed_global, given_global } global = no_global;
    float global_scale = 0; // where it is given
};

// "" (none), "int8_row", "fp8_row", "mxint8", or "mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4", each
// of these followed by the rounding of scales where it is not rceil ("mxfp8:floor"); "nvfp4" without a global
// scale, "nvfp4:dynamic" with a computed one, "nvfp4:0.0125" with this one.
const recipe_t &parse_recipe(const std::string &word);

// Rows [M, K] as arguments of a primitive.
class source_t {
public:
    // Quantises them at once where the recipe says to codes.
    source_t(const view_t &rows, const std::string &recipe, const mxdnn::engine &engine);

    // For a problem: the source's attributes and descriptor, of `M` rows.
    void set_attributes(mxdnn::primitive_attr &attr) const;
    mxdnn::memory::desc desc(int64_t M) const;
    // What an execution is given, in this order.
    void append_arguments(std::vector<call_t::argument_t> &arguments) const;
    void append_pointers(pointers_t &pointers) const;

private:
    void quantize(const mxdnn::engine &engine);

    const view_t &rows_;
    const recipe_t &recipe_;
    int64_t M_, K_;
    std::optional<Tensor> codes_, scales_, global_;
};

} // namespace mxdnn_torch
