// SPDX-License-Identifier: Apache-2.0
// Command line of mxdnn-llm: language models on packed weights.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include <CLI/CLI.hpp>
#include <tbb/global_control.h>

#include "commands/commands.hpp"
#include "common/command_line.hpp"
#include "common/standard_output.hpp"

namespace {

using llm::options_t;

void add_loading(CLI::App *sub, options_t &o) {
    sub->add_option("--engine", o.load.engine, "cpu, cuda or cuda:N")->capture_default_str();
    sub->add_option("--encoding", o.load.encoding,
               "of MLPs and experts: stored (as they are), f32, bf16, or a format such as mxfp4")
            ->capture_default_str();
    sub->add_option("--dense", o.load.dense,
            "of attention and head; default: f32 or bf16 as --encoding says, else stored");
    sub->add_option("--head", o.load.head, "of the head, which loses most in few bits; default: as --dense");
    sub->add_option("--chunk", o.load.max_rows, "tokens of a prompt that are computed at once")
            ->capture_default_str()
            ->check(CLI::Range(1, 1 << 16));
    sub->add_option("--threads", o.threads, "threads to use; 0: all of the machine")
            ->capture_default_str()
            ->check(CLI::Range(0, 4096));
}

void add_text(CLI::App *sub, options_t &o) {
    sub->add_option("text", o.text, "a message, which the model's chat template frames");
    sub->add_flag("--raw", o.is_raw, "the text is what the model continues, without the template");
    sub->add_option("--system", o.system, "what the system says before the message");
}

int run(int argc, char **argv) {
    options_t o;
    CLI::App app("Runs language models whose weights stay packed in the formats of mxdnn.");
    app.require_subcommand(1);
    void (*command)(const options_t &) = nullptr;
    const auto add = [&](const char *name, const char *what, void (*function)(const options_t &)) {
        CLI::App *sub = app.add_subcommand(name, what);
        sub->add_option("model", o.model,
                   "a folder with config.json and safetensors files, a GGUF file, or shape:NAME with made-up weights")
                ->required();
        sub->callback([&command, function] { command = function; });
        return sub;
    };
    add("describe", "print what the configuration of a model says", llm::describe);
    CLI::App *logits =
            add("logits", "write the logits that follow each token, f32 [tokens, vocabulary]", llm::logits);
    logits->add_option(
                  "--ids", o.sequences, "tokens of a sequence, such as 1,2,3; may be given several times")
            ->required()
            ->take_all();
    logits->add_option(
                  "--at-once", o.at_once, "tokens of each sequence that are computed at once; default: all")
            ->check(CLI::Range(1, 1 << 24));
    logits->add_option("--context", o.context, "tokens of a sequence; default: what is needed")
            ->check(CLI::Range(1, 1 << 24));
    logits->add_option("--output", o.output, "file to write")->required();
    logits->add_option("--routes", o.routes,
            "file with the experts of each layer and token: they are taken from it, or noted where there is none");
    add_loading(logits, o);
    const CLI::Range any_count(1, 1 << 24);
    CLI::App *generate = add("generate", "answer a message, or continue a text or tokens", llm::generate);
    add_text(generate, o);
    generate->add_option("--ids", o.ids, "tokens instead of a text")->delimiter(',')->excludes("text");
    generate->add_option("--temperature", o.sampling.temperature, "0: always the likeliest token")
            ->capture_default_str();
    generate->add_option("--top-p", o.sampling.top_p, "of the likeliest tokens that together are as likely")
            ->capture_default_str();
    generate->add_option("--seed", o.sampling.seed, "equal seeds draw equal tokens")->capture_default_str();
    generate->add_option("--tokens", o.tokens, "tokens to generate at most")
            ->capture_default_str()
            ->check(any_count);
    generate->add_option("--context", o.context, "tokens of a sequence; default: what is needed")
            ->check(any_count);
    add_loading(generate, o);
    add_text(add("tokenize", "print the tokens that the model gets for a text", llm::tokenize), o);
    CLI::App *perplexity = add("perplexity", "measure how well the model predicts a text", llm::perplexity);
    perplexity->add_option("file", o.file, "a text")->required();
    perplexity
            ->add_option("--context", o.context,
                    "tokens of a window; default: 512, or as many as the model has positions")
            ->check(CLI::Range(2, 1 << 20));
    add_loading(perplexity, o);
    CLI::App *bench = add("bench", "measure prefill and decode", llm::bench);
    bench->add_option("--batch", o.batches,
                 "sequences that are decoded at once; several numbers: one after the other")
            ->capture_default_str()
            ->delimiter(',')
            ->check(any_count);
    bench->add_option("--prompt", o.prompt, "tokens of the prompt")->capture_default_str()->check(any_count);
    bench->add_option("--tokens", o.tokens, "tokens to decode")
            ->capture_default_str()
            ->check(CLI::Range(2, 1 << 20));
    bench->add_option(
                 "--context", o.context, "tokens of a sequence when decoding ends; default: --tokens and one")
            ->check(any_count);
    bench->add_option("--repeat", o.repeat, "times; the best counts")
            ->capture_default_str()
            ->check(CLI::Range(1, 1000));
    bench->add_flag("--cpu-time", o.has_cpu_time,
            "count the time that all threads compute, not the time that passes: for one thread on a machine that "
            "others use");
    add_loading(bench, o);
    if (const auto status = command_line::parse(app, "mxdnn-llm", argc, argv)) return *status;

    std::unique_ptr<tbb::global_control> limit;
    if (o.threads > 0) {
        limit = std::make_unique<tbb::global_control>(
                tbb::global_control::max_allowed_parallelism, size_t(o.threads));
        (void)mxdnn::set_max_concurrency(o.threads);
    }
    command(o);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    int status = 1;
    try {
        status = run(argc, argv);
    } catch (const std::bad_alloc &) {
        fprintf(stderr, "mxdnn-llm: memory has run out\n");
    } catch (const std::exception &e) {
        fprintf(stderr, "mxdnn-llm: %s\n", e.what());
    }
    return end_of_output("mxdnn-llm", status);
}
