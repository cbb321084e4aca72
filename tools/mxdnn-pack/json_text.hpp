// SPDX-License-Identifier: Apache-2.0
// JSON from anywhere.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace mxdnn_pack {

// Throws where it is no JSON, is nested deeply, or an object has a name twice; `what` begins the sentence.
nlohmann::json parse_json(const std::string &text, const std::string &what);

} // namespace mxdnn_pack
