// SPDX-License-Identifier: Apache-2.0
// Compares with tokens and embeddings that were made without this code.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "encoder.hpp"
#include "formats.hpp"
#include "linear_mxdnn.hpp"
#include "ops.hpp"
#include "tokenizer.hpp"

namespace minilm {

namespace {

struct golden_t {
    std::vector<tokens_t> sentences;
    std::vector<std::vector<float>> embeddings;
};

// Whether the embeddings of `linears` have at least this cosine with the golden ones, computed alone and in a
// batch.
bool good(const std::string &title, const model_t &model, linears_t &linears, const golden_t &golden,
        double least) {
    encoder_t encoder(model, linears);
    double lowest = 1, highest = 0;
    const std::vector<float> together = encoder.embed(golden.sentences);
    for (size_t i = 0; i < golden.sentences.size(); i++) {
        const auto &wanted = golden.embeddings[i];
        const size_t h = wanted.size();
        const std::vector<float> alone = encoder.embed({golden.sentences[i]});
        if (alone.size() != h)
            throw std::runtime_error("the golden embeddings are of another model: their length differs");
        for (const float *e : {alone.data(), &together[i * h]}) {
            const double cosine = dot(int64_t(h), e, wanted.data());
            lowest = std::min(lowest, cosine);
            highest = std::max(highest, cosine);
        }
    }
    const bool ok = lowest >= least && highest < 1.00001; // false for NaN too
    printf("%-14s lowest cosine %.8f, at least %.5f wanted: %s\n", title.c_str(), lowest, least,
            ok ? "ok" : "WRONG");
    return ok;
}

} // namespace

bool check_golden(const options_t &options, const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (!json.is_object() || !json.contains("cases")) throw std::runtime_error(path + " holds no cases");
    const tokenizer_t tokenizer(options.model + "/vocab.txt");
    bool ok = true;
    golden_t golden;
    for (const auto &c : json["cases"]) {
        const auto tokens = c.at("tokens").get<tokens_t>();
        if (tokenizer.encode(c.at("text").get<std::string>()) != tokens) {
            printf("other tokens than the golden ones for %s\n", c["text"].dump().c_str());
            ok = false;
        }
        if (!c.contains("embedding")) continue;
        golden.sentences.push_back(tokens);
        golden.embeddings.push_back(c["embedding"].get<std::vector<float>>());
    }

    const model_t model(options.model);
    ok &= good("plain f32", model, *plain_linears(baseline_t::f32), golden, 0.99999);
    if (const auto linears = onednn_linears(baseline_t::f32))
        ok &= good("oneDNN f32", model, *linears, golden, 0.99999);

    // What weights of so few bits leave of the answers; a wrong scale or a swapped column leaves far less.
    const std::pair<const char *, double> formats[] = {{"mxfp8", 0.995}, {"mxfp8_e5m2", 0.985},
            {"mxfp6", 0.994}, {"mxfp6_e3m2", 0.985}, {"mxfp4", 0.9}, {"nvfp4", 0.93}, {"mxint8", 0.999},
            {"int4", 0.94}};
    pack_formats(options, format_names());
    for (const auto &f : formats) {
        const model_t packed(options.model, packed_path(options, f.first));
        mxdnn_linears_t linears(mxdnn::engine(mxdnn::engine::kind::cpu, 0), packed.file, mxdnn_likes_bf16());
        ok &= good(f.first, packed, linears, golden, f.second);
    }
    return ok;
}

} // namespace minilm
