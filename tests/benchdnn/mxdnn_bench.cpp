// SPDX-License-Identifier: Apache-2.0
// mxdnn-bench: one line is a test, a benchmark and a reproducer. doc/reference/mxdnn-bench.md.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/ceilings.hpp"
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/knobs.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/grouped_matmul/problem.hpp"
#include "benchdnn/grouped_matmul_backward_weights/problem.hpp"
#include "benchdnn/moe_permute/problem.hpp"
#include "benchdnn/moe_route/problem.hpp"
#include "benchdnn/moe_unpermute/problem.hpp"
#include "benchdnn/mx_matmul/problem.hpp"
#include "benchdnn/mx_reorder/problem.hpp"
#include "common/standard_output.hpp"
#include "cpu/cpu_settings.hpp"

namespace bench {

settings_t settings;
tally_t tally;

mxdnn::engine make_engine() {
    if (settings.engine == "cpu") return mxdnn::engine(mxdnn::engine::kind::cpu, 0);
    if (settings.engine == "cuda") return mxdnn::engine(mxdnn::engine::kind::cuda, 0);
    if (settings.engine.compare(0, 5, "cuda:") == 0 && settings.engine.find("sm_") == std::string::npos)
        return mxdnn::engine(
                mxdnn::engine::kind::cuda, size_t(to_int(settings.engine.substr(5), "--engine=cuda:")));
    return mxdnn::engine::for_target(settings.engine);
}

mxdnn::stream stream_of(const mxdnn::engine &e) {
    static auto &streams = *new std::map<std::string, mxdnn::stream>; // the runtime may end before statics do
    const auto known = streams.find(settings.engine);
    return known != streams.end() ? known->second : streams.emplace(settings.engine, e).first->second;
}

void report(outcome_t outcome, const std::string &repro, const std::string &note, double ms) {
    const int index = tally.total++;
    const char *word = "";
    switch (outcome) {
    case outcome_t::passed: tally.passed++, word = "PASSED"; break;
    case outcome_t::skipped: tally.skipped++, word = "SKIPPED"; break;
    case outcome_t::refused: tally.refused++, word = "REFUSED"; break;
    case outcome_t::failed: tally.failed++, word = "FAILED"; break;
    case outcome_t::listed: word = "LISTED"; break;
    }
    // A benchmark's own lines say enough.
    if (settings.performance && !settings.correctness && outcome == outcome_t::passed) return;
    std::string words;
    if (settings.engine != settings_t().engine) words += "--engine=" + settings.engine + " ";
    if (settings.seed != settings_t().seed) words += "--seed=" + std::to_string(settings.seed) + " ";
    std::printf("%d:%s (%.0f ms) __REPRO: %s%s", index, word, ms, words.c_str(), repro.c_str());
    if (outcome == outcome_t::failed)
        std::printf("\n    %s", note.c_str());
    else if (!note.empty())
        std::printf(" [%s]", note.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

namespace {

struct driver_t {
    const char *name;
    bool (*word)(const std::string &);
};
constexpr driver_t drivers[] = {
        {"grouped_matmul", grouped_matmul::run_driver_word},
        {"grouped_matmul_backward_weights", grouped_matmul_backward_weights::run_driver_word},
        {"mx_matmul", mx_matmul::run_driver_word},
        {"mx_reorder", mx_reorder::run_driver_word},
        {"moe_route", moe_route::run_driver_word},
        {"moe_permute", moe_permute::run_driver_word},
        {"moe_unpermute", moe_unpermute::run_driver_word},
};

const driver_t *driver = nullptr;

void set_mode(const std::string &v) {
    settings.list = settings.init = settings.run = settings.correctness = settings.performance = false;
    for (char c : v) switch (c) {
        case 'L': settings.list = true; break;
        case 'I': settings.init = true; break;
        case 'R': settings.run = true; break;
        case 'C': settings.correctness = true; break;
        case 'P': settings.performance = true; break;
        default: throw usage_error_t(std::string("mode '") + c + "' is none of L I R C P");
        }
    if (v.empty()) throw usage_error_t("--mode is empty; it is made of the letters L I R C P");
}

// Thrown where a line asks for nothing but an answer, which has been printed.
struct answered_t {};
bool answered = false; // --ceilings, which problems may follow

// Thrown where a line is for a device that is not here.
struct no_device_t {
    std::string why;
};

void set_engine(const std::string &v) {
    settings.engine = v;
    try {
        make_engine();
    } catch (const mxdnn::error &e) {
        if (e.status == mxdnn_device_unavailable) throw no_device_t{e.message};
        std::string targets;
        for (const std::string &t : mxdnn::engine::get_target_names()) targets += " " + t;
        throw usage_error_t("--engine is '" + v + "'; possible are cpu cuda cuda:INDEX" + targets);
    }
}

bool to_bool(const std::string &v, const char *what) { return one_of(v, what, {"true", "false"}) == "true"; }

// Options of the whole run.
bool parse_setting(const std::string &word) {
    std::string v;
    if (option(word, "mode", v)) return set_mode(v), true;
    if (option(word, "engine", v)) return set_engine(v), true;
    if (option(word, "threads", v)) {
        settings.threads = int(to_int(v, "--threads", 0, INT_MAX));
        if (mxdnn::set_max_concurrency(settings.threads) != mxdnn::status::success)
            throw usage_error_t("--threads is '" + v + "': " + mxdnn::get_last_error());
        return true;
    }
    if (option(word, "seed", v)) return settings.seed = uint32_t(to_int(v, "--seed", 0, UINT32_MAX)), true;
    if (option(word, "random-size", v)) return settings.random_size = to_int(v, "--random-size", 1), true;
    if (option(word, "impl", v)) return settings.impl = v, true;
    if (option(word, "best-only", v)) return settings.best_only = to_bool(v, "best-only"), true;
    if (option(word, "against", v)) {
        one_of(v, "against", {"none", "onednn", "ref", "dense", "cublas"});
        return settings.against = v == "none" ? "" : v, true;
    }
    if (option(word, "cold-cache", v))
        return settings.cold_weights = one_of(v, "cold-cache", {"none", "wei"}) == "wei", true;
    if (option(word, "pages", v))
        return settings.small_pages = one_of(v, "pages", {"large", "small"}) == "small", true;
    if (option(word, "plant-fault", v)) return settings.plant_fault = to_bool(v, "plant-fault"), true;
    if (option(word, "max-ms-per-prb", v)) {
        settings.ms_per_problem = to_number(v, "--max-ms-per-prb");
        if (!(settings.ms_per_problem > 0))
            throw usage_error_t("--max-ms-per-prb is '" + v + "'; it is a number above 0");
        return true;
    }
    if (option(word, "perf-template", v)) return settings.perf_template = v, true;
    return false;
}

// Thrown when the machine lacks the ISA that the line is only meant for.
struct only_with_isa_t {
    std::string active, wanted;
};

void take(const std::string &word, const std::filesystem::path &folder, int depth);

std::string names_of_drivers() {
    std::string all;
    for (const driver_t &d : drivers) all += std::string(" --") + d.name;
    return all;
}

void print_help() {
    std::printf(
            "mxdnn-bench [settings] --DRIVER [knobs] PROBLEM...\n\n"
            "  mxdnn-bench --mx_matmul --dt=bf16:mxfp4:bf16 16x2880:2880x5760\n"
            "  mxdnn-bench --mode=P --against=onednn --mx_matmul --batch=perf\n"
            "  mxdnn-bench --seed=7 --mx_matmul --random=1000\n\n"
            "drivers: %s\n"
            "knobs:    mxdnn-bench --DRIVER --help\n"
            "settings: --mode=[LIRCP] (list, init, run, correctness, performance)\n"
            "          --engine=cpu|cuda|cuda:INDEX|TARGET --threads=N --seed=N --random-size=N --impl=TEXT "
            "--best-only=true|false\n"
            "          --batch=FILE|ci|smoke|perf|all --only-with-isa=ISA --plant-fault=true|false\n"
            "          --cold-cache=none|wei --pages=large|small --against=none|onednn|ref|dense|cublas --max-ms-per-prb=N\n"
            "          --perf-template=TEXT --ceilings --version\n"
            "types:   %s\n"
            "formats: %s\n"
            "post-ops:%s\n\n"
            "doc/reference/mxdnn-bench.md has what they mean.\n",
            names_of_drivers().c_str(), type_names().c_str(), format_names().c_str(),
            post_op_names().c_str());
}

// The sets of problems: where this program is installed, or else in the sources.
std::filesystem::path inputs_folder() {
    using std::filesystem::path;
    std::error_code none;
    const path program = std::filesystem::read_symlink("/proc/self/exe", none);
    const path installed = program.parent_path() / MXDNN_BENCH_INSTALLED_INPUTS;
    return std::filesystem::is_directory(installed, none) ? installed.lexically_normal()
                                                          : path(MXDNN_BENCH_INPUTS);
}

// A batch file holds the words of command lines; # starts a comment.
void take_batch(const std::string &name, const std::filesystem::path &folder, int depth) {
    using std::filesystem::path;
    if (depth > 8)
        throw usage_error_t("batch files include each other deeper than 8 levels at '" + name + "'");
    const path inputs = inputs_folder() / (driver ? driver->name : "");
    for (const path &file : {path(name), folder / name, inputs / name}) {
        std::ifstream in(file);
        if (!in || std::filesystem::is_directory(file)) continue;
        std::string line, word;
        for (int number = 1; std::getline(in, line); number++) {
            std::istringstream words(line.substr(0, line.find('#')));
            try {
                while (words >> word) take(word, file.parent_path(), depth + 1);
            } catch (const usage_error_t &e) {
                throw usage_error_t(file.string() + ":" + std::to_string(number) + ": " + e.what());
            }
        }
        return;
    }
    throw usage_error_t("batch file '" + name + "' is neither here nor under " + inputs.string());
}

std::string text_of_rates(const ceilings_t &c) {
    std::string text;
    for (const products_t p : all_products) {
        const rate_t &r = c.rate(p);
        char s[96];
        std::snprintf(s, sizeof(s), ",%s %.5g GFLOP/s (%s)", name_of(p), r.gflops, r.instruction);
        if (r.gflops > 0) text += s;
    }
    return text;
}

void take(const std::string &word, const std::filesystem::path &folder, int depth) {
    std::string v;
    for (const driver_t &d : drivers)
        if (word == std::string("--") + d.name) {
            driver = &d;
            return;
        }
    if (option(word, "batch", v)) return take_batch(v, folder, depth);
    if (parse_setting(word)) return;
    if (option(word, "only-with-isa", v)) {
        using namespace mxdnn::impl;
        if (x64::cpu_isa_t isa; !x64::isa_from_name(v.c_str(), &isa))
            refuse_word("only-with-isa", v, " " + cpu_isa_names());
        const std::string active = x64::isa_name(best_cpu_isa());
        if (active != v) throw only_with_isa_t{active, v};
        return;
    }
    const bool help = word == "--help" || word == "-h";
    if (help && !driver) {
        print_help();
        throw answered_t{};
    }
    if (word == "--version") {
        const mxdnn_version_t *version = mxdnn_version();
        std::printf("mxdnn-bench %d.%d.%d, commit %s\n", version->major, version->minor, version->patch,
                version->hash);
        throw answered_t{};
    }
    answered = answered || word == "--ceilings";
    if (word == "--ceilings" && is_device(make_engine())) {
        const ceilings_t &c = device_ceilings();
        std::printf("ceilings,%s,read %.4g GB/s,copy %.4g GB/s%s,empty kernel %.3g us\n",
                settings.engine.c_str(), c.read_gbs, c.copy_gbs, text_of_rates(c).c_str(), empty_kernel_us());
        return;
    }
    if (word == "--ceilings") {
        const int threads = mxdnn::get_max_concurrency();
        const ceilings_t &c = ceilings(threads);
        std::printf("ceilings,%d threads,read %.4g GB/s (%d streams),copy %.4g GB/s%s\n", threads, c.read_gbs,
                c.streams, c.copy_gbs, text_of_rates(c).c_str());
        return;
    }
    if (!driver)
        throw usage_error_t("'" + word
                            + "' is no setting (--help has them), and a driver has not been named yet: one of"
                            + names_of_drivers());
    if (!driver->word(help ? "--help" : word))
        throw usage_error_t("option '" + word + "' is not known to --" + driver->name
                            + (word.find('=') == word.npos ? " without =VALUE" : "")
                            + "; --help lists those that are");
    if (help) throw answered_t{};
}

// The status of the program.
int run(int argc, char **argv) {
    try {
        for (int i = 1; i < argc; i++) take(argv[i], ".", 0);
    } catch (const usage_error_t &e) {
        std::fprintf(stderr, "mxdnn-bench: %s\n", e.what());
        return 2;
    } catch (const only_with_isa_t &e) {
        std::printf("MXDNN_SKIP_ALL: the ISA in force is %s, not %s\n", e.active.c_str(), e.wanted.c_str());
        return 0;
    } catch (const answered_t &) {
        return 0;
    } catch (const no_device_t &e) {
        std::printf("MXDNN_SKIP_ALL: %s\n", e.why.c_str());
        return 0;
    } catch (const mxdnn::error &e) {
        std::fprintf(stderr, "mxdnn-bench: %s\n", e.what());
        return 2;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "mxdnn-bench: memory has run out\n");
        return 2;
    }
    if (tally.total == 0 && !answered) {
        std::fprintf(stderr, "mxdnn-bench: nothing was tested: no problem was given; --help has examples\n");
        return 2;
    }
    const std::string refused = tally.refused ? " refused:" + std::to_string(tally.refused) : "";
    std::printf("tests:%d passed:%d skipped:%d%s failed:%d\n", tally.total, tally.passed, tally.skipped,
            refused.c_str(), tally.failed);
    if (!settings.impl.empty() && tally.total > 0 && tally.skipped == tally.total) {
        std::fflush(stdout);
        std::fprintf(stderr,
                "mxdnn-bench: nothing was tested: no problem was taken by an implementation named *%s*\n",
                settings.impl.c_str());
        return 2;
    }
    return tally.failed ? 1 : 0;
}

} // namespace

} // namespace bench

int main(int argc, char **argv) {
    // Peers with OpenMP must not spin while the library's threads are being timed; their runtime
    // reads this when it is loaded, which is before main.
    if (!std::getenv("OMP_WAIT_POLICY")) {
        setenv("OMP_WAIT_POLICY", "passive", 1);
        execv("/proc/self/exe", argv);
    }
    return end_of_output("mxdnn-bench", bench::run(argc, argv));
}
