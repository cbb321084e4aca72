// SPDX-License-Identifier: Apache-2.0
// Runs one moe_unpermute problem: sums within their bound and rows as they were, of every implementation.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "benchdnn/common/compare.hpp"
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/perf.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/moe_permute/rows.hpp"
#include "benchdnn/moe_unpermute/problem.hpp"

namespace bench {
namespace moe_unpermute {

using namespace mxdnn::impl;
using pd_t = mxdnn::moe_unpermute::primitive_desc;
using mxdnn::memory;

namespace {

// Where each source row goes, in random order.
std::vector<int32_t> draw_indices(const problem_t &p, rng_t &rng) {
    std::vector<int32_t> idx;
    std::uniform_int_distribution<int64_t> one_in(1, std::max<int64_t>(p.missing, 1));
    for (int64_t i = 0; i < p.tokens * p.choices(); i++)
        if (!p.missing || one_in(rng) != 1) idx.push_back(int32_t(i));
    idx.resize(idx.size() + size_t(p.padding), -1);
    std::shuffle(idx.begin(), idx.end(), rng);
    return idx;
}

double now_ms() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}

// Rows that went back as they were.
void compare_moved(const problem_t &p, const rows_t &src, const rows_t &dst,
        const std::vector<int32_t> &inverse, mismatch_t &bad) {
    for (int64_t t = 0; t < p.tokens; t++) {
        const int32_t from = inverse[size_t(t)];
        const auto same = [&](const char *what, int64_t i, uint32_t want, uint32_t got) {
            if (want != got)
                bad.add(std::string(what) + " [" + std::to_string(t) + "," + std::to_string(i) + "] expected "
                        + std::to_string(want) + " got " + std::to_string(got) + ", bound: the same bits");
        };
        for (int64_t c = 0; c < p.cols; c++)
            same("code", c, from < 0 ? 0 : src.code(from, c), dst.code(t, c));
        for (int64_t b = 0; b < dst.blocks(); b++)
            same("scale", b, from < 0 ? 0 : src.scale(from, b), dst.scale(t, b));
    }
}

// k products and additions in f32, each rounding what has been summed so far.
std::vector<interval_t> sums(
        const problem_t &p, const rows_t &src, const std::vector<int32_t> &inverse, const float *weights) {
    std::vector<interval_t> want;
    for (int64_t t = 0; t < p.tokens; t++)
        for (int64_t c = 0; c < p.cols; c++) {
            interval_t s;
            double size = 0;
            for (int64_t j = 0; j < p.choices(); j++) {
                const int32_t from = inverse[size_t(t * p.choices() + j)];
                if (from < 0) continue;
                const int64_t idx[2] = {from, c};
                const double term =
                        double(weights ? weights[t * p.choices() + j] : 1.f) * double(src.plain.value(idx));
                s.v += term;
                size += std::fabs(term);
            }
            if (p.topk) s.e = double(p.choices() + 1) * (u32 * size + tiny);
            want.push_back(s);
        }
    return want;
}

} // namespace

void run(const problem_t &p) {
    if (settings.list) return report(outcome_t::listed, p.repro, "", 0);
    const double start = now_ms();
    try {
        const mxdnn::engine eng = make_engine();
        const mxdnn::stream stream(eng);
        rng_t rng(settings.seed);
        const std::vector<int32_t> drawn = draw_indices(p, rng);
        const int64_t rows = int64_t(drawn.size());
        std::vector<int32_t> inverse(size_t(p.tokens * p.choices()), -1);
        for (int64_t r = 0; r < rows; r++)
            if (drawn[size_t(r)] >= 0) inverse[size_t(drawn[size_t(r)])] = int32_t(r);
        const rows_t src(p.src, rows, p.cols, p.src_scales, p.row_pad),
                dst(p.dst, p.tokens, p.cols, p.dst_scales, p.row_pad);
        src.fill(rng);
        const tensor_t idx({rows}, {1}, mxdnn_s32),
                weights({p.tokens, p.choices()}, {p.choices(), 1}, mxdnn_f32);
        std::copy(drawn.begin(), drawn.end(), reinterpret_cast<int32_t *>(idx.bytes.data()));
        fill_random(weights, rng);

        mxdnn::primitive_attr attr;
        src.describe(attr, MXDNN_ARG_SRC);
        dst.describe(attr, MXDNN_ARG_DST);
        pd_t pd(eng, src.desc(p.runtime_rows), dst.desc(p.runtime_rows), attr);
        std::unordered_map<int, memory> args = {{MXDNN_ARG_PERMUTED_IDX, idx.memory(host_engine(eng))}};
        if (p.topk) args[MXDNN_ARG_TOPK_WEIGHTS] = weights.memory(host_engine(eng));
        src.add_args(MXDNN_ARG_SRC, host_engine(eng), args);
        dst.add_args(MXDNN_ARG_DST, host_engine(eng), args);

        std::string names;
        if (settings.correctness) {
            std::vector<interval_t> want;
            if (!p.src.quantised)
                want = sums(p, src, inverse,
                        p.topk ? reinterpret_cast<const float *>(weights.bytes.data()) : nullptr);
            pd_t each = pd;
            do {
                const std::string name = each.impl_info_str();
                if (name.find(settings.impl) == std::string::npos) continue;
                names += (names.empty() ? "" : " ") + name;
                dst.poison();
                execute(mxdnn::moe_unpermute(each), stream, args);
                if (settings.plant_fault && p.tokens > 0) plant_fault(dst.codes());
                mismatch_t bad;
                if (p.src.quantised)
                    compare_moved(p, src, dst, inverse, bad);
                else
                    compare_plain(dst.plain, want, bad);
                if (bad.count)
                    return report(outcome_t::failed, p.repro,
                            name + ": " + std::to_string(bad.count) + " wrong, seed "
                                    + std::to_string(settings.seed) + "\n" + bad.text,
                            now_ms() - start);
            } while (!settings.best_only && each.next_impl());
        }
        if (settings.performance || (settings.run && !settings.correctness)) {
            while (std::string(pd.impl_info_str()).find(settings.impl) == std::string::npos)
                if (!pd.next_impl())
                    throw usage_error_t("no implementation named *" + settings.impl + "* takes the problem");
            const mxdnn::moe_unpermute prim(pd);
            execute(prim, stream, args);
            if (settings.performance) {
                perf_t r;
                r.engine = settings.engine;
                r.impl = pd.impl_info_str();
                r.problem = p.repro;
                r.bytes = src.bytes() + dst.bytes();
                r.copies = true;
                r.threads = mxdnn::get_max_concurrency();
                time_execution(prim, stream, args, settings.ms_per_problem, r);
                std::printf("%s\n", perf_line(settings.perf_template, r).c_str());
            }
        }
        report(outcome_t::passed, p.repro, names, now_ms() - start);
    } catch (const mxdnn::error &e) {
        const bool skip = e.status == mxdnn_unimplemented || e.status == mxdnn_device_unavailable;
        report(skip ? outcome_t::skipped : outcome_t::failed, p.repro, e.what(), now_ms() - start);
    }
}

namespace {
knobs_t knobs;
}

bool run_driver_word(const std::string &word) {
    if (knobs.parse(word)) return true;
    if (word.compare(0, 2, "--") == 0) return false;
    for (const problem_t &p : knobs.problems(word)) run(p);
    return true;
}

} // namespace moe_unpermute
} // namespace bench
