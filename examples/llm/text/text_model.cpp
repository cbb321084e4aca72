// SPDX-License-Identifier: Apache-2.0
#include "text_model.hpp"

#include <filesystem>
#include <stdexcept>

#include "common/input_file.hpp"
#include "mxdnn-pack/json_text.hpp"
#include "tokenizer_files.hpp"

namespace llm {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Empty where there is no such file.
std::string content(const fs::path &path) {
    constexpr uint64_t max_bytes = uint64_t(1) << 24;
    if (!fs::exists(path)) return "";
    const input_file_t file(path.string());
    if (file.size() > max_bytes)
        throw std::runtime_error(file.name() + " has " + std::to_string(file.size()) + " bytes, more than "
                                 + std::to_string(max_bytes));
    std::string text(size_t(file.size()), '\0');
    file.read(0, file.size(), &text[0]);
    return text;
}

json object(const fs::path &path) {
    const std::string text = content(path);
    json value = text.empty() ? json::object() : mxdnn_pack::parse_json(text, path.string());
    if (!value.is_object()) throw std::runtime_error(path.string() + " is no object");
    return value;
}

// A string, or one of several with names.
std::string template_of(const json &config) {
    const json value = config.value("chat_template", json());
    if (value.is_string()) return value.get<std::string>();
    if (value.is_array())
        for (const json &named : value)
            if (named.is_object() && named.value("name", json()) == "default"
                    && named.value("template", json()).is_string())
                return named["template"].get<std::string>();
    return "";
}

void add_end(std::vector<int32_t> &ends, const tokenizer_t &tokenizer, int64_t id) {
    if (id >= 0 && id < tokenizer.size()) ends.push_back(int32_t(id));
}

text_model_t of_gguf(const std::string &path) {
    const gguf::file_t file(path);
    text_model_t model{read_tokenizer(file), "", {}};
    if (const gguf::value_t *chat = file.find("tokenizer.chat_template"))
        model.chat_template = chat->string();
    for (const char *key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
        if (const gguf::value_t *id = file.find(key)) add_end(model.ends, model.tokenizer, id->integer());
    return model;
}

text_model_t of_folder(const fs::path &folder) {
    text_model_t model{read_tokenizer_json((folder / "tokenizer.json").string()), "", {}};
    model.chat_template = content(folder / "chat_template.jinja");
    if (model.chat_template.empty())
        model.chat_template = template_of(object(folder / "tokenizer_config.json"));
    for (const char *name : {"generation_config.json", "config.json"}) {
        const json value = object(folder / name).value("eos_token_id", json());
        for (const json &id : value.is_array() ? value : json::array({value}))
            if (id.is_number_integer()) add_end(model.ends, model.tokenizer, id.get<int64_t>());
        if (!model.ends.empty()) break;
    }
    return model;
}

} // namespace

text_model_t read_text_model(const std::string &path) {
    return fs::is_directory(path) ? of_folder(path) : of_gguf(path);
}

} // namespace llm
