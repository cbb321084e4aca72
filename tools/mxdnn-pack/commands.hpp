// SPDX-License-Identifier: Apache-2.0
// What mxdnn-pack does; doc/mxdnn-pack.md. Every command throws std::runtime_error with a sentence.
#pragma once

#include <string>
#include <vector>

#include "common/container.hpp"
#include "common/weight_formats.hpp"

namespace mxdnn_pack {

struct options_t {
    std::string target; // empty: this machine
    std::string in, out;
    std::string format = "mxfp4";
    std::string rounding = "rceil";
    std::string include = ".*", exclude; // regular expressions for names of tensors
    std::string recipe;                  // annotation
    std::string type = "f32";            // of unpacked weights
    unsigned part_mib = 16;              // of a tensor that is worked on at a time
    bool codes_only = false;             // pack what is quantised already, copy the rest
};

// Weights found in a file: one high-precision tensor, or codes and their scales.
struct source_t {
    std::string name; // of the result
    weight_formats::shape_t shape;
    mxdnn::memory::data_type type;          // of `values` where they are high precision
    const weight_formats::format_t *format; // of codes; null for high precision
    const safetensors::tensor_t *values, *scales;
};

// The weights of a file in the order of the file. Tensors of two and three dims are weights [out, in] and
// [experts, out, in]; pairs such as X_blocks and X_scales are codes and scales (table in sources.cpp).
std::vector<source_t> find_sources(const safetensors::file_t &file, const options_t &options);

mxdnn::engine make_engine(const options_t &options);
void progress(const std::string &what); // at most every two seconds, to stderr

void pack(const options_t &options);
void unpack(const options_t &options);
// Prints a line per packed tensor; returns whether all are whole and usable on the target.
bool list(const options_t &options);

} // namespace mxdnn_pack
