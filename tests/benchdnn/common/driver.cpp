// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/driver.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

namespace bench {

namespace {

// Of a problem that has no descriptor.
outcome_t outcome_of(mxdnn_status_t status) {
    switch (status) {
    case mxdnn_unimplemented: return settings.random ? outcome_t::refused : outcome_t::skipped;
    case mxdnn_device_unavailable: return outcome_t::skipped;
    case mxdnn_invalid_arguments:
    case mxdnn_invalid_shape:
    case mxdnn_invalid_data_type: return settings.random ? outcome_t::refused : outcome_t::failed;
    default: return outcome_t::failed;
    }
}

} // namespace

void test(const std::string &repro, const std::function<std::string(std::string &names)> &body) {
    if (settings.list) return report(outcome_t::listed, repro, "", 0);
    const double start = now_ms();
    const auto done = [&](outcome_t outcome, const std::string &note) {
        report(outcome, repro, note, now_ms() - start);
    };
    try {
        std::string names;
        const std::string wrong = body(names);
        done(wrong.empty() ? outcome_t::passed : outcome_t::failed, wrong.empty() ? names : wrong);
    } catch (const none_wanted_t &e) {
        done(outcome_t::skipped, e.what());
    } catch (const refused_t &e) {
        done(outcome_of(e.why.status), e.why.what());
    } catch (const mxdnn::error &e) {
        // An engine of a target has descriptors of what cannot run here.
        done(e.status == mxdnn_device_unavailable ? outcome_t::skipped : outcome_t::failed, e.what());
    } catch (const std::bad_alloc &) {
        done(outcome_t::failed, "memory has run out");
    }
}

bool wanted(const std::string &impl) { return impl.find(settings.impl) != std::string::npos; }

std::string wrong_text(const std::string &impl, const mismatch_t &bad) {
    return impl + ": " + std::to_string(bad.count) + (bad.of ? " of " + std::to_string(bad.of) : "")
           + " wrong, seed " + std::to_string(settings.seed) + "\n" + bad.text;
}

void report_random(const tally_t &before, int64_t unfit) {
    const int drawn = tally.total - before.total, refused = tally.refused - before.refused;
    std::printf("random: %d problems of --seed=%u, %d (%d %%) refused", drawn, settings.seed, refused,
            100 * refused / std::max(drawn, 1));
    if (unfit) std::printf(", %lld for which the knobs do not fit", static_cast<long long>(unfit));
    std::puts("");
}

perf_t report_of(const std::string &repro, const std::string &impl) {
    perf_t r;
    r.engine = settings.engine;
    r.impl = impl;
    r.problem = repro;
    r.threads = mxdnn::get_max_concurrency();
    if (!settings.against.empty()) r.peer = settings.against + ":no-peer-here"; // until a driver has one
    return r;
}

void print(const perf_t &r) {
    static std::string headed; // the template that the last header was of
    const std::string line = perf_line(settings.perf_template, r);
    if (headed != settings.perf_template)
        std::printf("%s\n", perf_header(headed = settings.perf_template).c_str());
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

} // namespace bench
