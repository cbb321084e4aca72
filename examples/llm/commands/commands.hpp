// SPDX-License-Identifier: Apache-2.0
// The subcommands of mxdnn-llm, one file each. They throw what goes wrong.
#pragma once

#include <string>

namespace llm {

// What the command line says.
struct options_t {
    std::string model; // a folder or a file
};

void describe(const options_t &options);

} // namespace llm
