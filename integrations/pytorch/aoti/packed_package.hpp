// SPDX-License-Identifier: Apache-2.0
// What a program checks before it trusts the packed weights of an AOTInductor package.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <mxdnn/mxdnn.hpp>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

namespace mxdnn_aoti {

// One packed constant, as the metadata of the package describes it.
struct packed_constant_t {
    std::string name;
    std::vector<uint8_t> blob;
    uint64_t checksum = 0;
    mxdnn::blob_verdict verdict = mxdnn::blob_verdict::corrupt;
    std::string reason; // of a verdict that is not native
};

// Throws a sentence unless this machine can run the code that Inductor generated, which the package names the
// target of. Nothing of the package is run or loaded.
void require_target(const std::string &package);

// The packed constants of a package and what `eng` can do with them. Nothing of the package is run or loaded.
std::vector<packed_constant_t> read_packed_constants(const std::string &package, const mxdnn::engine &eng);

// The worst verdict. Throws a sentence unless the weights run here: natively, or by a slower kernel.
mxdnn::blob_verdict require_usable(const std::vector<packed_constant_t> &constants);

// Throws a sentence unless the loaded model has each of these constants with the bytes that were packed.
void verify_bytes(
        torch::inductor::AOTIModelPackageLoader &loader, const std::vector<packed_constant_t> &constants);

} // namespace mxdnn_aoti
