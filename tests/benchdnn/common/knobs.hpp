// SPDX-License-Identifier: Apache-2.0
// Command-line words. Every mistake is a usage_error_t with a sentence.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/formats/quantize_block.hpp"
#include "common/memory_desc.hpp"

namespace bench {

struct usage_error_t : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::vector<std::string> split(const std::string &s, char by);
// "--name=value": true and the value when the word is that option.
bool option(const std::string &word, const char *name, std::string &value);
int64_t to_int(const std::string &s, const char *what, int64_t least = 0);
double to_number(const std::string &s, const char *what);
mxdnn::impl::data_type_t to_data_type(const std::string &s);
std::vector<int64_t> to_dims(const std::string &s); // "16x2880"; * is a runtime dim

// A type of a tensor: plain, or quantised by one of the named formats.
struct tensor_type_t {
    mxdnn::impl::data_type_t dt = mxdnn_f32;
    bool quantised = false;
    mxdnn::impl::quant_t quant;
};
tensor_type_t to_tensor_type(const std::string &s); // "bf16", "mxfp4"
std::string to_text(const std::vector<int64_t> &dims);

} // namespace bench
