// SPDX-License-Identifier: Apache-2.0
// The experts of a prompt's tokens, of one computation for another: where two logits of a router are almost
// equal, a rounding decides, and results with other experts say nothing about the roundings themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace llm {

class routes_t {
public:
    // Of sequences of these lengths. The file has s32 [layers, tokens of all sequences, topk]; it is read, or
    // written by save() where there is none. Throws std::runtime_error for a file that is none of this model.
    routes_t(const std::string &path, const config_t &config, const std::vector<size_t> &lengths);

    // Notes which experts the logits [rows, experts] say; or makes all other logits small.
    void apply(engine_t &engine, size_t layer, const batch_t &batch, float *logits);
    void save() const;

private:
    const std::string path_;
    const size_t experts_, topk_;
    std::vector<size_t> first_; // token of each sequence
    size_t tokens_ = 0;
    bool is_known_ = false;
    std::vector<int32_t> ids_;
};

} // namespace llm
