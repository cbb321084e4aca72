// SPDX-License-Identifier: Apache-2.0
#include "prompt.hpp"

#include <ctime>
#include <stdexcept>

#include "model/synthetic.hpp"
#include "text/chat.hpp"

namespace llm {

text_model_t text_model_of(const options_t &o) {
    if (is_synthetic(o.model))
        throw std::runtime_error(
                o.model + " has made-up weights and no tokeniser: it takes tokens, not a text");
    return read_text_model(o.model);
}

prompt_t prompt_of(const text_model_t &model, const options_t &o) {
    const tokenizer_t &t = model.tokenizer;
    prompt_t p{{}, model.ends, false};
    if (o.is_raw) {
        p.tokens = t.encode(o.text, true);
    } else {
        const chat_format_t &format = find_chat_format(model.chat_template, o.model);
        std::vector<message_t> messages;
        if (!o.system.empty()) messages.push_back({"system", o.system});
        messages.push_back({"user", o.text});
        const std::time_t now = std::time(nullptr);
        p.tokens = t.encode(format.render(format, messages, *std::localtime(&now)), false);
        p.shows_special = format.shows_special;
        for (const char *end : format.ends)
            if (const int32_t id = t.find(end); id >= 0) p.ends.push_back(id);
    }
    if (p.tokens.empty()) throw std::runtime_error("the text has no tokens");
    return p;
}

} // namespace llm
