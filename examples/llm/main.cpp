// SPDX-License-Identifier: Apache-2.0
// Command line of mxdnn-llm: language models on packed weights.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "commands/commands.hpp"

namespace {

int run(int argc, char **argv) {
    llm::options_t o;
    CLI::App app("Runs language models whose weights stay packed in the formats of mxdnn.");
    app.require_subcommand(1);
    const auto add = [&](const char *name, const char *what, void (*command)(const llm::options_t &)) {
        CLI::App *sub = app.add_subcommand(name, what);
        sub->add_option("model", o.model, "a folder with config.json and safetensors files")->required();
        sub->callback([&o, command] { command(o); });
        return sub;
    };
    add("describe", "print what the configuration of a model says", llm::describe);
    CLI11_PARSE(app, argc, argv);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &e) {
        fprintf(stderr, "mxdnn-llm: %s\n", e.what());
        return 1;
    }
}
