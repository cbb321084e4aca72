// SPDX-License-Identifier: Apache-2.0
// The weights of a checkpoint, whatever layout it has.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint.hpp"
#include "common/weight_parts.hpp"
#include "options.hpp"

namespace mxdnn_pack {

// Weights found in a checkpoint: values, or codes that a format of mxdnn holds as they are. Where `loss` says
// why no format does, `values` are what the codes are worth, and a format may come nearer to them than
// others.
struct source_t {
    std::string name;   // of the result
    std::string layout; // in words
    weight_formats::shape_t shape;
    std::vector<size_t> entries; // that it is made of

    std::optional<weight_formats::format_t> format; // of codes that arrive as they are
    weight_formats::read_codes_t codes;             // of `format`, or of `nearest`

    mxdnn::memory::data_type type = mxdnn::memory::data_type::f32; // of values
    weight_formats::read_values_t values;
    std::string loss;
    std::optional<weight_formats::format_t> nearest =
            std::nullopt; // without `codes`, values are quantised to it
};

// What packs it to a format.
weight_formats::packing_t packing_of(const source_t &source, uint64_t part_bytes,
        const weight_formats::format_t &format, const mxdnn::engine &engine, mxdnn::scale_rounding rounding);
// What a piece is worth.
void read_f32(const source_t &source, const weight_formats::piece_t &piece, std::vector<float> &values);

// Weights in the order of the checkpoint, and how many other tensors are left as they are, by what they are.
// Tensors without elements are not packed.
struct sources_t {
    std::vector<source_t> packed;
    struct left_t {
        size_t count = 0;
        std::string first; // name of one of them
    };
    std::map<std::string, left_t> left;
};
sources_t find_sources(const checkpoint_t &input, const options_t &options);

// All weights that could be packed, by the name of the result: of codes, and of any tensor of values whose
// name `wanted` has.
std::map<std::string, source_t> find_weights(const checkpoint_t &input, const options_t &options,
        const std::function<bool(const std::string &)> &wanted);

} // namespace mxdnn_pack
