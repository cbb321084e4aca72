// SPDX-License-Identifier: Apache-2.0
// Answers questions about text, one per line, all in JSON, for comparisons with other implementations: a
// string gets its ids, an array of ids gets its text, and {"template", "messages"} gets the text of a
// conversation.
//   llm_text_lines MODEL <questions >answers
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "text/chat.hpp"
#include "text/text_model.hpp"
#include "text/utf8_stream.hpp"

namespace {

using nlohmann::json;

json conversation(const json &question) {
    std::vector<llm::message_t> messages;
    for (const json &m : question.at("messages")) messages.push_back({m.at("role"), m.at("content")});
    const std::time_t now = std::time(nullptr);
    const llm::chat_format_t &format =
            llm::find_chat_format(question.at("template").get<std::string>(), "the question");
    return format.render(format, messages, *std::localtime(&now));
}

json answer(const llm::tokenizer_t &tokenizer, const json &question) {
    if (question.is_string()) return tokenizer.encode(question.get<std::string>(), true);
    if (question.is_object()) return conversation(question);
    llm::utf8_stream_t stream;
    std::string text;
    for (int32_t id : question.get<std::vector<int32_t>>()) text += stream.put(tokenizer.bytes(id));
    return text + stream.finish();
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc != 2) throw std::runtime_error("takes a folder with tokenizer.json, or a GGUF file");
        const llm::text_model_t model = llm::read_text_model(argv[1]);
        for (std::string line; std::getline(std::cin, line);)
            std::cout << answer(model.tokenizer, json::parse(line)) << '\n';
    } catch (const std::exception &e) {
        fprintf(stderr, "llm_text_lines: %s\n", e.what());
        return 1;
    }
}
