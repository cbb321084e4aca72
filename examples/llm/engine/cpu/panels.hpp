// SPDX-License-Identifier: Apache-2.0
// High-precision weights on the CPU, in panels of 16 columns: [columns / 16][in][16] of f32 or bf16. They lie
// in the engine's memory, whose large pages let a single row read them as fast as the memory can be read.
#pragma once

#include "engine/engine.hpp"

namespace llm {

class panels_t {
public:
    // The order of the columns: as they are; or a panel of the first half, then one of the second, and so on.
    enum class order_t { straight, halves };

    // Reads matrix `matrix` of the weights.
    panels_t(engine_t &engine, const source_t &weights, int64_t matrix, data_type_t type, order_t order);

    // Of each pair where the order is halves.
    int64_t panels() const { return panels_; }
    // sums[rows][16] of a panel, or [rows][2][16] of a pair.
    void multiply(int64_t index, int64_t rows, const float *x, int64_t x_stride, float *sums) const;
    size_t bytes() const { return bytes_.size; }

private:
    int64_t in_, panels_;
    int width_; // panels in a pair
    data_type_t type_;
    buffer_t bytes_;
};

} // namespace llm
