// SPDX-License-Identifier: Apache-2.0
// The tensors of a model by name, whatever file they are in: values, codes of a checkpoint, or packed
// weights.
#pragma once

#include <memory>
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
    virtual ~tensors_t() = default;

    const std::string &path() const { return path_; } // to begin a sentence with
    const names_t &names() const { return *names_; }
    virtual bool has(const std::string &name) const = 0;

    // All of these throw std::runtime_error where there is no such tensor, or it has another shape.
    virtual void check_floats(const std::string &name, const std::vector<int64_t> &dims) const = 0;
    virtual void check_weights(const std::string &name, const shape_t &shape) const = 0;
    virtual std::vector<float> floats(const std::string &name, const std::vector<int64_t> &dims) const = 0;
    // Values or codes; of packed weights what they are worth.
    virtual const source_t &source(const std::string &name, const shape_t &shape) const = 0;
    // The name of the format of packed weights; empty where they are not packed.
    virtual std::string packed_format(const std::string &name) const = 0;
    // Packed weights as they are, where the engine can use them; only for those that have a packed_format.
    virtual packed_t packed(const std::string &name, const shape_t &shape, engine_t &engine) const = 0;
    // Whether all experts of a layer are known to be the same.
    virtual bool has_equal_experts() const { return false; }

protected:
    std::string path_;
    const names_t *names_ = nullptr;
};

// Of a folder or a file. Throws std::runtime_error where it is not whole.
std::unique_ptr<tensors_t> read_tensors(const std::string &model);

// Rows of several sources one after the other. They have the same experts and columns; nothing where they are
// not codes of one format, or values of one type.
std::optional<source_t> concatenated(const std::vector<const source_t *> &parts);
// Rows of two sources of one shape that take turns; nothing as above.
std::optional<source_t> interleaved(const source_t &even, const source_t &odd);

} // namespace llm
