// SPDX-License-Identifier: Apache-2.0
// The tensors of a model by name, whatever file they are in: values, codes of a checkpoint, or packed
// weights.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/packed.hpp"
#include "mxdnn-pack/sources.hpp"
#include "names.hpp"

namespace llm {

using weight_formats::shape_t;

class tensors_t {
public:
    // A folder or a file. Throws std::runtime_error where it is not whole.
    explicit tensors_t(const std::string &model);

    const std::string &path() const { return checkpoint_.path; }
    const names_t &names() const { return *names_; }
    bool has(const std::string &name) const;

    // All of these throw where there is no such tensor, or it has another shape.
    std::vector<float> floats(const std::string &name, const std::vector<int64_t> &dims) const;
    // Values or codes.
    const source_t &source(const std::string &name, const shape_t &shape) const;
    // Packed weights as they are, where the engine can use them; nothing where they are not packed.
    std::optional<packed_t> packed(const std::string &name, const shape_t &shape, engine_t &engine) const;

private:
    mxdnn_pack::checkpoint_t checkpoint_;
    std::map<std::string, source_t> sources_;
    const names_t *names_;

    [[noreturn]] void refuse(const std::string &why) const;
};

// Rows of several sources one after the other. They have the same experts and columns; nothing where they are
// not codes of one format, or values of one type.
std::optional<source_t> concatenated(const std::vector<const source_t *> &parts);

} // namespace llm
