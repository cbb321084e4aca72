// SPDX-License-Identifier: Apache-2.0
#include "routes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace llm {

namespace {

constexpr float small = -1e30f; // exp() of it is 0

struct close_t {
    void operator()(FILE *f) const { (void)fclose(f); }
};
using file_t = std::unique_ptr<FILE, close_t>;

} // namespace

routes_t::routes_t(const std::string &path, const config_t &config, const std::vector<size_t> &lengths)
    : path_(path), experts_(size_t(config.experts)), topk_(size_t(config.topk)) {
    if (!config.experts) throw std::runtime_error(path + ": the model has no experts to choose");
    for (const size_t n : lengths) {
        first_.push_back(tokens_);
        tokens_ += n;
    }
    ids_.assign(config.layers.size() * tokens_ * topk_, -1);
    const file_t file(fopen(path.c_str(), "rb"));
    if (!file && errno == ENOENT) return;
    if (!file) throw std::runtime_error("cannot read " + path + ": " + strerror(errno));
    is_known_ = true;
    if (fread(ids_.data(), 4, ids_.size(), file.get()) != ids_.size() || fgetc(file.get()) != EOF)
        throw std::runtime_error(path + ": this model and these tokens have " + std::to_string(ids_.size())
                                 + " choices, and the file has another number");
    for (const int32_t id : ids_)
        if (id < 0 || size_t(id) >= experts_)
            throw std::runtime_error(
                    path + ": there is no expert " + std::to_string(id) + " of " + std::to_string(experts_));
}

void routes_t::apply(engine_t &engine, size_t layer, const batch_t &batch, float *logits) {
    std::vector<float> all(size_t(batch.rows) * experts_);
    engine.read(all.data(), logits, all.size() * 4);
    std::vector<int32_t> order(experts_);
    for (const batch_t::span_t &s : batch.spans)
        for (int64_t i = 0; i < s.rows; i++) {
            float *const row = all.data() + size_t(s.row + i) * experts_;
            const size_t token = first_[size_t(s.sequence)] + size_t(s.position + i);
            int32_t *const ids = ids_.data() + (layer * tokens_ + token) * topk_;
            if (!is_known_) {
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(
                        order.begin(), order.end(), [&](int32_t a, int32_t b) { return row[a] > row[b]; });
                std::copy_n(order.begin(), topk_, ids);
                continue;
            }
            for (size_t e = 0; e < experts_; e++)
                if (std::find(ids, ids + topk_, int32_t(e)) == ids + topk_) row[e] = small;
        }
    if (is_known_) engine.write(logits, all.data(), all.size() * 4);
}

void routes_t::save() const {
    if (is_known_) return;
    file_t file(fopen(path_.c_str(), "wb"));
    if (!file || fwrite(ids_.data(), 4, ids_.size(), file.get()) != ids_.size()
            || fclose(file.release()) != 0)
        throw std::runtime_error("cannot write " + path_ + ": " + strerror(errno));
}

} // namespace llm
