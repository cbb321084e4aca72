// SPDX-License-Identifier: Apache-2.0
// Rows that moe_permute and moe_unpermute move: values, or codes and the scales of their blocks.
#pragma once

#include "benchdnn/common/knobs.hpp"
#include "benchdnn/common/tensor.hpp"

namespace bench {

// Of source and destination, from "--scales-layout=SRC:DST".
std::pair<std::string, std::string> scales_layouts(const words_t &words);
std::string draw_scales_layouts(draws_t &any, const knob_t &knob);
// Of rows whose type is the first word of "dt".
std::string draw_packing(draws_t &any, const knob_t &knob, const words_t &words, const std::string &);

struct rows_t {
    tensor_type_t type;
    int64_t rows = 0, cols = 0;
    operand_t tensor;

    // `pad`: elements between rows.
    rows_t(const tensor_type_t &t, int64_t rows_, int64_t cols_, const std::string &scales_layout,
            int64_t pad);

    const tensor_t &codes() const { return tensor.codes(); }
    int64_t blocks() const { return type.quantised ? tensor.quantised.blocks[1] : 0; }
    uint32_t code(int64_t row, int64_t col) const;
    uint32_t scale(int64_t row, int64_t block) const;

    void fill(rng_t &rng) const;
    void poison() const;
    mxdnn::memory::desc desc(bool runtime_rows) const;
    void add_args(int arg, const mxdnn::engine &e, std::unordered_map<int, mxdnn::memory> &args) const;
    void describe(mxdnn::primitive_attr &attr, int arg) const;
};

} // namespace bench
