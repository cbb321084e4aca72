// SPDX-License-Identifier: Apache-2.0
// Words of formats and activations, and what they are in attributes.
#pragma once

#include <string>

#include <mxdnn/mxdnn.hpp>

#include "blob_cache.hpp"
#include "tensor.hpp"

namespace mxdnn_torch {

// "f4_e2m1" and the other names of doc/reference/formats.md; undef for "" and "none".
dt type_of_word(const std::string &word, const char *what);

// Behind the type of zero points that are the values of code 0.
constexpr const char *minimum_suffix = ":minimum";

// "none" for undef.
const char *word_of_type(dt type);

mxdnn::scale_rounding rounding_of_word(const std::string &word);

// Appends an activation in mxdnn-bench's words: "gelu_tanh", "swiglu_oai:1.702:7:interleaved"; "none" appends
// nothing.
void append_activation(mxdnn::post_ops &ops, const std::string &word);

// Whether an activation makes one column of two.
bool is_gated(const std::string &word);

// Scales, zero points and global scale of `arg`, of weights [.., K, N] of this format.
void set_format(mxdnn::primitive_attr &attr, int arg, const packed_desc_t &desc,
        mxdnn::quantization_mode scales, mxdnn::quantization_mode global_scale);

// The mode in which mxdnn computes scales for the format.
mxdnn::quantization_mode dynamic_mode(const packed_desc_t &desc);

// Bytes of a row of K plain codes.
int64_t row_bytes(dt element, int64_t K, bool dense);

} // namespace mxdnn_torch
