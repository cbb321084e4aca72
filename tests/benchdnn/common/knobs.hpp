// SPDX-License-Identifier: Apache-2.0
// Command-line words, and the knobs of a driver that they set. Every mistake is a usage_error_t with a
// sentence.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "benchdnn/common/draws.hpp"
#include "common/formats/quantize_block.hpp"
#include "common/memory_desc.hpp"

namespace bench {

struct usage_error_t : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::vector<std::string> split(const std::string &s, char by);
// "--name=value": true and the value when the word is that option.
bool option(const std::string &word, const char *name, std::string &value);
int64_t to_int(const std::string &s, const std::string &what, int64_t least = 0,
        int64_t most = mxdnn::impl::max_dim);
double to_number(const std::string &s, const char *what);
std::string type_names();   // " f32 bf16 ..."
std::string format_names(); // " mxfp8 ..."
mxdnn::impl::data_type_t to_data_type(const std::string &s);
// "16x2880", two dims or more; `form` says what they are: "ROWSxCOLUMNS".
std::vector<int64_t> to_dims(const std::string &s, const char *form);
// The same of two dims.
std::pair<int64_t, int64_t> to_two_dims(const std::string &s, const char *form);
// Rows of groups that are chosen one by one: as many as their indices count, {tokens, topk} multiplied.
void check_rows(int64_t tokens, int64_t topk = 1);

// A type of a tensor: plain, or quantised by one of the named formats.
struct tensor_type_t {
    mxdnn::impl::data_type_t dt = mxdnn_f32;
    bool quantised = false;
    mxdnn::impl::quant_t quant;
    // Its order in memory, if it is plain.
    bool swizzled = false; // scales in the 128x4 order
    bool dense = false;    // codes of 6 bits, four in three bytes
    // For a destination: parameters that the caller gives instead of reading them there.
    bool given = false; // scales, zero points and a global scale
    bool given_global = false;
};
tensor_type_t to_tensor_type(const std::string &s); // "bf16", "mxfp4"

// ---- knobs ----

class words_t;
struct knob_t;

// A word for the knob of a random problem. The words of the knobs before it and the descriptor are known.
using draw_t = std::string (*)(
        draws_t &any, const knob_t &knob, const words_t &words, const std::string &descriptor);
// The usual word, or any word or number of the knob.
std::string draw_word(draws_t &any, const knob_t &knob);
std::string draw_any(draws_t &any, const knob_t &knob, const words_t &, const std::string &);

struct range_t {
    int64_t least, most; // nothing is less; random problems have no more
};

struct knob_t {
    const char *name, *usual;
    const char *possible = nullptr; // all words, with | between them; null: numbers, or words of another kind
    range_t range = {0, 0};
    draw_t draw = draw_any;
    bool always = false; // repro lines name it even when it is as usual

    constexpr knob_t(const char *n, const char *u, const char *words, draw_t d = draw_any, bool a = false)
        : name(n), usual(u), possible(words), draw(d), always(a) {}
    constexpr knob_t(const char *n, const char *u, range_t r, draw_t d = draw_any, bool a = false)
        : name(n), usual(u), range(r), draw(d), always(a) {}
    constexpr knob_t(const char *n, const char *u, draw_t d, bool a = false)
        : name(n), usual(u), draw(d), always(a) {}
};

// A word for each knob of a driver: what one problem is made of.
class words_t {
public:
    // As usual.
    words_t(const knob_t *knobs, size_t count);
    std::string &operator[](const char *name) { return words_[index(name)]; }
    const std::string &operator[](const char *name) const { return words_[index(name)]; }
    // The words of a command line that makes this problem again.
    std::string repro(const char *driver, const std::string &descriptor) const;

    const knob_t &knob(const char *name) const { return knobs_[index(name)]; }

private:
    friend class knobs_t;
    size_t index(const char *name) const;
    const knob_t *knobs_;
    std::vector<std::string> words_;
};

// A list of words for each knob of a driver: a problem runs with every combination.
class knobs_t {
public:
    template <size_t count>
    explicit knobs_t(const knob_t (&knobs)[count]) : knobs_(knobs), count_(count) {
        reset();
    }
    // True when the word was one of these options, --reset, or --help, which prints them.
    bool take(const std::string &word);
    words_t usual() const { return words_t(knobs_, count_); }
    // The knobs of the list's end change fastest.
    std::vector<words_t> combinations() const;
    // Of a random problem. Knobs that have been set have one of the words that they were set to.
    words_t draw(draws_t &any, const std::string &descriptor) const;

private:
    void reset();
    const knob_t *knobs_;
    size_t count_;
    std::vector<std::vector<std::string>> lists_;
    std::vector<char> set_;
};

// What an option's word stands for.
[[noreturn]] void refuse_word(const char *name, const std::string &word, const std::string &possible);
const std::string &one_of(
        const std::string &word, const char *name, std::initializer_list<const char *> possible);

// The meaning of a knob's word, which must be a possible one: its position among them, the word itself, one
// of as many values, or whether it is the second of two.
size_t choice(const words_t &words, const char *name);
const std::string &one_of(const words_t &words, const char *name);
template <typename T>
T pick(const words_t &words, const char *name, std::initializer_list<T> values) {
    return values.begin()[choice(words, name)];
}
bool flag(const words_t &words, const char *name);
int64_t number(const words_t &words, const char *name);

} // namespace bench
