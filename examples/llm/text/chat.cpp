// SPDX-License-Identifier: Apache-2.0
#include "chat.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/container/utf8.hpp"
#include "unicode/unicode.hpp"

namespace llm {

namespace {

using messages_t = std::vector<message_t>;

// Texts of the models' templates.
const char smollm[] = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
const char chatgpt[] = "You are ChatGPT, a large language model trained by OpenAI.";
const char cutting[] = "Cutting Knowledge Date: December 2023", july[] = "26 Jul 2024";
const char cutoff[] = "Knowledge cutoff: 2024-06";
const char channels[] =
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
// How a message is written, in their language.
const char chatml_message[] = "'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'";
const char llama3_header[] = "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'";

std::string formatted(const char *format, const std::tm &date) {
    char text[64];
    return std::string(text, std::strftime(text, sizeof text, format, &date));
}

// Without the white space around it, which includes four separators of ASCII.
std::string_view trimmed(std::string_view text) {
    const auto is_blank = [](uint32_t c) { return unicode::is_white_space(c) || (c >= 0x1c && c <= 0x1f); };
    const auto *begin = reinterpret_cast<const unsigned char *>(text.data()), *p = begin,
               *end = p + text.size();
    size_t from = text.size(), to = 0;
    while (p < end) {
        const size_t at = size_t(p - begin);
        if (is_blank(mxdnn::impl::utf8::next(p, end))) continue;
        from = std::min(from, at);
        to = size_t(p - begin);
    }
    return from < to ? text.substr(from, to - from) : std::string_view();
}

std::string chatml(const chat_format_t &format, const messages_t &messages, const std::tm &) {
    std::string text;
    const auto add = [&](const std::string &role, const std::string &content) {
        text += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
    };
    if (format.system && (messages.empty() || messages[0].role != "system")) add("system", format.system);
    for (const message_t &m : messages) add(m.role, m.content);
    return text + "<|im_start|>assistant\n";
}

std::string llama3_message(std::string_view role, std::string_view content) {
    return "<|start_header_id|>" + std::string(role) + "<|end_header_id|>\n\n" + std::string(content)
           + "<|eot_id|>";
}

std::string llama3_all(const messages_t &messages, size_t from) {
    std::string text;
    for (size_t i = from; i < messages.size(); i++)
        text += llama3_message(messages[i].role, trimmed(messages[i].content));
    return text + "<|start_header_id|>assistant<|end_header_id|>\n\n";
}

std::string llama3(const chat_format_t &, const messages_t &messages, const std::tm &) {
    return (messages.empty() ? "" : "<|begin_of_text|>") + llama3_all(messages, 0);
}

// The system always speaks, of dates at least.
std::string llama3_dated(const messages_t &messages, const std::string &date) {
    const bool has_system = !messages.empty() && messages[0].role == "system";
    std::string system = cutting + ("\nToday Date: " + date + "\n\n");
    if (has_system) system += trimmed(messages[0].content);
    return "<|begin_of_text|>" + llama3_message("system", system) + llama3_all(messages, has_system);
}

std::string llama3_1(const chat_format_t &, const messages_t &messages, const std::tm &) {
    return llama3_dated(messages, july);
}

std::string llama3_2(const chat_format_t &, const messages_t &messages, const std::tm &today) {
    return llama3_dated(messages, formatted("%d %b %Y", today));
}

// What the user of the model wants of it stands in a message of the developer; the system's is fixed.
std::string harmony(const chat_format_t &, const messages_t &messages, const std::tm &today) {
    std::string text = std::string("<|start|>system<|message|>") + chatgpt + "\n" + cutoff
                       + "\nCurrent date: " + formatted("%Y-%m-%d", today) + "\n\nReasoning: medium\n\n"
                       + channels + "<|end|>";
    const bool has_system = !messages.empty() && messages[0].role == "system";
    if (has_system && !messages[0].content.empty())
        text += "<|start|>developer<|message|># Instructions\n\n" + messages[0].content + "\n\n<|end|>";
    for (size_t i = has_system; i < messages.size(); i++) {
        const message_t &m = messages[i];
        if (m.role == "assistant")
            text += "<|start|>assistant<|channel|>final<|message|>" + m.content + "<|end|>";
        if (m.role == "user") text += "<|start|>user<|message|>" + m.content + "<|end|>";
    }
    return text + "<|start|>assistant";
}

// clang-format off
const chat_format_t formats[] = {
    {"SmolLM2", {chatml_message, smollm}, {"think", "tool"}, chatml, {"<|im_end|>"}, false, smollm},
    {"ChatML", {chatml_message}, {"think", "tool", "You are"}, chatml, {"<|im_end|>"}, false, nullptr},
    {"Llama 3.2", {llama3_header, cutting, "strftime_now"}, {"think"}, llama3_2, {"<|eot_id|>"}, false, nullptr},
    {"Llama 3.1", {llama3_header, cutting, july}, {"think", "strftime_now"}, llama3_1, {"<|eot_id|>"}, false, nullptr},
    {"Llama 3", {llama3_header}, {"think", "Date", "tool"}, llama3, {"<|eot_id|>"}, false, nullptr},
    {"harmony", {chatgpt, cutoff, channels}, {}, harmony, {"<|return|>", "<|call|>"}, true, nullptr},
};
// clang-format on

} // namespace

const chat_format_t &find_chat_format(std::string_view chat_template, std::string_view what) {
    // In a template a line end is a character or two that stand for it.
    std::string text;
    for (size_t i = 0; i < chat_template.size(); i++) {
        const bool is_line_end = chat_template.substr(i, 2) == "\\n";
        text += is_line_end ? '\n' : chat_template[i];
        i += is_line_end;
    }
    const auto is_in = [&](const char *part) { return text.find(part) != text.npos; };
    std::string known;
    for (const chat_format_t &f : formats) {
        if (std::all_of(f.has.begin(), f.has.end(), is_in)
                && std::none_of(f.lacks.begin(), f.lacks.end(), is_in))
            return f;
        known += (known.empty() ? "" : ", ") + std::string(f.name);
    }
    throw std::runtime_error(
            std::string(what)
            + (text.empty() ? " has no chat template" : " has a chat template that is not known here")
            + "; known are those of " + known + ". --raw gives the text to the model as it is");
}

} // namespace llm
