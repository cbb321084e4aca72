// SPDX-License-Identifier: Apache-2.0
// A table of words in names. Where names do not tell, a tensor is left as it is: packing loses precision,
// leaving does not.
#include "weight_rule.hpp"

#include <algorithm>
#include <cctype>

namespace weight_rule {

namespace {

constexpr int64_t least_dim = 32; // a block of the MX formats

// The words of a name: of a.b.weight and a.b_weight `module` is b, `around` a.
struct words_t {
    std::string name, last, module, around;
};

enum class where_t {
    last,   // the last word
    module, // the module that has the weight
    near,   // that one, or the one around it
    whole   // the name
};
enum class how_t { is, begins, ends, has };

struct row_t {
    const char *what; // the tensor is
    where_t where;
    how_t how;
    std::vector<const char *> words;
};

constexpr const char *conv1d = "Conv1D, [in, out] in some models", *not_a_weight = "not named weight",
                     *small = "small";

const std::vector<row_t> &rows() {
    static const std::vector<row_t> all = {
            {"bias", where_t::last, how_t::ends, {"bias"}},
            {"embedding", where_t::near, how_t::has, {"embed"}},
            {"embedding", where_t::module, how_t::ends, {"_emb", "_embd", "_bias"}},
            {"embedding", where_t::module, how_t::is, {"emb", "wte", "wpe", "shared"}},
            {"router", where_t::near, how_t::is, {"router", "gate", "gating"}},
            {"router", where_t::module, how_t::is,
                    {"shared_expert_gate", "gate_inp", "ffn_gate_inp", "ffn_gate_inp_shexp"}},
            {"output head", where_t::module, how_t::is,
                    {"lm_head", "head", "output_layer", "output_projection", "score", "qa_outputs",
                            "vocab_projector"}},
            {"output head", where_t::near, how_t::is, {"classifier", "predictions", "medusa_head"}},
            {"output head", where_t::whole, how_t::is,
                    {"output.weight", "model.output.weight", "fc.weight", "proj_out.weight"}},
            {"norm", where_t::module, how_t::has, {"norm"}},
            {"norm", where_t::module, how_t::begins, {"ln_"}},
            {"convolution", where_t::near, how_t::has, {"conv"}},
            {conv1d, where_t::module, how_t::is, {"c_attn", "c_proj", "c_fc", "q_attn"}},
    };
    return all;
}

bool ends_with(const std::string &s, const std::string &end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

words_t words_of(const std::string &name) {
    words_t w;
    w.name = name;
    std::transform(w.name.begin(), w.name.end(), w.name.begin(),
            [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); });
    std::string rest = w.name;
    const auto cut = [&] {
        const size_t dot = rest.find_last_of("./");
        std::string word = dot == rest.npos ? rest : rest.substr(dot + 1);
        rest = dot == rest.npos ? "" : rest.substr(0, dot);
        return word;
    };
    w.last = cut();
    constexpr size_t length = sizeof("_weight") - 1;
    w.module = ends_with(w.last, "_weight") ? w.last.substr(0, w.last.size() - length) : cut();
    w.around = cut();
    return w;
}

bool is(const std::string &s, how_t how, const std::string &word) {
    switch (how) {
    case how_t::is: return s == word;
    case how_t::begins: return s.compare(0, word.size(), word) == 0;
    case how_t::ends: return ends_with(s, word);
    case how_t::has: break;
    }
    return s.find(word) != s.npos;
}

bool matches(const row_t &row, const words_t &w) {
    for (const char *word : row.words) switch (row.where) {
        case where_t::last:
            if (is(w.last, row.how, word)) return true;
            break;
        case where_t::whole:
            if (is(w.name, row.how, word)) return true;
            break;
        case where_t::near:
            if (is(w.around, row.how, word)) return true;
            [[fallthrough]];
        case where_t::module:
            if (is(w.module, row.how, word)) return true;
            break;
        }
    return false;
}

} // namespace

const char *left_as(const std::string &name, const std::vector<int64_t> &shape, bool is_transposed) {
    const words_t w = words_of(name);
    for (const row_t &row : rows())
        if (matches(row, w) && !(is_transposed && row.what == conv1d)) return row.what;
    if (!is_transposed && w.last != "weight" && !ends_with(w.last, "_weight")) return not_a_weight;
    for (size_t i = shape.size() - 2; i < shape.size(); i++)
        if (shape[i] < least_dim) return small;
    return nullptr;
}

std::string text() {
    std::string s =
            "Packed without --include: F32, BF16 and F16 tensors [out, in] and [experts, out, in] named\n"
            "MODULE.weight or MODULE_weight, letters of any case, but for these:\n";
    static const char *const where[] = {
            "the last word", "MODULE", "MODULE or the word before it", "the whole name"};
    static const char *const how[] = {"is", "begins with", "ends with", "has"};
    for (const row_t &row : rows()) {
        s += "  " + std::string(row.what) + ": " + where[size_t(row.where)] + " " + how[size_t(row.how)];
        for (const char *word : row.words) s += std::string(word == row.words.front() ? " " : ", ") + word;
        s += "\n";
    }
    return s + "  " + small + ": out or in is below " + std::to_string(least_dim)
           + "\n"
             "--transposed packs what matches as [in, out] and [experts, in, out], Conv1D and other names, too.\n"
             "Codes with their scales are packed whatever the rule says. --include packs whatever matches instead;\n"
             "--exclude leaves out of either what matches.\n";
}

} // namespace weight_rule
