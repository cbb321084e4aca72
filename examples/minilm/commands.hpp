// SPDX-License-Identifier: Apache-2.0
// What the program can do; each is one subcommand. All throw std::exception with a sentence when they cannot.
#pragma once

#include <string>
#include <vector>

#include "model.hpp"

namespace minilm {

struct options_t {
    std::string model;   // folder of model.safetensors, config.json and vocab.txt
    std::string packed;  // folder of packed files
    int threads = 0;     // 0: as many as the machine has
    double seconds = 20; // for measuring
};

// Where the packed file of a format lies.
std::string packed_path(const options_t &options, const std::string &format);

// Quantises and packs the linear weights of `model` and writes them with its other tensors as one container.
void pack_model(const model_t &model, const std::string &format, const std::string &path);

// Packs into each of the formats; the folder is made if need be.
void pack_formats(const options_t &options, const std::vector<std::string> &names);

// From the packed files of all formats: the table, then the ranking.
void print_table(const options_t &options);

// One line of numbers per text, from a packed file or (when `file` is empty) the f32 model.
void print_embeddings(
        const options_t &options, const std::string &file, const std::vector<std::string> &texts);

// Compares tokens and embeddings, of f32 and of every format packed into options.packed, with ones that were
// made elsewhere; false when they differ by more than the format explains.
bool check_golden(const options_t &options, const std::string &golden);

// Says on stderr what is being done, at most once in two seconds, so that nobody waits before a silent
// screen.
void progress(const std::string &what);

} // namespace minilm
