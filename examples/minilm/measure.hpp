// SPDX-License-Identifier: Apache-2.0
// The figures behind one row of the table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "encoder.hpp"
#include "linear.hpp"
#include "model.hpp"

namespace minilm {

struct row_t {
    // Declared in the order in which they need each other.
    std::unique_ptr<model_t> model; // of this row alone; baselines use the f32 model
    std::unique_ptr<linears_t> linears;
    std::unique_ptr<encoder_t> encoder;
    std::string title, implementation;

    int64_t bytes = 0;                         // of the weights of the linear layers
    double sqnr = 0;                           // dB, of the worst layer; infinite when exact
    double cosine_mean = 0, cosine_lowest = 0; // with the first row, over the batch
    std::vector<float> embeddings;             // of the batch

    // The best of all rounds.
    double tokens_per_second_one = 0, tokens_per_second_batch = 0; // of the whole encoder
    double linears_seconds[3] = {}; // all linear layers once, for each of timing_t::rows
};

// Signal-to-quantisation-noise ratio in dB of `approximation`.
double sqnr_db(int64_t n, const float *exact, const float *approximation);

// Fills in bytes and SQNR of a baseline; `rounded`: to bf16.
void describe_baseline(row_t &row, const model_t &model, bool rounded);

// Embeds the batch with every row and compares with the first.
void compare_answers(std::vector<row_t> &rows, const std::vector<tokens_t> &batch);

struct timing_t {
    int rounds;
    int64_t rows[3]; // of activations: one, those of a sentence, those of the batch
};

// Times everything in turns, sentence by sentence and with the whole batch, until `seconds` are over and at
// least three rounds done.
timing_t time_rows(std::vector<row_t> &rows, const std::vector<tokens_t> &batch, double seconds);

} // namespace minilm
