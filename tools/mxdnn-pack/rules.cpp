// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using safetensors::shown;
using weight_formats::find_format;
using weight_formats::format_t;

format_rules_t::format_rules_t(const options_t &o)
    : otherwise_(&find_format(o.format.value_or("mxfp4"))), is_asked_for_(o.format) {
    for (const std::string &rule : o.rules) {
        // No format has a '=' in its name; an expression may have one.
        const size_t equal = rule.rfind('=');
        if (equal == rule.npos || equal == 0)
            throw std::runtime_error(
                    "--rule takes REGEX=FORMAT, such as 'experts=mxfp4'; this is " + shown(rule));
        const std::string expression = rule.substr(0, equal), format = rule.substr(equal + 1);
        try {
            rules_.push_back(
                    {patterns::pattern_t(expression), format == "keep" ? nullptr : &find_format(format)});
        } catch (const std::runtime_error &e) {
            throw std::runtime_error("--rule " + shown(rule) + ": " + e.what());
        }
    }
}

const format_t *format_rules_t::find(const std::string &name, const format_t *nearest) const {
    for (const rule_t &r : rules_)
        if (r.pattern.is_in(name)) return r.format;
    return nearest && !is_asked_for_ ? nearest : otherwise_;
}

bool format_rules_t::has_e8m0() const {
    const auto is = [](const format_t *f) { return f && f->scale == mxdnn::memory::data_type::e8m0; };
    return is(otherwise_)
           || std::any_of(rules_.begin(), rules_.end(), [&](const rule_t &r) { return is(r.format); });
}

} // namespace mxdnn_pack
