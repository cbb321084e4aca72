// SPDX-License-Identifier: Apache-2.0
// Tokenizers, chat formats and the sampler: golden ids, rules, and files that are not as they should be.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/gguf.hpp"
#include "gtests/gguf_writer.hpp"
#include "text/chat.hpp"
#include "text/sampler.hpp"
#include "text/splitter.hpp"
#include "text/terminal_text.hpp"
#include "text/text_model.hpp"
#include "text/tokenizer_files.hpp"
#include "text/utf8_stream.hpp"

using namespace llm;
using nlohmann::json;
using ids_t = std::vector<int32_t>;
using strings_t = std::vector<std::string>;

namespace {

tokenizer_t made_of(const json &content) {
    return {parse_tokenizer_json(content.dump(), "the file"), "the file"};
}

// Letters a to e, a space, and ab, abc, dd.
json small() {
    return json::parse(R"({
        "added_tokens": [{"id": 9, "content": "<end>", "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "post_processor": null,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "Ġ": 5, "ab": 6, "abc": 7, "dd": 8},
            "merges": [["a", "b"], "ab c", ["d", "d"]]}})");
}

template <typename F>
std::string failure(F &&f) {
    try {
        f();
    } catch (const std::runtime_error &e) {
        return e.what();
    }
    return "";
}

std::string refusal(const json &content) {
    return failure([&] { made_of(content); });
}

strings_t pieces(const char *pattern, const std::string &text) {
    strings_t all;
    split(*pattern_by_name(pattern), text, [&](std::string_view piece) { all.emplace_back(piece); });
    return all;
}

std::string repeated(const std::string &text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; i++) all += text;
    return all;
}

} // namespace

TEST(Tokenizer, GoldenIds) {
    json golden;
    std::ifstream(LLM_TEXT_GOLDEN) >> golden;
    const strings_t texts = golden["texts"];
    ASSERT_GT(texts.size(), 30u);
    ASSERT_EQ(golden["styles"].size(), 9u);
    for (const json &style : golden["styles"]) {
        json content = golden["tokenizer"];
        content["pre_tokenizer"] = style["pre_tokenizer"];
        content["normalizer"] = style["normalizer"];
        const tokenizer_t tokenizer = made_of(content);
        for (size_t i = 0; i < texts.size(); i++)
            EXPECT_EQ(tokenizer.encode(texts[i], true), ids_t(style["ids"][i]))
                    << style["name"] << ": " << texts[i];
    }
}

TEST(Tokenizer, MergesByRank) {
    const tokenizer_t t = made_of(small());
    EXPECT_EQ(t.encode("abc ab ddd", true), (ids_t{7, 5, 6, 5, 8, 3}));
    EXPECT_EQ(t.encode("a<end>b", true), (ids_t{0, 9, 1}));
    EXPECT_EQ(t.encode("", true), ids_t());
    EXPECT_EQ(t.encode("zaz", true), (ids_t{0})); // z has no token
    EXPECT_EQ(t.decode({7, 5, 9, 100, -1}), "abc <end>");
    EXPECT_TRUE(t.is_special(9));
    EXPECT_FALSE(t.is_special(0) || t.is_special(-1) || t.is_special(1 << 30));
    EXPECT_EQ(t.find("<end>"), 9);
    EXPECT_EQ(t.find("a"), -1);
}

TEST(Tokenizer, KeepsEveryByte) {
    json content = small();
    json &vocabulary = content["model"]["vocab"];
    vocabulary.clear();
    content["model"]["merges"] = json::array();
    content["added_tokens"] = json::array();
    int id = 0;
    for (int c = '!'; c <= 0x143; c++)
        if (c <= '~' || (c >= 0xa1 && c != 0xad))
            vocabulary[c < 0x80 ? std::string(1, char(c))
                                : std::string{char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))}] = id++;
    ASSERT_EQ(id, 256);
    const tokenizer_t t = made_of(content);
    std::string bytes;
    for (int c = 0; c < 256; c++) bytes += char(c);
    for (const std::string &text : {bytes, std::string("\xff\xc3"), std::string("\xf0\x9f\x99")}) {
        EXPECT_EQ(t.decode(t.encode(text, true)), text);
        EXPECT_EQ(t.encode(text, true).size(), text.size());
    }
}

// Steps that grow with the square of the length would take hours.
TEST(Tokenizer, LongTexts) {
    json content = small();
    content["added_tokens"].push_back({{"id", 10}, {"content", " "}, {"lstrip", true}, {"rstrip", true}});
    const size_t n = 1000000;
    for (const char *pre : {"gpt-2", "llama-3", "qwen2", "qwen3.5", "o200k", "tekken"}) {
        json stages = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
        stages["pretokenizers"] = {{{"type", "Split"}, {"behavior", "Isolated"},
                                           {"pattern", {{"Regex", regex(*pattern_by_name(pre))}}}},
                {{"type", "Digits"}, {"individual_digits", true}},
                {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}};
        content["pre_tokenizer"] = stages;
        const tokenizer_t t = made_of(content);
        EXPECT_EQ(t.encode(std::string(n, 'd'), true).size(), n / 2) << pre;
        for (const char *unit : {"A", "1", "!", "\t", "\n", " ", "\xcc\x81", "\xca\xb0", "'", "\xff", "aB",
                     "\312\260A", " \n"})
            t.encode(repeated(unit, n), true);
        EXPECT_EQ(t.encode(std::string(n, ' '), true), ids_t(1, 10)) << pre;
    }
}

TEST(Tokenizer, Frames) {
    json content = small();
    content["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<end>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}],
         "special_tokens": {"<end>": {"id": "<end>", "ids": [9], "tokens": ["<end>"]}}}]})");
    const tokenizer_t t = made_of(content);
    EXPECT_EQ(t.encode("a", true), (ids_t{9, 0, 9}));
    EXPECT_EQ(t.encode("a", false), (ids_t{0}));
}

// As small() above; texts of tokens, pairs to merge, and keys that are other than they should be.
std::string refusal_of_gguf(void (*change)(gguf_test::writer_t &, std::vector<std::string> &tokens,
        std::vector<std::string> &merges, std::vector<int32_t> &types)) {
    gguf_test::writer_t w;
    std::vector<std::string> tokens = {"a", "b", "c", "Ġ", "ab", "<end>"}, merges = {"a b"};
    std::vector<int32_t> types = {1, 1, 1, 1, 1, 3};
    change(w, tokens, merges, types);
    if (w.keys.empty()) w.add("tokenizer.ggml.model", "gpt2");
    if (w.keys.size() < 2) w.add("tokenizer.ggml.pre", "gpt-2");
    w.add_array("tokenizer.ggml.tokens", tokens);
    w.add_array("tokenizer.ggml.merges", merges);
    w.add_array<int32_t>("tokenizer.ggml.token_type", 5, types);
    const gguf_test::memory_file_t file(w.bytes());
    EXPECT_TRUE(file.is_written());
    return failure([&] { read_tokenizer(gguf::file_t(file.path())); });
}

TEST(Tokenizer, RefusesContradictionsOfGguf) {
    using texts_t = std::vector<std::string>;
    using types_t = std::vector<int32_t>;
    using writer_t = gguf_test::writer_t;
    EXPECT_EQ(refusal_of_gguf([](writer_t &, texts_t &, texts_t &, types_t &) {}), "");
    const auto expect = [](const char *words, auto change) {
        const std::string said = refusal_of_gguf(change);
        EXPECT_NE(said.find(words), said.npos) << words << ": " << said;
    };
    expect("is of the kind 'llama'; only byte-level BPE",
            [](writer_t &w, texts_t &, texts_t &, types_t &) { w.add("tokenizer.ggml.model", "llama"); });
    expect("has the pre-tokenizer '\\x1b[2J'", [](writer_t &w, texts_t &, texts_t &, types_t &) {
        w.add("tokenizer.ggml.model", "gpt2");
        w.add("tokenizer.ggml.pre", "\x1b[2J");
    });
    expect("a type for each token or for none",
            [](writer_t &, texts_t &, texts_t &, types_t &t) { t.pop_back(); });
    expect("has the token 'a' twice", [](writer_t &, texts_t &t, texts_t &, types_t &) { t[1] = "a"; });
    expect("has the merge 'ab', which is not two tokens",
            [](writer_t &, texts_t &, texts_t &m, types_t &) { m[0] = "ab"; });
    expect("names 'x', which is no token",
            [](writer_t &, texts_t &, texts_t &m, types_t &) { m[0] = "a x"; });
    expect("makes what is no token", [](writer_t &, texts_t &, texts_t &m, types_t &) { m[0] = "a c"; });
    expect("is there twice", [](writer_t &, texts_t &, texts_t &m, types_t &) { m.push_back("a b"); });
    expect("has 0 bytes", [](writer_t &, texts_t &t, texts_t &, types_t &) { t[5] = ""; });
    expect("has no tokens", [](writer_t &, texts_t &t, texts_t &, types_t &types) {
        t.clear();
        types.clear();
    });
}

TEST(Tokenizer, RefusesContradictions) {
    EXPECT_EQ(refusal(small()), "");
    const auto with = [](const char *path, const json &value) {
        json content = small();
        content[json::json_pointer(path)] = value;
        return refusal(content);
    };
    const std::pair<const char *, std::pair<json, const char *>> wrong[] = {
            {"/model/type", {"Unigram", "only BPE is known"}},
            {"/model/vocab", {json::object(), "has no tokens"}},
            {"/model/vocab", {7, "has a vocab that is no object"}},
            {"/model/vocab/a", {1, "two tokens of the id 1"}},
            {"/model/vocab/a", {-1, "the id -1; ids are from 0"}},
            {"/model/vocab/a", {1 << 22, "ids are from 0"}},
            {"/model/vocab/a", {18446744073709551615u, "ids are from 0"}},
            {"/model/vocab/a", {"1", "no whole number"}},
            {"/model/vocab/a", {1.5, "no whole number"}},
            {"/model/merges", {{"a"}, "merge 'a', which is not two tokens"}},
            {"/model/merges", {{"a b c"}, "which is not two tokens"}},
            {"/model/merges", {json::array({json::array({"a", 3})}), "no string"}},
            {"/model/merges", {json::array({json::array({"a", "b", "c"})}), "no string"}},
            {"/model/merges", {{"a x"}, "names 'x', which is no token"}},
            {"/model/merges", {{"a <end>"}, "which is no token"}},
            {"/model/merges", {{"a c"}, "makes what is no token"}},
            {"/model/merges", {{"a b", "a b"}, "is there twice"}},
            {"/model/merges", {json::object(), "no array"}},
            {"/model/byte_fallback", {true, "byte_fallback"}},
            {"/model/dropout", {0.5, "dropout"}},
            {"/model/unk_token", {"x", "not in its vocab"}},
            {"/model/end_of_word_suffix", {"</w>", "end_of_word_suffix"}},
            {"/added_tokens/0/id", {3, "two tokens of the id 3"}},
            {"/added_tokens/0/content", {"", "has 0 bytes"}},
            {"/added_tokens/0/content", {std::string(300, 'x'), "has 300 bytes"}},
            {"/added_tokens/0/special", {1, "neither true nor false"}},
            {"/added_tokens/0/single_word", {true, "single_word"}},
            {"/added_tokens/0", {3, "instead of the object"}},
            {"/added_tokens", {3, "no array"}},
            {"/normalizer", {{{"type", "NFKC"}}, "only NFC is known"}},
            {"/pre_tokenizer", {nullptr, "no 'pre_tokenizer'"}},
            {"/pre_tokenizer/type", {"Whitespace", "ByteLevel, Digits, Split and Sequence are known"}},
            {"/pre_tokenizer", {{{"type", "Digits"}}, "without ByteLevel"}},
            {"/pre_tokenizer",
                    {{{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "\\w+"}}}},
                            "not known here: '\\\\w+'"}},
            {"/pre_tokenizer", {{{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"String", " "}}}},
                                       "no Regex"}},
            {"/pre_tokenizer",
                    {{{"type", "Split"}, {"behavior", "Removed"}, {"pattern", {{"Regex", "\\p{N}"}}}},
                            "the behavior"}},
            {"/post_processor", {{{"type", "BertProcessing"}}, "BertProcessing"}},
            {"/decoder", {{{"type", "Metaspace"}}, "only ByteLevel is known"}},
            {"/decoder", {json::object(), "has a decoder without 'type'"}},
            {"/pre_tokenizer", {{{"type", "Sequence"},
                                        {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}},
                                       "after ByteLevel, which is the last"}},
            {"/post_processor",
                    {{{"type", "TemplateProcessing"}, {"single", {{{"SpecialToken", {{"id", "<no>"}}}}}},
                             {"special_tokens", json::object()}},
                            "that its special_tokens do not have"}},
    };
    for (const auto &[path, what] : wrong) {
        const std::string said = with(path, what.first);
        EXPECT_NE(said.find(what.second), said.npos) << path << " " << what.first << ": " << said;
    }
    json many = small();
    many["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
    for (int i = 0; i < 100000; i++) many["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}});
    many["pre_tokenizer"]["pretokenizers"].push_back({{"type", "ByteLevel"}});
    EXPECT_NE(refusal(many).find("in 100002 stages; it may have 32"), std::string::npos) << refusal(many);
    json twice = small();
    twice["added_tokens"].push_back({{"id", 10}, {"content", "<end>"}});
    EXPECT_NE(refusal(twice).find("adds the token '<end>' twice"), std::string::npos);

    const auto parse = [](const std::string &text) {
        return failure([&] { parse_tokenizer_json(text, "the file"); });
    };
    EXPECT_NE(parse(R"({"model": {"vocab": {"a": 1, "a": 2}}})").find("twice"), std::string::npos);
    EXPECT_NE(parse(repeated("[", 100000)).find("nested"), std::string::npos);
    EXPECT_NE(parse(repeated("{\"normalizer\":", 100000)).find("nested"), std::string::npos);
    EXPECT_NE(parse("").find("is not JSON"), std::string::npos);
    EXPECT_NE(parse("3").find("is no object"), std::string::npos);
    const std::string whole = small().dump();
    for (size_t size = 0; size < whole.size(); size++) EXPECT_NE(parse(whole.substr(0, size)), "") << size;
}

TEST(TextModel, FilesOfAFolder) {
    std::string folder = testing::TempDir() + "text_modelXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const auto write = [&](const char *name, const std::string &text) {
        std::ofstream(folder + "/" + name, std::ios::binary) << text;
    };
    // Only the tokenizer has to be there.
    write("tokenizer.json", small().dump());
    text_model_t model = read_text_model(folder);
    EXPECT_EQ(model.chat_template, "");
    EXPECT_EQ(model.ends, ids_t());
    write("config.json", R"({"eos_token_id": [9, 1000, -1, 18446744073709551615, "a"]})");
    write("tokenizer_config.json",
            R"({"chat_template": [1, {"name": "a"}, {"name": "default", "template": "named"}]})");
    model = read_text_model(folder);
    EXPECT_EQ(model.chat_template, "named");
    EXPECT_EQ(model.ends, ids_t{9});
    write("generation_config.json", R"({"eos_token_id": 8})");
    write("chat_template.jinja", "of its own");
    model = read_text_model(folder);
    EXPECT_EQ(model.chat_template, "of its own");
    EXPECT_EQ(model.ends, ids_t{8});
    const auto refused = [&] { return failure([&] { read_text_model(folder); }); };
    write("generation_config.json", "[]");
    EXPECT_NE(refused().find("generation_config.json is no object"), std::string::npos) << refused();
    write("chat_template.jinja", std::string((1 << 24) + 1, ' '));
    EXPECT_NE(refused().find("has 16777217 bytes, more than 16777216"), std::string::npos) << refused();
    std::filesystem::remove_all(folder);
}

TEST(Splitter, Patterns) {
    EXPECT_EQ(pieces("gpt-2", "I'll see 12  a!\n\n b"),
            (strings_t{"I", "'ll", " see", " 12", " ", " a", "!", "\n\n", " b"}));
    EXPECT_EQ(pieces("llama-3", "I'LL 1234\t\n a(b)"),
            (strings_t{"I", "'LL", " ", "123", "4", "\t\n", " a", "(b", ")"}));
    EXPECT_EQ(pieces("qwen2", "12 x"), (strings_t{"1", "2", " x"}));
    EXPECT_EQ(pieces("o200k", "HTTPServer isn't // \n"), (strings_t{"HTTPServer", " isn't", " //", " \n"}));
    EXPECT_EQ(pieces("tekken", "camelCase 42"), (strings_t{"camel", "Case", " ", "4", "2"}));
    EXPECT_EQ(pattern_by_name("x"), nullptr);
    EXPECT_EQ(pattern_by_regex(""), nullptr);
}

TEST(Utf8Stream, PassesWholeCharacters) {
    const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82z";
    utf8_stream_t stream;
    std::string all;
    for (char c : text) {
        const std::string out = stream.put({&c, 1});
        EXPECT_TRUE(out.empty() || (out[0] & 0xc0) != 0x80);
        all += out;
    }
    EXPECT_EQ(all, text);
    EXPECT_EQ(stream.finish(), "");
    // One sign for each longest beginning of a character.
    const std::pair<std::string, int> bad[] = {{"\xff", 1}, {"\xc3", 1}, {"\xf0\x9f\x99", 1},
            {"\xf0\x9f\x99\xf0\x9f", 2}, {"\xe0\x80\x80", 3}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4},
            {"\xc0\xaf", 2}};
    for (const auto &[bytes, signs] : bad) {
        utf8_stream_t s;
        std::string out;
        for (char c : bytes) out += s.put({&c, 1});
        EXPECT_EQ(out + s.finish(), repeated("\xef\xbf\xbd", size_t(signs)))
                << json(bytes).dump(-1, ' ', true, json::error_handler_t::replace);
    }
}

TEST(TerminalText, IsShownAndNotObeyed) {
    const std::string letters = "a\tb\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\\";
    EXPECT_EQ(terminal_text(letters), letters);
    EXPECT_EQ(terminal_text("\x1b]0;t\a\x1b[2J\r\b\x7f"), "\\x1b]0;t\\x07\\x1b[2J\\x0d\\x08\\x7f");
    EXPECT_EQ(terminal_text("\302\2332J\302\240"), "\\u009b2J\302\240");
    EXPECT_EQ(terminal_text("\2332J\303"), "\uFFFD2J\uFFFD");
    EXPECT_EQ(terminal_text(std::string_view("\0", 1)), "\\x00");
}

TEST(Chat, Formats) {
    EXPECT_NE(failure([] { find_chat_format("", "m"); }).find("m has no chat template"), std::string::npos);
    EXPECT_NE(failure([] { find_chat_format("{{ messages }}", "m"); }).find("--raw"), std::string::npos);
    const chat_format_t &f = find_chat_format(
            "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}", "m");
    EXPECT_EQ(f.render(f, {{"user", "hi"}}, {}), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Sampler, Greedy) {
    const float logits[] = {-1, 3, 3, -INFINITY};
    EXPECT_EQ(sampler_t({}).next(logits, 4), 1);
}

TEST(Sampler, FollowsProbabilitiesAndTheSeed) {
    // Probabilities 0.5, 0.3, 0.2.
    const float logits[] = {std::log(0.3f), -INFINITY, std::log(0.5f), std::log(0.2f)};
    const auto draw = [&](double temperature, double top_p, uint64_t seed) {
        sampler_t s({temperature, top_p, seed});
        ids_t counts(4);
        for (int i = 0; i < 10000; i++) counts[size_t(s.next(logits, 4))]++;
        return counts;
    };
    const ids_t counts = draw(1, 1, 7);
    // Five standard deviations of a binomial distribution.
    EXPECT_NEAR(counts[2], 5000, 5 * std::sqrt(10000 * 0.25));
    EXPECT_NEAR(counts[0], 3000, 5 * std::sqrt(10000 * 0.21));
    EXPECT_EQ(counts[1], 0);
    EXPECT_EQ(draw(1, 1, 7), counts);
    EXPECT_NE(draw(1, 1, 8), counts);
    EXPECT_EQ(draw(1, 0.5, 7)[2], 10000);
    EXPECT_EQ(draw(1, 0.79, 7)[3], 0);
    EXPECT_EQ(draw(1e-6, 1, 7)[2], 10000);
    EXPECT_NEAR(draw(1e6, 1, 7)[3], 3333, 5 * std::sqrt(10000 * 0.2223));
}

TEST(Sampler, Refuses) {
    const auto said = [](std::vector<float> logits, sampling_t options) {
        return failure([&] { sampler_t(options).next(logits.data(), logits.size()); });
    };
    for (const double temperature : {0.0, 1.0}) {
        EXPECT_NE(said({1, NAN}, {temperature}).find("token 1 is NaN"), std::string::npos);
        EXPECT_NE(said({INFINITY, 1}, {temperature}).find("token 0 is infinite"), std::string::npos);
        EXPECT_NE(said({-INFINITY}, {temperature}).find("no token"), std::string::npos);
        EXPECT_NE(said({}, {temperature}).find("no token"), std::string::npos);
    }
    for (const double wrong : {-1.0, double(NAN), double(INFINITY)})
        EXPECT_NE(said({1}, {wrong}).find("temperature"), std::string::npos);
    for (const double wrong : {0.0, 1.1, double(NAN)})
        EXPECT_NE(said({1}, {1, wrong}).find("top-p"), std::string::npos);
}
