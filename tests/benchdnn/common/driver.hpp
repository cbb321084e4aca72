// SPDX-License-Identifier: Apache-2.0
// The frame that a problem of any driver runs in: which implementations, what is reported, and timing. A
// driver fills tensors, says what must come out, and counts bytes.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchdnn/common/compare.hpp"
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/knobs.hpp"
#include "benchdnn/common/perf.hpp"
#include "benchdnn/common/settings.hpp"

namespace bench {

// Does what the mode says with `body`, and reports it. `body` returns what went wrong, or "", and adds the
// names of the implementations that it compared. Problems that the library does not take are skipped.
void test(const std::string &repro, const std::function<std::string(std::string &names)> &body);

// Thrown if the library refuses a problem. It is skipped if it is not implemented, or if it was drawn at
// random.
struct refused_t {
    mxdnn::error why;
};

// The descriptors of a problem. Errors after their creation are failures.
template <typename make_t>
auto create(make_t make) {
    try {
        return make();
    } catch (const mxdnn::error &e) {
        throw refused_t{e};
    }
}

// Thrown if no implementation of a problem was asked for. The problem is skipped, with that name.
struct none_wanted_t : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Whether --impl takes the name.
bool wanted(const std::string &impl);

// A descriptor that moves on by itself. Copies of a handle share the descriptor, and with it the
// implementation.
template <typename pd_t>
pd_t clone(const pd_t &pd) {
    mxdnn_primitive_desc_t made = nullptr;
    mxdnn::error::wrap_c_api(mxdnn_primitive_desc_clone(&made, pd.get()), "could not clone a descriptor");
    pd_t result;
    result.reset(made);
    return result;
}

// From the implementation that `pd` has on, the first whose name is `ok`.
template <typename pd_t, typename ok_t>
void choose(pd_t &pd, const std::string &what, ok_t ok) {
    while (!ok(std::string(pd.impl_info_str())))
        if (!pd.next_impl()) throw none_wanted_t("no implementation named " + what + " takes the problem");
}
template <typename pd_t>
void choose_wanted(pd_t &pd) {
    choose(pd, "*" + settings.impl + "*", wanted);
}
template <typename pd_t>
void choose_reference(pd_t &pd) {
    choose(pd, "ref:any", [](const std::string &name) { return name == "ref:any"; });
}

// For the result of an implementation: how many values are wrong, and the first few.
std::string wrong_text(const std::string &impl, const mismatch_t &bad);

// Compares every wanted implementation (with --best-only the first of them) by `compare(pd, bad)`; the text
// of the first that is wrong, or "".
template <typename pd_t, typename compare_t>
std::string check_each(const pd_t &first, std::string &names, compare_t compare) {
    pd_t pd = clone(first);
    choose_wanted(pd);
    do {
        const std::string name = pd.impl_info_str();
        if (!wanted(name)) continue;
        names += (names.empty() ? "" : " ") + name;
        mismatch_t bad;
        compare(pd, bad);
        if (bad.count) return wrong_text(name, bad);
    } while (!settings.best_only && pd.next_impl());
    return "";
}

// The part of a report of times that is the same for all drivers.
perf_t report_of(const std::string &repro, const std::string &impl);
void print(const perf_t &r);

// Modes other than correctness on the first wanted implementation: creates it, executes it by `once(pd,
// primitive)`, times it by `time(pd, primitive)`.
template <typename prim_t, typename pd_t, typename once_t, typename timed_t>
void run_and_time(const pd_t &first, once_t once, timed_t time) {
    if (settings.correctness && !settings.performance) return;
    pd_t pd = clone(first);
    choose_wanted(pd);
    const prim_t prim(pd);
    if (settings.run && !settings.correctness) once(pd, prim);
    if (settings.performance) time(pd, prim);
}

// The same for primitives that copy `bytes` and always take the same arguments.
template <typename prim_t, typename pd_t>
void run_and_time(const pd_t &pd, const mxdnn::stream &stream, const args_t &args, const std::string &repro,
        double bytes) {
    run_and_time<prim_t>(
            pd, [&](const pd_t &, const prim_t &prim) { execute(prim, stream, args); },
            [&](const pd_t &chosen, const prim_t &prim) {
                perf_t r = report_of(repro, chosen.impl_info_str());
                r.bytes = bytes;
                r.copies = true;
                time_execution(prim, stream, args, settings.ms_per_problem, r);
                print(r);
            });
}

// The problem that settings.seed and a number decide.
template <typename make_t, typename draw_t>
auto random_problem(int64_t index, const knobs_t &knobs, make_t make_problem, draw_t draw_descriptor) {
    draws_t any(settings.seed, uint64_t(index));
    const std::string descriptor = draw_descriptor(any);
    return make_problem(descriptor, knobs.draw(any, descriptor));
}

// Prints how many problems there were, and their outcomes. unfit: what was drawn beside them.
void report_random(const tally_t &before, int64_t unfit);

// A word after --<driver>: one of its knobs, --random=N, or the descriptor of a problem, which runs with
// every combination of the knobs. False when it is an option that the driver lacks.
template <typename make_t, typename run_t, typename draw_t>
bool take_word(
        const std::string &word, knobs_t &knobs, make_t make_problem, run_t run, draw_t draw_descriptor) {
    std::string count;
    if (knobs.take(word)) return true;
    if (option(word, "random", count)) {
        const tally_t before = tally;
        settings.random = true;
        const int64_t n = to_int(count, "--random", 1);
        int64_t unfit = 0; // knobs that were set are for other descriptors
        for (int64_t i = 0; i < n; i++) {
            std::optional<decltype(random_problem(i, knobs, make_problem, draw_descriptor))> problem;
            try {
                problem = random_problem(i, knobs, make_problem, draw_descriptor);
            } catch (const usage_error_t &) {
                if (++unfit == n) throw;
                continue;
            }
            run(*problem);
        }
        settings.random = false;
        report_random(before, unfit);
        return true;
    }
    if (word.compare(0, 2, "--") == 0) return false;
    // All words are checked before any problem runs, so that a wrong word is refused at once.
    std::vector<decltype(make_problem(word, knobs.usual()))> problems;
    for (const words_t &words : knobs.combinations()) problems.push_back(make_problem(word, words));
    for (const auto &p : problems) run(p);
    return true;
}

} // namespace bench
