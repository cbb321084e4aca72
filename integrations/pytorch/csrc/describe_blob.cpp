// SPDX-License-Identifier: Apache-2.0
// describe_blob: what a blob says, as lines of a name and a value. mxdnn_torch/blob.py reads them.
#include "blob_cache.hpp"
#include "formats.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

std::string describe_blob(const std::string &blob) {
    const auto desc = parse_blob(blob);
    std::string text;
    const auto line = [&text](const char *name, const std::string &value) {
        text += std::string(name) + " " + value + "\n";
    };
    std::string shape;
    for (int64_t d : desc->weight_shape()) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    line("shape", shape);
    line("element", word_of_type(desc->element));
    line("scale", word_of_type(desc->scale));
    line("block", std::to_string(desc->block));
    line("zero_point", word_of_type(desc->zero_point) + std::string(desc->minima ? minimum_suffix : ""));
    line("global_scale", desc->global_scale == packed_desc_t::no_global_scale ? "none" : "f32");
    line("family", desc->family);
    // The words of a packed descriptor are its element type, "packed", its family, its layout, and more.
    const std::string words = desc->desc.to_string(), before = ":packed:" + desc->family + ":";
    const size_t layout = words.find(before) + before.size();
    line("layout", words.substr(layout, words.find(':', layout) - layout));
    line("size", std::to_string(desc->size));
    line("matrix_stride", std::to_string(desc->desc.get_expert_stride()));
    line("original_type", word_of_type(desc->desc.get_annotation_data_type()));
    line("recipe", desc->recipe); // the last one: it may have line breaks
    return text;
}

} // namespace mxdnn_torch
