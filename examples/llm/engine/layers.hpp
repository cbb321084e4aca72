// SPDX-License-Identifier: Apache-2.0
// The layers with weights, which differ in how the weights are held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <mxdnn/mxdnn.hpp>

namespace llm {

class routing_t;

// y = then(x * w^T + bias)
struct linear_spec_t {
    enum class then_t {
        store,
        add,        // to what y is
        gated_silu, // y = silu(gate) * up, of `out` columns: first those of gate, then those of up
        silu,
        multiply // by `factor`
    };
    int64_t in, out;
    const float *bias = nullptr; // in memory of the engine
    then_t then = then_t::store;
    mxdnn::memory::data_type result = mxdnn::memory::data_type::f32;
    int64_t stride = 0; // elements from row to row of y; 0: as many as it has
    std::string name;

    int64_t columns() const { return then == then_t::gated_silu ? out / 2 : out; }
    int64_t y_stride() const { return stride ? stride : columns(); }
};

// Rows of f32 and what they become: x / sqrt(mean(x^2) + eps) * weight.
struct norm_t {
    const float *x, *weight;
    float eps;
};

class linear_t {
public:
    virtual ~linear_t() = default;
    // x has the engine's activation type. `factor` has the shape of y.
    virtual void run(int64_t rows, const void *x, void *y, const float *factor = nullptr) = 0;
    // Does both at once: the norm, which becomes h if that is not null, and what follows. Returns false, and
    // has done nothing, where there is no way to do so that is faster.
    virtual bool run_with_norm(int64_t, const norm_t &, void *, void *) { return false; }
    virtual std::string implementation() const = 0;
    virtual size_t bytes() const = 0; // of weights
};

// Experts of a layer with swiglu_oai (gpt-oss) between them.
struct experts_spec_t {
    int64_t experts, topk, hidden, intermediate;
    const float *gate_up_bias, *down_bias; // [experts, columns] in memory of the engine
    bool is_interleaved;                   // columns of gate and up take turns
    float alpha, limit;
    std::shared_ptr<routing_t> routing; // of all layers
    std::string name;
};

class experts_t {
public:
    virtual ~experts_t() = default;
    // Adds to y what the best experts make of h, by the logits [rows, experts].
    virtual void run(int64_t rows, const void *h, const float *logits, float *y) = 0;
    virtual std::string implementation() const = 0;
    virtual size_t bytes() const = 0;           // of weights
    virtual size_t bytes_of_expert() const = 0; // of one
    virtual int64_t chosen() const = 0;         // experts that had rows in the last run
};

} // namespace llm
