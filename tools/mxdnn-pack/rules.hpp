// SPDX-License-Identifier: Apache-2.0
// Which format weights of values get: that of the first rule whose expression is in the name, else --format.
#pragma once

#include <string>
#include <vector>

#include "common/patterns.hpp"
#include "common/weight_formats.hpp"
#include "options.hpp"

namespace mxdnn_pack {

class format_rules_t {
public:
    // Throws for a rule that is not REGEX=FORMAT.
    explicit format_rules_t(const options_t &options);

    // Null where the tensor is to be kept as it is. `nearest` is what it gets where neither a rule nor
    // --format says another, or null.
    const weight_formats::format_t *find(
            const std::string &name, const weight_formats::format_t *nearest = nullptr) const;
    // Whether any of them has e8m0 scales, to which --rounding applies.
    bool has_e8m0() const;

private:
    struct rule_t {
        patterns::pattern_t pattern;
        const weight_formats::format_t *format;
    };
    std::vector<rule_t> rules_;
    const weight_formats::format_t *otherwise_;
    bool is_asked_for_; // --format
};

} // namespace mxdnn_pack
