// SPDX-License-Identifier: Apache-2.0
// What a decoder needs of the machine that it runs on. Linear layers and experts on packed weights are
// mxdnn's on every engine; an engine adds memory, what is not a matmul, and linear layers of high-precision
// weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "layers.hpp"
#include "model/config.hpp"
#include "mxdnn-pack/sources.hpp"

namespace llm {

using data_type_t = mxdnn::memory::data_type;
using mxdnn_pack::source_t;

// The precision of everything that is not packed weights.
enum class precision_t {
    f32,   // activations, cache and high-precision weights: to compare with others
    native // activations in the type that the machine multiplies fastest, cache in bf16
};

// Memory of an engine; freed with the last copy.
struct buffer_t {
    std::shared_ptr<void> bytes;
    size_t size = 0;

    template <typename T>
    T *as() const {
        return static_cast<T *>(bytes.get());
    }
};

// Rows of one step: some tokens of some sequences. Arrays are in memory of the engine, an element per row.
struct batch_t {
    // Rows that follow each other in a sequence.
    struct span_t {
        int64_t sequence, row, rows, position; // `position` of the first
    };
    std::vector<span_t> spans;
    int64_t rows = 0;
    const int32_t *tokens = nullptr, *sequences = nullptr, *positions = nullptr;
};

// Rows of the embedding. After largest() has found none, a step may be asked for a token below 0: any row
// will do.
class table_t {
public:
    virtual ~table_t() = default;
    virtual void look_up(const batch_t &batch, float *x) = 0;
    virtual size_t bytes() const = 0; // of the engine's memory
};

// Attention of all layers, with the cache of keys and values.
class attention_t {
public:
    virtual ~attention_t() = default;
    // Rotates queries and keys of qkv [rows, config.qkv()], stores keys and values, and writes
    // [rows, heads * head_size] of the engine's activation type. `sinks` is null or a logit per head.
    virtual void run(size_t layer, const batch_t &batch, float *qkv, const float *sinks, void *y) = 0;
    virtual size_t bytes() const = 0;
    // That a step reads which continues a sequence of `length` tokens by one.
    virtual size_t bytes_for_row(int64_t length) const = 0;
};

class engine_t {
public:
    virtual ~engine_t() = default;

    const mxdnn::engine &engine() const { return engine_; }
    const mxdnn::stream &stream() const { return stream_; }
    precision_t precision() const { return precision_; }
    // Of what linear layers read.
    data_type_t activation() const { return activation_; }
    size_t activation_size() const { return activation_ == data_type_t::f32 ? 4 : 2; }

    virtual buffer_t allocate(size_t size) = 0;
    virtual void write(void *to, const void *host, size_t size) = 0;
    virtual void read(void *host, const void *from, size_t size) = 0; // waits
    virtual void copy(void *to, const void *from, size_t size) = 0;
    // Bytes that it reads in a second, measured; a second of the host's threads, where that is the machine.
    virtual double bandwidth(bool is_cpu_time) = 0;
    // Operations of a large bf16 matmul in a second, measured by what others use; 0: unknown.
    virtual double matmul_rate() { return 0; }
    // Waits for all that was begun.
    virtual void wait() {}
    // Bytes of its memory that this program holds; 0 where that is memory of the host.
    virtual size_t device_bytes() const { return 0; }

    template <typename T>
    buffer_t put(const std::vector<T> &values) {
        const buffer_t b = allocate(values.size() * sizeof(T));
        write(b.as<void>(), values.data(), b.size);
        return b;
    }

    virtual std::unique_ptr<table_t> table(const source_t &source) = 0;
    // A step has up to `max_rows` rows, and a sequence up to `context` positions.
    virtual std::unique_ptr<attention_t> attention(
            const config_t &config, int64_t sequences, int64_t context, int64_t max_rows) = 0;
    // In the activation type.
    virtual void rms_norm(int64_t rows, int64_t n, const norm_t &norm, void *y) = 0;
    // Row i of y is row index[i] of x.
    virtual void take_rows(int64_t rows, int64_t n, const float *x, const int32_t *index, float *y) = 0;
    // The index of the largest of each row; -1 where one of the row is no finite number.
    virtual void largest(int64_t rows, int64_t n, const float *x, int32_t *index) = 0;
    // Adds one to each.
    virtual void increment(int64_t n, int32_t *values) = 0;
    // A function that does the same as `work` from then on, with the same memory, at the least cost.
    virtual std::function<void()> recorded(const std::function<void()> &work) { return work; }

    // Layers on weights in high precision: f32 or bf16.
    virtual std::unique_ptr<linear_t> plain(
            const linear_spec_t &spec, const source_t &weights, data_type_t type, int64_t max_rows) = 0;
    virtual std::unique_ptr<experts_t> plain(
            const experts_spec_t &spec, const source_t &gate_up, const source_t &down, data_type_t type) = 0;

protected:
    // `below` is what the stream needs, and is freed after it.
    engine_t(const mxdnn::engine &engine, const mxdnn::stream &stream, precision_t precision,
            data_type_t activation, std::shared_ptr<void> below = nullptr)
        : below_(std::move(below)), engine_(engine), stream_(stream), precision_(precision),
          activation_(activation) {}

private:
    std::shared_ptr<void> below_;
    mxdnn::engine engine_;
    mxdnn::stream stream_;
    precision_t precision_;
    data_type_t activation_;
};

// "cpu", "cuda" or "cuda:1". Throws where there is no such engine.
std::unique_ptr<engine_t> make_engine(const std::string &name, precision_t precision);

} // namespace llm
