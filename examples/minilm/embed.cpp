// SPDX-License-Identifier: Apache-2.0
// Embeddings as text, and their comparison with ones that were made elsewhere.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "encoder.hpp"
#include "linear_mxdnn.hpp"
#include "ops.hpp"
#include "tokenizer.hpp"

namespace minilm {

void print_embeddings(
        const options_t &options, const std::string &file, const std::vector<std::string> &texts) {
    const model_t model(options.model, file);
    const tokenizer_t tokenizer(options.model + "/vocab.txt");
    std::vector<tokens_t> sentences;
    for (const auto &t : texts) sentences.push_back(tokenizer.encode(t));
    std::unique_ptr<linears_t> linears;
    if (file.empty())
        linears = plain_linears(baseline_t::f32);
    else
        linears = std::make_unique<mxdnn_linears_t>(
                mxdnn::engine(mxdnn::engine::kind::cpu, 0), model.file, mxdnn_likes_bf16());
    encoder_t encoder(model, *linears);
    const std::vector<float> e = encoder.embed(sentences);
    const size_t h = e.size() / sentences.size();
    for (size_t i = 0; i < e.size(); i++) printf("%.7g%c", double(e[i]), (i + 1) % h ? ' ' : '\n');
}

bool check_golden(const options_t &options, const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path);
    const auto golden = nlohmann::json::parse(file, nullptr, false);
    if (!golden.is_object() || !golden.contains("cases")) throw std::runtime_error(path + " holds no cases");
    const model_t model(options.model);
    const tokenizer_t tokenizer(options.model + "/vocab.txt");
    struct named_t {
        const char *name;
        std::unique_ptr<linears_t> linears;
    };
    named_t all[] = {
            {"plain C++", plain_linears(baseline_t::f32)}, {"oneDNN", onednn_linears(baseline_t::f32)}};
    int wrong = 0;
    std::vector<tokens_t> sentences;
    std::vector<std::vector<float>> wanted;
    for (const auto &c : golden["cases"]) {
        const auto tokens = c.at("tokens").get<tokens_t>();
        if (tokenizer.encode(c.at("text").get<std::string>()) != tokens) {
            printf("other tokens for %s\n", c["text"].dump().c_str());
            wrong++;
        }
        if (!c.contains("embedding")) continue;
        sentences.push_back(tokens);
        wanted.push_back(c["embedding"].get<std::vector<float>>());
    }
    for (auto &n : all) {
        if (!n.linears) continue;
        encoder_t encoder(model, *n.linears);
        double lowest = 1;
        const std::vector<float> together = encoder.embed(sentences);
        for (size_t i = 0; i < sentences.size(); i++) {
            const size_t h = wanted[i].size();
            const std::vector<float> alone = encoder.embed({sentences[i]});
            if (alone.size() != h)
                throw std::runtime_error(path + " is of another model: embeddings differ in length");
            lowest = std::min({lowest, dot(int64_t(h), alone.data(), wanted[i].data()),
                    dot(int64_t(h), &together[i * h], wanted[i].data())});
        }
        const bool good = lowest > 0.99999 && lowest < 1.00001;
        printf("f32 by %s: lowest cosine %.8f over %zu sentences, alone and together: %s\n", n.name, lowest,
                sentences.size(), good ? "ok" : "WRONG");
        wrong += !good;
    }
    return wrong == 0;
}

} // namespace minilm
