// SPDX-License-Identifier: Apache-2.0
// What a program needs to run from an artefact: map it, select the weights for an engine, check them, use
// them.
#pragma once

#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "artefact.hpp"

namespace aot {

// One tensor, packed in one way: where it lies in the file.
struct variant_t {
    std::string name;
    const uint8_t *blob;
    size_t blob_size;
    const uint8_t *data;
    size_t data_size;
    uint64_t checksum;
};

// What the file holds. Throws std::runtime_error with a sentence unless every variant lies inside the file.
std::vector<variant_t> read(const uint8_t *file, size_t size);

// A file that is mapped for reading. Replace such a file by rename, and never write to it: a program that has
// it mapped would see the change, or end with SIGBUS.
class file_t {
public:
    explicit file_t(const std::string &path);
    ~file_t();
    file_t(const file_t &) = delete;
    file_t &operator=(const file_t &) = delete;
    const std::vector<variant_t> &variants() const { return variants_; }

private:
    void *bytes_ = nullptr;
    size_t size_ = 0;
    std::vector<variant_t> variants_;
};

// Weights that an engine multiplies, over the bytes of the file or, on a device, over a copy there.
struct weights_t {
    mxdnn::memory memory;
    mxdnn::blob_verdict verdict; // native or slower
};

// The best variant of a tensor for an engine. Throws where none fits, with the reason for each, or where it
// is damaged.
weights_t select(const std::vector<variant_t> &variants, const std::string &name, const mxdnn::engine &eng);

} // namespace aot
