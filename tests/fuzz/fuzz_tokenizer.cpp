// SPDX-License-Identifier: Apache-2.0
// Bytes as tokenizer.json, or as a GGUF file with a tokenizer: refused with a sentence, or any text has
// tokens of that tokenizer and is framed by what the file says.
#include "fuzz/fuzz.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include "gtests/gguf_writer.hpp"
#include "text/chat.hpp"
#include "text/text_model.hpp"
#include "text/tokenizer_files.hpp"

namespace {

using namespace llm;

template <typename F>
void refused_or(F &&call) {
    try {
        call();
    } catch (const std::exception &e) {
        FUZZ_CHECK(is_sentence(e.what()));
    }
}

void examine(const tokenizer_t &t, const std::string &input) {
    const std::string texts[] = {"", " ", "Hello,  World 1234\r\n\t isn't <end> abc ",
            "e\xcc\x81 \xe4\xbd\xa0\xf0\x9f", std::string(3, '\0') + "\xff\xc0\xaf\xed\xa0\x80",
            input.substr(0, 256), input.substr(input.size() - std::min<size_t>(input.size(), 256))};
    const std::vector<int32_t> frame = t.encode("", true);
    for (const std::string &text : texts) {
        const std::vector<int32_t> bare = t.encode(text, false), framed = t.encode(text, true);
        FUZZ_CHECK(framed.size() == bare.size() + frame.size() || text.empty());
        FUZZ_CHECK(bare.empty()
                   || std::search(framed.begin(), framed.end(), bare.begin(), bare.end()) != framed.end());
        for (const int32_t id : framed) FUZZ_CHECK(id >= 0 && id < t.size());
        (void)t.decode(framed);
    }
    FUZZ_CHECK(t.bytes(-1).empty() && t.bytes(t.size()).empty() && !t.is_special(t.size()));
    FUZZ_CHECK(t.find("<end>") < t.size());
}

bool is_gguf_file(const std::string &input) { return input.rfind("GGUF", 0) == 0; }

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string input(data, data + size);
    refused_or([&] {
        if (!is_gguf_file(input))
            return examine({parse_tokenizer_json(input, "the file"), "the file"}, input);
        const gguf_test::memory_file_t file(input);
        FUZZ_CHECK(file.is_written());
        const text_model_t model = read_text_model(file.path());
        for (const int32_t id : model.ends) FUZZ_CHECK(id >= 0 && id < model.tokenizer.size());
        refused_or([&] { (void)find_chat_format(model.chat_template, "the file"); });
        examine(model.tokenizer, input);
    });
    return 0;
}

namespace {

// Letters a to e, a space, ab, abc and dd; with what cuts the text, and what stands around it.
std::string json_seed(const std::string &cut, const std::string &model = "", const std::string &rest = "") {
    return R"({"added_tokens":[{"id":9,"content":"<end>","special":true},)"
           R"({"id":10,"content":"<in>","lstrip":true,"rstrip":true,"normalized":true}],)"
           R"("pre_tokenizer":)"
           + cut + R"(,"decoder":{"type":"ByteLevel"},)" + rest + R"("model":{"type":"BPE",)" + model
           + R"("vocab":{"a":0,"b":1,"c":2,"d":3,"e":4,"Ġ":5,"ab":6,"abc":7,"dd":8},)"
             R"("merges":[["a","b"],"ab c",["d","d"]]}})";
}

// The same in GGUF.
gguf_test::writer_t gguf_seed(const std::string &pre) {
    gguf_test::writer_t w;
    w.add("tokenizer.ggml.model", "gpt2");
    w.add("tokenizer.ggml.pre", pre);
    w.add_array("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "Ġ", "ab", "abc", "dd", "<end>", "<in>"});
    w.add_array<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4});
    w.add_array("tokenizer.ggml.merges", {"a b", "ab c", "d d"});
    w.add("tokenizer.ggml.bos_token_id", 4, uint32_t(9));
    w.add("tokenizer.ggml.eos_token_id", 4, uint32_t(10));
    w.add("tokenizer.ggml.add_bos_token", 7, uint8_t(1));
    w.add("tokenizer.chat_template", "{{ '<|im_start|>' }}");
    return w;
}

} // namespace

std::vector<fuzz_input_t> fuzz_seeds() {
    const std::string level = R"({"type":"ByteLevel","add_prefix_space":false})",
                      digits = R"({"type":"Digits","individual_digits":true})",
                      numbers = R"({"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated"})";
    const std::vector<std::string> texts = {json_seed(level),
            json_seed(R"({"type":"ByteLevel"})", R"("ignore_merges":true,)"),
            json_seed(R"({"type":"Sequence","pretokenizers":[)" + digits + "," + level + "]}",
                    R"("unk_token":"a","fuse_unk":true,"dropout":null,)", R"("normalizer":{"type":"NFC"},)"),
            json_seed(R"({"type":"Sequence","pretokenizers":[)" + numbers
                              + R"(,{"type":"ByteLevel","use_regex":false}]})",
                    R"("byte_fallback":false,)",
                    R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"}]},)"
                    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<end>"}},)"
                    R"({"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<in>"}}],"special_tokens":{)"
                    R"("<end>":{"ids":[9]},"<in>":{"ids":[10]}}},)"),
            gguf_seed("gpt-2").bytes(), gguf_seed("smollm").bytes(), gguf_seed("llama-bpe").bytes(),
            gguf_seed("gpt-4o").bytes()};
    std::vector<fuzz_input_t> seeds;
    seeds.reserve(texts.size());
    for (const std::string &t : texts) seeds.emplace_back(t.begin(), t.end());
    return seeds;
}
