// SPDX-License-Identifier: Apache-2.0
// The one interface through which the encoder reaches its linear layers, so that every weight format and
// library plugs in alike.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model.hpp"

namespace minilm {

class linear_t {
public:
    virtual ~linear_t() = default;
    // y = x w^T + bias, then GELU where the layer has it. x has linears_t::bf16_source()'s type; y is f32.
    virtual void run(int64_t rows, const void *x, float *y) = 0;
};

// Makes the linear layers of one row of the table. Objects that it makes may use it as long as they live.
class linears_t {
public:
    virtual ~linears_t() = default;
    virtual bool bf16_source() const { return false; }
    virtual std::unique_ptr<linear_t> make(const linear_spec_t &spec) = 0;
};

enum class baseline_t {
    f32,
    bf16,        // weights and sources in bf16
    bf16_rounded // weights rounded to bf16, computed in f32: where the machine or the library has no bf16
};

// In plain C++; has no real bf16, so that it is `bf16_rounded`.
std::unique_ptr<linears_t> plain_linears(baseline_t which);

// Through oneDNN; null when the program was built without it, or when it has no bf16 here.
std::unique_ptr<linears_t> onednn_linears(baseline_t which);

// "oneDNN 3.2.0", or "" without it.
std::string onednn_version();

} // namespace minilm
