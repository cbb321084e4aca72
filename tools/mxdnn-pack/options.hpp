// SPDX-License-Identifier: Apache-2.0
// What the command line says.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mxdnn_pack {

struct options_t {
    std::string target; // empty: this machine
    std::string in, out;
    std::string original;                                    // of diff
    std::optional<std::string> format;                       // mxfp4, or the nearest
    std::vector<std::string> rules;                          // REGEX=FORMAT
    std::string rounding;                                    // empty: the usual one
    std::optional<std::string> include, exclude, transposed; // regular expressions for names of tensors
    std::string recipe;                                      // annotation
    std::string type = "f32";                                // of unpacked weights
    std::string gptq_zeros;                                  // empty: as the checkpoint says
    unsigned part_mib = 4;                                   // of a tensor that a thread works on at a time
    unsigned threads = 0;                                    // 0: as many as the machine has
    bool codes_only = false;                                 // pack what is quantised already, copy the rest
    bool requantise = false;                                 // codes that no format holds, too
    bool dry_run = false;
};

} // namespace mxdnn_pack
