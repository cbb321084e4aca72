// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <sys/stat.h>

#include "common/input_file.hpp"
#include "common/safetensors.hpp"
#include "config_gguf.hpp"
#include "mxdnn-pack/json_text.hpp"
#include "synthetic.hpp"

namespace llm {

using nlohmann::json;
using safetensors::shown;

namespace {

// A value that a file gives, as a terminal can print it.
std::string printed(const json &value) { return value.dump(-1, ' ', true).substr(0, 40); }

// Values of a JSON object by key, with sentences for what is wrong.
class reader_t {
public:
    reader_t(const json &j, std::string path, key_name_t named)
        : json_(j), path_(std::move(path)), named_(std::move(named)) {
        if (!j.is_object()) refuse("it is not a JSON object");
    }

    [[noreturn]] void refuse(const std::string &why) const { throw std::runtime_error(path_ + ": " + why); }

    const json *find(const char *key) const {
        const auto it = json_.find(key);
        return it == json_.end() || it->is_null() ? nullptr : &*it;
    }
    int64_t whole(const char *key, int64_t most, std::optional<int64_t> otherwise = {}) const {
        const json *v = find(key);
        if (!v && otherwise) return *otherwise;
        const bool is_whole = v && v->is_number_integer();
        const bool is_large = is_whole && v->is_number_unsigned() && v->get<uint64_t>() > uint64_t(most);
        if (!is_whole || is_large || v->get<int64_t>() < 1 || v->get<int64_t>() > most)
            refuse(named(key) + " must be a whole number from 1 to " + std::to_string(most)
                    + (v ? ", not " + printed(*v) : "; it is missing"));
        return v->get<int64_t>();
    }
    double number(const char *key, double least, double most, std::optional<double> otherwise = {}) const {
        const json *v = find(key);
        if (!v && otherwise) return *otherwise;
        const double d = v && v->is_number() ? v->get<double>() : NAN;
        if (!(d >= least && d <= most))
            refuse(named(key) + " must be a number from " + json(least).dump() + " to " + json(most).dump()
                    + (v ? ", not " + printed(*v) : "; it is missing"));
        return d;
    }
    bool flag(const char *key, bool otherwise) const {
        const json *v = find(key);
        if (v && !v->is_boolean()) refuse(named(key) + " must be true or false");
        return v ? v->get<bool>() : otherwise;
    }
    std::string text(const char *key, const std::string &otherwise) const {
        const json *v = find(key);
        if (v && !v->is_string()) refuse(named(key) + " must be a text");
        return v ? v->get<std::string>() : otherwise;
    }
    // An object, or an empty one.
    reader_t object(const char *key) const {
        static const json empty = json::object();
        const json *v = find(key);
        return reader_t(v ? *v : empty, named_ ? path_ : path_ + ", '" + key + "'", named_);
    }
    const std::string &path() const { return path_; }

private:
    const json &json_;
    std::string path_;
    key_name_t named_;

    std::string named(const char *key) const { return "'" + (named_ ? named_(key) : std::string(key)) + "'"; }
};

constexpr uint64_t max_text = 1 << 20; // bytes of config.json
constexpr int64_t max_positions = int64_t(1) << 24;

rope_t read_rope(const reader_t &r, double theta) {
    // Newer files have all in rope_parameters, older ones theta beside rope_scaling.
    const reader_t p = r.object(r.find("rope_parameters") ? "rope_parameters" : "rope_scaling");
    rope_t rope;
    rope.theta = p.number("rope_theta", 2, 1e12, r.number("rope_theta", 2, 1e12, theta));
    const std::string kind = p.text("rope_type", p.text("type", "default"));
    if (kind == "default") return rope;
    rope.factor = p.number("factor", 1e-3, 1e6);
    if (kind == "linear") {
        rope.scaling = rope_t::scaling_t::linear;
        return rope;
    }
    rope.original_positions = p.number("original_max_position_embeddings", 1, double(max_positions),
            r.number("original_max_position_embeddings", 1, double(max_positions),
                    r.number("max_position_embeddings", 1, double(max_positions), 4096.)));
    if (kind == "yarn") {
        rope.scaling = rope_t::scaling_t::yarn;
        rope.beta_fast = p.number("beta_fast", 1e-3, 1e6, 32.);
        rope.beta_slow = p.number("beta_slow", 1e-3, 1e6, 1.);
        rope.truncate = p.flag("truncate", true);
        rope.attention_factor = p.number(
                "attention_factor", 1e-3, 1e3, rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1.);
    } else if (kind == "llama3") {
        rope.scaling = rope_t::scaling_t::llama3;
        rope.low_factor = p.number("low_freq_factor", 1e-3, 1e6);
        rope.high_factor = p.number("high_freq_factor", 1e-3, 1e6);
        if (!(rope.high_factor > rope.low_factor))
            p.refuse("'high_freq_factor' must be above 'low_freq_factor'");
    } else {
        p.refuse("there is no rope_type " + shown(kind) + "; known are default, linear, yarn, llama3");
    }
    return rope;
}

config_t read_common(const reader_t &r) {
    config_t c;
    c.hidden = r.whole("hidden_size", 1 << 16);
    c.vocabulary = r.whole("vocab_size", 1 << 24);
    c.heads = r.whole("num_attention_heads", 1 << 12);
    c.kv_heads = r.whole("num_key_value_heads", 1 << 12, c.heads);
    c.intermediate = r.whole("intermediate_size", 1 << 18);
    c.layers.resize(size_t(r.whole("num_hidden_layers", 1 << 10)));
    if (!r.find("head_dim") && c.hidden % c.heads)
        r.refuse("'hidden_size' " + std::to_string(c.hidden) + " is not a multiple of "
                 + std::to_string(c.heads) + " heads, and there is no 'head_dim'");
    c.head_size = r.whole("head_dim", 1 << 10, c.hidden / c.heads);
    c.norm_eps = float(r.number("rms_norm_eps", 0, 1, 1e-5));
    return c;
}

config_t read_llama(const reader_t &r) {
    config_t c = read_common(r);
    c.positions = r.whole("max_position_embeddings", max_positions, 2048);
    c.has_tied_head = r.flag("tie_word_embeddings", false);
    c.has_attention_bias = r.flag("attention_bias", false);
    c.has_mlp_bias = r.flag("mlp_bias", false);
    c.rope = read_rope(r, 10000);
    if (const std::string act = r.text("hidden_act", "silu"); act != "silu")
        r.refuse("'hidden_act' is " + shown(act) + "; models with 'silu' can be run");
    return c;
}

// What all of gpt-oss has.
void add_gpt_oss(config_t &c, const reader_t &r) {
    c.has_sinks = c.has_attention_bias = c.has_mlp_bias = true;
    c.swiglu_alpha = float(r.number("swiglu_alpha", 1e-3, 1e3, 1.702));
    c.swiglu_limit = float(r.number("swiglu_limit", 1e-3, 1e6, 7.));
    const int64_t window = r.whole("sliding_window", max_positions, 128);
    const json *types = r.find("layer_types");
    if (types && (!types->is_array() || types->size() != c.layers.size()))
        r.refuse("'layer_types' must have a text for each of " + std::to_string(c.layers.size()) + " layers");
    for (size_t i = 0; i < c.layers.size(); i++) {
        bool is_windowed = i % 2 == 0;
        if (types) {
            const json &t = (*types)[i];
            is_windowed = t == "sliding_attention";
            if (!is_windowed && t != "full_attention")
                r.refuse("'layer_types' has " + printed(t)
                         + "; known are sliding_attention and full_attention");
        }
        c.layers[i].window = is_windowed ? window : 0;
    }
}

config_t read_gpt_oss(const reader_t &r) {
    config_t c = read_common(r);
    c.positions = r.whole("max_position_embeddings", max_positions, 131072);
    c.experts = r.whole("num_local_experts", 1 << 12);
    c.topk = r.whole("num_experts_per_tok", 1 << 6, r.whole("experts_per_token", 1 << 6, 4));
    c.has_tied_head = r.flag("tie_word_embeddings", false);
    if (!r.flag("attention_bias", true)) r.refuse("'attention_bias' is false; gpt-oss has biases");
    c.rope = read_rope(r, 150000);
    add_gpt_oss(c, r);
    return c;
}

// The original release of gpt-oss has keys of its own.
config_t read_original_gpt_oss(const reader_t &r) {
    config_t c = read_common(r);
    c.experts = r.whole("num_experts", 1 << 12);
    c.topk = r.whole("experts_per_token", 1 << 6, 4);
    c.rope.scaling = rope_t::scaling_t::yarn;
    c.rope.theta = r.number("rope_theta", 2, 1e12, 150000.);
    c.rope.factor = r.number("rope_scaling_factor", 1e-3, 1e6, 32.);
    c.rope.beta_slow = r.number("rope_ntk_alpha", 1e-3, 1e6, 1.);
    c.rope.beta_fast = r.number("rope_ntk_beta", 1e-3, 1e6, 32.);
    c.rope.truncate = false;
    c.rope.original_positions = r.number("initial_context_length", 1, double(max_positions), 4096.);
    c.rope.attention_factor = c.rope.factor > 1 ? 0.1 * std::log(c.rope.factor) + 1 : 1;
    c.positions = int64_t(std::min(c.rope.original_positions * c.rope.factor, double(max_positions)));
    add_gpt_oss(c, r);
    return c;
}

struct family_t {
    const char *model_type;
    config_t (*read)(const reader_t &);
};
constexpr family_t families[] = {{"llama", read_llama}, {"gpt_oss", read_gpt_oss}};

} // namespace

void check(const config_t &c, const std::string &path) {
    const auto refuse = [&](const std::string &why) { throw std::runtime_error(path + ": " + why); };
    if (c.heads % c.kv_heads)
        refuse(std::to_string(c.heads) + " query heads are not a multiple of " + std::to_string(c.kv_heads)
                + " key-value heads");
    if (c.head_size % 2)
        refuse("heads of " + std::to_string(c.head_size) + " elements cannot be rotated in pairs");
    if (c.topk > c.experts)
        refuse("a token cannot have " + std::to_string(c.topk) + " of " + std::to_string(c.experts)
                + " experts");
}

config_t parse_config(const json &j, const std::string &path, const key_name_t &named) {
    const reader_t r(j, path, named);
    config_t c;
    if (!r.find("model_type") && r.find("num_experts") && r.find("initial_context_length")) {
        c = read_original_gpt_oss(r);
        c.family = "gpt_oss";
    } else {
        const std::string type = r.text("model_type", "");
        const family_t *family = nullptr;
        std::string known;
        for (const family_t &f : families) {
            if (type == f.model_type) family = &f;
            known += (known.empty() ? "" : ", ") + std::string(f.model_type);
        }
        if (!family)
            r.refuse("'model_type' is " + shown(type) + "; models of these types can be run: " + known);
        c = family->read(r);
        c.family = family->model_type;
    }
    check(c, path);
    return c;
}

config_t read_config(const std::string &model) {
    if (is_synthetic(model)) return synthetic_config(model);
    if (gguf::is_gguf(model)) return read_gguf_config(gguf::file_t(model));
    struct stat st;
    if (stat(model.c_str(), &st) != 0)
        throw std::runtime_error("cannot open " + model + ": " + strerror(errno));
    const bool is_folder = S_ISDIR(st.st_mode);
    const size_t slash = model.rfind('/');
    const std::string path =
            (is_folder ? model + "/" : model.substr(0, slash == model.npos ? 0 : slash + 1)) + "config.json";
    const input_file_t file(path);
    if (file.size() > max_text)
        throw std::runtime_error(path + " has more than " + std::to_string(max_text) + " bytes");
    std::string text(size_t(file.size()), '\0');
    file.read(0, file.size(), &text[0]);
    return parse_config(mxdnn_pack::parse_json(text, path), path);
}

} // namespace llm
