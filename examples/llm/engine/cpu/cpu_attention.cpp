// SPDX-License-Identifier: Apache-2.0
#include "cpu_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "loops.hpp"
#include "model/rope.hpp"
#include "parallel.hpp"

namespace llm {

namespace {

constexpr int64_t keys_at_once = 8 * panel; // scores of a query that are in the cache together
constexpr int64_t queries_at_once = 48;
constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

void store(float *to, float v) { *to = v; }
void store(uint16_t *to, float v) { *to = bf16_of(v); }
void multiply(int64_t rows, int64_t depth, const float *x, int64_t x_stride, const float *w, int64_t w_stride,
        float *y, int64_t y_stride, bool adds) {
    loops().multiply_f32(rows, depth, x, x_stride, w, w_stride, y, y_stride, adds);
}
void multiply(int64_t rows, int64_t depth, const float *x, int64_t x_stride, const uint16_t *w,
        int64_t w_stride, float *y, int64_t y_stride, bool adds) {
    loops().multiply_bf16(rows, depth, x, x_stride, w, w_stride, y, y_stride, adds);
}

// T: of keys and values.
template <typename T>
class cpu_attention_t : public attention_t {
public:
    cpu_attention_t(const engine_t &engine, const config_t &config, int64_t sequences, int64_t context,
            int64_t max_rows)
        : config_(config), is_bf16_(engine.activation() == data_type_t::bf16),
          group_(config.heads / config.kv_heads), width_(round_up(config.head_size, panel)),
          scale_(1.f / std::sqrt(float(config.head_size))) {
        const std::vector<float> f = frequencies(config.rope, config.head_size);
        for (int64_t p = 0; p < context; p++)
            for (const float frequency : f) {
                const double angle = double(float(p) * frequency);
                turns_.push_back(float(std::cos(angle) * config.rope.attention_factor));
                turns_.push_back(float(std::sin(angle) * config.rope.attention_factor));
            }
        for (const config_t::layer_t &l : config.layers) {
            const int64_t seen = l.window ? std::min(context, l.window - 1 + max_rows) : context;
            layers_.push_back({round_up(seen, panel), l.window, {}, {}});
            const size_t rows = size_t(sequences * config.kv_heads * layers_.back().capacity);
            layers_.back().keys.resize(rows * size_t(config.head_size));
            layers_.back().values.resize(rows * size_t(width_));
        }
    }

    size_t bytes() const override {
        size_t n = 0;
        for (const layer_t &l : layers_) n += (l.keys.size() + l.values.size()) * sizeof(T);
        return n;
    }

    size_t bytes_for_row(int64_t length) const override {
        int64_t positions = 0;
        for (const layer_t &l : layers_) positions += l.window ? std::min(length, l.window) : length;
        return size_t(positions * config_.kv_heads * (config_.head_size + width_)) * sizeof(T);
    }

    void run(size_t layer, const batch_t &batch, float *qkv, const float *sinks, void *y) override {
        layer_t &l = layers_[layer];
        for (const batch_t::span_t &s : batch.spans)
            parallel(s.rows, 16, [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; r++)
                    rotate_and_store(l, s.sequence, s.position + r, qkv + (s.row + r) * config_.qkv());
            });
        attend(l, batch, qkv, sinks, y);
    }

private:
    struct layer_t {
        int64_t capacity, window; // positions that are kept; a multiple of 16
        std::vector<T> keys, values;
    };
    // Some rows of a sequence and one key-value head, over some of the keys.
    struct task_t {
        int64_t sequence, head;
        int64_t row, rows, position;    // of the batch
        int64_t first_key, end_key;     // positions
        int64_t split, splits, partial; // where its result is, if there are several
    };

    const config_t config_;
    const bool is_bf16_;
    const int64_t group_, width_;
    const float scale_;
    std::vector<float> turns_; // [position][pair][cos, sin]
    std::vector<layer_t> layers_;
    std::vector<task_t> tasks_;
    std::vector<float> partials_;

    T *keys(layer_t &l, int64_t sequence, int64_t head) const {
        return l.keys.data() + (sequence * config_.kv_heads + head) * l.capacity * config_.head_size;
    }
    T *values(layer_t &l, int64_t sequence, int64_t head) const {
        return l.values.data() + (sequence * config_.kv_heads + head) * l.capacity * width_;
    }

    void rotate(int64_t position, float *x) const {
        const int64_t half = config_.head_size / 2, step = config_.rope.is_interleaved ? 2 : 1,
                      other = config_.rope.is_interleaved ? 1 : half;
        const float *turn = turns_.data() + position * config_.head_size;
        for (int64_t i = 0; i < half; i++) {
            const float a = x[i * step], b = x[i * step + other], c = turn[2 * i], s = turn[2 * i + 1];
            x[i * step] = a * c - b * s;
            x[i * step + other] = b * c + a * s;
        }
    }

    void rotate_and_store(layer_t &l, int64_t sequence, int64_t position, float *row) const {
        const int64_t n = config_.head_size, slot = position % l.capacity;
        for (int64_t h = 0; h < config_.heads; h++) {
            float *q = row + h * n;
            rotate(position, q);
            loops().scale(n, scale_, q);
        }
        float *k = row + config_.heads * n;
        const float *v = k + config_.kv_heads * n;
        for (int64_t h = 0; h < config_.kv_heads; h++, k += n, v += n) {
            rotate(position, k);
            T *to = keys(l, sequence, h) + slot / panel * panel * n + slot % panel;
            for (int64_t i = 0; i < n; i++) store(to + i * panel, k[i]);
            T *value = values(l, sequence, h) + slot * width_;
            for (int64_t i = 0; i < n; i++) store(value + i, v[i]);
        }
    }

    // First position that a row sees.
    static int64_t first_seen(const layer_t &l, int64_t position) {
        return l.window ? std::max<int64_t>(0, position - l.window + 1) : 0;
    }

    void make_tasks(const layer_t &l, const batch_t &batch) {
        const int64_t rows_at_once = std::max<int64_t>(1, queries_at_once / group_);
        int64_t count = 0;
        for (const batch_t::span_t &s : batch.spans)
            count += ceil_div(s.rows, rows_at_once) * config_.kv_heads;
        // Few tasks are cut along the keys, so that all threads have something to do.
        const int64_t wanted = ceil_div(4 * mxdnn::get_max_concurrency(), count);
        tasks_.clear();
        int64_t partials = 0;
        for (const batch_t::span_t &s : batch.spans)
            for (int64_t r = 0; r < s.rows; r += rows_at_once) {
                const int64_t rows = std::min(rows_at_once, s.rows - r), position = s.position + r;
                const int64_t first = first_seen(l, position) / panel * panel, end = position + rows;
                const int64_t splits = std::clamp<int64_t>((end - first) / (2 * keys_at_once), 1, wanted);
                const int64_t step = round_up(ceil_div(end - first, splits), panel);
                for (int64_t h = 0; h < config_.kv_heads; h++)
                    for (int64_t i = 0; i < splits; i++)
                        tasks_.push_back({s.sequence, h, s.row + r, rows, position, first + i * step,
                                std::min(end, first + (i + 1) * step), i, splits, partials++});
            }
    }

    void attend(layer_t &l, const batch_t &batch, const float *qkv, const float *sinks, void *y) {
        make_tasks(l, batch);
        const int64_t most = std::max(queries_at_once, group_), size = most * (width_ + 2);
        partials_.resize(tasks_.size() * size_t(size));
        parallel(int64_t(tasks_.size()), 1, [&](int64_t begin, int64_t end) {
            std::vector<float> room(size_t(most * (config_.head_size + keys_at_once)));
            for (int64_t i = begin; i < end; i++) {
                const task_t &t = tasks_[size_t(i)];
                sum(l, t, qkv, room.data(), partials_.data() + t.partial * size);
            }
        });
        parallel(int64_t(tasks_.size()), 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                const task_t &t = tasks_[size_t(i)];
                if (t.split == 0) finish(t, partials_.data() + t.partial * size, size, sinks, y);
            }
        });
    }

    // Of each query the largest score, the sum of exponentials and the weighted sum of values: rows of
    // [2 + width].
    void sum(layer_t &l, const task_t &t, const float *qkv, float *room, float *result) const {
        const int64_t n = config_.head_size, queries = t.rows * group_, stride = width_ + 2;
        float *q = room, *scores = room + queries * n;
        for (int64_t r = 0; r < t.rows; r++)
            std::copy_n(
                    qkv + (t.row + r) * config_.qkv() + t.head * group_ * n, group_ * n, q + r * group_ * n);
        for (int64_t i = 0; i < queries; i++) {
            std::fill_n(result + i * stride, stride, 0.f);
            result[i * stride] = minus_infinity;
        }
        for (int64_t key = t.first_key; key < t.end_key;) {
            const int64_t slot = key % l.capacity;
            const int64_t count =
                    std::min({keys_at_once, round_up(t.end_key - key, panel), l.capacity - slot});
            const T *k = keys(l, t.sequence, t.head) + slot * n,
                    *v = values(l, t.sequence, t.head) + slot * width_;
            for (int64_t j = 0; j < count; j += panel)
                multiply(queries, n, q, n, k + j * n, panel, scores + j, keys_at_once, false);
            for (int64_t i = 0; i < queries; i++)
                add_exponentials(l, t.position + i / group_, key, count, scores + i * keys_at_once,
                        result + i * stride);
            for (int64_t c = 0; c < width_; c += panel)
                multiply(queries, count, scores, keys_at_once, v + c, width_, result + 2 + c, stride, true);
            key += count;
        }
    }

    // Scores of keys become their exponentials, 0 where the query does not see them.
    void add_exponentials(const layer_t &l, int64_t position, int64_t key, int64_t count, float *scores,
            float *result) const {
        const int64_t begin = std::clamp<int64_t>(first_seen(l, position) - key, 0, count),
                      end = std::clamp<int64_t>(position + 1 - key, begin, count);
        std::fill(scores, scores + begin, minus_infinity);
        std::fill(scores + end, scores + count, minus_infinity);
        const float top = std::max(result[0], begin < end ? loops().largest(count, scores) : minus_infinity);
        if (begin == end || top == minus_infinity) {
            std::fill_n(scores, count, 0.f);
            return;
        }
        const float factor = std::exp(result[0] - top);
        const float sum = loops().exp_below(count, scores, top);
        std::fill(scores, scores + begin, 0.f);
        std::fill(scores + end, scores + count, 0.f);
        if (factor != 1.f) loops().scale(width_ + 1, factor, result + 1);
        result[0] = top;
        result[1] += sum;
    }

    // Adds up the results of all splits and divides by the sum.
    void finish(const task_t &t, float *results, int64_t size, const float *sinks, void *y) const {
        const int64_t n = config_.head_size, stride = width_ + 2;
        for (int64_t i = 0; i < t.rows * group_; i++) {
            float *all = results + i * stride;
            const int64_t head = t.head * group_ + i % group_;
            float top = sinks ? sinks[head] : minus_infinity;
            for (int64_t s = 0; s < t.splits; s++) top = std::max(top, all[s * size]);
            float sum = sinks ? std::exp(sinks[head] - top) : 0;
            for (int64_t s = 0; s < t.splits; s++) {
                float *one = all + s * size;
                const float factor = std::exp(one[0] - top);
                sum += one[1] * factor;
                if (s == 0)
                    loops().scale(n, factor, all + 2);
                else
                    for (int64_t c = 0; c < n; c++) all[2 + c] += one[2 + c] * factor;
            }
            loops().scale(n, 1.f / sum, all + 2);
            const int64_t at = (t.row + i / group_) * config_.heads * n + head * n;
            if (is_bf16_)
                loops().to_bf16(n, all + 2, static_cast<uint16_t *>(y) + at);
            else
                std::copy_n(all + 2, n, static_cast<float *>(y) + at);
        }
    }
};

} // namespace

std::unique_ptr<attention_t> cpu_attention(const engine_t &engine, const config_t &config, int64_t sequences,
        int64_t context, int64_t max_rows) {
    if (engine.precision() == precision_t::f32)
        return std::make_unique<cpu_attention_t<float>>(engine, config, sequences, context, max_rows);
    return std::make_unique<cpu_attention_t<uint16_t>>(engine, config, sequences, context, max_rows);
}

} // namespace llm
