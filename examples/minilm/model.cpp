// SPDX-License-Identifier: Apache-2.0
// Finds every tensor by name and refuses one of another type or shape.
#include "model.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace minilm {

namespace {

config_t read_config(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path + ": " + strerror(errno));
    const nlohmann::json j = nlohmann::json::parse(file, nullptr, false);
    if (!j.is_object()) throw std::runtime_error(path + " is not a JSON object");
    const auto number = [&](const char *key, int64_t most) {
        const auto it = j.find(key);
        if (it == j.end() || !it->is_number_unsigned() || it->get<uint64_t>() == 0
                || it->get<uint64_t>() > uint64_t(most))
            throw std::runtime_error(
                    path + ": '" + key + "' must be a number from 1 to " + std::to_string(most));
        return it->get<int64_t>();
    };
    const auto text = [&](const char *key, const char *wanted) {
        const auto it = j.find(key);
        if (it == j.end() || !it->is_string() || it->get<std::string>() != wanted)
            throw std::runtime_error(
                    path + ": this program runs models whose '" + key + "' is '" + wanted + "'");
    };
    text("model_type", "bert");
    text("hidden_act", "gelu");
    config_t c;
    c.hidden = number("hidden_size", 1 << 16);
    c.intermediate = number("intermediate_size", 1 << 18);
    c.layers = number("num_hidden_layers", 1 << 10);
    c.heads = number("num_attention_heads", 1 << 10);
    c.vocabulary = number("vocab_size", 1 << 24);
    c.positions = number("max_position_embeddings", 1 << 20);
    const auto eps = j.find("layer_norm_eps");
    c.eps = eps != j.end() && eps->is_number() ? eps->get<float>() : 1e-12f;
    if (c.hidden % c.heads)
        throw std::runtime_error(path + ": hidden_size " + std::to_string(c.hidden) + " is not a multiple of "
                                 + std::to_string(c.heads) + " heads");
    return c;
}

} // namespace

model_t::model_t(const std::string &dir, const std::string &file_path) {
    config = read_config(dir + "/config.json");
    path = file_path.empty() ? dir + "/model.safetensors" : file_path;
    file = mxdnn::container(path);
    const int64_t h = config.hidden;
    words = floats("embeddings.word_embeddings.weight", {config.vocabulary, h});
    positions = floats("embeddings.position_embeddings.weight", {config.positions, h});
    types = floats("embeddings.token_type_embeddings.weight", {2, h});
    embedding_norm = norm("embeddings.LayerNorm");
    for (int64_t i = 0; i < config.layers; i++) {
        const std::string at = "encoder.layer." + std::to_string(i) + ".";
        layer_t l;
        l.query = linear(at + "attention.self.query", h, h);
        l.key = linear(at + "attention.self.key", h, h);
        l.value = linear(at + "attention.self.value", h, h);
        l.attention = linear(at + "attention.output.dense", h, h);
        l.attention_norm = norm(at + "attention.output.LayerNorm");
        l.intermediate = linear(at + "intermediate.dense", h, config.intermediate, true);
        l.output = linear(at + "output.dense", config.intermediate, h);
        l.output_norm = norm(at + "output.LayerNorm");
        layers.push_back(std::move(l));
    }
}

const float *model_t::floats(const std::string &name, const std::vector<int64_t> &shape) const {
    const size_t index = file.find(name);
    const mxdnn::container::entry e = file.get_entry(index);
    const std::string what = path + ": tensor " + name;
    if (e.dtype != "F32") throw std::runtime_error(what + " is " + e.dtype + ", not F32");
    if (e.is_packed || e.dims != shape)
        throw std::runtime_error(what + " has another shape than config.json says");
    const void *data = file.get_data(index);
    if (reinterpret_cast<uintptr_t>(data) % alignof(float))
        throw std::runtime_error(what + " does not begin at a multiple of 4 bytes");
    return static_cast<const float *>(data);
}

linear_spec_t model_t::linear(const std::string &name, int64_t in, int64_t out, bool gelu) const {
    const std::string weight = name + ".weight";
    const bool packed = file.get_entry(file.find(weight)).is_packed;
    return {weight, in, out, packed ? nullptr : floats(weight, {out, in}), floats(name + ".bias", {out}),
            gelu};
}

layer_norm_t model_t::norm(const std::string &name) const {
    return {floats(name + ".weight", {config.hidden}), floats(name + ".bias", {config.hidden})};
}

std::vector<const linear_spec_t *> model_t::linears() const {
    std::vector<const linear_spec_t *> all;
    for (const auto &l : layers)
        for (const auto *s : {&l.query, &l.key, &l.value, &l.attention, &l.intermediate, &l.output})
            all.push_back(s);
    return all;
}

int64_t model_t::linear_weights() const {
    int64_t n = 0;
    for (const auto *s : linears()) n += s->in * s->out;
    return n;
}

} // namespace minilm
