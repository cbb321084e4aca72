// SPDX-License-Identifier: Apache-2.0
// Runs one moe_unpermute problem: sums within their bound and rows as they were, of every implementation.
#include <algorithm>
#include <cmath>

#include "benchdnn/common/driver.hpp"
#include "benchdnn/moe_permute/rows.hpp"
#include "benchdnn/moe_unpermute/problem.hpp"

namespace bench {
namespace moe_unpermute {

using namespace mxdnn::impl;
using pd_t = mxdnn::moe_unpermute::primitive_desc;

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

// Rows that went back as they were.
void compare_moved(const problem_t &p, const rows_t &src, const rows_t &dst,
        const std::vector<int32_t> &inverse, mismatch_t &bad) {
    for (int64_t t = 0; t < p.tokens; t++) {
        const int32_t from = inverse[size_t(t)];
        for (int64_t c = 0; c < p.cols; c++)
            bad.same("code", {t, c}, from < 0 ? 0 : src.code(from, c), dst.code(t, c));
        for (int64_t b = 0; b < dst.blocks(); b++)
            bad.same("scale", {t, b}, from < 0 ? 0 : src.scale(from, b), dst.scale(t, b));
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
                const double term = double(weights ? weights[t * p.choices() + j] : 1.f)
                                    * double(src.tensor.plain.value(idx));
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
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const mxdnn::stream stream = stream_of(eng);
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
        const pd_t pd =
                create([&] { return pd_t(eng, src.desc(p.runtime_rows), dst.desc(p.runtime_rows), attr); });
        args_t args = {{MXDNN_ARG_PERMUTED_IDX, idx.memory(host_engine(eng))}};
        if (p.topk) args[MXDNN_ARG_TOPK_WEIGHTS] = weights.memory(host_engine(eng));
        src.add_args(MXDNN_ARG_SRC, host_engine(eng), args);
        dst.add_args(MXDNN_ARG_DST, host_engine(eng), args);

        std::vector<interval_t> want;
        const auto compare = [&](const pd_t &each, mismatch_t &bad) {
            dst.poison();
            execute(mxdnn::moe_unpermute(each), stream, args);
            if (settings.plant_fault && p.tokens > 0) plant_fault(dst.codes());
            if (p.src.quantised)
                compare_moved(p, src, dst, inverse, bad);
            else
                compare_plain(dst.tensor.plain, want, bad);
        };
        std::string wrong;
        if (settings.correctness) {
            if (!p.src.quantised)
                want = sums(p, src, inverse,
                        p.topk ? reinterpret_cast<const float *>(weights.bytes.data()) : nullptr);
            wrong = check_each(pd, names, compare);
        }
        if (wrong.empty())
            run_and_time<mxdnn::moe_unpermute>(
                    pd, stream, args, p.repro, src.tensor.size() + dst.tensor.size());
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace moe_unpermute
} // namespace bench
