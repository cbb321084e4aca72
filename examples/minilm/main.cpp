// SPDX-License-Identifier: Apache-2.0
// Command line: without a subcommand the whole demonstration, first packing here, then everything else in a
// second process that knows only the packed files.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <tbb/global_control.h>

#include <mxdnn/mxdnn.hpp>

#include "commands.hpp"
#include "common/command_line.hpp"
#include "common/standard_output.hpp"
#include "common/weight_formats.hpp"

extern char **environ;

namespace minilm {

using namespace weight_formats;

namespace {
constexpr int skipped = 77; // the exit status that ctest takes for "skipped"
const auto program_start = std::chrono::steady_clock::now();
} // namespace

void progress(const std::string &what) {
    static auto last = program_start;
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::seconds(2)) return;
    last = now;
    fprintf(stderr, "[%4.0f s] %s\n", std::chrono::duration<double>(now - program_start).count(),
            what.c_str());
}

namespace {

// oneDNN's OpenMP reads its environment when the program is loaded; the second process gets it in time.
// Returns whether this one did not.
bool change_environment(int threads) {
    const std::string n = std::to_string(threads);
    const char *number = getenv("OMP_NUM_THREADS"), *policy = getenv("OMP_WAIT_POLICY");
    bool changed = false;
    if (threads > 0 && (!number || n != number)) changed = setenv("OMP_NUM_THREADS", n.c_str(), 1) == 0;
    // OpenMP's and oneTBB's threads take turns here; those that wait actively would take the cores from the
    // others.
    if (!policy) changed |= setenv("OMP_WAIT_POLICY", "passive", 0) == 0;
    return changed;
}

// Runs this program again with a subcommand, and waits; throws unless it succeeds.
void run_second_process(const options_t &o) {
    fflush(stdout);
    std::vector<std::string> args = {"minilm", "table", "--model", o.model, "--packed", o.packed, "--threads",
            std::to_string(o.threads), "--seconds", std::to_string(o.seconds)};
    std::vector<char *> argv;
    argv.reserve(args.size() + 1);
    for (auto &a : args) argv.push_back(&a[0]);
    argv.push_back(nullptr);
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
    if (failed) throw std::runtime_error(std::string("cannot start a second process: ") + strerror(failed));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            throw std::runtime_error(std::string("cannot wait for the second process: ") + strerror(errno));
    if (WIFSIGNALED(status))
        throw std::runtime_error(
                "the second process was ended by signal " + std::to_string(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0) throw std::runtime_error("the second process failed; its message is above");
}

int run(int argc, char **argv) {
    options_t o;
    o.model = MINILM_DEFAULT_MODEL;
    std::string format = "mxfp4", file, golden;
    std::vector<std::string> texts;

    CLI::App app(
            "Sentence embeddings from packed microscaling weights. Without a subcommand: packs the model's linear "
            "layers into every format, then compares them in a second process.");
    app.require_subcommand(0, 1);
    app.fallthrough();
    app.add_option("--model", o.model, "folder of model.safetensors, config.json and vocab.txt")
            ->capture_default_str();
    app.add_option("--packed", o.packed, "folder for the packed files (default: packed/ in the model's)");
    app.add_option("--threads", o.threads, "threads to use; 0: all of the machine")
            ->capture_default_str()
            ->check(CLI::Range(0, 4096));
    app.add_option("--seconds", o.seconds, "how long to measure")
            ->capture_default_str()
            ->check(CLI::Range(0.0, 86400.0));
    auto *pack = app.add_subcommand("pack", "pack into one format, or all");
    pack->add_option("--format", format, "a format of the table, or 'all'")->capture_default_str();
    auto *table = app.add_subcommand("table", "compare the packed files with f32 and bf16");
    auto *embed = app.add_subcommand("embed", "print embeddings of texts, one line each");
    embed->add_option("--file", file, "a packed file; without it the f32 model computes");
    embed->add_option("text", texts, "what to embed")->required();
    auto *check =
            app.add_subcommand("check", "compare tokens and embeddings with ones that were made elsewhere");
    check->add_option("golden", golden, "JSON of make_golden.py")->required();
    if (const auto status = command_line::parse(app, "minilm", argc, argv)) return *status;

    if (o.packed.empty()) o.packed = o.model + "/packed";
    const bool needs_original = file.empty(); // a packed file is a model of its own
    if (needs_original && !std::ifstream(o.model + "/model.safetensors")) {
        const char *how = "; scripts/fetch-minilm gets it, --model names another folder";
        if (*check) {
            printf("SKIPPED: there is no model in %s%s\n", o.model.c_str(), how);
            return skipped;
        }
        throw std::runtime_error("there is no model.safetensors in " + o.model + how);
    }
    std::unique_ptr<tbb::global_control> limit;
    if (o.threads > 0) {
        limit = std::make_unique<tbb::global_control>(
                tbb::global_control::max_allowed_parallelism, size_t(o.threads));
        mxdnn::set_max_concurrency(o.threads);
    }

    if (change_environment(o.threads) && *table) {
        execv("/proc/self/exe", argv);
        throw std::runtime_error(std::string("cannot start again: ") + strerror(errno));
    }

    if (*pack) {
        pack_formats(o, format == "all" ? format_names() : std::vector<std::string>{format});
    } else if (*table) {
        print_table(o);
    } else if (*embed) {
        print_embeddings(o, file, texts);
    } else if (*check) {
        return check_golden(o, golden) ? 0 : 1;
    } else {
        pack_formats(o, format_names());
        run_second_process(o);
    }
    return 0;
}

} // namespace

} // namespace minilm

int main(int argc, char **argv) {
    int status = 1;
    try {
        status = minilm::run(argc, argv);
    } catch (const std::exception &e) {
        fprintf(stderr, "minilm: %s\n", e.what());
    }
    return end_of_output("minilm", status);
}
