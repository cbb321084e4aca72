// SPDX-License-Identifier: Apache-2.0
// Continues a text, or tokens, one token after the other; each is printed when it is there.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <stdexcept>

#include "model/session.hpp"
#include "text/chat.hpp"
#include "text/text_model.hpp"
#include "text/utf8_stream.hpp"

namespace llm {

namespace {

// Tokens as a user sees them.
class printer_t {
public:
    virtual ~printer_t() = default;
    virtual void put(int32_t id) = 0;
    virtual void finish() { printf("\n"); }
};

class id_printer_t : public printer_t {
public:
    void put(int32_t id) override {
        printf("%s%d", is_first_ ? "" : ",", id);
        fflush(stdout);
        is_first_ = false;
    }

private:
    bool is_first_ = true;
};

class text_printer_t : public printer_t {
public:
    text_printer_t(const tokenizer_t &tokenizer, bool shows_special)
        : tokenizer_(tokenizer), shows_special_(shows_special) {}
    void put(int32_t id) override {
        if (tokenizer_.is_special(id) && !shows_special_) return;
        print(stream_.put(tokenizer_.bytes(id)));
    }
    void finish() override { print(stream_.finish() + "\n"); }

private:
    void print(const std::string &text) {
        fwrite(text.data(), 1, text.size(), stdout);
        fflush(stdout);
    }

    const tokenizer_t &tokenizer_;
    const bool shows_special_;
    utf8_stream_t stream_;
};

// What the model gets, and what ends its answer.
struct request_t {
    std::vector<int32_t> tokens, ends;
    std::unique_ptr<printer_t> printer;
};

request_t request_of_text(const options_t &o, const text_model_t &text) {
    if (o.is_raw)
        return {text.tokenizer.encode(o.text, true), text.ends,
                std::make_unique<text_printer_t>(text.tokenizer, false)};
    const chat_format_t &format = find_chat_format(text.chat_template, o.model);
    std::vector<message_t> messages;
    if (!o.system.empty()) messages.push_back({"system", o.system});
    messages.push_back({"user", o.text});
    const std::time_t now = std::time(nullptr);
    request_t r{text.tokenizer.encode(format.render(format, messages, *std::localtime(&now)), false),
            text.ends, std::make_unique<text_printer_t>(text.tokenizer, format.shows_special)};
    for (const char *end : format.ends)
        if (const int32_t id = text.tokenizer.find(end); id >= 0) r.ends.push_back(id);
    return r;
}

} // namespace

void generate(const options_t &o) {
    if (o.text.empty() == o.ids.empty()) throw std::runtime_error("generate takes either a text or --ids");
    std::unique_ptr<text_model_t> text;
    request_t r{o.ids, {}, nullptr};
    if (o.ids.empty()) {
        text = std::make_unique<text_model_t>(read_text_model(o.model));
        r = request_of_text(o, *text);
        if (r.tokens.empty()) throw std::runtime_error("the text has no tokens");
    } else {
        r.printer = std::make_unique<id_printer_t>();
    }
    sampler_t sampler(o.sampling);
    model_t m = load_model(o);
    session_t s(m, 1, o.context ? o.context : int64_t(r.tokens.size()) + o.tokens);
    std::vector<int32_t> next = r.tokens;
    for (int64_t i = 0; i < o.tokens; i++) {
        if (i > 0 && o.sampling.temperature == 0)
            next = s.decode(next, 1); // logits stay where they are
        else
            s.feed({{0, next}}, session_t::wanted_t::last, [&](int64_t, int64_t, const float *logits) {
                next = {sampler.next(logits, size_t(m.config.vocabulary))};
            });
        if (std::count(r.ends.begin(), r.ends.end(), next[0])) break;
        r.printer->put(next[0]);
    }
    r.printer->finish();
    print_memory(m);
}

} // namespace llm
