// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer, so that every build compiles and runs it:
//
//   fuzz_x [--runs=N] [--seed=S]      N random mutations of the target's seeds; one that ends the program, or
//   takes
//                                     minutes, is kept as ./fuzz-<seed>-<run>.input
//   fuzz_x --truncations [...]        every beginning of every seed before that
//   fuzz_x FILE...                    these inputs
//   fuzz_x --write-seeds=FOLDER       the seeds as files, to start libFuzzer from
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

// Of sanitizers, where one is linked.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace {

using ull = unsigned long long; // as printf has it

fuzz_input_t mutate(const std::vector<fuzz_input_t> &seeds, std::mt19937_64 &rng) {
    const auto below = [&](size_t n) { return n ? size_t(rng() % n) : 0; };
    fuzz_input_t x = seeds[below(seeds.size())];
    for (size_t changes = 1 + below(5); changes > 0; changes--) {
        const size_t at = below(x.size() + 1);
        const auto here = x.begin() + std::ptrdiff_t(at);
        const bool inside = at < x.size();
        switch (below(8)) {
        case 0:
            if (inside) x[at] = uint8_t(rng());
            break;
        case 1:
            if (inside) x[at] = uint8_t(x[at] ^ 1u << below(8));
            break;
        case 2:
            if (inside) x[at] = uint8_t(x[at] + (below(2) ? 1 : 255));
            break;
        case 3:
            for (size_t i = at; i < x.size() && i < at + 8; i++) x[i] = below(2) ? 0xff : 0;
            break;
        case 4: x.insert(here, 1 + below(8), uint8_t(rng())); break;
        case 5: x.erase(here, here + std::ptrdiff_t(below(x.size() - at + 1) % 9)); break;
        case 6: x.resize(at); break;
        case 7: { // the end of another seed
            const fuzz_input_t &other = seeds[below(seeds.size())];
            x.resize(at);
            const size_t from = below(other.size() + 1);
            x.insert(x.end(), other.begin() + std::ptrdiff_t(from), other.end());
            break;
        }
        }
    }
    return x;
}

int write_seeds(const std::string &folder) {
    int count = 0;
    for (const fuzz_input_t &seed : fuzz_seeds()) {
        std::ofstream out(folder + "/seed" + std::to_string(count++), std::ios::binary);
        out.write(reinterpret_cast<const char *>(seed.data()), std::streamsize(seed.size()));
        if (!out.good()) {
            std::fprintf(stderr, "cannot write to %s\n", folder.c_str());
            return 1;
        }
    }
    return 0;
}

// ---- the input that is at work, kept where it ends the program ----

constexpr unsigned most_seconds = 300; // of an input that is not stuck
const fuzz_input_t *current = nullptr;
char current_name[64];

void keep_current() {
    const char text[] = ": what ended the program\n";
    const int file = open(current_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (current && file >= 0 && write(file, current->data(), current->size()) == ssize_t(current->size())
            && write(2, current_name, std::strlen(current_name)) > 0)
        (void)!write(2, text, sizeof(text) - 1);
    current = nullptr;
}

struct watched_t {
    int signal;
    bool comes_again; // where the handler returns
    struct sigaction before;
} watched[] = {{SIGSEGV, true, {}}, {SIGBUS, true, {}}, {SIGFPE, true, {}}, {SIGILL, true, {}},
        {SIGABRT, false, {}}, {SIGALRM, false, {}}};

// Then whoever else cares for the signal: a sanitizer, or the system.
void on_signal(int signal) {
    keep_current();
    for (const watched_t &w : watched)
        if (w.signal == signal) {
            sigaction(signal, &w.before, nullptr);
            if (!w.comes_again) raise(signal);
        }
}

void watch_signals() {
    struct sigaction mine = {};
    mine.sa_handler = on_signal;
    for (watched_t &w : watched) sigaction(w.signal, &mine, &w.before);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_current);
}

void watch(const fuzz_input_t &input, uint64_t seed, uint64_t run) {
    std::snprintf(current_name, sizeof(current_name), "fuzz-%llu-%llu.input", ull(seed), ull(run));
    current = &input;
    alarm(most_seconds);
}

} // namespace

int main(int argc, char **argv) {
    uint64_t runs = 100000, seed = std::random_device()();
    bool has_truncations = false;
    std::vector<std::string> files;
    for (int i = 1; i < argc; i++) {
        const std::string arg = argv[i];
        if (arg.rfind("--runs=", 0) == 0)
            runs = std::strtoull(arg.c_str() + 7, nullptr, 10);
        else if (arg.rfind("--seed=", 0) == 0)
            seed = std::strtoull(arg.c_str() + 7, nullptr, 10);
        else if (arg == "--truncations")
            has_truncations = true;
        else if (arg.rfind("--write-seeds=", 0) == 0)
            return write_seeds(arg.substr(14));
        else if (arg.rfind("--", 0) == 0) {
            std::fprintf(stderr,
                    "%s is none of --runs=N, --seed=S, --truncations, --write-seeds=FOLDER and files\n",
                    arg.c_str());
            return 2;
        } else
            files.push_back(arg);
    }

    for (const std::string &file : files) {
        std::ifstream in(file, std::ios::binary);
        if (!in.good()) {
            std::fprintf(stderr, "cannot read %s\n", file.c_str());
            return 2;
        }
        const fuzz_input_t x((std::istreambuf_iterator<char>(in)), {});
        LLVMFuzzerTestOneInput(x.data(), x.size());
        std::printf("%s: passed\n", file.c_str());
    }
    if (!files.empty()) return 0;

    std::printf("seed %llu, %llu runs\n", ull(seed), ull(runs));
    std::fflush(stdout);
    watch_signals();
    const std::vector<fuzz_input_t> seeds = fuzz_seeds();
    for (const fuzz_input_t &x : seeds) LLVMFuzzerTestOneInput(x.data(), x.size());
    for (const fuzz_input_t &x : seeds)
        for (size_t n = 0; has_truncations && n < x.size(); n++) LLVMFuzzerTestOneInput(x.data(), n);
    auto said = std::chrono::steady_clock::now();
    std::mt19937_64 rng(seed);
    for (uint64_t run = 0; run < runs; run++) {
        const fuzz_input_t x = mutate(seeds, rng);
        watch(x, seed, run);
        LLVMFuzzerTestOneInput(x.data(), x.size());
        if (std::chrono::steady_clock::now() - said > std::chrono::seconds(2)) {
            std::printf("%llu of %llu runs\n", ull(run) + 1, ull(runs));
            std::fflush(stdout);
            said = std::chrono::steady_clock::now();
        }
    }
    std::printf("passed\n");
    return 0;
}
