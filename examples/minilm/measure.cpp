// SPDX-License-Identifier: Apache-2.0
// Measures every row under the same conditions: in turns, so that a slow moment of the machine meets them
// all.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "commands.hpp"
#include "ops.hpp"

namespace minilm {

namespace {

using steady_t = std::chrono::steady_clock;

double since(steady_t::time_point start) {
    return std::chrono::duration<double>(steady_t::now() - start).count();
}

int64_t count_tokens(const std::vector<tokens_t> &sentences) {
    int64_t n = 0;
    for (const auto &s : sentences) n += int64_t(s.size());
    return n;
}

} // namespace

double sqnr_db(int64_t n, const float *exact, const float *approximation) {
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = double(exact[i]) - approximation[i];
        signal += double(exact[i]) * exact[i];
        noise += d * d;
    }
    return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

void describe_baseline(row_t &row, const model_t &model, bool rounded) {
    row.bytes = model.linear_weights() * (rounded ? 2 : 4);
    row.sqnr = std::numeric_limits<double>::infinity();
    for (const auto *l : model.linears()) {
        std::vector<float> w(l->weight, l->weight + l->in * l->out);
        if (rounded)
            for (float &v : w) v = from_bf16(to_bf16(v));
        row.sqnr = std::min(row.sqnr, sqnr_db(l->in * l->out, l->weight, w.data()));
    }
}

void compare_answers(std::vector<row_t> &rows, const std::vector<tokens_t> &batch) {
    for (auto &r : rows) {
        progress("embedding with " + r.title);
        r.embeddings = r.encoder->embed(batch);
        const int64_t h = int64_t(r.embeddings.size() / batch.size());
        r.cosine_lowest = 1;
        for (size_t s = 0; s < batch.size(); s++) {
            const double c = dot(h, &rows[0].embeddings[s * size_t(h)], &r.embeddings[s * size_t(h)]);
            r.cosine_mean += c / double(batch.size());
            r.cosine_lowest = std::min(r.cosine_lowest, c);
        }
    }
}

timing_t time_rows(std::vector<row_t> &rows, const std::vector<tokens_t> &batch, double seconds) {
    // Some sentences one by one; all of them in every round would leave no time for the rest.
    const std::vector<tokens_t> singles(
            batch.begin(), batch.begin() + std::ptrdiff_t(std::min<size_t>(8, batch.size())));
    const int64_t single_tokens = count_tokens(singles), batch_tokens = count_tokens(batch);
    timing_t timing = {0, {1, single_tokens / int64_t(singles.size()), batch_tokens}};
    static constexpr int repetitions[3] = {20, 5, 1};
    struct best_t { // seconds
        double one = HUGE_VAL, batch = HUGE_VAL, linears[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    };
    std::vector<best_t> best(rows.size());
    const auto start = steady_t::now();
    for (int &round = timing.rounds; round <= 3 || since(start) < seconds; round++)
        for (size_t i = 0; i < rows.size(); i++) {
            progress("measuring, round " + std::to_string(round + 1) + ": " + rows[i].title);
            // Worker threads of the row before may still be spinning; they give up within milliseconds.
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            encoder_t &e = *rows[i].encoder;
            const auto time = [&](double &to, int times, const auto &body) {
                for (int r = 0; r < times; r++) {
                    const auto begin = steady_t::now();
                    body();
                    if (round > 0)
                        to = std::min(to, since(begin)); // the first round also makes what is made once
                }
            };
            time(best[i].one, 1, [&] {
                for (const auto &s : singles) e.embed({s});
            });
            time(best[i].batch, 1, [&] { e.embed(batch); });
            for (int m = 0; m < 3; m++)
                time(best[i].linears[m], repetitions[m], [&] { e.run_linears(timing.rows[m]); });
        }
    timing.rounds--;
    for (size_t i = 0; i < rows.size(); i++) {
        rows[i].tokens_per_second_one = double(single_tokens) / best[i].one;
        rows[i].tokens_per_second_batch = double(batch_tokens) / best[i].batch;
        std::copy(best[i].linears, best[i].linears + 3, rows[i].linears_seconds);
    }
    return timing;
}

} // namespace minilm
