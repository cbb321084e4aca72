// SPDX-License-Identifier: Apache-2.0
// Command lines of programs: --version, and one sentence for whatever is wrong.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "mxdnn/mxdnn.h"

namespace command_line {

// Words that no option or positional takes.
inline std::string sentence_of(const CLI::App &app, const CLI::Error &e) {
    if (e.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return e.what();
    const std::vector<std::string> left = app.remaining(true);
    for (const std::string &word : left)
        if (word.size() > 1 && word[0] == '-') return "option '" + word + "' is not known";
    return left.empty() ? e.what() : "'" + left.front() + "' is one argument too many";
}

// The status with which the program ends, if it has nothing more to do: 0 after --help and --version, 2 where
// the command line is wrong.
inline std::optional<int> parse(CLI::App &app, const std::string &program, int argc, char **argv) {
    app.name(program);
    const mxdnn_version_t *v = mxdnn_version();
    app.set_version_flag("--version", program + " " + std::to_string(v->major) + "."
                                              + std::to_string(v->minor) + "." + std::to_string(v->patch)
                                              + ", commit " + v->hash);
    app.failure_message([](const CLI::App *a, const CLI::Error &e) {
        std::string command = a->get_name();
        for (const CLI::App *sub : a->get_subcommands()) command += " " + sub->get_name();
        return a->get_name() + ": " + sentence_of(*a, e) + "; " + command + " --help says more\n";
    });
    try {
        bool known = argc < 2 || *argv[1] == '-';
        std::string commands;
        for (const CLI::App *sub : app.get_subcommands({})) {
            known = known || sub->check_name(argv[1]);
            commands += " " + sub->get_name();
        }
        if (!known)
            throw CLI::ValidationError(
                    "there is no command '" + std::string(argv[1]) + "'; possible are" + commands);
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    return std::nullopt;
}

} // namespace command_line
