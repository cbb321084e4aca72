// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/knobs.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bench {

using namespace mxdnn::impl;

std::vector<std::string> split(const std::string &s, char by) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t i = 0; i <= s.size(); i++)
        if (i == s.size() || s[i] == by) {
            parts.push_back(s.substr(begin, i - begin));
            begin = i + 1;
        }
    return parts;
}

bool option(const std::string &word, const char *name, std::string &value) {
    const std::string head = std::string("--") + name + "=";
    if (word.compare(0, head.size(), head) != 0) return false;
    value = word.substr(head.size());
    return true;
}

int64_t to_int(const std::string &s, const std::string &what, int64_t least, int64_t most) {
    char *end = nullptr;
    const long long v = std::strtoll(s.c_str(), &end, 10);
    if (s.empty() || *end || v < least || v > most)
        throw usage_error_t(what + " is '" + s + "'; it is a whole number from " + std::to_string(least)
                            + " to " + std::to_string(most));
    return v;
}

double to_number(const std::string &s, const char *what) {
    char *end = nullptr;
    const double v = std::strtod(s.c_str(), &end);
    if (s.empty() || *end) throw usage_error_t(std::string(what) + " is '" + s + "'; it is a number");
    return v;
}

std::string type_names() {
    std::string all;
    for (const auto &row : data_type_table_t<all_types>::rows) all += std::string(" ") + row.name;
    return all;
}

std::string format_names() {
    std::string all;
    for (const auto &f : named_formats) all += std::string(" ") + f.name;
    return all;
}

data_type_t to_data_type(const std::string &s) {
    const data_type_t dt = data_type_from_name(s.c_str());
    if (dt == mxdnn_data_type_undef)
        throw usage_error_t("type '" + s + "' is not known; there are the types" + type_names()
                            + " and the formats" + format_names());
    return dt;
}

std::vector<int64_t> to_dims(const std::string &s, const char *form) {
    std::vector<int64_t> dims;
    for (const std::string &d : split(s, 'x'))
        dims.push_back(to_int(d, "'" + s + "' is to be " + form + ", but a dimension"));
    if (dims.size() < 2 || dims.size() > size_t(max_ndims)) throw usage_error_t("'" + s + "' is not " + form);
    return dims;
}

std::pair<int64_t, int64_t> to_two_dims(const std::string &s, const char *form) {
    const std::vector<int64_t> dims = to_dims(s, form);
    if (dims.size() != 2) throw usage_error_t("'" + s + "' is not " + form);
    return {dims[0], dims[1]};
}

void check_rows(int64_t tokens, int64_t topk) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (tokens > most || topk > most || tokens * topk > most)
        throw usage_error_t(
                "there are too many rows for indices of s32, which count up to " + std::to_string(most));
}

tensor_type_t to_tensor_type(const std::string &s) {
    tensor_type_t t;
    if (const named_format_t *f = named_format(s.c_str())) {
        t.dt = f->elem;
        t.quant = f->quant;
        t.quantised = true;
        return t;
    }
    t.dt = to_data_type(s);
    return t;
}

words_t::words_t(const knob_t *knobs, size_t count) : knobs_(knobs) {
    for (size_t i = 0; i < count; i++) words_.emplace_back(knobs[i].usual);
}

size_t words_t::index(const char *name) const {
    for (size_t i = 0; i < words_.size(); i++)
        if (std::strcmp(knobs_[i].name, name) == 0) return i;
    throw std::logic_error(std::string("no knob is named ") + name);
}

std::string words_t::repro(const char *driver, const std::string &descriptor) const {
    std::string line = std::string("--") + driver;
    for (size_t i = 0; i < words_.size(); i++)
        if (knobs_[i].always || words_[i] != knobs_[i].usual)
            line += std::string(" --") + knobs_[i].name + "=" + words_[i];
    return line + " " + descriptor;
}

namespace {

// What may be given, for people.
std::string text_of_possible(const knob_t &k) {
    if (k.possible) return k.possible;
    return k.range.most ? "a number from " + std::to_string(k.range.least) + " on" : "";
}

} // namespace

std::string draw_word(draws_t &any, const knob_t &k) {
    if (any.one_in(2)) return k.usual;
    return k.possible ? any.of(split(k.possible, '|'))
                      : std::to_string(any.range(k.range.least, k.range.most));
}

std::string draw_any(draws_t &any, const knob_t &k, const words_t &, const std::string &) {
    return draw_word(any, k);
}

void knobs_t::reset() {
    lists_.clear();
    for (const std::string &word : usual().words_) lists_.push_back({word});
    set_.assign(count_, 0);
}

bool knobs_t::take(const std::string &word) {
    std::string v;
    for (size_t i = 0; i < count_; i++)
        if (option(word, knobs_[i].name, v)) {
            lists_[i] = split(v, ',');
            set_[i] = 1;
            return true;
        }
    if (word == "--help") {
        std::printf("knobs and what they are as usual; --reset sets all of them so:\n");
        for (size_t i = 0; i < count_; i++) {
            const std::string possible = text_of_possible(knobs_[i]);
            std::printf("  --%s=%s%s%s%s\n", knobs_[i].name, knobs_[i].usual, possible.empty() ? "" : " (",
                    possible.c_str(), possible.empty() ? "" : ")");
        }
        return true;
    }
    if (word != "--reset") return false;
    reset();
    return true;
}

std::vector<words_t> knobs_t::combinations() const {
    std::vector<words_t> all = {usual()};
    for (size_t i = 0; i < count_; i++) {
        std::vector<words_t> more;
        for (const words_t &words : all)
            for (const std::string &word : lists_[i]) {
                more.push_back(words);
                more.back().words_[i] = word;
            }
        all = std::move(more);
    }
    return all;
}

words_t knobs_t::draw(draws_t &any, const std::string &descriptor) const {
    words_t words = usual();
    for (size_t i = 0; i < count_; i++)
        words.words_[i] = set_[i] ? any.of(lists_[i]) : knobs_[i].draw(any, knobs_[i], words, descriptor);
    return words;
}

void refuse_word(const char *name, const std::string &word, const std::string &possible) {
    throw usage_error_t(std::string("--") + name + " is '" + word + "'; possible are" + possible);
}

const std::string &one_of(
        const std::string &word, const char *name, std::initializer_list<const char *> possible) {
    std::string all;
    for (const char *p : possible) {
        if (word == p) return word;
        all += std::string(" ") + p;
    }
    refuse_word(name, word, all);
}

size_t choice(const words_t &words, const char *name) {
    std::string all;
    const auto possible = split(words.knob(name).possible, '|');
    for (size_t i = 0; i < possible.size(); i++) {
        if (words[name] == possible[i]) return i;
        all += " " + (possible[i].empty() ? "''" : possible[i]);
    }
    refuse_word(name, words[name], all);
}

const std::string &one_of(const words_t &words, const char *name) {
    choice(words, name);
    return words[name];
}

bool flag(const words_t &words, const char *name) { return choice(words, name) == 1; }

int64_t number(const words_t &words, const char *name) {
    return to_int(words[name], std::string("--") + name, words.knob(name).range.least);
}

} // namespace bench
