// SPDX-License-Identifier: Apache-2.0
// Compares with tokens and embeddings that were made without this code.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "common/weight_formats.hpp"
#include "encoder.hpp"
#include "linear_mxdnn.hpp"
#include "ops.hpp"
#include "tokenizer.hpp"

namespace minilm {

using namespace weight_formats;

namespace {

// The packed weights, unpacked to f32 and multiplied in plain C++: what mx_matmul must come to.
class unpacked_linears_t : public linears_t {
public:
    unpacked_linears_t(const mxdnn::engine &engine, const mxdnn::container &file)
        : engine_(engine), file_(file), plain_(plain_linears(baseline_t::f32)) {}
    std::unique_ptr<linear_t> make(const linear_spec_t &spec) override {
        const auto p = find_packed(file_, spec.name, engine_);
        weights_.push_back(unpack(p.desc, engine_, p.bytes));
        linear_spec_t unpacked = spec;
        unpacked.weight = weights_.back().data();
        return plain_->make(unpacked);
    }

private:
    mxdnn::engine engine_;
    mxdnn::container file_;
    std::unique_ptr<linears_t> plain_;
    std::vector<std::vector<float>> weights_;
};

using embeddings_t = std::vector<std::vector<float>>;

// Every sentence alone, then all as one batch.
embeddings_t embed_both_ways(
        const model_t &model, linears_t &linears, const std::vector<tokens_t> &sentences) {
    encoder_t encoder(model, linears);
    embeddings_t all;
    for (const auto &s : sentences) all.push_back(encoder.embed({s}));
    const std::vector<float> batch = encoder.embed(sentences);
    const auto h = std::ptrdiff_t(batch.size() / sentences.size());
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(sentences.size()); i++)
        all.emplace_back(batch.begin() + i * h, batch.begin() + (i + 1) * h);
    return all;
}

bool good(const std::string &title, const embeddings_t &found, const embeddings_t &wanted, double least) {
    double lowest = 1, highest = 0;
    for (size_t i = 0; i < found.size(); i++) {
        const auto &w = wanted[i % wanted.size()];
        if (w.size() != found[i].size())
            throw std::runtime_error("the golden embeddings are of another model: they have "
                                     + std::to_string(w.size()) + " numbers, not "
                                     + std::to_string(found[i].size()));
        const double cosine = dot(int64_t(w.size()), found[i].data(), w.data());
        lowest = std::min(lowest, cosine);
        highest = std::max(highest, cosine);
    }
    const bool ok = lowest >= least && highest < 1.00001; // false for NaN too
    printf("%-28s lowest cosine %.8f, at least %.5f wanted: %s\n", title.c_str(), lowest, least,
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
    std::vector<tokens_t> sentences;
    embeddings_t golden;
    for (const auto &c : json["cases"]) {
        const auto tokens = c.at("tokens").get<tokens_t>();
        if (tokenizer.encode(c.at("text").get<std::string>()) != tokens) {
            printf("other tokens than the golden ones for %s\n", c["text"].dump().c_str());
            ok = false;
        }
        if (!c.contains("embedding")) continue;
        sentences.push_back(tokens);
        golden.push_back(c["embedding"].get<std::vector<float>>());
    }

    const model_t model(options.model);
    ok &= good(
            "plain f32", embed_both_ways(model, *plain_linears(baseline_t::f32), sentences), golden, 0.99999);
    if (const auto linears = onednn_linears(baseline_t::f32))
        ok &= good("oneDNN f32", embed_both_ways(model, *linears, sentences), golden, 0.99999);

    // What so few bits leave of the answers, measured once with a margin; the exact check is the one after
    // it.
    const std::pair<const char *, double> formats[] = {{"mxfp8", 0.99}, {"mxfp8_e5m2", 0.95},
            {"mxfp6", 0.985}, {"mxfp6_e3m2", 0.95}, {"mxfp4", 0.85}, {"nvfp4", 0.87}, {"mxint8", 0.998},
            {"int4", 0.9}, {"int4_zp", 0.92}};
    const mxdnn::engine engine(mxdnn::engine::kind::cpu, 0);
    for (const auto &f : formats) {
        const std::string name = f.first;
        pack_formats(options, {name});
        const model_t packed(options.model, packed_path(options, name));
        unlink(packed_path(options, name).c_str()); // mapped, so it is still there for this process
        mxdnn_linears_t linears(engine, packed.file, mxdnn_likes_bf16());
        unpacked_linears_t unpacked(engine, packed.file);
        const embeddings_t found = embed_both_ways(packed, linears, sentences);
        ok &= good(name, found, golden, f.second);
        ok &= good(name + " against unpacked", found, embed_both_ways(packed, unpacked, sentences),
                linears.bf16_source() ? 0.9995 : 0.99999);
    }
    return ok;
}

} // namespace minilm
