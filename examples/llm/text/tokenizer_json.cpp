// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: a model, and what is done before and after it. Each object names its type.
#include <stdexcept>

#include "common/input_file.hpp"
#include "common/safetensors.hpp"
#include "mxdnn-pack/json_text.hpp"
#include "tokenizer_files.hpp"

namespace llm {

using nlohmann::json;
using safetensors::shown;
using parts_t = tokenizer_parts_t;
using stage_t = parts_t::stage_t;

namespace {

constexpr uint64_t max_bytes = uint64_t(1) << 28;

// Reads values and says where they are not as they should be.
class reader_t {
public:
    reader_t(const std::string &what, parts_t &parts) : what_(what), parts_(parts) {}

    void read(const json &root) {
        if (!root.is_object()) refuse("is no object");
        model(member(root, "model"));
        if (const json *added = optional(root, "added_tokens")) {
            if (!added->is_array()) refuse("has added_tokens that are no array");
            for (const json &a : *added) added_token(a);
        }
        if (const json *n = optional(root, "normalizer")) normalizer(*n);
        bool is_byte_level = false;
        pre_tokenizer(member(root, "pre_tokenizer"), is_byte_level);
        if (!is_byte_level)
            refuse("has a pre_tokenizer without ByteLevel; only byte-level tokenizers are known");
        if (const json *p = optional(root, "post_processor")) post_processor(*p);
        if (const json *d = optional(root, "decoder"); d && type(*d, "decoder") != "ByteLevel")
            refuse("has the decoder " + shown(type(*d, "decoder")) + "; only ByteLevel is known");
    }

private:
    [[noreturn]] void refuse(const std::string &why) const { throw std::runtime_error(what_ + " " + why); }

    // A member that is there and not null.
    const json *optional(const json &object, const char *name) const {
        if (!object.is_object()) refuse("has a value instead of the object with '" + std::string(name) + "'");
        const auto it = object.find(name);
        return it == object.end() || it->is_null() ? nullptr : &*it;
    }
    const json &member(const json &object, const char *name) const {
        const json *value = optional(object, name);
        if (!value) refuse("has no '" + std::string(name) + "'");
        return *value;
    }
    std::string string(const json &value, const char *name) const {
        if (!value.is_string()) refuse("has a '" + std::string(name) + "' that is no string");
        return value.get<std::string>();
    }
    std::string string_of(const json &object, const char *name) const {
        return string(member(object, name), name);
    }
    bool flag(const json &object, const char *name, bool by_default) const {
        const json *value = optional(object, name);
        if (value && !value->is_boolean())
            refuse("has a '" + std::string(name) + "' that is neither true nor false");
        return value ? value->get<bool>() : by_default;
    }
    int64_t id(const json &value, const char *name) const {
        if (!value.is_number_integer()) refuse("has a '" + std::string(name) + "' that is no whole number");
        // What does not fit is out of every range.
        return value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX ? -1 : value.get<int64_t>();
    }
    std::string type(const json &object, const char *of) const {
        const json *value = optional(object, "type");
        if (!value) refuse("has a " + std::string(of) + " without 'type'");
        return string(*value, "type");
    }
    template <typename F>
    void for_each(const json &object, const char *name, F &&f) const {
        const json &list = member(object, name);
        if (!list.is_array()) refuse("has '" + std::string(name) + "' that is no array");
        for (const json &item : list) f(item);
    }

    void model(const json &m) {
        if (const json *t = optional(m, "type"); t && string(*t, "type") != "BPE")
            refuse("has a model of the type " + shown(string(*t, "type")) + "; only BPE is known");
        const json &vocabulary = member(m, "vocab");
        if (!vocabulary.is_object()) refuse("has a vocab that is no object");
        for (const auto &[text, value] : vocabulary.items())
            parts_.vocabulary.push_back({text, id(value, "vocab")});
        for_each(m, "merges", [&](const json &merge) { this->merge(merge); });
        for (const char *affix : {"continuing_subword_prefix", "end_of_word_suffix"})
            if (const json *value = optional(m, affix); value && !string(*value, affix).empty())
                refuse("has a '" + std::string(affix) + "', which byte-level tokenizers do not have");
        if (flag(m, "byte_fallback", false))
            refuse("has byte_fallback; only byte-level tokenizers are known");
        if (const json *d = optional(m, "dropout"); d && *d != 0)
            refuse("has a dropout; encoding draws no numbers");
        parts_.ignores_merges = flag(m, "ignore_merges", false);
        parts_.fuses_unknown = flag(m, "fuse_unk", false);
        if (const json *unknown = optional(m, "unk_token")) {
            const auto it = vocabulary.find(string(*unknown, "unk_token"));
            if (it == vocabulary.end()) refuse("has an unk_token that is not in its vocab");
            parts_.unknown = id(*it, "vocab");
        }
    }

    // "left right" or ["left", "right"].
    void merge(const json &m) {
        if (m.is_array() && m.size() == 2) {
            parts_.merges.emplace_back(string(m[0], "merges"), string(m[1], "merges"));
            return;
        }
        const std::string text = string(m, "merges");
        const size_t space = text.find(' ');
        if (space == text.npos || text.find(' ', space + 1) != text.npos)
            refuse("has the merge " + shown(text) + ", which is not two tokens");
        parts_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }

    void added_token(const json &a) {
        parts_t::added_t token;
        token.text = string_of(a, "content");
        token.id = id(member(a, "id"), "id");
        token.is_special = flag(a, "special", false);
        token.takes_left = flag(a, "lstrip", false);
        token.takes_right = flag(a, "rstrip", false);
        token.is_normalized = flag(a, "normalized", !token.is_special);
        if (flag(a, "single_word", false))
            refuse("adds the token " + shown(token.text) + " with single_word, which is not known here");
        parts_.added.push_back(std::move(token));
    }

    void normalizer(const json &n) {
        const std::string t = type(n, "normalizer");
        if (t == "Sequence")
            for_each(n, "normalizers", [&](const json &part) { normalizer(part); });
        else if (t == "NFC")
            parts_.is_nfc = true;
        else
            refuse("has the normalizer " + shown(t) + "; only NFC is known");
    }

    void pre_tokenizer(const json &p, bool &is_byte_level) {
        const std::string t = type(p, "pre_tokenizer");
        if (is_byte_level)
            refuse("has the pre_tokenizer " + shown(t) + " after ByteLevel, which is the last");
        if (t == "Sequence") {
            for_each(p, "pretokenizers", [&](const json &part) { pre_tokenizer(part, is_byte_level); });
        } else if (t == "ByteLevel") {
            is_byte_level = true;
            if (flag(p, "add_prefix_space", true)) parts_.stages.push_back({stage_t::kind_t::space_before});
            if (flag(p, "use_regex", true))
                parts_.stages.push_back({stage_t::kind_t::pattern, pattern_by_name("gpt-2")});
        } else if (t == "Digits") {
            const size_t most = flag(p, "individual_digits", false) ? 1 : 0;
            parts_.stages.push_back({stage_t::kind_t::numbers, nullptr, most});
        } else if (t == "Split") {
            split(p);
        } else {
            refuse("has the pre_tokenizer " + shown(t) + "; ByteLevel, Digits, Split and Sequence are known");
        }
    }

    void split(const json &p) {
        // Every character belongs to a match, so that it is the same to isolate the matches or to remove the
        // rest.
        const std::string behavior = string_of(p, "behavior");
        const bool is_inverted = flag(p, "invert", false);
        if (!(behavior == "Isolated" || (behavior == "Removed" && is_inverted)))
            refuse("splits with the behavior " + shown(behavior) + (is_inverted ? ", inverted" : "")
                    + "; Isolated is known, and Removed where it is inverted");
        const json *expression = optional(member(p, "pattern"), "Regex");
        if (!expression) refuse("splits by a pattern that is no Regex");
        const std::string regex = string(*expression, "Regex");
        struct {
            const char *regex;
            size_t most;
        } const numbers[] = {{"\\p{N}", 1}, {"\\p{N}{1,3}", 3}, {"\\p{N}+", 0}};
        for (const auto &n : numbers)
            if (regex == n.regex && behavior == "Isolated") {
                parts_.stages.push_back({stage_t::kind_t::numbers, nullptr, n.most});
                return;
            }
        const pattern_t *pattern = pattern_by_regex(regex);
        if (!pattern) refuse("splits by a pattern that is not known here: " + shown(regex));
        parts_.stages.push_back({stage_t::kind_t::pattern, pattern});
    }

    void post_processor(const json &p) {
        const std::string t = type(p, "post_processor");
        if (t == "Sequence")
            for_each(p, "processors", [&](const json &part) { post_processor(part); });
        else if (t == "TemplateProcessing")
            frame(p);
        else if (t != "ByteLevel")
            refuse("has the post_processor " + shown(t) + "; ByteLevel and TemplateProcessing are known");
    }

    // [token..., the text, token...]
    void frame(const json &p) {
        const json &tokens = member(p, "special_tokens");
        bool is_after = false;
        for_each(p, "single", [&](const json &item) {
            if (const json *special = optional(item, "SpecialToken")) {
                const json *token = optional(tokens, string_of(*special, "id").c_str());
                if (!token) refuse("has a template with a token that its special_tokens do not have");
                for_each(*token, "ids", [&](const json &value) {
                    (is_after ? parts_.after : parts_.before).push_back(id(value, "ids"));
                });
            } else if (!is_after && optional(item, "Sequence")) {
                is_after = true;
            } else {
                refuse("has a template that is not one text and special tokens around it");
            }
        });
    }

    std::string what_;
    parts_t &parts_;
};

} // namespace

tokenizer_parts_t parse_tokenizer_json(const std::string &text, const std::string &what) {
    tokenizer_parts_t parts;
    reader_t(what, parts).read(mxdnn_pack::parse_json(text, what));
    return parts;
}

tokenizer_t read_tokenizer_json(const std::string &path) {
    const input_file_t file(path);
    if (file.size() > max_bytes)
        throw std::runtime_error(file.name() + " has " + std::to_string(file.size())
                                 + " bytes; a tokenizer has at most " + std::to_string(max_bytes));
    std::string text(size_t(file.size()), '\0');
    file.read(0, file.size(), &text[0]);
    return {parse_tokenizer_json(text, file.name()), file.name()};
}

} // namespace llm
