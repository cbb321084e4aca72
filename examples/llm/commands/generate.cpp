// SPDX-License-Identifier: Apache-2.0
// Continues a text, or tokens, one token after the other; each is printed when it is there.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include <unistd.h>

#include "model/session.hpp"
#include "prompt.hpp"
#include "text/terminal_text.hpp"
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
    void print(std::string text) {
        // A model says what a stranger made it say. Files and pipes get its bytes.
        if (is_terminal_) text = terminal_text(text);
        fwrite(text.data(), 1, text.size(), stdout);
        fflush(stdout);
    }

    const tokenizer_t &tokenizer_;
    const bool shows_special_, is_terminal_ = isatty(STDOUT_FILENO);
    utf8_stream_t stream_;
};

} // namespace

void generate(const options_t &o) {
    if (o.text.empty() == o.ids.empty()) throw std::runtime_error("generate takes either a text or --ids");
    std::unique_ptr<text_model_t> text;
    prompt_t prompt{o.ids, {}, false};
    std::unique_ptr<printer_t> printer = std::make_unique<id_printer_t>();
    if (o.ids.empty()) {
        text = std::make_unique<text_model_t>(text_model_of(o));
        prompt = prompt_of(*text, o);
        printer = std::make_unique<text_printer_t>(text->tokenizer, prompt.shows_special);
    }
    sampler_t sampler(o.sampling);
    model_t m = load_model(o);
    session_t s(m, 1, o.context ? o.context : int64_t(prompt.tokens.size()) + o.tokens);
    std::vector<int32_t> next = prompt.tokens;
    for (int64_t i = 0; i < o.tokens; i++) {
        if (i > 0 && o.sampling.temperature == 0)
            next = s.decode(next, 1); // logits stay where they are
        else
            s.feed({{0, next}}, session_t::wanted_t::last, [&](int64_t, int64_t, const float *logits) {
                next = {sampler.next(logits, size_t(m.config.vocabulary))};
            });
        if (std::count(prompt.ends.begin(), prompt.ends.end(), next[0])) break;
        printer->put(next[0]);
    }
    printer->finish();
    print_memory(m);
}

} // namespace llm
