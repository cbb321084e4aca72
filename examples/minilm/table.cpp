// SPDX-License-Identifier: Apache-2.0
// The second process: maps the packed files, checks them, and prints the table and the ranking.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>

#include "commands.hpp"
#include "common/weight_formats.hpp"
#include "linear_mxdnn.hpp"
#include "measure.hpp"
#include "ops.hpp"
#include "sentences.hpp"
#include "tokenizer.hpp"

namespace minilm {

using namespace weight_formats;

namespace {

const char *const rounded_title = "bf16 as f32";

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
    return "unknown CPU";
}

std::string grouped(int64_t n) { // 42467328 as 42,467,328
    std::string s = std::to_string(n);
    for (int i = int(s.size()) - 3; i > 0; i -= 3) s.insert(size_t(i), ",");
    return s;
}

// The two baselines; `peer` becomes the title of the one that the others' speed is compared with.
std::vector<row_t> baselines(const model_t &model, size_t &peer) {
    const auto row = [&](const std::string &title, const std::string &by,
                             std::unique_ptr<linears_t> linears) {
        row_t r;
        r.title = title;
        r.implementation = by;
        r.linears = std::move(linears);
        r.encoder = std::make_unique<encoder_t>(model, *r.linears);
        return r;
    };
    std::vector<row_t> rows;
    auto f32 = onednn_linears(baseline_t::f32), bf16 = onednn_linears(baseline_t::bf16);
    const std::string by = f32 ? onednn_version() : "plain C++";
    const bool real_bf16 = bool(bf16);
    if (!bf16) bf16 = onednn_linears(baseline_t::bf16_rounded);
    rows.push_back(row("f32", by, f32 ? std::move(f32) : plain_linears(baseline_t::f32)));
    rows.push_back(row(real_bf16 ? "bf16" : rounded_title, by,
            bf16 ? std::move(bf16) : plain_linears(baseline_t::bf16_rounded)));
    describe_baseline(rows[0], model, false);
    describe_baseline(rows[1], model, true);
    peer = real_bf16 ? 1 : 0;
    return rows;
}

row_t packed_row(const options_t &options, const format_t &format, const model_t &original,
        const mxdnn::engine &engine) {
    row_t r;
    r.title = format.name;
    r.model = std::make_unique<model_t>(options.model, packed_path(options, format.name));
    auto linears = std::make_unique<mxdnn_linears_t>(engine, r.model->file, mxdnn_likes_bf16());
    r.encoder = std::make_unique<encoder_t>(*r.model, *linears);
    r.implementation = linears->implementation();
    r.sqnr = std::numeric_limits<double>::infinity();
    const auto specs = original.linears();
    for (size_t i = 0; i < specs.size(); i++) {
        const auto &p = linears->packed()[i];
        r.bytes += int64_t(p.desc.get_size());
        const double db = sqnr_db(
                specs[i]->in * specs[i]->out, specs[i]->weight, unpack(p.desc, engine, p.bytes).data());
        r.sqnr = std::min(r.sqnr, db);
    }
    r.linears = std::move(linears);
    return r;
}

void print_rows(const std::vector<row_t> &rows, size_t peer, size_t batch, const timing_t &timing) {
    const auto with = [](const char *text, int64_t n) { return text + std::to_string(n); };
    printf("| %-13s | %10s | %7s | %8s | %8s | %10s | %11s | %7s | %8s | %10s |\n", "weights", "bytes",
            "SQNR dB", "cosine", "lowest", "tokens/s 1", with("tokens/s ", int64_t(batch)).c_str(),
            with("x M=", timing.rows[0]).c_str(), with("x M=", timing.rows[1]).c_str(),
            with("x M=", timing.rows[2]).c_str());
    printf("|---------------|-----------:|--------:|---------:|---------:|-----------:|------------:|"
           "--------:|---------:|-----------:|\n");
    for (const auto &r : rows) {
        char sqnr[16] = "exact";
        if (std::isfinite(r.sqnr)) snprintf(sqnr, sizeof(sqnr), "%.2f", r.sqnr);
        double speed[3];
        for (int m = 0; m < 3; m++) speed[m] = rows[peer].linears_seconds[m] / r.linears_seconds[m];
        printf("| %-13s | %10s | %7s | %8.6f | %8.6f | %10s | %11s | %7.2f | %8.2f | %10.2f |\n",
                r.title.c_str(), grouped(r.bytes).c_str(), sqnr, r.cosine_mean, r.cosine_lowest,
                grouped(std::llround(r.tokens_per_second_one)).c_str(),
                grouped(std::llround(r.tokens_per_second_batch)).c_str(), speed[0], speed[1], speed[2]);
    }
    printf("\nbytes: all linear weights with their scales. SQNR: of the weights of the worst layer. cosine: with the "
           "f32 embeddings\nof the %zu sentences, mean and lowest. tokens/s: the whole encoder, one sentence at a "
           "time and all %zu at once.\nx M=...: speed of all linear layers for that many rows, against %s (row \"%s\") "
           "on the same layers in the\nsame run; a sentence has about %lld rows.\n",
            batch, batch, rows[peer].implementation.c_str(), rows[peer].title.c_str(),
            (long long)timing.rows[1]);
    if (rows[1].title == rounded_title)
        printf("bf16 as f32: weights rounded to bf16, computed in f32, for want of bf16 in %s on this machine.\n",
                rows[1].implementation.c_str());
    std::string by;
    for (size_t i = 2; i < rows.size(); i++)
        if (by.find(rows[i].implementation) == std::string::npos)
            by += (by.empty() ? "" : ", ") + rows[i].implementation;
    printf("f32 and bf16 were computed by %s, the other rows by mxdnn's %s from mapped files.\n",
            rows[0].implementation.c_str(), by.c_str());
}

void print_ranking(row_t &exact, row_t &packed, const tokenizer_t &tokenizer) {
    std::vector<tokens_t> texts;
    for (const auto *list : {&questions(), &answers()})
        for (const auto &t : *list) texts.push_back(tokenizer.encode(t));
    const std::vector<float> a = exact.encoder->embed(texts), b = packed.encoder->embed(texts);
    const size_t n = answers().size(), h = a.size() / texts.size();
    printf("\nWhich of %zu texts answers the question? Similarity by %s, and by %s with its own order in brackets.\n",
            n, exact.title.c_str(), packed.title.c_str());
    for (size_t q = 0; q < questions().size(); q++) {
        const auto scores = [&](const std::vector<float> &e) {
            std::vector<double> s(n);
            for (size_t i = 0; i < n; i++)
                s[i] = dot(int64_t(h), &e[q * h], &e[(questions().size() + i) * h]);
            return s;
        };
        const auto sa = scores(a), sb = scores(b);
        std::vector<size_t> order(n);
        std::iota(order.begin(), order.end(), size_t(0));
        std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return sa[i] > sa[j]; });
        printf("\n  %s\n", questions()[q].c_str());
        for (size_t i = 0; i < 3; i++) {
            const double own = sb[order[i]];
            const auto place = 1 + std::count_if(sb.begin(), sb.end(), [&](double s) { return s > own; });
            printf("    %zu. %6.3f  %6.3f [%ld]  %s\n", i + 1, sa[order[i]], own, long(place),
                    answers()[order[i]].c_str());
        }
    }
}

} // namespace

void print_table(const options_t &options) {
    const model_t model(options.model);
    const tokenizer_t tokenizer(options.model + "/vocab.txt");
    const mxdnn::engine engine(mxdnn::engine::kind::cpu, 0);
    std::vector<tokens_t> batch;
    size_t tokens = 0;
    for (const auto &s : batch_sentences()) {
        batch.push_back(tokenizer.encode(s));
        tokens += batch.back().size();
    }
    size_t peer = 0;
    std::vector<row_t> rows = baselines(model, peer);
    for (const auto &f : formats()) {
        progress(std::string("checking ") + packed_path(options, f.name));
        rows.push_back(packed_row(options, f, model, engine));
    }
    compare_answers(rows, batch);
    const timing_t timing = time_rows(rows, batch, options.seconds);

    printf("all-MiniLM-L6-v2, %zu linear layers of %s weights; %s, threads: %d, mxdnn for %s; %zu sentences, "
           "%zu tokens; best of %d rounds\n\n",
            model.linears().size(), grouped(model.linear_weights()).c_str(), cpu_name().c_str(),
            mxdnn::get_max_concurrency(), engine.get_target().c_str(), batch.size(), tokens, timing.rounds);
    print_rows(rows, peer, batch.size(), timing);
    const auto mxfp4 =
            std::find_if(rows.begin(), rows.end(), [](const row_t &r) { return r.title == "mxfp4"; });
    print_ranking(rows[0], *mxfp4, tokenizer);
}

} // namespace minilm
