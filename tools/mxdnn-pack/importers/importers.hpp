// SPDX-License-Identifier: Apache-2.0
// The layouts in which checkpoints store weights that are quantised already; one file each, listed in
// table.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../sources.hpp"

namespace mxdnn_pack {

// What importers look at; the files beside the checkpoint are read once.
struct import_context_t {
    const checkpoint_t &input;
    const options_t &options;
    bool is_gptq_v2; // as config.json or quantize_config.json says
};

struct importer_t {
    const char *key; // end of the names of tensors that it looks at
    // The weights that a tensor with such a name is the codes of; nothing where it belongs to another layout.
    // Throws where it is of this layout and its tensors do not belong together.
    std::optional<source_t> (*find)(const import_context_t &context, size_t entry);
};

// In the order in which they are asked.
const std::vector<importer_t> &importers();
import_context_t make_context(const checkpoint_t &input, const options_t &options);

std::optional<source_t> find_gguf(const import_context_t &, size_t);
// Of values of a GGUF file that are blocks which no format holds.
void add_gguf_loss(const checkpoint_t &, bool is_transposed, source_t &values);
std::optional<source_t> find_mx_pair(const import_context_t &, size_t);            // gpt-oss and others
std::optional<source_t> find_compressed_tensors(const import_context_t &, size_t); // *_packed
std::optional<source_t> find_awq(const import_context_t &, size_t);
std::optional<source_t> find_gptq(const import_context_t &, size_t);
std::optional<source_t> find_torchao(const import_context_t &, size_t);
std::optional<source_t> find_hqq(const import_context_t &, size_t);
// A tensor that has a scale beside it: NVFP4, MXFP4 and MXFP8 of ModelOpt, MXFP8 and FP8 of many.
std::optional<source_t> find_scaled(const import_context_t &, size_t);

} // namespace mxdnn_pack
