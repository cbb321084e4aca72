// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "engine/cpu/loops.hpp"

namespace llm {

using nlohmann::json;
using weight_formats::codes_t;
using weight_formats::piece_t;

namespace {

constexpr const char *prefix = "shape:";

json gpt_oss(int layers, int experts, int size, int heads, int kv_heads, int vocabulary) {
    return {{"model_type", "gpt_oss"}, {"num_hidden_layers", layers}, {"num_local_experts", experts},
            {"num_experts_per_tok", 4}, {"hidden_size", size}, {"intermediate_size", size}, {"head_dim", 64},
            {"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}, {"vocab_size", vocabulary},
            {"max_position_embeddings", 131072}, {"sliding_window", 128}, {"rope_theta", 150000},
            {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 32},
                                     {"original_max_position_embeddings", 4096}, {"truncate", false}}}};
}

const std::map<std::string, json> &shapes() {
    static const std::map<std::string, json> all = {
            {"gpt-oss-20b", gpt_oss(24, 32, 2880, 64, 8, 201088)},
            {"gpt-oss-120b", gpt_oss(36, 128, 2880, 64, 8, 201088)},
            {"gpt-oss-120b-even", gpt_oss(36, 128, 2880, 64, 8, 201088)},
            {"gpt-oss-tiny", gpt_oss(4, 8, 320, 8, 2, 1000)},
            {"smollm2-135m", {{"model_type", "llama"}, {"num_hidden_layers", 30}, {"hidden_size", 576},
                                     {"intermediate_size", 1536}, {"num_attention_heads", 9},
                                     {"num_key_value_heads", 3}, {"vocab_size", 49152},
                                     {"max_position_embeddings", 8192}, {"tie_word_embeddings", true},
                                     {"rope_theta", 100000}}},
            {"llama-3.2-3b", {{"model_type", "llama"}, {"num_hidden_layers", 28}, {"hidden_size", 3072},
                                     {"intermediate_size", 8192}, {"num_attention_heads", 24},
                                     {"num_key_value_heads", 8}, {"head_dim", 128}, {"vocab_size", 128256},
                                     {"max_position_embeddings", 131072}, {"tie_word_embeddings", true},
                                     {"rope_theta", 500000},
                                     {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 32},
                                                              {"low_freq_factor", 1}, {"high_freq_factor", 4},
                                                              {"original_max_position_embeddings", 8192}}}}},
    };
    return all;
}

// Numbers in no order, the same for the same seed.
class noise_t {
public:
    explicit noise_t(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    uint32_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return uint32_t(state_ >> 32);
    }
    // From -size to size.
    float operator()(float size) { return float(int32_t((*this)())) * (size / 2147483648.f); }

private:
    uint64_t state_;
};

// What attention adds to rows is nearly the same for all tokens, so that some experts get most of them. Rows
// of an "even" shape begin so large that they stay different.
class synthetic_tensors_t : public tensors_t {
public:
    explicit synthetic_tensors_t(const std::string &path) : is_even_(path.find("-even") != path.npos) {
        path_ = path;
        names_ = &find_names([](const std::string &) { return true; }, path);
    }

    bool has(const std::string &) const override { return true; }
    void check_floats(const std::string &, const std::vector<int64_t> &) const override {}
    void check_weights(const std::string &, const shape_t &) const override {}
    std::vector<float> floats(const std::string &name, const std::vector<int64_t> &dims) const override {
        size_t n = 1;
        for (const int64_t d : dims) n *= size_t(d);
        std::vector<float> values(n, 1.f);
        noise_t noise(name.size());
        if (name.find("norm") == name.npos)
            for (float &v : values) v = noise(0.1f);
        return values;
    }
    std::string packed_format(const std::string &) const override { return ""; }
    packed_t packed(const std::string &name, const shape_t &, engine_t &) const override {
        throw std::logic_error("weights '" + name + "' are made up, and not packed");
    }
    bool has_equal_experts() const override { return true; }

    const source_t &source(const std::string &name, const shape_t &shape) const override {
        const auto it = sources_.find(name);
        if (it != sources_.end()) return it->second;
        source_t s{name, "made up", shape, {}, std::nullopt, {}, data_type_t::bf16, {}, {}};
        float size = 1.7f / std::sqrt(float(shape.in)); // rows of length 1
        if (is_even_ && name == names_->embedding) size = 17;
        if (shape.experts) {
            s.format = weight_formats::find_format("mxfp4");
            const auto exponent = uint8_t(127 + std::ilogb(size / 4));
            s.codes = [in = shape.in, exponent](const piece_t &p, const codes_t &to) {
                noise_t noise(uint64_t(p.first));
                auto *codes = static_cast<uint8_t *>(to.codes);
                for (int64_t i = 0; i < p.columns * (in / 2); i++) codes[i] = uint8_t(noise());
                memset(to.scales, exponent, size_t(p.columns * ((in + 31) / 32)));
            };
        } else {
            s.values = [in = shape.in, size](const piece_t &p, void *to) {
                auto *values = static_cast<uint16_t *>(to);
                for (int64_t c = 0; c < p.columns; c++) {
                    noise_t noise(uint64_t(p.first + c));
                    for (int64_t k = 0; k < in; k++) values[c * in + k] = bf16_of(noise(size));
                }
            };
        }
        return sources_.emplace(name, std::move(s)).first->second;
    }

private:
    const bool is_even_;
    mutable std::map<std::string, source_t> sources_;
};

} // namespace

bool is_synthetic(const std::string &model) { return model.rfind(prefix, 0) == 0; }

config_t synthetic_config(const std::string &model) {
    std::string name = model.substr(std::string(prefix).size()), layers;
    if (const size_t colon = name.find(':'); colon != name.npos) {
        layers = name.substr(colon + 1);
        name.resize(colon);
    }
    const auto it = shapes().find(name);
    std::string known;
    for (const auto &s : shapes()) known += (known.empty() ? "" : ", ") + s.first;
    if (it == shapes().end())
        throw std::runtime_error("there is no shape '" + name + "'; known are " + known);
    json j = it->second;
    if (!layers.empty()) {
        if (layers.find_first_not_of("0123456789") != layers.npos)
            throw std::runtime_error("'" + layers + "' in " + model + " is no number of layers");
        j["num_hidden_layers"] =
                strtoull(layers.c_str(), nullptr, 10); // the largest number where it is larger
    }
    return parse_config(j, model);
}

std::unique_ptr<tensors_t> synthetic_tensors(const std::string &model) {
    return std::make_unique<synthetic_tensors_t>(model);
}

} // namespace llm
