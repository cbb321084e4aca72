// SPDX-License-Identifier: Apache-2.0
// The subcommands of mxdnn-llm, one file each. They throw what goes wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "text/sampler.hpp"

namespace llm {

// What the command line says.
struct options_t {
    std::string model; // a folder or a file
    load_options_t load;
    int threads = 0; // 0: all of the machine
    std::vector<int32_t> ids;
    std::vector<std::string> sequences; // of logits: ids as texts
    int64_t at_once = 0;                // tokens of each that are computed at once; 0: all
    std::string output, routes;
    std::string text, system; // of generate: what the user says, and what the system says
    bool is_raw = false;      // the text is the model's input, not a message to it
    sampling_t sampling;
    std::string file;                   // of perplexity
    int64_t context = 0;                // 0: what is needed
    int64_t tokens = 64;                // to generate
    std::vector<int64_t> batches = {1}; // of bench
    int64_t prompt = 512, repeat = 3;
    bool has_cpu_time = false;
};

// Loads the model and says how far it is.
model_t load_model(const options_t &options);

// Peak memory of host and device, to stderr.
void print_memory(const model_t &model);

void bench(const options_t &options);
void describe(const options_t &options);
void generate(const options_t &options);
void logits(const options_t &options);
void perplexity(const options_t &options);
void tokenize(const options_t &options);

} // namespace llm
