// SPDX-License-Identifier: Apache-2.0
// How weights are held in memory, and bringing them there piece by piece.
#pragma once

#include <string>

#include "engine/packed.hpp"

namespace llm {

// What weights become when they are loaded.
struct encoding_t {
    // Codes stay codes, and values stay values; or all become f32, bf16, or a format of mxdnn.
    enum class kind_t { stored, f32, bf16, format };

    kind_t kind = kind_t::stored;
    std::string format;

    // "stored", "f32", "bf16", or the name of a format. Throws std::runtime_error that lists them.
    static encoding_t find(const std::string &name);
};

// The format that weights are packed in, or nothing where they stay plain.
std::optional<weight_formats::format_t> packed_format(const source_t &source, const encoding_t &encoding);
// The type of plain weights.
data_type_t plain_type(const source_t &source, const encoding_t &encoding);

// Codes of the format are packed as they are, everything else is quantised. Where all matrices are equal, one
// is packed and copied within the engine's memory.
packed_t pack(engine_t &engine, const source_t &source, const weight_formats::format_t &format,
        bool has_equal_matrices);

} // namespace llm
