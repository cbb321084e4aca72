// SPDX-License-Identifier: Apache-2.0
// Text of a model in a form that a terminal shows and does not obey.
#pragma once

#include <string>
#include <string_view>

namespace llm {

// Control characters other than newline and tab as \x1b or \u009b, bytes that are no UTF-8 as U+FFFD.
std::string terminal_text(std::string_view text);

} // namespace llm
