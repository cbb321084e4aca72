// SPDX-License-Identifier: Apache-2.0
#include "json_text.hpp"

#include <set>
#include <stdexcept>
#include <vector>

#include "common/safetensors.hpp"

namespace mxdnn_pack {

using nlohmann::json;

json parse_json(const std::string &text, const std::string &what) {
    constexpr int max_depth = 64;
    std::vector<std::set<std::string>> names; // of the objects that are open
    const auto look = [&](int depth, json::parse_event_t event, json &value) {
        if (depth > max_depth)
            throw std::runtime_error(what + " is nested more than " + std::to_string(max_depth) + " deep");
        if (event == json::parse_event_t::object_start) names.emplace_back();
        if (event == json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
            throw std::runtime_error(
                    what + " has the name " + safetensors::shown(value.get<std::string>()) + " twice");
        if (event == json::parse_event_t::object_end) names.pop_back();
        return true;
    };
    json j = json::parse(text, look, false);
    if (j.is_discarded()) throw std::runtime_error(what + " is not JSON");
    return j;
}

} // namespace mxdnn_pack
